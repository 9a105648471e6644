package recovery

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
)

// Made names the account that made a span of a session's reasoning: the elements from From, counted from 0, up to the
// next Made. Both names are empty if the account is unknown: then no account can read that reasoning.
type Made struct {
	Upstream string `json:"u,omitempty"`
	Key      string `json:"k,omitempty"`
	From     int    `json:"n,omitempty"`
}

// Makers remembers which accounts answered a session, if not only the first candidate did. Other accounts cannot read
// reasoning that an account has encrypted. Safe for concurrent use; no I/O.
type Makers interface {
	// Made returns the accounts of a session in order, nil if unknown. It must not be changed.
	Made(session string) []Made
	// Remember replaces the accounts of a session.
	Remember(session string, made []Made)
}

// maxMade limits the remembered spans of reasoning of one session.
const maxMade = 8

// by reports whether a target uses the account that made the reasoning.
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
	if x.made == nil { // the session never changed its account
		x.made = []Made{{Upstream: x.Candidates[0].Upstream, Key: x.Candidates[0].Key}}
	}
	for i := range x.Candidates {
		c := &x.Candidates[i]
		if ed, some := foreign(x.made, c.Target, x.sealed); some {
			if x.Body.Format().SignsReasoning() {
				ed.Field = ReasoningFinished // the provider may still read the reasoning of the current turn
			}
			c.Edits = append(c.Edits, ed)
		}
	}
}

// makerNames returns the keys under which Makers may know the session: its own name and, since its first request has no
// session name, a key for all conversations with the same beginning.
func (x *Exchange) makerNames() (names []string) {
	if x.Session != "" {
		names = append(names, x.Session)
	}
	if x.Affinity != 0 {
		names = append(names, "like "+strconv.FormatUint(x.Affinity, 36))
	}
	return names
}

// foreign returns the edit that removes, among the first n elements of reasoning, those of other accounts than t's; ok is
// false if there are none.
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
	ed = Edit{Conform: ConformReasoning}
	if lost < n {
		ed.Field = strings.Join(spans, ",")
	}
	return ed, lost > 0
}

// answeredBy remembers the account of the candidate that answered the session, if the session has or will have reasoning
// of several accounts.
func (r *run) answeredBy(c *Choice) {
	x := r.x
	if len(x.made) == 0 {
		return
	}
	refused := slices.Contains(c.Edits, Edit{Conform: ConformReasoning})
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
	if refused && x.made[len(x.made)-1].by(c.Target) || len(made) == maxMade { // the account is unknown
		made = nil
		if now.From > 0 {
			made = []Made{{}}
		}
	}
	r.Makers.Remember(names[0], append(made, now))
}
