package inspect_test

import (
	"testing"

	"github.com/rebound-llm/rebound/configs"
	"github.com/rebound-llm/rebound/recovery"
	"github.com/rebound-llm/rebound/recovery/inspect"
)

// The designs' own examples of what tools answer are failures, of the kinds that have a chain there.
func TestWordsOfDesigns(t *testing.T) {
	for content, want := range map[string]recovery.Category{
		"division by zero":                                   recovery.CategoryNone,
		"Error: division by zero":                            recovery.CategoryNone,
		"ZeroDivisionError: division by zero":                recovery.CategoryNone,
		"Tool execution failed: Division by zero":            recovery.CategoryNone,
		"runtime error: integer divide by zero":              recovery.CategoryNone,
		"Sidecar request timeout: agentQuery":                recovery.ToolTimeout,
		"Error: tool 'repo_browser' is not in the allowlist": recovery.ToolNotFound,
		"MCP server 'jira' is not available":                 recovery.NetworkError,
		"Not connected":                                      recovery.NetworkError,
	} {
		if f := inspect.NewRules(configs.ToolRules).Judge(recovery.ToolResult{Tool: "do", Content: content}); !f.Failed || f.Category != want {
			t.Errorf("%q: %+v, want %q", content, f, want)
		}
	}
}
