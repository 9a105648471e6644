package trajectory_test

import (
	"strings"
	"testing"

	"github.com/rebound-llm/rebound/recovery/hostiletest"
	"github.com/rebound-llm/rebound/recovery/trajectory"
)

func TestFiles(t *testing.T) {
	for _, c := range []struct{ tool, arguments, files string }{
		{"read", `{"path":"a/b.go"}`, "read a/b.go"},
		{"Read", `{"file_path":"/x/./b.go","offset":10}`, "read /x/b.go"},
		{"readFile", `{"target_file":"b.go"}`, "read b.go"},
		{"edit", `{"path":"b.go","old":"x","new":"y"}`, "edited b.go"},
		{"str_replace_editor", `{"command":"view","path":"/w/b.go"}`, "read /w/b.go"},
		{"str_replace_editor", `{"command":"str_replace","path":"/w/b.go"}`, "edited /w/b.go"},
		{"str_replace_editor", `{"command":"create","path":"/w/b.go"}`, "created /w/b.go"},
		{"apply_patch", `{"input":"*** Begin Patch\n*** Update File: a/c.go\n@@\n*** Add File: d.go\n*** Delete File: e.go\n*** End Patch"}`,
			"edited a/c.go, created d.go, deleted e.go"},
		{"apply_patch", "*** Begin Patch\n*** Update File: a/c.go\n@@\n*** End Patch", "edited a/c.go"},
		{"write_file", `{"path":"b.go","content":"x"}`, "created b.go"},
		{"delete_file", `{"path":"b.go"}`, "deleted b.go"},
		{"grep", `{"pattern":"x","path":"src"}`, "read src"},
		{"bash", `{"command":"npm test"}`, ""},
		{"shell", `{"command":["bash","-lc","cat a/b.go"]}`, "read a/b.go"},
		{"bash", `{"command":"cd /w && sed -n '1,80p' b.go"}`, "read b.go"},
		{"bash", `{"command":"cat b.go | grep x 'c d.md' > out.txt"}`, "read b.go, created out.txt"},
		{"bash", `{"command":"cat > b.go <<'EOF'\nx.go\nEOF"}`, "created b.go"},
		{"bash", `{"command":"sed -i 's/a/b/' src/b.go"}`, "edited src/b.go"},
		{"bash", `{"command":"rm -rf x.go; cat b.go"}`, "deleted x.go, read b.go"},
		{"bash", `{"command":"cp a.json themes/b.json"}`, "read a.json, created themes/b.json"},
		{"bash", `{"command":"curl https://example.com/a.html --data=x.y"}`, ""},
		{"bash", "open src/fields.py 1474", "read src/fields.py"},
		{"get_reservation", `{"id":"Z"}`, ""},
		{"read", "not json", ""},
		{"read", `["b.go"]`, ""},
	} {
		var got []string
		for _, f := range (&trajectory.Call{Tool: c.tool, Arguments: c.arguments}).Files() {
			got = append(got, string(f.Act)+" "+f.Path)
		}
		if strings.Join(got, ", ") != c.files {
			t.Errorf("%s %s: %q, want %q", c.tool, c.arguments, got, c.files)
		}
	}
}

func TestAttempt(t *testing.T) {
	for _, c := range []struct{ tool, arguments, attempt string }{
		{"bash", `{"command":"cd x && npm -s test -- a | tail -3"}`, "npm test a"},
		{"bash", `{"command":"A=1 make all; ls"}`, "make all"},
		{"edit", `{"path":"./b.go","old":"x"}`, "edit b.go"},
		{"find_order", `{"id":7}`, `find_order {"id":7}`},
	} {
		if got := (&trajectory.Call{Tool: c.tool, Arguments: c.arguments}).Attempt(); got != c.attempt {
			t.Errorf("%s %s: %q, want %q", c.tool, c.arguments, got, c.attempt)
		}
	}
}

func TestFilesAreLinear(t *testing.T) {
	hostiletest.Linear(t, hostiletest.Texts(), func(input string) func() {
		return func() {
			for _, tool := range []string{"bash", "apply_patch", "read"} {
				c := trajectory.Call{Tool: tool, Arguments: input}
				c.Files()
				c.Attempt()
			}
		}
	})
}
