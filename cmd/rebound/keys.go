package main

import (
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
	table := listTable("keys", "no key has limits, nor have all together", "KEY\tLIMIT\tUSED\tOF", writeAccount)
	return c.run(args, noWords(func() error { return c.show("/rebound/keys", *asJSON, table) }))
}

func writeAccount(w io.Writer, a quota.Account) {
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

// amount is a count, or money.
func amount(n float64) string { return strconv.FormatFloat(n, 'f', -1, 64) }
