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
	name := func(k string) string { made[k]++; return k + "!" }
	for i := range 3 * 8192 {
		k := strconv.Itoa(i)
		first, again := m.Of(k, name), m.Of(k, name)
		if first != k+"!" || again != first || made[k] != 1 {
			t.Fatalf("%s is named %s, then %s, made %d times", k, first, again, made[k])
		}
	}
	if m.Of("0", name); made["0"] != 2 {
		t.Error("the first of too many was kept")
	}
	var wg sync.WaitGroup
	for range 4 {
		wg.Go(func() {
			for i := range 1000 {
				if s := m.Of(strconv.Itoa(-i), func(k string) string { return k }); s != strconv.Itoa(-i) && i > 0 {
					t.Errorf("%d is named %s", -i, s)
				}
			}
		})
	}
	wg.Wait()
}
