package classify

import "strings"

// role is the meaning of a field in an error object.
type role uint8

const (
	roleOther role = iota
	roleText
	roleCode
	roleParam
	roleStatus
	roleSkip // echoes of the request, model output, links, traces
)

// roles maps field names in the envelopes of providers and gateways, as plainKey
// returns them, to their roles.
var roles = map[string]role{
	"error": roleText, "detail": roleText, "details": roleText, "description": roleText, "title": roleText, "raw": roleText, "info": roleText,
	"cause": roleText, "exception": roleText, "err": roleText, "body": roleText, "reasonphrase": roleText, "statusreason": roleText,
	"type": roleCode, "reason": roleCode, "category": roleCode, "errorname": roleCode, "errorclass": roleCode, "errorkind": roleCode,
	"quotaid": roleCode, "finishreason": roleCode, "nativefinishreason": roleCode, "stopreason": roleCode,
	"param": roleParam, "parameter": roleParam, "field": roleParam, "fieldname": roleParam,
	"status": roleStatus, "statuscode": roleStatus, "httpcode": roleStatus, "httpstatus": roleStatus, "httpstatuscode": roleStatus,
	"rawstatuscode": roleStatus, "upstreamstatus": roleStatus,
	"failedgeneration": roleSkip, "input": roleSkip, "request": roleSkip, "prompt": roleSkip, "tools": roleSkip, "url": roleSkip, "stack": roleSkip,
	"traceback": roleSkip, "stacktrace": roleSkip, "requestid": roleSkip, "id": roleSkip, "helpurl": roleSkip, "doclink": roleSkip,
	"documentationurl": roleSkip, "model": roleSkip, "providername": roleSkip, "userid": roleSkip, "arguments": roleSkip, "trace": roleSkip,
	"usage": roleSkip, "object": roleSkip,
}

// roleOf returns the role of a field by its name, or else by the end of the name,
// as in error_message, sub_code and exception_type.
func roleOf(key string) role {
	key = plainKey(key)
	if r, ok := roles[key]; ok || strings.HasPrefix(key, "@") {
		return r
	}
	for _, s := range [...]struct {
		end  string
		role role
	}{{"message", roleText}, {"msg", roleText}, {"text", roleText}, {"detail", roleText}, {"description", roleText}, {"code", roleCode}, {"type", roleCode}} {
		if strings.HasSuffix(key, s.end) {
			return s.role
		}
	}
	return roleOther
}

// plainKey folds a field name: lower case, without punctuation, at most 64 bytes.
func plainKey(key string) string {
	if strings.HasPrefix(key, "@") {
		return key
	}
	return strings.Map(func(r rune) rune {
		switch {
		case r >= 'A' && r <= 'Z':
			return r + 'a' - 'A'
		case r == '_' || r == '-' || r == '.' || r == ' ' || r == ':':
			return -1
		}
		return r
	}, key[:min(len(key), 64)])
}
