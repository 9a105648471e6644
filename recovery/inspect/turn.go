package inspect

import (
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
	"fmt"
	"slices"
	"strings"

	"github.com/rebound-llm/rebound/recovery"
	"github.com/rebound-llm/rebound/recovery/rule"
	"github.com/rebound-llm/rebound/recovery/trajectory"
	"github.com/rebound-llm/rebound/recovery/transcript"
)

// lookBack bounds how many turns of a history are looked at, and maxJudged how
// many different results of those before the last one are judged.
const (
	lookBack  = 60
	maxJudged = 200
)

// Sizes of what a history keeps for the next body: steps without a further
// allocation, bytes of decoded text, and lines.
const (
	roomSteps  = 16
	maxScratch = 256 << 10
	maxLines   = 512
)

// Position says where a history stands whose last turn failed: which turn that
// is, what it failed in, and what came before. It is the zero Turn where a tool
// succeeded, or no results are new. At most the last 60 turns are looked at.
func (r *Rules) Position(b *transcript.Body) recovery.Turn {
	l, _ := r.get()
	return l.readHistory(b).position()
}

// history is the last turns of a conversation. What costs time is read when it
// is needed, once. A history may be used for one body after the other.
type history struct {
	trajectory.History
	rules   *lists
	turns   []turn // oldest first
	ordinal int    // of the last turn, from 1
	persons []person
	peopled bool                  // persons are there
	judged  int                   // results that nobody remembered
	steps   []step                // room for turns' steps
	results []recovery.ToolResult // scratch of load
	text    []byte                // scratch of content
	view    view                  // of the result that is read
	hits    rule.Hits             // scratch of the view
}

// turn is one turn of the model.
type turn struct {
	trajectory.Turn
	steps  []step
	loaded bool

	recalled bool       // name and past are there
	name     secretName // in the memory
	past     past
}

// step is a call with its result.
type step struct {
	recovery.ToolResult
	history *history
	turn    int  // number of its turn
	whole   bool // Content is there
	made    trajectory.Call
	verdict recovery.ToolFailure
	judged  bool
	said    essence
	opened  bool   // said is there
	hash    uint64 // what outcome says, 0 until it is needed
}

// person is a message that a person wrote, or a client in a person's place.
type person struct {
	index int
	words uint64 // hash of what it says, 0 until it is needed
}

func (l *lists) readHistory(b *transcript.Body) *history {
	h := &history{rules: l}
	h.begin(b)
	return h
}

// begin divides a conversation into turns.
func (h *history) begin(b *transcript.Body) {
	h.Begin(b)
	t, ok := trajectory.TurnBefore(h.List, len(h.List))
	for ; ok; t, ok = trajectory.TurnBefore(h.List, t.Start) {
		if h.ordinal++; len(h.turns) < lookBack {
			if cap(h.turns) == 0 {
				h.turns = make([]turn, 0, lookBack)
			}
			h.turns = append(h.turns, turn{Turn: t})
		}
	}
	slices.Reverse(h.turns)
}

// forget makes the history ready for another body.
func (h *history) forget() {
	clear(h.turns)
	clear(h.steps)
	clear(h.results[:cap(h.results)])
	h.Begin(nil)
	text, lines := h.text[:0], h.view.room[:0]
	if cap(text) > maxScratch {
		text = nil
	}
	if cap(lines) > maxLines {
		lines = nil
	}
	clear(lines[:cap(lines)])
	*h = history{History: h.History, turns: h.turns[:0], persons: h.persons[:0], steps: h.steps[:0], results: h.results[:0], text: text, view: view{room: lines}, hits: h.hits[:0]}
}

// last is the turn that the history ends with, nil without one.
func (h *history) last() *turn {
	if len(h.turns) == 0 {
		return nil
	}
	return h.load(len(h.turns) - 1)
}

// load reads the results of turn k.
func (h *history) load(k int) *turn {
	t := &h.turns[k]
	if t.loaded {
		return t
	}
	t.loaded = true
	h.results = h.AppendResults(h.results[:0], t.Turn)
	t.steps = h.room(len(h.results))
	for i := range h.results {
		res := &h.results[i]
		t.steps[i] = step{ToolResult: *res, history: h, turn: k, whole: h.List[res.Index].Role != transcript.RoleTool,
			made: trajectory.Call{Tool: res.Tool, Arguments: res.Arguments}}
	}
	return t
}

// room is n steps, which stay where they are.
func (h *history) room(n int) []step {
	from := len(h.steps)
	if from+n > cap(h.steps) {
		h.steps, from = make([]step, 0, max(n, roomSteps)), 0
	}
	h.steps = h.steps[:from+n]
	return h.steps[from : from+n : from+n]
}

// content decodes what the tool answered.
func (s *step) content() string {
	if !s.whole {
		h := s.history
		h.text = h.List[s.Index].AppendText(h.text[:0])
		s.Content, s.whole = string(h.text), true
	}
	return s.Content
}

// open takes the result's wrappers off and keeps its essence. The view is the history's:
// it holds until the next result is opened.
func (s *step) open() *view {
	content, v := s.content(), &s.history.view
	v.rules, v.hits = s.history.rules, &s.history.hits
	v.open(&s.made, content)
	s.said.text, s.opened = strings.TrimSpace(v.text), true
	if n := len(content); n > headWindow+tailWindow {
		s.said.middle = content[headWindow : n-tailWindow]
	}
	return v
}

// judge is Judge, once.
func (s *step) judge() *recovery.ToolFailure {
	if !s.judged {
		s.history.judge(s.turn)
	}
	return &s.verdict
}

// findPersons lists the messages that a person wrote: those of users that are
// no observation. In text protocols nobody looks at observations further back
// than the turns.
func (h *history) findPersons() []person {
	if h.peopled {
		return h.persons
	}
	h.peopled = true
	k := 0
	for i, m := range h.List {
		if m.Role != transcript.RoleUser {
			continue
		}
		if i > 0 && h.List[i-1].Role == transcript.RoleAssistant && h.Textual() {
			for k < len(h.turns) && h.turns[k].Answered < i {
				k++
			}
			if k == len(h.turns) || h.turns[k].Answered != i {
				continue
			}
			if t := h.load(k); len(t.steps) > 0 && t.steps[0].Index == i {
				continue
			}
		}
		h.persons = append(h.persons, person{index: i})
	}
	return h.persons
}

// words is a hash of what the person's message says, never 0.
func (h *history) words(p *person) uint64 {
	if p.words == 0 {
		m := h.List[p.index]
		p.words = trajectory.Hash(m.Text(), string(m.AppendMedia(nil)))
	}
	return p.words
}

// userBefore is the hash of the person's last message before message i, 0 without one.
func (h *history) userBefore(i int) uint64 {
	list := h.findPersons()
	n, _ := slices.BinarySearchFunc(list, i, func(p person, i int) int { return p.index - i })
	if n == 0 {
		return 0
	}
	return h.words(&list[n-1])
}

// spoken reports whether a person said something new after turn k: any message
// after a turn without calls, and after others one that does not repeat the
// message before it word for word, as reminders do that clients add by themselves.
func (h *history) spoken(k int) bool {
	list, t := h.findPersons(), &h.turns[k]
	n, _ := slices.BinarySearchFunc(list, t.Answered, func(p person, i int) int { return p.index - i })
	for ; n < len(list) && list[n].index < t.End; n++ {
		if len(h.load(k).steps) == 0 || n == 0 || h.words(&list[n]) != h.words(&list[n-1]) {
			return true
		}
	}
	return false
}

func (h *history) position() (p recovery.Turn) {
	t, n := h.last(), len(h.turns)-1
	if t == nil || len(t.steps) == 0 || len(t.steps) > maxParallel {
		return p
	}
	failure := t.failure()
	if failure == nil && (n == 0 || h.spoken(n-1) || !h.repeats(n-1, n)) {
		return p
	}
	p.User = h.userBefore(len(h.List))
	if p.Waits = t.waits(); p.Waits {
		p.Slot, p.Key = h.slot(t), t.key()
		p.Streak = h.streak(t.key(), p.User)
		if n > 0 {
			p.Before = h.slot(&h.turns[n-1])
		}
		return p
	}
	if failure == nil {
		return recovery.Turn{}
	}
	p.Failure, p.Slot, p.Key, p.Success = failure, h.slot(t), t.key(), h.lastSuccess()
	p.Streak, p.Seen = h.streak(p.Key, p.User), h.seen(failure)
	return p
}

// key is a hash of what the turn did and what came of it, the same in every
// process: equal for turns of which one repeats the other.
func (t *turn) key() uint64 {
	prints := make([]uint64, len(t.steps))
	for i := range t.steps {
		s := &t.steps[i]
		prints[i] = trajectory.Hash(s.Tool, s.made.Key(), fmt.Sprint(s.outcome()))
	}
	return combined("", prints)
}

// slot names a turn by its bytes and its place.
func (h *history) slot(t *turn) string {
	ordinal := h.ordinal
	for k := len(h.turns) - 1; &h.turns[k] != t; k-- {
		ordinal--
	}
	sum := sha256.New()
	for _, m := range h.List[t.Start:t.Answered] {
		_, _ = sum.Write(m.Raw())
	}
	_, _ = sum.Write(binary.BigEndian.AppendUint64(nil, uint64(ordinal)))
	return hex.EncodeToString(sum.Sum(nil)[:16])
}

// verdicts are what is said of the turn's results.
func (t *turn) verdicts() []recovery.ToolFailure {
	out := make([]recovery.ToolFailure, len(t.steps))
	for i := range t.steps {
		out[i] = *t.steps[i].judge()
	}
	return out
}

// failure is what the turn failed in, nil if any result is a success or there is
// none. Several different failures are one with a fingerprint of its own.
func (t *turn) failure() *recovery.ToolFailure {
	var first *recovery.ToolFailure
	var prints []uint64
	for i := range t.steps {
		f := t.steps[i].judge()
		if !f.Failed {
			return nil
		}
		if first == nil || first.Category == recovery.CategoryNone && f.Category != recovery.CategoryNone {
			first = f
		}
		prints = append(prints, f.Fingerprint)
	}
	if first == nil {
		return nil
	}
	out := *first
	if slices.Sort(prints); prints[0] != prints[len(prints)-1] {
		out.Fingerprint = combined("", prints)
	}
	return &out
}

// lastSuccess marks the last successful result.
func (h *history) lastSuccess() uint64 {
	for k := len(h.turns) - 1; k >= 0; k-- {
		t := h.load(k)
		for i := len(t.steps) - 1; i >= 0; i-- {
			if s := &t.steps[i]; !s.judge().Failed {
				return trajectory.Hash(s.CallID, s.Tool, s.Arguments, s.content())
			}
		}
	}
	return 0
}

// streak counts the turns in a row at the end that have this key, between which
// the person said nothing new.
func (h *history) streak(key, user uint64) (n int) {
	for k := len(h.turns) - 1; k >= 0 && h.userBefore(h.turns[k].Start) == user; k-- {
		t := h.load(k)
		if len(t.steps) == 0 {
			continue // it only talked
		}
		if len(t.steps) > maxParallel || t.key() != key {
			break
		}
		n++
	}
	return max(n, 1)
}

// seen counts the turns that ended in a failure like f: the same line but for its numbers.
func (h *history) seen(f *recovery.ToolFailure) int {
	probe, n := []byte(probeOf(f.Line)), 1
	for k := len(h.turns) - 2; k >= 0; k-- {
		t := &h.turns[k]
		if t.Answered == t.End || !t.loaded && !h.mentions(t, probe) {
			continue
		}
		if h.load(k); len(t.steps) == 0 {
			continue
		}
		if g := t.failure(); g != nil && g.Fingerprint == f.Fingerprint {
			n++
		}
	}
	return n
}

// mentions reports whether the bytes of what followed the turn contain the probe.
func (h *history) mentions(t *turn, probe []byte) bool {
	return contains(h.Body.Raw()[h.List[t.Answered].Start:h.List[t.End-1].End], probe)
}

// probeOf is a word of an error that any repetition of the error has: the
// longest that normalising leaves in. It is empty without one.
func probeOf(line string) string {
	kept, best := normalise(line), ""
	for _, w := range strings.FieldsFunc(line[:min(len(line), maxFingerprint)], func(r rune) bool { return r|0x20 < 'a' || r|0x20 > 'z' }) {
		if len(w) > max(3, len(best)) && strings.Contains(kept, strings.ToLower(w)) {
			best = w
		}
	}
	return best
}
