package plan_test

import (
	"testing"
	"testing/synctest"

	"github.com/rebound-llm/rebound/recovery"
)

// detaching is a planner that is detached while another request of its session is prepared.
type detaching struct {
	*brain
	meanwhile func()
}

func (d detaching) Detach() recovery.Completer {
	d.meanwhile()
	return d.brain
}

// Two requests of one session that ask at the same moment share one call.
func TestOneCallOfTwoRequests(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := start(t, &brain{text: good}, nil)
		x := stuck(t, "s", "get", 2)
		x.Completer = detaching{g.brain, func() { g.prepare(stuck(t, "s", "get", 2)) }}
		if err := g.Prepare(t.Context(), x); err != nil {
			t.Fatal(err)
		}
		synctest.Wait()
		if n := g.brain.asked(); n != 1 || x.Extra() != 0 {
			t.Errorf("the planner was asked %d times, and the second request has spent %d inputs on it", n, x.Extra())
		}
	})
}
