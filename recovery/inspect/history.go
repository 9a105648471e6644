package inspect

import (
	"slices"
	"strings"

	"github.com/rebound-llm/rebound/recovery"
	"github.com/rebound-llm/rebound/recovery/rule"
	"github.com/rebound-llm/rebound/recovery/trajectory"
	"github.com/rebound-llm/rebound/recovery/transcript"
)

// lookBack limits how many turns of a history are inspected.
const lookBack = 60

// Sizes of the buffers that a history keeps for the next body: steps per allocation, bytes of decoded text, and
// lines.
const (
	roomSteps  = 16
	maxScratch = 256 << 10
	maxLines   = 512
)

// history is the last turns of a conversation. It reads expensive parts lazily, once. A history can be reused
// for another body.
type history struct {
	trajectory.History
	rules     *lists
	turns     []turn // oldest first
	ordinal   int    // number of the last turn, from 1
	users     []userMessage
	usersRead bool                  // users is set
	judged    int                   // results that were judged because they were not cached
	steps     []step                // storage for the turns' steps
	results   []recovery.ToolResult // buffer of load
	text      []byte                // buffer of content
	view      view                  // of the opened result
	hits      rule.Hits             // buffer of the view
}

// turn is one turn of the model.
type turn struct {
	trajectory.Turn
	steps    []step
	loaded   bool
	cached   summary
	isCached bool // cached is set
}

// step is a call with its result.
type step struct {
	recovery.ToolResult
	history  *history
	turn     int  // index of its turn
	place    int  // index in the turn
	decoded  bool // Content is set
	call     trajectory.Call
	verdict  recovery.ToolFailure
	judged   bool
	parsed   essence
	isParsed bool   // parsed is set
	hash     uint64 // cached result of outcome, 0 if not computed
}

func (l *lists) readHistory(b *transcript.Body) *history {
	h := new(history)
	h.begin(b, l)
	return h
}

// begin splits a conversation into turns.
func (h *history) begin(b *transcript.Body, l *lists) {
	h.rules = l
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

// forget prepares the history for another body.
func (h *history) forget() {
	clear(h.turns)
	clear(h.steps)
	clear(h.results[:cap(h.results)])
	h.Begin(nil)
	text, lines := h.text[:0], h.view.lineBuffer[:0]
	if cap(text) > maxScratch {
		text = nil
	}
	if cap(lines) > maxLines {
		lines = nil
	}
	clear(lines[:cap(lines)])
	*h = history{History: h.History, turns: h.turns[:0], users: h.users[:0], steps: h.steps[:0], results: h.results[:0], text: text, view: view{lineBuffer: lines}, hits: h.hits[:0]}
}

// last returns the last turn, or nil.
func (h *history) last() *turn {
	if len(h.turns) == 0 {
		return nil
	}
	return h.load(len(h.turns) - 1)
}

// load reads the calls of turn k and the results that answer them.
func (h *history) load(k int) *turn {
	t := &h.turns[k]
	if t.loaded {
		return t
	}
	t.loaded = true
	h.results = h.AppendResults(h.results[:0], t.Turn)
	t.steps = h.newSteps(len(h.results))
	for i, res := range h.results {
		t.steps[i] = step{ToolResult: res, history: h, turn: k, place: i, decoded: h.List[res.Index].Role != transcript.RoleTool,
			call: trajectory.Call{Tool: res.Tool, Arguments: res.Arguments}}
	}
	return t
}

// newSteps returns n steps at stable addresses.
func (h *history) newSteps(n int) []step {
	from := len(h.steps)
	if from+n > cap(h.steps) {
		h.steps, from = make([]step, 0, max(n, roomSteps)), 0
	}
	h.steps = h.steps[:from+n]
	return h.steps[from : from+n : from+n]
}

// content decodes the result's text.
func (s *step) content() string {
	if !s.decoded {
		h := s.history
		h.text = h.List[s.Index].AppendText(h.text[:0])
		s.Content, s.decoded = string(h.text), true
	}
	return s.Content
}

// open removes the result's wrappers and stores its essence. The view belongs to the history and is valid until
// the next result is opened.
func (s *step) open() *view {
	content, v := s.content(), &s.history.view
	v.rules, v.hits = s.history.rules, &s.history.hits
	v.open(&s.call, content, s.Failed)
	s.parsed, s.isParsed = essence{text: strings.TrimSpace(v.text), media: string(s.history.List[s.Index].AppendMedia(nil))}, true
	if n := len(content); n > headWindow+tailWindow {
		s.parsed.middle = content[headWindow : n-tailWindow]
	}
	return v
}

// judge returns the verdict of Judge, computed once.
func (s *step) judge() *recovery.ToolFailure {
	if !s.judged {
		if p := s.history.summary(s.turn); !s.judged {
			s.judged, s.verdict = true, p.steps[s.place].verdict
			s.verdict.Index, s.verdict.CallID, s.verdict.Tool, s.verdict.Arguments = s.Index, s.CallID, s.Tool, s.Arguments
		}
	}
	return &s.verdict
}
