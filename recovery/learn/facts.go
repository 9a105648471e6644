package learn

import (
	"bytes"
	"encoding/json"
	"fmt"
	"reflect"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/rebound-llm/rebound/recovery"
	"github.com/rebound-llm/rebound/store"
)

// BoardFacts is the board that replicas share; a field is an upstream's model.
const BoardFacts = "facts"

// Board is the shared state as this package needs it.
type Board interface {
	// Any reports whether a board has fields at all: usually nothing was learnt.
	Any(board string) bool
	Lookup(board, field string) (store.Field, bool)
	Post(board string, f store.Field, max bool)
	Remove(board, field string)
}

// fact is the value of a field. Edits are few: one per refused field.
type fact struct {
	Edits   []recovery.Edit `json:"edits,omitempty"`
	Reasons bool            `json:"reasons,omitempty"`
	Window  int             `json:"window,omitempty"` // tokens, as a refusal stated it
	Small   bool            `json:"small,omitempty"`  // it refused a request as too long
}

// maxEdits bounds what is remembered of one model.
const maxEdits = 32

// Facts remember what targets refuse. Safe for concurrent use.
type Facts struct {
	board Board
	ttl   atomic.Int64
	names recovery.Names
	lists atomic.Bool // listed is not empty

	mu     sync.RWMutex
	read   map[recovery.Target]reading
	listed map[recovery.Target]int // windows that an upstream's list of models tells, in this process
}

// reading is a field that was decoded. Its edits are never changed.
type reading struct {
	value []byte
	fact  fact
}

var _ recovery.Knowledge = (*Facts)(nil)

// NewFacts returns facts that are kept on board for ttl.
func NewFacts(board Board, ttl time.Duration) *Facts {
	f := &Facts{board: board}
	f.ttl.Store(int64(ttl))
	return f
}

// Reconfigure sets the lifetime of facts learnt from now on.
func (f *Facts) Reconfigure(ttl time.Duration) { f.ttl.Store(int64(ttl)) }

// field is the name of a target's facts: all its keys share them.
func (f *Facts) field(t recovery.Target) string {
	t.Key = ""
	return f.names.Of(t)
}

// get is what is known of a target. Its edits are shared and must not be changed.
func (f *Facts) get(t recovery.Target) fact {
	if !f.board.Any(BoardFacts) {
		return fact{}
	}
	v, ok := f.board.Lookup(BoardFacts, f.field(t))
	if !ok || time.Now().After(v.Until) {
		return fact{}
	}
	t.Key = ""
	f.mu.RLock()
	r, ok := f.read[t]
	f.mu.RUnlock()
	if ok && bytes.Equal(r.value, v.Value) {
		return r.fact
	}
	got := decode(v.Value)
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.read == nil || len(f.read) >= maxListed {
		f.read = map[recovery.Target]reading{}
	}
	f.read[t] = reading{v.Value, got}
	return got
}

// decode reads a field; what is not ours says nothing.
func decode(raw []byte) (v fact) {
	if json.Unmarshal(raw, &v) != nil {
		return fact{}
	}
	v.Edits = slices.DeleteFunc(v.Edits, func(e recovery.Edit) bool { return !e.Known() })
	v.Window = max(0, v.Window)
	return v
}

func (f *Facts) put(t recovery.Target, v fact) {
	if len(v.Edits) == 0 && !v.Reasons && !v.Small {
		f.board.Remove(BoardFacts, f.field(t))
		return
	}
	raw, err := json.Marshal(v)
	if err != nil {
		return
	}
	f.board.Post(BoardFacts, store.Field{Name: f.field(t), Value: raw, Until: time.Now().Add(time.Duration(f.ttl.Load()))}, false)
}

// Edits returns the edits that requests to this target are known to need. They
// are shared and must not be changed.
func (f *Facts) Edits(t recovery.Target) []recovery.Edit { return f.get(t).Edits }

// Learn adds edits that made a target accept a request.
func (f *Facts) Learn(t recovery.Target, edits []recovery.Edit) {
	v := f.get(t)
	v.Edits = slices.Clone(v.Edits)
	for _, e := range edits {
		i := slices.IndexFunc(v.Edits, func(o recovery.Edit) bool { return o.Field == e.Field && o.Role == e.Role && o.Mend == e.Mend })
		if i >= 0 {
			v.Edits[i] = e
		} else if len(v.Edits) < maxEdits {
			v.Edits = append(v.Edits, e)
		}
	}
	f.put(t, v)
}

// Forget drops the edits of a target that refused what they made.
func (f *Facts) Forget(t recovery.Target) {
	v := f.get(t)
	if len(v.Edits) > 0 {
		v.Edits = nil
		f.put(t, v)
	}
}

// Reasons reports whether the target was seen to reason before it answers.
func (f *Facts) Reasons(t recovery.Target) bool { return f.get(t).Reasons }

// SawReasoning remembers that it does.
func (f *Facts) SawReasoning(t recovery.Target) {
	if v := f.get(t); !v.Reasons {
		v.Reasons = true
		f.put(t, v)
	}
}

// Window is the context window of a target in tokens: as it stated it when it
// refused a request, else as its list of models tells; 0 where neither did, or
// too long ago.
func (f *Facts) Window(t recovery.Target) int {
	if n := f.get(t).Window; n > 0 {
		return n
	}
	if !f.lists.Load() {
		return 0
	}
	t.Key = ""
	f.mu.RLock()
	defer f.mu.RUnlock()
	return f.listed[t]
}

// maxListed bounds how many windows are known from lists of models, and how many
// fields are kept decoded.
const maxListed = 4096

// ListWindow remembers what an upstream's list of models tells. What a refusal
// stated goes before it.
func (f *Facts) ListWindow(t recovery.Target, tokens int) {
	t.Key = ""
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.listed == nil || len(f.listed) >= maxListed {
		f.listed = map[recovery.Target]int{}
	}
	f.listed[t] = tokens
	f.lists.Store(true)
}

// Overflowed reports whether the target refused a request as too long lately.
func (f *Facts) Overflowed(t recovery.Target) bool { return f.get(t).Small }

// LearnWindow remembers an overflow, and the window if it was stated; 0 leaves
// what is known. What is known already is told anew when half of its time is over.
func (f *Facts) LearnWindow(t recovery.Target, tokens int) {
	v := f.get(t)
	if tokens == 0 {
		tokens = v.Window
	}
	field, ok := f.board.Lookup(BoardFacts, f.field(t))
	if ok && v.Small && v.Window == tokens && time.Until(field.Until) > time.Duration(f.ttl.Load())/2 {
		return
	}
	v.Window, v.Small = tokens, true
	f.put(t, v)
}

// Listed is a Board whose fields can be listed.
type Listed interface {
	Board
	Each(board string, fn func(store.Field) bool)
}

// Marks lists what was learned of targets, on a board.
func (f *Facts) Marks(board Listed) (marks []recovery.Mark) {
	board.Each(BoardFacts, func(v store.Field) bool {
		if known := decode(v.Value); !reflect.DeepEqual(known, fact{}) {
			marks = append(marks, recovery.Mark{Target: v.Name, Kind: recovery.MarkLearned, Detail: known.String(), Since: v.Until.Add(-time.Duration(f.ttl.Load())), Until: v.Until})
		}
		return true
	})
	return marks
}

// Clear forgets what was learned of a target, as a Mark names it.
func (f *Facts) Clear(name string) { f.board.Remove(BoardFacts, name) }

// String says in a few words what was learned.
func (v fact) String() string {
	var words []string
	for _, e := range v.Edits {
		words = append(words, e.String())
	}
	switch {
	case v.Window > 0:
		words = append(words, fmt.Sprintf("window of %d tokens", v.Window))
	case v.Small:
		words = append(words, "has refused a request as too long")
	}
	if v.Reasons {
		words = append(words, "reasons in silence")
	}
	return strings.Join(words, ", ")
}
