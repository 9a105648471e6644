package demo

import (
	"fmt"
	"io"
	"strconv"
	"time"
)

// Card is the result of a crash test. "rebound crashtest --json" prints it as JSON.
type Card struct {
	Gateway string    `json:"gateway"`
	Format  string    `json:"format"`
	Version string    `json:"rebound"` // version of the test program
	Time    time.Time `json:"time"`    // when the first fault began
	Timeout float64   `json:"timeout_s"`
	Faults  []Result  `json:"faults"`
	// Complete counts the complete answers.
	Complete struct {
		Straight int `json:"straight"`
		Gateway  int `json:"gateway"`
	} `json:"complete"`

	rows []crashRow
}

// Result is one row of a card.
type Result struct {
	Fault string `json:"fault"` // the model's name without "crash-"
	Title string `json:"title"`
	Right string `json:"right"` // the correct outcome
	// Straight is the outcome without a gateway.
	Straight Side `json:"straight"`
	Gateway  Side `json:"gateway"`
}

// Side is the outcome with or without the gateway, and its cost.
type Side struct {
	// Got is complete, truncated, empty, wrong_text, error, hung or bad_call.
	Got     string  `json:"got"`
	Text    string  `json:"text"` // the same, for the printed card
	Client  int     `json:"client_requests"`
	Asked   int     `json:"upstream_requests"`
	Paid    int     `json:"paid_requests"` // those that the upstream answered with 200
	Seconds float64 `json:"seconds"`
}

// jsonNames are the names of the verdicts in JSON. The test has no explanations.
var jsonNames = [...]string{complete: "complete", truncated: "truncated", empty: "empty", wrong: "wrong_text", failed: "error", hung: "hung",
	unusable: "bad_call", explained: "error"}

// card returns the result of the test.
func (c *crash) card(began time.Time) *Card {
	card := &Card{Gateway: c.Gateway, Format: c.Format, Version: c.Version, Time: began.UTC().Truncate(time.Second), Timeout: c.Timeout.Seconds(), rows: c.rows}
	for i := range c.rows {
		r := &c.rows[i]
		card.Faults = append(card.Faults, Result{Fault: r.fault.slug, Title: r.fault.title, Right: r.right,
			Straight: c.side(r.straight, r.fault.straightModel()), Gateway: c.side(r.through, r.model())})
		if r.straight.verdict == complete {
			card.Complete.Straight++
		}
		if r.through.verdict == complete {
			card.Complete.Gateway++
		}
	}
	return card
}

// side returns an outcome with its requests to the upstream.
func (c *crash) side(o outcome, model string) Side {
	s := Side{Got: jsonNames[o.verdict], Text: o.got(), Client: o.requests, Seconds: float64(o.took.Milliseconds()) / 1000}
	for _, r := range c.up.Requests(model) {
		s.Asked++
		if r.Status == 200 {
			s.Paid++
		}
	}
	return s
}

// Print writes the card as a table.
func (c *Card) Print(out io.Writer, colour bool) error {
	p := &printer{out: out, colour: colour}
	lines := [][]cell{{{"FAULT", bold}, {"WITHOUT GATEWAY", bold}, {"THROUGH THE GATEWAY", bold}, {"CLIENT", bold}, {"ASKED", bold}, {"PAID", bold}, {"TIME", bold}}}
	var straight, through tally
	for i, r := range c.Faults {
		was := &c.rows[i]
		straight[was.straight.verdict]++
		through[was.through.verdict]++
		title := "  " + r.Title
		if r.Right == rightError {
			title += " *"
		}
		lines = append(lines, []cell{{title, ""}, {r.Straight.Text, was.straight.colour()}, {r.Gateway.Text, was.through.colour()},
			{strconv.Itoa(r.Gateway.Client), ""}, {strconv.Itoa(r.Gateway.Asked), ""}, {strconv.Itoa(r.Gateway.Paid), ""}, {seconds(was.through.took), ""}})
	}
	p.align(lines, func(i int) string { return c.rows[i].group })
	p.printf("\n")
	for _, l := range [...]string{
		"*        no recovery can produce a complete answer here: an error is correct.",
		"client   requests of the client: 1, and up to 2 retries like the usual SDKs.",
		"asked    requests that reach the upstream; paid: those that it answers with 200.",
		fmt.Sprintf("hung     no answer and no error within %.0f s.", c.Timeout),
	} {
		p.printf("%s\n", p.paint(dim, l))
	}
	p.printf("\n")
	p.side("Without gateway:", straight, len(c.Faults), plural(straight[failed], "error"), "")
	p.side("Through it:", through, len(c.Faults), plural(through[failed], "error"), "")
	return p.err
}

// colour is green for a complete answer, yellow for a fault that the client notices, or else red.
func (o outcome) colour() string {
	switch {
	case o.verdict == complete:
		return green
	case o.verdict == failed || o.verdict == unusable:
		return yellow
	}
	return red
}
