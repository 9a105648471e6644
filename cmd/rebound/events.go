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

	"github.com/spf13/cobra"
	"github.com/tidwall/gjson"

	"github.com/rebound-llm/rebound/cmd/rebound/eventline"
)

// eventFilters lists the filters of events; the flags and the API use the same names.
var eventFilters = [...]struct{ name, usage string }{
	{"event", "show only events with this `NAME`, such as request_done"},
	{"session", "show only events of the session with this `ID`"},
	{"model", "show only events of this `MODEL`, as clients name it"},
	{"target", "show only events of this `TARGET`, an upstream or UPSTREAM/MODEL"},
	{"class", "show only events with this error `CLASS`"},
	{"request", "show only events of the request with this `ID`, of the gateway (X-Rebound-Request) or the upstream"},
	{"key", "show only events of the gateway key with this `NAME`"},
	{"status", "show only events with this HTTP `STATUS`"},
	{"slower", "show only events of requests that took at least this many `MILLISECONDS`"},
}

// eventsCommand prints the recent events, or follows new ones.
func (p *program) eventsCommand() *cobra.Command {
	c := p.adminCommand("events", "Show how failures were recovered, on all replicas",
		`Shows what a running gateway, and all replicas that share its store, did about
failures: the last events, and with --follow also new ones. A repeated filter shows
the events with any of its values.`, cobra.NoArgs)
	follow := c.Flags().Bool("follow", false, "keep printing new events until Ctrl-C")
	last := c.Flags().Int("last", 20, "start with the last `N` events")
	requests := c.Flags().Bool("requests", false, "also show requests of this gateway without failures: the last thousand, and new ones with --follow")
	asJSON := c.Flags().Bool("json", false, "print each event as one line of JSON")
	var filters [len(eventFilters)]*[]string
	for i, f := range eventFilters {
		filters[i] = c.Flags().StringArray(f.name, nil, f.usage)
	}
	show := func(event []byte) error {
		if *asJSON {
			_, err := fmt.Fprintf(p.stdout, "%s\n", event)
			return err
		}
		e := gjson.ParseBytes(event)
		_, err := fmt.Fprintln(p.stdout, e.Get("time").Time().Local().Format("15:04:05.000"), eventline.String(e))
		return err
	}
	return c.do(func([]string) error {
		query := url.Values{"last": {strconv.Itoa(*last)}}
		for i, f := range eventFilters {
			query[f.name] = *filters[i]
		}
		if *requests {
			query.Set("requests", "1")
		}
		if !*follow {
			return printHistory(c.adminClient, query, show, p.stderr)
		}
		ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGTERM, syscall.SIGINT)
		defer stop()
		return followEvents(ctx, c.adminClient, query, show)
	})
}

// printHistory shows the events that a gateway has recorded. If there are none, it says so in notes.
func printHistory(gateway adminClient, query url.Values, show func([]byte) error, notes io.Writer) error {
	body, err := gateway.ask(http.MethodGet, "/rebound/events/history?"+query.Encode(), nil)
	if err != nil {
		return err
	}
	var list struct{ Events []json.RawMessage }
	if err := json.Unmarshal(body, &list); err != nil {
		return fmt.Errorf("not a Rebound gateway: %w", err)
	}
	for _, e := range list.Events {
		if err := show(e); err != nil {
			return err
		}
	}
	if len(list.Events) == 0 {
		fmt.Fprintln(notes, "no event matches; --requests also shows requests without failures")
	}
	return nil
}

// reconnectPause is the pause before a broken stream is opened again.
const reconnectPause = time.Second

// followEvents shows events as they arrive, until ctx ends. It resumes a broken stream after
// the last event; only a failure to open the first stream is an error.
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
		case <-time.After(reconnectPause):
		case <-ctx.Done():
			return nil
		}
	}
}

// maxEventLine is the limit of a line of the stream in bytes; the gateway writes less than 64 KiB.
const maxEventLine = 1 << 20

// readEvents calls show with each event of a stream until the stream ends or breaks, which is no
// error, and sets last to the id of the last event. It returns the first error of show.
func readEvents(stream io.Reader, last *string, show func([]byte) error) error {
	lines := bufio.NewScanner(stream)
	lines.Buffer(nil, maxEventLine)
	for lines.Scan() {
		if id, ok := bytes.CutPrefix(lines.Bytes(), []byte("id: ")); ok {
			*last = string(id)
		}
		if data, ok := bytes.CutPrefix(lines.Bytes(), []byte("data: ")); ok {
			if n := gjson.GetBytes(data, "dropped"); n.Exists() {
				data = []byte(fmt.Sprintf(`{"time":%q,"event":"dropped","cause":"%d events were skipped, because this reader is too slow"}`,
					time.Now().UTC().Format(time.RFC3339Nano), n.Int()))
			}
			if err := show(data); err != nil {
				return err
			}
		}
	}
	return nil
}
