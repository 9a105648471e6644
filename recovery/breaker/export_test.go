package breaker

// MaxTargets bounds the maps.
const MaxTargets = maxTargets

// UnderWay adds up what the set thinks is under way.
func (s *Set) UnderWay() (requests, resends, probes int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, e := range s.targets {
		requests, resends, probes = requests+e.inFlight, resends+e.resends, probes+e.probes
	}
	return
}

// Sizes are the sizes of both maps.
func (s *Set) Sizes() (targets, keys int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return len(s.targets), s.keys.Len()
}

// Personal is how many clients' failures are counted apart.
func (s *Set) Personal() (n int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, e := range s.targets {
		n += e.clients.Len()
	}
	return n
}
