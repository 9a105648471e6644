package main

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strings"
	"time"
	"unicode"

	"github.com/spf13/cobra"

	"github.com/rebound-llm/rebound/recovery"
)

// targetsCommand lists and resets what the gateway knows about targets.
func (p *program) targetsCommand() *cobra.Command {
	list := p.adminCommand("targets", "List breakers, cool-downs and learned facts of targets; reset, disable or enable them",
		`Lists what a running gateway knows about upstreams and models: open breakers, keys in
cool-down, facts learned from refusals and answers, context windows and speed, each with
its age and evidence. Replicas do not share speeds, nor windows from lists of models.`, cobra.NoArgs)
	asJSON := list.json()
	cmd := list.do(func([]string) error {
		return list.show("/rebound/targets", *asJSON, listTable("targets", "all targets are available; nothing is learned yet", marksHead, writeMark))
	})
	reset := p.adminCommand("reset TARGET [ITEM]", "Forget everything known about a target, or one item",
		`Forgets one item, or everything known about a target. The gateway then uses the target
as if it were new.`, cobra.RangeArgs(1, 2))
	cmd.AddCommand(reset.do(func(args []string) error {
		query, what := url.Values{"target": args[:1]}, "everything"
		if len(args) == 2 {
			query["item"], what = args[1:], args[1]
		}
		return reset.act(http.MethodDelete, "/rebound/targets?"+query.Encode(), nil, "forgot %s about %s", what, args[0])
	}))
	cmd.AddCommand(p.switchCommand("disable"), p.switchCommand("enable"))
	return cmd
}

// switchCommand disables an upstream or target, limits the mode of one, of a model or of a key, or undoes that.
func (p *program) switchCommand(name string) *cobra.Command {
	on := name == "enable"
	short, long := "Send no requests to an upstream or target, or limit the recovery mode", `Stops all replicas from sending requests to an upstream (NAME) or to one of its models
(NAME/MODEL) until it is enabled. Requests go to other targets; running ones finish.
With --mode it limits recovery to annotate, observe or off instead, for an upstream or
target, or with --model or --key for a model or a gateway key.`
	if on {
		short, long = "Undo a disable", `Undoes a disable: the configuration applies again.`
	}
	c := p.adminCommand(name+" [NAME]", short, long, cobra.MaximumNArgs(1))
	model, key := c.Flags().String("model", "", "`MODEL` as clients name it"), c.Flags().String("key", "", "name of a gateway `KEY`")
	mode := "disabled"
	if !on {
		c.Flags().StringVar(&mode, "mode", mode, "highest recovery `MODE`: annotate, observe or off; by default the upstream or target gets no requests")
	}
	return c.do(func(args []string) error {
		of, what := "upstream", strings.Join(args, "")
		switch {
		case strings.Contains(what, "/"):
			of = "target"
		case *model != "":
			of, what = "model", *model+what
		case *key != "":
			of, what = "key", *key+what
		}
		if what == "" || (*model != "" || *key != "") && (len(args) > 0 || *model != "" && *key != "") {
			return usageError{errors.New("give one of: an upstream, a target, --model, --key")}
		}
		if on {
			return c.act(http.MethodDelete, "/rebound/switches?"+url.Values{"of": {of}, "name": {what}}.Encode(), nil, "%s %q: as configured", of, what)
		}
		body, _ := json.Marshal(map[string]string{"of": of, "name": what, "mode": mode}) // strings always marshal
		return c.act(http.MethodPost, "/rebound/switches", bytes.NewReader(body), "%s %q: %s", of, what, mode)
	})
}

// marksHead is the head of the table that writeMark writes.
const marksHead = "TARGET\tITEM\tSINCE\tFOR\tDETAIL\tEVIDENCE"

func writeMark(w io.Writer, m recovery.Mark) {
	left, since, evidence := "-", "-", m.Evidence
	if d := time.Until(m.Until).Round(time.Second); d > 0 {
		left = d.String()
	} else if m.Kind == recovery.MarkBreaker {
		left = "half-open"
	}
	if !m.Since.IsZero() {
		since = max(0, time.Since(m.Since).Round(time.Second)).String() + " ago"
	}
	if m.Request != "" {
		evidence += ", request " + m.Request
	}
	fmt.Fprintf(w, "%q\t%q\t%s\t%s\t%s\t%s\n", m.Target, m.Item, since, left, printable(m.Detail), printable(evidence))
}

// printable replaces everything in text that could control a terminal.
func printable(text string) string {
	return strings.Map(func(r rune) rune {
		if !unicode.IsPrint(r) {
			return unicode.ReplacementChar
		}
		return r
	}, text)
}
