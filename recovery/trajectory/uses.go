package trajectory

import (
	"slices"
	"strings"

	"github.com/tidwall/gjson"

	"github.com/rebound-llm/rebound/recovery/transcript"
)

// Use is a set of what an agent can do with a tool. [Kind] describes the tool's results instead.
type Use uint16

// The uses. A tool may have several, or none.
const (
	UseShell  Use = 1 << iota // runs commands
	UseCode                   // runs code
	UseRead                   // returns a file
	UseList                   // lists a directory
	UseSearch                 // finds files, or text in files
	UseWrite                  // creates or changes files
	UseFetch                  // gets something from the network: a page, a web search
	UseAsk                    // asks the user a question
)

// Tool is a tool of a request with what an agent can do with it.
type Tool struct {
	transcript.Tool
	Uses   Use
	Params []Parameter // declared in its schema
}

// ToolOf judges a tool by its name, its description and its parameters. It is pure, accepts any input, and takes limited
// time; it knows the words of common agents and of MCP servers.
func ToolOf(t transcript.Tool) Tool {
	params := Parameters(t)
	return Tool{t, usesOf(t, params), params}
}

// UsesOf returns the uses of a tool; see [ToolOf].
func UsesOf(t transcript.Tool) Use { return usesOf(t, Parameters(t)) }

func usesOf(t transcript.Tool, params []Parameter) (out Use) {
	words := NameWords(t.Name)
	has := traitsOf(words)
	is := func(list ...string) bool { return AnyOf(words, list) }
	about := strings.ToLower(t.Description[:min(len(t.Description), 600)])
	says := func(list ...string) bool {
		return slices.ContainsFunc(list, func(w string) bool { return strings.Contains(about, w) })
	}
	var takes Holds
	given := false // to a program, whatever the name of its input
	for _, p := range params {
		takes |= p.Holds
		given = given || slices.Contains([]string{"input", "code", "args", "argv"}, strings.ToLower(p.Name))
	}
	unknown, single := len(params) == 0, len(words) == 1
	path, files := takes&HoldsPath != 0, has&fileWord != 0

	// A tool that asks a person says so; asking a model is something else.
	person := is("user", "human")
	switch {
	case is("clarify", "clarification", "elicit"),
		is("ask") && (single || person || is("followup", "follow", "question", "questions")),
		is("question", "questions") && (single || person) && (about == "" || says("user", "human", "person", "ask")),
		is("input") && person && is("request", "get", "wait"):
		return UseAsk
	}

	// A tool that only manages a running command is no shell.
	commands, strong, weak := takes&HoldsCommand != 0, has&shellWord != 0, has&runWord != 0
	switch {
	case has&manageWord != 0 && !commands && (strong || weak):
		return 0
	case is("editor", "edit", "replace"):
	case strong && (commands || unknown || given),
		weak && commands && !says("sql", "query the"),
		weak && unknown && has&(otherDomainWord|codeWord) == 0 && !is("code", "cell"),
		commands && says("shell", "bash", "terminal", "command line", "powershell"):
		out |= UseShell
	}
	if has&codeWord != 0 || is("code") && is("execute", "run", "exec", "eval") {
		if (unknown || takes&HoldsCode != 0) && !is("search", "edit", "read", "list") {
			out |= UseCode
		}
	}
	if has&onlineWord != 0 || has&fetchWord != 0 && (unknown || takes&HoldsURL != 0 || slices.ContainsFunc(params, func(p Parameter) bool { return p.Name == "query" })) {
		return out | UseFetch
	}
	if out != 0 || has&otherDomainWord != 0 {
		return out
	}
	if has&listWord != 0 && (files || path || single || is("ls", "tree", "readdir")) && (unknown || path || says("director", "files")) {
		out |= UseList
	}
	if has&searchWord != 0 && !is("replace", "edit") && (unknown || path || takes&HoldsPattern != 0) &&
		(files || path || single || is("grep", "glob", "rg", "ripgrep", "semantic", "name") || says("file", "codebase", "workspace", "director")) {
		out |= UseSearch
		if is("glob") {
			out |= UseList
		}
	}
	if out != 0 {
		return out
	}
	if has&readWord != 0 && (path || unknown && (files || single)) {
		out |= UseRead
	}
	patch := is("patch", "diff") && slices.ContainsFunc(params, func(p Parameter) bool { return slices.Contains([]string{"patch", "diff", "input"}, p.Name) })
	if has&writeWord != 0 && !is("view", "show") && (path || patch || unknown && (files || single || is("editor", "patch", "str"))) {
		out |= UseWrite
	}
	if out&UseWrite != 0 && is("editor") && (commands || unknown) {
		out |= UseRead | UseList // "view" shows files and directories
	}
	return out
}

// AnyOf reports whether two lists of words have a common word.
func AnyOf(words, known []string) bool {
	return slices.ContainsFunc(words, func(w string) bool { return slices.Contains(known, w) })
}

// phrases are parts of descriptions of tools that change something.
var phrases = []string{"shell command", "bash command", "terminal command", "system command", "arbitrary code", "python code", "executes ",
	"irreversibl", "permanently", "cannot be undone", "deletes ", "overwrites ", "runs a command", "run a command", "sends an ",
	"sends a ", "transfers ", "charges "}

// Changes reports whether a tool may change something or run what it is given, by its name, its description and
// its parameters. It is true if unclear, for callers that have no call yet; for an actual call see [Call.Reads].
func Changes(t transcript.Tool) bool {
	name := NameWords(t.Name)
	for len(name) > 1 && (name[0] == "mcp" || name[0] == "functions" || name[0] == "tool" || name[0] == "api") {
		name = name[1:]
	}
	if slices.ContainsFunc(Parameters(t), func(p Parameter) bool { return p.Holds&HoldsCommand != 0 || strings.EqualFold(p.Name, "sql") }) {
		return true
	}
	if len(name) > 0 && traits[name[0]]&lookWord != 0 {
		return traitsOf(name[1:])&strongWord != 0
	}
	if traitsOf(name)&actWord != 0 {
		return true
	}
	description := strings.ToLower(t.Description[:min(len(t.Description), 2000)])
	first, _, _ := strings.Cut(strings.TrimLeft(description, " \n\t-*#\"'"), " ")
	forms := traits[first] | traits[strings.TrimSuffix(first, "s")]
	if (forms|traits[strings.TrimSuffix(first, "es")])&actWord != 0 {
		return true
	}
	if (forms|traitsOf(name))&lookWord != 0 {
		return false
	}
	return slices.ContainsFunc(phrases, func(p string) bool { return strings.Contains(description, p) })
}

// Holds is a set of what a parameter may hold.
type Holds uint8

// The contents of parameters.
const (
	HoldsPath    Holds = 1 << iota // a file or a directory
	HoldsCommand                   // a command line
	HoldsURL
	HoldsCode
	HoldsPattern // a search pattern
)

// holding maps names of parameters, as Plain returns them, to what they hold.
var holding = func() map[string]Holds {
	out := map[string]Holds{}
	for h, row := range map[Holds]string{
		HoldsPath: "path filepath filename file absolutepath targetfile relativepath relativeworkspacepath notebookpath dirpath directory dir " +
			"directorypath targetdirectory abspath fileuri uri paths files folder root",
		HoldsCommand: "command cmd commands script commandline bashcommand shellcommand shell",
		HoldsURL:     "url urls link uri href",
		HoldsCode:    "code script source input python cell",
		HoldsPattern: "pattern query regex glob search regexp globpattern searchterm include patterns namepattern querystring",
	} {
		for _, w := range strings.Fields(row) {
			out[w] |= h
		}
	}
	return out
}()

// described maps words of a parameter's description to what it holds, for parameters with other names.
var described = []struct {
	holds Holds
	words []string
}{
	{HoldsURL, []string{"url", "uri", "web address"}},
	{HoldsCommand, []string{"shell command", "bash command", "command to run", "command to execute", "command line"}},
	{HoldsPattern, []string{"regular expression", "regex", "glob pattern"}},
	{HoldsPath, []string{"file path", "path to", "path of", "absolute path", "relative path", "directory"}},
}

// Parameter is a parameter of a tool.
type Parameter struct {
	Name, Schema string
	Required     bool
	Holds        Holds // 0 if unknown
}

// maxParameters limits the parameters that are read.
const maxParameters = 64

// Parameters returns the parameters that the tool's schema declares, in its order, at most 64.
func Parameters(t transcript.Tool) (out []Parameter) {
	if len(t.Parameters) == 0 || t.Parameters[0] != '{' {
		return nil
	}
	schema := gjson.ParseBytes(t.Parameters)
	required := map[string]bool{}
	schema.Get("required").ForEach(func(_, v gjson.Result) bool {
		required[v.Str] = true
		return len(required) < maxParameters
	})
	props := schema.Get("properties")
	if !props.IsObject() {
		return nil
	}
	props.ForEach(func(k, v gjson.Result) bool {
		name := k.String()
		out = append(out, Parameter{name, v.Raw, required[name], holdsOf(name, v)})
		return len(out) < maxParameters
	})
	return out
}

// holdsOf returns what a parameter may hold, by its name, or else by its schema.
func holdsOf(name string, schema gjson.Result) Holds {
	if h := holding[Plain(name)]; h != 0 {
		return h
	}
	if kind := schema.Get("type").Str; kind != "" && kind != "string" && kind != "array" {
		return 0
	}
	if f := schema.Get("format").Str; f == "uri" || f == "url" {
		return HoldsURL
	}
	about := strings.ToLower(schema.Get("description").Str)
	about = about[:min(len(about), 80)]
	for _, d := range described {
		if slices.ContainsFunc(d.words, func(w string) bool { return HasWord(about, w, letter) }) {
			return d.holds
		}
	}
	return 0
}

// HasWord reports whether text contains word, which may be several words, as a whole. inside reports whether a
// byte directly before or after it would make it part of a longer word.
func HasWord(text, word string, inside func(c byte) bool) bool {
	for from := 0; word != ""; from++ {
		i := strings.Index(text[from:], word)
		if i < 0 {
			return false
		}
		from += i
		end := from + len(word)
		if (from == 0 || !inside(text[from-1])) && (end == len(text) || !inside(text[end])) {
			return true
		}
	}
	return false
}

func letter(c byte) bool { return c|0x20 >= 'a' && c|0x20 <= 'z' || c >= 0x80 }
