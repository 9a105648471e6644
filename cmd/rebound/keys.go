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

// keysCommand lists what gateway keys with limits use now.
func (p *program) keysCommand() *cobra.Command {
	c := p.adminCommand("keys", "List what gateway keys with limits use now",
		`Lists what the gateway keys with limits use now, at all replicas, and what all
clients together use.`, cobra.NoArgs)
	asJSON := c.json()
	table := listTable("keys", "no limits are configured", "KEY\tLIMIT\tUSED\tOF", writeAccount)
	cmd := c.do(func([]string) error { return c.show("/rebound/keys", *asJSON, table) })
	reset := p.adminCommand("reset KEY", "Clear what a key has used",
		`Clears what a gateway key has used of its limits, at all replicas; with "" what
all clients together have used.`, cobra.ExactArgs(1))
	cmd.AddCommand(reset.do(func(args []string) error {
		if _, err := reset.ask(http.MethodDelete, "/rebound/keys/"+url.PathEscape(args[0]), nil); err != nil {
			return err
		}
		_, err := fmt.Fprintf(p.stdout, "the limits of key %q begin anew\n", args[0])
		return err
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

// amount is a count, or money.
func amount(n float64) string { return strconv.FormatFloat(n, 'f', -1, 64) }
