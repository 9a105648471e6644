package proxy

import (
	"encoding/json"
	"net/http"
	"strings"
)

// speaksMessages reports whether clients of Anthropic's Messages API use a path. Threads
// of OpenAI's Assistants have messages, too, at another place.
func speaksMessages(path string) bool {
	return strings.Contains(strings.TrimRight(path, "/")+"/", "/v1/messages/")
}

// messagesError is Anthropic's error object, with the gateway's code beside the type.
// https://docs.anthropic.com/en/api/errors
type messagesError struct {
	Type  string `json:"type"`
	Error struct {
		Type    string `json:"type"`
		Message string `json:"message"`
		Code    string `json:"code"`
	} `json:"error"`
	RequestID string `json:"request_id,omitempty"`
}

// messagesBody returns an error of the gateway's own as a client of the Messages API reads it.
func messagesBody(e *Error, request string) ([]byte, error) {
	m := messagesError{Type: "error", RequestID: request}
	m.Error.Type, m.Error.Message, m.Error.Code = messagesErrorType(e.Status), e.Message, e.Code
	return json.Marshal(m)
}

// messagesErrorType is the type that Anthropic's servers give with a status.
func messagesErrorType(status int) string {
	switch status {
	case http.StatusUnauthorized:
		return "authentication_error"
	case http.StatusPaymentRequired:
		return "billing_error"
	case http.StatusForbidden:
		return "permission_error"
	case http.StatusNotFound:
		return "not_found_error"
	case http.StatusConflict:
		return "conflict_error"
	case http.StatusRequestEntityTooLarge:
		return "request_too_large"
	case http.StatusTooManyRequests:
		return "rate_limit_error"
	case http.StatusServiceUnavailable:
		return "overloaded_error"
	case http.StatusGatewayTimeout:
		return "timeout_error"
	}
	if status < 500 {
		return "invalid_request_error"
	}
	return "api_error"
}
