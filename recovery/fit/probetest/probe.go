package probetest

import (
	"encoding/json"
	"maps"
	"math/rand/v2"
	"regexp"
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"
)

// The kinds of probes.
const (
	Path       = "path"       // a file that was read, edited or written
	LastError  = "last_error" // the last error of a command that has not succeeded since
	Constraint = "constraint" // a sentence of the user that restricts the work
	Step       = "step"       // what the agent does at the end
)

// Probe is one fact that a rewritten session must still contain.
type Probe struct {
	Kind    string
	Text    string // must occur in the rewritten request; at most 80 bytes, except for paths
	Message int    // index of the message that it came from
}

// The limits on probes of each kind, and on their length.
const (
	maxPaths       = 10
	maxErrors      = 3
	maxConstraints = 8
	maxSteps       = 3
	maxNeedle      = 80 // bytes
)

// Probes draws facts of a session, a JSON object with a list of chat messages. The same seed
// and session give the same probes, ordered by kind and then as in the session. Input that
// cannot be parsed has none.
func Probes(seed uint64, session []byte) []Probe {
	list, calls, observed := parseSession(session)
	r := rand.New(rand.NewPCG(seed, uint64(len(session))))
	changed, looked := paths(calls)
	out := draw(r, maxPaths/2, changed)
	out = append(out, draw(r, maxPaths-len(out), looked)...)
	sortByMessage(out)

	errors := unresolvedErrors(calls)
	if n := len(errors) - 1; n >= 0 { // always include the last one
		errors = append(draw(r, maxErrors-1, errors[:n]), errors[n])
	}
	out = append(append(out, errors...), draw(r, maxConstraints, constraints(list, observed))...)
	return append(out, steps(list, calls)...)
}

// draw picks up to n probes at random and sorts them.
func draw(r *rand.Rand, n int, from []Probe) []Probe {
	out := slices.Clone(from)
	r.Shuffle(len(out), func(i, j int) { out[i], out[j] = out[j], out[i] })
	out = out[:min(n, len(out))]
	sortByMessage(out)
	return out
}

func sortByMessage(list []Probe) {
	slices.SortFunc(list, func(a, b Probe) int {
		if a.Message != b.Message {
			return a.Message - b.Message
		}
		return strings.Compare(a.Text, b.Text)
	})
}

var (
	pathKeys     = []string{"path", "file_path", "filename", "file", "target_file", "absolute_path"}
	changingTool = regexp.MustCompile(`(?i)edit|write|create|replace|patch|insert|delete`)
	// In a command, a file is an argument with an extension of a program that opens files.
	fileCommand = regexp.MustCompile(`(?:^|[;&|\n]\s*)(cat|sed|head|tail|less|open|create|touch|rm)\s([^;&|<>\n]*)`)
	fileName    = regexp.MustCompile(`^[\w./@~+-]*[\w-]\.[A-Za-z]\w{0,5}$`)
)

// paths lists the files of successful calls, each once at its last call: those that were
// changed, and those that were only read.
func paths(calls []call) (changed, looked []Probe) {
	last, how := map[string]int{}, map[string]bool{}
	for _, c := range calls {
		if c.failed() || c.resultAt < 0 {
			continue
		}
		note := func(p string, change bool) {
			if len(p) >= 4 && len(p) < 200 && strings.ContainsRune(p, '.') {
				last[p], how[p] = c.at, how[p] || change
			}
		}
		for _, key := range pathKeys {
			if p, ok := c.args[key].(string); ok && fileName.MatchString(p) {
				note(p, changingTool.MatchString(c.tool))
			}
		}
		for _, m := range fileCommand.FindAllStringSubmatch(c.command, -1) {
			for _, w := range strings.Fields(m[2]) {
				if fileName.MatchString(w) && !strings.HasPrefix(w, "-") {
					note(w, m[1] == "create" || m[1] == "touch")
				}
			}
		}
	}
	for p, at := range last {
		if how[p] {
			changed = append(changed, Probe{Path, p, at})
		} else {
			looked = append(looked, Probe{Path, p, at})
		}
	}
	sortByMessage(changed)
	sortByMessage(looked)
	return changed, looked
}

// Touched returns the files of a session's successful calls.
func Touched(session []byte) (list []string) {
	_, calls, _ := parseSession(session)
	changed, looked := paths(calls)
	for _, p := range append(changed, looked...) {
		list = append(list, p.Text)
	}
	return list
}

var errorWords = regexp.MustCompile(`(?i)error|exception|fail|not found|no such|cannot|could not|denied|refused|timed out|panic|undefined|unknown|invalid`)

// unresolvedErrors lists the last failure of each attempt that did not succeed later.
func unresolvedErrors(calls []call) (out []Probe) {
	state := map[string]Probe{}
	for _, c := range calls {
		if c.resultAt < 0 {
			continue
		}
		delete(state, c.attempt())
		if !c.failed() {
			continue
		}
		if text := needle(errorLine(c.result)); text != "" {
			state[c.attempt()] = Probe{LastError, text, c.resultAt}
		}
	}
	for _, p := range state {
		out = append(out, p)
	}
	sortByMessage(out)
	slices.Reverse(out) // of equal texts, keep the last
	seen := map[string]bool{}
	out = slices.DeleteFunc(out, func(p Probe) bool {
		twice := seen[p.Text]
		seen[p.Text] = true
		return twice
	})
	slices.Reverse(out)
	return out
}

// errorLine returns the first line that names an error, or the last one of a traceback.
func errorLine(text string) (line string) {
	for l := range strings.Lines(withoutPrompt(text)) {
		if found := errorWords.MatchString(l) && !exitCode.MatchString(l); found && needle(l) != "" {
			line = l
			if !strings.Contains(text, "Traceback (most") {
				break
			}
		}
	}
	return line
}

// needle cuts a line to a text to search for; "" if it has too few letters.
func needle(line string) string {
	line, _, _ = strings.Cut(strings.TrimSpace(line), "\n")
	if len(line) > maxNeedle {
		end := maxNeedle
		for end > 0 && !utf8.RuneStart(line[end]) {
			end--
		}
		line = strings.TrimSpace(line[:end])
	}
	letters := 0
	for _, r := range line {
		if unicode.IsLetter(r) {
			letters++
		}
	}
	if letters < 8 || !utf8.ValidString(line) {
		return ""
	}
	return line
}

var (
	sentenceEnd = regexp.MustCompile(`[.!?](?:\s+|$)|\n+`)
	restriction = regexp.MustCompile(`(?i)\b(?:must|never|always|avoid|make sure|instead of|can only|only use|use only|only (?:change|edit|touch|modify))\b` +
		`|(?:^|[,;:(]\s*|\b(?:please|and|but|just|so)\s+)(?:please\s+)?(?:don['’]?t|do not|keep)\b|^(?:please )?use\b`)
	narration = regexp.MustCompile(`(?i)\b(?:i|we|they|it|that)\s+(?:really\s+)?(?:only|never|always|must)\b|^\d+:`)
	prose     = regexp.MustCompile(`^[\p{L}\d\s,.;:'’"()/_\x60*#+-]+$`)
)

// constraints lists the user's sentences that restrict the work, without questions, reports
// and pasted output.
func constraints(list []message, observed map[int]bool) (out []Probe) {
	seen := map[string]bool{}
	for i, m := range list {
		if m.Role != "user" || observed[i] {
			continue
		}
		text, start := m.text(), 0
		for _, end := range append(sentenceEnd.FindAllStringIndex(text, -1), []int{len(text), len(text)}) {
			s, mark := strings.TrimSpace(text[start:end[0]]), text[end[0]:end[1]]
			start = end[1]
			if words := len(strings.Fields(s)); words < 4 || words > 45 || strings.HasPrefix(mark, "?") || !prose.MatchString(s) {
				continue
			}
			if n := needle(s); n != "" && !seen[n] && restriction.MatchString(s) && !narration.MatchString(s) {
				seen[n] = true
				out = append(out, Probe{Constraint, n, i})
			}
		}
	}
	return out
}

// steps lists the agent's last text and last calls.
func steps(list []message, calls []call) (out []Probe) {
	add := func(text string, at int) {
		text = needle(text)
		if text != "" && len(out) < maxSteps && !slices.ContainsFunc(out, func(p Probe) bool { return p.Text == text }) {
			out = append(out, Probe{Step, text, at})
		}
	}
	for i := len(list) - 1; i >= 0; i-- {
		if said := list[i].text(); list[i].Role == "assistant" && needle(said) != "" {
			add(said, i)
			break
		}
	}
	if len(calls) > 0 {
		end := calls[len(calls)-1].at
		for i := len(calls) - 1; i >= 0 && calls[i].at == end; i-- {
			if calls[i].command != "" {
				add(calls[i].command, end)
				continue
			}
			for _, key := range slices.Sorted(maps.Keys(calls[i].args)) {
				if s, ok := calls[i].args[key].(string); ok && len(s) >= 12 {
					add(s, end)
				}
			}
		}
	}
	return out
}

// Text returns all strings of a request body, decoded, without keys. Strings that hold JSON
// themselves (arguments of calls) are included in both forms. Input that is not a JSON
// object is returned unchanged.
func Text(body []byte) string {
	var v map[string]any
	if json.Unmarshal(body, &v) != nil {
		return string(body)
	}
	var b strings.Builder
	collectText(&b, v, 0)
	return b.String()
}

func collectText(b *strings.Builder, v any, nested int) {
	switch v := v.(type) {
	case string:
		b.WriteString(v)
		b.WriteByte('\n')
		var inner any
		if s := strings.TrimSpace(v); nested < 4 && s != "" && (s[0] == '{' || s[0] == '[') && json.Unmarshal([]byte(s), &inner) == nil {
			collectText(b, inner, nested+1)
		}
	case []any:
		for _, e := range v {
			collectText(b, e, nested)
		}
	case map[string]any:
		for _, k := range slices.Sorted(maps.Keys(v)) {
			collectText(b, v[k], nested)
		}
	}
}

// Present reports whether a fact occurs in a request, given as a body or as the result of
// Text. A path may have further parent folders, but must not be part of another name.
func Present(p Probe, requestText string) bool {
	if strings.HasPrefix(requestText, "{") {
		requestText = Text([]byte(requestText))
	}
	for from := 0; p.Text != ""; {
		at := strings.Index(requestText[from:], p.Text)
		if at < 0 {
			return false
		}
		start, end := from+at, from+at+len(p.Text)
		if p.Kind != Path || !insideName(requestText[:start], requestText[end:]) {
			return true
		}
		from = start + 1
	}
	return false
}

var (
	nameBefore = regexp.MustCompile(`[\w-]$|[\w-]\.$`)
	nameAfter  = regexp.MustCompile(`^[\w-]|^\.\w|^/`)
)

func insideName(before, after string) bool {
	return nameBefore.MatchString(before[max(0, len(before)-2):]) || nameAfter.MatchString(after[:min(2, len(after))])
}
