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
// same. A name that ends in _tool_call or _function_call begins calls, too. A key with a leading bar
// applies only to special tokens (<|x|>), one with a leading bracket only to words in brackets ([X]).
// Other special tokens, and closing marks of listed names, are roleEnd.
var roles = map[string]role{
	// Hermes, Qwen, GLM, Granite, Phi, Gemma, MiniMax, Seed, Hunyuan, Jamba, Nemotron
	"tool_call": roleBegin, "toolcall": roleBegin, "tool_use": roleBegin,
	// Hermes before 2, OLMo, DeepSeek's DSML
	"function_call": roleBegin, "functioncall": roleBegin,
	// DeepSeek, Step, Kimi, Hunyuan
	"|tool_calls_begin": roleBegin, "|tool_call_begin": roleBegin, "tool_sep": roleSeparator, "|tool_calls_section_begin": roleBegin, "|tool_call_argument_begin": roleSeparator,
	"|open": roleBegin, // Kimi K3: what follows decides whether it is a call
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

// literalMarks also begin calls: those of Mistral, Gemma, MiniMax, and (only at the beginning of a text) Phi.
var literalMarks = []string{"[TOOL_CALLS]", "```tool_code", minimaxMark, "<channel|>call:", "functools["}

// minimaxMark precedes each tag of a call of MiniMax M3.
const minimaxMark = "]<]minimax[>["

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
	if rest := strings.TrimRight(name, bars); rest != name {
		closes = closes || kind == "" // Gemma closes its calls with <tool_call|>
		name, kind = rest, "|"
	}
	if i := strings.LastIndexByte(name, ':'); i >= 0 {
		name = name[i+1:]
	} else if i := strings.LastIndexAny(name, bars); i >= 0 {
		name = trimBars(name[i:])
	}
	name = strings.ReplaceAll(strings.ToLower(name), "▁", "_")
	if r = roles[name]; kind != "" && (r == roleNone || kind == "[") {
		r = roles[kind+name]
	}
	if single := strings.TrimSuffix(name, "s"); r == roleNone && kind != "[" {
		if r = roles[single]; strings.HasSuffix(single, "_tool_call") || strings.HasSuffix(single, "_function_call") {
			r = roleBegin
		}
	}
	if r == roleNone && kind == "|" {
		r = roleEnd
	}
	if r != roleNone && closes {
		r = roleEnd
	}
	return r, size
}

// bars are what encloses names in special tokens.
const bars = "|｜‖"

// trimBars removes the bars in front of a name.
func trimBars(name string) string { return strings.TrimLeft(name, bars) }

// isToken reports whether a mark is a special token, which only prose about calls contains.
func isToken(mark string) bool {
	return trimBars(mark[1:]) != mark[1:] || strings.HasPrefix(mark, "[TOOL_CALLS]") || strings.HasPrefix(mark, minimaxMark)
}

// Tags of a function or a parameter, in any namespace: <function=f>, <invoke
// name="f">; <parameter=k>, <param name="k">. The groups are namespace, word, name, and
// further attributes.
var (
	functionTag   = recovery.NewPattern(`^<([|｜‖\w:]{0,20}?)(function|invoke)(?:=|\s+name\s*=)\s*["']?([A-Za-z_][^"'<>{}]{0,199}?)["']?\s*>`)
	parameterTag  = recovery.NewPattern(`^<([|｜‖\w:]{0,20}?)(parameter|param)(?:=|\s+name\s*=)\s*["']?([^"'<>]{1,200}?)["']?((?:\s+\w+="\w*")*)\s*>`)
	parameterHead = recovery.NewPattern(`<[|｜‖\w:]{0,20}?(?:parameter|param)(?:=|\s+name\s*=)`)
	minimaxTag    = recovery.NewPattern(`^<([A-Za-z_][\w.-]{0,60})>`)
	functionEnd   = recovery.NewPattern(`^</[|｜‖\w:]{0,20}?(?:function|invoke)>`)
	functionHead  = recovery.NewPattern(`^<[|｜‖\w:]{0,20}?(?:function|invoke)(?:=|\s+name\s*=)`) // of a tag that may be cut
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
	{recovery.NewPattern(`^(?:assistant)?\s*(?:commentary|analysis)?\s*to=functions\.([\w.-]+)\s*(?:commentary|analysis)?\s*(?:json|code)?\s*`), "", true}, // harmony without its tokens
	{recovery.NewPattern(`^(?s:analysis.*assistant)commentary\s+to=functions\.([\w.-]+)\s*(?:json|code)?\s*`), "", true},
	{recovery.NewPattern(`^\[(?:Calling|Called|Call) (?:tool|function):? ([\w.-]{1,128}) (?:with )?(?:arguments|args|parameters|input):? `), "]", false},
	{recovery.NewPattern(`^>>>\s*([\w.-]{1,128})\s*\n`), "", false},                     // Functionary
	{recovery.NewPattern(`^Action:\s*([\w.-]{1,128})\s*\nAction Input:\s*`), "", false}, // ReAct
	{recovery.NewPattern(`^([A-Za-z_][\w.:/-]{0,127})\s*`), "</function>", false},       // Llama, if the server removed the opening tag
}

// unmarkedBegins are the beginnings of calls without marks that have a fixed beginning.
var unmarkedBegins = []string{toolCodeBegin, printBegin, "functools[", "commentary to=", "analysis to=", "call:", "assistant", "analysis", "[Call", ">>>", "Action:"}

// The beginnings of Gemma's calls in Python.
const toolCodeBegin, printBegin = "tool_code = ", "print("

// pairForms are the marks around the name and the value of a parameter: those of GLM, of K2 Horizon, and of Solar.
var pairForms = []pairForm{
	{"<arg_key>", "</arg_key>", "<arg_value>", "</arg_value>"},
	{"<ifm|arg_key>", "</ifm|arg_key>", "<ifm|arg_value>", "</ifm|arg_value>"},
	{"<|tool_arg:start|>", "<|tool_arg:value|>", "", "<|tool_arg:end|>"},
}

type pairForm struct{ begin, nameEnd, valueBegin, end string }

// Kimi K3's tags of a call and of an argument. The group is the name.
var (
	xtmlCall     = recovery.NewPattern(`^<\|open\|>call tool="([^"<>|]{1,200})"[^<>|]{0,200}<\|sep\|>`)
	xtmlArgument = recovery.NewPattern(`^<\|open\|>argument key="([^"<>|]{1,200})"[^<>|]{0,200}<\|sep\|>`)
)

// gemmaQuote encloses Gemma's strings, which have no escapes.
const gemmaQuote = `<|"|>`

// functionName matches the name of a function.
var functionName = recovery.NewPattern(`^[A-Za-z_][\w.:/-]{0,127}`)

// whitespace is the set of characters that separate tokens in all dialects.
const whitespace = " \t\r\n"
