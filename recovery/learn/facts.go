package learn

import (
	"bytes"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
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

// fact is one thing that was found out about a target. A field of the board is a list of
// them, as they were found.
type fact struct {
	Item    string        `json:"item"` // names it, as in a Mark: facts with one name replace each other
	Edit    recovery.Edit `json:"edit,omitzero"`
	Window  int           `json:"window,omitempty"`  // tokens, as a refusal stated it
	At      int64         `json:"at,omitempty"`      // Unix seconds
	Request string        `json:"request,omitempty"` // that showed it
}

// The items of facts that are no edits.
const (
	itemWindow  = "window" // it refused a request as too long
	itemReasons = "reasoning in silence"
	itemListed  = "listed window" // a list of models told it: kept in the process only
)

// itemOf names an edit.
func itemOf(e recovery.Edit) string {
	switch {
	case e.Mend != "" && e.Field != "":
		return "mend " + e.Mend + " " + e.Field
	case e.Mend != "":
		return "mend " + e.Mend
	case e.Role != "":
		return "role " + e.Role
	}
	return "field " + e.Field
}

func (v fact) edits() bool { return v.Item != itemWindow && v.Item != itemReasons }

// ours reports whether a fact is one that this program would write.
func (v fact) ours() bool {
	if len(v.Request) > maxRequest || v.Window < 0 {
		return false
	}
	return !v.edits() || v.Edit.Known() && v.Item == itemOf(v.Edit)
}

const (
	// maxRequest bounds the id of a request that is kept, in bytes.
	maxRequest = 128
	// maxFacts bounds what is remembered of one model.
	maxFacts = 32
	// maxListed bounds how many windows are known from lists of models, and how many
	// fields are kept decoded.
	maxListed = 4096
)

// Facts remember what targets refuse. Safe for concurrent use.
type Facts struct {
	board Board
	ttl   atomic.Int64
	names recovery.Names
	lists atomic.Bool // listed is not empty

	mu     sync.RWMutex
	read   map[recovery.Target]reading
	listed map[recovery.Target]listing // windows that an upstream's list of models tells, in this process
}

type listing struct {
	tokens int
	at     time.Time
}

// reading is a field that was decoded. It is never changed.
type reading struct {
	value []byte
	facts []fact
	edits []recovery.Edit
}

var _ recovery.Knowledge = (*Facts)(nil)

// NewFacts returns facts that are kept on board for ttl.
func NewFacts(board Board, ttl time.Duration) *Facts {
	f := &Facts{board: board, read: map[recovery.Target]reading{}, listed: map[recovery.Target]listing{}}
	f.ttl.Store(int64(ttl))
	return f
}

// Reconfigure sets the lifetime of facts learnt from now on.
func (f *Facts) Reconfigure(ttl time.Duration) { f.ttl.Store(int64(ttl)) }

// field is the name of a target's facts: all its keys share them.
func (f *Facts) field(t recovery.Target) string { return f.names.Of(bare(t)) }

// get is what is known of a target.
func (f *Facts) get(t recovery.Target) reading {
	if !f.board.Any(BoardFacts) {
		return reading{}
	}
	v, ok := f.board.Lookup(BoardFacts, f.field(t))
	if !ok || time.Now().After(v.Until) {
		return reading{}
	}
	t = bare(t)
	f.mu.RLock()
	r, ok := f.read[t]
	f.mu.RUnlock()
	if ok && bytes.Equal(r.value, v.Value) {
		return r
	}
	r = reading{value: v.Value, facts: decode(v.Value)}
	for _, known := range r.facts {
		if known.edits() {
			r.edits = append(r.edits, known.Edit)
		}
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	if len(f.read) >= maxListed {
		clear(f.read)
	}
	f.read[t] = r
	return r
}

// decode reads a field; what is not ours says nothing.
func decode(raw []byte) (list []fact) {
	if json.Unmarshal(raw, &list) != nil {
		return nil
	}
	return slices.DeleteFunc(list[:min(len(list), maxFacts+2)], func(v fact) bool { return !v.ours() })
}

// item is the fact of that name.
func (r reading) item(name string) (v fact, ok bool) {
	if i := slices.IndexFunc(r.facts, func(v fact) bool { return v.Item == name }); i >= 0 {
		return r.facts[i], true
	}
	return v, false
}

// put adds facts that a request, named by its id, showed of a target. What is known already
// stays as it was found, and all live on.
func (f *Facts) put(t recovery.Target, request string, found ...fact) {
	list := slices.Clone(f.get(t).facts)
	for _, v := range found {
		v.At = time.Now().Unix()
		if len(request) <= maxRequest {
			v.Request = request
		}
		i := slices.IndexFunc(list, func(o fact) bool { return o.Item == v.Item })
		switch {
		case i >= 0 && (list[i].Edit == v.Edit && list[i].Window == v.Window || v.Edit.Value != "" && list[i].Edit.Value == ""): // known; or the whole field is refused
		case i >= 0:
			list[i] = v
		case len(list) < maxFacts || !v.edits():
			list = append(list, v)
		}
	}
	f.post(f.field(t), list, time.Now().Add(time.Duration(f.ttl.Load())))
}

// post keeps facts under the name of their field.
func (f *Facts) post(name string, list []fact, until time.Time) {
	raw, err := json.Marshal(list)
	if len(list) == 0 || err != nil {
		f.board.Remove(BoardFacts, name)
		return
	}
	f.board.Post(BoardFacts, store.Field{Name: name, Value: raw, Until: until}, false)
}

// Edits returns the edits that requests to this target are known to need. They
// are shared and must not be changed.
func (f *Facts) Edits(t recovery.Target) []recovery.Edit { return f.get(t).edits }

// Learn adds edits that made a target accept a request, which is named by its id.
func (f *Facts) Learn(t recovery.Target, edits []recovery.Edit, request string) {
	found := make([]fact, len(edits))
	for i, e := range edits {
		found[i] = fact{Item: itemOf(e), Edit: e}
	}
	f.put(t, request, found...)
}

// Forget drops the edits of a target that refused what they made.
func (f *Facts) Forget(t recovery.Target) {
	if len(f.get(t).edits) > 0 {
		f.drop(f.field(t), fact.edits)
	}
}

// drop takes facts out of a field; the others do not live longer for it.
func (f *Facts) drop(name string, gone func(fact) bool) {
	if old, ok := f.board.Lookup(BoardFacts, name); ok {
		f.post(name, slices.DeleteFunc(decode(old.Value), gone), old.Until)
	}
}

// Reasons reports whether the target was seen to reason before it answers.
func (f *Facts) Reasons(t recovery.Target) bool {
	_, ok := f.get(t).item(itemReasons)
	return ok
}

// SawReasoning remembers that it did so in a request, which is named by its id.
func (f *Facts) SawReasoning(t recovery.Target, request string) {
	if !f.Reasons(t) {
		f.put(t, request, fact{Item: itemReasons})
	}
}

// Window is the context window of a target in tokens: as it stated it when it
// refused a request, else as its list of models tells; 0 where neither did, or
// too long ago.
func (f *Facts) Window(t recovery.Target) int {
	if v, _ := f.get(t).item(itemWindow); v.Window > 0 {
		return v.Window
	}
	if !f.lists.Load() {
		return 0
	}
	f.mu.RLock()
	defer f.mu.RUnlock()
	return f.listed[bare(t)].tokens
}

// ListWindow remembers what an upstream's list of models tells. What a refusal
// stated goes before it.
func (f *Facts) ListWindow(t recovery.Target, tokens int) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if len(f.listed) >= maxListed {
		clear(f.listed)
	}
	f.listed[bare(t)] = listing{tokens, time.Now()}
	f.lists.Store(true)
}

// Overflowed reports whether the target refused a request as too long lately.
func (f *Facts) Overflowed(t recovery.Target) bool {
	_, ok := f.get(t).item(itemWindow)
	return ok
}

// LearnWindow remembers an overflow of a request, which is named by its id, and the
// window if it was stated; 0 leaves what is known. What is known already is told anew
// when half of its time is over.
func (f *Facts) LearnWindow(t recovery.Target, tokens int, request string) {
	known, ok := f.get(t).item(itemWindow)
	if tokens == 0 {
		tokens = known.Window
	}
	field, _ := f.board.Lookup(BoardFacts, f.field(t))
	if ok && known.Window == tokens && time.Until(field.Until) > time.Duration(f.ttl.Load())/2 {
		return
	}
	f.put(t, request, fact{Item: itemWindow, Window: tokens})
}

// Listed is a Board whose fields can be listed.
type Listed interface {
	Board
	Each(board string, fn func(store.Field) bool)
}

// Marks lists what was learned of targets: on a board, and from lists of models.
func (f *Facts) Marks(board Listed) (marks []recovery.Mark) {
	board.Each(BoardFacts, func(field store.Field) bool {
		for _, v := range decode(field.Value) {
			m := v.mark()
			if m.Target, m.Until = field.Name, field.Until; v.At == 0 {
				m.Since = field.Until.Add(-time.Duration(f.ttl.Load()))
			}
			marks = append(marks, m)
		}
		return true
	})
	f.mu.RLock()
	defer f.mu.RUnlock()
	for t, l := range f.listed {
		marks = append(marks, recovery.Mark{Target: t.String(), Kind: recovery.MarkWindow, Item: itemListed, Detail: windowOf(l.tokens), Evidence: "list of models", Since: l.at})
	}
	return marks
}

// Clear forgets what was learned of a target, as a Mark names both; all of it where item is empty.
func (f *Facts) Clear(name, item string) {
	if item == "" || item == itemListed {
		f.mu.Lock()
		maps.DeleteFunc(f.listed, func(t recovery.Target, _ listing) bool { return t.String() == name })
		f.mu.Unlock()
	}
	f.drop(name, func(v fact) bool { return item == "" || v.Item == item })
}

func windowOf(n int) string { return fmt.Sprintf("window of %d tokens", n) }

// mark says in a few words what was learned.
func (v fact) mark() recovery.Mark {
	m := recovery.Mark{Kind: recovery.MarkLearned, Item: v.Item, Since: time.Unix(v.At, 0), Request: v.Request}
	switch {
	case v.Item == itemReasons:
		m.Detail, m.Evidence = "reasons in silence", "an answer reported reasoning tokens"
	case v.Item != itemWindow:
		m.Detail, m.Evidence = v.Edit.String(), "accepted so after a refusal"
	case v.Window > 0:
		m.Kind, m.Detail, m.Evidence = recovery.MarkWindow, windowOf(v.Window), "its refusal says so"
	default:
		m.Kind, m.Detail, m.Evidence = recovery.MarkWindow, "has refused a request as too long", "it did not say its window"
	}
	return m
}
