package repair

import (
	"regexp"
	"slices"
	"strings"
)

// openers begin calls. Sources: the chat templates and tool parsers of the
// models, as vLLM, SGLang and llama.cpp carry them.
var openers = []string{
	"<tool_call>", "<tool_calls>", "<|tool_call|>", "<TOOLCALL>", "<function_call>", "<functioncall>", // Hermes, Qwen, GLM, MiniMax-M1, Granite, Nemotron
	"<function=",                                                                                                                                  // Llama, Qwen3-Coder
	"[TOOL_CALLS]",                                                                                                                                // Mistral
	"<｜tool▁calls▁begin｜>", "<｜tool▁call▁begin｜>", "<|tool▁calls▁begin|>", "<|tool▁call▁begin|>", "<｜DSML｜function_calls>", "<｜DSML｜invoke name=", // DeepSeek
	"<|tool_calls_section_begin|>", "<|tool_call_begin|>", // Kimi
	"<minimax:tool_call>", "<function_calls>", "<invoke name=", // MiniMax, Anthropic
	"<|python_tag|>", "<|python_start|>", // Llama
	"<|action_start|><|plugin|>",   // InternLM
	"<|tool_call>", "```tool_code", // Gemma
	"<|tool_call_argument_begin|>", "<|open|>", // Kimi
	"<antml:function_calls>", "<antml:invoke name=",
	"<|start|>assistant<|channel|>commentary to=", "<|start|>assistant to=", "<|channel|>commentary to=", "<|channel|>analysis to=", // harmony
}

// longestOpener is as long as the longest of openers.
const longestOpener = 43

// maxHarmony is how long the head of a call in harmony's format may be, in bytes.
const maxHarmony = 400

// maxPlaces bounds how many places of one text are tried: each costs a look at all of it.
const maxPlaces = 32

// opening is where, from a place on, the first opener stands in a text, -1 if there is none.
func opening(text string, from int) int {
	at := -1
	for _, rare := range []string{"[TOOL_CALLS]", "```tool_code"} {
		if i := strings.Index(text[from:], rare); i >= 0 && (at < 0 || from+i < at) {
			at = from + i
		}
	}
	end := len(text)
	if at >= 0 {
		end = at
	}
	for i := from; i < end; i++ { // all others are tags
		n := strings.IndexByte(text[i:end], '<')
		if n < 0 {
			break
		}
		if i += n; mayOpen(text[i:]) && slices.ContainsFunc(openers, func(o string) bool { return strings.HasPrefix(text[i:], o) }) {
			return i
		}
	}
	return at
}

// mayOpen tells the tags that begin like openers from usual markup and
// comparisons, by their first letters.
func mayOpen(tag string) bool {
	if len(tag) < 3 {
		return false
	}
	switch tag[1:3] {
	case "to", "TO", "fu", "mi", "in", "an":
		return true
	}
	return isToken(tag)
}

// talks reports whether a text has none of the characters without which no
// dialect writes a call, as most that only talk: one look instead of one for each.
func talks(text string) bool {
	if !markless(text) {
		return false
	}
	text = strings.TrimSpace(text)
	return !strings.HasPrefix(text, "~~~") && !strings.HasPrefix(text, codeMark) && !strings.HasPrefix(text, printMark)
}

// markless reports whether a text has none of the characters that begin marks.
func markless(text string) bool {
	for _, c := range []byte("<{[`") {
		if strings.IndexByte(text, c) >= 0 {
			return false
		}
	}
	return true
}

// How Gemma's calls begin, which are a program.
const codeMark, printMark = "tool_code = ", "print("

// noise may stand between calls and behind them, and means nothing.
var noise = []string{
	"<|im_end|>", "<|im_start|>", "<|eot_id|>", "<|eom_id|>", "</s>", "<|end|>", "<|return|>", "<|call|>", "<|endoftext|>", "<|end_of_text|>",
	"<｜tool▁calls▁begin｜>", "<｜tool▁calls▁end｜>", "<｜tool▁call▁end｜>", "<｜end▁of▁sentence｜>", "<|tool▁calls▁begin|>", "<|tool▁calls▁end|>", "<|tool▁call▁end|>",
	"<|tool_calls_section_begin|>", "<|tool_calls_section_end|>", "<|tool_call_end|>",
	"</tool_call>", "</tool_calls>", "<|/tool_call|>", "</TOOLCALL>", "</function_call>", "</functioncall>",
	"<function_calls>", "</function_calls>", "<minimax:tool_call>", "</minimax:tool_call>", "<｜DSML｜function_calls>", "</｜DSML｜function_calls>",
	"<antml:function_calls>", "</antml:function_calls>", "<tool_call|>",
	"<|python_end|>", "<|action_end|>", "[/TOOL_CALLS]", ";",
}

// wrapping openers stand before JSON, a function in tags, or a call as in Python.
var wrapping = []string{"<tool_call>", "<tool_calls>", "<|tool_call|>", "<TOOLCALL>", "<function_call>", "<functioncall>",
	"<|python_tag|>", "<|python_start|>", "<|action_start|><|plugin|>"}

var (
	harmony = regexp.MustCompile(`^(?:<\|start\|>assistant)?(?:\s*to=([^\s<]+))?\s*<\|channel\|>(?:commentary|analysis)(?:\s+to=([^\s<]+))?\s*(?:<\|constrain\|>)?\s*(?:json|code)?\s*<\|message\|>`)
	plain   = regexp.MustCompile(`^(?:assistant)?(?:commentary|analysis)\s+to=functions\.([\w.-]+)\s*(?:json|code)?\s*\{`)
	// headless is a call of Kimi whose first token is gone.
	headless = regexp.MustCompile(`^[\w.-]{1,128}:\d{1,4}\s*<\|tool_call_argument_begin\|>`)
	// sentence is how some models describe the call that they do not make.
	sentence = regexp.MustCompile(`^\[(?:Calling|Called|Call) (?:tool|function):? ([\w.-]{1,128}) (?:with )?(?:arguments|args|parameters|input):? \{`)
	named    = regexp.MustCompile(`^[A-Za-z_][\w.:/-]{0,127}`)
)

// submatch is FindStringSubmatch for an expression that only matches texts with
// one of the beginnings: usual texts have none, and cost nothing.
func submatch(re *regexp.Regexp, text string, beginnings ...string) []string {
	if !slices.ContainsFunc(beginnings, func(b string) bool { return strings.HasPrefix(text, b) }) {
		return nil
	}
	return re.FindStringSubmatch(text)
}

// argumentMark stands behind the name in Kimi's calls.
const argumentMark = "<|tool_call_argument_begin|>"

// isToken reports whether a mark is a token that no prose has.
func isToken(mark string) bool {
	return strings.HasPrefix(mark, "<|") || strings.HasPrefix(mark, "<｜") || strings.HasPrefix(mark, "[TOOL_CALLS]")
}

// cutOff reports whether a call was never closed.
func cutOff(rest string) bool { return !strings.Contains(rest, "</") }

// halfMark is where the beginning of a token that begins calls stands, if the
// text ends with it, else -1.
func halfMark(text string) int {
	text = strings.TrimRight(text, " \t\r\n")
	end := text[max(0, len(text)-longestOpener):]
	if !strings.Contains(end, "<|") && !strings.Contains(end, "<｜") && !strings.Contains(end, "[TOOL_") {
		return -1 // see isToken
	}
	for _, o := range openers {
		if !isToken(o) || len(o) < 12 {
			continue
		}
		for n := len(o) - 1; n >= 8; n-- {
			if strings.HasSuffix(text, o[:n]) {
				if at := strings.LastIndex(text, o[:n]); !fenced(text[:at]) {
					return at
				}
				return -1
			}
		}
	}
	return -1
}

// misspelt passes the closing tag of a wrapper that no dialect has, if the text
// before the calls ended with its opening tag.
func (c *cursor) misspelt(before string) bool {
	before = strings.TrimSpace(before)
	tag := before[strings.LastIndexByte(before, '<')+1:]
	if len(tag) < 2 || len(tag) > 40 || !strings.HasSuffix(tag, ">") || strings.ContainsAny(tag, " /\n") || !c.take("</"+tag) {
		return false
	}
	return c.end()
}
