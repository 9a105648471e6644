package inspect

import (
	"slices"
	"strings"

	"github.com/rebound-llm/rebound/recovery"
	"github.com/rebound-llm/rebound/recovery/trajectory"
	"github.com/rebound-llm/rebound/recovery/transcript"
)

// lookBack limits how many turns of a history are inspected.
const lookBack = 60

// history is the last turns of a conversation. It reads expensive parts lazily, once.
type history struct {
	*trajectory.History
	rules     *lists
	turns     []turn // oldest first
	ordinal   int    // number of the last turn, from 1
	users     []userMessage
	usersRead bool // users is set
	judged    int  // results that were judged because they were not cached
}

// turn is one turn of the model.
type turn struct {
	trajectory.Turn
	steps   []step
	loaded  bool
	summary *summary // nil if not computed
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

// readHistory splits a conversation into turns.
func (l *lists) readHistory(b *transcript.Body) *history {
	h := &history{History: trajectory.NewHistory(b), rules: l, turns: make([]turn, 0, lookBack)}
	t, ok := trajectory.TurnBefore(h.List, len(h.List))
	for ; ok; t, ok = trajectory.TurnBefore(h.List, t.Start) {
		if h.ordinal++; len(h.turns) < lookBack {
			h.turns = append(h.turns, turn{Turn: t})
		}
	}
	slices.Reverse(h.turns)
	return h
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
	results := h.AppendResults(nil, t.Turn)
	t.steps = make([]step, len(results))
	for i, res := range results {
		t.steps[i] = step{ToolResult: res, history: h, turn: k, place: i, decoded: h.List[res.Index].Role != transcript.RoleTool,
			call: trajectory.Call{Tool: res.Tool, Arguments: res.Arguments}}
	}
	return t
}

// content decodes the result's text.
func (s *step) content() string {
	if !s.decoded {
		s.Content, s.decoded = s.history.List[s.Index].Text(), true
	}
	return s.Content
}

// open removes the result's wrappers and stores its essence.
func (s *step) open() *view {
	content := s.content()
	v := s.history.rules.open(&s.call, content, s.Failed)
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
