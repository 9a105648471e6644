package main

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"time"

	"github.com/rebound-llm/rebound/e2e/agents"
)

// pi runs the command-line agent pi, once for each task, with a home of its own.
type pi struct{ node, program string }

func newPi(t tree, node string) *pi {
	return &pi{node, t.cached("agents-node", "node_modules", "@mariozechner", "pi-coding-agent", "dist", "cli.js")}
}

// Close has nothing to end.
func (p *pi) Close() error { return nil }

// Do runs pi as a user would: pi -p PROMPT.... Its last word to each prompt
// and what it executed are taken from the session that it stores; the last word
// that it prints must be the same.
func (p *pi) Do(t agents.Task) (agents.Outcome, error) {
	o := agents.Outcome{}
	home := t.Dir + ".home"
	settings, err := json.Marshal(map[string]any{"providers": map[string]any{"upstream": map[string]any{
		"baseUrl": t.BaseURL, "api": "openai-completions", "apiKey": t.APIKey,
		"models": []any{map[string]any{
			"id": t.Model, "name": "model", "reasoning": false, "input": []string{"text"}, "contextWindow": 200000, "maxTokens": 4096,
			"cost": map[string]int{"input": 0, "output": 0, "cacheRead": 0, "cacheWrite": 0},
		}},
	}}})
	if err != nil {
		return o, err
	}
	if err := layOut(home, map[string]string{".pi/agent/models.json": string(settings)}); err != nil {
		return o, err
	}
	ctx, cancel := context.WithTimeout(context.Background(), time.Duration(t.GiveUpMS)*time.Millisecond)
	defer cancel()
	sessions := filepath.Join(home, "sessions")
	args := append([]string{p.program, "--provider", "upstream", "--model", t.Model, "--session-dir", sessions, "--offline", "-p"}, t.Prompts...)
	cmd := exec.CommandContext(ctx, p.node, args...)
	cmd.Dir = t.Dir
	cmd.Env = []string{"HOME=" + home, "PATH=" + t.Path, "PI_OFFLINE=1", "PI_TELEMETRY=0", "LC_ALL=C.UTF-8"}
	var printed, said bytes.Buffer
	cmd.Stdout, cmd.Stderr = &printed, &said
	begun := time.Now()
	failed := cmd.Run()
	o.ElapsedMS = time.Since(begun).Milliseconds()
	o.OK = failed == nil
	if failed != nil {
		o.ErrorType, o.Error = failed.Error(), strings.TrimSpace(said.String())
	}
	if err := readPiSession(sessions, &o); err != nil {
		return o, err
	}
	if out := strings.TrimSpace(printed.String()); o.OK && (len(o.Texts) == 0 || out != strings.TrimSpace(o.Texts[len(o.Texts)-1])) {
		o.OK, o.ErrorType, o.Error = false, "printed", fmt.Sprintf("%.300q, but its session ends with %.300q", out, o.Texts)
	}
	return o, nil
}

// readPiSession reads the session that pi stored.
func readPiSession(dir string, o *agents.Outcome) error {
	files, err := filepath.Glob(filepath.Join(dir, "*.jsonl"))
	if err != nil {
		return err
	}
	for _, file := range files {
		data, err := os.ReadFile(file)
		if err != nil {
			return err
		}
		o.History += string(data)
	}
	// A call is executed when it has a result that pi did not make up.
	pending := map[string]agents.Call{}
	lines := bufio.NewScanner(strings.NewReader(o.History))
	lines.Buffer(nil, 64<<20)
	for lines.Scan() {
		var entry struct {
			Message struct {
				Role       string          `json:"role"`
				Content    json.RawMessage `json:"content"`
				StopReason string          `json:"stopReason"`
				ToolCallID string          `json:"toolCallId"`
			} `json:"message"`
		}
		if err := json.Unmarshal(lines.Bytes(), &entry); err != nil {
			return fmt.Errorf("pi's session: %w", err)
		}
		m := &entry.Message
		switch m.Role {
		case "assistant":
			var content []struct {
				Type, Text, ID, Name string
				Arguments            json.RawMessage
			}
			if err := json.Unmarshal(m.Content, &content); err != nil {
				return fmt.Errorf("pi's session: %w", err)
			}
			var text []string
			for _, c := range content {
				switch c.Type {
				case "text":
					text = append(text, c.Text)
				case "toolCall":
					pending[c.ID] = agents.Call{ID: c.ID, Name: c.Name, Arguments: string(c.Arguments)}
				}
			}
			if m.StopReason == "stop" {
				o.Texts = append(o.Texts, strings.Join(text, "\n"))
			}
		case "toolResult":
			if c, ok := pending[m.ToolCallID]; ok {
				o.Executed = append(o.Executed, c)
			}
		}
	}
	return lines.Err()
}
