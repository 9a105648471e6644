package main

import (
	"fmt"
	"io"
	"strconv"

	"github.com/spf13/cobra"

	"github.com/rebound-llm/rebound/proxy/quota"
)

// keysCommand lists what gateway keys with limits use now.
func (p *program) keysCommand() *cobra.Command {
	c := p.adminCommand("keys", "List what gateway keys with limits use now",
		`Lists what the gateway keys with limits use now, at all replicas, and what all
clients together use.`, cobra.NoArgs)
	asJSON := c.json()
	table := listTable("keys", "no limits are configured", "KEY\tLIMIT\tUSED\tOF", writeAccount)
	return c.do(func([]string) error { return c.show("/rebound/keys", *asJSON, table) })
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
