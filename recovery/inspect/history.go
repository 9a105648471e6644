package inspect

import (
	"slices"
	"strings"

	"github.com/rebound-llm/rebound/recovery"
	"github.com/rebound-llm/rebound/recovery/rule"
	"github.com/rebound-llm/rebound/recovery/trajectory"
	"github.com/rebound-llm/rebound/recovery/transcript"
)

// lookBack bounds how many turns of a history are looked at.
const lookBack = 60

// Sizes of what a history keeps for the next body: steps without a further
// allocation, bytes of decoded text, and lines.
const (
	roomSteps  = 16
	maxScratch = 256 << 10
	maxLines   = 512
)

// history is the last turns of a conversation. What costs time is read when it
// is needed, once. A history may be used for one body after the other.
type history struct {
	trajectory.History
	rules   *lists
	turns   []turn // oldest first
	ordinal int    // of the last turn, from 1
	persons []personMessage
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
	past   summary
	known  bool // past is there
}

// step is a call with its result.
type step struct {
	recovery.ToolResult
	history *history
	turn    int  // number of its turn
	place   int  // in the turn
	whole   bool // Content is there
	made    trajectory.Call
	verdict recovery.ToolFailure
	judged  bool
	said    essence
	opened  bool   // said is there
	hash    uint64 // what outcome says, 0 until it is needed
}

func (l *lists) readHistory(b *transcript.Body) *history {
	h := new(history)
	h.begin(b, l)
	return h
}

// begin divides a conversation into turns.
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

// load reads the calls of turn k and which results answer them.
func (h *history) load(k int) *turn {
	t := &h.turns[k]
	if t.loaded {
		return t
	}
	t.loaded = true
	h.results = h.AppendResults(h.results[:0], t.Turn)
	t.steps = h.room(len(h.results))
	for i, res := range h.results {
		t.steps[i] = step{ToolResult: res, history: h, turn: k, place: i, whole: h.List[res.Index].Role != transcript.RoleTool,
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
	v.open(&s.made, content, s.Failed)
	s.said, s.opened = essence{text: strings.TrimSpace(v.text), media: string(s.history.List[s.Index].AppendMedia(nil))}, true
	if n := len(content); n > headWindow+tailWindow {
		s.said.middle = content[headWindow : n-tailWindow]
	}
	return v
}

// judge is Judge, once.
func (s *step) judge() *recovery.ToolFailure {
	if !s.judged {
		if p := s.history.summary(s.turn); !s.judged {
			s.judged, s.verdict = true, p.steps[s.place].verdict
			s.verdict.Index, s.verdict.CallID, s.verdict.Tool, s.verdict.Arguments = s.Index, s.CallID, s.Tool, s.Arguments
		}
	}
	return &s.verdict
}
