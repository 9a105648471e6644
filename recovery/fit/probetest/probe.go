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
	LastError  = "last_error" // of a command that failed and did not succeed since
	Constraint = "constraint" // a sentence of the user that restricts the work
	Step       = "step"       // what is being done at the end
)

// Probe is one fact that a rewritten session must still contain.
type Probe struct {
	Kind  string
	Text  string // to be found in the text of the rewritten request; at most 80 bytes but for paths
	Where int    // index of the message that it came from
}

// At most so many probes of a kind are drawn.
const (
	maxPaths       = 10
	maxErrors      = 3
	maxConstraints = 8
	maxSteps       = 3
	maxNeedle      = 80 // bytes
)

// Probes draws the facts of a session to ask for: a JSON object with a list of
// chat messages. The same seed and session give the same probes, in the order
// of the kinds and then of the session. Input that cannot be read has none.
func Probes(seed uint64, session []byte) []Probe {
	list, calls, observed := read(session)
	r := rand.New(rand.NewPCG(seed, uint64(len(session))))
	changed, looked := paths(calls)
	out := draw(r, maxPaths/2, changed)
	out = append(out, draw(r, maxPaths-len(out), looked)...)
	sortByPlace(out)

	errors := unfixed(calls)
	if n := len(errors) - 1; n >= 0 { // the last one always
		errors = append(draw(r, maxErrors-1, errors[:n]), errors[n])
	}
	out = append(append(out, errors...), draw(r, maxConstraints, constraints(list, observed))...)
	return append(out, steps(list, calls)...)
}

// draw picks up to n at random and keeps their order.
func draw(r *rand.Rand, n int, from []Probe) []Probe {
	out := slices.Clone(from)
	r.Shuffle(len(out), func(i, j int) { out[i], out[j] = out[j], out[i] })
	out = out[:min(n, len(out))]
	sortByPlace(out)
	return out
}

func sortByPlace(list []Probe) {
	slices.SortFunc(list, func(a, b Probe) int {
		if a.Where != b.Where {
			return a.Where - b.Where
		}
		return strings.Compare(a.Text, b.Text)
	})
}

var (
	pathKeys = []string{"path", "file_path", "filename", "file", "target_file", "absolute_path"}
	changing = regexp.MustCompile(`(?i)edit|write|create|replace|patch|insert|delete`)
	// In a command only what follows a program that opens files counts, and only with an extension.
	opened = regexp.MustCompile(`(?:^|[;&|\n]\s*)(cat|sed|head|tail|less|open|create|touch|rm)\s([^;&|<>\n]*)`)
	asFile = regexp.MustCompile(`^[\w./@~+-]*[\w-]\.[A-Za-z]\w{0,5}$`)
)

// paths lists the files of the calls that succeeded, each once where it was
// last touched: those that were changed, and those that were only looked at.
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
			if p, ok := c.args[key].(string); ok && asFile.MatchString(p) {
				note(p, changing.MatchString(c.tool))
			}
		}
		for _, m := range opened.FindAllStringSubmatch(c.command, -1) {
			for _, w := range strings.Fields(m[2]) {
				if asFile.MatchString(w) && !strings.HasPrefix(w, "-") {
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
	sortByPlace(changed)
	sortByPlace(looked)
	return changed, looked
}

// Touched are the files of a session's calls that succeeded.
func Touched(session []byte) (list []string) {
	_, calls, _ := read(session)
	changed, looked := paths(calls)
	for _, p := range append(changed, looked...) {
		list = append(list, p.Text)
	}
	return list
}

var errorWords = regexp.MustCompile(`(?i)error|exception|fail|not found|no such|cannot|could not|denied|refused|timed out|panic|undefined|unknown|invalid`)

// unfixed lists the last failure of each thing that did not succeed later.
func unfixed(calls []call) (out []Probe) {
	state := map[string]Probe{}
	for _, c := range calls {
		if c.resultAt < 0 {
			continue
		}
		delete(state, c.same())
		if !c.failed() {
			continue
		}
		if text := needle(errorLine(c.result)); text != "" {
			state[c.same()] = Probe{LastError, text, c.resultAt}
		}
	}
	for _, p := range state {
		out = append(out, p)
	}
	sortByPlace(out)
	slices.Reverse(out) // of equal texts the last one counts
	seen := map[string]bool{}
	out = slices.DeleteFunc(out, func(p Probe) bool {
		twice := seen[p.Text]
		seen[p.Text] = true
		return twice
	})
	slices.Reverse(out)
	return out
}

// errorLine is the line that says most: of those that name an error the last
// one for a traceback, else the first.
func errorLine(text string) (line string) {
	for l := range strings.Lines(observation(text)) {
		if found := errorWords.MatchString(l) && !exitCode.MatchString(l); found && needle(l) != "" {
			line = l
			if !strings.Contains(text, "Traceback (most") {
				break
			}
		}
	}
	return line
}

// needle cuts a line to what can be looked for; empty if it says too little.
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
	restricts   = regexp.MustCompile(`(?i)\b(?:must|never|always|avoid|make sure|instead of|can only|only use|use only|only (?:change|edit|touch|modify))\b` +
		`|(?:^|[,;:(]\s*|\b(?:please|and|but|just|so)\s+)(?:please\s+)?(?:don['’]?t|do not|keep)\b|^(?:please )?use\b`)
	narrates = regexp.MustCompile(`(?i)\b(?:i|we|they|it|that)\s+(?:really\s+)?(?:only|never|always|must)\b|^\d+:`)
	prose    = regexp.MustCompile(`^[\p{L}\d\s,.;:'’"()/_\x60*#+-]+$`)
)

// constraints lists sentences of the user that restrict the work. Questions,
// reports and pasted output are not.
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
			if n := needle(s); n != "" && !seen[n] && restricts.MatchString(s) && !narrates.MatchString(s) {
				seen[n] = true
				out = append(out, Probe{Constraint, n, i})
			}
		}
	}
	return out
}

// steps lists what the agent says and does at the end.
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

// Text is all the text of a request body, decoded: keys are left out, strings
// that hold JSON themselves (arguments of calls) are there in both forms. Input
// that is no JSON object is returned as it is.
func Text(body []byte) string {
	var v map[string]any
	if json.Unmarshal(body, &v) != nil {
		return string(body)
	}
	var b strings.Builder
	collect(&b, v, 0)
	return b.String()
}

func collect(b *strings.Builder, v any, nested int) {
	switch v := v.(type) {
	case string:
		b.WriteString(v)
		b.WriteByte('\n')
		var inner any
		if s := strings.TrimSpace(v); nested < 4 && s != "" && (s[0] == '{' || s[0] == '[') && json.Unmarshal([]byte(s), &inner) == nil {
			collect(b, inner, nested+1)
		}
	case []any:
		for _, e := range v {
			collect(b, e, nested)
		}
	case map[string]any:
		for _, k := range slices.Sorted(maps.Keys(v)) {
			collect(b, v[k], nested)
		}
	}
}

// Present reports whether a fact is in the text of a request, which is what
// Text returns or a request body. A path counts under a longer folder, but not
// as part of another name.
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
		if p.Kind != Path || !inName(requestText[:start], requestText[end:]) {
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

func inName(before, after string) bool {
	return nameBefore.MatchString(before[max(0, len(before)-2):]) || nameAfter.MatchString(after[:min(2, len(after))])
}
