package annotate

import (
	"cmp"
	"strings"

	"github.com/tidwall/gjson"

	"github.com/rebound-llm/rebound/recovery"
	"github.com/rebound-llm/rebound/recovery/trajectory"
)

var (
	timeNames  = recovery.NewPattern(`(?i)time_?out|max_?(?:time|duration|wait)|deadline|yield_time`)
	limitWords = recovery.NewPattern(`(?i)(?:timed? ?out|time-?out|deadline|time limit|exceeded)[^\n\d]{0,40}?(\d{1,9}(?:\.\d{1,3})?) ?(ms|milliseconds?|s|secs?|seconds?|m|mins?|minutes?)\b`)
)

// own is the failing tool's parameter with a name of that form.
func (s *scene) own(form *recovery.Pattern) string {
	def, _ := s.definition(s.f.Tool)
	for _, p := range def.Params {
		if form.MatchString(p.Name) {
			return p.Name
		}
	}
	return ""
}

// longer is the failing tool's parameter for its time limit, where it was the tool that stopped.
func (s *scene) longer() string {
	if s.made.Line() != "" && s.silent() != "" {
		return ""
	}
	return s.own(timeNames)
}

// limit is the time limit that was exceeded, as the call or the message states it.
func (s *scene) limit() string {
	if p := s.own(timeNames); p != "" {
		if v := s.args.Get(gjson.Escape(p)); v.Type == gjson.Number {
			return v.Raw
		}
	}
	for _, text := range [...]string{s.f.Line, s.content} {
		if m := limitWords.FindStringSubmatch(text); m != nil {
			return m[1] + " " + m[2]
		}
	}
	return ""
}

// smaller are runs that do less, by how a command begins.
var smaller = [...][2]string{
	{"pytest", "`pytest path/to/test_one.py -x -q`"}, {"python3 -m pytest", "`python3 -m pytest path/to/test_one.py -x -q`"}, {"go test", "`go test ./one/package -run TestName`"},
	{"cargo test", "`cargo test name_of_one_test`"}, {"npm test", "one test file"}, {"jest", "`jest path/to/one.test.js`"}, {"vitest", "`vitest run path/to/one.test.ts`"},
	{"find", "`find ONE/DIRECTORY -maxdepth 3 -name PATTERN`"}, {"grep", "`grep -rn PATTERN ONE/DIRECTORY --include=*.EXT`"}, {"rg", "`rg PATTERN ONE/DIRECTORY`"},
	{"git clone", "`git clone --depth 1`"},
}

// smallerRun is a run of the same program that does less.
func (s *scene) smallerRun() string {
	program := s.program()
	for _, v := range s.parts {
		words := strings.Join(v.Words, " ")
		at := strings.Index(words, program)
		for _, run := range smaller {
			if at >= 0 && (words[at:] == run[0] || strings.HasPrefix(words[at:], run[0]+" ")) {
				return run[1]
			}
		}
	}
	return ""
}

// onPage reports whether a tool works on a page in a browser.
func onPage(t trajectory.Tool) bool {
	if trajectory.AnyOf(trajectory.NameWords(t.Name), []string{"browser", "page", "playwright", "puppeteer", "click", "element", "navigate", "snapshot"}) {
		return true
	}
	for _, p := range t.Params {
		if p.Name == "selector" || p.Name == "locator" || p.Name == "xpath" {
			return true
		}
	}
	return false
}

// elements are what only messages about pages speak of.
var elements = recovery.NewPattern(`(?i)\b(?:element|selector|locator|page)\b`)

// tired is what clients say themselves of hosts that did not answer in time.
var tired = recovery.NewPattern(`(?i)^(?:curl: \(28\)|ssh: )|(?:connection|read|connect) (?:timed out|time-?out)|ETIMEDOUT|\bread operation timed out`)

// silent is a host that did not answer in time.
func (s *scene) silent() string {
	if s.made.Line() != "" && tired.MatchString(s.f.Line) {
		return cmp.Or(hostIn(s.f.Line), hostIn(s.made.Line()))
	}
	if h := hostIn(s.f.Line); h != "" {
		return h
	}
	return hostIn(s.args.Get("url").String())
}

// waited is what programs say that wait for something else.
var waited = recovery.NewPattern(`(?i)timed out waiting for (?:the )?(condition|rollout|resource|deployment|pod|job|lock|healthy)`)

// awaited is what did not come about.
func (s *scene) awaited() string {
	if m := waited.FindStringSubmatch(s.f.Line); m != nil {
		return m[1]
	}
	return ""
}

// remote is the failing tool, where it asks another system and works on no files.
func (s *scene) remote() string {
	if s.made.Line() != "" || s.usedFor(s.f.Tool, working) || s.args.Get("sql").Exists() || s.args.Get("query").Exists() || s.page() != "" {
		return ""
	}
	return s.f.Tool
}

// page is the failing tool, where it works on what a page shows.
func (s *scene) page() string {
	def, _ := s.definition(s.f.Tool)
	if s.made.Line() != "" || !onPage(def) && !elements.MatchString(s.f.Line) || s.args.Get("url").Exists() {
		return ""
	}
	return s.f.Tool
}

// showsPage is an offered tool that shows such a page.
func (s *scene) showsPage() string {
	for _, t := range s.tools {
		if t.Name != s.f.Tool && s.page() != "" && onPage(t) && trajectory.AnyOf(trajectory.NameWords(t.Name), []string{"snapshot", "screenshot", "observe", "content", "text", "html", "view", "state"}) {
			return t.Name
		}
	}
	return ""
}
