package main

import (
	"errors"
	"flag"
	"fmt"
	"io"
	"reflect"
	"strings"
	"text/tabwriter"

	"github.com/rebound-llm/rebound/configs"
	"github.com/rebound-llm/rebound/recovery/inspect"
	"github.com/rebound-llm/rebound/recovery/rule"
)

const rulesUsage = `usage: rebound rules [--config FILE] [NAME]

Lists the rules that recognise errors of upstreams, then those that recognise
failures in tools' results, in the order in which they are tried: the first one that
matches decides. With a name, prints that rule whole. Broken connections and cut
streams are recognised before them, by code, and so is the structure of results.

  --config FILE  with the rules of this configuration (classify.rules and
                 inspect.rules), which come first

Exit code: 0 done, 1 no such rule, 2 wrong use or a configuration that cannot be used.
`

// runRules is "rebound rules". It returns the exit code.
func runRules(args []string, env configs.Env, stdout, stderr io.Writer) int {
	flags := flag.NewFlagSet("rules", flag.ContinueOnError)
	flags.SetOutput(io.Discard)
	config := flags.String("config", "", "")
	switch err := flags.Parse(args); {
	case errors.Is(err, flag.ErrHelp):
		fmt.Fprint(stdout, rulesUsage)
		return 0
	case err != nil || flags.NArg() > 1:
		fmt.Fprint(stderr, rulesUsage)
		return 2
	}
	table, err := ruleTable(*config, env)
	if err != nil {
		fmt.Fprintf(stderr, "rebound rules: %v\n", err)
		return 2
	}
	upstreams, err := table.Rules()
	var rules *inspect.Rules
	if err == nil {
		rules, err = toolRules(*config, env)
	}
	var tools *rule.List
	if err == nil {
		tools, err = rules.Rules()
	}
	if err != nil {
		fmt.Fprintf(stderr, "rebound rules: %v\n", err)
		return 2
	}
	name, found := flags.Arg(0), false
	w := tabwriter.NewWriter(stdout, 0, 0, 2, ' ', 0)
	for _, list := range []*rule.List{upstreams, tools} {
		for i := range list.Len() {
			switch r := list.Rule(i); name {
			case "":
				fmt.Fprintf(w, "%s\t%s\t%s\t%s\n", r.Name, r.Class, r.Sure, r.Meaning)
			case r.Name:
				found = true
				printRule(stdout, r)
			}
		}
	}
	w.Flush()
	if name != "" && !found {
		fmt.Fprintf(stderr, "rebound rules: no rule is called %s\n", name)
		return 1
	}
	return 0
}

// printRule writes what a rule has under the keys of its file.
func printRule(out io.Writer, r *rule.Rule) {
	v := reflect.ValueOf(r).Elem()
	for i := range v.NumField() {
		key := v.Type().Field(i).Tag.Get("yaml")
		switch list, ok := v.Field(i).Interface().([]string); {
		case ok && len(list) > 0:
			fmt.Fprintf(out, "%s:\n  - %s\n", key, strings.Join(list, "\n  - "))
		case !ok && !v.Field(i).IsZero():
			fmt.Fprintf(out, "%s: %v\n", key, v.Field(i).Interface())
		}
	}
}
