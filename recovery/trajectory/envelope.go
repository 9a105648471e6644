package trajectory

import (
	"cmp"
	"slices"
	"strings"

	"github.com/tidwall/gjson"

	"github.com/rebound-llm/rebound/recovery/transcript"
)

// State is the call's outcome according to the wrapper of its result.
type State uint8

// The states.
const (
	Unknown State = iota
	Succeeded
	Failed
)

// maxEnvelope limits a result that is parsed as JSON, in bytes.
const maxEnvelope = 4 << 20

// Envelope is the content of a result that is one JSON value, by the field names of agents, servers and HTTP
// APIs.
type Envelope struct {
	Fields    int // of the object; 0 for a list
	Exit      int
	HasExit   bool
	Output    string
	HasOutput bool   // it has a field for the output
	Errors    string // the separate error stream
	Failure   string // text of an error, or ""
	Said      State
	Message   string
	Status    int // HTTP status
	TimedOut  bool
	Ending    string // the wrapper's text below the output
	Logged    bool   // it is a log entry
	Record    bool   // it has the id of a record
	Outcomes  int    // length of a list with the outcome of each element of the call; 0 for all else
}

// ReadEnvelope parses a result that is one JSON value: of Codex, mini-swe-agent, MCP, and of the many that
// return {"error": …} or {"success": false, …}. It ignores the status that curl -w '%{http_code}' prints below.
// ok is false if the text is not JSON or too large. It takes linear time.
func ReadEnvelope(text string) (e Envelope, ok bool) {
	text = cutStatus(text)
	if len(text) > maxEnvelope || text == "" || text[0] != '{' && text[0] != '[' || transcript.Valid([]byte(text), 64) != nil {
		return e, false
	}
	root := gjson.Parse(text)
	if root.IsArray() {
		if e.Output = partsText(root); e.Output == "" {
			e.readOutcomes(root)
		}
		e.HasOutput = e.Output != ""
		return e, true
	}
	if inner := wrappedObject(root); inner.Exists() {
		root = inner
	}
	e.read(root)
	return e, true
}

// readOutcomes reads [{"result": …, "success": true}, {"error": …, "success": false}, …], the answer of tools that
// take a list. If an element failed, the call failed, and its failure has only the texts of the failed elements.
func (m *Envelope) readOutcomes(list gjson.Result) {
	var output, failures []string
	n := 0
	list.ForEach(func(_, element gjson.Result) bool {
		var one Envelope
		if n++; element.IsObject() {
			one.read(element)
		}
		if one.Said == Unknown || !one.HasOutput || one.Record || one.Logged {
			n = 0
			return false
		}
		if one.Said == Succeeded {
			output = append(output, one.Output)
			return true
		}
		if !strings.Contains(one.Output, one.Failure) {
			failures = append(failures, one.Failure)
		}
		failures = append(failures, one.Output)
		m.Said = Failed
		return true
	})
	if m.Outcomes = n; n == 0 {
		m.Said = Unknown
		return
	}
	if m.Failure = joined(failures); m.Said == Unknown {
		m.Said, m.Output = Succeeded, joined(output)
	}
}

// wrappedObject returns the object that is the only member of another one, under the name of a response:
// {"run_shell_command_response": {…}}, {"functionResponse": {"response": {…}}}.
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

// cutStatus removes the status that curl -w '%{http_code}' prints below a response.
func cutStatus(text string) string {
	whole := strings.TrimSpace(text)
	i := strings.LastIndexByte(whole, '\n')
	if i < 0 || len(whole)-i != 4 || whole[i+1] < '4' || whole[i+1] > '5' {
		return text
	}
	if body := strings.TrimSpace(whole[:i]); strings.HasSuffix(body, "}") {
		return body
	}
	return text
}

// ofRequests are words before _id that identify a request and not a record.
var ofRequests = setOf("request, trace, call, correlation, session")

// namesThing reports whether a field is the id of a record.
func namesThing(name string) bool {
	of, is := strings.CutSuffix(name, "_id")
	return name == "id" || is && !ofRequests[of[strings.LastIndexByte(of, '_')+1:]]
}

// read reads the fields of one object.
func (m *Envelope) read(root gjson.Result) {
	var output, message []string
	var errors gjson.Result
	root.ForEach(func(key, value gjson.Result) bool {
		m.Fields++
		name := strings.ToLower(key.Str)
		m.Record = m.Record || namesThing(name)
		switch name {
		case "metadata", "meta":
			value.ForEach(func(k, w gjson.Result) bool {
				m.readEnd(strings.ToLower(k.Str), w)
				return true
			})
		case "output", "stdout", "content", "result", "aggregated_output", "observation", "text", "data":
			if value.Type == gjson.String {
				output = append(output, value.Str)
				m.HasOutput = true
			} else if value.IsArray() && name == "content" {
				output = append(output, partsText(value))
				m.HasOutput = true
			}
		case "stderr":
			m.Errors, m.HasOutput = value.String(), true
		case "error", "err", "exception", "exception_info", "error_message", "errormessage":
			m.Failure = cmp.Or(describe(value), m.Failure)
		case "errors":
			errors = value
		case "level", "severity", "loglevel":
			m.Logged = true
		case "message", "detail", "reason", "msg", "title":
			message = append(message, describe(value))
		default:
			m.readEnd(name, value)
		}
		return true
	})
	m.Output, m.Message = joined(output), joined(message)
	switch {
	case m.Failure != "":
	case errors.IsArray() && !root.Get("data").IsObject() && errorsOnly(root): // GraphQL may also return a part of the data
		m.Failure = describe(errors)
	case m.Status >= 400: // a response that a tool passes on, or an HTTP API's error page
		m.Failure = cmp.Or(describe(root.Get("body")), describe(root.Get("message")), m.Message)
	}
}

// readEnd reads a field, of the object or of its metadata, that says how the call ended.
func (m *Envelope) readEnd(name string, value gjson.Result) {
	switch name {
	case "exit_code", "exitcode", "returncode", "return_code", "exit", "exit_status":
		if value.Type == gjson.Number {
			m.HasExit, m.Exit = true, int(value.Int())
		}
	case "code", "status_code", "statuscode", "http_status", "httpstatus":
		m.setStatus(value)
	case "iserror", "is_error", "failed":
		m.setFlag(value, Failed, Succeeded)
	case "success", "ok", "succeeded":
		m.setFlag(value, Succeeded, Failed)
	case "status":
		m.setStatus(value)
		switch strings.ToLower(value.Str) {
		case "error", "failed", "failure", "fail", "errored":
			m.Said = Failed
		case "success", "ok", "succeeded", "completed":
			m.Said = Succeeded
		case "timeout", "timed_out":
			m.Said, m.TimedOut = Failed, true
		}
	case "timed_out", "timedout", "timeout":
		m.TimedOut = m.TimedOut || value.Type == gjson.True
	case "suffix": // OpenHands' text about how the command ended
		m.Ending = value.String()
	}
}

// setStatus sets the status if the value is one of HTTP.
func (m *Envelope) setStatus(value gjson.Result) {
	if n := value.Int(); n >= 100 && n < 600 {
		m.Status = int(n)
	}
}

// setFlag sets the state that a flag means if it is true or false.
func (m *Envelope) setFlag(value gjson.Result, ifTrue, ifFalse State) {
	switch value.Type {
	case gjson.True:
		m.Said = ifTrue
	case gjson.False:
		m.Said = ifFalse
	}
}

// errorsOnly reports whether an object is a response that consists of its errors; a report that lists errors has
// other fields, too.
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

// partsText returns the text of [{"type":"text","text":"…"}, …], or "" for other lists.
func partsText(list gjson.Result) string {
	var out []string
	list.ForEach(func(_, part gjson.Result) bool {
		kind := part.Get("type")
		if !part.IsObject() || kind.Type != gjson.String {
			out = nil
			return false
		}
		if kind.Str == "text" {
			out = append(out, part.Get("text").String())
		}
		return true
	})
	return joined(out)
}

// joined returns the texts that are not empty, joined with newlines.
func joined(texts []string) string {
	return strings.Join(slices.DeleteFunc(texts, func(s string) bool { return s == "" }), "\n")
}

// describe returns the text of an error field: a string, or the strings and numbers of an object, one per line.
// null, false, 0, "" and {} are no error.
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
		var out []string
		budget := 16
		var walk func(gjson.Result, int)
		walk = func(r gjson.Result, depth int) {
			r.ForEach(func(key, w gjson.Result) bool {
				if budget--; budget < 0 {
					return false
				}
				switch {
				case w.Type == gjson.String:
					out = append(out, w.Str)
				case w.Type == gjson.Number && key.Str != "":
					out = append(out, key.Str+": "+w.Raw)
				case depth < 2 && (w.IsObject() || w.IsArray()):
					walk(w, depth+1)
				}
				return true
			})
		}
		walk(value, 0)
		return joined(out)
	case value.Type == gjson.True:
		return "error: true"
	}
	return ""
}
