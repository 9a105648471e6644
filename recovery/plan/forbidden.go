package plan

import (
	"net/url"
	"slices"
	"strings"

	"github.com/tidwall/gjson"

	"github.com/rebound-llm/rebound/recovery"
	"github.com/rebound-llm/rebound/recovery/trajectory"
	"github.com/rebound-llm/rebound/recovery/transcript"
)

// A planner reads tool output, so tool output can inject a plan. These rules list what no plan may contain:
//
//   - the path of a secret, in any text or call, reading included;
//   - a command that shows the environment, decodes what it runs, or hides a file's name;
//   - a call that sends something to someone, with parameters from the planner;
//   - a host that appears only in tool output: see hosts.go.
var (
	// secretPath matches files that hold keys and passwords, and the folders of programs that store them.
	secretPath = recovery.NewPattern(`(?i)(?:^|[^\w.-])(?:` +
		`\.(?:ssh|gnupg|aws|azure|kube|docker|netrc|pgpass|npmrc|pypirc|git-credentials|htpasswd|vault-token|password-store|boto|s3cfg|my\.cnf|config/gcloud|config/gh)` +
		`|id_(?:rsa|dsa|ecdsa|ed25519)|\.?[\w.-]*_history` +
		`|[\w.-]*(?:secrets?|credentials?|passwords?|service[-_]account[\w-]*)\.(?:json|ya?ml|toml|env|txt|ini|conf|csv|xml|properties|enc)` +
		`|credentials|secrets?/[^\s]+|etc/(?:shadow|gshadow|sudoers|master\.passwd)|proc/[^/\s]+/environ` +
		`|[\w.*-]+\.(?:pem|p12|pfx|jks|keystore|kdbx|ppk|tfstate|tfvars)` +
		`|login\.keychain[\w-]*|cookies\.sqlite|logins\.json|Login Data` +
		`)(?:$|[^\w-])`)
	// envFile matches settings files; examples of such files contain no secrets.
	envFile = recovery.NewPattern(`(?i)(?:^|[^\w])[\w-]*\.env(?:rc\b|[.-][\w.-]*|\b)`)

	showsEnvironment = recovery.NewPattern(`(?i)(?:^|[\s;|&(` + "`" + `/])(?:printenv\b|(?:env(?:\s+-\S*)*|set|(?:export|declare|typeset)(?:\s+-[px]+)?)\s*(?:$|[;|&)<>\n` + "`" + `]))|` +
		`\bos\.environ|\bgetenv\b|\bSystem\.getenv|\bENV\s*[.\[]|Get-ChildItem\s+env:|\$env:|\bcompgen\b`)
	decodes = recovery.NewPattern(`(?i)\bbase(?:16|32|58|64)\b|\bxxd\b|\buudecode\b|b(?:16|32|64|85)_?decode|fromhex|unhexlify|\batob\b|fromcharcode|\bopenssl\s+enc\b|\bcodecs\.decode|` +
		`\\x[0-9a-f]{2}|\\[0-7]{3}|\beval\b|\|&?\s*(?:\S*/)?(?:(?:ba|z|da|k|a|c|fi)?sh|source)\b|\|&?\s*(?:\S*/)?(?:python[\d.]*|perl|ruby|node|php)\s*(?:$|[-;|&)])|/dev/(?:tcp|udp)/`)
	// hidden matches names with a leading dot in which a shell expands a part.
	hidden = recovery.NewPattern(`/\.[^/\s]*[*?\[{$` + "`" + `]|(?:^|\s)\.[A-Za-z][^/\s]*[*?\[{$` + "`" + `]`)
)

// examples are endings of settings files that are published as examples.
var examples = []string{"example", "examples", "sample", "template", "tmpl", "dist", "defaults"}

// unquote removes the characters that a shell removes from a word.
var unquote = strings.NewReplacer(`"`, "", `'`, "", `\`, "")

// hidesNoSecret reports whether a text names no secret file, also after a shell removes quotes, after URL
// decoding, and with Windows separators.
func hidesNoSecret(text string) bool {
	spellings := []string{text, unquote.Replace(text), strings.ReplaceAll(text, `\`, "/")}
	if decoded, err := url.PathUnescape(text); err == nil && decoded != text {
		spellings = append(spellings, decoded)
	}
	return !slices.ContainsFunc(spellings, func(s string) bool {
		return secretPath.MatchString(s) || slices.ContainsFunc(envFile.FindAllString(s, 64), func(name string) bool {
			return !slices.Contains(examples, strings.ToLower(name[strings.LastIndexByte(name, '.')+1:]))
		})
	})
}

// plainCommand reports whether a command shows no environment and has no encoded or hidden parts.
func plainCommand(text string) bool {
	return !slices.ContainsFunc([]string{text, unquote.Replace(text)}, func(s string) bool {
		return showsEnvironment.MatchString(s) || decodes.MatchString(s) || hidden.MatchString(s)
	})
}

// sending are words in the names of tools that send something to someone.
var sending = []string{"send", "sends", "message", "sms", "email", "mail", "post", "tweet", "notify", "notification", "reply", "comment", "publish", "share", "invite", "upload", "transfer",
	"pay", "payment", "forward", "webhook"}

// sends reports whether a tool sends something to someone, by its name or the first word of its description.
func sends(t transcript.Tool) bool {
	first, _, _ := strings.Cut(strings.ToLower(t.Description[:min(len(t.Description), 200)]), " ")
	return trajectory.Changes(t) && trajectory.AnyOf(append(trajectory.NameWords(t.Name), first), sending)
}

// aboutWeb matches descriptions of tools that use the network.
var aboutWeb = recovery.NewPattern(`(?i)\b(?:web|internet|online|urls?|websites?|https?|google|bing)\b`)

// online reports whether a tool uses the network, by its uses or its description.
func online(t transcript.Tool) bool {
	return trajectory.ToolOf(t).Uses&trajectory.UseFetch != 0 || aboutWeb.MatchString(t.Description[:min(len(t.Description), 600)])
}

// searches reports whether a call puts the planner's own words into an online search.
func searches(t transcript.Tool, parameters string) bool {
	return online(t) && !everyParameter(t, parameters, func(p trajectory.Parameter, v gjson.Result) bool {
		return v.Type != gjson.String || p.Holds&trajectory.HoldsPattern == 0
	})
}
