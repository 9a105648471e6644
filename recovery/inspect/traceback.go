package inspect

import (
	"strings"

	"github.com/rebound-llm/rebound/recovery"
	"github.com/rebound-llm/rebound/recovery/trajectory"
)

// tracebackSign is in every Python traceback.
const tracebackSign = "Traceback (most recent call last)"

var (
	tracebackHead = recovery.NewPattern(`Traceback \(most recent call last\):?`)
	// exceptionLine matches the last line of a Python traceback.
	exceptionLine = recovery.NewPattern(`^((?:[A-Za-z_]\w*\.)*[A-Za-z_]\w*)(?:: (.*))?$`)
	exceptionName = recovery.NewPattern(`(?:Error|Exception|Expired|Timeout|Interrupt|Exit|Refused|Warning|NotFound|Privileges|Failure|Fault|` +
		`Group|Denied|Invalid\w*|Requests|Disconnected|Closed|Stop\w*|Exists|Missing)$`)
	subprocess = recovery.NewPattern(`subprocess\.py"|_execute_child|create_subprocess|\bPopen\b|shutil\.which|os\.(?:exec|spawn|posix_spawn)|, in (?:_?execv\w*|_spawnv\w*|_?posix_spawnp?)\b`)
)

// traceback finds the exception at the end of the last Python traceback.
func (v *view) traceback() finding {
	if !strings.Contains(v.text, tracebackSign) {
		return v.bareException()
	}
	at := -1
	for i := len(v.lines) - 1; i >= 0; i-- {
		if tracebackHead.MatchString(v.lines[i].text) {
			at = i
			break
		}
	}
	if at < 0 {
		return v.bareException()
	}
	first, last := -1, -1
	for i := at + 1; i < len(v.lines); i++ {
		line := v.lines[i].text
		if line[0] == ' ' || line[0] == '\t' {
			continue
		}
		m := exceptionLine.FindStringSubmatch(line)
		if m == nil {
			continue
		}
		if first < 0 && v.lines[i-1].text[0] == ' ' {
			first = i
		}
		if exceptionName.MatchString(m[1]) {
			last = i
		}
	}
	end := first
	if last >= 0 && (end < 0 || !exceptionName.MatchString(nameOf(v.lines[end].text))) {
		end = last
	}
	if end < 0 {
		return finding{}
	}
	tail := len(v.lines) - 1 - end
	switch {
	case v.outcome == failed:
	case v.wentOnAfter(end), strings.HasPrefix(v.lines[end].text, "BrokenPipeError"): // its reader had enough
		return finding{}
	case v.outcome == succeeded && at == 0 && tail <= 2:
		// behind a pipe that hides the exit code, or printed by a program that continued
	case v.outcome == unknown && (at <= 1 || tail <= 3):
	default:
		return finding{}
	}
	line := v.lines[end].text
	if end+1 < len(v.lines) && len(line) < 200 && (strings.HasSuffix(line, ":") || !strings.Contains(line, ": ")) && v.lines[end+1].text[0] != '[' {
		line += " " + strings.TrimSpace(v.lines[end+1].text)
	}
	f := finding{failed: true, category: recovery.CategoryNone, confidence: other, rule: "python-exception", line: line}
	if category, rule := v.exception(line, joinLines(v.lines[at:end])); rule != "" {
		f.category, f.rule, f.confidence = category, rule, certain
		if rule == signatureRule || programOrFile(line, joinLines(v.lines[at:end])) {
			f.confidence = doubtful
		} else if v.outcome == unknown {
			f.confidence = likely
		}
		if v.outcome == succeeded {
			f.confidence = min(f.confidence, worded)
		}
	}
	return f
}

// bareException reads the end of a traceback whose beginning was cut off, for example by tail -1: only frames,
// and an exception whose name gives the category.
func (v *view) bareException() finding {
	n := len(v.lines)
	if n == 0 || n > shortResult || v.stderr >= 0 && v.stderr < n-1 {
		return finding{}
	}
	line := v.lines[n-1].text
	if name, message, ok := shownException(line); ok && n == 1 && v.kind == trajectory.Code {
		line = name + ": " + message
	}
	m := exceptionLine.FindStringSubmatch(line)
	if m == nil || strings.HasPrefix(line, "Error") || len(line) > maxRuleLine {
		return finding{}
	}
	for _, above := range v.lines[:n-1] {
		if !frame.MatchString(above.text) {
			return finding{}
		}
	}
	for _, row := range exceptions {
		if !row.names.MatchString(m[1]) || n == 1 && !strings.Contains(m[1], ".") && !ownName.MatchString(m[1]) {
			continue
		}
		category, rule := v.exception(line, "")
		if rule == "" || category == recovery.InvalidArguments {
			return finding{}
		}
		f := finding{true, category, likely, rule, line}
		switch {
		case programOrFile(line, joinLines(v.lines[:n-1])):
			f.confidence = doubtful
		case v.outcome == succeeded:
			f.confidence = worded
		}
		return f
	}
	return finding{}
}

// signatureRule is the rule for a call with wrong arguments inside a program, which is as often the author's
// fault as the call's.
const signatureRule = "python-signature"

// exceptionShown matches Python's repr of an exception, NameError("name 'x' is not defined"), which code runners
// return that catch all exceptions.
var exceptionShown = recovery.NewPattern(`^((?:[A-Za-z_]\w*\.)*[A-Z]\w*(?:Error|Exception|Timeout|Expired))\((?:(\d{1,3}), )?(?:'(.{0,1000})'|"(.{0,1000})")(?:, .{0,300})?\)$`)

// shownException returns the name and the message of such an exception, with its errno if it has one.
func shownException(line string) (name, message string, ok bool) {
	m := exceptionShown.FindStringSubmatch(line)
	if m == nil {
		return "", "", false
	}
	if message = m[3] + m[4]; m[2] != "" {
		message = "[Errno " + m[2] + "] " + message
	}
	return m[1], message, true
}

func nameOf(line string) string {
	name, _, _ := strings.Cut(line, ":")
	return name
}

// exceptions are Python exception classes whose names give the category.
var exceptions = []struct {
	category recovery.Category
	names    *recovery.Pattern
}{
	{recovery.ToolRateLimited, recovery.NewPattern(`(?:(?i:RateLimit)\w*|TooManyRequests\w*|Throttl\w+|ResourceExhausted|QuotaExceeded\w*)$`)},
	{recovery.PermissionDenied, recovery.NewPattern(`(?:PermissionError|PermissionDenied\w*|AccessDenied\w*|Forbidden\w*|` +
		`InsufficientPrivileges|AuthenticationException|GeocoderInsufficientPrivileges)$`)},
	{recovery.FileNotFound, recovery.NewPattern(`(?:FileNotFoundError|NotADirectoryError|NoSuchFile\w*|TemplateNotFound)$`)},
	{recovery.ToolTimeout, recovery.NewPattern(`(?:TimeoutError|TimeoutExpired|TimeoutException|ReadTimeout|ConnectTimeout|WriteTimeout|` +
		`PoolTimeout|\bTimeout|ReadTimeoutError|GeocoderTimedOut|DeadlineExceeded|SoftTimeLimitExceeded|TimedOut|TooSlowError)$`)},
	{recovery.NetworkError, recovery.NewPattern(`(?:ConnectionError|ConnectionRefusedError|ConnectionResetError|ConnectionAbortedError|` +
		`gaierror|(?:Server|Host)(?:NotFound|Unreachable)\w*|UnknownHost\w*|URLError|SSLError|SSLCertVerificationError|NewConnectionError|MaxRetryError|RemoteDisconnected|ProxyError|` +
		`ClientConnector\w*Error|ServerDisconnectedError|NameResolutionError|ConnectError|ReadError|RemoteProtocolError|APIConnectionError|` +
		`GeocoderUnavailable|ServiceUnavailable|NoValidConnectionsError|ConnectionClosed\w*|ChunkedEncodingError|IncompleteRead|EndpointConnectionError|ServerSelectionTimeoutError|BrokenPipeError)$`)},
	{recovery.SyntaxError, recovery.NewPattern(`(?:SyntaxError|IndentationError|TabError|JSONDecodeError|ParseError|ParserError|ScannerError|` +
		`(?i:TOMLDecodeError)|XMLSyntaxError|ExpatError|PatternError|TemplateSyntaxError|re\.error|sre_constants\.error|TokenError|ParseException|DecodingError)$`)},
	{recovery.InvalidArguments, recovery.NewPattern(`(?:pydantic\S*\.ValidationError|jsonschema\S*\.ValidationError|^ValidationError|` +
		`ArgumentError|UsageError|BadParameter|MissingParameter|NoSuchOption|ToolException)$`)},
}

// errnos are the numbers in Python's "[Errno 13]" and Rust's "(os error 13)" on Linux and macOS.
var errnos = map[string]recovery.Category{
	"1": recovery.PermissionDenied, "2": recovery.FileNotFound, "13": recovery.PermissionDenied, "20": recovery.FileNotFound,
	"28": recovery.DiskFull, "30": recovery.PermissionDenied, "122": recovery.DiskFull, "60": recovery.ToolTimeout, "110": recovery.ToolTimeout,
	"61": recovery.NetworkError, "111": recovery.NetworkError, "104": recovery.NetworkError, "54": recovery.NetworkError, "101": recovery.NetworkError,
	"113": recovery.NetworkError, "-2": recovery.NetworkError, "-3": recovery.NetworkError, "-5": recovery.NetworkError, "8": recovery.CategoryNone,
}

var (
	errnoNumber = recovery.NewPattern(`\[Errno (-?\d+)\]`)
	statusError = recovery.NewPattern(`(?:^|\.)(?:HTTPError|HTTPStatusError|ClientResponseError|ClientError|APIStatusError|HttpError|` +
		`UnexpectedResponse|ApiException|GeocoderInsufficientPrivileges|GeocoderServiceError)$`)
	netPhrase = recovery.NewPattern(`(?i)Failed to establish a new connection|Name or service not known|Temporary failure in name resolution|` +
		`nodename nor servname|Connection refused|Connection reset|Remote end closed|Network is unreachable|No route to host|Max retries exceeded|` +
		`getaddrinfo failed|SSLError|CERTIFICATE_VERIFY_FAILED|server closed the connection|could not connect to server|Cannot connect to host`)
)

// exception returns the category of an exception and the rule: by its status or errno, then by its name, then by
// the line rules. frames are the traceback's lines above it.
func (v *view) exception(line, frames string) (recovery.Category, string) {
	name, message, _ := strings.Cut(line, ": ")
	if strings.HasSuffix(name, "AssertionError") {
		return recovery.CategoryNone, "" // a test's own message
	}
	if statusError.MatchString(name) {
		if r := httpStatus(message); r != recovery.CategoryNone {
			return r, "python-http-status"
		}
	}
	if m := errnoNumber.FindStringSubmatch(line); m != nil && !strings.Contains(line, "Max retries") {
		c, ok := errnos[m[1]]
		if ok && c == recovery.FileNotFound && subprocess.MatchString(frames) {
			return recovery.CommandNotFound, "python-subprocess"
		}
		if ok && c != recovery.CategoryNone {
			return c, "python-errno"
		}
	}
	for _, row := range exceptions {
		if !row.names.MatchString(name) {
			continue
		}
		c := row.category
		switch {
		case c == recovery.NetworkError && strings.Contains(message, "PermissionError("):
			return recovery.PermissionDenied, "python-cause" // a socket that may not be opened
		case c == recovery.FileNotFound && subprocess.MatchString(frames):
			return recovery.CommandNotFound, "python-subprocess"
		case c == recovery.NetworkError && timedOut.MatchString(message) && !netPhrase.MatchString(message):
			return recovery.ToolTimeout, "python-timed-out"
		case c == recovery.InvalidArguments && (v.kind == trajectory.Shell || v.kind == trajectory.Code) && dataRefused.MatchString(name):
			return recovery.CategoryNone, "" // raised by a program that checks its data
		case c == recovery.SyntaxError && strings.Contains(message, "Expecting value: line 1 column 1 (char 0)") && netFrames.MatchString(frames):
			return recovery.CategoryNone, "" // a server's response that was not JSON
		}
		return c, "python-exception-name"
	}
	if name == "TypeError" && callSignature.MatchString(message) {
		return recovery.InvalidArguments, signatureRule
	}
	if name == "subprocess.CalledProcessError" && strings.HasSuffix(message, "exit status 127.") {
		return recovery.CommandNotFound, "python-subprocess"
	}
	if netPhrase.MatchString(message) {
		return recovery.NetworkError, "python-network-words"
	}
	if r := v.match(message); r != nil && !(category(r) == recovery.InvalidArguments && ownError.MatchString(name)) {
		return category(r), r.Name
	}
	if r := v.match(line); r != nil && !(category(r) == recovery.InvalidArguments && ownError.MatchString(name)) {
		return category(r), r.Name
	}
	return recovery.CategoryNone, ""
}

var (
	callSignature = recovery.NewPattern(`\(\) (?:missing (?:\d+ )?required|got an unexpected keyword|takes .{1,60} arguments?|got multiple values for)`)
	// dataRefused matches exceptions of validators: a framework's about a call, a program's about its data.
	dataRefused = recovery.NewPattern(`ValidationError$`)
	// ownError matches Python's own exceptions, which are about the program's arguments and not the call's.
	ownError = recovery.NewPattern(`^(?:Index|Key|Attribute|Name|ZeroDivision|Type|Value|Overflow|Unicode\w*|Lookup|Arithmetic|Recursion|StopIteration)(?:Error)?$`)
	// frame matches a line of a traceback above its end, ownName a built-in exception that counts without any frame.
	frame     = recovery.NewPattern(`^(?:\s+\S|During handling of|The above exception)`)
	ownName   = recovery.NewPattern(`^(?:TimeoutError|FileNotFoundError|PermissionError|NotADirectoryError|Connection(?:Refused|Reset|Aborted)?Error|SyntaxError|IndentationError|TabError)$`)
	timedOut  = recovery.NewPattern(`(?i)\btimed out\b|\btimeout\b`)
	netFrames = recovery.NewPattern(`requests/|httpx/|urllib`)
)

var statusNumber = recovery.NewPattern(`\b([45]\d\d)\b`)

// httpStatus returns the category of the first status in a client's error message.
func httpStatus(message string) recovery.Category {
	m := statusNumber.FindString(message)
	switch m {
	case "429":
		return recovery.ToolRateLimited
	case "401", "403":
		return recovery.PermissionDenied
	case "408", "504":
		return recovery.ToolTimeout
	case "500", "502", "503":
		return recovery.NetworkError
	}
	return recovery.CategoryNone
}
