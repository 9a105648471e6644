package inspect

import (
	"errors"
	"fmt"
	"sync"

	"github.com/rebound-llm/rebound/recovery"
	"github.com/rebound-llm/rebound/recovery/rule"
	"github.com/rebound-llm/rebound/recovery/transcript"
)

// LoadForTests reads the rules of the program. The tests outside of the package set
// it, since configs imports this package.
var LoadForTests func() (rule.Set, error)

// RulesForTests are those rules.
var RulesForTests = sync.OnceValue(func() *Rules { return NewRules(LoadForTests) })

// Short forms for tests.

func Judge(r recovery.ToolResult) recovery.ToolFailure { return RulesForTests().Judge(r) }
func Loops(b *transcript.Body) []recovery.Loop         { return RulesForTests().Loops(b) }
func Position(b *transcript.Body) recovery.Turn        { return readHistory(b).position() }
func testLists() *lists                                { l, _ := RulesForTests().get(); return l }
func readHistory(b *transcript.Body) *history          { return testLists().readHistory(b) }
func open(r recovery.ToolResult) *view                 { return testLists().open(r) }

// ForgetForTests forgets what results came to. Nobody may use the rules meanwhile.
func ForgetForTests() { testLists().memory = newMemory() }

// Check tests the rules with their examples, as [Rules.Check] does.
func (p *Preferences) Check() error {
	l, err := p.get()
	if err != nil {
		return err
	}
	var errs []error
	for i := range l.Len() {
		r := l.Rule(i)
		deed := recovery.DeedsOf(r.Class)
		for j, text := range r.Examples {
			if l.read(text)&deed == 0 {
				errs = append(errs, fmt.Errorf("%s: examples[%d] %q: forbids %q", r.Name, j, text, l.read(text)))
			}
		}
		for j, text := range r.Lookalikes {
			if l.read(text)&deed != 0 {
				errs = append(errs, fmt.Errorf("%s: lookalikes[%d] %q: is matched by mistake", r.Name, j, text))
			}
		}
	}
	return errors.Join(errs...)
}
