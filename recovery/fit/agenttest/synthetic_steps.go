package agenttest

import (
	"fmt"
	"slices"
	"strings"
)

func (a *generator) choose(list ...string) string { return list[a.IntN(len(list))] }

func (a *generator) word() string {
	return a.choose("order", "cart", "price", "stock", "invoice", "customer", "refund", "coupon", "shipment", "ledger", "batch", "queue", "cursor", "tax",
		"discount", "payment", "session", "address", "return", "supplier", "barcode", "voucher", "warehouse", "currency")
}

func (a *generator) name() string {
	word := a.word()
	return a.choose("load", "apply", "merge", "round", "check", "send", "parse", "close", "lock", "retry", "sum", "split") +
		strings.ToUpper(word[:1]) + word[1:] + a.choose("", "", "ById", "Batch", "Total", "Safe", "Once")
}

func (a *generator) thoughts(n int) string {
	var b strings.Builder
	for range n {
		b.WriteString(a.choose("The ", "Maybe the ", "It seems that the ", "So far the ") + a.word() + " of " + a.name() +
			a.choose(" is computed before the lock is taken", " does not agree with what the job writes", " looks right", " is read twice per batch",
				" changes when the currency has no decimals") + ". ")
	}
	return b.String()
}

func (a *generator) line() string {
	switch a.IntN(6) {
	case 0:
		return fmt.Sprintf("\tconst %s = await this.%s(%s, { limit: %d });", a.word(), a.name(), a.word(), a.IntN(900))
	case 1:
		return fmt.Sprintf("\tif (%s.%s < %d) throw new RangeError(`bad %s: ${%s}`);", a.word(), a.word(), a.IntN(100), a.word(), a.word())
	case 2:
		return fmt.Sprintf("export async function %s(%s: %s, %s?: number) {", a.name(), a.word(), a.choose("string", "Order", "Batch"), a.word())
	case 3:
		return fmt.Sprintf("\t// %s has to be %s before the %s is closed, see %s", a.word(), a.choose("rounded", "locked", "sorted"), a.word(), a.name())
	case 4:
		return fmt.Sprintf("\treturn %s.map((x) => %s(x.%s)).filter(Boolean);", a.word(), a.name(), a.word())
	}
	return "}"
}

// scaleLines reduces a number of lines for a short session.
func (a *generator) scaleLines(lines int) int { return max(6, lines*a.sizePercent/100) }

// newFile creates a file that later steps may read.
func (a *generator) newFile(lines int) string {
	f := fmt.Sprintf("%s/%s-%s-%d.ts", a.choose("src/jobs", "src/model", "src/api", "packages/billing/src", "test", "/workspace/shop/scripts"), a.word(), a.word(), len(a.names))
	a.names = append(a.names, f)
	for range a.scaleLines(lines) {
		a.files[f] = append(a.files[f], a.line())
	}
	return f
}

// file returns an existing file, more often a recent one.
func (a *generator) file() string {
	n := len(a.names)
	return a.names[max(a.IntN(n), a.IntN(n))]
}

func (a *generator) touch(f string) {
	if !slices.Contains(a.facts.Paths, f) {
		a.facts.Paths = append(a.facts.Paths, f)
	}
}

func (a *generator) readStep(f string) synStep {
	a.touch(f)
	return synStep{"read", []string{"path", f}, strings.Join(a.files[f], "\n") + "\n"}
}

func (a *generator) read(f string) { a.step("I'll read "+f+" first.", a.readStep(f)) }

// readSome reads one file, or several in parallel, perhaps again.
func (a *generator) readSome() {
	list := []string{a.file()}
	for a.IntN(3) == 0 && len(list) < 4 {
		if f := a.file(); !slices.Contains(list, f) {
			list = append(list, f)
		}
	}
	var steps []synStep
	for _, f := range list {
		steps = append(steps, a.readStep(f))
	}
	a.step(a.choose("", "Let me read what is there.", "I want to see the callers again. "+a.thoughts(1)), steps...)
}

func (a *generator) edit(f, text string) {
	lines := a.files[f]
	at := a.IntN(len(lines) - 2)
	before := strings.Join(lines[at:at+2], "\n")
	after := make([]string, 1+a.IntN(8))
	for i := range after {
		after[i] = a.line()
	}
	a.files[f] = slices.Concat(lines[:at], after, lines[at+2:])
	a.touch(f)
	if text == "" {
		text = a.choose("", "Now the change in "+f+".", a.thoughts(1))
	}
	a.step(text, synStep{"edit", []string{"path", f, "old_text", before, "new_text", strings.Join(after, "\n")}, "The file " + f + " has been updated."})
}

func (a *generator) write() {
	f := a.newFile(30 + a.IntN(60))
	a.touch(f)
	a.step("I'll put that into a file of its own.", synStep{"write", []string{"path", f, "content", strings.Join(a.files[f], "\n")}, "Wrote " + f})
}

func (a *generator) grep() {
	word, out := a.name(), ""
	for range a.scaleLines(a.IntN(40)) {
		out += fmt.Sprintf("%s:%d:%s\n", a.file(), 1+a.IntN(300), a.line())
	}
	if out == "" {
		out = "No matches found"
	}
	a.step("", synStep{"grep", []string{"pattern", word, "path", "src"}, out})
}

// testOutput returns the output of a long test run; a failure is in the middle and again
// at the end.
func (a *generator) testOutput(failure string) string {
	var b strings.Builder
	n := a.scaleLines(20 + a.IntN(80))
	for i := range n {
		fmt.Fprintf(&b, " ✓ %s > %s %s keeps its %s (%d ms)\n", a.file(), a.name(), a.word(), a.word(), a.IntN(400))
		if failure != "" && i == n/2 {
			fmt.Fprintf(&b, " ✗ %s\n%s\n    at %s (%s:%d:%d)\n", a.name(), failure, a.name(), a.file(), a.IntN(300), a.IntN(60))
		}
	}
	if failure == "" {
		return b.String() + fmt.Sprintf("\nTests: %d passed\nTime: %d.%02d s", n, a.IntN(40), a.IntN(100))
	}
	return b.String() + fmt.Sprintf("\n%s\nTests: 1 failed, %d passed\nTime: %d.%02d s\n\nCommand exited with code 1", failure, n, a.IntN(40), a.IntN(100))
}

// failure returns an error text that is unique in the session.
func (a *generator) failure() string {
	return fmt.Sprintf("%s: %s of %s %05d %s %d", a.choose("AssertionError", "TypeError", "RangeError"), a.word(), a.word(), a.IntN(100000),
		a.choose("was not closed, expected", "cannot be rounded to", "does not match the ledger, got"), a.IntN(10000))
}

// failThenFix runs a test that fails, edits files, and runs it again with success.
func (a *generator) failThenFix() {
	command, failure := "npx vitest run "+a.choose("test", "src/jobs", "packages/billing")+"/"+a.word(), a.failure()
	a.step(a.choose("", "Running the tests."), synStep{"bash", []string{"command", command}, a.testOutput(failure)})
	for range 1 + a.IntN(3) {
		a.edit(a.file(), "")
	}
	a.step("Again.", synStep{"bash", []string{"command", command}, a.testOutput("")})
}

// failAndLeave runs a command that fails and continues with something else.
func (a *generator) failAndLeave() {
	failure := a.failure()
	a.facts.Unresolved = append(a.facts.Unresolved, failure)
	a.step("", synStep{"bash", []string{"command", fmt.Sprintf("node scripts/replay-%d.mjs --orders %d", len(a.facts.Unresolved), a.IntN(9000))}, a.testOutput(failure)})
	a.step("That is another matter; I'll come back to it.", a.readStep(a.file()))
}

func (a *generator) longOutput() {
	var b strings.Builder
	log := "logs/" + a.word() + ".log"
	a.touch(log)
	for range a.scaleLines(40 + a.IntN(120)) {
		fmt.Fprintf(&b, "2025-03-%02dT%02d:%02d:%02d.%03dZ INFO  [%s] %s %s=%d\n", 1+a.IntN(28), a.IntN(24), a.IntN(60), a.IntN(60), a.IntN(1000), a.word(), a.name(), a.word(), a.IntN(1e6))
	}
	a.step(a.choose("", "The log should tell."), synStep{"bash", []string{"command", "tail -n 200 " + log}, b.String()})
}

// constraint returns a restricting sentence that is unique in the session.
func (a *generator) constraint() string {
	n := len(a.facts.Constraints) + 1
	s := a.choose("Never change the schema of the table ", "Don't touch the public interface of ", "You must keep the old behaviour of ", "Always round half up in ",
		"Use only integer cents in ", "Do not add a dependency to ") + fmt.Sprintf("%s_%d", a.word(), n)
	a.facts.Constraints = append(a.facts.Constraints, s)
	return s + "."
}

// user adds an answer without a call and a message of the user.
func (a *generator) user() {
	a.add(synMessage{Role: "assistant", Content: pointer("Done so far: " + a.thoughts(2+a.IntN(3)))})
	text := a.choose("ok, go on with ", "good. now look at ", "hm, what about ") + a.file()
	if a.IntN(2) == 0 {
		text += "\n" + a.constraint()
	}
	a.add(synMessage{Role: "user", Content: pointer(text)})
}
