package demo

import "github.com/rebound-llm/rebound/proxy/upstreamtest"

// What is right, of all that a client can get through a gateway.
const (
	// rightComplete: without a gateway the client gets the whole answer, so anything less is worse.
	rightComplete = "complete"
	// rightEither: the whole answer is best; an error lets the client decide.
	rightEither = "complete or error"
	// rightCall: a call that can be run is best; what the model sent is honest.
	rightCall = "complete or the model's call"
	// rightError: nothing can make one whole answer of this.
	rightError = "error"
)

// crashRow is one line of the card.
type crashRow struct {
	group string // a headline above this row
	fault fault
	right string

	straight, through outcome
}

// crashRows are the demo's faults that need nothing of a gateway but one upstream. Where the
// demo has a fallback, a title and a script say what the fault is without one. Left out are
// refusals that the upstream takes back without looking: any second try would count as a mend.
// In formats other than Chat Completions the agent streams and has no tools.
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
		{slug: "headers-only", right: rightEither, title: "only headers, the next is well", script: "headers-hang/" + well},
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
		{slug: "overflow-fit", right: rightEither, title: "context overflow", script: small},

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
		if f.wire = w; w.elsewhere() && (f.whole || f.extra != "" || f.history != "" || r.slug == "no-done") {
			continue
		}
		rows = append(rows, crashRow{group: r.group, fault: f, right: r.right})
	}
	return rows
}

// crashPrefix begins the names of models that the gateway is asked for.
const crashPrefix = "crash-"

// wellModel is the model of requests that are no row of the card.
const wellModel = crashPrefix + "well"

// model is what the gateway is asked for.
func (r *crashRow) model() string { return crashPrefix + r.fault.slug }

// answers are the texts that are whole answers of a model: of one that begins with one text
// and ends with another, both.
func (r *crashRow) answers(model string) []string {
	texts := []string{r.fault.text(model)}
	if r.fault.honest {
		texts = append(texts, upstreamtest.TextOf(model, "B", answerSize))
	}
	return texts
}
