package configs

import (
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
	c, err := Chains()
	if err != nil {
		t.Fatal(err)
	}
	if _, err := c.With(annotate.Config{Chains: c}); err != nil {
		t.Error(err)
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
	c, err := Chains()
	if err != nil {
		t.Fatal(err)
	}
	_, err = c.With(annotate.Config{Chains: annotate.Chains{"timeout": {{Name: "own", Confidence: 1, Iterations: 1, Steps: []string{"{zzzzzzzzzzzz}"}}}}})
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
