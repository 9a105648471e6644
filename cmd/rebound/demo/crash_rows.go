package demo

import "github.com/rebound-llm/rebound/proxy/upstreamtest"

// The correct outcomes through a gateway.
const (
	// rightComplete: without a gateway the client gets the complete answer, so anything less is worse.
	rightComplete = "complete"
	// rightEither: the complete answer is best; an error lets the client decide.
	rightEither = "complete or error"
	// rightCall: a call that can run is best; the model's own call is honest.
	rightCall = "complete or the model's call"
	// rightError: no recovery can produce a complete answer.
	rightError = "error"
)

// crashRow is one row of the card.
type crashRow struct {
	group string // the headline above this row, or ""
	fault fault
	right string

	straight, through outcome
}

// crashRows returns the demo's faults that need only one upstream. If the demo's row has a
// fallback, title and script describe the fault without it. It leaves out scripted refusals that
// accept any second request, which would count as a repair. In formats other than Chat
// Completions it leaves out the rows that need tools, parameters or an answer without a stream.
func crashRows(w wire) []crashRow {
	demo := map[string]fault{}
	for _, f := range faults() {
		demo[f.slug] = f
	}
	var rows []crashRow
	for _, r := range [...]struct{ group, slug, right, title, script string }{
		{slug: "healthy", right: rightComplete},

		{group: "limits and outages", slug: "limited", right: rightComplete},
		{slug: "limited-long", right: rightEither},
		{slug: "failed-once", right: rightComplete},
		{slug: "burst", right: rightEither},
		{slug: "down", right: rightError, title: "503 for ever", script: "503"},
		{slug: "page", right: rightEither},
		{slug: "reset", right: rightEither},
		{slug: "gone", right: rightError, title: "model withdrawn", script: "gone"},

		{group: "silence", slug: "silent-alone", right: rightEither},
		{slug: "headers-only", right: rightEither, title: "only headers, the next is well", script: "headers-hang/" + healthy},
		{slug: "late", right: rightComplete, title: "first token after 6 s", script: "first=6s"},

		{group: "broken answers", slug: "cut", right: rightEither},
		{slug: "stalled", right: rightEither},
		{slug: "clean-end", right: rightEither},
		{slug: "error-event", right: rightEither},
		{slug: "malformed", right: rightEither},
		{slug: "no-done", right: rightComplete},
		{slug: "empty", right: rightEither},
		{slug: "role-only", right: rightEither},
		{slug: "half-json", right: rightEither},
		{slug: "diverges", right: rightError},

		{group: "refused requests", slug: "max-tokens", right: rightEither},
		{slug: "temperature", right: rightEither},
		{slug: "output-limit", right: rightEither},
		{slug: "overflow-fit", right: rightEither, title: "context overflow", script: smallWindow},

		{group: "tool calls", slug: "call-json", right: rightCall},
		{slug: "call-name", right: rightCall},
		{slug: "call-text", right: rightCall},
		{slug: "call-missing", right: rightCall},
		{slug: "call-cut", right: rightEither},
	} {
		f := demo[r.slug]
		if r.script != "" {
			f.title, f.targets = r.title, alone(r.script)
		}
		if f.wire = w; w.notChat() && (f.whole || f.extra != "" || f.history != "" || r.slug == "no-done") {
			continue
		}
		rows = append(rows, crashRow{group: r.group, fault: f, right: r.right})
	}
	return rows
}

// crashPrefix begins the model names in requests to the gateway.
const crashPrefix = "crash-"

// healthyModel is the model of probes.
const healthyModel = crashPrefix + "well"

// model returns the model in requests to the gateway.
func (r *crashRow) model() string { return crashPrefix + r.fault.slug }

// answers returns the complete answers of a model. A fault whose second attempt has another text
// has two.
func (r *crashRow) answers(model string) []string {
	texts := []string{r.fault.text(model)}
	if r.fault.unrecoverable {
		texts = append(texts, upstreamtest.TextOf(model, "B", answerSize))
	}
	return texts
}
