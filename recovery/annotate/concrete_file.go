package annotate

import (
	"cmp"
	"path"
	"slices"
	"strings"

	"github.com/rebound-llm/rebound/recovery"
	"github.com/rebound-llm/rebound/recovery/trajectory"
)

// sights are what the conversation knows about a path that failed.
type sights struct {
	found   []string // the same last element elsewhere, the best first
	spelled string   // in other capitals
	similar string   // the closest other name
}

// inQuotes is what a message puts between quotes; an apostrophe opens none.
var inQuotes = recovery.NewPattern(`(?:^|[^\pL\d])(?:'([^'\n]{1,300})'|"([^"\n]{1,300})"|‘([^’\n]{1,300})’|“([^”\n]{1,300})”|\x60([^\x60'\n]{1,300})[\x60'])`)

// shellHead is what a shell puts before its messages.
var shellHead = recovery.NewPattern(`^(?:\S*/)?-?(?:ba|z|da|k|a|fi)?sh(?:: line \d+|:\d+|: \d+)?: (?:(?:cd|source|\.|exec): )?`)

// failedPath is the path that the message is about, "" if it names none.
func (s *scene) failedPath() string {
	if who, _ := s.refuser(); who != "" {
		return ""
	}
	if p := s.namedPath(); isFile(p) {
		return p
	}
	return ""
}

// namedPath is what the message, or else the call, names like a path.
func (s *scene) namedPath() string {
	if s.command == "" {
		if p := argument(s.f.Arguments, pathParameters[:]...); p != "" {
			return p
		}
	}
	line := shellHead.ReplaceAllString(s.f.Line, "")
	programs := map[string]bool{}
	for _, v := range invocations(s.command) {
		programs[v.program] = true
	}
	best, named := "", ""
	for _, m := range inQuotes.FindAllStringSubmatch(line, 16) {
		for _, g := range m[1:] {
			if g == "" || strings.Contains(g, " ") && !strings.Contains(s.command, g) {
				continue
			}
			if best == "" || strings.ContainsAny(g, `/\.`) || strings.Contains(s.command, g) {
				best = g
			}
		}
	}
	if best != "" {
		return strings.TrimPrefix(best, "file://")
	}
	for i := 0; i < len(line); i++ {
		if !isPath(line[i]) && line[i] != '*' {
			continue
		}
		end := i
		for end < len(line) && (isPath(line[end]) || line[end] == '*') {
			end++
		}
		t := trimmed(line[i:end])
		used := hasWord(s.command, t) || strings.Contains(s.command, t) && strings.ContainsAny(t, "/.")
		switch {
		case len(t) < 2 || strings.HasPrefix(t, "//") || programs[base(t)] && !used:
		case used && (!programs[t] || strings.Contains(t, "/")):
			best = t
		case best == "" && strings.Contains(t, "/") && (t[0] == '/' || t[0] == '.' || t[0] == '~' || strings.Contains(base(t), ".")):
			best = t
		case best == "" && fileName.MatchString(t):
			named = t
		}
		i = end
	}
	if best != "" || named != "" {
		return cmp.Or(best, named)
	}
	if files, _ := s.written(call{tool: s.f.Tool, args: s.f.Arguments, command: s.command}); len(files) > 0 && s.f.Category != recovery.FileNotFound {
		return files[len(files)-1] // what could not be written
	}
	return ""
}

// fileName is a word that looks like a file's name.
var fileName = recovery.NewPattern(`^[\w.-]{1,80}\.[A-Za-z][A-Za-z0-9]{0,5}$`)

// start is the directory from which a failing relative path was meant.
func (s *scene) start() string {
	dir := ""
	for _, v := range invocations(s.command) {
		if args := v.operands(); v.program == "cd" && len(args) == 1 {
			if args[0] == s.failedPath() {
				break // it did not get there
			}
			dir = join(dir, args[0])
		}
	}
	return join(s.cwd(), dir)
}

// locate looks for the path that failed in what the conversation showed.
func (s *scene) locate() *sights {
	if s.seen != nil {
		return s.seen
	}
	s.seen = &sights{}
	want := s.failedPath()
	name := base(trimmed(want))
	if len(name) < 2 || len(name) > 200 {
		return s.seen
	}
	wanted := join(s.start(), want)
	type candidate struct {
		full  string
		score int
	}
	var list []candidate
	s.mentions(name, func(full string) bool {
		full = clean(full)
		if full == clean(want) || join(s.cwd(), full) == wanted || slices.ContainsFunc(list, func(c candidate) bool { return c.full == full || strings.HasSuffix(c.full, "/"+full) }) {
			return true
		}
		list = append(list, candidate{full, common(full, want)})
		return len(list) < 24
	})
	slices.SortStableFunc(list, func(a, b candidate) int { return b.score - a.score })
	for _, c := range list {
		if len(s.seen.found) < 3 && c.score == list[0].score {
			s.seen.found = append(s.seen.found, join(s.shown(c.full), c.full))
		}
	}
	if len(s.seen.found) == 0 {
		s.resemble(name, want, wanted)
	}
	return s.seen
}

// shown is the directory to put before a relative path: the working directory,
// where the agent used an absolute path.
func (s *scene) shown(full string) string {
	if absolute(full) || !absolute(s.failedPath()) {
		return ""
	}
	return s.cwd()
}

// common is how many elements two paths have in common at their ends.
func common(a, b string) int {
	x, y := strings.FieldsFunc(a, slash), strings.FieldsFunc(b, slash)
	n := 0
	for n < len(x) && n < len(y) && x[len(x)-1-n] == y[len(y)-1-n] {
		n++
	}
	return n
}

func slash(r rune) bool { return r == '/' || r == '\\' }

// maxResembling bounds the text in which similar names are looked for, in bytes.
const maxResembling = 192 << 10

// resemble looks for the same name in other capitals, and for the closest one.
func (s *scene) resemble(name, want, wanted string) {
	least := trajectory.Slips(name) + 1
	if ext := path.Ext(name); len(name)-len(ext) < 3 {
		least = 1 // too short: everything is close
	}
	budget := maxResembling
	s.results("", func(i int, text string) bool {
		text = text[:min(len(text), budget)]
		budget -= len(text)
		var w where
		known := false
		for at := 0; at < len(text); at++ {
			if !isPath(text[at]) {
				continue
			}
			end := at
			for end < len(text) && isPath(text[end]) {
				end++
			}
			t := trimmed(text[at:end])
			from := at
			at = end
			last := base(t)
			if d := len(last) - len(name); d > 3 || d < -3 || len(last) < 2 {
				continue
			}
			folded := strings.EqualFold(last, name)
			if !folded && (least == 1 || last[0]|0x20 != name[0]|0x20 && last[len(last)-1] != name[len(name)-1]) {
				continue
			}
			d := 0
			if !folded {
				if d = trajectory.Distance(name, last, least-1); d >= least || d == 0 {
					continue
				}
			} else if last == name {
				continue
			}
			line := lineAt(text, from)
			if denies(line) || strings.HasPrefix(t, "//") || partial(text, from, end) {
				continue
			}
			if !known {
				w, known = s.whereOf(i), true
			}
			full, ok := w.resolved(t)
			if !ok || join(s.cwd(), full) == wanted || !strings.Contains(full, ".") && !strings.Contains(full, "/") && !w.listing {
				continue
			}
			if full = join(s.shown(clean(full)), clean(full)); folded {
				s.seen.spelled = full
				return false
			}
			s.seen.similar, least = full, d
		}
		return budget > 0
	})
}

func (s *scene) fileValue(name slot) string {
	p := s.failedPath()
	if p == "" {
		return ""
	}
	switch name {
	case slotPath:
		return quoted(p)
	case slotName:
		return quoted(base(trimmed(p)))
	case slotParent:
		if dir := path.Dir(p); dir != "." && !strings.Contains(p, `\`) {
			return quoted(dir)
		}
		return quoted(s.start())
	case slotFound:
		return listed(s.locate().found, 3, "or")
	case slotLost:
		if at := s.locate(); len(at.found) > 0 || at.spelled != "" {
			return ""
		}
		return quoted(base(trimmed(p)))
	case slotSought:
		if name := base(trimmed(p)); s.soughtInVain(name) {
			return quoted(name)
		}
		return ""
	case slotSpelled:
		return quoted(s.locate().spelled)
	}
	return quoted(s.locate().similar)
}

// nothingFound is what searches say of nothing.
var nothingFound = recovery.NewPattern(`(?i)^\W*(?:no (?:files?|match(?:es)?|results?|output)\b.{0,60}|0 (?:files?|match(?:es)?|results?)\b.{0,40}|\(no output\)|\(empty\)|nothing (?:was )?found.{0,40}|(?:\[\]|\{\})|(?:command )?exit(?:ed)?(?: with)? code:? [01])?\W*$`)

// soughtInVain reports whether a search for a name found nothing before.
func (s *scene) soughtInVain(name string) (vain bool) {
	if len(name) < 3 {
		return false
	}
	s.calls(name, func(c call) bool {
		t, _ := s.definition(c.tool)
		searches := c.command == "" && Kinds(t)&(Search|List) != 0
		for _, v := range invocations(c.command) {
			searches = searches || lister[v.program]
		}
		if searches && c.answer >= 0 && strings.Contains(c.args+c.command, name) {
			text := s.list[c.answer].Text()
			vain = len(text) < 200 && nothingFound.MatchString(strings.TrimSpace(text))
			return false
		}
		return true
	})
	return vain
}
