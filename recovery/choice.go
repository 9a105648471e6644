package recovery

// Question is what a note about a tool's failure has to decide: which of the
// strategies that this conversation can follow goes first, or whether to say nothing.
type Question struct {
	Session, Model string
	Task           Task     // what the agent is at
	Chain          string   // name of the recovery chain
	Line           string   // that the failure was decided on: what a tool printed
	Fingerprint    uint64   // of the failure
	Strategies     []string // at least one, in the order of the chain
}

// Preference is the answer.
type Preference struct {
	Strategies []string // the most promising first; what it does not name comes last
	Withhold   bool     // the agent is believed to do better, or as well, without a note
	Template   string   // what the line says in public words
}

// After is what the calls after a tool's failure brought, as the history of a later
// request shows.
type After struct {
	Session     string
	Fingerprint uint64 // of the failure
	At          int    // index of the result that it is
	Calls       int    // turns of the model with calls since, one or two
	Target      bool   // what the failed call was for succeeded
	Same        bool   // the same failure came again
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
}

// LearnedCell is what is known of one chain and model.
type LearnedCell struct {
	Chain    string       `json:"chain"`
	Model    string       `json:"model"`
	Decision string       `json:"decision"` // what is done: chain (as before), learned, or observe (no notes)
	Censored int          `json:"censored"`
	Arms     []LearnedArm `json:"arms"` // the most promising first, then without a note
	// P is the chance that the agent does not help itself, Net what the best note
	// changes in its success, with a 95 % interval; R and D are the least part of
	// failures that it turns into successes, and of successes that it turns into failures.
	P   float64    `json:"p"`
	Net float64    `json:"net"`
	CI  [2]float64 `json:"net_interval"`
	R   float64    `json:"r"`
	D   float64    `json:"d"`
}

// LearnedArm is what is known of one strategy; without a name of no note.
type LearnedArm struct {
	Strategy     string     `json:"strategy"`
	Observations int        `json:"observations"`
	Rate         float64    `json:"rate"` // of success, as believed
	CI           [2]float64 `json:"interval"`
}

// LearnedPattern is a template with the strategy that is known to be best for it.
type LearnedPattern struct {
	Chain        string  `json:"chain"`
	Template     string  `json:"template"`
	Strategy     string  `json:"strategy"`
	Observations int     `json:"observations"`
	Rate         float64 `json:"rate"`
}
