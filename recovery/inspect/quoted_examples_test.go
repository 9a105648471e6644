package inspect_test

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/rebound-llm/rebound/recovery"
	"github.com/rebound-llm/rebound/recovery/inspect"
)

// TestExamplesInText: the examples of every rule also stand in documents, tests and search results that an agent reads
// successfully. There they are no failures: each example has a lookalike, whether its rule lists one or not.
func TestExamplesInText(t *testing.T) {
	rules, err := inspect.RulesForTests().Rules()
	if err != nil {
		t.Fatal(err)
	}
	for i := range rules.Len() {
		r := rules.Rule(i)
		for _, example := range r.Examples {
			line, _, _ := strings.Cut(example, "\n")
			for _, c := range []struct{ command, content string }{
				{"cat docs/errors.md", "# Errors\n\nSome users report this:\n\n" + example + "\n\nThe next section describes how to install the program.\n"},
				{"grep -rn rror docs", "docs/errors.md:12:" + line + "\ndocs/index.md:3:See errors.md."},
			} {
				args, _ := json.Marshal(map[string]string{"command": c.command})
				f := inspect.Judge(recovery.ToolResult{Tool: "bash", Arguments: string(args), Content: "<returncode>0</returncode>\n<output>\n" + c.content + "\n</output>"})
				if f.Failed {
					t.Errorf("%s: %s by %s: %s", r.Name, f.Category, f.Rule, c.content)
				}
			}
		}
	}
}
