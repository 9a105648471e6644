package app

import (
	"testing"

	"github.com/rebound-llm/rebound/proxy"
	"github.com/rebound-llm/rebound/store/memory"
)

// On a busy machine the time for Redis may be over before the store is asked. What the process knows is known still.
func TestOwnersWithoutTime(t *testing.T) {
	s := memory.New(memory.Config{})
	defer s.Close()
	o, mine := ownerStore{s, 0}, proxy.Ownership{Owner: "key a", Upstream: "default"}
	o.Claim(t.Context(), mine, "resp_a")
	if got := o.Of(t.Context(), "resp_a", "resp_b"); got[0] != mine || got[1] != (proxy.Ownership{}) {
		t.Errorf("%+v, want %+v and no owner of the other", got, mine)
	}
}
