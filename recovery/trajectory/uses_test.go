package trajectory_test

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/rebound-llm/rebound/recovery/trajectory"
	"github.com/rebound-llm/rebound/recovery/transcript"
)

// TestUses asks for the tools of agents in use, by the names and parameters that
// they send, and of other services, which are none of these.
func TestUses(t *testing.T) {
	const (
		sh, code, rd, li, se, wr, fe, as = trajectory.UseShell, trajectory.UseCode, trajectory.UseRead, trajectory.UseList, trajectory.UseSearch, trajectory.UseWrite, trajectory.UseFetch, trajectory.UseAsk
	)
	for _, c := range []struct {
		name, about string
		params      []string
		want        trajectory.Use
	}{
		// Claude Code and opencode.
		{"Bash", "Executes a given bash command", []string{"*command", "string", "timeout", "number"}, sh},
		{"Read", "Reads a file from the local filesystem", []string{"*file_path", "string"}, rd},
		{"Write", "Writes a file", []string{"*file_path", "string", "*content", "string"}, wr},
		{"MultiEdit", "Multiple edits to a single file", []string{"*file_path", "string", "*edits", "array"}, wr},
		{"Glob", "Fast file pattern matching", []string{"*pattern", "string", "path", "string"}, se | li},
		{"Grep", "A search tool built on ripgrep", []string{"*pattern", "string", "path", "string"}, se},
		{"LS", "Lists files and directories", []string{"*path", "string"}, li},
		{"WebFetch", "Fetches a URL", []string{"*url", "string", "*prompt", "string"}, fe},
		{"WebSearch", "Searches the web", []string{"*query", "string"}, fe},
		{"BashOutput", "Output of a background shell", []string{"*bash_id", "string"}, 0},
		{"KillShell", "Kills a background shell", []string{"*shell_id", "string"}, 0},
		{"TodoWrite", "Writes the list of tasks", []string{"*todos", "array"}, 0},
		{"Task", "Launches an agent", []string{"*prompt", "string"}, 0},
		{"AskUserQuestion", "Asks the user questions", []string{"*questions", "array"}, as},
		{"question", "Ask the user", []string{"*questions", "array"}, as},
		// Cline and Roo Code.
		{"execute_command", "Execute a CLI command", []string{"*command", "string"}, sh},
		{"read_file", "", []string{"*path", "string"}, rd},
		{"write_to_file", "", []string{"*path", "string", "*content", "string"}, wr},
		{"replace_in_file", "", []string{"*path", "string", "*diff", "string"}, wr},
		{"search_files", "", []string{"*path", "string", "*regex", "string"}, se},
		{"list_files", "", []string{"*path", "string"}, li},
		{"ask_followup_question", "", []string{"*question", "string"}, as},
		{"browser_action", "", []string{"*action", "string", "url", "string"}, fe},
		// Continue, Copilot, Cursor, Gemini CLI and qwen-code.
		{"run_terminal_command", "", []string{"*command", "string"}, sh},
		{"run_in_terminal", "", []string{"*command", "string", "*explanation", "string"}, sh},
		{"get_terminal_output", "", []string{"*id", "string"}, 0},
		{"run_shell_command", "", []string{"*command", "string"}, sh},
		{"read_many_files", "", []string{"*paths", "array"}, rd},
		{"list_directory", "", []string{"*path", "string"}, li},
		{"search_file_content", "", []string{"*pattern", "string"}, se},
		{"google_web_search", "", []string{"*query", "string"}, fe},
		{"grep_search", "", []string{"*query", "string"}, se},
		{"codebase_search", "Semantic search", []string{"*query", "string"}, se},
		{"file_glob_search", "", []string{"*pattern", "string"}, se | li},
		{"insert_edit_into_file", "", []string{"*filePath", "string", "*code", "string"}, wr},
		{"replace_string_in_file", "", []string{"*filePath", "string", "*oldString", "string"}, wr},
		{"create_new_file", "", []string{"*filepath", "string", "*contents", "string"}, wr},
		{"edit_file", "", []string{"*target_file", "string", "*instructions", "string"}, wr},
		// codex, OpenHands, SWE-agent, goose, MCP.
		{"shell", "Runs a shell command", []string{"*command", "array"}, sh},
		{"exec_command", "", []string{"*cmd", "string"}, sh},
		{"write_stdin", "", []string{"*session_id", "number"}, 0},
		{"apply_patch", "", []string{"*input", "string"}, wr},
		{"execute_bash", "", []string{"*command", "string"}, sh},
		{"execute_ipython_cell", "", []string{"*code", "string"}, code},
		{"str_replace_editor", "", []string{"*command", "string", "*path", "string"}, wr | rd | li},
		{"developer__shell", "", []string{"*command", "string"}, sh},
		{"read_text_file", "", []string{"*path", "string"}, rd},
		{"directory_tree", "", []string{"*path", "string"}, li},
		{"fetch", "Fetches a URL", []string{"*url", "string"}, fe},
		{"python", "Runs Python code", []string{"*code", "string"}, code},
		{"execute_code", "", []string{"*code", "string"}, code},
		// What shows the output of a command runs none; what fetches and runs does.
		{"get_command_output", "", []string{"*id", "string"}, 0},
		{"get_command_output", "", nil, 0},
		{"fetch_and_run", "", []string{"*url", "string", "*command", "string"}, sh | fe},
		{"fetch_and_run", "", nil, sh | fe},
		// By the name alone, as histories show them.
		{"bash", "", nil, sh},
		{"execute_command", "", nil, sh},
		{"read_file", "", nil, rd},
		{"write_file", "", nil, wr},
		{"list_dir", "", nil, li},
		{"grep", "", nil, se},
		{"web_search", "", nil, fe},
		// Not a coding agent's.
		{"get_weather", "The weather", []string{"*city", "string"}, 0},
		{"book_reservation", "", []string{"*user_id", "string"}, 0},
		{"list_issues", "Lists issues of a repository", []string{"*repo", "string"}, 0},
		{"run_query", "Runs a query on the database", []string{"*sql", "string"}, 0},
		{"search_replace", "Replace text in a file", []string{"*file_path", "string", "*old_string", "string"}, wr},
		{"search_direct_flight", "", []string{"*origin", "string"}, 0},
		{"transfer_to_human_agents", "", []string{"*summary", "string"}, 0},
		{"execute_sql", "Runs a SQL query", []string{"*query", "string"}, 0},
		{"ask_expert_model", "Asks another model", []string{"*prompt", "string"}, 0},
		{"create_issue", "", []string{"*title", "string"}, 0},
		{"read_email", "", []string{"*id", "string"}, 0},
		{"", "", nil, 0},
	} {
		tl := transcript.Tool{Type: "function", Name: c.name, Description: c.about}
		if c.params != nil {
			props := map[string]any{}
			for i := 0; i < len(c.params); i += 2 {
				props[strings.TrimPrefix(c.params[i], "*")] = map[string]string{"type": c.params[i+1]}
			}
			raw, err := json.Marshal(map[string]any{"type": "object", "properties": props})
			if err != nil {
				t.Fatal(err)
			}
			tl.Parameters = raw
		}
		if got := trajectory.ToolOf(tl).Uses; got != c.want {
			t.Errorf("%s %v: %b, want %b", c.name, c.params, got, c.want)
		}
	}
}
