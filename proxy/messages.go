package proxy

import (
	"cmp"
	"encoding/json"
	"net/http"
	"strings"

	"github.com/labstack/echo/v4"
	"github.com/tidwall/gjson"

	"github.com/rebound-llm/rebound/recovery"
	"github.com/rebound-llm/rebound/recovery/transcript"
)

// withoutPrefix removes any prefix that clients of the Messages API have before /v1 in their base URL.
func withoutPrefix(next echo.HandlerFunc) echo.HandlerFunc {
	return func(c echo.Context) error {
		u := c.Request().URL
		for _, path := range [...]string{"/v1/messages", "/v1/messages/count_tokens"} {
			if u.RawPath == "" && strings.HasSuffix(u.Path, path) {
				u.Path = path
			}
		}
		return next(c)
	}
}

// answerCount answers a request for its token count with an estimate if the upstream does not implement
// it. It returns false if it did not answer.
func (p *passage) answerCount(c echo.Context, f *recovery.Failure) bool {
	if p.place != countPath || p.core.Measure == nil || strings.Contains(strings.ToLower(string(f.Response.Body)), "model") {
		return false
	}
	switch f.Response.Status {
	case http.StatusNotFound, http.StatusMethodNotAllowed, http.StatusNotImplemented:
	default:
		return false
	}
	body, err := transcript.Parse(p.up.Body, transcript.Messages, p.core.Config.Limits.transcript())
	if err != nil {
		return false
	}
	c.Response().Header()["X-Rebound-Counted"] = []string{"estimated"}
	p.ev.Status = http.StatusOK
	return c.JSON(http.StatusOK, map[string]int{"input_tokens": p.core.Measure(body, f.Target.Model)}) == nil
}

// asMessages converts the last failure to Anthropic's envelope, unless it already has that. An error
// that ends a stream gets the type that clients retry, unless a retry cannot help.
func asMessages(r *reply, f *recovery.Failure, x *recovery.Exchange, begun bool) {
	if gjson.GetBytes(r.body, "type").Str != "error" || !gjson.GetBytes(r.body, "error.type").Exists() || begun {
		kind := messagesErrorType(r.status)
		if begun && !hopeless(f) {
			kind = "overloaded_error"
		}
		said, _ := errorMessage(r.body)
		if said == "" {
			said = bound(string(r.body))
		}
		r.body = messagesEnvelope(kind, said, gjson.GetBytes(r.body, "error.code").String(), x.ID)
	}
	if first(r.header, "Request-Id") == "" {
		r.header["Request-Id"] = []string{x.ID}
	}
}

// messagesError is Anthropic's error object, with the gateway's code beside the type.
// https://docs.anthropic.com/en/api/errors
type messagesError struct {
	Type  string `json:"type"`
	Error struct {
		Type    string `json:"type"`
		Message string `json:"message"`
		Code    string `json:"code,omitempty"`
	} `json:"error"`
	RequestID string `json:"request_id,omitempty"`
}

// messagesEnvelope encodes an error in Anthropic's format.
func messagesEnvelope(kind, message, code, request string) []byte {
	m := messagesError{Type: "error", RequestID: request}
	m.Error.Type, m.Error.Message, m.Error.Code = kind, message, code
	raw, err := json.Marshal(m)
	if err != nil { // strings always marshal
		return []byte(`{"type":"error","error":{"type":"api_error","message":"internal error"}}`)
	}
	return raw
}

// messagesErrorTypes are the error types that Anthropic's servers use with statuses of their own.
var messagesErrorTypes = map[int]string{
	http.StatusUnauthorized: "authentication_error", http.StatusPaymentRequired: "billing_error", http.StatusForbidden: "permission_error",
	http.StatusNotFound: "not_found_error", http.StatusConflict: "conflict_error", http.StatusRequestEntityTooLarge: "request_too_large",
	http.StatusTooManyRequests: "rate_limit_error", http.StatusServiceUnavailable: "overloaded_error", http.StatusGatewayTimeout: "timeout_error",
}

// messagesErrorType returns the error type that Anthropic's servers use with a status.
func messagesErrorType(status int) string {
	other := "api_error"
	if status < 500 {
		other = "invalid_request_error"
	}
	return cmp.Or(messagesErrorTypes[status], other)
}
