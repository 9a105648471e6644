package main

import (
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"os"

	"github.com/rebound-llm/rebound/configs"
	"github.com/rebound-llm/rebound/recovery"
)

const learnUsage = `usage: rebound learn [report] [--url URL] [--json]
       rebound learn export [--url URL]
       rebound learn import [--url URL] FILE
       rebound learn reset [--url URL]

report shows what notes to models brought, by recovery chain and model, and what
follows from it. export writes the observations as JSON lines, import adds those of a
file (- for standard input), reset forgets all, at all replicas.
`

// runLearn is `rebound learn`; it returns the exit code.
func runLearn(args []string, env configs.Env, stdin io.Reader, stdout, stderr io.Writer) int {
	verb := "report"
	if len(args) > 0 && args[0] != "" && args[0][0] != '-' {
		verb, args = args[0], args[1:]
	}
	c := adminCommand{name: "learn", usage: learnUsage, path: "/rebound/learn", none: "nothing is learned (learn.outcomes: off)", table: learnTable}
	switch verb {
	case "report":
	case "export":
		c.path, c.table = "/rebound/learn/corpus", nil
	case "import":
		c.path, c.table, c.send = "/rebound/learn/corpus", importedTable, func(file string) (io.ReadCloser, error) {
			if file == "-" {
				return io.NopCloser(stdin), nil
			}
			return os.Open(file)
		}
	case "reset":
		c.method, c.none, c.table = http.MethodDelete, "what was learned of notes is forgotten", nothing
	default:
		fmt.Fprintf(stderr, "rebound learn: unknown command %q\n\n%s", verb, learnUsage+adminFlags)
		return 2
	}
	return c.run(args, env, stdout, stderr)
}

func nothing([]byte, io.Writer) (bool, error) { return false, nil }

func importedTable(body []byte, w io.Writer) (bool, error) {
	var got struct{ Added, Refused int }
	if err := json.Unmarshal(body, &got); err != nil {
		return false, err
	}
	fmt.Fprintf(w, "added %d observations, refused %d\n", got.Added, got.Refused)
	return true, nil
}

func learnTable(body []byte, w io.Writer) (bool, error) {
	var l recovery.Learned
	if err := json.Unmarshal(body, &l); err != nil {
		return false, err
	}
	if l.Mode == "off" {
		return false, nil
	}
	fmt.Fprintf(w, "%d observations, %d interventions open, %d entries refused, %d lost; mode %s\n", l.Observations, l.Open, l.Refused, l.Lost, l.Mode)
	for _, c := range l.Cells {
		fmt.Fprintf(w, "\n%s, model %q: %s\n", c.Chain, c.Model, decisions[c.Decision])
		fmt.Fprintf(w, "  p %.2f  r at least %.2f  d at least %.2f  net %+.2f (%+.2f to %+.2f)  censored %d\n", c.P, c.R, c.D, c.Net, c.CI[0], c.CI[1], c.Censored)
		fmt.Fprintln(w, "  STRATEGY\tOBSERVATIONS\tSUCCESS\t95 %")
		for _, a := range c.Arms {
			name := a.Strategy
			if name == "" {
				name = "(no note)"
			}
			fmt.Fprintf(w, "  %s\t%d\t%.2f\t%.2f to %.2f\n", name, a.Observations, a.Rate, a.CI[0], a.CI[1])
		}
	}
	for i, p := range l.Patterns {
		if i == 0 {
			fmt.Fprintln(w, "\nPatterns that are sure:")
		}
		fmt.Fprintf(w, "  %s\t%q\t%s\t%d\t%.2f\n", p.Chain, p.Template, p.Strategy, p.Observations, p.Rate)
	}
	return true, nil
}

// decisions say what is done in a cell.
var decisions = map[string]string{
	"chain":   "the chain's order, too little is known",
	"learned": "the order is learned",
	"observe": "no notes: they are no help here",
}
