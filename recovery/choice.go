package recovery

import (
	"crypto/sha256"
	"encoding/hex"
	"time"
)

// Question asks which strategy a note proposes first, or whether to give no note.
type Question struct {
	Session, Model string
	Key            string   // client whose outcomes count first: a gateway key's name, else a hash of the client's credential
	Task           Task     // what the agent is doing
	Chain          string   // name of the recovery chain, the result of LoopChain, or Unexplained
	Tool           string   // name of the tool, empty for none
	Line           string   // line of the tool's result that shows the failure
	Fingerprint    uint64   // of the failure; 0 without one
	At             int      // index of the failed result, or of the turn's last result
	Strategies     []string // at least one, in the order of the chain
}

// Unexplained is the chain's name for a stuck agent whose failure no chain explains. For loops see
// LoopChain.
const Unexplained = "unexplained"

// Hint is the strategy of a note that only names the repetition and what usually helps.
const Hint = "hint"

// LoopChain returns the chain's name for a loop.
func LoopChain(k LoopKind) string { return "loop_" + string(k) }

// LearnedLoops returns the kinds of loops whose outcome can be observed: those of agents that
// call tools.
func LearnedLoops() []LoopKind {
	return []LoopKind{LoopSameError, LoopSameResult, LoopAlternation, LoopCycle, LoopCounter, LoopNoProgress}
}

// About returns the question for a note about a failure.
func (x *Exchange) About(chain string, f *ToolFailure) Question {
	return Question{Session: x.Session, Model: x.Model, Key: x.Learner(), Task: x.Progress.Task, Chain: chain, Tool: f.Tool,
		Line: f.Line, Fingerprint: f.Fingerprint, At: f.Index}
}

// Learner returns the name of the client whose outcomes this exchange adds to, empty for none. The client's own
// credential is hashed; the hash cannot be reversed, since such credentials are random and long.
func (x *Exchange) Learner() string {
	if x.Key != "" || x.Secret == "" {
		return x.Key
	}
	sum := sha256.Sum256([]byte("rebound learn v1\x00" + x.Secret))
	return "~" + hex.EncodeToString(sum[:8])
}

// Stuck returns the question for a note to an agent that is in a loop (nil for none), or whose failure no chain explains,
// or that makes no progress.
func (x *Exchange) Stuck(l *Loop) Question {
	chain := LoopChain(LoopNoProgress)
	if l != nil {
		chain = LoopChain(l.Kind)
	} else if x.Turn.Failure != nil {
		chain = Unexplained
	}
	if f := x.FirstFailed(); f != nil && x.Turn.Failure != nil {
		return x.About(chain, f)
	}
	var last ToolFailure
	for _, r := range x.Results {
		if r.Index >= last.Index {
			last = ToolFailure{Tool: r.Tool, Index: r.Index}
		}
	}
	return x.About(chain, &last)
}

// Preference answers a Question.
type Preference struct {
	Strategies []string // the most promising first; strategies that are not listed come last
	Withhold   bool     // agents do as well or better without a note
	Template   string   // the line reduced to public words
}

// After describes what happened after a tool's failure, or after a turn without one. It is read from the history of a
// later request.
type After struct {
	Session     string
	Fingerprint uint64 // of the failure; 0 for a turn without one
	At          int    // index of the failed result, or of the turn's last result
	Calls       int    // number of turns with calls since, one or two
	Target      bool   // a call achieved what the failed one was for, or something new succeeded
	Again       bool   // the program or tool that failed succeeded at something
	Same        bool   // the same failure occurred again, or the calls returned nothing new
	Some        bool   // something else succeeded
	Person      bool   // a person wrote while the agent worked
	Stopped     bool   // the model made no further call
}

// Learned summarises what is known about notes and their outcomes.
type Learned struct {
	Mode         string           `json:"mode"`
	Observations int              `json:"observations"` // number of known outcomes
	Refused      int              `json:"refused"`      // invalid entries
	Open         int              `json:"open"`         // notes whose outcome is not known yet
	Lost         int              `json:"lost"`         // notes whose outcome was not tracked, since there were too many at once
	Cells        []LearnedCell    `json:"cells"`
	Patterns     []LearnedPattern `json:"patterns"`
	Wishes       []Wish           `json:"wishes,omitempty"` // if strategies.remember is on
}

// Wish lists what the users of a client forbade in earlier sessions.
type Wish struct {
	Key      string    `json:"key"`       // a gateway key's name, or a hash of the client's credential
	RuledOut []string  `json:"ruled_out"` // names of deeds
	Until    time.Time `json:"until"`
}

// LearnedCell is what is known about one chain and model.
type LearnedCell struct {
	Key      string       `json:"key"` // the client with these outcomes
	Chain    string       `json:"chain"`
	Model    string       `json:"model"`
	Decision string       `json:"decision"` // chain (the order of the chain), learned (the order of the arms), or observe (no notes)
	Censored int          `json:"censored"`
	Arms     []LearnedArm `json:"arms"` // the most promising first, then without a note
	// Net is the change of the success rate by the best note, with a 95 % interval.
	Net float64    `json:"net"`
	CI  [2]float64 `json:"net_interval"`
}

// LearnedArm is what is known about one strategy; an empty name means no note.
type LearnedArm struct {
	Strategy     string     `json:"strategy"`
	Observations int        `json:"observations"`
	Rate         float64    `json:"rate"` // estimated rate of success
	CI           [2]float64 `json:"interval"`
}

// LearnedPattern is a pattern of messages with the outcomes of one strategy.
type LearnedPattern struct {
	Key          string  `json:"key"` // as in LearnedCell
	Chain        string  `json:"chain"`
	Template     string  `json:"template"` // empty for a loop in which nothing failed
	Model        string  `json:"model"`
	Strategy     string  `json:"strategy"`
	Observations int     `json:"observations"`
	Rate         float64 `json:"rate"`
	Lower        float64 `json:"lower"` // bound of the rate's 95 % interval
}
