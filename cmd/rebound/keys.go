package main

import (
	"encoding/json"
	"fmt"
	"io"
	"strconv"

	"github.com/rebound-llm/rebound/configs"
	"github.com/rebound-llm/rebound/proxy/quota"
)

const keysUsage = `usage: rebound keys [--url URL] [--json]

Lists what the gateway keys with limits use now, at all replicas, and what all
clients together use.
`

// runKeys is `rebound keys`; it returns the exit code.
func runKeys(args []string, env configs.Env, stdout, stderr io.Writer) int {
	c := newAdminCommand("keys", keysUsage, env, stdout, stderr)
	asJSON := c.flags.Bool("json", false, "")
	return c.run(args, noWords(func() error { return c.show("/rebound/keys", *asJSON, keysTable) }))
}

func keysTable(w io.Writer, answer []byte) error {
	var list struct{ Keys []quota.Account }
	if err := json.Unmarshal(answer, &list); err != nil {
		return err
	}
	if len(list.Keys) == 0 {
		fmt.Fprintln(w, "no key has limits, nor have all together")
		return nil
	}
	fmt.Fprintln(w, "KEY\tLIMIT\tUSED\tOF")
	for _, a := range list.Keys {
		name := "(all together)"
		if a.Key != "" {
			name = strconv.Quote(a.Key)
		}
		for _, u := range a.Uses {
			of := "no limit"
			if u.Of > 0 {
				of = amount(u.Of)
			}
			fmt.Fprintf(w, "%s\t%s\t%s\t%s\n", name, u.Limit, amount(u.Used), of)
		}
	}
	return nil
}

// amount is a count, or money.
func amount(n float64) string { return strconv.FormatFloat(n, 'f', -1, 64) }
