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

// Keyless returns the target without its key, for facts that hold for all keys.
func (t Target) Keyless() Target {
	t.Key = ""
	return t
}

// alike reports whether both are the same model of the same upstream, with whatever key.
func (t Target) alike(o Target) bool { return t.Keyless() == o.Keyless() }

// Mark is one fact that is remembered about a target, which operators can see and clear.
type Mark struct {
	Target   string    `json:"target"` // Target.String
	Kind     MarkKind  `json:"kind"`
	Item     string    `json:"item"` // name, by which it can be cleared alone; marks with equal names are cleared together
	Detail   string    `json:"detail,omitempty"`
	Evidence string    `json:"evidence,omitempty"` // the observation behind it
	Request  string    `json:"request,omitempty"`  // id of the request with that observation
	Since    time.Time `json:"since,omitzero"`     // when it was first observed, or last confirmed
	Until    time.Time `json:"until,omitzero"`     // zero: until something else is observed, or the process ends
}

// MarkKind is the kind of a Mark.
type MarkKind string

// The kinds of marks.
const (
	MarkBreaker  MarkKind = "breaker"   // the target gets no requests, except one probe after Until
	MarkClient   MarkKind = "client"    // a breaker for the requests of one client only
	MarkCooldown MarkKind = "cool-down" // the target's key is not used
	MarkDisabled MarkKind = "disabled"  // an operator has disabled the target
	MarkSwitched MarkKind = "switched"  // an operator has lowered the mode for its requests
	MarkLearned  MarkKind = "learned"   // parameters that the target refuses, or that its model reasons silently
	MarkWindow   MarkKind = "window"    // the target's context window
	MarkPace     MarkKind = "pace"      // the target's time to its first token
)

// Prefill is the way in which an upstream continues an answer whose beginning is the request's last message.
type Prefill string

// The ways of prefill.
const (
	PrefillAuto      Prefill = "auto"                   // by what is known about the host or the server
	PrefillNone      Prefill = "none"                   // unknown or refused: never tried
	PrefillAssistant Prefill = "assistant"              // a trailing assistant message (Anthropic, OpenRouter)
	PrefillPrefix    Prefill = "prefix"                 // the same with "prefix": true (DeepSeek, Mistral)
	PrefillContinue  Prefill = "continue_final_message" // vLLM's and SGLang's continue_final_message
)

// Candidate is a target with the facts that decisions need.
type Candidate struct {
	Target
	Rank     int     // 0 is preferred; candidates of equal rank share requests by weight
	Weight   float64 // share within the rank
	Window   int     // context window in tokens, 0 when unknown
	Prefill  Prefill
	Local    bool    // on this machine or network: slow first tokens are normal
	Client   bool    // spends the client's own credential
	Fallback []Class // besides outages and limits, classes whose failures may move here from another target
}
