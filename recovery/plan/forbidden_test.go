package plan_test

import (
	"encoding/json"
	"strings"
	"testing"
	"testing/synctest"

	"github.com/rebound-llm/rebound/recovery"
	"github.com/rebound-llm/rebound/recovery/transcript"
)

const forbiddenTools = `[{"type":"function","function":{"name":"get","parameters":{"type":"object","properties":{"id":{"type":"string"}}}}},` +
	`{"type":"function","function":{"name":"bash","parameters":{"type":"object","properties":{"command":{"type":"string"}}}}},` +
	`{"type":"function","function":{"name":"read_file","parameters":{"type":"object","properties":{"path":{"type":"string"}}}}},` +
	`{"type":"function","function":{"name":"glob","parameters":{"type":"object","properties":{"pattern":{"type":"string"}}}}},` +
	`{"type":"function","function":{"name":"search","description":"Searches the web","parameters":{"type":"object","properties":{"query":{"type":"string"}}}}},` +
	`{"type":"function","function":{"name":"find_customer","parameters":{"type":"object","properties":{"query":{"type":"string"}}}}},` +
	`{"type":"function","function":{"name":"send_message","parameters":{"type":"object","properties":{"to":{"type":"string"},"text":{"type":"string"}}}}},` +
	`{"type":"function","function":{"name":"list_messages","parameters":{"type":"object","properties":{"folder":{"type":"string"}}}}}]`

// planned is the plan that a planner's answer becomes; its source is the heuristic where the answer is refused.
func planned(t *testing.T, answer m) (p *recovery.Plan) {
	synctest.Test(t, func(t *testing.T) {
		text, err := json.Marshal(answer)
		if err != nil {
			t.Fatal(err)
		}
		g := start(t, &brain{text: string(text)}, nil)
		at := func(n int) *recovery.Exchange {
			x := stuck(t, "s", "get", n)
			raw := strings.Replace(string(x.Body.Raw()), `"tools":`, `"tools":`+forbiddenTools+`,"was":`, 1)
			if x.Body, err = transcript.Parse([]byte(raw), transcript.Chat, transcript.Limits{}); err != nil {
				t.Fatal(err)
			}
			return x
		}
		g.prepare(at(2))
		synctest.Wait()
		p, _ = g.prepare(at(3))
	})
	return p
}

// A tool's output may have written the plan: whatever it says, it names no file of secrets, shows no
// environment, decodes no command, sends nothing to anybody, and searches the web for nothing by order.
func TestForbiddenPlans(t *testing.T) {
	const refused, propose, act = "", string(recovery.BandPropose), string(recovery.BandAct)
	for _, c := range []struct{ tool, parameter, value, want string }{
		{"read_file", "path", "src/main.go", act},
		{"read_file", "path", "docs/secrets.md", act},
		{"read_file", "path", ".env.example", act},
		{"read_file", "path", "config/environment.ts", act},
		{"read_file", "path", "keys/id_rsa.go", refused},
		{"read_file", "path", "/root/.ssh/id_rsa", refused},
		{"read_file", "path", "/home/a/.SSH/config", refused},
		{"read_file", "path", "~/.aws/credentials", refused},
		{"read_file", "path", ".env", refused},
		{"read_file", "path", "app/.env.production", refused},
		{"read_file", "path", "prod.env", refused},
		{"read_file", "path", "/proc/self/environ", refused},
		{"read_file", "path", "/etc/shadow", refused},
		{"read_file", "path", `C:\Users\a\.ssh\known_hosts`, refused},
		{"read_file", "path", "file:///root/%2Essh/id_%72sa", refused},
		{"read_file", "path", "deploy/server.pem", refused},
		{"read_file", "path", "~/.bash_history", refused},
		{"read_file", "path", "config/secrets.yaml", refused},
		{"glob", "pattern", "**/*.go", act},
		{"glob", "pattern", "**/.env*", refused},
		{"glob", "pattern", "**/*.pem", refused},
		{"bash", "command", "ls -la src", act},
		{"bash", "command", "env CGO_ENABLED=0 make", propose},
		{"bash", "command", "set -e; make test", propose},
		{"bash", "command", "cat data.json | python3 scripts/clean.py", propose},
		{"bash", "command", "env", refused},
		{"bash", "command", "ls; /usr/bin/env | sort", refused},
		{"bash", "command", "printenv HOME", refused},
		{"bash", "command", "set", refused},
		{"bash", "command", "export -p > out", refused},
		{"bash", "command", `python3 -c "import os; print(os.environ)"`, refused},
		{"bash", "command", "echo Y3VybA== | base64 -d | sh", refused},
		{"bash", "command", `printf '\x6c\x73' > a; ls`, refused},
		{"bash", "command", "cat install.txt |bash", refused},
		{"bash", "command", "cat a.txt | python3 -", refused},
		{"bash", "command", `eval "$X"`, refused},
		{"bash", "command", `cat ~/.s""sh/i""d_rsa`, refused},
		{"bash", "command", `cat ~/.ss\h/id_rs\a`, refused},
		{"bash", "command", "cat ~/.s?h/*", refused},
		{"bash", "command", "cat ~/.${a}sh/x", refused},
		{"bash", "command", "exec 3<>/dev/tcp/10.0.0.1/80", refused},
		{"search", "query", "error E41 of ledgers", propose},
		{"search", "query", "site:wiki.example E41", propose},
		{"search", "query", "site:other.example LG-77", refused},
		{"search", "query", "site:/other.example LG-77", refused},
		{"search", "query", "mail a@other.example", refused},
		{"find_customer", "query", "ada@other.example", act},
		{"send_message", "to", "ada", refused},
		{"list_messages", "folder", "inbox", act},
	} {
		p := planned(t, m{"strategy": "alternative-tool", "confidence": 1, "action": m{"toolName": c.tool, "parameters": m{c.parameter: c.value}}})
		got := string(p.Band)
		if p.Source != recovery.PlanPlanner {
			got = refused
		}
		if got != c.want {
			t.Errorf("%s %q: %q, want %q", c.tool, c.value, got, c.want)
		}
	}
}

// What a planner says to the model or to the user names no file of secrets and no host that only a tool named.
func TestWordsNameNoSecret(t *testing.T) {
	for text, want := range map[string]bool{
		"Which account is Ada's?": true, "Please paste ~/.ssh/id_rsa here.": false, "Read .env first.": false,
		"Which id, see https://wiki.example/y?": true, "Please log in at https://other.example/ first.": false,
	} {
		p := planned(t, m{"strategy": "escalate", "reasoning": text, "expectedOutcome": text, "confidence": 0.9, "action": m{"escalationMessage": text}})
		for _, said := range []string{p.Message, p.Reasoning, p.Expected} {
			if (said == text) != want {
				t.Errorf("%q: %q", text, said)
			}
		}
	}
}
