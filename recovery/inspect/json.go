package inspect

import (
	"strconv"
	"strings"
	"sync"

	"github.com/tidwall/gjson"

	"github.com/rebound-llm/rebound/recovery"
	"github.com/rebound-llm/rebound/recovery/trajectory"
	"github.com/rebound-llm/rebound/recovery/transcript"
)

// maxResultJSON bounds the JSON that is read as a result, in bytes.
const maxResultJSON = 4 << 20

// members is what the fields of a JSON result tell.
type members struct {
	exit           int
	hasExit        bool
	output, errors string
	hasOutput      bool
	failure        gjson.Result // error, or the like
	said           outcome
	message        string
	status         int // an HTTP status
	fields         int
	timedOut       bool
	ending         string // what the wrapper says below the output
	logged         bool   // it is an entry of a log
}

// unwrapJSON reads results that are one JSON value: Codex, mini-swe-agent, MCP,
// and the many that answer {"error": …} or {"success": false, …}.
func (v *view) unwrapJSON(text string) (inner, errors string, ok bool) {
	text = cutStatus(text)
	if len(text) > maxResultJSON || transcript.Valid([]byte(text), 64) != nil {
		return text, "", false
	}
	v.structured = true
	root := gjson.Parse(text)
	if root.IsArray() {
		return v.unwrapParts(text, root)
	}
	if inner := wrappedObject(root); inner.Exists() {
		root = inner
	}
	m := readMembers(root)
	if v.kind == trajectory.Reader && !m.hasOutput && m.said == unknown && !m.failure.Exists() && (m.message == "" || m.fields > 3) {
		return text, "", false
	}
	if m.hasExit && (m.hasOutput || m.errors != "" || m.fields <= 3) {
		v.setExit(m.exit, "json-exit-code")
		if m.timedOut {
			v.decided = finding{true, recovery.ToolTimeout, certain, "json-timed-out", firstLine(m.errors, m.output)}
		}
		if s := describe(m.failure); s != "" && m.exit != 0 {
			m.errors = join(m.errors, s)
		}
		return join(m.output, m.ending), m.errors, true
	}
	if s := describe(m.failure); s != "" {
		if v.outcome == failed && v.hasExit || m.said == succeeded {
			return text, "", false
		}
		v.set(failed, "json-error")
		if m.message != "" && !strings.ContainsAny(s, " \n") {
			s += "\n" + m.message // a code and its text
		}
		if m.status >= 400 {
			s += "\nHTTP status " + strconv.Itoa(m.status)
		}
		return s, "", true
	}
	if m.said == unknown && !m.logged && m.message != "" && !m.hasOutput && m.fields <= 4 {
		if r := v.match(m.message, false); r != nil {
			v.set(failed, "json-message")
			return m.message, "", true
		}
	}
	if m.said == failed {
		v.set(failed, "json-status")
		return join(m.message, m.output), m.errors, m.message+m.output+m.errors != ""
	}
	if m.said == succeeded && v.outcome == unknown {
		v.set(succeeded, "json-status")
	}
	if m.hasOutput && m.fields <= 6 {
		return m.output, m.errors, m.output != "" || m.errors != ""
	}
	return text, "", false
}

// wrappedObject is the object in one that has nothing but it, under the name of a
// response: {"run_shell_command_response": {…}}, {"functionResponse": {"response": {…}}}.
func wrappedObject(root gjson.Result) (inner gjson.Result) {
	n := 0
	root.ForEach(func(key, value gjson.Result) bool {
		name := strings.ToLower(key.Str)
		if n++; n == 1 && value.IsObject() && (strings.HasSuffix(name, "response") || name == "result") {
			inner = value
		}
		return n < 2
	})
	if n != 1 {
		return gjson.Result{}
	}
	return inner
}

// statusBody is a client that prints an HTTP status of failure and the body below it.
var statusBody = recovery.NewPattern(`^(?:(?:HTTP )?[Ss]tatus(?: code)?:? |HTTP )?([45]\d\d)(?: [A-Z][\w -]{1,40})?:?\s+\{(?:\s*["']|\s*\n| \w+: )`)

// unwrapStatus reads such a result: the status says what failed.
func (v *view) unwrapStatus(text string) (inner string, ok bool) {
	if v.kind == trajectory.Reader || v.outcome == failed || len(text) < 6 || len(text) > 2000 || text[len(text)-1] != '}' {
		return text, false
	}
	m := statusBody.FindStringSubmatch(text)
	if m == nil {
		return text, false
	}
	v.set(failed, "http-status")
	return "HTTP status " + m[1] + "\n" + text, true
}

// cutStatus removes the status that curl -w '%{http_code}' prints below an answer.
func cutStatus(text string) string {
	whole := strings.TrimSpace(text)
	i := strings.LastIndexByte(whole, '\n')
	if i < 0 || len(whole)-i != 4 || whole[i+1] < '4' || whole[i+1] > '5' {
		return text
	}
	if _, err := strconv.Atoi(whole[i+1:]); err != nil {
		return text
	}
	if body := strings.TrimSpace(whole[:i]); strings.HasSuffix(body, "}") {
		return body
	}
	return text
}

// readMembers looks at the fields of one object.
func readMembers(root gjson.Result) members {
	var m members
	var output, message joined
	listsErrors := sync.OnceValue(func() bool { return !root.Get("data").IsObject() && errorsOnly(root) })
	root.ForEach(func(key, value gjson.Result) bool {
		m.fields++
		switch strings.ToLower(key.Str) {
		case "exit_code", "exitcode", "returncode", "return_code", "exit", "exit_status":
			m.setExit(value)
		case "code", "status_code", "statuscode", "http_status", "httpstatus":
			if value.Type == gjson.Number && value.Int() >= 100 && value.Int() < 600 {
				m.status = int(value.Int())
			}
		case "metadata", "meta":
			value.ForEach(func(k, w gjson.Result) bool {
				switch strings.ToLower(k.Str) {
				case "exit_code", "exitcode", "exit", "returncode":
					m.setExit(w)
				case "timed_out", "timedout", "timeout":
					m.timedOut = m.timedOut || w.Type == gjson.True
				case "suffix": // OpenHands' word on how the command ended
					m.ending = w.String()
				}
				return true
			})
		case "output", "stdout", "content", "result", "aggregated_output", "observation", "text", "data":
			if value.Type == gjson.String {
				output.add(value.Str)
				m.hasOutput = true
			} else if value.IsArray() && strings.ToLower(key.Str) == "content" {
				output.add(partsText(value))
				m.hasOutput = true
			}
		case "stderr":
			m.errors = value.String()
			m.hasOutput = true
		case "error", "err", "exception", "exception_info", "error_message", "errormessage":
			if describe(value) != "" {
				m.failure = value
			}
		case "errors":
			if value.IsArray() && value.Get("0").Exists() && listsErrors() {
				m.failure = value
			}
		case "iserror", "is_error", "failed":
			if value.Type == gjson.True {
				m.said = failed
			} else if value.Type == gjson.False && m.said == unknown {
				m.said = succeeded
			}
		case "success", "ok", "succeeded":
			if value.Type == gjson.False {
				m.said = failed
			} else if value.Type == gjson.True {
				m.said = succeeded
			}
		case "status":
			switch strings.ToLower(value.Str) {
			case "error", "failed", "failure", "fail", "errored":
				m.said = failed
			case "success", "ok", "succeeded", "completed":
				m.said = succeeded
			case "timeout", "timed_out":
				m.said, m.timedOut = failed, true
			}
			if n := value.Int(); n >= 100 && n < 600 {
				m.status = int(n)
			}
		case "level", "severity", "loglevel":
			m.logged = true
		case "timed_out", "timedout", "timeout":
			m.timedOut = m.timedOut || value.Type == gjson.True
		case "message", "detail", "reason", "msg", "title":
			message.add(describe(value))
		}
		return true
	})
	m.output, m.message = string(output), string(message)
	// {"status": 429, "headers": …, "body": …}: an answer that a tool passes on.
	if body := root.Get("body"); m.status >= 400 && body.Exists() && !m.failure.Exists() && describe(body) != "" {
		m.failure = body
	}
	// {"message": "…", "status": 404, "type"/"path"/"timestamp": …}: an HTTP API's error page.
	if m.status >= 400 && m.message != "" && !m.failure.Exists() && !m.hasOutput {
		m.failure = root.Get("message")
		if !m.failure.Exists() {
			m.failure = gjson.Result{Type: gjson.String, Str: m.message}
		}
	}
	return m
}

// errorsOnly reports whether an object is an answer that consists of its errors:
// a report that lists errors has other fields, too.
func errorsOnly(root gjson.Result) bool {
	only := true
	root.ForEach(func(key, _ gjson.Result) bool {
		switch strings.ToLower(key.Str) {
		case "errors", "data", "message", "status", "code", "success", "ok", "extensions", "meta", "type", "title", "detail", "request_id", "statuscode", "error", "result":
		default:
			only = false
		}
		return only
	})
	return only
}

func (m *members) setExit(value gjson.Result) {
	if value.Type == gjson.Number {
		m.hasExit, m.exit = true, int(value.Int())
	}
}

// unwrapParts reads a list of content parts, as MCP and Anthropic have them, and
// lists of validation problems.
func (v *view) unwrapParts(text string, list gjson.Result) (inner, errors string, ok bool) {
	if s := partsText(list); s != "" {
		return s, "", true
	}
	return text, "", false
}

// partsText is the text of [{"type":"text","text":"…"}, …], "" for other lists.
func partsText(list gjson.Result) string {
	plain := true
	var out joined
	list.ForEach(func(_, part gjson.Result) bool {
		if kind := part.Get("type"); part.IsObject() && kind.Type == gjson.String {
			if kind.Str == "text" {
				out.add(part.Get("text").String())
			}
			return true
		}
		plain = false
		return false
	})
	if !plain {
		return ""
	}
	return string(out)
}

// joined is join of many texts, in time that is linear in their length.
type joined []byte

func (j *joined) add(s string) {
	if s != "" && len(*j) > 0 {
		*j = append(*j, '\n')
	}
	*j = append(*j, s...)
}

// describe is the text of an error field: a string, or an object's message and
// code on lines of their own. null, false, 0, "" and {} are no error.
func describe(value gjson.Result) string {
	switch {
	case value.Type == gjson.String:
		s := strings.TrimSpace(value.Str)
		switch strings.ToLower(s) {
		case "none", "null", "no error", "ok", "false", "(none)":
			return ""
		}
		return s
	case value.IsObject(), value.IsArray():
		out, budget := "", 16
		var walk func(gjson.Result, int)
		walk = func(r gjson.Result, depth int) {
			r.ForEach(func(key, w gjson.Result) bool {
				if budget--; budget < 0 {
					return false
				}
				switch {
				case w.Type == gjson.String:
					out = join(out, w.Str)
				case w.Type == gjson.Number && key.Str != "":
					out = join(out, key.Str+": "+w.Raw)
				case depth < 2 && (w.IsObject() || w.IsArray()):
					walk(w, depth+1)
				}
				return true
			})
		}
		walk(value, 0)
		return out
	case value.Type == gjson.True:
		return "error: true"
	}
	return ""
}

func firstLine(texts ...string) string {
	for _, s := range texts {
		if s = strings.TrimSpace(s); s != "" {
			line, _, _ := strings.Cut(s, "\n")
			return line
		}
	}
	return ""
}
