package recovery

import (
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/rebound-llm/rebound/recovery/transcript"
)

// Made says that an account made the reasoning of a session from an element on, counted
// from 0, up to where the next Made begins. Both names are empty for accounts of which
// nobody knows: no account can read that reasoning.
type Made struct {
	Upstream string `json:"u,omitempty"`
	Key      string `json:"k,omitempty"`
	From     int    `json:"n,omitempty"`
}

// Makers remember which accounts answered a session, where that is not the one that it
// would be expected at: what an account has sealed no other can read. Safe for
// concurrent use; no I/O.
type Makers interface {
	// Made is what is known of a session, in order; nil if nothing. It must not be changed.
	Made(session string) []Made
	Remember(session string, made []Made)
}

// maxMade bounds how often a session is followed from account to account.
const maxMade = 8

// by reports whether a target has the account that made it.
func (m Made) by(t Target) bool { return m.Upstream == t.Upstream && m.Key == t.Key }

// applyMakers finds out which accounts made the reasoning in the request, and removes from
// each candidate's copy what its account cannot decrypt.
func (r *run) applyMakers() {
	x := r.x
	if r.Makers == nil || x.Mode != ModeAct {
		return
	}
	var ok bool
	if x.sealed, ok = x.Body.SealedReasoning(); !ok {
		return
	}
	for _, name := range x.makerNames() {
		if x.made == nil {
			x.made = r.Makers.Made(name)
		}
	}
	if x.made == nil { // the session was never moved
		x.made = []Made{{Upstream: x.Candidates[0].Upstream, Key: x.Candidates[0].Key}}
	}
	for i := range x.Candidates {
		c := &x.Candidates[i]
		if ed, some := foreign(x.made, c.Target, x.sealed); some {
			if x.Body.Format() == transcript.Messages {
				ed.Field = ReasoningFinished // of the turn under way the provider may yet read what it is sent
			}
			c.Edits = append(c.Edits, ed)
		}
	}
}

// makerNames are the names under which something may be known of the exchange's
// session: its own, and, as its first request had none yet, that of all that begin like it.
func (x *Exchange) makerNames() (names []string) {
	if x.Session != "" {
		names = append(names, x.Session)
	}
	if x.Affinity != 0 {
		names = append(names, "like "+strconv.FormatUint(x.Affinity, 36))
	}
	return names
}

// foreign is the edit that takes out what other accounts than t's made of the first n
// elements of reasoning; ok is false if there is none.
func foreign(made []Made, t Target, n int) (ed Edit, ok bool) {
	var spans []string
	lost := 0
	for i, m := range made {
		from, to := min(m.From, n), n
		if i+1 < len(made) {
			to = min(made[i+1].From, n)
		}
		if !m.by(t) && from < to {
			spans = append(spans, fmt.Sprintf("%d-%d", from, to))
			lost += to - from
		}
	}
	ed = Edit{Mend: MendReasoning}
	if lost < n {
		ed.Field = strings.Join(spans, ",")
	}
	return ed, lost > 0
}

// answeredBy remembers that a candidate answered the session, which carried reasoning of
// others or will.
func (r *run) answeredBy(c *Choice) {
	x := r.x
	if len(x.made) == 0 {
		return
	}
	refused := slices.Contains(c.Edits, Edit{Mend: MendReasoning})
	if last := x.made[len(x.made)-1]; last.by(c.Target) && !refused {
		return
	}
	names := x.makerNames()
	if len(names) == 0 {
		return
	}
	now := Made{c.Upstream, c.Key, x.sealed}
	made := slices.Clone(x.made)
	for len(made) > 0 && made[len(made)-1].From >= now.From {
		made = made[:len(made)-1]
	}
	if refused && x.made[len(x.made)-1].by(c.Target) || len(made) == maxMade { // nobody knows whose that was
		made = nil
		if now.From > 0 {
			made = []Made{{}}
		}
	}
	r.Makers.Remember(names[0], append(made, now))
}
