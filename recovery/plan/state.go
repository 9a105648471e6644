package plan

import (
	"context"
	"encoding/json"
	"time"

	"github.com/rebound-llm/rebound/recovery"
	"github.com/rebound-llm/rebound/store"
)

// state is what is kept of a session's trouble. One that is in use is not changed.
type state struct {
	Key      uint64         `json:"k"`
	Tool     string         `json:"t,omitempty"`
	Asked    int            `json:"n,omitempty"` // times for this trouble, since another tool was chosen
	Ever     int            `json:"e,omitempty"` // times for this trouble at all
	Run      int            `json:"r,omitempty"` // turns of the tool in a row, when it was asked last
	Slot     string         `json:"s,omitempty"` // the turn for which it was asked last
	Learned  bool           `json:"l,omitempty"` // a pattern had its turn
	Ruled    int            `json:"f,omitempty"` // heuristics that stood in for a planner that may not be asked
	Plan     *recovery.Plan `json:"p,omitempty"`
	Approval string         `json:"a,omitempty"` // the approval that the plan waits for
	Used     string         `json:"u,omitempty"` // the turn in which it was carried out
	Until    time.Time      `json:"x"`           // the plan is too old then
	At       time.Time      `json:"at"`
}

// The bounds of asking and keeping.
const (
	maxAsked = 2 // for one tool and failure, until another tool is chosen
	maxEver  = 6 // for one failure in any case: some clients show only their last turns

	// planTTL is how long a plan may be used, beyond the time that it waits for approval.
	planTTL = 5 * time.Minute
	// stateTTL is how long it is remembered how often the planner was asked.
	stateTTL = time.Hour
	// maxStored bounds a value in the store, in bytes.
	maxStored = 32 << 10
)

// usable reports whether the state has a plan for a turn: one that no other turn had.
func (st *state) usable(slot string) bool {
	return st.Plan != nil && (st.Used == "" || st.Used == slot) && time.Now().Before(st.Until)
}

// exhausted reports whether the planner is not asked any more.
func (st *state) exhausted() bool { return st.Asked >= maxAsked || st.Ever >= maxEver }

func stateKey(session string) string { return "plan/" + session }

const purpose = "rebound plan v1"

// recall is what is known of the session's trouble: of another one, and of one that
// was left for another tool, nothing.
func (s *Planner) recall(ctx context.Context, x *recovery.Exchange, t trouble, slot string) *state {
	st, _ := s.states.Get(x.Session)
	if other := s.stored(ctx, x); other != nil && (st == nil || other.At.After(st.At)) {
		st = other
	}
	if st == nil || st.Key != t.key || st.Tool != t.tool {
		return &state{Key: t.key, Tool: t.tool}
	}
	if st.Slot == slot || st.usable(slot) {
		return st
	}
	if n := run(x, t.tool); n > 0 && n <= st.Run && n < maxRun {
		return &state{Key: t.key, Tool: t.tool, Ever: st.Ever, Learned: st.Learned, Ruled: st.Ruled}
	}
	return st
}

// stored is what another replica may know, nil for nothing.
func (s *Planner) stored(ctx context.Context, x *recovery.Exchange) *state {
	if s.parts.Store == nil {
		return nil
	}
	ctx, cancel := context.WithTimeout(ctx, s.parts.StoreTime)
	defer cancel()
	values, err := s.parts.Store.Get(ctx, stateKey(x.Session))
	if err != nil || len(values) != 1 || len(values[0]) == 0 || len(values[0]) > maxStored {
		return nil // the store tells of its own trouble
	}
	aead, err := store.Cipher([]byte(x.Secret), purpose)
	if err != nil {
		return nil
	}
	raw, err := aead.Open(nil, nil, values[0], []byte(x.Session))
	var st state
	if err != nil || json.Unmarshal(raw, &st) != nil || st.At.After(time.Now().Add(time.Minute)) {
		return nil // not ours
	}
	return &st
}

// remember keeps a state: in the process, and behind for all replicas, encrypted with
// the client's credential.
func (s *Planner) remember(session string, secret []byte, st *state) {
	st.At = time.Now()
	raw, err := json.Marshal(st)
	if err != nil {
		return // texts and numbers always marshal
	}
	s.states.Put(session, st, len(session)+len(raw)+256)
	if s.parts.Store == nil || len(raw) > maxStored/2 {
		return
	}
	aead, err := store.Cipher(secret, purpose)
	if err != nil {
		return
	}
	box := aead.Seal(nil, nil, raw, []byte(session))
	s.behind(func() {
		ctx, cancel := context.WithTimeout(s.ctx, time.Second)
		defer cancel()
		_ = s.parts.Store.Set(ctx, store.Entry{Key: stateKey(session), Value: box, TTL: stateTTL}) // else this process knows
	})
}
