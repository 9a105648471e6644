package configs

import (
	"errors"
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/rebound-llm/rebound/recovery"
	"github.com/rebound-llm/rebound/recovery/annotate"
)

// TestChains pins the strategies and their prior confidence, because metrics and
// operators' files name them. It also validates the chains, which a start does not.
func TestChains(t *testing.T) {
	c, err := parseChains("chains.yaml", []byte(ChainsReference()))
	if err != nil {
		t.Fatal(err)
	}
	if unchecked, err := Chains(); err != nil || !reflect.DeepEqual(unchecked, c) {
		t.Errorf("Chains: %v, %v", unchecked, err)
	}
	type prior struct {
		name       string
		confidence float64
	}
	want := map[recovery.Category][]prior{
		recovery.CommandNotFound:  {{"alternative_command", 0.9}, {"manual_installation", 0.6}, {"ask_user", 0.9}},
		recovery.ToolNotFound:     {{"available_alternative", 0.8}, {"decompose_into_basic_tools", 0.7}, {"ask_user", 0.6}},
		recovery.PermissionDenied: {{"sandbox_directory", 0.9}, {"check_permissions", 0.5}, {"ask_user", 0.8}},
		recovery.ToolTimeout:      {{"reduce_scope", 0.8}, {"stream_results", 0.7}, {"increase_timeout", 0.6}, {"background", 0.5}, {"ask_user", 0.5}},
		recovery.FileNotFound:     {{"verify_path", 0.9}, {"create_if_appropriate", 0.6}, {"ask_user", 0.8}},
		recovery.InvalidArguments: {{"fix_types", 1}, {"check_schema", 0.9}, {"simplify", 0.7}, {"ask_user", 0.6}},
		recovery.SyntaxError:      {{"fix_syntax", 0.8}, {"simpler_command", 0.9}, {"other_syntax", 0.6}, {"ask_user", 0.5}},
		recovery.NetworkError:     {{"retry_with_backoff", 0.7}, {"other_host", 0.6}, {"cached_data", 0.5}, {"ask_user", 0.8}},
		recovery.ToolRateLimited:  {{"wait_and_retry", 0.9}, {"reduce_frequency", 0.8}, {"other_source", 0.6}, {"ask_user", 0.6}},
		recovery.DiskFull:         {{"clean_temporary_files", 0.6}, {"write_less", 0.5}, {"ask_user", 0.9}},
	}
	want[recovery.EditFailed] = []prior{{"copy_exactly", 0.95}, {"one_change", 0.7}, {"write_anew", 0.6}, {"ask_user", 0.5}}
	if len(c) != len(want) {
		t.Errorf("%d chains, want %d", len(c), len(want))
	}
	var risky []string
	for category, list := range want {
		var got []prior
		for _, s := range c[string(category)] {
			got = append(got, prior{s.Name, s.Confidence})
			if s.Risky {
				risky = append(risky, s.Name)
			}
		}
		if !reflect.DeepEqual(got, list) {
			t.Errorf("%s: %v, want %v", category, got, list)
		}
	}
	if slices.Sort(risky); !reflect.DeepEqual(risky, []string{"clean_temporary_files", "manual_installation"}) {
		t.Errorf("risky are %v", risky)
	}
	if strings.Contains(ChainsReference(), "sudo") {
		t.Error("a chain says sudo")
	}
}

// TestChainsReferenceExplainsEverySlot: the comments document every slot of a template.
func TestChainsReferenceExplainsEverySlot(t *testing.T) {
	head, _, _ := strings.Cut(ChainsReference(), "command_not_found:")
	_, err := parseChains("c", []byte("timeout:\n  - {name: x, confidence: 1, iterations: 1, steps: ['{zzzzzzzzzzzz}']}\n"))
	_, list, ok := strings.Cut(err.Error(), "there are tool, ")
	if !ok {
		t.Fatalf("the message does not list the slots: %v", err)
	}
	list, _, _ = strings.Cut(list, "\n")
	n := 0
	for name := range strings.SplitSeq(list, ", ") {
		if n++; !strings.Contains(head, "{"+name+"}") {
			t.Errorf("{%s} is not explained", name)
		}
	}
	if n < 12 {
		t.Errorf("only %d slots were found", n)
	}
}

func TestBadChainFiles(t *testing.T) {
	whole := ChainsReference()
	for _, c := range []struct{ name, text, want string }{
		{"nothing", "", "c.yaml:1:1: command_not_found: has no chain"},
		{"not YAML", "a: [", "c.yaml:1:4: is not valid YAML"},
		{"a list", "- a", "c.yaml:1:1: must be a map"},
		{"unknown key", strings.Replace(whole, "    iterations: 1\n", "    iteration: 1\n", 1),
			"command_not_found[0].iteration: unknown key: did you mean iterations?"},
		{"wrong value", strings.Replace(whole, "confidence: 0.9", "confidence: high", 1), "command_not_found[0].confidence: \"high\" is not a number"},
		{"no end", strings.Replace(whole, "name: ask_user", "name: tell_user", 1), "command_not_found[2].name: a chain ends with ask_user"},
		{"twice", strings.Replace(whole, "name: manual_installation", "name: alternative_command", 1),
			"command_not_found[1].name: \"alternative_command\" is used twice"},
		{"category", strings.Replace(whole, "\ntimeout:", "\ntime_out:", 1), "timeout: has no chain"},
		{"category", strings.Replace(whole, "\ntimeout:", "\ntime_out:", 1), "there is no category \"time_out\""},
		{"risky", strings.Replace(whole, "    risky: true\n", "", 1), "mark the strategy with risky: true"},
		{"another user", strings.Replace(whole, "Delete what", "Delete with sudo what", 1), "another user (sudo)"},
	} {
		_, err := parseChains("c.yaml", []byte(c.text))
		var list Errors
		if !errors.As(err, &list) || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: %v, want %s", c.name, err, c.want)
		}
	}
}

// TestOperatorsChains: all errors in an operator's changes are reported at their places
// in the operator's file.
func TestOperatorsChains(t *testing.T) {
	check := func(text string) error {
		r := newReader("my.yaml")
		v := struct {
			Strategies annotate.Config `yaml:"strategies"`
		}{annotate.Defaults()}
		r.readInto(reflect.ValueOf(&v).Elem(), []byte(text))
		r.validateValue(reflect.ValueOf(v), "")
		r.checkChains("strategies", v.Strategies)
		if len(r.problems) == 0 {
			return nil
		}
		return sortProblems(r.problems)
	}
	if err := check(`strategies:
  risky: true
  holdout: 0.05
  forbid: [background]
  chains:
    timeout:
      - name: reduce_scope
        confidence: 0.95
      - name: nightly_run
        confidence: 0.4
        iterations: 3
        needs: [shell]
        steps: ["Leave {program} to the nightly run. || Leave it to the nightly run."]
`); err != nil {
		t.Errorf("good changes: %v", err)
	}
	err := check(`strategies:
  forbid: [backgrund]
  chains:
    timeout:
      - name: reduce_scope
        steps: ["Run sudo make."]
      - name: nightly_run
        confidence: 0.4
        steps: ["Leave {progam} to the nightly run."]
    time_out: []
`)
	want := []string{
		`my.yaml:2:12: strategies.forbid[0]: no strategy is called "backgrund": did you mean background?`,
		`my.yaml:10:5: strategies.chains.time_out: there is no category "time_out": did you mean timeout?`,
		`my.yaml:6:17: strategies.chains.timeout[0].steps[0]: tells the agent to run something as another user (sudo): steps never do, leave that to ask_user`,
		`my.yaml:7:9: strategies.chains.timeout[1].iterations: a new strategy needs an estimate, at least 1`,
		`my.yaml:9:17: strategies.chains.timeout[1].steps[0]: has the unknown slot {progam}: did you mean program?`,
	}
	if err == nil {
		t.Fatal("bad changes pass")
	}
	got := strings.Split(err.Error(), "\n")
	for _, w := range want {
		if !slices.Contains(got, w) {
			t.Errorf("no %q in\n%s", w, err)
		}
	}
	if len(got) != len(want) {
		t.Errorf("%d problems, want %d:\n%s", len(got), len(want), err)
	}
}

func FuzzParseChains(f *testing.F) {
	f.Add([]byte(ChainsReference()))
	f.Add([]byte("timeout: [{name: x, steps: ['{a} || {b']}]"))
	f.Fuzz(func(t *testing.T, data []byte) {
		c, err := parseChains("c.yaml", data)
		if err == nil && c.Validate() != nil {
			t.Fatal("chains that are not valid pass")
		}
	})
}

// parseChains parses a complete set of recovery chains as strictly as a
// configuration: every category must have a chain, and every strategy all of its
// parts. The error is an [Errors]; no text makes it panic.
func parseChains(name string, data []byte) (annotate.Chains, error) {
	var c annotate.Chains
	r := newReader(name)
	if r.readInto(reflect.ValueOf(&c).Elem(), data) {
		r.reportAll("", c.Validate())
	}
	if len(r.problems) > 0 {
		return nil, sortProblems(r.problems)
	}
	return c, nil
}
