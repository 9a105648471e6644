package recovery_test

import (
	"strconv"
	"sync"
	"testing"

	"github.com/rebound-llm/rebound/recovery"
)

// A name is made once, whoever asks, until there are too many.
func TestMemo(t *testing.T) {
	var m recovery.Memo[string]
	made := map[string]int{}
	name := func(k string) (string, string) { made[k]++; return k, k + "!" }
	for i := range 3 * 8192 {
		if k := strconv.Itoa(i); m.Of(k, name) != k+"!" || m.Of(k, name) != k+"!" || made[k] != 1 {
			t.Fatalf("%s was made %d times", k, made[k])
		}
	}
	if m.Of("0", name); made["0"] != 2 {
		t.Error("the first of too many was kept")
	}
	var wg sync.WaitGroup
	for range 4 {
		wg.Go(func() {
			for i := range 1000 {
				if s := m.Of(strconv.Itoa(-i), func(k string) (string, string) { return k, k }); s != strconv.Itoa(-i) && i > 0 {
					t.Errorf("%d is named %s", -i, s)
				}
			}
		})
	}
	wg.Wait()
}
