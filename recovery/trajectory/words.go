package trajectory

import "strings"

// trait is what a word in a tool's name says about the tool.
type trait uint32

const (
	shellWord       trait = 1 << iota // a shell
	runWord                           // runs something
	manageWord                        // manages what already runs
	codeWord                          // a programming language
	onlineWord                        // the network
	fetchWord                         // gets something from the network
	listWord                          // lists a directory
	searchWord                        // finds files, or text in them
	readWord                          // shows files
	writeWord                         // creates or changes files
	fileWord                          // files
	otherDomainWord                   // works on something other than a computer's files
	noteWord                          // the model's own notes
	pauseWord                         // waits
	actWord                           // changes something, or runs what it is given
	strongWord                        // the same, even in a name that begins like a reader's: search_and_replace
	lookWord                          // only reads
	shellAnswer                       // the kind of the tool's results: see Kind
	codeAnswer
	editorAnswer
	readerAnswer
)

// traits holds what each word in a tool's name tells about the tool. No other table does.
var traits = invert(map[trait]string{
	shellWord:  "bash shell terminal powershell pwsh zsh sh cmd console",
	runWord:    "exec execute run command commands process subprocess",
	manageWord: "output kill status stop stdin list close resize read history wait interrupt send",
	codeWord:   "python ipython jupyter interpreter repl javascript node",
	onlineWord: "web url http internet google bing browser browse wikipedia website webpage online websearch webfetch",
	fetchWord:  "fetch crawl scrape download navigate curl wget",
	listWord:   "list ls tree dir readdir",
	searchWord: "search grep find glob rg ripgrep ack locate",
	readWord:   "read view cat open show",
	writeWord:  "write edit patch replace create insert append multiedit apply save mkdir editor overwrite diff",
	fileWord:   "file files dir directory directories folder folders fs workspace codebase code text",
	otherDomainWord: "todo todos memory issue issues email mail calendar ticket order user users task tasks plan note notes message event events " +
		"customer booking reservation flight flights payment repo repos repository branch branches pull pr commit commits agent agents " +
		"skill resource resources table sql query database db image tests",
	noteWord:  "todo todos plan plans memory memories note notes think thought task tasks",
	pauseWord: "wait await sleep pause delay",
	actWord: "run exec execute eval evaluate bash sh zsh shell powershell terminal console command cmd subprocess spawn " +
		"invoke script python repl interpreter sql write edit create update delete remove rm rmdir unlink erase wipe " +
		"purge drop truncate clear destroy move mv rename copy cp replace patch apply overwrite insert append save " +
		"put upload send post email mail message notify reply tweet publish submit share invite pay payment charge " +
		"refund transfer buy purchase order checkout book reserve cancel withdraw deposit sell trade install " +
		"uninstall deploy release rollback restart reboot shutdown kill terminate stop commit push merge rebase reset " +
		"revert chmod chown grant revoke approve modify change disable block ban migrate provision scale " +
		"unsubscribe click press tap fill",
	strongWord: "exec execute bash shell terminal write delete remove erase wipe purge destroy replace overwrite send pay transfer kill run edit",
	lookWord: "get list read search find fetch lookup look query show view describe check count calculate compute convert " +
		"translate estimate summarize summarise browse grep glob ls cat stat head tail analyze analyse compare " +
		"validate inspect preview explain extract parse detect classify rank recommend suggest geocode resolve " +
		"retrieve load scan select ask think weather is has calc calculator web google wikipedia",
	shellAnswer:  "bash shell terminal exec execute command cmd powershell pwsh console run zsh process sh",
	codeAnswer:   "python ipython jupyter interpreter notebook repl javascript node sandbox",
	editorAnswer: "edit editor write patch replace insert create append delete move rename multiedit",
	readerAnswer: "read view cat open list ls glob grep search find fetch browse browser web crawl scrape navigate docs doc download " +
		"tree show rg snapshot page url http wikipedia websearch webfetch",
})

// invert inverts the table.
func invert(rows map[trait]string) map[string]trait {
	out := map[string]trait{}
	for t, row := range rows {
		for _, w := range strings.Fields(row) {
			out[w] |= t
		}
	}
	return out
}

// setOf returns the set of the words between commas.
func setOf(list string) map[string]bool {
	out := map[string]bool{}
	for w := range strings.SplitSeq(list, ", ") {
		out[w] = true
	}
	return out
}

// traitsOf returns the traits of all the words.
func traitsOf(words []string) (out trait) {
	for _, w := range words {
		out |= traits[w]
	}
	return out
}

// Kind is the kind of a tool's results, judged by its name. [Use] is what an agent can do with it instead: a
// tool that shows a command's output has a shell's results, but runs no command.
type Kind uint8

// The kinds of tools, from the least specific.
const (
	Other  Kind = iota
	Reader      // returns files, listings, search results, pages: its results are data
	Editor      // writes files
	Code        // runs code
	Shell       // runs commands
)

// String returns the kind's name, as in observations.
func (k Kind) String() string {
	return [...]string{Other: "other", Reader: "reader", Editor: "editor", Code: "code", Shell: "shell"}[k]
}

// KindOf returns the most specific kind of the words in a tool's name: running, then writing, then reading.
func KindOf(tool string) Kind {
	switch t := traitsOf(NameWords(tool)); {
	case t&shellAnswer != 0:
		return Shell
	case t&codeAnswer != 0:
		return Code
	case t&editorAnswer != 0:
		return Editor
	case t&readerAnswer != 0:
		return Reader
	}
	return Other
}
