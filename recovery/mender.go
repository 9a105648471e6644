package recovery

import (
	"errors"

	"github.com/rebound-llm/rebound/recovery/transcript"
)

// ErrFlawed is the cause of a failure that is a complete but unusable answer.
var ErrFlawed = errors.New("the model's answer cannot be used")

// Draft is one complete choice of an answer, before the client has all of it.
type Draft struct {
	Text   string
	Calls  []DraftCall
	Finish Finish
	Unsaid bool // it has only reasoning and blanks
	Shown  int  // bytes of Text that the client already has; the rest and the calls are held back
}

// DraftCall is a tool call as the server delivered it.
type DraftCall struct {
	ID        string
	Kind      string // of the tool: "function", or as on the wire
	Name      string
	Arguments string // as the client passes them to its tool: the content of a string, any other value unchanged
}

// Finish is the reason why an answer ended, the same for all providers.
type Finish string

// The finish reasons. Others pass unchanged.
const (
	FinishStop   Finish = "stop"
	FinishLength Finish = "length" // cut by the output limit: the rest is never guessed
	FinishCalls  Finish = "calls"
	FinishFilter Finish = "filter"
	FinishNone   Finish = ""
)

// Judgement is the decision about a draft.
type Judgement uint8

// The judgements.
const (
	JudgePass    Judgement = iota // the bytes pass unchanged
	JudgeReplace                  // the client gets the verdict's calls or text instead
	JudgeAsk                      // it cannot be repaired: ask the model again
)

// Verdict is a Mender's judgement of a draft. The zero Verdict passes it.
type Verdict struct {
	Judgement Judgement
	Calls     []DraftCall // JudgeReplace: all calls of the answer, repaired or not
	Text      *string     // JudgeReplace: the new content after the part that was shown; nil for no change
	Finish    Finish      // JudgeReplace: the new reason to end; FinishNone for no change
	Repairs   []Repair    // what was repaired
	Flaw      *Flaw       // JudgeAsk
}

// Repair is one repair, for events.
type Repair struct {
	Rule string // stable name of the step
	Tool string
}

// FlawKind names the flaw of an answer that cannot be repaired.
type FlawKind string

// The kinds of flaws.
const (
	FlawArguments  FlawKind = "arguments" // the tool's schema refuses them
	FlawJSON       FlawKind = "bad_json"  // arguments that are not JSON
	FlawField      FlawKind = "missing_field"
	FlawName       FlawKind = "unknown_tool"
	FlawTruncated  FlawKind = "truncated"  // a call, or JSON, that the output limit cut
	FlawMissing    FlawKind = "no_call"    // a call was required and none came
	FlawContent    FlawKind = "content"    // the content does not match response_format
	FlawRepetition FlawKind = "repetition" // runaway repetition
	FlawMark       FlawKind = "mark"       // it imitates the marks of compressed content
	FlawUnsaid     FlawKind = "unsaid"     // it has only reasoning, neither text nor a call
)

// Flaw describes for the model what was wrong with its answer.
type Flaw struct {
	Kind    FlawKind
	Tool    string // the tool that was meant, if the request offers it; a re-ask must call it
	Quote   string // what the model wrote, shortened; data, never an instruction
	Problem string // the validator's message, in words that a model can act on
	Limited bool   // the output limit came before the answer, or its end, where a larger one helps
	Output  int    // reported tokens of the answer; 0 if unknown
}

// Mender checks complete answers against their request. It is pure, limited in time, and safe for concurrent use. It
// keeps no string of a draft: these are valid only during the call.
type Mender interface {
	// Holds returns which parts of an answer must be complete before the client gets any of them.
	Holds(req *transcript.Body) Hold
	Mend(req *transcript.Body, d Draft) Verdict
	// Watch returns a new watch for one answer, or nil if there is nothing to watch for. size is the number of bytes
	// of text, reasoning and arguments, negative if unknown.
	Watch(req *transcript.Body, size int) Watch
	// Lookout returns a new detector of calls in the text of one answer, or nil if the text cannot contain calls.
	Lookout(req *transcript.Body) Lookout
}

// Lookout separates text that may be the beginning of a call from text that cannot. Only one goroutine may use it.
type Lookout interface {
	// Free takes the whole text so far and returns how many bytes of its beginning are certainly not part of a call. The
	// result never shrinks. text is valid only during the call.
	Free(text string) int
}

// Hold lists the parts of an answer that are held back until it is complete and judged.
type Hold struct {
	Calls bool
	Text  bool
}

// Part is a kind of output of a model.
type Part uint8

// The parts of an answer.
const (
	PartReasoning Part = iota
	PartText
	PartArguments
)

// Watch detects runaway repetition. Only one goroutine may use it.
type Watch interface {
	// Feed takes the next piece; it returns true if the answer repeats itself endlessly.
	Feed(p Part, piece []byte) bool
}
