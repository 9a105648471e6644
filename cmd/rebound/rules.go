package main

import (
	"fmt"
	"io"
	"reflect"
	"strings"
	"text/tabwriter"

	"github.com/spf13/cobra"

	"github.com/rebound-llm/rebound/configs"
	"github.com/rebound-llm/rebound/recovery/classify"
	"github.com/rebound-llm/rebound/recovery/inspect"
	"github.com/rebound-llm/rebound/recovery/rule"
)

// rulesCommand lists the rules that classify failures.
func (p *program) rulesCommand() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "rules [NAME]",
		Short: "List the classification rules, or print one with its examples",
		Long: `Lists the rules that classify upstream errors, then those that classify failures in tool
results, in the order in which the gateway tries them: the first match decides. With a
name it prints that rule in full. Broken connections, cut streams and the structure of
tool results are not in the list, because code recognises them before any rule.

Exit code: 0 done, 1 no such rule, 2 wrong command line or invalid configuration.`,
		Args: usageArgs(cobra.MaximumNArgs(1)),
	}
	config := cmd.Flags().String("config", "", "also use the rules in this configuration `FILE` (classify.rules and inspect.rules), which come first")
	cmd.RunE = func(_ *cobra.Command, args []string) error {
		name := ""
		if len(args) == 1 {
			name = args[0]
		}
		return listRules(*config, name, p.env, p.stdout)
	}
	return cmd
}

// listRules prints a line for each rule, or all of the rule with this name.
func listRules(config, name string, env configs.Env, stdout io.Writer) error {
	c, err := ruleConfig(config, env)
	if err != nil {
		return inputError(err)
	}
	upstreams, err := classify.New(configs.UpstreamRules, c.Classify.Rules...).Rules()
	if err != nil {
		return inputError(err)
	}
	tools, err := inspect.NewRules(configs.ToolRules, c.Inspect.Rules...).Rules()
	if err != nil {
		return inputError(err)
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
		return fmt.Errorf("there is no rule %q; run \"rebound rules\" for the list", name)
	}
	return nil
}

// printRule prints the fields of a rule that are set, by their YAML keys.
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
