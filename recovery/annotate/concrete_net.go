package annotate

import (
	"fmt"
	"math"
	"strconv"
	"strings"

	"github.com/tidwall/gjson"

	"github.com/rebound-llm/rebound/recovery"
	"github.com/rebound-llm/rebound/recovery/trajectory"
	"github.com/rebound-llm/rebound/recovery/transcript"
)

// hostForms find hosts in commands and messages; user names and passwords are
// never part of what they find.
var (
	inURL    = recovery.NewPattern(`(?i)\b[a-z][a-z0-9+.-]{1,15}://(?:[^@/\s'"]{0,100}@)?([a-z0-9][\w.-]{0,100}(?::\d{1,5})?)`)
	literal  = recovery.NewPattern(`\b((?:\d{1,3}\.){3}\d{1,3}(?::\d{1,5})?|localhost(?::\d{1,5})?)\b`)
	inWords  = recovery.NewPattern(`(?i)(?:host(?:name)?|address|server|ENOTFOUND|EAI_AGAIN|resolve|connect to|lookup|reach)[:\s'"‘“]+([a-z0-9][a-z0-9-]{0,62}(?:\.[a-z0-9-]{1,63}){1,8}(?::\d{1,5})?)`)
	loopback = recovery.NewPattern(`^(?:127\.|localhost\b|0\.0\.0\.0)`)
)

func hostIn(text string) string {
	for _, re := range [...]*recovery.Pattern{inURL, literal, inWords} {
		if m := re.FindStringSubmatch(text); m != nil {
			return strings.TrimRight(m[1], ".-")
		}
	}
	return ""
}

// host is the one that was not reached.
func (s *scene) host() string {
	if h := hostIn(s.f.Line); h != "" {
		return h
	}
	return hostIn(s.f.Arguments)
}

func (s *scene) networkValue(name slot) string {
	host := s.host()
	if host == "" {
		return ""
	}
	bare, _, _ := strings.Cut(host, ":")
	switch name {
	case slotHost:
		return quoted(host)
	case slotLocal:
		if loopback.MatchString(host) {
			return quoted(host)
		}
		return ""
	case slotRemote:
		if loopback.MatchString(host) {
			return ""
		}
		return quoted(host)
	}
	found, needle := "", bare
	if name == slotOtherHost {
		needle = "://"
	}
	s.calls(needle, func(c call) bool {
		m := inURL.FindStringSubmatch(c.args)
		if m == nil || loopback.MatchString(m[1]) {
			return true
		}
		own, _, _ := strings.Cut(m[1], ":")
		switch {
		case name == slotOtherHost && own != bare && s.worked(c):
			found = m[1]
		case name == slotCached && own == bare && s.worked(c):
			if found = c.command; found == "" {
				found = c.tool + " " + c.args
			}
			if !s.permitted(found) {
				found = ""
			}
		}
		return found == ""
	})
	return quoted(found)
}

// Waits, as limits state them. The words are those of APIs and of HTTP's header.
var (
	waitHeader = recovery.NewPattern(`(?i)\bretry[-_ ]after(?:[-_]?(?:ms|seconds))?["']?\s*[:=]?\s*["']?(\d{1,9}(?:\.\d{1,6})?)\s*(ms|milliseconds?|s|secs?|seconds?|m|mins?|minutes?|h|hours?)?\b`)
	waitWords  = recovery.NewPattern(`(?i)\b(?:(?:try|retry|again|available|resets?|reset)\b[^.\n\d]{0,40}?\b(?:in|after)|wait(?:ing)?(?: for| at least)?|retrying in|sleep(?:ing)?(?: for)?)\s+(?:about |approximately |another )?(\d{1,9}(?:\.\d{1,6})?)\s*(ms|milliseconds?|s|secs?|seconds?|m|mins?|minutes?|h|hours?)\b`)
	waitInMs   = recovery.NewPattern(`(?i)^retry[-_ ]after[-_]?ms`)
)

// maxWait is the longest wait that an agent is told to keep, in seconds.
const maxWait = 3600

// wait is how long the limit says to wait, in whole seconds; 0 if it does not
// say, or more than an agent could keep.
func (s *scene) wait() int {
	for _, text := range [...]string{s.f.Line, s.content} {
		for _, re := range [...]*recovery.Pattern{waitHeader, waitWords} {
			m := re.FindStringSubmatch(text)
			if m == nil {
				continue
			}
			unit := m[2]
			if unit == "" && waitInMs.MatchString(m[0]) {
				unit = "ms"
			}
			if n := seconds(m[1], unit); n > 0 && n <= maxWait {
				return n
			}
		}
	}
	return 0
}

// seconds rounds a wait up.
func seconds(number, unit string) int {
	n, err := strconv.ParseFloat(number, 64)
	if err != nil {
		return 0
	}
	switch u := strings.ToLower(unit); {
	case strings.HasPrefix(u, "ms"), strings.HasPrefix(u, "milli"):
		n /= 1000
	case strings.HasPrefix(u, "m"):
		n *= 60
	case strings.HasPrefix(u, "h"):
		n *= 3600
	}
	return int(math.Ceil(min(n, 1e9)))
}

func (s *scene) waitValue(name slot) string {
	n := s.wait()
	switch {
	case n == 0:
		return ""
	case name == slotSleep && (s.kinds&Shell == 0 || n > 120):
		return ""
	case name == slotSleep:
		return fmt.Sprintf("`sleep %d`", n)
	case n == 1:
		return "1 second"
	}
	return fmt.Sprintf("%d seconds", n)
}

var (
	timeNames       = recovery.NewPattern(`(?i)time_?out|max_?(?:time|duration|wait)|deadline|yield_time`)
	backgroundNames = recovery.NewPattern(`(?i)background|detach|^async$|is_?async`)
	limitWords      = recovery.NewPattern(`(?i)(?:timed? ?out|time-?out|deadline|time limit|exceeded)[^\n\d]{0,40}?(\d{1,9}(?:\.\d{1,3})?) ?(ms|milliseconds?|s|secs?|seconds?|m|mins?|minutes?)\b`)
)

// smaller are runs that do less, by program; commands stand in backticks.
var smaller = map[string]string{
	"pytest": "`pytest path/to/test_one.py -x -q`", "python -m pytest": "`python3 -m pytest path/to/test_one.py -x -q`", "go": "`go test ./one/package -run TestName`",
	"cargo": "`cargo test name_of_one_test`", "npm": "one test file or one package of the workspace", "yarn": "one test file or one package of the workspace",
	"pnpm": "one test file or one package of the workspace", "npx": "one test file", "jest": "`jest path/to/one.test.js`", "vitest": "`vitest run path/to/one.test.ts`",
	"make": "one target of make", "gradle": "`gradle :module:test --tests Name`", "gradlew": "`./gradlew :module:test --tests Name`", "mvn": "`mvn -pl module -Dtest=Name test`",
	"find": "`find ONE/DIRECTORY -maxdepth 3 -name PATTERN`", "grep": "`grep -rn PATTERN ONE/DIRECTORY --include=*.EXT`", "rg": "`rg PATTERN ONE/DIRECTORY`",
	"du": "`du -d 1 ONE/DIRECTORY`", "ls": "`ls ONE/DIRECTORY`", "git": "`--depth 1`, or one path", "docker": "one `--target` of the build", "tar": "one directory",
	"tsc": "`tsc --noEmit -p ONE/PACKAGE`", "eslint": "`eslint ONE/FILE`",
}

// onPage reports whether a tool works on a page in a browser.
func onPage(t transcript.Tool) bool {
	if anyOf(trajectory.NameWords(t.Name), "browser", "page", "playwright", "puppeteer", "click", "element", "navigate") {
		return true
	}
	for _, p := range parameters(t) {
		if p.name == "selector" || p.name == "locator" || p.name == "xpath" {
			return true
		}
	}
	return false
}

// look is an offered tool that shows a page in a browser.
func (s *scene) look() string {
	for _, t := range s.tools {
		if t.Name != s.f.Tool && onPage(t) && anyOf(trajectory.NameWords(t.Name), "snapshot", "screenshot", "observe", "content", "text", "html", "view", "state") {
			return t.Name
		}
	}
	return ""
}

func (s *scene) timeoutValue(name slot) string {
	def, _ := s.definition(s.f.Tool)
	own := func(re *recovery.Pattern) string {
		for _, p := range parameters(def) {
			if re.MatchString(p.name) {
				return p.name
			}
		}
		return ""
	}
	switch name {
	case slotTimeoutParameter:
		return quoted(own(timeNames))
	case slotBackground:
		return quoted(own(backgroundNames))
	case slotSmaller:
		return smaller[s.program()]
	case slotPage:
		if s.command == "" && onPage(def) {
			return quoted(s.f.Tool)
		}
		return ""
	case slotLook:
		if s.command == "" && onPage(def) {
			return quoted(s.look())
		}
		return ""
	}
	if p := own(timeNames); p != "" {
		if v := field(s.args, p); v != nil && v.Type == gjson.Number {
			return quoted(v.Raw)
		}
	}
	for _, text := range [...]string{s.f.Line, s.content} {
		if m := limitWords.FindStringSubmatch(text); m != nil {
			return quoted(m[1] + " " + m[2])
		}
	}
	return ""
}
