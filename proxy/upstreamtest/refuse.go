package upstreamtest

import (
	"fmt"
	"net/http"
	"strconv"

	"github.com/tidwall/gjson"
)

// alwaysLimit is the window in a context error if the script gives none.
const alwaysLimit = 8192

// apiError is an error answer. Empty type, param and code are sent as null.
type apiError struct {
	status                    int
	message, typ, param, code string
	anthropic                 bool   // Anthropic's envelope instead of OpenAI's
	rejected                  string // failed_generation: the model's output that was rejected
}

// refusal decides whether a request is refused; nil lets it pass.
type refusal func(q *request) *apiError

func contextExceeded(q *request) *apiError {
	return contextError(q, alwaysLimit, max(q.promptTokens(), alwaysLimit+1))
}

func contextLimit(limit int) refusal {
	return func(q *request) *apiError {
		if q.promptTokens() <= limit {
			return nil
		}
		return contextError(q, limit, q.promptTokens())
	}
}

// contextError has the wording of OpenAI, without numbers for /v1/responses, or of Anthropic.
func contextError(q *request, limit, tokens int) *apiError {
	if q.anthropic {
		return &apiError{status: http.StatusBadRequest, message: fmt.Sprintf("prompt is too long: %d tokens > %d maximum", tokens, limit), typ: "invalid_request_error"}
	}
	if q.responses {
		return badRequest("context_length_exceeded", "input", "Your input exceeds the context window of this model. Please adjust your input and try again.")
	}
	return &apiError{
		status: http.StatusBadRequest,
		message: fmt.Sprintf("This model's maximum context length is %d tokens. However, your messages resulted in %d tokens. Please reduce the length of "+
			"the messages.", limit, tokens),
		typ: "invalid_request_error", param: "messages", code: "context_length_exceeded",
	}
}

func quotaExhausted(*request) *apiError {
	return &apiError{
		status: http.StatusTooManyRequests,
		message: "You exceeded your current quota, please check your plan and billing details. For more information on this error, read the docs: " +
			"https://platform.openai.com/docs/guides/error-codes/api-errors.",
		typ: "insufficient_quota", code: "insufficient_quota",
	}
}

func unauthorized(*request) *apiError {
	return &apiError{
		status:  http.StatusUnauthorized,
		message: "Incorrect API key provided: sk-mock******. You can find your API key at https://platform.openai.com/account/api-keys.",
		typ:     "invalid_request_error", code: "invalid_api_key",
	}
}

func modelNotFound(q *request) *apiError {
	return &apiError{
		status:  http.StatusNotFound,
		message: "The model `" + q.name + "` does not exist or you do not have access to it.",
		typ:     "invalid_request_error", code: "model_not_found",
	}
}

func overloaded(*request) *apiError {
	return &apiError{status: 529, message: "Overloaded", typ: "overloaded_error", anthropic: true}
}

func contentFiltered(*request) *apiError {
	return &apiError{
		status: http.StatusBadRequest,
		message: "The response was filtered due to the prompt triggering Azure OpenAI's content management policy. Please modify your prompt and retry. To " +
			"learn more about our content filtering policies please read our documentation: https://go.microsoft.com/fwlink/?linkid=2198766",
		param: "prompt", code: "content_filter",
	}
}

func prefillRefused(q *request) *apiError {
	if q.lastRole != "assistant" {
		return nil
	}
	return &apiError{
		status:  http.StatusBadRequest,
		message: "This model does not support assistant message prefill. The conversation must end with a user message.",
		typ:     "invalid_request_error", anthropic: true,
	}
}

// unsupported refuses a top-level request field with OpenAI's message. Like OpenAI it
// accepts temperature and top_p of 1.
func unsupported(param string) refusal {
	return func(q *request) *apiError {
		v := q.field(param)
		if !v.Exists() {
			return nil
		}
		e := &apiError{status: http.StatusBadRequest, typ: "invalid_request_error", param: param}
		switch param {
		case "temperature", "top_p":
			if v.Type == gjson.Number && v.Num == 1 {
				return nil
			}
			e.code = "unsupported_value"
			e.message = "Unsupported value: '" + param + "' does not support " + v.Raw + " with this model. Only the default (1) value is supported."
		case "max_tokens":
			e.code = "unsupported_parameter"
			e.message = "Unsupported parameter: 'max_tokens' is not supported with this model. Use 'max_completion_tokens' instead."
		default:
			e.code = "unsupported_parameter"
			e.message = "Unsupported parameter: '" + param + "' is not supported with this model."
		}
		return e
	}
}

func outputTooLarge(limit int) refusal {
	return func(q *request) *apiError {
		for _, param := range [...]string{"max_completion_tokens", "max_tokens", "max_output_tokens"} {
			if n := q.field(param).Int(); n > int64(limit) {
				return &apiError{
					status:  http.StatusBadRequest,
					message: fmt.Sprintf("%s is too large: %d. This model supports at most %d completion tokens, whereas you provided %d.", param, n, limit, n),
					typ:     "invalid_request_error", param: param, code: "invalid_value",
				}
			}
		}
		return nil
	}
}

// plainError returns the error for a step that gives only a status.
func plainError(status int, q *request) *apiError {
	e := &apiError{status: status, message: http.StatusText(status), typ: "server_error"}
	switch {
	case status == http.StatusUnauthorized:
		return unauthorized(q)
	case status == http.StatusForbidden:
		e.message, e.typ, e.code = "You are not allowed to sample from this model.", "invalid_request_error", "permission_denied"
	case status == http.StatusNotFound:
		e.message, e.typ = "The requested resource was not found.", "invalid_request_error"
	case status == http.StatusRequestTimeout:
		e.message, e.typ = "Request timed out.", "invalid_request_error"
	case status == http.StatusRequestEntityTooLarge:
		e.message, e.typ = "Request body is too large.", "invalid_request_error"
	case status == http.StatusTooManyRequests:
		e.message, e.typ, e.code = "Rate limit reached for "+q.name+" on requests per min (RPM): Limit 60, Used 60, Requested 1.", "requests", "rate_limit_exceeded"
	case status == http.StatusInternalServerError:
		e.message = "The server had an error while processing your request. Sorry about that!"
	case status == http.StatusServiceUnavailable:
		e.message, e.typ = "The engine is currently overloaded, please try again later.", "service_unavailable"
	case status == 529:
		e.message, e.typ = "Overloaded", "overloaded_error"
	case status < 500:
		e.message, e.typ = "The request was refused by the mock with status "+strconv.Itoa(status)+".", "invalid_request_error"
	case e.message == "":
		e.message = "The mock answered with status " + strconv.Itoa(status) + "."
	}
	return e
}

// overridden applies the script's code, type and msg.
func (e *apiError) overridden(st *step) *apiError {
	if st.code != nil {
		e.code = *st.code
	}
	if st.typ != nil {
		e.typ = *st.typ
	}
	if st.msg != nil {
		e.message = *st.msg
	}
	return e
}

// body returns the error's body as JSON.
func (e *apiError) body(n int64) string {
	if e.anthropic {
		return `{"type":"error","error":{"type":` + nullable(e.typ) + `,"message":` + quoted(e.message) + `},"request_id":"req_mock_` + decimal(n) + `"}`
	}
	rejected := ""
	if e.rejected != "" {
		rejected = `,"failed_generation":` + quoted(e.rejected)
	}
	return `{"error":{"message":` + quoted(e.message) + `,"type":` + nullable(e.typ) + `,"param":` + nullable(e.param) + `,"code":` + nullable(e.code) + rejected + `}}`
}
