package main

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"net/http"
	"os/signal"
	"slices"
	"strings"
	"syscall"
	"text/tabwriter"
	"time"

	"github.com/spf13/cobra"
	"github.com/tidwall/gjson"

	"github.com/rebound-llm/rebound/cmd/rebound/eventline"
	"github.com/rebound-llm/rebound/recovery"
)

// topCommand shows a live overview of a running gateway.
func (p *program) topCommand() *cobra.Command {
	c := p.adminCommand("top", "Show a live overview of a running gateway",
		`Shows a live overview of a running gateway until Ctrl-C: the requests of the last
minute and their outcomes, upstreams, unavailable targets, stopped sessions, and the
last events.`, cobra.NoArgs)
	every := c.Flags().Duration("every", time.Second, "refresh interval, at least 100ms")
	once := c.Flags().Bool("once", false, "print the overview once, for scripts and logs")
	return c.do(func([]string) error {
		if *every < 100*time.Millisecond {
			return usageError{errors.New("--every must be at least 100ms")}
		}
		if *once {
			text, err := overview(c.adminClient)
			_, _ = p.stdout.Write(text)
			return err
		}
		return watch(c.adminClient, *every, p.stdout)
	})
}

// watch refreshes the overview on the screen until the program is interrupted. Only a failure
// of the first overview is an error; the screen shows later ones.
func watch(gateway adminClient, every time.Duration, screen io.Writer) error {
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGTERM, syscall.SIGINT)
	defer stop()
	for begun := false; ; begun = true {
		text, err := overview(gateway)
		if err != nil && !begun {
			return err
		}
		if err != nil {
			text = fmt.Appendf(nil, "%v\n", err)
		}
		// Clear each line to its end, and the screen below the last line.
		fmt.Fprintf(screen, "\x1b[H%s\x1b[J", bytes.ReplaceAll(text, []byte("\n"), []byte("\x1b[K\r\n")))
		select {
		case <-time.After(every):
		case <-ctx.Done():
			fmt.Fprintln(screen)
			return nil
		}
	}
}

// topMinute is the number of the gateway's samples in a minute.
const topMinute = 12

// overview queries the gateway and formats its answers.
func overview(gateway adminClient) ([]byte, error) {
	var parts [4]gjson.Result
	for i, path := range [...]string{fmt.Sprintf("now?series=%d", topMinute), "targets", "sessions", "events/history?last=12"} {
		body, err := gateway.ask(http.MethodGet, "/rebound/"+path, nil)
		if err != nil {
			return nil, err
		}
		if !json.Valid(body) {
			return nil, errors.New("not a Rebound gateway: the answer is not JSON")
		}
		parts[i] = gjson.ParseBytes(body)
	}
	var b bytes.Buffer
	writeRates(&b, gateway.url, parts[0])
	writeUpstreams(&b, parts[0])
	var list struct{ Targets []recovery.Mark }
	_ = json.Unmarshal([]byte(parts[1].Raw), &list) // skip an answer that is not a list
	all := len(list.Targets)
	away := slices.DeleteFunc(list.Targets, func(m recovery.Mark) bool {
		return !slices.Contains([]recovery.MarkKind{recovery.MarkBreaker, recovery.MarkCooldown, recovery.MarkDisabled, recovery.MarkSwitched}, m.Kind)
	})
	if len(away) > 0 {
		fmt.Fprintln(&b)
		w := tabwriter.NewWriter(&b, 0, 0, 2, ' ', 0)
		fmt.Fprintln(w, marksHead)
		for _, m := range away {
			writeMark(w, m)
		}
		_ = w.Flush()
	}
	if n := all - len(away); n > 0 {
		fmt.Fprintf(&b, "\nfacts known about targets: %d (rebound targets)\n", n)
	}
	if n := parts[2].Get("sessions.#").Int(); n > 0 {
		fmt.Fprintf(&b, "\nstopped sessions: %d (rebound sessions)\n", n)
	}
	fmt.Fprintln(&b)
	for _, e := range parts[3].Get("events").Array() {
		line := []rune(e.Get("time").Time().Local().Format("15:04:05 ") + eventline.String(e, "request", "session", "rule"))
		fmt.Fprintln(&b, string(line[:min(len(line), topWidth)]))
	}
	return b.Bytes(), nil
}

// topWidth is the longest line of an event, in characters.
const topWidth = 150

// writeRates writes what is wrong now, and the rates, first-token times and tokens of the last minute.
func writeRates(b *bytes.Buffer, url string, now gjson.Result) {
	is, was := now.Get("now"), now.Get("series.0")
	since := was.Get("time").Time()
	if !was.Exists() {
		since = now.Get("started").Time()
	}
	seconds := max(is.Get("time").Time().Sub(since).Seconds(), 1)
	grew := func(path string) float64 { return is.Get(path).Float() - was.Get(path).Float() }
	answered := grew("requests.ok") + grew("requests.fallback") + grew("requests.recovered") + grew("requests.failed")
	share := func(n, of float64) string {
		if of <= 0 {
			return "-"
		}
		return fmt.Sprintf("%.1f %%", 100*n/of)
	}
	up := time.Since(now.Get("started").Time()).Round(time.Second)
	fmt.Fprintf(b, "rebound %q at %q, up %v, replicas: %d, %.0f in flight here; the last %.0f s:\n", now.Get("version").Str, url, up, now.Get("replicas").Int(), is.Get("in_flight").Float(), seconds)
	for _, t := range now.Get("trouble").Array() {
		fmt.Fprintf(b, "! %s\n", printable(t.Str))
	}
	fmt.Fprintf(b, "\nrequests  %.1f a second   unchanged %s   by fallback %s   recovered %s   failed %s   canceled %.0f   rejected %.0f\n", answered/seconds,
		share(grew("requests.ok"), answered), share(grew("requests.fallback"), answered), share(grew("requests.recovered"), answered), share(grew("requests.failed"), answered),
		grew("requests.canceled"), grew("requests.rejected"))
	bounds, counts := now.Get("ttfb_bounds").Array(), is.Get("ttfb").Array()
	quantile := func(q float64) string {
		if len(counts) == 0 || len(counts) != len(bounds)+1 {
			return "-"
		}
		all := grew(fmt.Sprintf("ttfb.%d", len(bounds)))
		for i := range bounds {
			if n := grew(fmt.Sprintf("ttfb.%d", i)); all > 0 && n >= q*all {
				return "<= " + bounds[i].Raw + " s"
			}
		}
		if all > 0 {
			return "> " + bounds[len(bounds)-1].Raw + " s"
		}
		return "-"
	}
	fmt.Fprintf(b, "first token  median %s, 95 %% %s   cache read %s of input\n", quantile(.5), quantile(.95),
		share(grew("tokens.cache_read"), grew("tokens.input")))
	fmt.Fprintf(b, "tokens  input %.0f, output %.0f   extra %.0f   removed by fitting %.0f\n\n", grew("tokens.input"), grew("tokens.output"),
		grew("extra.input")+grew("extra.output"), grew("compressed.before")-grew("compressed.after"))
}

// writeUpstreams writes the attempts at each upstream in the last minute, and the classes of failed ones.
func writeUpstreams(b *bytes.Buffer, now gjson.Result) {
	w := tabwriter.NewWriter(b, 0, 0, 2, ' ', 0)
	fmt.Fprintln(w, "UPSTREAM\tATTEMPTS\tFAILED\tCLASSES")
	now.Get("now.attempts").ForEach(func(name, classes gjson.Result) bool {
		failed, all := map[string]float64{}, 0.0
		classes.ForEach(func(class, n gjson.Result) bool {
			was := now.Get("series.0.attempts." + gjson.Escape(name.Str) + "." + gjson.Escape(class.Str))
			grew := n.Float() - was.Float()
			all += grew
			if class.Str != "ok" && class.Str != "canceled" && grew > 0 {
				failed[class.Str] = grew
			}
			return true
		})
		if all == 0 && name.Str == "other" {
			return true
		}
		most := slices.SortedFunc(maps.Keys(failed), func(a, b string) int { return cmp.Or(cmp.Compare(failed[b], failed[a]), cmp.Compare(a, b)) })
		sum, text := 0.0, make([]string, len(most))
		for i, class := range most {
			sum += failed[class]
			text[i] = fmt.Sprintf("%s %.0f", class, failed[class])
		}
		fmt.Fprintf(w, "%q\t%.0f\t%.0f\t%s\n", name.Str, all, sum, strings.Join(text[:min(len(text), 4)], ", "))
		return true
	})
	_ = w.Flush()
}
