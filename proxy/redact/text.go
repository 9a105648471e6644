package redact

import (
	"bytes"
	"encoding/base64"
	"regexp"
	"slices"
	"strings"
)

// Names of fields and headers whose values are secret, in any spelling.
const (
	secretHeader = `\b(?:proxy-)?authorization`
	secretField  = `(?:\b|_|x-)(?:api[-_ ]?key|subscription-key|(?:access|auth|refresh|id|session|security)[-_]?token|client[-_]?secret|` +
		`secret[-_]?(?:access[-_]?)?key|secret|password|passwd|pwd)`
	assigned = `\\?["']?\s*[:=]\s*`
)

// apiKey matches keys by their makers' prefixes, also partly masked ones, and JSON web tokens.
var apiKey = regexp.MustCompile(`\b(?:(?:sk|pk|rk|gsk|xai|hf|gh[pousr]|github_pat|glpat|csk|nvapi|pplx|tgp|fw|r8|sess|xox[abeprs])[-_]|ya29\.|AIza|` +
	`eyJ)[A-Za-z0-9_.*-]{5,}[A-Za-z0-9_*-]|\b(?:AKIA|ASIA)[A-Z0-9]{12,}`)

var (
	fieldWords = []string{"key", "token", "secret", "passw", "pwd"}
	makers     = []string{"sk-", "sk_", "pk-", "pk_", "rk-", "rk_", "xai", "hf-", "hf_", "ghp", "gho", "ghu", "ghs", "ghr", "github_pat", "glpat", "nvapi",
		"pplx", "tgp", "fw-", "fw_", "r8-", "r8_", "sess", "xox", "ya29", "aiza", "eyj", "akia", "asia"}
)

// shapes are the forms of credentials in errors and headers. Groups stay, to show what was removed.
// Every match contains one of need in lower case: searching for those first makes most texts cheap.
var shapes = []struct {
	need []string
	re   *regexp.Regexp
}{
	{[]string{"-----begin"}, regexp.MustCompile(`(?s)()-----BEGIN [A-Z ]*PRIVATE KEY-----.*?(?:-----END [A-Z ]*PRIVATE KEY-----|$)`)},
	// user:password@ in a URL. A password may contain an @ and, if unescaped by mistake, a slash;
	// host:port/path@version is not a password.
	{[]string{"@"}, regexp.MustCompile(`(://)(?:[^/?#\s"'<>]*|[^@/?#\s"'<>:]*:[0-9]*[^0-9/?#\s"'<>][^\s"'<>@]*)(@)`)},
	// Credentials in a query, including signatures of signed URLs.
	{[]string{"="}, regexp.MustCompile(`(?i)([?&;](?:[\w.-]*(?:key|token|secret|signature|password|passwd|pwd|auth|credential)|sig|code)=)[^&\s"'#<>]*`)},
	// Headers and fields: in either kind of quotes, or unquoted.
	{[]string{"authorization"}, regexp.MustCompile(`(?i)(` + secretHeader + assigned + `\\?["']?)\[?(?:(?:bearer|basic|digest|token|apikey)\s+)?[^\s"']+`)},
	{[]string{"cookie"}, regexp.MustCompile(`(?i)(\b(?:set-)?cookie` + assigned + `\\?["']?)[^"'\r\n]+`)},
	{fieldWords, regexp.MustCompile(`(?i)(` + secretField + assigned + `\\?")(?:[^"\\]|\\.)+`)},
	{fieldWords, regexp.MustCompile(`(?i)(` + secretField + assigned + `\\?')(?:[^'\\]|\\.)+`)},
	{fieldWords, regexp.MustCompile(`(?i)(` + secretField + assigned + `)[^\s"',;&\\]+`)},
	{makers, apiKey},
}

// scheme matches an authentication scheme and the word after it, anywhere.
var scheme = regexp.MustCompile(`(?i)\b(bearer|basic)\s+[^\s"',;]+`)

var schemes = []string{"bearer", "basic"}

// uuid matches UUIDs, which identify requests and resources and stay readable.
var uuid = regexp.MustCompile(`(?i)^[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}$`)

// identifier matches providers' ids of requests and answers, which their support asks for.
var identifier = regexp.MustCompile(`^(?:req|request|chatcmpl|cmpl|resp|msg|call|toolu|run|gen|batch|trace)[-_]`)

// Text removes what looks like a credential: API keys by their prefixes, the word after Bearer and
// Basic, values of secret headers and fields, credentials in URLs, private keys, and long random
// words. Ids of requests and UUIDs stay. It is for text of others that goes to a log, and removes too
// much rather than too little. It takes linear time.
func Text(s string) string {
	low := strings.ToLower(s) // not updated after replacements: at worst a rule runs in vain
	for _, r := range shapes {
		if containsAny(low, r.need) {
			s = r.re.ReplaceAllString(s, "${1}"+Hidden+"${2}")
		}
	}
	if containsAny(low, schemes) {
		s = scheme.ReplaceAllStringFunc(s, credential)
	}
	return words(s)
}

func containsAny(s string, parts []string) bool {
	return slices.ContainsFunc(parts, func(part string) bool { return strings.Contains(s, part) })
}

// credential redacts one match of scheme.
func credential(word string) string {
	i := strings.IndexAny(word, space)
	value := strings.TrimLeft(word[i:], space)
	secret := pair(value)
	if strings.EqualFold(word[:i], "bearer") {
		secret = !prose[strings.ToLower(strings.TrimRight(value, ".:!?)]"))]
	}
	if !secret {
		return word
	}
	return word[:len(word)-len(value)] + Hidden
}

// words redacts random words anywhere.
func words(s string) string {
	var b strings.Builder
	done := 0
	for i := 0; i < len(s); {
		start := i
		for i < len(s) && wordByte(s[i]) {
			i++
		}
		if i-start < minRandom {
			i = max(i, start+1)
			continue
		}
		word := s[start:i]
		if random(word) && !identifier.MatchString(word) && !uuid.MatchString(word) {
			b.WriteString(s[done:start])
			b.WriteString(Hidden)
			for i < len(s) && s[i] == '=' {
				i++
			}
			done = i
		}
	}
	if done == 0 {
		return s
	}
	b.WriteString(s[done:])
	return b.String()
}

func wordByte(c byte) bool {
	return c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z' || c >= '0' && c <= '9' || c == '+' || c == '/' || c == '_' || c == '-'
}

// space is the set that \s matches in regular expressions.
const space = " \t\r\n\v\f"

// pair reports whether a word is the user and password of basic authentication.
func pair(word string) bool {
	b, err := base64.RawStdEncoding.DecodeString(strings.TrimRight(word, "=."))
	return err == nil && bytes.IndexByte(b, ':') >= 0
}

// prose are words that follow "bearer" in normal text.
var prose = map[string]bool{
	"token": true, "tokens": true, "auth": true, "authentication": true, "authorization": true, "scheme": true,
	"credential": true, "credentials": true, "format": true, "header": true, "headers": true, "prefix": true,
	"key": true, "or": true, "and": true, "is": true, "was": true, "not": true, "in": true, "realm": true,
	"required": true, "missing": true, "error": true,
}

// minRandom is the length, in letters and digits, from which a word can be told apart from a name;
// keys are longer.
const minRandom = 24

// random reports whether a word of at least minRandom letters and digits looks random: all
// hexadecimal, or with a long part that changes between lower case, upper case and digits more than
// names do ("Meta-Llama-3-1-405B" changes often, but only between parts).
func random(word string) bool {
	const (
		none = iota
		lower
		upper
		digit
	)
	var count, changes, groups, hex, digits int // of the whole word
	var run, runChanges, runGroups int          // since the last separator
	last, lastRun := none, none
	dense := false // one part alone is random
	end := func() {
		if run >= 16 && (runGroups >= 3 || runChanges*5 >= run*2) {
			dense = true
		}
		run, runChanges, runGroups, lastRun = 0, 0, 0, none
	}
	for i := range len(word) {
		c := word[i]
		kind := none
		switch {
		case c >= 'a' && c <= 'z':
			kind = lower
		case c >= 'A' && c <= 'Z':
			kind = upper
		case c >= '0' && c <= '9':
			kind = digit
		}
		if kind == none {
			end()
			continue
		}
		count++
		run++
		if kind == digit {
			digits++
			if lastRun != digit {
				groups++
				runGroups++
			}
		}
		if kind == digit || c|0x20 >= 'a' && c|0x20 <= 'f' {
			hex++
		}
		if last != none && kind != last {
			changes++
		}
		if lastRun != none && kind != lastRun {
			runChanges++
		}
		last, lastRun = kind, kind
	}
	end()
	if count < minRandom {
		return false
	}
	return dense || hex == count && count >= 32 && digits > 0 || changes*2 >= count && groups > 0
}
