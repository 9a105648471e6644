package recovery

import "time"

// Target is where an attempt goes: the key of breakers, cool-downs and
// metrics. It is comparable and holds no secret: Key is a label.
type Target struct {
	Upstream string
	Model    string
	Key      string
}

// String renders the target as upstream/model, with the key's label if there is one.
func (t Target) String() string {
	s := t.Upstream + "/" + t.Model
	if t.Key != "" {
		s += "#" + t.Key
	}
	return s
}

// Keyless is the target without its key: what holds for the model holds for all keys.
func (t Target) Keyless() Target {
	t.Key = ""
	return t
}

// Mark is one thing that is kept of a target, for operators to see and to clear.
type Mark struct {
	Target   string    `json:"target"` // as Target.String says it
	Kind     MarkKind  `json:"kind"`
	Item     string    `json:"item"` // names it, to clear it alone; marks with one name are cleared together
	Detail   string    `json:"detail,omitempty"`
	Evidence string    `json:"evidence,omitempty"` // what told it
	Request  string    `json:"request,omitempty"`  // id of the request that found it out
	Since    time.Time `json:"since,omitzero"`     // when it was found out, or last seen again
	Until    time.Time `json:"until,omitzero"`     // zero is until something else is seen, or the process ends
}

// MarkKind is the kind of a Mark.
type MarkKind string

// The kinds of marks.
const (
	MarkBreaker  MarkKind = "breaker"   // it is not asked, but for one probe after Until
	MarkClient   MarkKind = "client"    // as a breaker, for the requests of one client alone
	MarkCooldown MarkKind = "cool-down" // its key is not used
	MarkDisabled MarkKind = "disabled"  // an operator has disabled it
	MarkSwitched MarkKind = "switched"  // an operator lets less be done to its requests
	MarkLearned  MarkKind = "learned"   // what it refuses, and that it reasons in silence
	MarkWindow   MarkKind = "window"    // how much it takes at once
	MarkPace     MarkKind = "pace"      // how long it takes to its first token
)

// Prefill says how an upstream continues an answer whose beginning is given
// as the last message.
type Prefill string

// The ways of prefill.
const (
	PrefillAuto      Prefill = "auto"                   // as the host or the server is known to
	PrefillNone      Prefill = "none"                   // unknown or refused: never tried
	PrefillAssistant Prefill = "assistant"              // a trailing assistant message (Anthropic, OpenRouter)
	PrefillPrefix    Prefill = "prefix"                 // the same with "prefix": true (DeepSeek, Mistral)
	PrefillContinue  Prefill = "continue_final_message" // vLLM's and SGLang's continue_final_message
)

// Candidate is a target together with what decisions need to know of it.
type Candidate struct {
	Target
	Rank     int     // 0 is preferred; equal ranks share by weight
	Weight   float64 // share within the rank
	Window   int     // context window in tokens, 0 when unknown
	Prefill  Prefill //
	Local    bool    // on this machine or network: slow first tokens are normal
	Client   bool    // spends the client's own credential
	Fallback []Class // beyond availability, failures of these classes may move here from an earlier target; nil for the first rank
}
