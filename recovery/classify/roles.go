package classify

import "strings"

// role says what a field of an error object is for.
type role uint8

const (
	roleOther role = iota
	roleText
	roleCode
	roleParam
	roleStatus
	roleSkip // echoes of the request, what the model wrote, links, traces
)

// roleOf knows the names that fields have in the envelopes of providers and gateways.
func roleOf(key string) role {
	switch plainKey(key) {
	case "message", "msg", "error", "errormessage", "errormsg", "detail", "details", "description", "errordescription",
		"statusmsg", "statusmessage", "statusreason", "title", "raw", "localizedmessage", "info", "cause",
		"exception", "errordetail", "err", "reasonphrase", "errortext", "moreinfo", "body":
		return roleText
	case "code", "type", "errorcode", "errortype", "reason", "errorname", "errorclass", "finishreason", "nativefinishreason",
		"stopreason", "quotaid", "errorkind", "category", "subcode", "errtype", "errcode", ":exceptiontype":
		return roleCode
	case "param", "parameter", "field", "fieldname":
		return roleParam
	case "status", "statuscode", "httpcode", "httpstatus", "rawstatuscode", "upstreamstatus", "httpstatuscode":
		return roleStatus
	case "failedgeneration", "input", "request", "prompt", "tools", "url", "stack", "traceback", "stacktrace", "requestid",
		"id", "helpurl", "doclink", "documentationurl", "model", "providername", "userid", "arguments", "trace", "usage", "object":
		return roleSkip
	}
	return roleOther
}

func plainKey(key string) string {
	if strings.HasPrefix(key, "@") {
		return key
	}
	var b strings.Builder
	for i := 0; i < len(key) && i < 64; i++ {
		switch c := key[i]; {
		case c >= 'A' && c <= 'Z':
			b.WriteByte(c + 'a' - 'A')
		case c == '_' || c == '-' || c == '.' || c == ' ':
		default:
			b.WriteByte(c)
		}
	}
	return b.String()
}
