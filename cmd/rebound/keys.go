package main

import (
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strconv"

	"github.com/spf13/cobra"

	"github.com/rebound-llm/rebound/proxy/quota"
)

// keysCommand lists the usage of gateway keys with limits, and resets it.
func (p *program) keysCommand() *cobra.Command {
	c := p.adminCommand("keys", "List the usage of gateway keys with limits; reset it",
		`Lists the current usage of gateway keys with limits, and of all clients together, over
all replicas.`, cobra.NoArgs)
	asJSON := c.json()
	table := listTable("keys", "no limits are configured", "KEY\tLIMIT\tUSED\tOF", writeAccount)
	cmd := c.do(func([]string) error { return c.show("/rebound/keys", *asJSON, table) })
	reset := p.adminCommand("reset KEY", "Reset the usage of a key",
		`Resets the usage of a gateway key to zero, on all replicas. KEY is the name of the key;
"" resets the usage of all clients together.`, cobra.ExactArgs(1))
	cmd.AddCommand(reset.do(func(args []string) error {
		return reset.act(http.MethodDelete, "/rebound/keys/"+url.PathEscape(args[0]), nil, "usage of key %q reset", args[0])
	}))
	return cmd
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

// amount formats a count or an amount of money.
func amount(n float64) string { return strconv.FormatFloat(n, 'f', -1, 64) }
