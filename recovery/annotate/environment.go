package annotate

import (
	"fmt"
	"strings"

	"github.com/rebound-llm/rebound/recovery"
	"github.com/rebound-llm/rebound/recovery/trajectory"
)

// CheckEnvironment is what is proposed where failures of many kinds come at once.
const CheckEnvironment = "check_environment"

// environmentNote is the one note about failures of many kinds at once, in place of one
// about each: what they have in common is more likely than that all of them are true.
func (s *Stage) environmentNote(x *recovery.Exchange, f *recovery.ToolFailure) (string, recovery.Advice) {
	sc := s.newScene(x, f)
	var kinds []string
	for _, c := range x.Failing {
		kinds = append(kinds, meanings[string(c)])
	}
	look := "Look once at what they may have in common: the working directory, the user, the room on the disk, the network."
	if sc.uses&trajectory.UseShell != 0 {
		look = "Look once at what they may have in common, for example with `pwd; id; df -h .; ls -la`."
	}
	text := fmt.Sprintf("%sSeveral different things failed within a few steps: %s. The environment itself may be broken.\nDo not work around each of them. %s\n"+
		"If that does not explain it, ask the user%s to repair the environment, and say what failed. %s", prefix, strings.Join(kinds, "; "), look, sc.asking(), unmentioned)
	return trajectory.Shorten(text, maxNote), recovery.Advice{Category: f.Category, Strategies: []string{CheckEnvironment, AskUser}, Count: 1}
}
