package recovery

import (
	"crypto/sha256"
	"encoding/hex"
	"time"
)

// Question is what a note has to decide: which of the strategies that this
// conversation can follow goes first, or whether to say nothing.
type Question struct {
	Session, Model string
	Key            string   // whose experience counts first: a gateway key's name, else a hash of the client's credential
	Task           Task     // what the agent is at
	Chain          string   // name of the recovery chain, or what the agent is stuck in
	Tool           string   // name of the tool, empty for none
	Line           string   // that the failure was decided on: what a tool printed
	Fingerprint    uint64   // of the failure; 0 where nothing failed
	At             int      // index of the result that the failure is, or of the turn's last one
	Strategies     []string // at least one, in the order of the chain
}

// Unexplained is what an agent is stuck in whose failure no chain explains. Loops have
// the names of LoopChain.
const Unexplained = "unexplained"

// Hint is the strategy of a note that only says what is repeated and what usually helps.
const Hint = "hint"

// LoopChain is what an agent that repeats itself is stuck in.
func LoopChain(k LoopKind) string { return "loop_" + string(k) }

// LearnedLoops are the kinds of loops of which it is known what followed: those of
// agents that call tools.
func LearnedLoops() []LoopKind {
	return []LoopKind{LoopSameError, LoopSameResult, LoopAlternation, LoopCycle, LoopCounter, LoopNoProgress}
}

// About is the question of a note about a failure.
func (x *Exchange) About(chain string, f *ToolFailure) Question {
	return Question{Session: x.Session, Model: x.Model, Key: x.Learner(), Task: x.Progress.Task, Chain: chain, Tool: f.Tool,
		Line: f.Line, Fingerprint: f.Fingerprint, At: f.Index}
}

// Learner names who is learned from, empty for nobody. A credential of the client's own is named by a hash
// that cannot be turned back: such credentials are random and long.
func (x *Exchange) Learner() string {
	if x.Key != "" || x.Secret == "" {
		return x.Key
	}
	sum := sha256.Sum256([]byte("rebound learn v1\x00" + x.Secret))
	return "~" + hex.EncodeToString(sum[:8])
}

// Stuck is the question of a note for an agent that repeats itself, nil for none, or
// whose turn failed in a way that no chain explains, or gets nowhere.
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

// Preference is the answer.
type Preference struct {
	Strategies []string // the most promising first; what it does not name comes last
	Withhold   bool     // the agent is believed to do better, or as well, without a note
	Template   string   // what the line says in public words
}

// After is what the calls after a tool's failure, or after a turn in which nothing
// failed, brought, as the history of a later request shows.
type After struct {
	Session     string
	Fingerprint uint64 // of the failure; 0 of a turn without one
	At          int    // index of the result that it is, or of the turn's last one
	Calls       int    // turns of the model with calls since, one or two
	Target      bool   // what the failed call was for succeeded; or something new did
	Again       bool   // the program or tool that failed succeeded, at whatever
	Same        bool   // the same failure came again; or calls that brought nothing new
	Some        bool   // something else succeeded
	Person      bool   // a person spoke while the agent was at work
	Stopped     bool   // the model made no further call
}

// Learned is what is known of interventions.
type Learned struct {
	Mode         string           `json:"mode"`
	Observations int              `json:"observations"` // that are known
	Refused      int              `json:"refused"`      // entries that are none
	Open         int              `json:"open"`         // interventions whose outcome is not known yet
	Lost         int              `json:"lost"`         // that could not be followed: too many at once
	Cells        []LearnedCell    `json:"cells"`
	Patterns     []LearnedPattern `json:"patterns"`
	Wishes       []Wish           `json:"wishes,omitempty"` // where strategies.remember is on
}

// Wish is what the persons of a client ruled out in earlier sessions.
type Wish struct {
	Key      string    `json:"key"`       // a gateway key's name, or a hash of the client's credential
	RuledOut []string  `json:"ruled_out"` // names of deeds
	Until    time.Time `json:"until"`
}

// LearnedCell is what is known of one chain and model.
type LearnedCell struct {
	Key      string       `json:"key"` // whose outcomes these are; * is those of all keys together
	Chain    string       `json:"chain"`
	Model    string       `json:"model"`
	Decision string       `json:"decision"` // what is done: chain (as before), learned, or observe (no notes)
	Censored int          `json:"censored"`
	Arms     []LearnedArm `json:"arms"` // the most promising first, then without a note
	// Net is what the best note changes in the agent's success, with a 95 % interval.
	Net float64    `json:"net"`
	CI  [2]float64 `json:"net_interval"`
}

// LearnedArm is what is known of one strategy; without a name of no note.
type LearnedArm struct {
	Strategy     string     `json:"strategy"`
	Observations int        `json:"observations"`
	Rate         float64    `json:"rate"` // of success, as believed
	CI           [2]float64 `json:"interval"`
}

// LearnedPattern is a message's pattern with what one strategy brought there.
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
