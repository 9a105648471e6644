package main

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"os/signal"
	"strconv"
	"syscall"
	"time"

	"github.com/tidwall/gjson"

	"github.com/rebound-llm/rebound/cmd/rebound/eventline"
	"github.com/rebound-llm/rebound/configs"
)

const eventsUsage = `usage: rebound events [--follow] [--last N] [--requests] [--json] [--url URL]
                      [--event NAME] [--session ID] [--model NAME] [--target TARGET]
                      [--class CLASS] [--request ID]

Shows what a running gateway, and all that share its store, did about failures: the
last N events (20), and with --follow those that come. --requests adds requests to
which nothing happened, of that gateway, while following. The filters may be given
more than once; a target may be an upstream alone. --json prints one object a line.
`

// eventFilters are the filters of the events, as the gateway calls them.
var eventFilters = [...]string{"event", "session", "model", "target", "class", "request"}

// runEvents is `rebound events`; it returns the exit code.
func runEvents(args []string, env configs.Env, stdout, stderr io.Writer) int {
	c := newAdminCommand("events", eventsUsage, env, stdout, stderr)
	follow := c.flags.Bool("follow", false, "")
	last := c.flags.Int("last", 20, "")
	requests := c.flags.Bool("requests", false, "")
	asJSON := c.flags.Bool("json", false, "")
	query := url.Values{}
	for _, name := range eventFilters {
		c.flags.Func(name, "", func(v string) error { query.Add(name, v); return nil })
	}
	show := func(event []byte) error {
		if *asJSON {
			_, err := fmt.Fprintf(stdout, "%s\n", event)
			return err
		}
		e := gjson.ParseBytes(event)
		_, err := fmt.Fprintln(stdout, e.Get("time").Time().Local().Format("15:04:05.000"), eventline.String(e))
		return err
	}
	return c.run(args, noWords(func() error {
		query.Set("last", strconv.Itoa(*last))
		if !*follow {
			return pastEvents(c.adminClient, query, show)
		}
		if *requests {
			query.Set("requests", "1")
		}
		ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGTERM, syscall.SIGINT)
		defer stop()
		return followEvents(ctx, c.adminClient, query, show)
	}))
}

// pastEvents shows the events that a gateway knows.
func pastEvents(gateway adminClient, query url.Values, show func([]byte) error) error {
	body, err := gateway.ask(http.MethodGet, "/rebound/events/history?"+query.Encode(), nil)
	if err != nil {
		return err
	}
	var list struct{ Events []json.RawMessage }
	if err := json.Unmarshal(body, &list); err != nil {
		return fmt.Errorf("that is no gateway: %w", err)
	}
	for _, e := range list.Events {
		if err := show(e); err != nil {
			return err
		}
	}
	return nil
}

// followAgain is the pause before a stream that broke off is asked for again.
const followAgain = time.Second

// followEvents shows events as they come until ctx ends. A stream that breaks off is
// resumed where it was; one that cannot be had at first is an error.
func followEvents(ctx context.Context, gateway adminClient, query url.Values, show func([]byte) error) error {
	last := ""
	for begun := false; ; {
		resp, err := gateway.open(ctx, http.MethodGet, "/rebound/events?"+query.Encode(), nil, last)
		switch {
		case ctx.Err() != nil:
			return nil
		case err != nil && !begun:
			return err
		case err == nil:
			begun = true
			err = readEvents(resp.Body, &last, show)
			resp.Body.Close()
			if err != nil {
				return err
			}
		}
		select {
		case <-time.After(followAgain):
		case <-ctx.Done():
			return nil
		}
	}
}

// maxEventLine bounds a line of the stream; the gateway's are below 64 KiB.
const maxEventLine = 1 << 20

// readEvents shows the events of a stream until it ends; last becomes the id of the
// last one. Only what show says is an error: streams end.
func readEvents(stream io.Reader, last *string, show func([]byte) error) error {
	lines := bufio.NewScanner(stream)
	lines.Buffer(nil, maxEventLine)
	for lines.Scan() {
		if id, ok := bytes.CutPrefix(lines.Bytes(), []byte("id: ")); ok {
			*last = string(id)
		}
		if data, ok := bytes.CutPrefix(lines.Bytes(), []byte("data: ")); ok {
			if n := gjson.GetBytes(data, "dropped"); n.Exists() {
				data = []byte(fmt.Sprintf(`{"time":%q,"event":"dropped","cause":"%d events came too fast for this reader"}`,
					time.Now().UTC().Format(time.RFC3339Nano), n.Int()))
			}
			if err := show(data); err != nil {
				return err
			}
		}
	}
	return nil
}
