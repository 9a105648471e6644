package classify

import (
	"bytes"
	"errors"
	"net/http"
	"slices"
	"strconv"
	"strings"

	"github.com/tidwall/gjson"

	"github.com/rebound-llm/rebound/recovery"
	"github.com/rebound-llm/rebound/recovery/rule"
	"github.com/rebound-llm/rebound/recovery/transcript"
)

// view is a signal and the parsed evidence that rules and facts need. It is
// used for one classification.
type view struct {
	recovery.Signal
	http       int      // the status of the HTTP answer; Signal.Status may come from the body
	quotes     *quotes  // passages of the request to leave out of the texts; nil for none
	codes      []string // squashed codes, types and statuses of every layer, outermost first
	texts      []string // messages of every layer, outermost first
	rawTexts   []string // the texts before JSON in them was parsed
	otherTexts []string // sentences in fields of unknown role
	text       string   // texts, folded and joined by rule.Border
	params     []string // parameter paths from validation lists
	empty      bool     // there was no body
	onlyStatus bool     // the texts only repeat the status
	html       bool     // the body was a page
	plain      bool     // the body is not only JSON objects and lists
	broken     bool     // the body starts like JSON but is invalid
	envelope   bool     // the body is the envelope of a model's answer
	hasOutput  bool     // that envelope has a choice or an output list
	hasError   bool     // the body has an error field or object
	counts     counts   // numbers that are fields of their own
	hints      hints
	nodes      int
}

// counts are token counts that servers send as fields.
type counts struct{ prompt, window int }

// read builds the view. It unwraps nested JSON in known and unknown envelopes, JSON
// inside strings, gateway prefixes, SSE framing and HTML pages, and leaves the quotes
// in q out of the texts. It is total: any evidence has a view.
func read(ev recovery.Evidence, q *quotes) *view {
	v := &view{http: ev.Status, quotes: q}
	v.Phase, v.Status, v.Stream, v.Err = ev.Phase, ev.Status, ev.Stream, ev.Err
	v.hints.now = ev.Now
	v.readHeader(ev.Header)
	body := ev.Body
	if len(body) > maxBody {
		body = body[:maxBody]
	}
	body = bytes.TrimSpace(bytes.TrimPrefix(body, []byte("\xef\xbb\xbf")))
	v.empty = len(body) == 0
	for _, frame := range frames(body) {
		v.readFrame(frame)
		v.plain = v.plain || v.broken || frame[0] != '{' && frame[0] != '['
	}
	v.finish()
	return v
}

// frames returns the data of each SSE event, at most 16, or the body if it is not SSE.
func frames(body []byte) [][]byte {
	if !bytes.HasPrefix(body, []byte("data:")) && !bytes.HasPrefix(body, []byte("event:")) && !bytes.HasPrefix(body, []byte(":")) {
		if len(body) == 0 {
			return nil
		}
		return [][]byte{body}
	}
	var out [][]byte
	var data []byte
	flush := func() {
		if d := bytes.TrimSpace(data); len(d) > 0 && !bytes.Equal(d, []byte("[DONE]")) && len(out) < 16 {
			out = append(out, d)
		}
		data = nil
	}
	for line := range bytes.Lines(body) {
		line = bytes.TrimRight(line, "\r\n")
		if len(line) == 0 {
			flush()
		} else if rest, ok := bytes.CutPrefix(line, []byte("data:")); ok {
			data = append(append(data, bytes.TrimPrefix(rest, []byte(" "))...), '\n')
		}
	}
	flush()
	return out
}

func (v *view) readFrame(b []byte) {
	s := string(b)
	if b[0] == '{' || b[0] == '[' || b[0] == '"' {
		err := transcript.Valid(b, maxJSONDepth)
		if err == nil {
			v.walk(gjson.ParseBytes(b), "", 0)
			if len(v.texts) == 0 && v.Status >= 400 {
				for _, t := range v.otherTexts {
					v.addText(t, 0)
				}
			}
			return
		}
		var e *transcript.Error
		v.broken = b[0] != '"' && errors.As(err, &e) && e.Code != transcript.CodeTooDeep
	}
	if looksHTML(s) {
		v.html = true
		s = strings.Join(strings.Fields(plainText(clip(s, 4*maxText))), " ")
	}
	v.addText(s, 0)
}

// readHeader reads error codes and retry hints from headers.
func (v *view) readHeader(h http.Header) {
	for _, name := range []string{"X-Amzn-Errortype", "X-Ms-Error-Code", "X-Error-Code", "X-Error-Type"} {
		if s := h.Get(name); s != "" {
			v.addCode(s)
		}
	}
	v.hints.header = h
}

// walk reads a JSON value of the error body. key is the field that holds it.
func (v *view) walk(r gjson.Result, key string, depth int) {
	if v.nodes++; v.nodes > maxNodes || depth > maxDepth {
		return
	}
	switch {
	case v.skipInAnswer(r, key):
	case r.IsObject():
		v.readCounts(r)
		v.hints.readObject(r)
		for _, key := range [...]string{"loc", "path"} { // FastAPI's, Zod's
			if path := r.Get(key); path.IsArray() {
				v.addLoc(path)
			}
		}
		// Scalars first, so that an object's own message comes before nested ones.
		r.ForEach(func(k, e gjson.Result) bool {
			if !e.IsObject() && !e.IsArray() {
				v.scalar(e, k.Str, depth)
			}
			return v.nodes <= maxNodes
		})
		r.ForEach(func(k, e gjson.Result) bool {
			switch {
			case !e.IsObject() && !e.IsArray(), roleOf(k.Str) == roleSkip, k.Str == "loc", k.Str == "path", k.Str == "ctx":
			case k.Str == "headers": // headers of the upstream answer that a gateway reports
				v.addCode(e.Get(":exception-type").String())
			default:
				v.walk(e, k.Str, depth+1)
			}
			return v.nodes <= maxNodes
		})
	case r.IsArray():
		r.ForEach(func(_, e gjson.Result) bool {
			v.walk(e, key, depth+1)
			return v.nodes <= maxNodes
		})
	default:
		v.scalar(r, key, depth)
	}
}

// scalar reads a string, number or boolean by what its key usually holds: a text, a code, a status or a parameter.
func (v *view) scalar(r gjson.Result, key string, depth int) {
	if v.nodes++; v.nodes > maxNodes {
		return
	}
	s := r.String()
	if s == "" || r.Type == gjson.Null {
		return
	}
	v.noteLabel(key, s)
	what := roleOf(key)
	if key == "errors" || key == "" {
		what = roleText
	}
	switch what {
	case roleText:
		if r.Type == gjson.String && v.says(key) {
			v.addText(s, depth)
		}
	case roleCode:
		v.addCode(s)
		v.addStatus(s)
		switch plainKey(key) {
		case "code", "errorcode":
			if _, err := strconv.Atoi(v.Code); v.Code == "" || err == nil { // prefer a name over a number
				v.Code = s
			}
		case "type", "errortype":
			if v.Type == "" || v.Type == "error" {
				v.Type = s
			}
		case "reason":
			if r.Type == gjson.String && strings.ContainsRune(s, ' ') {
				v.addText(s, depth)
			}
		}
	case roleStatus:
		n, err := strconv.Atoi(s)
		v.hasError = v.hasError || s == "error" || s == "failed" || err == nil && n != 0 && n/100 != 2
		v.addStatus(s)
		v.addCode(s)
	case roleParam:
		if r.Type == gjson.String && v.Param == "" {
			v.Param = s
		}
		// Some gateways put the message there ("text is not set").
		if strings.ContainsRune(s, ' ') {
			v.addText(s, depth)
		}
	case roleOther:
		if strings.ContainsRune(s, ' ') {
			v.otherTexts = append(v.otherTexts, s)
		}
	}
}

// addText adds a message, and parses JSON in it.
func (v *view) addText(s string, depth int) {
	s = strings.TrimSpace(v.quotes.without(s))
	if len(v.rawTexts) < maxLayers {
		v.rawTexts = append(v.rawTexts, s)
	}
	if s == "" || len(v.texts) >= maxLayers || depth > maxDepth {
		return
	}
	if depth < maxDepth {
		if start, end, inner := embedded(s); inner != "" {
			before := len(v.texts)
			if head := strings.TrimSpace(s[:start]); head != "" {
				v.texts = append(v.texts, clip(head, maxText/4))
				v.prefixCodes(head)
			}
			said := len(v.texts)
			v.walk(gjson.Parse(inner), "", depth+1)
			if len(v.texts) == said { // JSON without a message is part of the sentence
				v.texts = append(v.texts[:before], clip(s, maxText/2))
			} else if tail := strings.TrimSpace(s[end:]); len(tail) > 3 {
				v.texts = slices.Insert(v.texts, said, clip(tail, maxText/4)) // the last text is the innermost message
			}
			return
		}
	}
	s = clip(s, maxText/2)
	if slices.Contains(v.texts, s) {
		return
	}
	v.texts = append(v.texts, s)
	if !strings.ContainsRune(s, ' ') {
		v.addCode(s) // {"error": "model_not_found"}
	}
	v.prefixCodes(s)
}

// embedded finds a JSON object, or an array of objects, in a text such as
// `Error code: 400 - {…}` or `[provider/model] [400]: {…}`. It returns where the
// value starts and ends. A Python repr of such a value is translated to JSON.
func embedded(s string) (start, end int, inner string) {
	i := strings.IndexAny(s, "{[")
	for tries := 0; tries < 6 && i >= 0 && i < len(s); tries++ {
		if e := balanced(s, i); e-i > 4 && holdsObject(s[i:e]) {
			return i, e, s[i:e]
		}
		if t, e := fromPython(s, i); e > 0 && holdsObject(t) {
			return i, e, t
		}
		j := strings.IndexAny(s[i+1:], "{[")
		if j < 0 {
			break
		}
		i += 1 + j
	}
	return 0, 0, ""
}

// holdsObject reports whether s is a JSON object or an array that starts with one,
// and not nested too deeply for walk.
func holdsObject(s string) bool {
	return transcript.Valid([]byte(s), maxJSONDepth) == nil && (s[0] == '{' || gjson.Parse(s).Get("0").IsObject())
}

// balanced returns the end of the bracketed value that begins at s[i], or 0.
func balanced(s string, i int) int {
	depth := 0
	for j := i; j < len(s); j++ {
		switch s[j] {
		case '"':
			for j++; j < len(s) && s[j] != '"'; j++ {
				if s[j] == '\\' {
					j++
				}
			}
		case '{', '[':
			depth++
		case '}', ']':
			if depth--; depth == 0 {
				return j + 1
			}
		}
	}
	return 0
}

// prefixCodes adds the error class names and statuses near the start of a text:
// "ThrottlingException: …", "litellm.RateLimitError: …",
// "An error occurred (validationException) when …", "Error code: 429 - …".
func (v *view) prefixCodes(s string) {
	if len(s) > 240 {
		s = s[:240]
	}
	words := strings.FieldsFunc(s, func(r rune) bool {
		return strings.ContainsRune(" \t\r\n:,;()[]{}<>\"'`|=", r)
	})
	for i, w := range words {
		if i > 24 {
			break
		}
		if j := strings.LastIndexByte(w, '.'); j >= 0 && j < len(w)-1 {
			w = w[j+1:]
		}
		switch {
		case (strings.HasSuffix(w, "Error") || strings.HasSuffix(w, "Exception")) && len(w) > 9:
			v.addCode(w)
		case len(w) > 6 && strings.ToUpper(w) == w && strings.Contains(w, "_"):
			v.addCode(w)
		case len(w) == 3 && (i == 0 || i == 1 && len(words[0]) == 3 || slices.Contains(statusWords, strings.ToLower(words[i-1])) || i+1 < len(words) && reasonPhrase(w, words[i+1])):
			v.addStatus(w)
		}
	}
}

// statusWords are the words after which a number is a status.
var statusWords = []string{"code", "status", "http", "status_code", "statuscode", "error", "failed", "http/1.1", "http/2"}

// reasonPhrase reports whether next is the first word of the status's HTTP reason phrase.
func reasonPhrase(status, next string) bool {
	n, err := strconv.Atoi(status)
	if err != nil || n < 400 {
		return false
	}
	phrase, _, _ := strings.Cut(http.StatusText(n), " ")
	return strings.EqualFold(phrase, next)
}

func (v *view) addCode(s string) {
	if len(s) > 120 || len(v.codes) >= maxLayers {
		return
	}
	if c := rule.Code(s); c != "" {
		v.codes = append(v.codes, c)
	}
}

// addStatus uses a status from the body if the HTTP status says less: none,
// success, or a gateway's generic 400 or 5xx in place of a specific one.
func (v *view) addStatus(s string) {
	n, err := strconv.Atoi(s)
	if err != nil || n < 400 || n > 599 {
		return
	}
	switch h := v.http; {
	case h < 400:
		if v.Status < 400 {
			v.Status = n
		}
	case v.Status != h: // already refined
	case h == 400 && n != 422 && n != 404, h >= 500 && n < 500, h == 500 && n != 500, h == 502 && n != 500:
		v.Status = n
	}
}

// addLoc adds the parameter path of one entry in a validation list.
func (v *view) addLoc(loc gjson.Result) {
	if len(v.params) >= 16 {
		return
	}
	var path []string
	loc.ForEach(func(_, e gjson.Result) bool {
		s := e.String()
		if len(path) > 0 || s != "body" && s != "query" {
			path = append(path, s)
		}
		return len(path) < 12
	})
	if len(path) > 0 {
		v.params = append(v.params, strings.Join(path, "."))
	}
}

// readCounts reads the token counts that llama.cpp and LM Studio send as fields.
func (v *view) readCounts(r gjson.Result) {
	if n := r.Get("n_prompt_tokens"); n.Type == gjson.Number && v.counts.prompt == 0 {
		v.counts.prompt = int(n.Int())
	}
	if n := r.Get("n_ctx"); n.Type == gjson.Number && v.counts.window == 0 {
		v.counts.window = int(n.Int())
	}
}

// finish joins and folds the texts, and chooses the message.
func (v *view) finish() {
	var b strings.Builder
	v.onlyStatus = len(v.texts) > 0 && !slices.ContainsFunc(v.texts, func(t string) bool { return !v.repeatsStatus(t) })
	for i, t := range v.texts {
		if i > 0 {
			b.WriteString(" ¦ ")
		}
		b.WriteString(withoutTrailer(withoutLinks(withoutEchoes(rule.Fold(t)))))
		if b.Len() > maxText {
			break
		}
	}
	v.text = clip(b.String(), maxText)
	// The innermost message comes from the server that failed. It is used unless it
	// only repeats the status.
	for i := len(v.texts) - 1; i >= 0; i-- {
		if t := v.texts[i]; strings.ContainsRune(t, ' ') && (v.onlyStatus || !v.repeatsStatus(t)) || i == 0 {
			v.Message = t
			break
		}
	}
}

// nameText returns the words of the type, the code and the texts that are names.
// It returns "" if there are none or if a text is a sentence.
func (v *view) nameText() string {
	if slices.ContainsFunc(v.texts, isSentence) {
		return ""
	}
	var out []string
	for _, name := range append([]string{v.Type, v.Code}, v.texts...) {
		if words := nameWords(name); words != "" {
			out = append(out, words)
		}
	}
	return strings.Join(out, " ¦ ")
}

// isSentence reports whether a text has more than two words, or East Asian script.
func isSentence(t string) bool {
	return strings.Count(strings.TrimSpace(t), " ") > 1 || strings.ContainsFunc(t, func(r rune) bool { return r >= 0x2e80 })
}

var (
	nameForm  = recovery.NewPattern(`^[A-Za-z]+(?:[_.-]?[A-Za-z]+)+$`)
	nameJoint = recovery.NewPattern(`([a-z])([A-Z])|[_.-]`)
)

// nameWords splits a name into words: "OperationDenied.ServiceOverdue" is
// "operation denied service overdue". It returns "" for anything else.
func nameWords(name string) string {
	if len(name) > 120 || !nameForm.MatchString(name) {
		return ""
	}
	if words := nameJoint.ReplaceAllString(name, "$1 $2"); strings.ContainsRune(words, ' ') {
		return strings.ToLower(words)
	}
	return ""
}

// repeatsStatus reports whether a text is only the status's HTTP reason phrase,
// with or without the number.
func (v *view) repeatsStatus(t string) bool {
	if len(t) > 48 {
		return false
	}
	t = strings.Trim(t, "0123456789 .:-\r\n")
	return t != "" && (strings.EqualFold(t, http.StatusText(v.http)) || strings.EqualFold(t, http.StatusText(v.Status)))
}

// withoutLinks removes URLs from folded text: their paths mention billing, quotas
// and rate limits whatever the message is about. It keeps the fragment, which
// names this specific error.
func withoutLinks(s string) string {
	if !strings.Contains(s, "://") {
		return s
	}
	words := strings.Split(s, " ")
	for i, w := range words {
		if j := strings.Index(w, "http"); j >= 0 && strings.Contains(w[j:], "://") {
			_, fragment, ok := strings.Cut(w[j:], "#")
			if words[i] = w[:j] + "…"; ok {
				words[i] += "#" + fragment
			}
		}
	}
	return strings.Join(words, " ")
}

// withoutTrailer removes from folded text what a router appends about itself,
// such as model groups and request ids.
func withoutTrailer(s string) string {
	for _, mark := range []string{"received model group=", "available model group fallbacks=", "no fallback model group found"} {
		if i := strings.Index(s, mark); i > 0 {
			s = strings.TrimRight(s[:i], " .")
		}
	}
	// "… (request id: 2025…)"
	for _, mark := range []string{"request id: ", "request_id: ", "requestid: ", "trace id: ", "traceid: ", "session_id: "} {
		i := strings.Index(s, mark)
		if i <= 0 {
			continue
		}
		if j := strings.LastIndexByte(s[:i], '('); j > 0 && i-j < 16 {
			_, tail, _ := strings.Cut(s[j:], ")")
			s = strings.TrimRight(s[:j], " ") + tail
		}
	}
	return s
}
