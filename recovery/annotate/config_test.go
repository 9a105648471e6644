package annotate_test

import (
	"math"
	"strings"
	"testing"

	"github.com/rebound-llm/rebound/configs"
	"github.com/rebound-llm/rebound/recovery/annotate"
	"github.com/rebound-llm/rebound/recovery/recoverytest"
)

// TestBadChanges: every mistake of an operator is refused, at its key.
func TestBadChanges(t *testing.T) {
	chains, err := configs.Chains()
	if err != nil {
		t.Fatal(err)
	}
	good := annotate.Strategy{Name: "own_way", Confidence: 0.5, Iterations: 1, Steps: []string{"Do it."}}
	with := func(change func(*annotate.Strategy)) annotate.Config {
		s := good
		change(&s)
		c := annotate.Defaults()
		c.Chains = map[string][]annotate.Strategy{"timeout": {s}}
		return c
	}
	plain := func(change func(*annotate.Config)) annotate.Config {
		c := annotate.Defaults()
		change(&c)
		return c
	}
	step := func(text string) annotate.Config {
		return with(func(s *annotate.Strategy) { s.Steps = []string{text} })
	}
	risky := func(text string) annotate.Config {
		return with(func(s *annotate.Strategy) { s.Steps, s.Risky = []string{text}, true })
	}
	for _, c := range []struct {
		name string
		cfg  annotate.Config
		want string // the beginning of one message; empty: all is well
	}{
		{"good", with(func(*annotate.Strategy) {}), ""},
		{"defaults", annotate.Defaults(), ""},
		{"confidence", plain(func(c *annotate.Config) { c.Confidence = 1.1 }), "confidence: "},
		{"confidence", plain(func(c *annotate.Config) { c.Confidence = math.NaN() }), "confidence: "},
		{"holdout", plain(func(c *annotate.Config) { c.Holdout = -0.1 }), "holdout: "},
		{"forbidding to ask", plain(func(c *annotate.Config) { c.Forbid = []string{"ask_user"} }), "forbid[0]: ask_user cannot be forbidden"},
		{"unknown", plain(func(c *annotate.Config) { c.Forbid = []string{"verify_pat"} }), "forbid[0]: no strategy is called \"verify_pat\": did you mean verify_path?"},
		{"category", plain(func(c *annotate.Config) { c.Chains = map[string][]annotate.Strategy{"time_out": {good}} }), "chains.time_out: there is no category \"time_out\": did you mean timeout?"},
		{"name", with(func(s *annotate.Strategy) { s.Name = "Own way" }), "chains.timeout[0].name: "},
		{"confidence", with(func(s *annotate.Strategy) { s.Confidence = 0 }), "chains.timeout[0].confidence: "},
		{"confidence", with(func(s *annotate.Strategy) { s.Confidence = 2 }), "chains.timeout[0].confidence: "},
		{"iterations", with(func(s *annotate.Strategy) { s.Iterations = 0 }), "chains.timeout[0].iterations: "},
		{"needs", with(func(s *annotate.Strategy) { s.Needs = []string{"shell", "hammer"} }), "chains.timeout[0].needs[1]: \"hammer\" is no kind of tool: there are shell, code,"},
		{"no steps", with(func(s *annotate.Strategy) { s.Steps = nil }), "chains.timeout[0].steps: "},
		{"empty step", step(" "), "chains.timeout[0].steps[0]: has an empty alternative"},
		{"unknown slot", step("Use {pth}."), "chains.timeout[0].steps[0]: has the unknown slot {pth}: did you mean path?"},
		{"brace", step("Use {path."), "chains.timeout[0].steps[0]: has a brace"},
		{"backtick", step("Run `make {path}. || Run it."), "chains.timeout[0].steps[0]: has a backtick without its partner"},
		{"empty alternative", step("Use {path}. || "), "chains.timeout[0].steps[0]: has an empty alternative"},
		{"sudo", step("Run `sudo make`."), "chains.timeout[0].steps[0]: tells the agent to run something as another user (sudo)"},
		{"sudo although risky", risky("Run `SUDO make`."), "chains.timeout[0].steps[0]: tells the agent to run something as another user"},
		{"doas", risky("Run `doas make`."), "chains.timeout[0].steps[0]: tells"},
		{"su", risky("Run `su - root`."), "chains.timeout[0].steps[0]: tells"},
		{"deleting", step("Run `rm -rf build`."), "chains.timeout[0].steps[0]: \"rm\" installs, deletes or changes permissions: mark the strategy with risky: true"},
		{"deleting, marked", risky("Run `rm -rf build`."), ""},
		{"installing", step("Try pip install x."), "chains.timeout[0].steps[0]: \"install\" installs"},
		{"permissions", step("Use chmod +x."), "chains.timeout[0].steps[0]: \"chmod\" installs"},
		{"a word like it", step("Perform the run in a farm, with less summing up."), ""},
		{"asking with a tool", with(func(s *annotate.Strategy) { s.Name, s.Needs = "ask_user", []string{"ask"} }), "chains.timeout[0]: ask_user needs no tool"},
		{"asking in two steps", with(func(s *annotate.Strategy) { s.Name, s.Steps = "ask_user", []string{"a", "b"} }), "chains.timeout[0].steps: ask_user has one step"},
		{"asking with a slot", with(func(s *annotate.Strategy) { s.Name, s.Steps = "ask_user", []string{"open {path}"} }), "chains.timeout[0].steps[0]: the last alternative must have no slot"},
	} {
		var messages []string
		if err := c.cfg.Validate(); err != nil {
			messages = append(messages, strings.Split(err.Error(), "\n")...)
		}
		if _, err := chains.With(c.cfg); err != nil {
			messages = append(messages, strings.Split(err.Error(), "\n")...)
		}
		found := c.want == "" && len(messages) == 0
		for _, m := range messages {
			found = found || c.want != "" && strings.HasPrefix(m, c.want)
		}
		if !found {
			t.Errorf("%s: %q, want %q", c.name, messages, c.want)
		}
	}
}

// TestChangesLeaveTheRest: an edit keeps what it does not say, and the chains
// that it was made from are not touched.
func TestChangesLeaveTheRest(t *testing.T) {
	chains, err := configs.Chains()
	if err != nil {
		t.Fatal(err)
	}
	before := chains["timeout"][0]
	cfg := annotate.Defaults()
	cfg.Chains = map[string][]annotate.Strategy{"timeout": {{Name: before.Name, Confidence: 0.11}, {Name: "own_way", Confidence: 0.5, Iterations: 2, Steps: []string{"Do it."}}}}
	out, err := chains.With(cfg)
	if err != nil {
		t.Fatal(err)
	}
	got := out["timeout"]
	if got[0].Confidence != 0.11 || got[0].Iterations != before.Iterations || len(got[0].Steps) != len(before.Steps) || got[0].Priority != before.Priority {
		t.Errorf("%+v", got[0])
	}
	if n := len(got); got[n-1].Name != annotate.AskUser || got[n-2].Name != "own_way" || n != len(chains["timeout"])+1 {
		t.Errorf("the new strategy is not before the last: %+v", got)
	}
	if chains["timeout"][0].Confidence != before.Confidence || len(chains["timeout"]) == len(got) {
		t.Error("the original changed")
	}
}

func TestNewRefusesBadChains(t *testing.T) {
	chains, err := configs.Chains()
	if err != nil {
		t.Fatal(err)
	}
	cfg := annotate.Defaults()
	cfg.Forbid = []string{"nothing_like_it"}
	if _, err := annotate.New(cfg, chains, &recoverytest.Observer{}); err == nil {
		t.Error("an unknown name was forbidden")
	}
}
