package recovery

import (
	"context"

	"github.com/rebound-llm/rebound/recovery/transcript"
)

// Fitted is a request with a smaller history: the copy that goes upstream in
// place of the client's bytes.
type Fitted struct {
	Body *transcript.Body
	Compression
	Sticky bool // made by remembered edits only
}

// Compression is what fitting did, for events. It is never changed afterwards.
type Compression struct {
	Tiers       []string // in the order of application
	Steps       int      // messages that were compressed
	Before      int      // tokens, estimated or exact
	After       int
	BytesBefore int
	BytesAfter  int
	Extra       Usage // of the extra calls that it took
}

// Fitter makes requests fit their target's context window.
type Fitter interface {
	// Prepare is asked before the first attempt. It returns a fitted copy where
	// the session already has edits, or where the count is sure to exceed a known
	// limit; nil where the client's bytes go as they are. Store trouble is nil.
	Prepare(ctx context.Context, x *Exchange) *Fitted
	// Fit makes x smaller after f, a context_length_exceeded of candidate c. It
	// may make extra calls through a Completer, within ctx. nil means that it
	// cannot: the failure stands.
	Fit(ctx context.Context, x *Exchange, c *Choice, f *Failure) *Fitted
	// Settle learns from an answer: what the upstream counted, and that the edits
	// of x are to be kept. It never blocks.
	Settle(x *Exchange, c *Choice, u Usage)
}

// Completer asks a model for a text, once: a summary. It goes through the
// targets' breakers and cool-downs, and is bounded by the caller's ctx.
type Completer interface {
	Complete(ctx context.Context, p Prompt) (text string, u Usage, err error)
}

// Prompt is an extra call to a model.
type Prompt struct {
	System    string
	User      string
	MaxOutput int    // tokens
	Target    Target // where to ask: an upstream and a model
}

// Conformer carries out the edits that a target needs beyond single fields: of
// the history, of tool schemas, of content parts. It is pure and safe for concurrent use.
type Conformer interface {
	// Conform adds to e what the edit changes in b; false where b needs nothing.
	Conform(b *transcript.Body, e *transcript.Edit, ed Edit) bool
}
