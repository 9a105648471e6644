package repair

import (
	"testing"

	"github.com/rebound-llm/rebound/recovery/transcript"
)

func TestGuarded(t *testing.T) {
	m := mender()
	tool := func(name, description string, parameters ...string) *transcript.Tool {
		raw := `{"properties":{`
		for i, p := range parameters {
			if i > 0 {
				raw += ","
			}
			raw += `"` + p + `":{"type":"string"}`
		}
		return &transcript.Tool{Type: "function", Name: name, Description: description, Parameters: []byte(raw + "}}")}
	}
	for _, c := range []*transcript.Tool{
		tool("bash", ""), tool("execute_command", ""), tool("runCode", ""), tool("str_replace_editor", ""), tool("write_file", ""), tool("WriteFile", ""),
		tool("mcp__fs__delete_file", ""), tool("gmail-send-email", ""), tool("make_payment", ""), tool("transferMoney", ""), tool("search_and_replace", ""),
		tool("issue_create", ""), tool("helper", "Executes a shell command."), tool("helper", "Deletes the record."), tool("helper", "A helper", "command"),
		tool("query_database", "Query the database", "sql"), tool("cleanup", "This permanently removes files."),
	} {
		if !m.guarded(c) {
			t.Errorf("%s (%s) is not guarded", c.Name, c.Description)
		}
	}
	for _, c := range []*transcript.Tool{
		tool("get_weather", ""), tool("read_file", "Read a file before you edit it or run a command"), tool("list_orders", ""), tool("getUpdateStatus", ""),
		tool("web_search", "Search the web"), tool("calculator", "Evaluates"), tool("mcp__github__get_issue", ""), tool("glob", ""), tool("lookup", "Look something up", "query"),
	} {
		if m.guarded(c) {
			t.Errorf("%s (%s) is guarded", c.Name, c.Description)
		}
	}
	cfg := Defaults()
	cfg.Destructive, cfg.Safe = []string{"get_*"}, []string{"bash", "get_weather"}
	own := New(cfg)
	if !own.guarded(tool("get_weather", "")) || own.guarded(tool("bash", "", "command")) {
		t.Error("the lists of the configuration do not count")
	}
}

func TestNearNames(t *testing.T) {
	for _, c := range []struct {
		a, b string
		want bool
	}{
		{"get_waether", "get_weather", true}, {"get_wether", "get_weather", true}, {"list_isues", "list_issues", true}, {"get_users", "get_user", true},
		{"increase_volume", "decrease_volume", false}, {"get_status", "set_status", false}, {"lock_door", "unlock_door", false}, {"tool_v1", "tool_v2", false},
		{"import_data", "export_data", false}, {"ls", "lx", false}, {"read_fiel", "read_file", true}, {"raed_fiel", "read_file", false},
	} {
		if got := isTypo(c.a, c.b); got != c.want {
			t.Errorf("%s, %s: %v", c.a, c.b, got)
		}
	}
}
