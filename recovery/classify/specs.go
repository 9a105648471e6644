package classify

import (
	"net/http"

	"github.com/rebound-llm/rebound/recovery"
)

// The names of the strategies in plans. The engine asks them in the order of
// the plan and uses the first one that can help.
const (
	planMove           = "move"            // another target or key
	planResend         = "resend"          // the same target again, after a backoff
	planWait           = "wait"            // wait as long as the upstream asks
	planLargerWindow   = "larger_window"   // a target with a larger context window
	planClampOutput    = "clamp_output"    // a smaller output limit
	planAdaptParameter = "adapt_parameter" // rename or drop the refused parameter
	planResume         = "resume"          // continue the cut stream
	planFit            = "fit"             // a smaller history
	planConformHistory = "mend_history"    // edit calls, results and turns for the target; metrics know it by this older name
	planTrimSchema     = "trim_schema"     // tool schemas without the keywords it refuses
	planDropMedia      = "drop_media"      // text in place of attachments
	planDropReasoning  = "drop_reasoning"  // drop reasoning that the target cannot read
	planReask          = "reask"           // ask the model again
	planExplain        = "explain"         // let the model tell the user
)

// Specs lists every class once, in the order in which documentation shows them.
func Specs() []*recovery.Spec {
	const (
		request    = recovery.ScopeRequest
		credential = recovery.ScopeCredential
		target     = recovery.ScopeTarget
	)
	return []*recovery.Spec{
		{Class: recovery.ContextLengthExceeded, Scope: request, Status: http.StatusBadRequest, Plan: []string{planFit, planLargerWindow},
			Meaning: "The prompt, or the prompt plus the output reserve, does not fit the model's context window."},
		{Class: recovery.MaxOutputExceeded, Scope: request, Status: http.StatusBadRequest, Plan: []string{planClampOutput},
			Meaning: "The requested output limit is larger than the model can write."},
		{Class: recovery.RateLimit, Scope: credential, Status: http.StatusTooManyRequests, Cools: true, Plan: []string{planWait, planMove},
			Meaning: "Too many requests or tokens in the current window; waiting helps."},
		{Class: recovery.QuotaExhausted, Scope: credential, Status: http.StatusTooManyRequests, Cools: true, Plan: []string{planMove},
			Meaning: "The account has no money or allowance left; waiting does not help."},
		{Class: recovery.Overloaded, Scope: target, Status: http.StatusServiceUnavailable, Counts: true, Plan: []string{planWait, planResend, planMove},
			Meaning: "The provider has no capacity for anybody at the moment."},
		{Class: recovery.ServerError, Scope: target, Status: http.StatusBadGateway, Counts: true, Plan: []string{planWait, planResend, planMove},
			Meaning: "The provider failed, or could not be reached."},
		{Class: recovery.Timeout, Scope: target, Status: http.StatusGatewayTimeout, Counts: true, Plan: []string{planWait, planResend, planMove},
			Meaning: "No answer came in time."},
		{Class: recovery.StreamCut, Scope: target, Status: http.StatusBadGateway, Counts: true, Plan: []string{planResume, planResend, planMove},
			Meaning: "The answer ended or stalled before its proper end."},
		{Class: recovery.EmptyResponse, Scope: target, Status: http.StatusBadGateway, Counts: true, Plan: []string{planMove, planResend},
			Meaning: "The upstream reported success and sent no content."},
		{Class: recovery.UnsupportedParameter, Scope: request, Status: http.StatusBadRequest, Plan: []string{planAdaptParameter, planMove},
			Meaning: "The target does not take a field, value or role of the request."},
		{Class: recovery.InvalidToolSchema, Scope: request, Status: http.StatusBadRequest, Plan: []string{planTrimSchema, planMove},
			Meaning: "The target refuses the JSON Schema of a tool."},
		{Class: recovery.ToolPairing, Scope: request, Status: http.StatusBadRequest, Plan: []string{planDropReasoning, planConformHistory, planExplain},
			Meaning: "Tool calls and tool results of the history do not match."},
		{Class: recovery.InvalidJSONBody, Scope: request, Status: http.StatusBadRequest, Plan: []string{planConformHistory},
			Meaning: "The target could not parse the request body."},
		{Class: recovery.InvalidRequest, Scope: request, Status: http.StatusBadRequest, Plan: []string{planDropReasoning, planConformHistory, planMove, planExplain},
			Meaning: "The target refuses what was asked, for a reason of its own."},
		{Class: recovery.ContentPolicy, Scope: request, Status: http.StatusBadRequest, Plan: []string{planMove},
			Meaning: "A safety system refused the request or filtered the answer."},
		{Class: recovery.Auth, Scope: credential, Status: http.StatusUnauthorized, Cools: true, Plan: []string{planMove},
			Meaning: "The credential is missing, wrong, expired or revoked."},
		{Class: recovery.Permission, Scope: credential, Status: http.StatusForbidden, Plan: []string{planMove},
			Meaning: "The credential is known and may not do this."},
		{Class: recovery.ModelNotFound, Scope: target, Status: http.StatusNotFound, Plan: []string{planMove},
			Meaning: "The target does not serve this model."},
		{Class: recovery.PayloadTooLarge, Scope: request, Status: http.StatusRequestEntityTooLarge, Plan: []string{planFit},
			Meaning: "The request has too many bytes, whatever its tokens."},
		{Class: recovery.ModelOutputInvalid, Scope: target, Status: http.StatusBadGateway, Plan: []string{planReask, planMove},
			Meaning: "The provider rejected what its own model wrote, a broken tool call for example."},
		{Class: recovery.ImageOrMediaError, Scope: request, Status: http.StatusBadRequest, Plan: []string{planDropMedia},
			Meaning: "The target refuses an image or another attachment."},
		{Class: recovery.Unknown, Scope: target, Status: http.StatusBadGateway, Plan: []string{planWait, planExplain},
			Meaning: "A failure that no rule recognises."},
	}
}
