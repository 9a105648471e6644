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
	"strings"
	"syscall"
	"time"

	"github.com/spf13/cobra"
	"github.com/tidwall/gjson"

	"github.com/rebound-llm/rebound/cmd/rebound/eventline"
)

// eventFilters are the filters of the events, as the gateway calls them.
var eventFilters = [...]string{"event", "session", "model", "target", "class", "request", "key", "status", "slower"}

// eventsCommand shows what was done about failures.
func (p *program) eventsCommand() *cobra.Command {
	c := p.adminCommand("events", "Show what was done about failures, on all replicas",
		`Shows what a running gateway, and all that share its store, did about failures: the
last events, and with --follow those that come. Filters may be given more than once;
--request takes the gateway's id (X-Rebound-Request) or the upstream's, --slower milliseconds.`, cobra.NoArgs)
	follow := c.Flags().Bool("follow", false, "follow new events")
	last := c.Flags().Int("last", 20, "begin with the last `N` events")
	requests := c.Flags().Bool("requests", false, "add requests of that gateway to which nothing happened: the last thousand, and while following those that come")
	asJSON := c.Flags().Bool("json", false, "print one JSON object a line")
	var filters [len(eventFilters)]*[]string
	for i, name := range eventFilters {
		filters[i] = c.Flags().StringArray(name, nil, "only events with this `"+strings.ToUpper(name)+"`")
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
		for i, name := range eventFilters {
			query[name] = *filters[i]
		}
		if *requests {
			query.Set("requests", "1")
		}
		if !*follow {
			return pastEvents(c.adminClient, query, show)
		}
		ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGTERM, syscall.SIGINT)
		defer stop()
		return followEvents(ctx, c.adminClient, query, show)
	})
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
