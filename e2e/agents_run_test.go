package main

import (
	"os"
	"path/filepath"
	"slices"
	"testing"

	"github.com/rebound-llm/rebound/e2e/agents"
)

func TestAgentTable(t *testing.T) {
	var have []string
	for _, l := range agentLibraries {
		have = append(have, l.name)
	}
	if have = append(have, agents.Pi, agents.Codex, agents.Opencode, agents.OpencodeAnthropic, agents.ClaudeCode); !slices.Equal(have, agents.Clients()) {
		t.Errorf("clients that can be started: %v, clients of the table: %v", have, agents.Clients())
	}
	for _, c := range agents.Clients() {
		if slices.Contains(clientNames(), c) {
			t.Errorf("%s is in both parts, and -client cannot tell which is meant", c)
		}
	}
	runs := expandAgents(agents.Scenarios(), agents.Clients(), []Mode{Streamed, Whole}, 2)
	seen := map[string]bool{}
	for _, r := range runs {
		name := r.model("straight")
		if seen[name] || reasons(name) {
			t.Errorf("%s is not a name of its own, or one of a reasoning model", name)
		}
		seen[name] = true
		if agents.OnlyStreams(r.client) && r.mode != agents.Streamed {
			t.Errorf("%s always streams", name)
		}
	}
}

func TestReadCodexSession(t *testing.T) {
	home := t.TempDir()
	const session = `{"type":"session_meta","payload":{"id":"x"}}
{"type":"event_msg","payload":{"type":"item_completed","item":{"type":"CommandExecution","id":"a","command":["/bin/bash","-c","cat -- x"]}}}
{"type":"event_msg","payload":{"type":"item_completed","item":{"type":"CommandExecution","id":"b","command":["/bin/bash","-c","ls"]}}}
{"type":"event_msg","payload":{"type":"task_complete","last_agent_message":"Done."}}
`
	if err := layOut(home, map[string]string{"sessions/2026/11/a.jsonl": session}); err != nil {
		t.Fatal(err)
	}
	o := agents.Outcome{OK: true}
	if err := readCodexSession(home, nil, &o); err != nil {
		t.Fatal(err)
	}
	if !slices.Equal(o.Texts, []string{"Done."}) || !slices.Equal(o.Executed, []agents.Call{agents.DidRead("x"), agents.DidRun("ls")}) || o.History != session {
		t.Errorf("read %+v", o)
	}
}

func TestReadOpencode(t *testing.T) {
	const printed = `{"type":"tool_use","part":{"tool":"read","state":{"status":"error","input":{"filePath":"x"}}}}
{"type":"tool_use","part":{"tool":"invalid","state":{"input":{"tool":"y"}}}}
{"type":"step_finish","part":{"reason":"tool-calls"}}
{"type":"text","part":{"text":"Done."}}
{"type":"step_finish","part":{"reason":"stop"}}
`
	o := agents.Outcome{OK: true}
	if err := readOpencode("", []byte(printed), &o); err != nil {
		t.Fatal(err)
	}
	if !o.OK || !slices.Equal(o.Texts, []string{"Done."}) || !slices.Equal(o.Executed, []agents.Call{agents.DidRead("x")}) {
		t.Errorf("read %+v", o)
	}
}

func TestReadPiSession(t *testing.T) {
	dir := t.TempDir()
	const session = `{"type":"session","cwd":"/x"}
{"type":"message","message":{"role":"user","content":[{"type":"text","text":"go"}]}}
{"type":"message","message":{"role":"assistant","content":[{"type":"text","text":"Now."},{"type":"toolCall","id":"a","name":"read","arguments":{"path":"x"}},{"type":"toolCall","id":"b","name":"bash","arguments":{}}],"stopReason":"toolUse"}}
{"type":"message","message":{"role":"toolResult","toolCallId":"a","content":[{"type":"text","text":"well"}]}}
{"type":"message","message":{"role":"assistant","content":[{"type":"text","text":"Done."}],"stopReason":"stop"}}
{"type":"message","message":{"role":"assistant","content":[],"stopReason":"error"}}
`
	if err := os.WriteFile(filepath.Join(dir, "1.jsonl"), []byte(session), 0o644); err != nil {
		t.Fatal(err)
	}
	var o agents.Outcome
	if err := readPiSession(dir, &o); err != nil {
		t.Fatal(err)
	}
	if !slices.Equal(o.Texts, []string{"Done."}) || len(o.Executed) != 1 || o.Executed[0].Name != "read" || o.Executed[0].Arguments != `{"path":"x"}` ||
		o.History != session {
		t.Errorf("read %+v", o)
	}
}
