package repair

import (
	"github.com/rebound-llm/rebound/recovery"
	"strings"
)

// The dialects in which models write calls into their text, as data. Models mix
// them, so there is no grammar for each dialect: any mark that begins a call may
// precede any form of a call (dialect.go). Sources are the chat templates of the models,
// and the tool parsers of vLLM, SGLang and llama.cpp.

// role is the meaning of a mark.
type role uint8

const (
	roleNone      role = iota
	roleBegin          // begins a call or a list of calls
	roleSeparator      // separates the name of a call from its arguments
	roleEnd            // ends calls or the turn, or has no meaning
)

// roles maps the names of marks to roles. A name is in lower case, without brackets, slash,
// bars, namespace and plural s: <tool_calls>, <minimax:tool_call> and <|tool_call|> have the
// same. A key with a leading bar applies only to special tokens (<|x|>), one with a leading bracket only
// to words in brackets ([X]). Other special tokens, and closing marks of listed names, are roleEnd.
var roles = map[string]role{
	// Hermes, Qwen, GLM, Granite, Phi, Gemma, MiniMax, Seed, Hunyuan, Jamba, Nemotron
	"tool_call": roleBegin, "toolcall": roleBegin, "tool_use": roleBegin, "longcat_tool_call": roleBegin,
	// Hermes before 2, OLMo, DeepSeek's DSML
	"function_call": roleBegin, "functioncall": roleBegin,
	// DeepSeek, Step, Kimi, Hunyuan
	"|tool_calls_begin": roleBegin, "|tool_call_begin": roleBegin, "tool_sep": roleSeparator, "|tool_calls_section_begin": roleBegin, "|tool_call_argument_begin": roleSeparator,
	"|open": roleBegin, // a markup of Kimi that is detected but not parsed
	// GLM's pairs
	"arg_key": roleSeparator,
	// Mistral
	"[tool_calls": roleBegin, "[call_id": roleSeparator, "[args": roleSeparator, "[inst": roleEnd,
	// Llama, InternLM, Command, LFM, Apertus
	"|python_tag": roleBegin, "|python_start": roleBegin, "|action_start": roleBegin, "|start_action": roleBegin, "|tool_call_start": roleBegin, "|tools_prefix": roleBegin,
	// harmony: what follows decides whether it is a call
	"|start": roleBegin, "|channel": roleBegin,
	"s": roleEnd, "eos": roleEnd, "end_of_turn": roleEnd,
}

// literalMarks also begin calls: those of Mistral, Gemma, and (only at the beginning of a text) Phi.
var literalMarks = []string{"[TOOL_CALLS]", "```tool_code", "functools["}

// maxLeadingMarks limits the marks in front of one call.
const maxLeadingMarks = 6

// maxMark limits the length of a mark, in bytes.
const maxMark = 64

// parseMark returns the role and the length of the mark at the beginning of a text.
func parseMark(text string) (r role, size int) {
	if len(text) < 3 || text[0] != '<' && text[0] != '[' || text[1] <= ' ' {
		return roleNone, 0
	}
	end := byte('>')
	if text[0] == '[' {
		end = ']'
	}
	for size = 1; size < len(text) && text[size] != end; size++ {
		if c := text[size]; size == maxMark || c <= ' ' || c == '<' || c == '"' || c == '\'' || c == '=' {
			return roleNone, 0
		}
	}
	if size == len(text) {
		return roleNone, 0
	}
	name, kind := text[1:size], ""
	if size++; end == ']' {
		kind = "["
	} else if rest := trimBars(name); rest != name {
		name, kind = rest, "|"
	}
	name, closes := strings.CutPrefix(name, "/")
	name = trimBars(name)
	if rest := strings.TrimSuffix(strings.TrimSuffix(name, "|"), "｜"); rest != name {
		closes = closes || kind == "" // Gemma closes its calls with <tool_call|>
		name, kind = rest, "|"
	}
	if i := strings.LastIndexByte(name, ':'); i >= 0 {
		name = name[i+1:]
	} else if i := strings.LastIndex(name, "｜"); i >= 0 {
		name = trimBars(name[i:])
	}
	name = strings.ReplaceAll(strings.ToLower(name), "▁", "_")
	if r = roles[name]; kind != "" && (r == roleNone || kind == "[") {
		r = roles[kind+name]
	}
	if plural := strings.TrimSuffix(name, "s"); r == roleNone && plural != name && kind != "[" {
		r = roles[plural]
	}
	if r == roleNone && kind == "|" {
		r = roleEnd
	}
	if r != roleNone && closes {
		r = roleEnd
	}
	return r, size
}

// trimBars removes the bars in front of a name.
func trimBars(name string) string { return strings.TrimPrefix(strings.TrimPrefix(name, "|"), "｜") }

// isToken reports whether a mark is a special token, which prose does not contain.
func isToken(mark string) bool {
	return strings.HasPrefix(mark, "<|") || strings.HasPrefix(mark, "<｜") || strings.HasPrefix(mark, "[TOOL_CALLS]")
}

// Tags of a function or a parameter, in any namespace: <function=f>, <invoke
// name="f">; <parameter=k>, <param name="k">. The groups are namespace, word, name, and
// further attributes.
var (
	functionTag   = recovery.NewPattern(`^<([|｜\w:]{0,20}?)(function|invoke)(?:=|\s+name\s*=)\s*["']?([A-Za-z_][^"'<>{}]{0,199}?)["']?\s*>`)
	parameterTag  = recovery.NewPattern(`^<([|｜\w:]{0,20}?)(parameter|param)(?:=|\s+name\s*=)\s*["']?([^"'<>]{1,200}?)["']?((?:\s+\w+="\w*")*)\s*>`)
	parameterHead = recovery.NewPattern(`<[|｜\w:]{0,20}?(?:parameter|param)(?:=|\s+name\s*=)`)
	functionEnd   = recovery.NewPattern(`^</[|｜\w:]{0,20}?(?:function|invoke)>`)
	functionHead  = recovery.NewPattern(`^<[|｜\w:]{0,20}?(?:function|invoke)(?:=|\s+name\s*=)`) // of a tag that may be cut
)

// harmonyHead matches the head of a call of gpt-oss. Either group is the recipient.
var harmonyHead = recovery.NewPattern(`^(?:<\|start\|>assistant)?(?:\s*to=([^\s<]+))?\s*<\|channel\|>(?:commentary|analysis)(?:\s+to=([^\s<]+))?\s*` +
	`(?:<\|constrain\|>)?\s*(?:json|code)?\s*<\|message\|>`)

// maxHarmonyHead limits the length of that head, in bytes.
const maxHarmonyHead = 400

// unmarkedForms are calls without marks: words with the name of the tool, a JSON object, and
// perhaps an end. They count only if they are the whole text.
var unmarkedForms = []struct {
	head *recovery.Pattern
	end  string
	sure bool // prose never looks like this
}{
	{recovery.NewPattern(`^(?:assistant)?(?:commentary|analysis)\s+to=functions\.([\w.-]+)\s*(?:json|code)?\s*`), "", true}, // harmony without its tokens
	{recovery.NewPattern(`^(?s:analysis.*assistant)commentary\s+to=functions\.([\w.-]+)\s*(?:json|code)?\s*`), "", true},
	{recovery.NewPattern(`^\[(?:Calling|Called|Call) (?:tool|function):? ([\w.-]{1,128}) (?:with )?(?:arguments|args|parameters|input):? `), "]", false},
	{recovery.NewPattern(`^>>>\s*([\w.-]{1,128})\s*\n`), "", false},                     // Functionary
	{recovery.NewPattern(`^Action:\s*([\w.-]{1,128})\s*\nAction Input:\s*`), "", false}, // ReAct
	{recovery.NewPattern(`^([A-Za-z_][\w.:/-]{0,127})\s*`), "</function>", false},       // Llama, if the server removed the opening tag
}

// unmarkedBegins are the beginnings of calls without marks that have a fixed beginning.
var unmarkedBegins = []string{toolCodeBegin, printBegin, "functools[", "commentary to=", "analysis to=", "assistant", "analysis", "[Call", ">>>", "Action:"}

// The beginnings of Gemma's calls in Python.
const toolCodeBegin, printBegin = "tool_code = ", "print("

// gemmaQuote encloses Gemma's strings, which have no escapes.
const gemmaQuote = `<|"|>`

// functionName matches the name of a function.
var functionName = recovery.NewPattern(`^[A-Za-z_][\w.:/-]{0,127}`)

// whitespace is the set of characters that separate tokens in all dialects.
const whitespace = " \t\r\n"
