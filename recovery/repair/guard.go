package repair

import (
	"path"
	"slices"
	"strings"
	"unicode"

	"github.com/tidwall/gjson"

	"github.com/rebound-llm/rebound/recovery/transcript"
)

// Words that tell what a tool does. They are compared with the words of its
// name, of its description's beginning, and of its parameters' names.
const (
	// acts are verbs of tools that change something or run what they are given.
	acts words = " run exec execute eval evaluate bash sh zsh shell powershell terminal console command cmd subprocess spawn " +
		"invoke script python repl interpreter sql write edit create update delete remove rm rmdir unlink erase wipe " +
		"purge drop truncate clear destroy move mv rename copy cp replace patch apply overwrite insert append save " +
		"put upload send post email mail message notify reply tweet publish submit share invite pay payment charge " +
		"refund transfer buy purchase order checkout book reserve cancel withdraw deposit sell trade install " +
		"uninstall deploy release rollback restart reboot shutdown kill terminate stop commit push merge rebase reset " +
		"revert checkout chmod chown grant revoke approve modify change disable block ban migrate provision scale " +
		"unsubscribe click press tap fill "
	// strong ones count even in the name of a tool that begins like a reader: search_and_replace.
	strong words = " exec execute bash shell terminal write delete remove erase wipe purge destroy replace overwrite send pay " +
		"transfer kill run edit "
	// reads are verbs of tools that only look.
	reads words = " get list read search find fetch lookup look query show view describe check count calculate compute convert " +
		"translate estimate summarize summarise browse grep glob ls cat stat head tail analyze analyse compare " +
		"validate inspect preview explain extract parse detect classify rank recommend suggest geocode resolve " +
		"retrieve load scan select ask think weather is has calc calculator web google wikipedia "
	// operands are names of parameters that hold what is to be run.
	operands words = " command commands cmd script sql shell shellcommand bashcommand "
)

// phrases in a description that tell the same.
var phrases = []string{"shell command", "bash command", "terminal command", "system command", "arbitrary code", "python code", "executes ",
	"irreversibl", "permanently", "cannot be undone", "deletes ", "overwrites ", "runs a command", "run a command", "sends an ",
	"sends a ", "transfers ", "charges "}

// words is a list of words, each between spaces.
type words string

// has reports whether a word is in the list.
func (w words) has(word string) bool {
	return word != "" && strings.Contains(string(w), " "+word+" ")
}

// guarded reports whether a tool changes something, so that nothing about its
// calls may be guessed. A mistake to the one side asks the model once more, to
// the other it may do harm: what is doubtful is guarded.
func (m *Mender) guarded(t *transcript.Tool) bool {
	if matches(m.cfg.Destructive, t.Name) {
		return true
	}
	if matches(m.cfg.Safe, t.Name) {
		return false
	}
	name := split(t.Name)
	for len(name) > 1 && (name[0] == "mcp" || name[0] == "functions" || name[0] == "tool" || name[0] == "api") {
		name = name[1:]
	}
	found := false
	gjson.GetBytes(t.Parameters, "properties").ForEach(func(key, _ gjson.Result) bool {
		found = operands.has(canonical(key.Str))
		return !found
	})
	if found {
		return true
	}
	if len(name) > 0 && reads.has(name[0]) {
		return slices.ContainsFunc(name[1:], func(w string) bool { return strong.has(w) })
	}
	if slices.ContainsFunc(name, func(w string) bool { return acts.has(w) }) {
		return true
	}
	description := strings.ToLower(clip(t.Description, 2000))
	first, _, _ := strings.Cut(strings.TrimLeft(description, " \n\t-*#\"'"), " ")
	if acts.has(first) || acts.has(strings.TrimSuffix(first, "s")) || acts.has(strings.TrimSuffix(first, "es")) {
		return true
	}
	if reads.has(first) || reads.has(strings.TrimSuffix(first, "s")) || slices.ContainsFunc(name, func(w string) bool { return reads.has(w) }) {
		return false
	}
	return slices.ContainsFunc(phrases, func(p string) bool { return strings.Contains(description, p) })
}

func matches(patterns []string, name string) bool {
	return slices.ContainsFunc(patterns, func(p string) bool {
		ok, err := path.Match(p, name)
		return ok && err == nil
	})
}

// split takes a name apart into lower-case words: getHTTPStatus_v2 → get http status v2.
func split(name string) (out []string) {
	var word []rune
	flush := func() {
		if len(word) > 0 {
			out = append(out, strings.ToLower(string(word)))
			word = word[:0]
		}
	}
	runes := []rune(clip(name, 200))
	for i, c := range runes {
		switch {
		case !unicode.IsLetter(c) && !unicode.IsDigit(c):
			flush()
			continue
		case unicode.IsUpper(c) && i > 0 && (!unicode.IsUpper(runes[i-1]) || i+1 < len(runes) && unicode.IsLower(runes[i+1])):
			flush()
		}
		word = append(word, c)
	}
	flush()
	return out
}

// canonical is a name without its spelling: letters and digits in lower case.
func canonical(name string) string {
	var b strings.Builder
	for _, c := range name {
		if unicode.IsLetter(c) || unicode.IsDigit(c) {
			b.WriteRune(unicode.ToLower(c))
		}
	}
	return b.String()
}
