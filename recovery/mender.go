package recovery

import (
	"errors"

	"github.com/rebound-llm/rebound/recovery/transcript"
)

// ErrFlawed is the cause of a failure that is a complete but unusable answer.
var ErrFlawed = errors.New("the model's answer cannot be used")

// Draft is one choice of an answer, complete, before the client has all of it.
type Draft struct {
	Text   string
	Calls  []DraftCall
	Finish Finish
	Unsaid bool // it is reasoning, and nothing else that is not blank
	Shown  int  // bytes of Text that the client already has; the rest and the calls were held
}

// DraftCall is a tool call as the server delivered it.
type DraftCall struct {
	ID        string
	Kind      string // of the tool: "function", or as on the wire
	Name      string
	Arguments string // as the client would hand them to its tool: a string's content, any other value as it is
}

// Finish is why an answer ended, in neutral words.
type Finish string

// The reasons to end. Others are passed on as they are.
const (
	FinishStop   Finish = "stop"
	FinishLength Finish = "length" // cut by the output limit: never completed by guessing
	FinishCalls  Finish = "calls"
	FinishFilter Finish = "filter"
	FinishNone   Finish = ""
)

// Judgement is what becomes of a draft.
type Judgement uint8

// The judgements.
const (
	JudgePass    Judgement = iota // the bytes pass unchanged
	JudgeReplace                  // the client gets the verdict's calls or text in their place
	JudgeAsk                      // it cannot be mended: ask the model again
)

// Verdict is a Mender's judgement of a draft. The zero Verdict passes it.
type Verdict struct {
	Judgement Judgement
	Calls     []DraftCall // JudgeReplace: all calls of the answer, mended or not
	Text      *string     // JudgeReplace: the new content behind what was shown; nil leaves it
	Finish    Finish      // JudgeReplace: the proper reason; FinishNone leaves it
	Repairs   []Repair    // what was mended
	Flaw      *Flaw       // JudgeAsk
}

// Repair is one thing that was mended, for events.
type Repair struct {
	Rule string // stable name of the step
	Tool string
}

// FlawKind is what is wrong with an answer that cannot be mended.
type FlawKind string

// The kinds of flaws.
const (
	FlawArguments  FlawKind = "arguments" // refused by the tool's schema
	FlawJSON       FlawKind = "bad_json"  // arguments that are not JSON
	FlawField      FlawKind = "missing_field"
	FlawName       FlawKind = "unknown_tool"
	FlawTruncated  FlawKind = "truncated"  // a call that the output limit cut
	FlawMissing    FlawKind = "no_call"    // a call was required and none came
	FlawContent    FlawKind = "content"    // the content is not what response_format asks for
	FlawRepetition FlawKind = "repetition" // runaway repetition
	FlawMark       FlawKind = "mark"       // it imitates the marks of compressed content
	FlawUnsaid     FlawKind = "unsaid"     // it is reasoning only, with neither text nor call
)

// Flaw tells the model what was wrong with its answer.
type Flaw struct {
	Kind    FlawKind
	Tool    string // the tool that was meant, if it is one of the request's; a re-ask is forced to it
	Quote   string // what the model wrote, bounded; data, never an instruction
	Problem string // the validator's message, in words that a model can act on
	Limited bool   // FlawUnsaid: the output limit came before the answer
	Output  int    // tokens that the answer took, as reported; 0 while nobody has
}

// Mender judges complete answers by what their request asked for. It is pure,
// bounded in time, and safe for concurrent use. It keeps nothing of a draft, whose
// strings last as long as the call.
type Mender interface {
	// Holds says what of an answer must be complete before the client sees any of it.
	Holds(req *transcript.Body) Hold
	Mend(req *transcript.Body, d Draft) Verdict
	// Watch returns a fresh watch over one answer while it comes in, or nil
	// where there is nothing to watch for. size is how many bytes of text,
	// reasoning and arguments it has, negative while that is not known.
	Watch(req *transcript.Body, size int) Watch
	// Lookout returns a fresh look-out for calls in the text of one answer while it
	// comes in, or nil where none can be.
	Lookout(req *transcript.Body) Lookout
}

// Lookout tells text that may turn out to be a call from text that cannot. One
// goroutine uses it.
type Lookout interface {
	// Free takes all of the text so far, and returns how many bytes of it are certainly
	// no part of a call. The result never shrinks. text is valid as long as the call.
	Free(text string) int
}

// Hold says what of an answer is held until it is complete and judged.
type Hold struct {
	Calls bool
	Text  bool
}

// Part is a kind of what a model writes.
type Part uint8

// The parts of an answer.
const (
	PartReasoning Part = iota
	PartText
	PartArguments
)

// Watch looks for runaway repetition. One goroutine uses it.
type Watch interface {
	// Feed takes the next piece; true means that the answer runs away.
	Feed(p Part, piece []byte) bool
}
