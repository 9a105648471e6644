package recoverytest

import (
	"fmt"
	"os"
	"regexp"
	"strconv"
	"testing"

	"github.com/rebound-llm/rebound/recovery/rule"
)

// RunWithRules runs the tests of a package if check(0) accepts the rules that load returns. Otherwise it prints the mistakes,
// with the names of the rules, and exits: without rules most tests of the package fail, and few of them say why.
func RunWithRules(m *testing.M, load func() (rule.Set, error), check func(examples int) error) {
	err := check(0)
	if err == nil {
		m.Run()
		return
	}
	set, _ := load()
	named := regexp.MustCompile(`rules\[(\d+)\]`).ReplaceAllStringFunc(err.Error(), func(place string) string {
		if i, err := strconv.Atoi(place[len("rules[") : len(place)-1]); err == nil && i < len(set.Rules) {
			return set.Rules[i].Name
		}
		return place
	})
	fmt.Fprintln(os.Stderr, named)
	os.Exit(1)
}
