package recovery

// Class names what went wrong with one upstream attempt. Events, metrics and the configuration use these names. Package
// classify has the table of classes and the rules that recognise them.
type Class string

// The classes of upstream failures.
const (
	ContextLengthExceeded Class = "context_length_exceeded" // the prompt, or prompt plus output, exceeds the window
	MaxOutputExceeded     Class = "max_output_exceeded"     // only the requested output limit is too large
	RateLimit             Class = "rate_limit"              // too many requests or tokens now; waiting helps
	QuotaExhausted        Class = "quota_exhausted"         // no money or allowance left; waiting does not help
	Overloaded            Class = "overloaded"              // the provider has no capacity for anybody
	ServerError           Class = "server_error"            // the provider failed, also refused and reset connections
	Timeout               Class = "timeout"                 // no answer within the upstream's or the gateway's limit
	StreamCut             Class = "stream_cut"              // an answer ended or stalled before its proper end
	EmptyResponse         Class = "empty_response"          // a success without any content
	UnsupportedParameter  Class = "unsupported_parameter"   // the target refuses a request field
	InvalidToolSchema     Class = "invalid_tool_schema"     // the target refuses a tool's JSON Schema
	ToolPairing           Class = "tool_pairing"            // tool calls and results of the history do not match
	InvalidJSONBody       Class = "invalid_json_body"       // the target could not parse the body
	InvalidRequest        Class = "invalid_request"         // any other refusal of what the client asked
	ContentPolicy         Class = "content_policy"          // refused or filtered by a safety system
	Auth                  Class = "auth"                    // the credential is missing or wrong
	Permission            Class = "permission"              // the credential may not do this
	ModelNotFound         Class = "model_not_found"         // the target does not serve this model
	PayloadTooLarge       Class = "payload_too_large"       // too many bytes, whatever the tokens
	ModelOutputInvalid    Class = "model_output_invalid"    // the provider rejected what its own model wrote
	ImageOrMediaError     Class = "image_or_media_error"    // an attachment is refused
	Unknown               Class = "unknown"                 // a failure that no rule recognises
)

// Retryable reports whether the same request may succeed later, or with another answer of the model.
func (c Class) Retryable() bool {
	switch c {
	case RateLimit, Overloaded, ServerError, Timeout, StreamCut, EmptyResponse, ModelOutputInvalid:
		return true
	}
	return false
}

// Scope is what a failure concerns. It decides whether another key or target can help.
type Scope uint8

// The scopes of failures.
const (
	ScopeRequest    Scope = iota // the request itself: the same bytes fail at every such target
	ScopeCredential              // the key: another key of the same upstream may work
	ScopeTarget                  // the upstream or model: another target may work, or the same one later
	ScopeClient                  // the client: nothing helps
)

// Spec defines the recovery of a class: one row of package classify's table. Specs are immutable and shared.
type Spec struct {
	Class   Class
	Meaning string // one sentence for operators
	Scope   Scope
	Status  int      // status for the client if the upstream sent none
	Counts  bool     // the failure counts against the target's breaker
	Cools   bool     // the failure starts a cool-down of the target's key
	Setup   bool     // the configuration is wrong: the target cannot answer until an operator corrects it
	Plan    []string // names of strategies, in the order in which they are asked
}
