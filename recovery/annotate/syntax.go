package annotate

import (
	"slices"
	"strings"

	"github.com/rebound-llm/rebound/recovery"
)

// places are the forms in which messages state where a syntax error is.
var places = [...]*recovery.Pattern{
	recovery.NewPattern(`(?m)^\s+in \\?"([^"\n\\<>]{1,200})\\?", line (\d{1,7})`), // YAML
	recovery.NewPattern(`File \\?"([^"\n\\]{1,200})\\?", line (\d{1,7})`),
	recovery.NewPattern(`\b((?:[\w./@+-]{1,150}/)?(?:(?:GNU)?[Mm]akefile|Dockerfile)):(\d{1,7})\b`),
	recovery.NewPattern(`([\w./@+-]{1,150}\.[A-Za-z]{1,5})[:(](\d{1,7})\b`),
	recovery.NewPattern(`([\w./@+-]{1,150}\.[A-Za-z]{1,5}):?,? line (\d{1,7})\b`),
	recovery.NewPattern(`([\w./@+-]{1,150}\.(?:ya?ml|json5?|toml|xml|tf|hcl))\b[^\n]{0,100}\bline (\d{1,7})\b`),
	recovery.NewPattern(`()\bline (\d{1,7})\b`),
}

// library are files that are not the agent's to correct.
var library = recovery.NewPattern(`^(?:/usr/(?:local/)?lib/|node:|internal/)|/(?:site|dist)-packages/|/node_modules/|/lib/python\d|/go/pkg/mod/|/\.cargo/registry/|/usr/local/go/src/`)

// place is where the syntax error is, as the message states it: the last place
// that is not in a library.
func (s *scene) place() string {
	for _, text := range [...]string{s.f.Line, s.content} {
		for _, form := range places {
			for _, m := range slices.Backward(form.FindAllStringSubmatch(text, 64)) {
				switch {
				case library.MatchString(m[1]), m[1] == "" && ownCode.MatchString(s.f.Line):
				case m[1] != "" && !strings.HasPrefix(m[1], "<"):
					return m[1] + ":" + m[2]
				case s.dataFile() != "":
					return s.dataFile() + ":" + m[2]
				case s.inline() == "" && s.unbalanced() == "":
					return "line " + m[2]
				}
			}
		}
	}
	return ""
}

// dataFiles are files that programs parse; an error in one may state only the line.
var dataFiles = recovery.NewPattern(`(?i)[\w./@+~-]{1,150}\.(?:ya?ml|json5?|jsonc|toml|xml|ini|conf|cfg|env|tf|hcl|sql)\b`)

// dataFile is the only such file in the failing command line, "" for none or several.
func (s *scene) dataFile() string { return onlyData(s.made.Line()) }

// onlyData is the only such file in a text, "" for none or several.
func onlyData(text string) (found string) {
	for _, f := range dataFiles.FindAllString(text, 16) {
		if found != "" && f != found {
			return ""
		}
		found = f
	}
	return found
}

// parsing is said of what is parsed.
var parsing = recovery.NewPattern(`(?i)\bpars(?:e|ing)|invalid|malformed|decod`)

// parsed is the file of data that the message says does not parse.
func (s *scene) parsed() string {
	for line := range strings.Lines(s.f.Line + "\n" + s.content) {
		if f := onlyData(line); f != "" && parsing.MatchString(line) {
			return f
		}
	}
	return ""
}

// unparsed is what shells say of a command line that they cannot parse; script is
// what they put before a message about a file that they run.
var (
	unparsed = recovery.NewPattern(`(?i)unexpected EOF while looking for.{0,20}|unexpected end of file|` +
		`syntax error near unexpected token.{0,10}|unterminated quoted string|unmatched ['"\x60]|parse error near`)
	script = recovery.NewPattern(`^(?:\S+\.\w{1,5}|jq|[gmn]?awk|sed): `)
	// ownCode is what programs say of the code in their arguments.
	ownCode = recovery.NewPattern(`<top-level>|^[gmn]?awk: |^sed: -e expression`)
	// decoding is what parsers of data say, whatever program they run in.
	decoding = recovery.NewPattern(`(?i)(?:json|toml)\w*Error|(?:scanner|parser)\.\w+Error|\b(?:Parse|Decode)Error|yaml|valid JSON|in JSON at`)
	// nearby is what a message puts behind "near".
	nearby = recovery.NewPattern(`(?i)\bnear ["'“\x60]([^"'”\n]{1,60})["'”]`)
)

// unbalanced is what a shell says of the failing command line.
func (s *scene) unbalanced() string {
	if s.made.Line() == "" || script.MatchString(s.f.Line) {
		return ""
	}
	return unparsed.FindString(s.f.Line)
}

// takesCode are programs to which -c gives code; to others it gives a file, or says to check one.
var takesCode = recovery.NewPattern(`^(?:python[\d.]*|(?:ba|z|da|k)?sh|psql)$`)

// near is what the message says the error is near to.
func (s *scene) near() string {
	if m := nearby.FindStringSubmatch(s.f.Line); m != nil {
		return m[1]
	}
	return ""
}

// coded is the program with code of its own in the failing command line, of which it complains.
func (s *scene) coded() string {
	if s.made.Line() != "" && ownCode.MatchString(s.f.Line) {
		return s.program()
	}
	return ""
}

// open finds what a message about such code says is not closed.
var open = recovery.NewPattern(`(?i)\b(?:missing|unmatched|unclosed|unterminated|unbalanced) .{1,50}`)

// unclosed is that.
func (s *scene) unclosed() string { return open.FindString(s.f.Line) }

// inline is the program that got code inside of the failing command line.
func (s *scene) inline() string {
	if decoding.MatchString(s.f.Line) && s.dataFile() != "" || s.bashism() != "" {
		return ""
	}
	for _, v := range s.parts {
		for _, w := range v.Words[1:] {
			if w == "-e" || w == "--eval" || w == "-r" || w == "-c" && takesCode.MatchString(v.Runs()) {
				return v.Runs()
			}
		}
		if strings.Contains(v.Text, "<<") {
			return v.Runs()
		}
	}
	return ""
}
