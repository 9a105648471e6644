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

// targetsCommand lists what is known of targets, and forgets it.
func (p *program) targetsCommand() *cobra.Command {
	list := p.adminCommand("targets", "List breakers, cool-downs and what was learned about targets; forget it",
		`Lists what a running gateway knows about upstreams and models: open breakers, keys
that cool down, what it learned from refusals and answers, their windows and their
pace, each with its age and its evidence. Windows from lists of models, and the
pace, are each replica's own.`, cobra.NoArgs)
	asJSON := list.json()
	cmd := list.do(func([]string) error {
		return list.show("/rebound/targets", *asJSON, listTable("targets", "all targets are available; nothing learned yet", marksHead, writeMark))
	})
	reset := p.adminCommand("reset TARGET [ITEM]", "Forget what is known about a target, or one item of it",
		`Forgets one item, or all that is known about a target, so that it is asked again as
if it were new.`, cobra.RangeArgs(1, 2))
	cmd.AddCommand(reset.do(func(args []string) error {
		query, what := url.Values{"target": args[:1]}, "everything"
		if len(args) == 2 {
			query["item"], what = args[1:], args[1]
		}
		if _, err := reset.ask(http.MethodDelete, "/rebound/targets?"+query.Encode(), nil); err != nil {
			return err
		}
		_, err := fmt.Fprintf(p.stdout, "forgot %s about %s\n", what, args[0])
		return err
	}))
	cmd.AddCommand(p.switchCommand("disable"), p.switchCommand("enable"))
	return cmd
}

// switchCommand switches an upstream, a target, a model or a key off or down, or back.
func (p *program) switchCommand(name string) *cobra.Command {
	on := name == "enable"
	short, long := "Keep requests away from an upstream or a target, or let less be done to requests", `Has all replicas ask an upstream (NAME) or one model of it (NAME/MODEL) no more, until it
is enabled: requests go to other targets, those under way end. With --mode less is done to
requests instead (annotate, observe or off), of an upstream or target, or with --model or
--key of a model or of a gateway key.`
	if on {
		short, long = "Take a disable back", `Takes back what disable has done.`
	}
	c := p.adminCommand(name+" [NAME]", short, long, cobra.MaximumNArgs(1))
	model, key := c.Flags().String("model", "", "a `MODEL` as clients name it"), c.Flags().String("key", "", "the name of a gateway `KEY`")
	mode := "disabled"
	if !on {
		c.Flags().StringVar(&mode, "mode", mode, "the most that may be done: annotate, observe or off; without it an upstream or a target is not asked")
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
			return usageError{errors.New("give an upstream, a target, --model or --key")}
		}
		if on {
			_, err := c.ask(http.MethodDelete, "/rebound/switches?"+url.Values{"of": {of}, "name": {what}}.Encode(), nil)
			if err == nil {
				_, err = fmt.Fprintf(p.stdout, "%s %q is as configured again\n", of, what)
			}
			return err
		}
		body, err := json.Marshal(map[string]string{"of": of, "name": what, "mode": mode})
		if err == nil {
			_, err = c.ask(http.MethodPost, "/rebound/switches", bytes.NewReader(body))
		}
		if err == nil {
			_, err = fmt.Fprintf(p.stdout, "%s %q: %s\n", of, what, mode)
		}
		return err
	})
}

// marksHead is above the rows of writeMark.
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
	fmt.Fprintf(w, "%q\t%q\t%s\t%s\t%s\t%s\n", m.Target, m.Item, since, left, shown(m.Detail), shown(evidence))
}

// shown is a text without what a terminal would obey.
func shown(text string) string {
	return strings.Map(func(r rune) rune {
		if !unicode.IsPrint(r) {
			return unicode.ReplacementChar
		}
		return r
	}, text)
}
