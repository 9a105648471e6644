package store

import "testing"

// The least recently used value is removed first.
func TestCache(t *testing.T) {
	c := NewCache[int, string](8)
	c.Put(1, "one", 2)
	c.Put(2, "two", 1)
	c.Put(2, "two", 2)
	if v, ok := c.Get(1); !ok || v != "one" {
		t.Fatal("1 is not there")
	}
	c.Put(3, "three", 2)
	c.Put(4, "four", 2)
	c.Put(5, "five", 2)
	for n, want := range map[int]bool{1: true, 2: false, 3: true, 5: true} {
		if _, ok := c.Get(n); ok != want {
			t.Errorf("%d: %v", n, ok)
		}
	}
	if c.Put(6, "too large", 3); c.size > 8 || c.Len() != 4 {
		t.Error("one value is more than a quarter of what is kept")
	}
	c.Put(5, "too large", 3)
	c.Delete(4)
	if _, ok := c.Get(5); ok || c.Len() != 2 || c.size != 4 {
		t.Errorf("%d values of %d are left", c.Len(), c.size)
	}
}
