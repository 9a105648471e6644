package upstreamtest

import (
	"errors"
	"fmt"
	"math"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"time"
)

// Limits of script values, so that a typo in a test cannot exhaust the machine.
const (
	maxRepeat  = 1_000_000
	maxContent = 256 << 20
	maxChunks  = 1_000_000
	maxChoices = 16
)

// fault is a transport fault, named by its directive; a step has at most one.
type fault string

const (
	faultReset          fault = "reset"
	faultClose          fault = "close"
	faultHang           fault = "hang"
	faultHeadersHang    fault = "headers-hang"
	faultHalfJSON       fault = "half-json"
	faultShort          fault = "short"
	faultOver           fault = "over"
	faultTwice          fault = "twice"
	faultEndlessHeaders fault = "endless-headers"
	faultEndlessLine    fault = "endless-line"
	faultBomb           fault = "bomb"
	faultBadChunk       fault = "bad-chunk"
	faultStatusJunk     fault = "status-junk"
)

// prefillMode is how the model continues a conversation that ends with an assistant message, as the directive prefill=
// names it.
type prefillMode string

const (
	prefillContinue prefillMode = "ok" // the default
	prefillOverlap  prefillMode = "overlap"
	prefillEcho     prefillMode = "echo"
	prefillIgnore   prefillMode = "ignore"
)

// share is a place in an answer, as a share of its length.
type share struct {
	set bool
	at  float64
}

// of returns how many of n chunks or bytes come before the place.
func (s share) of(n int) int { return int(math.Round(s.at * float64(n))) }

// step is one parsed step of a script. It is immutable after parsing.
type step struct {
	src    string
	repeat int
	// window is how long the step lasts (for=), and until is its end after the model's
	// first request. If they are zero, repeat limits the step.
	window, until time.Duration
	onlyKey       string

	status   int
	html     bool
	body     *string
	code     *string
	typ      *string
	msg      *string
	refusals []refusal
	header   [][2]string

	fault    fault
	delay    time.Duration
	first    time.Duration
	pings    time.Duration
	gap      time.Duration
	hasGap   bool
	chunks   int
	bytes    int
	hasBytes bool

	cut, fin, stall, errorEvent, malformed, noise, cached share
	stallFor                                              time.Duration

	noDone, noFinish, unkept, roleOnly, empty, emptyAnswer bool
	crlf, oneWrite, usageAlways, gzip                      bool
	done, flat                                             bool
	split                                                  int

	text           string
	tool, textTool bool
	toolName       string
	args           *string
	form           callForm
	leak           bool
	leaked         string // the leaked text, "" for LeakedCall
	reason         bool
	reasonFor      time.Duration
	logprobs       bool
	choices        int
	finish         string
	prefill        prefillMode
}

// okStep is the step of a model without a script.
var okStep = &step{src: "ok", repeat: 1}

// noStep is the step of requests that are refused before their script is read.
var noStep = &step{}

// parseSteps parses a script. Its errors name the step and the directive.
func parseSteps(src string) ([]step, error) {
	parts := strings.Split(src, "/")
	steps := make([]step, 0, len(parts)+1)
	var until time.Duration
	for i, p := range parts {
		st, err := parseStep(p)
		if err != nil {
			return nil, fmt.Errorf("step %d %q: %w", i+1, p, err)
		}
		if st.window > 0 {
			until += st.window
			st.until = until
		}
		steps = append(steps, st)
	}
	if steps[len(steps)-1].window > 0 {
		steps = append(steps, *okStep)
	}
	return steps, nil
}

func parseStep(src string) (step, error) {
	st := step{src: src, repeat: 1}
	rest, n, err := cutRepeat(src)
	if err != nil {
		return st, err
	}
	st.repeat = n
	for d := range strings.SplitSeq(rest, ",") {
		if err := st.apply(d); err != nil {
			return st, err
		}
	}
	if st.window > 0 && st.repeat > 1 {
		return st, errors.New("for= and a repeat count exclude each other")
	}
	return st, nil
}

// cutRepeat splits the suffix xN off a step.
func cutRepeat(s string) (string, int, error) {
	i := strings.LastIndexByte(s, 'x')
	if i <= 0 || i+1 == len(s) || strings.Trim(s[i+1:], "0123456789") != "" {
		return s, 1, nil
	}
	n, err := strconv.Atoi(s[i+1:])
	if err != nil || n < 1 || n > maxRepeat {
		return s, 0, fmt.Errorf("repeat count %q is not within 1 to %d", s[i+1:], maxRepeat)
	}
	return s[:i], n, nil
}

func (st *step) apply(d string) error {
	if d == "" {
		return errors.New("empty directive")
	}
	name, value, given := strings.Cut(d, "=")
	if !given && len(name) == 3 && name[0] >= '0' && name[0] <= '9' {
		n, err := strconv.Atoi(name)
		if err != nil || n < 400 || n > 599 {
			return fmt.Errorf("status %q is not within 400 to 599", name)
		}
		st.status = n
		return nil
	}
	dir, ok := directives[name]
	switch {
	case !ok:
		return fmt.Errorf("unknown directive %q", name)
	case given && dir.value == valueNone:
		return fmt.Errorf("directive %q takes no value", name)
	case !given && dir.value == valueNeeded:
		return fmt.Errorf("directive %q needs a value", name)
	}
	if err := dir.set(st, value); err != nil {
		return fmt.Errorf("directive %q: %w", name, err)
	}
	return nil
}

// valueKind says whether a directive takes a value.
type valueKind int

const (
	valueNone valueKind = iota
	valueNeeded
	valueOptional
)

// directive is one directive of the script language. Without its optional value set
// gets "".
type directive struct {
	value valueKind
	set   func(st *step, value string) error
}

// directives is the script language, documented in doc.go. It is never modified.
var directives = map[string]directive{
	"ok":       flag(func(*step) {}),
	"for":      {valueNeeded, setWindow},
	"only-key": escaped(func(st *step, v string) { st.onlyKey = v }),

	"html":           flag(func(st *step) { st.html = true }),
	"body":           form(func(st *step, v string) { st.setBody(v) }),
	"code":           escaped(func(st *step, v string) { st.code = &v }),
	"type":           escaped(func(st *step, v string) { st.typ = &v }),
	"msg":            form(func(st *step, v string) { st.msg = &v }),
	"ctx":            {valueOptional, setContext},
	"quota":          refusalFlag(quotaExhausted),
	"unauthorized":   refusalFlag(unauthorized),
	"gone":           refusalFlag(modelNotFound),
	"overloaded":     refusalFlag(overloaded),
	"content-filter": refusalFlag(contentFiltered),
	"no-param":       escaped(func(st *step, v string) { st.refuse(unsupported(v)) }),
	"max-out":        number(1, maxContent, func(st *step, n int) { st.refuse(outputTooLarge(n)) }),
	"retry-after":    escaped(func(st *step, v string) { st.addHeader("Retry-After", v) }),
	"retry-after-ms": escaped(func(st *step, v string) { st.addHeader("Retry-After-Ms", v) }),
	"header":         {valueNeeded, setHeader},

	"reset":           transportFault(faultReset),
	"close":           transportFault(faultClose),
	"hang":            transportFault(faultHang),
	"headers-hang":    transportFault(faultHeadersHang),
	"half-json":       transportFault(faultHalfJSON),
	"short":           transportFault(faultShort),
	"over":            transportFault(faultOver),
	"twice":           transportFault(faultTwice),
	"endless-headers": transportFault(faultEndlessHeaders),
	"endless-line":    transportFault(faultEndlessLine),
	"bomb":            transportFault(faultBomb),
	"bad-chunk":       transportFault(faultBadChunk),
	"status-junk":     transportFault(faultStatusJunk),

	"delay":  duration(func(st *step, d time.Duration) { st.delay = d }),
	"first":  duration(func(st *step, d time.Duration) { st.first = d }),
	"pings":  duration(func(st *step, d time.Duration) { st.pings = d }),
	"gap":    duration(func(st *step, d time.Duration) { st.gap, st.hasGap = d, true }),
	"chunks": number(1, maxChunks, func(st *step, n int) { st.chunks = n }),
	"bytes":  number(0, maxContent, func(st *step, n int) { st.bytes, st.hasBytes = n, true }),
	"big":    number(0, maxContent, func(st *step, n int) { st.bytes, st.hasBytes = n, true }),

	"cut":          place(valueNeeded, func(st *step) *share { return &st.cut }),
	"fin":          place(valueNeeded, func(st *step) *share { return &st.fin }),
	"stall":        {valueNeeded, setStall},
	"error-event":  place(valueOptional, func(st *step) *share { return &st.errorEvent }),
	"noise":        place(valueOptional, func(st *step) *share { return &st.noise }),
	"malformed":    place(valueOptional, func(st *step) *share { return &st.malformed }),
	"flat":         flag(func(st *step) { st.flat = true }),
	"done":         flag(func(st *step) { st.done = true }),
	"no-done":      flag(func(st *step) { st.noDone = true }),
	"no-finish":    flag(func(st *step) { st.noFinish = true }),
	"unkept":       flag(func(st *step) { st.unkept = true }),
	"role-only":    flag(func(st *step) { st.roleOnly = true }),
	"empty":        flag(func(st *step) { st.empty = true }),
	"empty-answer": flag(func(st *step) { st.emptyAnswer = true }),
	"crlf":         flag(func(st *step) { st.crlf = true }),
	"gzip":         flag(func(st *step) { st.gzip = true }),
	"split":        number(1, maxContent, func(st *step, n int) { st.split = n }),
	"one-write":    flag(func(st *step) { st.oneWrite = true }),
	"cached":       place(valueNeeded, func(st *step) *share { return &st.cached }),
	"usage-always": flag(func(st *step) { st.usageAlways = true }),

	"text":      escaped(func(st *step, v string) { st.text = v }),
	"tool":      {valueOptional, setTool},
	"args":      form(func(st *step, v string) { st.args = &v }),
	"call":      {valueNeeded, setCallForm},
	"leak":      {valueOptional, setLeak},
	"rejected":  refusalFlag(callRejected),
	"text-tool": flag(func(st *step) { st.tool, st.textTool = true, true }),
	"reason":    {valueOptional, setReason},
	"logprobs":  flag(func(st *step) { st.logprobs = true }),
	"n":         {valueOptional, setChoices},
	"finish":    escaped(func(st *step, v string) { st.finish = v }),
	"prefill":   {valueNeeded, setPrefill},
}

func flag(set func(*step)) directive {
	return directive{valueNone, func(st *step, _ string) error { set(st); return nil }}
}

func transportFault(f fault) directive {
	return directive{valueNone, func(st *step, _ string) error {
		if st.fault != "" {
			return errors.New("a step has one transport fault at most")
		}
		st.fault = f
		return nil
	}}
}

func refusalFlag(r refusal) directive {
	return flag(func(st *step) { st.refuse(r) })
}

// taking returns a directive with a value.
func taking[T any](parse func(string) (T, error), set func(*step, T)) directive {
	return directive{valueNeeded, func(st *step, v string) error {
		given, err := parse(v)
		if err == nil {
			set(st, given)
		}
		return err
	}}
}

// escaped takes a percent-escaped value, in which a plus sign is literal.
func escaped(set func(*step, string)) directive { return taking(url.PathUnescape, set) }

// form takes a value escaped like a query parameter, in which a plus sign is a space.
func form(set func(*step, string)) directive { return taking(url.QueryUnescape, set) }

func duration(set func(*step, time.Duration)) directive { return taking(parseDuration, set) }

func number(low, high int, set func(*step, int)) directive {
	return taking(func(v string) (int, error) {
		n, err := strconv.Atoi(v)
		if err != nil || n < low || n > high {
			return 0, fmt.Errorf("%q is not a number within %d to %d", v, low, high)
		}
		return n, nil
	}, set)
}

func place(value valueKind, field func(*step) *share) directive {
	return directive{value, func(st *step, v string) error {
		s, err := parseShare(v)
		*field(st) = s
		return err
	}}
}

// parseDuration parses a Go duration, or a number of seconds.
func parseDuration(v string) (time.Duration, error) {
	if f, err := strconv.ParseFloat(v, 64); err == nil && f >= 0 && f < 1e6 {
		return time.Duration(f * float64(time.Second)), nil
	}
	d, err := time.ParseDuration(v)
	if err != nil || d < 0 {
		return 0, fmt.Errorf("%q is not a duration such as 20ms, 2s or 2", v)
	}
	return d, nil
}

func parseShare(v string) (share, error) {
	if v == "" {
		return share{set: true}, nil
	}
	f, err := strconv.ParseFloat(v, 64)
	if err != nil || !(f >= 0 && f <= 1) {
		return share{}, fmt.Errorf("%q is not a share within 0 to 1", v)
	}
	return share{set: true, at: f}, nil
}

func setWindow(st *step, v string) error {
	d, err := parseDuration(v)
	if err == nil && d == 0 {
		err = errors.New("the window is empty")
	}
	st.window = d
	return err
}

func setContext(st *step, v string) error {
	if v == "" {
		st.refuse(contextExceeded)
		return nil
	}
	n, err := strconv.Atoi(v)
	if err != nil || n < 1 {
		return fmt.Errorf("%q is not a number of tokens", v)
	}
	st.refuse(contextLimit(n))
	return nil
}

func setHeader(st *step, v string) error {
	s, err := url.PathUnescape(v)
	if err != nil {
		return err
	}
	name, value, ok := strings.Cut(s, ":")
	if !ok || name == "" {
		return fmt.Errorf("%q is not Name:Value", s)
	}
	st.addHeader(name, strings.TrimSpace(value))
	return nil
}

func setStall(st *step, v string) error {
	at, d, timed := strings.Cut(v, ":")
	var err error
	if st.stall, err = parseShare(at); err != nil {
		return err
	}
	st.stallFor = forever
	if timed {
		st.stallFor, err = parseDuration(d)
	}
	return err
}

func setTool(st *step, v string) error {
	s, err := url.PathUnescape(v)
	st.tool, st.toolName = true, s
	return err
}

func setReason(st *step, v string) error {
	st.reason = true
	if v == "" {
		return nil
	}
	var err error
	st.reasonFor, err = parseDuration(v)
	return err
}

func setChoices(st *step, v string) error {
	if v == "" {
		v = "2"
	}
	return number(1, maxChoices, func(st *step, n int) { st.choices = n }).set(st, v)
}

func setPrefill(st *step, v string) error {
	switch st.prefill = prefillMode(v); st.prefill {
	case prefillContinue, prefillOverlap, prefillEcho, prefillIgnore:
	case "refuse":
		st.refuse(prefillRefused)
	default:
		return fmt.Errorf("%q is not ok, refuse, overlap, echo or ignore", v)
	}
	return nil
}

func (st *step) setBody(v string) {
	if v == "empty" {
		v = ""
	}
	st.body = &v
}

func (st *step) refuse(r refusal) { st.refusals = append(st.refusals, r) }

func (st *step) addHeader(name, value string) {
	st.header = append(st.header, [2]string{http.CanonicalHeaderKey(name), value})
}
