package annotate

import (
	"strings"

	"github.com/rebound-llm/rebound/recovery"
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
	{recovery.NewPattern(`(?i)permission denied \((?:publickey|password|keyboard)`), "", "ssh -T git@"}, // and the host
	{recovery.NewPattern(`(?i)^(?:remote|fatal): .*(?:denied|authenticat|not authorized|403)`), "", "git remote -v"},
	{recovery.NewPattern(`(?i)access denied for user|permission denied for (?:table|schema|database|relation|sequence)|role ".{0,60}" (?:does not|is not)|not authorized on \w+ to execute`), "the database", ""},
	{recovery.NewPattern(`(?i)\b40[13]\b|not authorized to perform|insufficient (?:permissions?|privileges|scopes?)|unauthorized|forbidden`), "", ""},
}

// remoteHost is the host that a refusal over SSH names.
var remoteHost = recovery.NewPattern(`(?:[\w.-]{1,64}@)?([a-z0-9][\w-]{0,62}(?:\.[\w-]{1,62}){1,6}):? `)

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
		whoami = r.whoami
		if who = r.who; who == "" {
			host := hostIn(s.f.Arguments)
			if m := remoteHost.FindStringSubmatch(s.f.Line); m != nil {
				host = m[1]
			} else if host == "" {
				host = s.host()
			}
			if strings.HasSuffix(whoami, "@") {
				whoami += host
			}
			if who = quoted(host); who == "" {
				who, whoami = "the service", ""
			}
		}
		if s.kinds&Shell == 0 {
			whoami = ""
		}
		return who, whoami
	}
	return "", ""
}

// isFile reports whether what a refusal names can be a path: no address and no account.
func isFile(name string) bool {
	return !strings.Contains(name, "://") && !strings.Contains(name, "%2F") && !strings.Contains(name, "@")
}
