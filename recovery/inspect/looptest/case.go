package looptest

import (
	"fmt"
	"math/rand/v2"
	"time"
)

// The kinds of planted loops, by the product's names.
const (
	SameError   = "same_error"
	SameResult  = "same_result"
	Alternation = "alternation"
	Monologue   = "monologue"
	NoProgress  = "no_progress"
	Cycle       = "cycle"
	Counter     = "counter"
)

// Case is one session of an agent, request by request.
type Case struct {
	Name   string   // of the scenario, with the number, for test messages
	Kind   string   // of the planted loop; empty for a healthy session
	Why    string   // the reason for the label
	Bodies [][]byte // request bodies; each history begins with the messages of the one before

	// From is the index of the first body at which a detector may report: the loop's call, pair or text occurs for the
	// second time. By is the index at which it must have reported: the third time. For no_progress they are the 6th and
	// the 12th step without anything new, for a counter the 3rd and the 4th time that the same result came. Until is the
	// last body that ends with the loop; after it the agent does something new. All are -1 in a healthy session.
	From, By, Until int
}

// At makes the i-th case of a seed, of about 220 KB. Even cases are healthy; scenarios alternate.
func At(seed uint64, i int) Case { return at(seed, i, healthy, planted) }

// RoundsAt is At for loops of several different calls and of calls in which only a number grows, and for their
// look-alikes.
func RoundsAt(seed uint64, i int) Case { return at(seed, i, healthyRounds, plantedRounds) }

func at(seed uint64, i int, healthy, planted []scenario) Case {
	list := healthy
	if i%2 == 1 {
		list = planted
	}
	sc := list[(uint64(i/2)+seed)%uint64(len(list))]
	s := newSession(rand.New(rand.NewPCG(seed, uint64(i))), sc.form)
	s.work(s.IntN(31))
	if sc.kind != "" && s.chance(0.3) { // a look-alike before the real loop
		s.lookalike()
		s.work(2)
	}
	sc.add(s)
	s.work(s.IntN(4))
	c := Case{Name: fmt.Sprintf("%s/%d-%d", sc.name, seed, i), Kind: sc.kind, Why: sc.why, Bodies: s.bodies(), From: -1, By: -1, Until: -1}
	if sc.kind != "" {
		c.From, c.By, c.Until = s.seen[0], s.seen[1], s.seen[2]
	}
	return c
}

// scenario is one course of a session.
type scenario struct {
	name, kind, why string
	form            form
	plan            func(*session) // nil uses the script
	script          string
}

// add adds the scenario's turns to a session.
func (sc *scenario) add(s *session) {
	if sc.plan == nil {
		s.play(sc.script, sc.kind)
		return
	}
	sc.plan(s)
}

// form is a scenario's requirement on the protocol.
type form uint8

const (
	anyForm   form = iota
	callsOnly      // needs tool calls, for example parallel ones
)

// turn is an answer of the model with its results.
type turn struct {
	text  string // of the assistant; may be empty if there are calls
	calls []op
	res   []result // one per call
	reply string   // of the user; required without calls
}

// result is a tool's result. The code is the exit code, or any number but 0 for a tool that failed.
type result struct {
	out  string
	code int
}

// session is a case in preparation.
type session struct {
	gen
	style style
	task  string
	turns []turn
	seen  [3]int // the bodies From, By and Until
}

func newSession(r *rand.Rand, f form) *session {
	s := &session{gen: gen{Rand: r, used: map[string]bool{}, clock: time.Date(2025, 1, 1, 0, 0, 0, 0, time.UTC)}}
	s.clock = s.clock.Add(time.Duration(r.IntN(600*24*3600)) * time.Second)
	s.style = s.newStyle(f)
	s.task = s.pick("Fix the failing tests of ", "Add retries to ", "Find out why the service is slow; start with ", "Please refactor ",
		"Port the old client to the new interface in ", "The build is broken since yesterday, look at ") + s.path() + "." +
		s.pick("", " Keep the public interface as it is.", " Run the tests before you finish.")
	return s
}

// add appends a turn with one call.
func (s *session) add(text string, o op, r result) { s.turn(turn{text, []op{o}, []result{r}, ""}) }

// talk appends a turn without a call.
func (s *session) talk(text, reply string) { s.turn(turn{text: text, reply: reply}) }

func (s *session) turn(t turn) {
	s.turns = append(s.turns, t)
	s.clock = s.clock.Add(time.Duration(2+s.IntN(40)) * time.Second)
}

// occurrence records the n-th occurrence of the loop.
func (s *session) occurrence(n int) {
	at := len(s.turns)
	switch n {
	case 2:
		s.seen[0] = at
	case 3:
		s.seen[1] = at
	}
	s.seen[2] = at
}
