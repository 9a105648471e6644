package memory

// Len is the number of items.
func (s *Store) Len() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	if n := len(s.table.ends); n != len(s.table.items) {
		panic("the heap and the map differ")
	}
	return len(s.table.items)
}

// Bytes is the size that the store thinks it has, checked against its items.
func (s *Store) Bytes() int64 {
	s.mu.Lock()
	defer s.mu.Unlock()
	var sum int64
	for k, it := range s.table.items {
		sum += int64(it.size + len(k.name) + overhead)
	}
	if sum != s.table.bytes {
		panic("the sizes do not add up")
	}
	return sum
}
