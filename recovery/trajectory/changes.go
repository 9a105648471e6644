package trajectory

import (
	"slices"
	"strings"

	"github.com/rebound-llm/rebound/recovery/transcript"
)

// Words that tell whether a tool changes something. They are compared with the
// words of its name and of its description's beginning.
const (
	// acts are verbs of tools that change something or run what they are given.
	acts wordList = " run exec execute eval evaluate bash sh zsh shell powershell terminal console command cmd subprocess spawn " +
		"invoke script python repl interpreter sql write edit create update delete remove rm rmdir unlink erase wipe " +
		"purge drop truncate clear destroy move mv rename copy cp replace patch apply overwrite insert append save " +
		"put upload send post email mail message notify reply tweet publish submit share invite pay payment charge " +
		"refund transfer buy purchase order checkout book reserve cancel withdraw deposit sell trade install " +
		"uninstall deploy release rollback restart reboot shutdown kill terminate stop commit push merge rebase reset " +
		"revert checkout chmod chown grant revoke approve modify change disable block ban migrate provision scale " +
		"unsubscribe click press tap fill "
	// strong ones count even in the name of a tool that begins like a reader: search_and_replace.
	strong wordList = " exec execute bash shell terminal write delete remove erase wipe purge destroy replace overwrite send pay " +
		"transfer kill run edit "
	// reads are verbs of tools that only look.
	reads wordList = " get list read search find fetch lookup look query show view describe check count calculate compute convert " +
		"translate estimate summarize summarise browse grep glob ls cat stat head tail analyze analyse compare " +
		"validate inspect preview explain extract parse detect classify rank recommend suggest geocode resolve " +
		"retrieve load scan select ask think weather is has calc calculator web google wikipedia "
	// operands are names of parameters that hold what is to be run.
	operands wordList = " commands sql shell shellcommand bashcommand "
)

// phrases in a description that tell the same.
var phrases = []string{"shell command", "bash command", "terminal command", "system command", "arbitrary code", "python code", "executes ",
	"irreversibl", "permanently", "cannot be undone", "deletes ", "overwrites ", "runs a command", "run a command", "sends an ",
	"sends a ", "transfers ", "charges "}

// wordList is a list of words, each between spaces.
type wordList string

// has reports whether a word is in the list.
func (w wordList) has(word string) bool {
	return word != "" && strings.Contains(string(w), " "+word+" ")
}

// Changes reports whether a tool changes something or runs what it is given, by its
// name, its description and the names of its parameters. What is doubtful does: it
// is for those who would guess about its calls. What is known of a call that was
// made says [Call.Reads].
func Changes(t transcript.Tool) bool {
	name := NameWords(t.Name)
	for len(name) > 1 && (name[0] == "mcp" || name[0] == "functions" || name[0] == "tool" || name[0] == "api") {
		name = name[1:]
	}
	if slices.ContainsFunc(Parameters(t), func(p Parameter) bool { return commandNames[strings.ToLower(p.Name)] || operands.has(Plain(p.Name)) }) {
		return true
	}
	if len(name) > 0 && reads.has(name[0]) {
		return slices.ContainsFunc(name[1:], strong.has)
	}
	if slices.ContainsFunc(name, acts.has) {
		return true
	}
	description := strings.ToLower(t.Description[:min(len(t.Description), 2000)])
	first, _, _ := strings.Cut(strings.TrimLeft(description, " \n\t-*#\"'"), " ")
	forms := []string{first, strings.TrimSuffix(first, "s"), strings.TrimSuffix(first, "es")}
	if slices.ContainsFunc(forms, acts.has) {
		return true
	}
	if slices.ContainsFunc(forms[:2], reads.has) || slices.ContainsFunc(name, reads.has) {
		return false
	}
	return slices.ContainsFunc(phrases, func(p string) bool { return strings.Contains(description, p) })
}
