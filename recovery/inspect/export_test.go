package inspect

import (
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
func Position(b *transcript.Body) recovery.Turn        { return RulesForTests().Position(b) }
func testLists() *lists                                { l, _ := RulesForTests().get(); return l }
func readHistory(b *transcript.Body) *history          { return testLists().readHistory(b) }
func open(r recovery.ToolResult) *view                 { return testLists().openResult(r) }

// ForgetForTests forgets what results came to. Nobody may use the rules meanwhile.
func ForgetForTests() { testLists().memory = newMemory() }
