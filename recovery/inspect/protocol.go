package inspect

import (
	"strings"

	"github.com/rebound-llm/rebound/recovery"
	"github.com/rebound-llm/rebound/recovery/transcript"
)

// protocol says how a conversation without tool calls names actions.
type protocol uint8

const (
	protocolUnknown protocol = iota
	protocolNone             // native tool calls, or a conversation between people
	protocolTagged           // explicit marks of actions only
	protocolFenced           // the instructions say that a code block is an action
)

// maxAction bounds the part of an assistant's text in which an action is looked for, in bytes.
const maxAction = 64 << 10

var (
	// fence is a code block; the last one of a text is the action.
	fence = recovery.NewPattern("(?s)```[ \t]*([\\w-]*)[ \t]*\\r?\\n(.*?)\\n?```")
	// functionTag is the action of OpenHands' and Llama's text protocol.
	functionTag = recovery.NewPattern(`(?s)<function=([\w.-]{1,80})>(.*?)(?:</function>|$)`)
	// commandTag is a shell command between tags: SWE-agent's XML form, OpenHands, CodeAct and others.
	commandTag = recovery.NewPattern(`(?s)<(command|execute_bash|execute_ipython|bash|action|execute|code|tool_code|run_command)>\s*(.*?)\s*</`)
	// callTag is the action of Hermes and Qwen templates: JSON between tags.
	callTag = recovery.NewPattern(`(?s)<(?:tool_call|function_call|tool_use|invoke|use_mcp_tool)\b[^>]*>\s*(.*?)\s*</(?:tool_call|function_call|tool_use|invoke|use_mcp_tool)>`)
	// namedTag is the action of Cline and Roo Code: the tool's name is the tag.
	namedTag = recovery.NewPattern(`(?s)<(execute_command|read_file|write_to_file|replace_in_file|apply_diff|search_files|list_files|list_code_definition_names|browser_action|insert_content|search_and_replace|ask_followup_question|use_mcp_tool|access_mcp_resource|new_task|switch_mode|fetch_instructions|attempt_completion)>(.*?)(?:</(?:execute_command|read_file|write_to_file|replace_in_file|apply_diff|search_files|list_files|list_code_definition_names|browser_action|insert_content|search_and_replace|ask_followup_question|use_mcp_tool|access_mcp_resource|new_task|switch_mode|fetch_instructions|attempt_completion)>|$)`)
	// actionLine is ReAct's.
	actionLine = recovery.NewPattern(`(?m)^\**Action:?\**:?[ \t]*([\w. -]{1,80}?)[ \t]*(?:\[(.*)\])?[ \t]*$`)
	inputLine  = recovery.NewPattern(`(?ms)^\**Action Input:?\**:?[ \t]*(.*)`)
	nameInJSON = recovery.NewPattern(`"(?:name|tool|function)"\s*:\s*"([\w.-]{1,80})"`)

	// fencedActions are instructions that make code blocks actions.
	fencedActions = recovery.NewPattern(`(?i)bash-\$|special interface|one (?:command|action|bash command|code block) at a time|(?:single|exactly one|one) (?:bash )?(?:code ?block|command|action|bash block|triple.backtick)|triple backticks|commands? (?:that )?(?:you (?:write|give|run)|in (?:a|the) code ?block)s? (?:will|is|are) (?:be )?(?:executed|run)|your (?:code|command|response)s? (?:will be|is|must) .{0,60}(?:executed|code block)|suggest (?:python|shell) code`)
	// observationHead begins what a scaffold says in the user's place.
	observationHead = recovery.NewPattern(`(?i)^\s*(?:observation:|<returncode>|<(?:output|observation|tool_result|tool_response|function_results?|function_response|result|stdout|stderr|exit_code|environment)\b|exit ?code:? -?\d|execution result of|\[\w+(?: for '[^\n]*)?\] result|tool (?:result|output|response)|your command ran successfully|result of |\[file: |command (?:output|executed|result|exited|failed)|the command (?:exited|ran|failed|completed)|output:|stdout:|traceback \(most recent|\[the command completed|bash: )`)
	// observationTail ends it.
	observationTail = recovery.NewPattern(`(?:\nbash-\$|\(Current directory: [^\n]*\)(?:\nbash-\$)?|exit code -?\d+\.?\]?|\[Command finished with exit code -?\d+\]|</(?:output|observation|tool_response|tool_result|function_results?)>|Command exited with code -?\d+)\s*$`)
	// feedback is a person's words inside such a message.
	feedback = recovery.NewPattern(`<(?:feedback|user_message|answer|user_feedback)>`)
)

// action is a call that an assistant's text makes.
type action struct {
	tool, arguments string
	explicit        bool // marked as a call, not just a code block
}

// findAction reads the last action in an assistant's text.
func findAction(text string) (a action, ok bool) {
	if len(text) > maxAction {
		text = text[len(text)-maxAction:]
	}
	if m := lastMatch(functionTag, text); m != nil {
		return action{m[1], strings.TrimSpace(m[2]), true}, true
	}
	if m := lastMatch(callTag, text); m != nil {
		a := action{arguments: m[1], explicit: true}
		if name := nameInJSON.FindStringSubmatch(m[1]); name != nil {
			a.tool = name[1]
		}
		return a, true
	}
	if m := lastMatch(namedTag, text); m != nil {
		args := strings.TrimSpace(m[2])
		if c := lastMatch(commandTag, args); m[1] == "execute_command" && c != nil {
			args = c[2]
		}
		return action{m[1], args, true}, true
	}
	if m := lastMatch(commandTag, text); m != nil {
		tool := "bash"
		if m[1] == "execute_ipython" || m[1] == "tool_code" || m[1] == "code" {
			tool = "python"
		}
		return action{tool, m[2], true}, true
	}
	if m := lastMatch(actionLine, text); m != nil {
		a := action{strings.TrimSpace(m[1]), m[2], true}
		if in := lastMatch(inputLine, text); in != nil {
			a.arguments = strings.TrimSpace(in[1])
		}
		return a, true
	}
	if m := lastMatch(fence, text); m != nil {
		tool := "bash"
		switch strings.ToLower(m[1]) {
		case "python", "py", "ipython", "javascript", "js":
			tool = "python"
		}
		return action{tool: tool, arguments: strings.TrimSpace(m[2])}, true
	}
	return action{}, false
}

func lastMatch(re *recovery.Pattern, s string) []string {
	all := re.FindAllStringSubmatch(s, -1)
	if len(all) == 0 {
		return nil
	}
	return all[len(all)-1]
}

// observation reads user message i as what a tool answered.
func (r *reader) observation(i int) (res recovery.ToolResult, ok bool) {
	if r.protocol == protocolUnknown {
		r.protocol = r.findProtocol()
	}
	if r.protocol == protocolNone || r.list[i-1].Role != transcript.RoleAssistant {
		return res, false
	}
	a, ok := findAction(r.list[i-1].Text())
	if !ok {
		return res, false
	}
	text := r.list[i].Text()
	looks := observationHead.MatchString(text[:min(len(text), 400)]) || observationTail.MatchString(text[max(0, len(text)-400):])
	if !looks && !a.explicit && r.protocol != protocolFenced || feedback.MatchString(text) {
		return res, false
	}
	return recovery.ToolResult{Index: i, Tool: a.tool, Arguments: a.arguments, Content: text}, true
}

// findProtocol looks for native calls, which rule a text protocol out, and at
// the instructions: what the system says, and the user before the first answer.
func (r *reader) findProtocol() protocol {
	if len(r.body.Tools()) > 0 {
		return protocolNone
	}
	first := -1
	for i := range r.list {
		if r.list[i].Role == transcript.RoleTool {
			return protocolNone
		}
		if first < 0 && r.list[i].Role == transcript.RoleAssistant {
			first = i
			if len(r.list[i].ToolCalls()) > 0 {
				return protocolNone
			}
		}
	}
	for i := range max(first, 0) {
		if fencedActions.MatchString(window(r.list[i].Text())) {
			return protocolFenced
		}
	}
	return protocolTagged
}
