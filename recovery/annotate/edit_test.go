package annotate_test

import (
	"strings"
	"testing"

	"github.com/rebound-llm/rebound/recovery/annotate"
)

// TestEditFailed: what an editor did not apply is told with the difference, where
// the conversation shows it, and never as a matter of parameters.
func TestEditFailed(t *testing.T) {
	edit := tool("edit", "Edit a file.", "*path", "string", "*old_string", "string", "*new_string", "string", "replace_all", "boolean")
	patch := tool("apply_patch", "Apply a patch.", "*input", "string")
	diff := tool("replace_in_file", "Edit a file.", "*path", "string", "*diff", "string")
	multi := tool("multi_edit", "Edit a file.", "*file_path", "string", "*edits", "array")
	for _, c := range []struct {
		name string
		talk *talk
		want []string
	}{
		{"other white space", agent(bash, read, edit).call("read", object{"path": "src/a.py"}, "     1\tdef f(x):\n     2\t    if x:\n     3\t        return 1\n").
			call("edit", object{"path": "src/a.py", "old_string": "  if x:\n    return 1", "new_string": "y"}, "String to replace not found in file.\nString: if x:"),
			[]string{"`src/a.py` has `if x:` with other white space"}},
		{"another text", agent(bash, read, edit).call("read", object{"path": "src/a.py"}, "def compute_total(items, tax):\n    return sum(items)*tax\n").
			call("edit", object{"path": "src/a.py", "old_string": "def compute_total(items, tax_rate):\n    return sum(items)*tax", "new_string": "y"}, "Error: oldString not found in content"),
			[]string{"The call says `def compute_total(items, tax_rate):`", "`src/a.py` showed `def compute_total(items, tax):`"}},
		{"a file that was not shown", agent(bash, edit).call("edit", object{"path": "src/a.py", "old_string": "x", "new_string": "y"}, "Could not find the exact "+
			"text in src/a.py. The old text must match exactly including all whitespace and newlines."),
			[]string{"Read `src/a.py` again at that place"}},
		{"several places", agent(bash, edit).call("edit", object{"path": "src/a.py", "old_string": "x = 1", "new_string": "y"}, "Found 3 matches of the "+
			"string to replace, but replace_all is false. To replace all occurrences, set replace_all to true."),
			[]string{"stands 3 times in `src/a.py`", "or set `replace_all`"}},
		{"a patch", agent(bash, patch).run("cat src/m.rs", "fn main() {\n    let cfg = load(path);\n    run(cfg);\n}\n").
			call("apply_patch", object{"input": "*** Begin Patch\n*** Update File: src/m.rs\n@@\n fn main() {\n-    let cfg = load(&path);\n+    let " +
				"cfg = load(p);\n*** End Patch"}, "apply_patch verification failed: Failed to find expected lines in src/m.rs:\n    let cfg = load(&path);"),
			[]string{"The call says `let cfg = load(&path);`", "`src/m.rs` showed `let cfg = load(path);`"}},
		{"a search block", agent(bash, diff).run("cat web/app.ts", "export const port = 8080;\n").
			call("replace_in_file", object{"path": "web/app.ts", "diff": "<<<<<<< SEARCH\nexport const port = 80;\n=======\nexport const port = 81;\n" +
				">>>>>>> REPLACE"}, "The tool execution failed with the following error:\n<error>\nThe SEARCH block:\n```\nexport const port = 80;\n```\n...does not match anything in the file.\n</error>"),
			[]string{"`export const port = 80;`", "`export const port = 8080;`"}},
		{"one of several edits", agent(bash, multi).run("cat a.go", "package a\n\nconst Limit = 10\n").
			call("multi_edit", object{"file_path": "a.go", "edits": []object{{"old_string": "package a", "new_string": "package b"},
				{"old_string": "const limit = 10", "new_string": "z"}}}, "String to replace not found "+
				"in file.\nString: const limit = 10"),
			[]string{"`const limit = 10`", "`const Limit = 10`"}},
	} {
		t.Run(c.name, func(t *testing.T) {
			s, _ := stage(t, nil)
			x := c.talk.exchange(t)
			note, advice := s.Note(x)
			wellFormed(t, note)
			if len(advice.Strategies) == 0 || advice.Strategies[0] != "copy_exactly" {
				t.Errorf("strategies %v", advice.Strategies)
			}
			for _, w := range c.want {
				if !strings.Contains(note, w) {
					t.Errorf("the note lacks %q:\n%s", w, note)
				}
			}
			for _, bad := range []string{"Correct ", "add the others", "is declared as"} {
				if strings.Contains(note, bad) {
					t.Errorf("the note says %q:\n%s", bad, note)
				}
			}
		})
	}
}

// An operator can change the chain of edits as any other.
func TestEditFailedChanged(t *testing.T) {
	s, _ := stage(t, func(c *annotate.Config) {
		c.Chains = map[string][]annotate.Strategy{annotate.EditFailed: {{Name: "ask_user", Steps: []string{"open the editor"}}}}
	})
	edit := tool("edit", "Edit a file.", "*path", "string", "*old_string", "string", "*new_string", "string")
	x := agent(edit).call("edit", object{"path": "a", "old_string": "x", "new_string": "y"}, "String to replace not found in file.").exchange(t)
	x.Turn.Seen = 4
	if note, _ := s.Note(x); !strings.Contains(note, "ask the user to open the editor.") {
		t.Error(note)
	}
}
