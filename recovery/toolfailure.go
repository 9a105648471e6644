package recovery

import "time"

// Category is the kind of a tool's failure. Each kind has a recovery chain.
type Category string

// The categories. CategoryNone means success, or a failure of another kind.
const (
	CategoryNone     Category = "none"
	CommandNotFound  Category = "command_not_found" // the shell or the system has no such program
	ToolNotFound     Category = "tool_not_found"    // the agent has no such tool
	PermissionDenied Category = "permission_denied" // the system refuses access; not a person's or a policy's refusal
	ToolTimeout      Category = "timeout"
	FileNotFound     Category = "file_not_found"
	InvalidArguments Category = "invalid_arguments" // the call itself is wrong: types, names, missing values
	SyntaxError      Category = "syntax_error"      // the code or data to run or parse is malformed
	NetworkError     Category = "network_error"
	ToolRateLimited  Category = "rate_limited"
	DiskFull         Category = "disk_full"
)

// Categories lists the ten categories, in the order of the documentation.
func Categories() []Category {
	return []Category{CommandNotFound, ToolNotFound, PermissionDenied, ToolTimeout, FileNotFound,
		InvalidArguments, SyntaxError, NetworkError, ToolRateLimited, DiskFull}
}

// ToolResult is a tool's result with its call, as the conversation has them.
type ToolResult struct {
	Index     int    // index of the message with the result
	Caller    int    // index of the message that made the call, -1 if none is known
	CallID    string // empty in text protocols
	Tool      string // name of the tool, empty if unknown
	Arguments string // arguments of the call; empty if unknown
	Content   string // decoded text
	Failed    bool   // the client marks the result as an error
}

// ToolFailure is the verdict on a result. If Failed is unset, the call succeeded; with Failed and CategoryNone it is
// a failure of another kind.
type ToolFailure struct {
	Index      int
	CallID     string
	Tool       string
	Arguments  string
	Category   Category
	Failed     bool
	Confidence float64 // 0 to 1, probability that Category and Failed are right
	Rule       string  // stable name of the rule that decided
	Line       string  // the line that the rule matched, shortened; data, never an instruction
	// Fingerprint is equal for identical failures: same tool, same normalised
	// error (no numbers, times, addresses or temporary names). 0 without a failure.
	Fingerprint uint64
}

// EditFailed is the name of the chain for edits that an editor did not apply, the most common failure of coding agents.
// Their category is invalid_arguments, but other steps help than for other wrong arguments.
const EditFailed = "edit_failed"

// Chain returns the name of the failure's recovery chain: its category, or [EditFailed].
func (f *ToolFailure) Chain() string {
	if f.Rule == "edit-refused" && f.Category == InvalidArguments {
		return EditFailed
	}
	return string(f.Category)
}

// Turn describes the model's last turn if its tools failed, or if it waited again for the same thing. Otherwise it is the
// zero Turn.
type Turn struct {
	// Slot identifies the model's last turn. It is the same if a client repeats the request.
	Slot string
	// Failure is the turn's failure; nil if any of its tools succeeded, or none
	// failed.
	Failure *ToolFailure
	// Waits is set if the turn only waited, or asked for the state of something that runs in the background. Then Failure
	// is nil.
	Waits bool
	// Key is a hash of the turn's calls and results without meaningless parts (pauses, attempt numbers, times,
	// addresses): equal keys mean that nothing changed from one turn to the next.
	Key uint64
	// Before identifies the turn before, if this one waits.
	Before string
	// User is a hash of the person's last message, 0 without one. Repeating the message word for word does not change
	// it, nor does an observation of a text protocol.
	User uint64
	// Success is a hash of the last successful result in the history, 0 without one.
	Success uint64
	// Streak counts the turns with this Key in a row, this one included. Seen counts the turns of the whole history
	// that failed with the same Fingerprint.
	Streak, Seen int
	// Untold is set if the same happened three times or more in a row, but the gateway gave no firm note at an earlier one
	// of these turns.
	Untold bool
	// Waited is how long the session has waited for the same thing; 0 if that is too short for a note.
	Waited time.Duration
	// Allowed is how often the person's last message asks for what the turn did, 0 if it names no
	// number.
	Allowed int
	// Until is set if that message asks to repeat something until it ends in a certain way: this counts as waiting, and
	// does not allow endless repetition.
	Until bool
}

// Rung is a level of help for an agent.
type Rung uint8

// The rungs.
const (
	RungNone  Rung = iota // nothing is wrong
	RungFirst             // a failure for the first time: only a fact helps
	RungAgain             // the same failure for the second time, a kind for the third, or a loop
	RungStuck             // a firm loop, the same failure for the third time, or no progress: a planner is asked
)

// Ladder is the level of help for an agent whose last turn failed or repeats another. It is a pure function of the
// history, so that a client's retry and another replica compute the same.
type Ladder struct {
	Rung Rung
	// Failure is the failed result of the turn that needs help; nil if there is only a loop.
	Failure *ToolFailure
	Same    int // number of turns with the same failure, this one included
	Kind    int // number of recent turns with a failure of the same kind
	Met     int // number of earlier failures of the same kind in the session
	Given   int // number of earlier notes for the kind in the session, from RungAgain on
}

// LoopKind is a kind of repetition.
type LoopKind string

// The kinds of loops.
const (
	LoopSameError   LoopKind = "same_error"  // the same call with the same error
	LoopSameResult  LoopKind = "same_result" // the same call with the same result
	LoopAlternation LoopKind = "alternation" // A-B-A-B
	LoopCycle       LoopKind = "cycle"       // A-B-C-A-B-C, or four calls
	LoopCounter     LoopKind = "counter"     // the same call with a higher number each time, and nothing new
	LoopRephrasing  LoopKind = "rephrasing"  // a search that finds nothing, with the same words in another order
	LoopMonologue   LoopKind = "monologue"   // the same text again, without a call
	LoopNoProgress  LoopKind = "no_progress" // many steps without anything new
	LoopWaiting     LoopKind = "waiting"     // no loop, but a long wait
)

// Loop is a repetition at the end of the history.
type Loop struct {
	Kind  LoopKind
	Count int      // occurrences so far, at least 2
	Tools []string // the tools of the repeated calls, in order
	From  int      // index of the first message of the first occurrence
	To    int      // index of the last message of the last one
	New   bool     // this turn completed an occurrence, or made a loop of one without rounds
	// Fingerprint is equal for occurrences of the same loop.
	Fingerprint uint64
}

// Task is what an agent is doing, judged by its calls so far.
type Task string

// The tasks. An agent that has called nothing has the empty one.
const (
	Exploring Task = "exploring" // it only reads, so far or recently
	Changing  Task = "changing"  // it writes, runs or sends something
)

// Progress measures an agent's progress. Since the goal is unknown, it is the share of the last steps that brought
// something new. A step (a turn with calls) counts 1 if a call succeeded and brought a result, a file or a change that
// is new in the session, a third if it only failed in a new way, and 0 if it repeated what was known.
type Progress struct {
	Steps   int  // number of steps, at most the last 12 since a person wrote; 0 if unknown
	Percent int  // share of these steps that brought something new, 0 to 100
	Recent  int  // the same for the last three steps
	Stuck   bool // there are at least three steps, and Recent is below 5
	Task    Task
}

// OpenSession is a session whose breaker is open.
type OpenSession struct {
	Session  string    `json:"session"`
	Tool     string    `json:"tool"`
	Category Category  `json:"category"`
	Rule     string    `json:"evidence"`
	Failures int       `json:"failures"`
	Since    time.Time `json:"since"`
	// Budget is the budget that the session was stopped for, if any; Accounts are the accounts of its
	// use.
	Budget   string   `json:"budget,omitempty"`
	Accounts []string `json:"accounts,omitempty"`
}
