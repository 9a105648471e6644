package main

import (
	"fmt"
	"io"
	"reflect"
	"strings"
	"text/tabwriter"

	"github.com/spf13/cobra"

	"github.com/rebound-llm/rebound/configs"
	"github.com/rebound-llm/rebound/recovery/inspect"
	"github.com/rebound-llm/rebound/recovery/rule"
)

// rulesCommand lists the rules that recognise failures.
func (p *program) rulesCommand() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "rules [NAME]",
		Short: "List classification rules, or print one with its examples",
		Long: `Lists the rules that recognise errors of upstreams, then those that recognise
failures in tools' results, in the order in which they are tried: the first one that
matches decides. With a name, prints that rule whole. Broken connections and cut
streams are recognised before them, by code, and so is the structure of results.

Exit code: 0 done, 1 no such rule, 2 wrong use or a configuration that cannot be used.`,
		Args: words(cobra.MaximumNArgs(1)),
	}
	config := cmd.Flags().String("config", "", "also use the rules of the configuration in this `FILE` (classify.rules and inspect.rules), which come first")
	cmd.RunE = func(_ *cobra.Command, args []string) error {
		name := ""
		if len(args) == 1 {
			name = args[0]
		}
		return listRules(*config, name, p.env, p.stdout)
	}
	return cmd
}

// listRules writes all rules, or one whole.
func listRules(config, name string, env configs.Env, stdout io.Writer) error {
	table, err := ruleTable(config, env)
	if err != nil {
		return unusable(err)
	}
	upstreams, err := table.Rules()
	var rules *inspect.Rules
	if err == nil {
		rules, _, err = toolRules(config, env)
	}
	var tools *rule.List
	if err == nil {
		tools, err = rules.Rules()
	}
	if err != nil {
		return unusable(err)
	}
	found := false
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
		return fmt.Errorf("no rule is called %s", name)
	}
	return nil
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
