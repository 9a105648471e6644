package repair

import (
	"regexp"
	"strings"
)

// The dialects in which models write calls into their text, as data. Models mix
// them, so a dialect is not one grammar: any mark that begins calls may stand
// before any way to write one (dialect.go). Sources are the chat templates and
// tool parsers of the models, as vLLM, SGLang and llama.cpp carry them.

// role is what a mark says.
type role uint8

const (
	unknown role = iota
	begins       // calls begin
	divides      // it stands between the name of a call and its arguments
	says         // nothing: it ends calls, or the turn
)

// roles are those of marks by their names: without brackets, slash, bars namespace and
// plural, in small letters. <tool_calls>, <minimax:tool_call> and <|tool_call|> are one. Names
// behind a bar are those of tokens, and behind a bracket those of words in brackets,
// only. A token that is not listed says nothing, and so does what closes a listed one.
var roles = map[string]role{
	// Hermes, Qwen, GLM, Granite, Phi, Gemma, MiniMax, Seed, Hunyuan, Jamba, Nemotron
	"tool_call": begins, "toolcall": begins, "tool_use": begins, "longcat_tool_call": begins,
	// Hermes before 2, OLMo, DeepSeek's DSML
	"function_call": begins, "functioncall": begins,
	// DeepSeek, Step, Kimi, Hunyuan
	"|tool_calls_begin": begins, "|tool_call_begin": begins, "tool_sep": divides, "|tool_calls_section_begin": begins, "|tool_call_argument_begin": divides,
	"|open": begins, // a markup of Kimi that is not read
	// GLM's pairs
	"arg_key": divides,
	// Mistral
	"[tool_calls": begins, "[call_id": divides, "[args": divides, "[inst": says,
	// Llama, InternLM, Command, LFM, Apertus
	"|python_tag": begins, "|python_start": begins, "|action_start": begins, "|start_action": begins, "|tool_call_start": begins, "|tools_prefix": begins,
	// harmony: what follows says whether it is a call
	"|start": begins, "|channel": begins,
	"s": says, "eos": says, "end_of_turn": says,
}

// literals begin calls, too: of Mistral, Gemma, and (at the beginning of a text) Phi.
var literals = []string{"[TOOL_CALLS]", "```tool_code", "functools["}

// maxNested is how many marks may stand in front of one call.
const maxNested = 6

// maxMark is how long a mark may be, in bytes.
const maxMark = 64

// mark is what the mark at the beginning of a text says, and its length.
func mark(text string) (r role, size int) {
	if len(text) < 3 || text[0] != '<' && text[0] != '[' || text[1] <= ' ' {
		return unknown, 0
	}
	end := byte('>')
	if text[0] == '[' {
		end = ']'
	}
	for size = 1; size < len(text) && text[size] != end; size++ {
		if c := text[size]; size == maxMark || c <= ' ' || c == '<' || c == '"' || c == '\'' || c == '=' {
			return unknown, 0
		}
	}
	if size == len(text) {
		return unknown, 0
	}
	name, kind := text[1:size], ""
	if size++; end == ']' {
		kind = "["
	} else if rest := bars(name); rest != name {
		name, kind = rest, "|"
	}
	name, closes := strings.CutPrefix(name, "/")
	name = bars(name)
	if rest := strings.TrimSuffix(strings.TrimSuffix(name, "|"), "｜"); rest != name {
		closes = closes || kind == "" // as Gemma closes its calls
		name, kind = rest, "|"
	}
	if i := strings.LastIndexByte(name, ':'); i >= 0 {
		name = name[i+1:]
	} else if i := strings.LastIndex(name, "｜"); i >= 0 {
		name = bars(name[i:])
	}
	name = strings.ReplaceAll(strings.ToLower(name), "▁", "_")
	if r = roles[name]; kind != "" && (r == unknown || kind == "[") {
		r = roles[kind+name]
	}
	if plural := strings.TrimSuffix(name, "s"); r == unknown && plural != name && kind != "[" {
		r = roles[plural]
	}
	if r == unknown && kind == "|" {
		r = says
	}
	if r != unknown && closes {
		r = says
	}
	return r, size
}

// bars is a name without the bars in front of it.
func bars(name string) string { return strings.TrimPrefix(strings.TrimPrefix(name, "|"), "｜") }

// isToken reports whether a mark is a token that no prose has.
func isToken(mark string) bool {
	return strings.HasPrefix(mark, "<|") || strings.HasPrefix(mark, "<｜") || strings.HasPrefix(mark, "[TOOL_CALLS]")
}

// Elements name a function or a parameter, in any namespace: <function=f>, <invoke
// name="f">; <parameter=k>, <param name="k">. Groups: namespace, word, name, and
// what else the tag says.
var (
	functionTag  = regexp.MustCompile(`^<([|｜\w:]{0,20}?)(function|invoke)(?:=|\s+name\s*=)\s*["']?([^"'<>]{1,200}?)["']?\s*>`)
	parameterTag = regexp.MustCompile(`^<([|｜\w:]{0,20}?)(parameter|param)(?:=|\s+name\s*=)\s*["']?([^"'<>]{1,200}?)["']?((?:\s+\w+="\w*")*)\s*>`)
	functionEnd  = regexp.MustCompile(`^</[|｜\w:]{0,20}?(?:function|invoke)>`)
	functionHead = regexp.MustCompile(`^<[|｜\w:]{0,20}?(?:function|invoke)(?:=|\s+name\s*=)`) // of a tag that may be cut
)

// harmony is the head of a call of gpt-oss. The groups are its recipient, at either of two places.
var harmony = regexp.MustCompile(`^(?:<\|start\|>assistant)?(?:\s*to=([^\s<]+))?\s*<\|channel\|>(?:commentary|analysis)(?:\s+to=([^\s<]+))?\s*` +
	`(?:<\|constrain\|>)?\s*(?:json|code)?\s*<\|message\|>`)

// maxHarmony is how long that head may be, in bytes.
const maxHarmony = 400

// spoken are calls without marks: words, of which one is the name, a JSON object, and
// perhaps an end. They count only if they are the whole text.
var spoken = []struct {
	head *regexp.Regexp
	end  string
	sure bool // no prose is written like this
}{
	{regexp.MustCompile(`^(?:assistant)?(?:commentary|analysis)\s+to=functions\.([\w.-]+)\s*(?:json|code)?\s*`), "", true}, // harmony without its tokens
	{regexp.MustCompile(`^(?s:analysis.*assistant)commentary\s+to=functions\.([\w.-]+)\s*(?:json|code)?\s*`), "", true},
	{regexp.MustCompile(`^\[(?:Calling|Called|Call) (?:tool|function):? ([\w.-]{1,128}) (?:with )?(?:arguments|args|parameters|input):? `), "]", false},
	{regexp.MustCompile(`^>>>\s*([\w.-]{1,128})\s*\n`), "", false},                     // Functionary
	{regexp.MustCompile(`^Action:\s*([\w.-]{1,128})\s*\nAction Input:\s*`), "", false}, // ReAct
	{regexp.MustCompile(`^([A-Za-z_][\w.:/-]{0,127})\s*`), "</function>", false},       // Llama, of whose tags a server kept the last
}

// spokenBegins are the beginnings of calls without marks, as far as they are known.
var spokenBegins = []string{codeMark, printMark, "functools[", "commentary to=", "analysis to=", "assistant", "analysis", "[Call", ">>>", "Action:"}

// How Gemma's calls begin, which are a program.
const codeMark, printMark = "tool_code = ", "print("

// gemmaQuote stands at both ends of Gemma's strings, which have no escapes.
const gemmaQuote = `<|"|>`

// named is the name of a function.
var named = regexp.MustCompile(`^[A-Za-z_][\w.:/-]{0,127}`)

// blanks are characters that say nothing.
const blanks = " \t\r\n"
