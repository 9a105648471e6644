package probetest

import (
	"fmt"
	"slices"
	"strings"
)

func (a *author) pick(list ...string) string { return list[a.IntN(len(list))] }

func (a *author) word() string {
	return a.pick("order", "cart", "price", "stock", "invoice", "customer", "refund", "coupon", "shipment", "ledger", "batch", "queue", "cursor", "tax",
		"discount", "payment", "session", "address", "return", "supplier", "barcode", "voucher", "warehouse", "currency")
}

func (a *author) name() string {
	word := a.word()
	return a.pick("load", "apply", "merge", "round", "check", "send", "parse", "close", "lock", "retry", "sum", "split") +
		strings.ToUpper(word[:1]) + word[1:] + a.pick("", "", "ById", "Batch", "Total", "Safe", "Once")
}

func (a *author) thoughts(n int) string {
	var b strings.Builder
	for range n {
		b.WriteString(a.pick("The ", "Maybe the ", "It seems that the ", "So far the ") + a.word() + " of " + a.name() +
			a.pick(" is computed before the lock is taken", " does not agree with what the job writes", " looks right", " is read twice per batch",
				" changes when the currency has no decimals") + ". ")
	}
	return b.String()
}

func (a *author) line() string {
	switch a.IntN(6) {
	case 0:
		return fmt.Sprintf("\tconst %s = await this.%s(%s, { limit: %d });", a.word(), a.name(), a.word(), a.IntN(900))
	case 1:
		return fmt.Sprintf("\tif (%s.%s < %d) throw new RangeError(`bad %s: ${%s}`);", a.word(), a.word(), a.IntN(100), a.word(), a.word())
	case 2:
		return fmt.Sprintf("export async function %s(%s: %s, %s?: number) {", a.name(), a.word(), a.pick("string", "Order", "Batch"), a.word())
	case 3:
		return fmt.Sprintf("\t// %s has to be %s before the %s is closed, see %s", a.word(), a.pick("rounded", "locked", "sorted"), a.word(), a.name())
	case 4:
		return fmt.Sprintf("\treturn %s.map((x) => %s(x.%s)).filter(Boolean);", a.word(), a.name(), a.word())
	}
	return "}"
}

// scaled makes a number of lines smaller in a short session.
func (a *author) scaled(lines int) int { return max(6, lines*a.percent/100) }

// newFile makes a file that later steps may read.
func (a *author) newFile(lines int) string {
	f := fmt.Sprintf("%s/%s-%s-%d.ts", a.pick("src/jobs", "src/model", "src/api", "packages/billing/src", "test", "/workspace/shop/scripts"), a.word(), a.word(), len(a.names))
	a.names = append(a.names, f)
	for range a.scaled(lines) {
		a.files[f] = append(a.files[f], a.line())
	}
	return f
}

// file is one that exists; the last ones are worked on more often.
func (a *author) file() string {
	n := len(a.names)
	return a.names[max(a.IntN(n), a.IntN(n))]
}

func (a *author) readStep(f string) synStep {
	if a.known[f] {
		a.facts.rereads++
	}
	a.known[f], a.facts.paths[f] = true, true
	return synStep{"read", []string{"path", f}, strings.Join(a.files[f], "\n") + "\n"}
}

func (a *author) read(f string) { a.do("I'll read "+f+" first.", a.readStep(f)) }

// readSome reads one file, or several in parallel; also ones that are known.
func (a *author) readSome() {
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
	a.do(a.pick("", "Let me read what is there.", "I want to see the callers again. "+a.thoughts(1)), steps...)
}

func (a *author) edit(f, text string) {
	lines := a.files[f]
	at := a.IntN(len(lines) - 2)
	before := strings.Join(lines[at:at+2], "\n")
	after := make([]string, 1+a.IntN(8))
	for i := range after {
		after[i] = a.line()
	}
	if a.known[f] {
		a.facts.overtaken++
		a.known[f] = false
	}
	a.files[f] = slices.Concat(lines[:at], after, lines[at+2:])
	a.facts.paths[f] = true
	if text == "" {
		text = a.pick("", "Now the change in "+f+".", a.thoughts(1))
	}
	a.do(text, synStep{"edit", []string{"path", f, "old_text", before, "new_text", strings.Join(after, "\n")}, "The file " + f + " has been updated."})
}

func (a *author) write() {
	f := a.newFile(30 + a.IntN(60))
	a.facts.paths[f] = true
	a.do("I'll put that into a file of its own.", synStep{"write", []string{"path", f, "content", strings.Join(a.files[f], "\n")}, "Wrote " + f})
}

func (a *author) grep() {
	word, out := a.name(), ""
	for range a.scaled(a.IntN(40)) {
		out += fmt.Sprintf("%s:%d:%s\n", a.file(), 1+a.IntN(300), a.line())
	}
	if out == "" {
		out = "No matches found"
	}
	a.do("", synStep{"grep", []string{"pattern", word, "path", "src"}, out})
}

// testOutput is a long run of tests; a failure is somewhere in the middle and
// again at the end.
func (a *author) testOutput(failure string) string {
	var b strings.Builder
	n := a.scaled(20 + a.IntN(80))
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

// failure is an error text that occurs once in a session.
func (a *author) failure() string {
	return fmt.Sprintf("%s: %s of %s %05d %s %d", a.pick("AssertionError", "TypeError", "RangeError"), a.word(), a.word(), a.IntN(100000),
		a.pick("was not closed, expected", "cannot be rounded to", "does not match the ledger, got"), a.IntN(10000))
}

// brokenThenFixed runs a test that fails, changes something, and runs it again.
func (a *author) brokenThenFixed() {
	command, failure := "npx vitest run "+a.pick("test", "src/jobs", "packages/billing")+"/"+a.word(), a.failure()
	a.do(a.pick("", "Running the tests."), synStep{"bash", []string{"command", command}, a.testOutput(failure)})
	for range 1 + a.IntN(3) {
		a.edit(a.file(), "")
	}
	a.do("Again.", synStep{"bash", []string{"command", command}, a.testOutput("")})
	a.facts.fixed = append(a.facts.fixed, failure)
}

// leaveBroken runs something that fails and goes on with something else.
func (a *author) leaveBroken() {
	failure := a.failure()
	a.facts.unfixed = append(a.facts.unfixed, failure)
	a.do("", synStep{"bash", []string{"command", fmt.Sprintf("node scripts/replay-%d.mjs --orders %d", len(a.facts.unfixed), a.IntN(9000))}, a.testOutput(failure)})
	a.do("That is another matter; I'll come back to it.", a.readStep(a.file()))
}

func (a *author) longOutput() {
	var b strings.Builder
	log := "logs/" + a.word() + ".log"
	a.facts.paths[log] = true
	for range a.scaled(40 + a.IntN(120)) {
		fmt.Fprintf(&b, "2025-03-%02dT%02d:%02d:%02d.%03dZ INFO  [%s] %s %s=%d\n", 1+a.IntN(28), a.IntN(24), a.IntN(60), a.IntN(60), a.IntN(1000), a.word(), a.name(), a.word(), a.IntN(1e6))
	}
	a.do(a.pick("", "The log should tell."), synStep{"bash", []string{"command", "tail -n 200 " + log}, b.String()})
}

// constraint is a sentence that occurs once in a session.
func (a *author) constraint() string {
	n := len(a.facts.constraints) + 1
	s := a.pick("Never change the schema of the table ", "Don't touch the public interface of ", "You must keep the old behaviour of ", "Always round half up in ",
		"Use only integer cents in ", "Do not add a dependency to ") + fmt.Sprintf("%s_%d", a.word(), n)
	a.facts.constraints = append(a.facts.constraints, s)
	return s + "."
}

// user speaks after an answer without a call.
func (a *author) user() {
	a.append(synMessage{Role: "assistant", Content: ptr("Done so far: " + a.thoughts(2+a.IntN(3)))})
	text := a.pick("ok, go on with ", "good. now look at ", "hm, what about ") + a.file()
	if a.IntN(2) == 0 {
		text += "\n" + a.constraint()
	}
	a.append(synMessage{Role: "user", Content: ptr(text)})
}
