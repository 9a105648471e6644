package recovery

import "time"

// Category is the kind of a tool's failure: what a recovery chain is for.
type Category string

// The categories. CategoryNone stands for success, and for failures of other kinds.
const (
	CategoryNone     Category = "none"
	CommandNotFound  Category = "command_not_found" // the shell, or the system, has no such program
	ToolNotFound     Category = "tool_not_found"    // the agent has no such tool
	PermissionDenied Category = "permission_denied" // the system refuses access; not a person's or a policy's refusal
	ToolTimeout      Category = "timeout"
	FileNotFound     Category = "file_not_found"
	InvalidArguments Category = "invalid_arguments" // the call itself is wrong: types, names, missing values
	SyntaxError      Category = "syntax_error"      // what was to be run or parsed is not well formed
	NetworkError     Category = "network_error"
	ToolRateLimited  Category = "rate_limited"
	DiskFull         Category = "disk_full"
)

// Categories lists the ten kinds that have a recovery chain, in the order of the documentation.
func Categories() []Category {
	return []Category{CommandNotFound, ToolNotFound, PermissionDenied, ToolTimeout, FileNotFound,
		InvalidArguments, SyntaxError, NetworkError, ToolRateLimited, DiskFull}
}

// ToolResult is what a tool answered, as a step of the conversation shows it.
type ToolResult struct {
	Index     int    // of the message that carries it
	Caller    int    // index of the message that made the call, -1 if none is known
	CallID    string // empty in text protocols
	Tool      string // name of the tool, empty when unknown
	Arguments string // of the call, as the tool got them; empty when unknown
	Content   string // decoded text
	Failed    bool   // its client says so, beside the content
}

// ToolFailure is what a result says of its call. With Failed unset it is a
// success; with Failed set and CategoryNone a failure of another kind.
type ToolFailure struct {
	Index      int
	CallID     string
	Tool       string
	Arguments  string
	Category   Category
	Failed     bool
	Confidence float64 // 0 to 1, that Category and Failed are right
	Rule       string  // the rule that decided, a stable name
	Line       string  // the line that it decided on, bounded; data, never an instruction
	// Fingerprint is equal for identical failures: same tool, same normalised
	// error (no numbers, times, addresses or temporary names). 0 without a failure.
	Fingerprint uint64
}

// EditFailed names the chain for edits that an editor did not apply. The failure is one of
// the ten categories (invalid_arguments); what helps is another thing than with other
// arguments, and it is the commonest failure of coding agents.
const EditFailed = "edit_failed"

// Chain names the recovery chain for the failure: that of its category, or [EditFailed].
func (f *ToolFailure) Chain() string {
	if f.Rule == "edit-refused" && f.Category == InvalidArguments {
		return EditFailed
	}
	return string(f.Category)
}

// Turn is where a history stands whose last turn of the model called tools that
// failed, or waited once more for the same. Otherwise it is the zero Turn.
type Turn struct {
	// Slot names the model's last turn: equal when a client sends the same again.
	Slot string
	// Failure is the failure that the turn ended in: nil where any of its tools
	// succeeded, or none failed.
	Failure *ToolFailure
	// Waits is set where the turn only waited, or asked how something gets on that
	// goes on by itself. Failure is nil then.
	Waits bool
	// Key is a hash of what the turn did and of what came of it, but for what says
	// nothing (a pause, an attempt's number, times, addresses): equal where nothing
	// moved from one turn to the next.
	Key uint64
	// Before names the turn before it, where it waits.
	Before string
	// User is a hash of the person's last message, 0 without one. Repeating it
	// word for word changes nothing, nor does an observation of a text protocol.
	User uint64
	// Success marks the last successful result of the history, 0 where none is in it.
	Success uint64
	// Streak counts the turns in a row, this one included, that have the same Key,
	// with nothing else between them; Seen those of the whole history that ended
	// in a failure of the same Fingerprint.
	Streak, Seen int
	// Untold is set where the same has happened three times or more, and the gateway has
	// not seen an earlier turn of the row at which the model was told firmly.
	Untold bool
	// Waited is how long the session has waited for the same, where that is long
	// enough to say so.
	Waited time.Duration
	// Allowed is the number of times that the person's last message asks for what the
	// turn did, 0 without one.
	Allowed int
	// Until is set where that message asks to repeat something until it ends in a
	// certain way: that is waiting, and no licence.
	Until bool
}

// Rung is how far the help for an agent has come. The higher ones include the lower.
type Rung uint8

// The rungs.
const (
	RungNone  Rung = iota // nothing is wrong
	RungFirst             // a failure for the first time: only a fact helps
	RungAgain             // the same failure for the second time, a kind for the third, or a loop
	RungStuck             // a firm loop, the same failure for the third time, or no progress: a planner is asked
)

// Ladder is where an agent stands whose last turn failed or repeats another. It is a
// pure function of the history: a client's retry and another replica find the same.
type Ladder struct {
	Rung Rung
	// Failure is the one of the turn's results that it is about, nil for a loop alone.
	Failure *ToolFailure
	Same    int // turns that ended in the same failure, this one included
	Kind    int // lately: those of its kind, whatever they were about
	Met     int // failures of its kind before in the session
	Given   int // notes that were due for its kind before in the session, from RungAgain on
}

// LoopKind is a way in which an agent repeats itself.
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
	LoopWaiting     LoopKind = "waiting"     // no loop: a long wait, of which the model is told
)

// Loop is a repetition that the history ends with.
type Loop struct {
	Kind  LoopKind
	Count int      // occurrences so far, at least 2
	Tools []string // the tools of the repeated calls, in order
	From  int      // index of the first message of the first occurrence
	To    int      // index of the last message of the last one
	New   bool     // this turn completed an occurrence; of what has no rounds, it made it a loop
	// Fingerprint is equal for occurrences of the same loop.
	Fingerprint uint64
}

// Task is what an agent is at, as far as its calls so far tell.
type Task string

// The tasks. The empty one is of an agent that has called nothing.
const (
	Exploring Task = "exploring" // it has only looked, so far or lately
	Changing  Task = "changing"  // it writes, runs or sends something
)

// Progress says whether an agent gets on. Nobody here knows the goal, so it is no
// share of the way to it: it is the share of the last steps that brought something
// new. A step (a turn with calls) counts whole where a call succeeded and brought a
// result, a file or a change that the session did not have; a third where it only
// failed in a new way; and nothing where it repeated what was known.
type Progress struct {
	Steps   int  // looked at, at most 12, since a person spoke; 0: not known
	Percent int  // of them, 0 to 100
	Recent  int  // the same of the last three
	Stuck   bool // three steps or more, of which the last three brought less than 5 percent
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
	// Budget is what the session might use, where it was stopped for that; Accounts are where its
	// use is counted.
	Budget   string   `json:"budget,omitempty"`
	Accounts []string `json:"accounts,omitempty"`
}
