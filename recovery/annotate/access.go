package annotate

import (
	"cmp"
	"path"
	"strconv"
	"strings"

	"github.com/rebound-llm/rebound/recovery"
	"github.com/rebound-llm/rebound/recovery/trajectory"
)

// refusers are services that refuse an account and not a file, by what their
// refusals say, and the command that shows which account they saw.
var refusers = [...]struct {
	says   *recovery.Pattern
	who    string // "" is the host in the message
	whoami string
}{
	{recovery.NewPattern(`(?i)docker(?: daemon)?(?: socket|\.sock)|docker API`), "Docker", "id"},
	{recovery.NewPattern(`(?i)^Error from server \(Forbidden\)|cannot (?:get|list|watch|create|delete|patch|update) resource`), "the cluster", "kubectl auth whoami"},
	{recovery.NewPattern(`(?i)arn:aws|when calling the \w+ operation|\(AccessDenied\)`), "AWS", "aws sts get-caller-identity"},
	{recovery.NewPattern(`(?i)googleapis|gcloud|iam\.gserviceaccount|does not have [\w.]+ access to`), "Google Cloud", "gcloud auth list"},
	{recovery.NewPattern(`(?i)AuthorizationFailed|azure|az login`), "Azure", "az account show"},
	{recovery.NewPattern(`(?i)\bGraphQL:|gh auth|api\.github\.com|Resource not accessible by`), "GitHub", "gh auth status"},
	{recovery.NewPattern(`(?i)^npm err.{0,20}\b(?:E40[13]|40[13])\b`), "the npm registry", "npm whoami"},
	{recovery.NewPattern(`(?i)permission denied \((?:publickey|password|keyboard)`), "", "ssh -T git@"}, // and the host
	{recovery.NewPattern(`(?i)^(?:remote|fatal): .*(?:denied|authenticat|not authorized|403)`), "", "git remote -v"},
	{recovery.NewPattern(`(?i)access denied for user|permission denied for (?:table|schema|database|relation|sequence)|` +
		`role ".{0,60}" (?:does not|is not)|not authorized on \w+ to execute`), "the database", ""},
	{recovery.NewPattern(`(?i)\b40[13]\b|not authorized to perform|insufficient (?:permissions?|privileges|scopes?)|unauthorized|forbidden|` +
		`\b(?:authentication|authorization|log-?in) (?:is )?required|\bNOAUTH\b|credentials`), "", ""},
}

// refusal is how clients print the answer of a service, on a line of its own.
var refusal = recovery.NewPattern(`(?mi)^\s*(?:HTTP/[\d.]+ 40[13]\b|(?:status|code|status ?code|http status): ?40[13]\b)`)

// remoteHost is the host that a refusal over SSH names.
var remoteHost = recovery.NewPattern(`(?:[\w.-]{1,64}@)?([a-z0-9][\w-]{0,62}(?:\.[\w-]{1,62}){1,6}): `)

// refuser is the service that refused, and the command that shows which account
// it saw. Both are empty where the refusal is about files.
func (s *scene) refuser() (who, whoami string) {
	if s.f.Category != recovery.PermissionDenied {
		return "", ""
	}
	for _, r := range refusers {
		if !r.says.MatchString(s.f.Line) {
			continue
		}
		if who, whoami = r.who, r.whoami; who == "" {
			host := hostIn(s.f.Arguments)
			if m := remoteHost.FindStringSubmatch(s.f.Line); m != nil {
				host = m[1]
			} else if host == "" {
				host = s.host()
			}
			if strings.HasSuffix(whoami, "@") {
				if whoami += host; !strings.Contains(s.f.Line+s.f.Arguments, "git@") {
					whoami = "" // another user than git has a shell there
				}
			}
			if who = quoted(host); who == "" {
				who, whoami = "the service", ""
			}
		}
		if s.uses&trajectory.UseShell == 0 {
			whoami = ""
		}
		return who, whoami
	}
	if refusal.MatchString(s.content) && plainPath(s.f.Line) == "" {
		if who = quoted(cmp.Or(hostIn(s.f.Arguments), s.host())); who == "" {
			who = "the service"
		}
		return who, ""
	}
	if s.f.Tool != "" && s.made.Line() == "" && !s.usedFor(s.f.Tool, working) { // it has nothing to do with files
		return "the service", ""
	}
	return "", ""
}

// confines is what servers say that allow only some directories.
var confines = recovery.NewPattern(`(?i)outside (?:of )?(?:the )?(?:allowed|permitted|workspace|project)|not (?:within|in) (?:the )?(?:allowed|permitted|workspace)`)

// amongPlaces is where such a server says which.
var amongPlaces = recovery.NewPattern(`(?i)\bnot (?:with)?in:? ?\[?((?:/|~/|[a-z]:\\)[^\s,\]]{0,200}(?:, ?(?:/|~/|[a-z]:\\)[^\s,\]]{0,200}){0,3})`)

// openPlaces is the directories that the message says are allowed.
func (s *scene) openPlaces() string {
	if m := amongPlaces.FindStringSubmatch(s.f.Line); m != nil && confines.MatchString(s.f.Line) {
		return strings.TrimRight(m[1], ".")
	}
	return ""
}

// lowPort finds a port that only some users may listen on.
var lowPort = recovery.NewPattern(`(?i)(?:bind|listen)\b.{0,80}?:(\d{2,3})\b.{0,60}(?:permission denied|EACCES)|(?:permission denied|EACCES).{0,40}:(\d{2,3})\b`)

// port is the one that needs rights which the user does not have.
func (s *scene) port() string {
	if m := lowPort.FindStringSubmatch(s.f.Line); m != nil {
		return m[1] + m[2]
	}
	if strings.Contains(s.content, "bind(") {
		for _, v := range s.parts {
			for _, w := range v.Words {
				if n, err := strconv.Atoi(w); err == nil && n > 0 && n < 1024 {
					return w
				}
			}
		}
	}
	return ""
}

// superuser is what is said of what only some users may do.
var superuser = recovery.NewPattern(`(?i)are you root|(?:must be|run(?:ning)?|only|be) (?:as )?(?:the )?(?:root|superuser)|root privileges|operation not permitted`)

// privileged is the program that needs such rights.
func (s *scene) privileged() string {
	if !superuser.MatchString(s.f.Line + "\n" + s.content) {
		return ""
	}
	for _, v := range s.parts {
		if p := v.Runs(); hasWord(s.f.Line, p) || strings.HasPrefix(p, "apt") || len(s.parts) == 1 && s.failedPath() == "" {
			return p
		}
	}
	return ""
}

// outside is the path that was refused, where it is not below the working directory.
func (s *scene) outside() string {
	if p, dir := s.failedPath(), s.cwd(); absolute(p) && (dir == "" || !strings.HasPrefix(p, dir+"/")) {
		return p
	}
	return ""
}

// fixed is what systems say of places that nobody may write to.
var fixed = recovery.NewPattern(`(?i)read-only file ?system|EROFS`)

// readOnly is the path that failed, where nobody may write to it.
func (s *scene) readOnly() string {
	if fixed.MatchString(s.f.Line) {
		return s.failedPath()
	}
	return ""
}

// interpreters run scripts that are not executable.
var interpreters = map[string]string{".sh": "bash", ".bash": "bash", ".py": "python3", ".js": "node", ".mjs": "node", ".cjs": "node", ".rb": "ruby", ".pl": "perl", ".php": "php", ".lua": "lua",
	"gradlew": "sh", "mvnw": "sh", "configure": "sh"}

// interpreted is the command that runs the script whose execution was refused.
func (s *scene) interpreted() string {
	for _, v := range s.parts {
		with := cmp.Or(interpreters[path.Ext(v.Program)], interpreters[v.Program])
		if with == "" || !strings.Contains(v.Words[0], "/") || !strings.Contains(s.f.Line, v.Words[0]) {
			continue
		}
		if command := with + " " + v.Text; len(command) <= maxQuoted && s.permitted(command) {
			return command
		}
	}
	return ""
}
