package trajectory_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/rebound-llm/rebound/recovery/trajectory"
)

func TestInvocations(t *testing.T) {
	for _, c := range []struct{ line, want string }{
		{"ls -l 'My Documents' | head -3", "ls[ls -l My Documents] head[head -3]"},
		{`cd /w && FOO=1 /usr/bin/python3 -c "print('x')" > out.log 2>&1`, "cd[cd /w] python3[/usr/bin/python3 -c print('x')]>out.log"},
		{"if true; then make -C sub all; fi", "true[true] make[make -C sub all]"},
		{"for f in *; do cat \"$f\"; done", "cat[cat $f]"},
		{"time env A=b node.exe x.js &", "node[node.exe x.js]"},
		{"A=1", ""},
		{"grep 'it's' a.txt", "grep[grep 'it's' a.txt]"},
		{"cat <<EOF > a.txt\nrm -rf x\nEOF", "cat[cat]>a.txt"},
		{"", ""},
		{strings.Repeat("(", 40) + "ls", strings.Repeat("(", 40) + "ls[" + strings.Repeat("(", 40) + "ls]"},
	} {
		var got []string
		for _, v := range trajectory.Invocations(c.line) {
			s := v.Program + "[" + strings.Join(v.Words, " ") + "]"
			if len(v.Targets) > 0 {
				s += ">" + strings.Join(v.Targets, ",")
			}
			got = append(got, s)
		}
		if s := strings.Join(got, " "); s != c.want {
			t.Errorf("%q: %s, want %s", c.line, s, c.want)
		}
	}
	for line, want := range map[string]string{"bundle exec rspec a": "rspec", "bundle install": "bundle", "poetry run pytest": "pytest", "uv": "uv", "npx tsc": "tsc",
		"timeout 5 ./solve a.txt": "solve", "xargs -n 1 rm": "rm", "make x": "make"} {
		if got := trajectory.Invocations(line)[0].Runs(); got != want {
			t.Errorf("%s runs %s, want %s", line, got, want)
		}
	}
	v := trajectory.Invocations("timeout 60 npx jest a.test.js; true")[0]
	if v.Text != "timeout 60 npx jest a.test.js" || v.Runs() != "jest" || fmt.Sprint(v.Operands()) != "[60 npx jest a.test.js]" {
		t.Errorf("%+v, %s, %q", v, v.Runs(), v.Operands())
	}
}

// FuzzInvocations: whatever a model writes, the programs come from it, bounded.
func FuzzInvocations(f *testing.F) {
	f.Add("cd 'x' && ls -R \\")
	f.Add("$(a `b` \"$(c)\") > <(x)")
	f.Add("a=b c >&2 | \xff")
	f.Fuzz(func(t *testing.T, line string) {
		list := trajectory.Invocations(line)
		if len(list) > 32 {
			t.Fatal(len(list))
		}
		for _, v := range list {
			if len(v.Words) == 0 || v.Runs() == "" && v.Program != "" || len(v.Text) > len(line) {
				t.Fatalf("%+v", v)
			}
			v.Operands()
		}
	})
}
