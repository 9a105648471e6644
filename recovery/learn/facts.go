package learn

import (
	"bytes"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"sync/atomic"
	"time"

	"github.com/rebound-llm/rebound/recovery"
	"github.com/rebound-llm/rebound/store"
)

// BoardFacts is the board that replicas share; a field is an upstream's model.
const BoardFacts = "facts"

// Board is the part of the shared state that this package needs.
type Board interface {
	// Any reports whether a board has any fields; usually it has none.
	Any(board string) bool
	Lookup(board, field string) (store.Field, bool)
	Post(board string, f store.Field, max bool)
	Remove(board, field string)
	Each(board string, fn func(store.Field) bool)
}

// fact is the value of a field. It has few edits: one per refused field.
type fact struct {
	Edits   []recovery.Edit `json:"edits,omitempty"`
	Reasons bool            `json:"reasons,omitempty"`
	Window  int             `json:"window,omitempty"` // tokens, as stated in a refusal
	Small   bool            `json:"small,omitempty"`  // the target refused a request as too long
	// Origins tell how each item was learned, by item (as in a Mark).
	Origins map[string]origin `json:"origins,omitempty"`
}

// origin is the time and the request in which something was learned.
type origin struct {
	At      int64  `json:"at"` // Unix seconds
	Request string `json:"request,omitempty"`
}

// The items of a fact that are not edits.
const (
	itemWindow  = "window"
	itemReasons = "reasoning in silence"
)

// item returns the item of an edit.
func item(e recovery.Edit) string {
	switch {
	case e.Conform != "" && e.Field != "":
		return "conform " + e.Conform + " " + e.Field
	case e.Conform != "":
		return "conform " + e.Conform
	case e.Role != "":
		return "role " + e.Role
	}
	return "field " + e.Field
}

// maxRequest limits a stored request id, in bytes.
const maxRequest = 128

// setOrigin records that an item was learned now. A known item keeps its origin.
func (v *fact) setOrigin(item, request string, known bool) {
	if _, ok := v.Origins[item]; ok && known {
		return
	}
	if len(request) > maxRequest {
		request = ""
	}
	v.Origins = maps.Clone(v.Origins) // others read it
	if v.Origins == nil {
		v.Origins = map[string]origin{}
	}
	v.Origins[item] = origin{time.Now().Unix(), request}
}

// maxEdits limits the edits of one model.
const maxEdits = 32

// Facts remembers what targets refuse. It is safe for concurrent use.
type Facts struct {
	board Board
	ttl   atomic.Int64
	names recovery.Names

	read   *store.Cache[recovery.Target, reading]
	listed *store.Cache[recovery.Target, listing] // windows from upstreams' model lists, in this process
}

// maxListed limits how many windows from model lists, and how many decoded fields, are cached.
const maxListed = 4096

type listing struct {
	tokens int
	at     time.Time
}

// reading is a decoded field. Its edits are never modified.
type reading struct {
	value []byte
	fact  fact
}

var _ recovery.Knowledge = (*Facts)(nil)

// NewFacts returns facts that are stored on board for ttl.
func NewFacts(board Board, ttl time.Duration) *Facts {
	f := &Facts{board: board, read: store.NewCache[recovery.Target, reading](maxListed),
		listed: store.NewCache[recovery.Target, listing](maxListed)}
	f.ttl.Store(int64(ttl))
	return f
}

// Reconfigure sets the lifetime of facts that are learned later.
func (f *Facts) Reconfigure(ttl time.Duration) { f.ttl.Store(int64(ttl)) }

// get returns the facts of a target without its key, which all keys share, or with it, which concern that account alone. Its edits
// are shared and must not be modified.
func (f *Facts) get(t recovery.Target) fact {
	if !f.board.Any(BoardFacts) {
		return fact{}
	}
	v, ok := f.board.Lookup(BoardFacts, f.names.Of(t))
	if !ok {
		return fact{}
	}
	r, known := f.read.Get(t)
	if !known || !bytes.Equal(r.value, v.Value) {
		r = reading{v.Value, decode(v.Value)}
		f.read.Put(t, r, 1)
	}
	return r.fact
}

// decode decodes a field; it returns the zero fact for an invalid one.
func decode(raw []byte) (v fact) {
	if json.Unmarshal(raw, &v) != nil {
		return fact{}
	}
	v.Edits = slices.DeleteFunc(v.Edits, func(e recovery.Edit) bool { return !e.Known() })
	v.Window = max(0, v.Window)
	if len(v.Origins) > maxEdits+2 {
		v.Origins = nil
	}
	maps.DeleteFunc(v.Origins, func(_ string, o origin) bool { return len(o.Request) > maxRequest })
	return v
}

// put stores a target's facts. All share one lifetime, so it leaves out what is older than that: otherwise a refused
// parameter would never be tried again at a target whose window is renewed.
func (f *Facts) put(t recovery.Target, v fact) {
	now, ttl := time.Now(), time.Duration(f.ttl.Load())
	v.drop(func(item string) bool {
		o, ok := v.Origins[item]
		return ok && item != itemWindow && now.Sub(time.Unix(o.At, 0)) >= ttl
	})
	f.post(f.names.Of(t), v, now.Add(ttl))
}

// post stores a fact under the name of its field, or removes the field if the fact is empty.
func (f *Facts) post(name string, v fact, until time.Time) {
	if len(v.Edits) == 0 && !v.Reasons && !v.Small {
		f.board.Remove(BoardFacts, name)
		return
	}
	raw, _ := json.Marshal(v) // texts and numbers
	f.board.Post(BoardFacts, store.Field{Name: name, Value: raw, Until: until}, false)
}

// Edits returns the edits that requests to this target need. They are shared and must not be modified.
func (f *Facts) Edits(t recovery.Target) []recovery.Edit {
	edits := f.get(t.Keyless()).Edits
	if t.Key == "" {
		return edits
	}
	if own := f.get(t).Edits; len(own) > 0 {
		return slices.Concat(edits, own)
	}
	return edits
}

// Learn implements recovery.Knowledge.
func (f *Facts) Learn(t recovery.Target, edits []recovery.Edit, request string) {
	v := f.get(t)
	v.Edits = slices.Clone(v.Edits)
	for _, e := range edits {
		i := slices.IndexFunc(v.Edits, e.Replaces)
		switch {
		case i >= 0 && e.Value != "" && v.Edits[i].Value == "": // the whole field is known to be refused
		case i >= 0:
			v.setOrigin(item(e), request, v.Edits[i] == e)
			v.Edits[i] = e
		case len(v.Edits) < maxEdits:
			v.setOrigin(item(e), request, false)
			v.Edits = append(v.Edits, e)
		}
	}
	f.put(t, v)
}

// Forget removes the edits of a target after it refused the edited request.
func (f *Facts) Forget(t recovery.Target) {
	for _, t := range [...]recovery.Target{t.Keyless(), t} {
		if v := f.get(t); len(v.Edits) > 0 {
			v.drop(func(item string) bool { return item != itemWindow && item != itemReasons })
			f.put(t, v)
		}
	}
}

// Reasons reports whether an answer of the target showed reasoning.
func (f *Facts) Reasons(t recovery.Target) bool { return f.get(t.Keyless()).Reasons }

// SawReasoning records that an answer of the target showed reasoning; request is the request's id.
func (f *Facts) SawReasoning(t recovery.Target, request string) {
	t = t.Keyless()
	if v := f.get(t); !v.Reasons {
		v.Reasons = true
		v.setOrigin(itemReasons, request, false)
		f.put(t, v)
	}
}

// Window returns the context window of a target in tokens: from its last refusal, or else from the upstream's
// model list; 0 if neither is known or if both have expired.
func (f *Facts) Window(t recovery.Target) int {
	if n := f.get(t.Keyless()).Window; n > 0 {
		return n
	}
	l, _ := f.listed.Get(t.Keyless())
	return l.tokens
}

// ListWindow records the window in an upstream's model list. A window from a refusal has priority.
func (f *Facts) ListWindow(t recovery.Target, tokens int) {
	f.listed.Put(t.Keyless(), listing{tokens, time.Now()}, 1)
}

// Overflowed reports whether the target recently refused a request as too long.
func (f *Facts) Overflowed(t recovery.Target) bool { return f.get(t.Keyless()).Small }

// LearnWindow records that the target refused a request as too long, and the window if it was stated; 0 keeps
// the known window. request is the request's id. A known fact is stored again after half of its lifetime.
func (f *Facts) LearnWindow(t recovery.Target, tokens int, request string) {
	t = t.Keyless()
	v := f.get(t)
	if tokens == 0 {
		tokens = v.Window
	}
	field, ok := f.board.Lookup(BoardFacts, f.names.Of(t))
	if ok && v.Small && v.Window == tokens && time.Until(field.Until) > time.Duration(f.ttl.Load())/2 {
		return
	}
	v.setOrigin(itemWindow, request, v.Small && v.Window == tokens)
	v.Window, v.Small = tokens, true
	f.put(t, v)
}

// Marks lists what was learned about targets: from the board, and from model lists.
func (f *Facts) Marks() (marks []recovery.Mark) {
	f.board.Each(BoardFacts, func(v store.Field) bool {
		renewed := v.Until.Add(-time.Duration(f.ttl.Load()))
		for _, m := range decode(v.Value).marks() {
			m.Target, m.Until = v.Name, v.Until
			if m.Since.IsZero() {
				m.Since = renewed // facts of older versions have no origin
			}
			marks = append(marks, m)
		}
		return true
	})
	f.listed.Each(func(t recovery.Target, l listing) bool {
		marks = append(marks, recovery.Mark{Target: t.String(), Kind: recovery.MarkWindow, Item: itemListed, Detail: windowOf(l.tokens),
			Evidence: "list of models", Since: l.at})
		return true
	})
	return marks
}

// itemListed is the item of a window from a model list.
const itemListed = "listed window"

// Clear removes what was learned about a target, by the target and item of a Mark; an empty item removes
// everything.
func (f *Facts) Clear(name, item string) {
	if item == "" || item == itemListed {
		f.listed.DeleteFunc(func(t recovery.Target, _ listing) bool { return t.String() == name })
	}
	if old, ok := f.board.Lookup(BoardFacts, name); ok {
		v := decode(old.Value)
		v.drop(func(i string) bool { return item == "" || i == item })
		f.post(name, v, old.Until)
	}
}

// drop removes items. It does not modify what v shares with others.
func (v *fact) drop(gone func(item string) bool) {
	v.Edits = slices.DeleteFunc(slices.Clone(v.Edits), func(e recovery.Edit) bool { return gone(item(e)) })
	if gone(itemReasons) {
		v.Reasons = false
	}
	if gone(itemWindow) {
		v.Window, v.Small = 0, false
	}
	v.Origins = maps.Clone(v.Origins)
	maps.DeleteFunc(v.Origins, func(item string, _ origin) bool { return gone(item) })
}

func windowOf(n int) string { return fmt.Sprintf("window of %d tokens", n) }

// marks describes what was learned, item by item.
func (v fact) marks() (marks []recovery.Mark) {
	add := func(kind recovery.MarkKind, item, detail, evidence string) {
		m := recovery.Mark{Kind: kind, Item: item, Detail: detail, Evidence: evidence}
		if o, ok := v.Origins[item]; ok {
			m.Since, m.Request = time.Unix(o.At, 0), o.Request
		}
		marks = append(marks, m)
	}
	for _, e := range v.Edits {
		add(recovery.MarkLearned, item(e), e.String(), "accepted so after a refusal")
	}
	switch {
	case v.Window > 0:
		add(recovery.MarkWindow, itemWindow, windowOf(v.Window), "its refusal says so")
	case v.Small:
		add(recovery.MarkWindow, itemWindow, "has refused a request as too long", "it did not say its window")
	}
	if v.Reasons {
		add(recovery.MarkLearned, itemReasons, "reasons in silence", "an answer reported reasoning tokens")
	}
	return marks
}
