package annotate

import (
	"cmp"
	"fmt"
	"math"
	"strconv"
	"strings"

	"github.com/rebound-llm/rebound/recovery"
	"github.com/rebound-llm/rebound/recovery/trajectory"
)

// hostForms find hosts in commands and messages, with a port where one stands
// there; user names and passwords are never part of what they find.
var (
	inURL   = recovery.NewPattern(`(?i)\b[a-z][a-z0-9+.-]{1,15}://(?:[^@/\s'"]{0,100}@)?([a-z0-9][\w.-]{0,100}(?::\d{1,5})?)`)
	literal = recovery.NewPattern(`\b((?:\d{1,3}\.){3}\d{1,3}(?::\d{1,5})?|localhost(?::\d{1,5})?)\b`)
	inWords = recovery.NewPattern(`(?i)(?:host(?: ?name)?|address|server|ENOTFOUND|EAI_AGAIN|resolve|connect to|lookup|reach)[:\s'"‘“]+` +
		`([a-z0-9][a-z0-9-]{0,62}(?:\.[a-z0-9-]{1,63}){1,8}(?::\d{1,5})?)`)
	inner    = recovery.NewPattern(`(?i)(?:host(?: ?name)?|lookup|resolve|ENOTFOUND)[: ]+["'‘“]?([a-z][a-z0-9-]{0,62})\b`)
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

// hosts is a message without the pages that it points to.
func hosts(text string) string { return pages.ReplaceAllString(text, "") }

var pages = recovery.NewPattern(`https://\S*(?:docs?|help|learn|support|errors)\S*`)

// bare is a host without its port.
func bare(host string) string {
	host, _, _ = strings.Cut(host, ":")
	return host
}

// host is the one that was not reached, with its port as the call or the message
// states it.
func (s *scene) host() string {
	told, asked := hostIn(s.f.Line), hostIn(s.f.Arguments)
	switch {
	case told == "" && asked == "":
		if m := inner.FindStringSubmatch(s.f.Line); m != nil && m[1] != "to" {
			return m[1]
		}
		return hostIn(hosts(s.content))
	case told == "" || bare(told) == bare(asked) && len(asked) > len(told):
		return asked
	}
	return told
}

// unstarted is what clients say of a service of this machine that does not run.
var unstarted = recovery.NewPattern(`(?i)cannot connect to the (\w+) daemon`)

// ownError is how clients print that a server answered, and with an error of its own.
var ownError = recovery.NewPattern(`(?i)\b(?:HTTP(?: Error|/[\d.]+)?|status(?: ?code)?|error(?: code)?):? ?50\d\b|\b50\d (?:Internal Server|Bad Gateway|Service (?:Temporarily )?Unavailable|Gateway)`)

// answered is the host that did so.
func (s *scene) answered() string {
	if ownError.MatchString(s.f.Line) {
		return s.host()
	}
	return ""
}

// stopped is the service that does not run here.
func (s *scene) stopped() string {
	if m := unstarted.FindStringSubmatch(s.f.Line); m != nil {
		return m[1]
	}
	return ""
}

// unixSocket finds a socket that a client did not reach.
var unixSocket = recovery.NewPattern(`(?i)\b(?:on|through|via|to|at) (?:unix )?socket:? ['"‘]?(/[^\s'"’]{1,200})`)

// socket is the socket at which no server of this machine listens.
func (s *scene) socket() string {
	if m := unixSocket.FindStringSubmatch(s.f.Line); m != nil {
		return m[1]
	}
	return ""
}

// distrust is what is said of certificates that are not trusted.
var distrust = recovery.NewPattern(`(?i)certificate|self[- ]signed|x509|CERT_`)

// untrusted is the host whose certificate is not trusted.
func (s *scene) untrusted() string {
	if distrust.MatchString(s.f.Line) {
		return s.host()
	}
	return ""
}

// hostIf is the host where what it is matches: this machine, a name without a
// dot, or another machine.
func (s *scene) hostIf(local, dotted bool) string {
	host := s.host()
	if loopback.MatchString(host) != local || !local && strings.Contains(host, ".") != dotted {
		return ""
	}
	return quoted(host)
}

// Waits, as limits state them. The words are those of APIs and of HTTP's header.
var (
	waitHeader = recovery.NewPattern(`(?i)\bretry[-_ ]after(?:[-_]?(?:ms|seconds))?["']?\s*[:=]?\s*["']?(\d{1,9}(?:\.\d{1,6})?)\s*(ms|milliseconds?|s|secs?|seconds?|m|mins?|minutes?|h|hours?)?\b`)
	waitWords  = recovery.NewPattern(`(?i)\b(?:(?:try|retry|again|available|resets?|reset)\b[^.\n\d]{0,40}?\b(?:in|after)|` +
		`wait(?:ing)?(?: for| at least)?|retrying in|sleep(?:ing)?(?: for)?)\s+` +
		`(?:about |approximately |another )?(\d{1,9}(?:\.\d{1,6})?)\s*(ms|milliseconds?|s|secs?|seconds?|m|mins?|minutes?|h|hours?)\b`)
	waitInMs = recovery.NewPattern(`(?i)^retry[-_ ]after[-_]?ms`)
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

// vague are waits without a number; lasting is what is said of limits that last for hours.
var (
	vague   = recovery.NewPattern(`(?i)\b(?:a few|a couple of|some|several) (?:seconds|minutes|hours)\b`)
	lasting = recovery.NewPattern(`(?i)pull rate limit|per (?:day|month)|daily|monthly|quota`)
)

// lasts is the service whose limit will not end soon.
func (s *scene) lasts() string {
	if s.wait() == 0 && lasting.MatchString(s.f.Line) {
		return cmp.Or(quoted(s.host()), "the service")
	}
	return ""
}

// waitSaid is the wait in words.
func (s *scene) waitSaid() string {
	switch n := s.wait(); n {
	case 0:
		return vague.FindString(s.f.Line)
	case 1:
		return "1 second"
	default:
		return fmt.Sprintf("%d seconds", n)
	}
}

// sleep is a command that waits so long, where there is a shell and it is not too long for one.
func (s *scene) sleep() string {
	if n := s.wait(); n > 0 && n <= 120 && s.uses&trajectory.UseShell != 0 {
		return fmt.Sprintf("`sleep %d`", n)
	}
	return ""
}
