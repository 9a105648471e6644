package main

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"time"

	"github.com/rebound-llm/rebound/e2e/agents"
)

// cli is a command-line agent of npm, run once for each prompt with a home of its own.
type cli struct {
	program []string
	// files are those of its home.
	files func(t *agents.Task) map[string]string
	// args and env are for one prompt; first says that it begins the conversation.
	args func(t *agents.Task, prompt string, first bool) []string
	env  func(t *agents.Task, home string) []string
	// read takes the outcome of all prompts from what it stored and printed.
	read func(home string, printed []byte, o *agents.Outcome) error
}

// Close has nothing to end.
func (c *cli) Close() error { return nil }

// Do runs the agent as a user would.
func (c *cli) Do(t agents.Task) (agents.Outcome, error) {
	home, begun := t.Dir+".home", time.Now()
	if err := layOut(home, c.files(&t)); err != nil {
		return agents.Outcome{}, err
	}
	ctx, cancel := context.WithTimeout(context.Background(), time.Duration(t.GiveUpMS)*time.Millisecond)
	defer cancel()
	o := agents.Outcome{OK: true}
	var printed bytes.Buffer
	for i, prompt := range t.Prompts {
		args := append(c.program[1:len(c.program):len(c.program)], c.args(&t, prompt, i == 0)...)
		cmd := exec.CommandContext(ctx, c.program[0], args...)
		cmd.Dir = t.Dir
		cmd.Env = append(c.env(&t, home), "HOME="+home, "PATH="+t.Path, "LC_ALL=C.UTF-8")
		cmd.WaitDelay = time.Second
		var said bytes.Buffer
		cmd.Stdout, cmd.Stderr = &printed, &said
		if err := cmd.Run(); err != nil {
			o.OK, o.ErrorType, o.Error = false, err.Error(), strings.TrimSpace(said.String())
			break
		}
	}
	err := c.read(home, printed.Bytes(), &o)
	o.ElapsedMS = time.Since(begun).Milliseconds()
	return o, err
}

// eachLine reads lines of JSON.
func eachLine[T any](data []byte, do func(entry *T)) error {
	lines := bufio.NewScanner(bytes.NewReader(data))
	lines.Buffer(nil, 64<<20)
	for lines.Scan() {
		var entry T
		if err := json.Unmarshal(lines.Bytes(), &entry); err != nil {
			return fmt.Errorf("%w: %.200s", err, lines.Bytes())
		}
		do(&entry)
	}
	return lines.Err()
}

// newCodex is codex exec, told of the gateway as a provider of its own.
func newCodex(t tree, node string) *cli {
	return &cli{
		program: []string{node, t.cached("agents-cli", "node_modules", "@openai", "codex", "bin", "codex.js")},
		files: func(task *agents.Task) map[string]string {
			return map[string]string{"config.toml": fmt.Sprintf(
				"model = %q\nmodel_provider = \"gw\"\nallow_login_shell = false\n[model_providers.gw]\nname = \"gw\"\nbase_url = %q\nenv_key = \"GW_KEY\"\nwire_api = \"responses\"\n",
				task.Model, task.BaseURL)}
		},
		args: func(_ *agents.Task, prompt string, first bool) []string {
			args := []string{"exec", "--skip-git-repo-check", "--dangerously-bypass-approvals-and-sandbox"}
			if !first {
				args = append(args, "resume", "--last")
			}
			return append(args, prompt)
		},
		env: func(t *agents.Task, home string) []string {
			return []string{"CODEX_HOME=" + home, "GW_KEY=" + t.APIKey}
		},
		read: readCodexSession,
	}
}

// codexEntry is a line of the session that codex stores.
type codexEntry struct {
	Payload struct {
		Type string
		Last string `json:"last_agent_message"`
		Item struct {
			Type    string
			ID      string
			Command []string
		}
	}
}

// readCodexSession reads the session that codex stored: commands that ran, and its
// last word to each prompt. A command by which it reads is a call that reads.
func readCodexSession(home string, _ []byte, o *agents.Outcome) error {
	return filepath.WalkDir(filepath.Join(home, "sessions"), func(file string, _ os.DirEntry, err error) error {
		if errors.Is(err, fs.ErrNotExist) || err == nil && filepath.Ext(file) != ".jsonl" {
			return nil
		}
		if err != nil {
			return err
		}
		data, err := os.ReadFile(file)
		if err != nil {
			return err
		}
		o.History += string(data)
		return eachLine(data, func(e *codexEntry) {
			switch p := &e.Payload; {
			case p.Type == "task_complete" && o.OK:
				o.Texts = append(o.Texts, p.Last)
			case p.Type == "item_completed" && p.Item.Type == "CommandExecution" && len(p.Item.Command) > 0:
				o.Executed = append(o.Executed, agents.DidRun(p.Item.Command[len(p.Item.Command)-1]))
			}
		})
	})
}

// newOpencode is opencode run, with its provider for OpenAI or Anthropic.
func newOpencode(t tree, provider string) *cli {
	return &cli{
		program: []string{t.cached("agents-cli", "node_modules", "opencode-ai", "bin", "opencode.exe")}, // on every system
		files: func(task *agents.Task) map[string]string {
			settings := map[string]any{
				"provider": map[string]any{provider: map[string]any{
					"options": map[string]any{"baseURL": task.BaseURL, "apiKey": task.APIKey},
					"models":  map[string]any{task.Model: map[string]any{"name": "model"}},
				}},
				"permission": map[string]any{"*": "allow"}, "autoupdate": false, "share": "disabled",
			}
			raw, _ := json.Marshal(settings) // only maps and strings
			return map[string]string{".config/opencode/opencode.json": string(raw)}
		},
		args: func(task *agents.Task, prompt string, first bool) []string {
			args := []string{"run", "--format", "json", "--title", "task", "--pure", "-m", provider + "/" + task.Model}
			if !first {
				args = append(args, "--continue")
			}
			return append(args, prompt)
		},
		env: func(*agents.Task, string) []string {
			return []string{"OPENCODE_DISABLE_AUTOUPDATE=1", "OPENCODE_DISABLE_MODELS_FETCH=1", "OPENCODE_DISABLE_LSP_DOWNLOAD=1"}
		},
		read: readOpencode,
	}
}

// opencodeEvent is a line that opencode prints.
type opencodeEvent struct {
	Type  string
	Error json.RawMessage
	Part  struct {
		Text, Reason, Tool string
		State              struct {
			Input struct {
				FilePath, Command string
			}
		}
	}
}

// readOpencode reads what opencode printed. Its tool invalid is where it puts calls
// that it could not use.
func readOpencode(_ string, printed []byte, o *agents.Outcome) error {
	o.History = string(printed)
	text := ""
	return eachLine(printed, func(e *opencodeEvent) {
		p := &e.Part
		switch {
		case e.Type == "error":
			o.OK, o.ErrorType, o.Error = false, "error", string(e.Error)
		case e.Type == "text":
			text = p.Text
		case e.Type == "step_finish" && p.Reason != "tool-calls":
			o.Texts = append(o.Texts, text)
		case e.Type == "tool_use" && p.Tool == "read":
			o.Executed = append(o.Executed, agents.DidRead(p.State.Input.FilePath))
		case e.Type == "tool_use" && p.Tool == "bash":
			o.Executed = append(o.Executed, agents.DidRun(p.State.Input.Command))
		}
	})
}

// newClaude is claude -p, told of the gateway as its users do: by its environment.
func newClaude(program string) *cli {
	return &cli{
		program: []string{program},
		files:   func(*agents.Task) map[string]string { return nil },
		args: func(t *agents.Task, prompt string, first bool) []string {
			args := []string{"-p", "--model", t.Model, "--output-format", "stream-json", "--verbose", "--allowedTools", "Bash,Read"}
			if !first {
				args = append(args, "--continue")
			}
			return append(args, "--", prompt)
		},
		env: func(t *agents.Task, _ string) []string {
			return []string{"ANTHROPIC_BASE_URL=" + strings.TrimSuffix(t.BaseURL, "/v1"), "ANTHROPIC_API_KEY=" + t.APIKey, "DISABLE_AUTOUPDATER=1", "CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC=1"}
		},
		read: readClaude,
	}
}

// claudeEntry is a line that Claude Code prints.
type claudeEntry struct {
	Type    string
	Result  string
	IsError bool `json:"is_error"`
	Message struct {
		Content json.RawMessage
	}
}

// readClaude reads what Claude Code printed: calls whose result is no refusal of the
// call itself, and its last word to each prompt.
func readClaude(_ string, printed []byte, o *agents.Outcome) error {
	o.History = string(printed)
	calls := map[string]agents.Call{}
	return eachLine(printed, func(e *claudeEntry) {
		var blocks []struct {
			Type, ID, Name string
			Input          struct {
				Command  string
				FilePath string `json:"file_path"`
			}
			Answers string          `json:"tool_use_id"`
			Content json.RawMessage `json:"content"`
		}
		_ = json.Unmarshal(e.Message.Content, &blocks) // of a text there are none
		for _, b := range blocks {
			switch {
			case b.Type == "tool_use" && b.Name == "Read":
				calls[b.ID] = agents.DidRead(b.Input.FilePath)
			case b.Type == "tool_use" && b.Name == "Bash":
				calls[b.ID] = agents.DidRun(b.Input.Command)
			case b.Type == "tool_result" && !bytes.Contains(b.Content, []byte("InputValidationError")):
				if c, known := calls[b.Answers]; known {
					o.Executed = append(o.Executed, c)
				}
			}
		}
		switch {
		case e.Type == "result" && e.IsError:
			o.OK, o.ErrorType, o.Error = false, "error", e.Result
		case e.Type == "result":
			o.Texts = append(o.Texts, e.Result)
		}
	})
}
