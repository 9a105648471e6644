package telemetry

import (
	"bytes"
	"context"
	"encoding/json"
	"log/slog"
	"strconv"
	"strings"
	"time"
	"unicode"
	"unicode/utf8"

	"github.com/rebound-llm/rebound/proxy/redact"
	"github.com/rebound-llm/rebound/recovery"
)

// Limits of text from others, in bytes.
const (
	maxCause = 512
	maxName  = 128
	// maxRaw limits how much of a cause is searched for secrets.
	maxRaw   = 2048
	maxTries = 20 // listed attempts of one request
)

// finish returns why an answer ended, in the words of the conventions. A value that is not a plain
// word becomes "other", because an upstream may send anything.
func finish(f recovery.Finish) string {
	switch f {
	case recovery.FinishCalls:
		return "tool_call"
	case recovery.FinishFilter:
		return "content_filter"
	}
	if len(f) > 32 || strings.ContainsFunc(string(f), func(r rune) bool { return (r < 'a' || r > 'z') && r != '_' }) {
		return labelOther
	}
	return string(f)
}

func level(name recovery.EventName) slog.Level {
	switch name {
	case recovery.EventRecoveryFailed, recovery.EventDegraded, recovery.EventBreakerOpened, recovery.EventTargetCooled, recovery.EventTruncated:
		return slog.LevelWarn
	}
	return slog.LevelInfo
}

// record lists the fields of an event in reading order. Only this function names the keys; zero fields
// are omitted.
func record(ev *recovery.Event) slog.Record {
	r := slog.NewRecord(ev.Time, level(ev.Name), clean(string(ev.Name), maxName), 0)
	attrs := make([]slog.Attr, 0, 28)
	text := func(key, v string) {
		if v != "" {
			attrs = append(attrs, slog.String(key, clean(v, maxName)))
		}
	}
	number := func(key string, v int) {
		if v != 0 {
			attrs = append(attrs, slog.Int(key, v))
		}
	}
	flag := func(key string, v bool) {
		if v {
			attrs = append(attrs, slog.Bool(key, v))
		}
	}
	text("request", ev.Request)
	text("key", ev.Key)
	text("session", ev.Session)
	text("client", ev.Client)
	text("peer", ev.Peer)
	text("model", ev.Model)
	text("target", place(ev.Target))
	text("upstream_key", ev.Target.Key)
	number("attempt", ev.Attempt)
	number("count", ev.Count)
	flag("fallback", ev.Fallback)
	text("class", string(ev.Class))
	if ev.Class != "" && (ev.Name == recovery.EventRecoveryAttempt || ev.Name == recovery.EventRecoveryFailed) {
		attrs = append(attrs, slog.Bool("retryable", ev.Class.Retryable()))
	}
	text("flaw", string(ev.Flaw))
	text("rule", ev.Rule)
	text("strategy", ev.Strategy)
	text("way", string(ev.Way))
	number("status", ev.Status)
	text("format", ev.Format)
	flag("streamed", ev.Streamed)
	number("wait_ms", millis(ev.Wait))
	attrs = append(attrs, details(ev)...)
	if !ev.Until.IsZero() {
		attrs = append(attrs, slog.Time("until", ev.Until.UTC()))
	}
	number("duration_ms", millis(ev.Duration))
	number("prepare_ms", millis(ev.Prepared))
	number("ttfb_ms", millis(ev.TTFB))
	text("upstream_request", ev.Upstream)
	text("recovery", ev.Recovery)
	text("finish", finish(ev.Finish))
	text("mode", string(ev.Mode))
	flag("observed", ev.Observed)
	if ev.Cause != "" {
		attrs = append(attrs, slog.String("cause", cause(ev.Cause)))
	}
	for _, u := range [...]struct {
		key   string
		usage *recovery.Usage
	}{{"usage", &ev.Usage}, {"cost", &ev.Cost}} {
		var parts []any
		for k, n := range byKind(u.usage) {
			if n != 0 {
				parts = append(parts, slog.Int(kindNames[k], n))
			}
		}
		if len(parts) > 0 {
			attrs = append(attrs, slog.Group(u.key, parts...))
		}
	}
	if ev.Extra != 0 {
		attrs = append(attrs, slog.Float64("recovery_spent", ev.Extra))
	}
	if ev.Spent != 0 {
		attrs = append(attrs, slog.Float64("spent", ev.Spent))
	}
	if len(ev.Attempts) > 1 {
		attrs = append(attrs, slog.Any("attempts", tries{ev.Time.Add(-ev.Duration), ev.Attempts[:min(len(ev.Attempts), maxTries)]}))
	}
	r.AddAttrs(attrs...)
	return r
}

// details lists fields that only some events have. It omits text of models and tools.
func details(ev *recovery.Event) (attrs []slog.Attr) {
	if c := ev.Compressed; c != nil {
		attrs = append(attrs, slog.Any("tiers", list(c.Tiers)), slog.Int("steps_compressed", c.Steps),
			slog.Int("original_tokens", c.Before), slog.Int("compressed_tokens", c.After),
			slog.Int("original_size", c.BytesBefore), slog.Int("compressed_size", c.BytesAfter))
	}
	if len(ev.Repairs) > 0 {
		var names []string
		for _, r := range ev.Repairs[:min(len(ev.Repairs), maxTries)] {
			names = append(names, clean(r.Rule+" "+r.Tool, maxName))
		}
		attrs = append(attrs, slog.Any("repairs", list(names)))
	}
	if f := ev.Failure; f != nil {
		attrs = append(attrs, slog.String("tool", clean(f.Tool, maxName)), slog.String("category", string(f.Category)),
			slog.String("evidence", clean(f.Rule, maxName)), slog.Float64("confidence", f.Confidence))
	}
	if l := ev.Loop; l != nil {
		attrs = append(attrs, slog.String("loop", string(l.Kind)), slog.Int("repetitions", l.Count))
	}
	if p := ev.Progress; p != nil && p.Steps > 0 {
		attrs = append(attrs, slog.Int("progress", p.Percent), slog.Int("progress_recent", p.Recent), slog.String("task", string(p.Task)))
		if p.Stuck {
			attrs = append(attrs, slog.Bool("stuck", true))
		}
	}
	if a := ev.Advice; a != nil {
		if a.Category != "" {
			attrs = append(attrs, slog.String("about", string(a.Category)))
		}
		if len(a.Strategies) > 0 {
			attrs = append(attrs, slog.Any("strategies", list(a.Strategies)))
		}
		if a.Count > 0 {
			attrs = append(attrs, slog.Int("occurrence", a.Count))
		}
		if a.HeldOut {
			attrs = append(attrs, slog.Bool("held_out", true))
		}
		if a.Withheld {
			attrs = append(attrs, slog.Bool("withheld", true))
		}
	}
	if p := ev.Plan; p != nil {
		if p.Tool != "" {
			attrs = append(attrs, slog.String("tool", clean(p.Tool, maxName)))
		}
		attrs = append(attrs, slog.String("band", string(p.Band)), slog.String("source", p.Source), slog.Float64("confidence", p.Confidence))
		if len(p.Steps) > 0 || p.Iterations > 0 || len(p.Fallbacks) > 0 {
			var steps, fallbacks list
			for _, s := range p.Steps {
				steps = append(steps, s.Tool)
			}
			for _, f := range p.Fallbacks {
				fallbacks = append(fallbacks, string(f))
			}
			attrs = append(attrs, slog.Any("steps", steps), slog.Int("estimated_iterations", p.Iterations), slog.Any("fallback_chain", fallbacks))
		}
		if p.Percent > 0 {
			attrs = append(attrs, slog.Int("percent", p.Percent))
		}
	}
	return attrs
}

// list renders names, never as null.
type list []string

// MarshalJSON implements json.Marshaler.
func (l list) MarshalJSON() ([]byte, error) {
	out := make([]string, len(l))
	for i, s := range l {
		out[i] = clean(s, maxName)
	}
	return json.Marshal(out)
}

// MarshalText implements encoding.TextMarshaler, for the text format.
func (l list) MarshalText() ([]byte, error) { return []byte(l.String()), nil }

func (l list) String() string { return clean(strings.Join(l, ","), maxCause) }

// place returns a target without its key.
func place(t recovery.Target) string {
	if t.Upstream == "" && t.Model == "" {
		return ""
	}
	return t.Upstream + "/" + t.Model
}

// millis rounds to milliseconds; any time above zero is at least one.
func millis(d time.Duration) int {
	if d > 0 && d < time.Millisecond {
		return 1
	}
	return int(d.Round(time.Millisecond) / time.Millisecond)
}

// tries renders the attempts of a request.
type tries struct {
	arrival time.Time // of the request; starts are relative to it
	list    []recovery.Record
}

// MarshalJSON implements json.Marshaler.
func (t tries) MarshalJSON() ([]byte, error) {
	type try struct {
		Target   string `json:"target"`
		Key      string `json:"upstream_key,omitempty"`
		Class    string `json:"class,omitempty"`
		Strategy string `json:"strategy,omitempty"`
		Parallel bool   `json:"parallel,omitempty"`
		Start    int    `json:"start_ms,omitempty"`
		Duration int    `json:"duration_ms,omitempty"`
		Upstream string `json:"upstream_request,omitempty"`
	}
	list := make([]try, len(t.list))
	for i, a := range t.list {
		list[i] = try{clean(place(a.Target), maxName), clean(a.Target.Key, maxName), clean(string(a.Class), maxName),
			clean(a.Strategy, maxName), a.Parallel, millis(max(0, a.Started.Sub(t.arrival))), millis(a.Duration), clean(a.Upstream, maxName)}
	}
	return json.Marshal(list)
}

// MarshalText implements encoding.TextMarshaler, for the text format.
func (t tries) MarshalText() ([]byte, error) {
	var b []byte
	for i, a := range t.list {
		if i > 0 {
			b = append(b, "; "...)
		}
		if a.Strategy != "" {
			b = append(b, clean(a.Strategy, maxName)+" "...)
		}
		b = append(b, clean(a.Target.String(), maxName)+" "...)
		if a.Class != "" {
			b = append(b, clean(string(a.Class), maxName)+" "...)
		}
		b = strconv.AppendInt(b, int64(millis(a.Duration)), 10)
		b = append(b, "ms"...)
	}
	return b, nil
}

// renderer renders events as JSON. One goroutine uses it.
type renderer struct {
	buf     bytes.Buffer
	handler slog.Handler
}

func newRenderer() *renderer {
	r := &renderer{}
	r.handler = slog.NewJSONHandler(&r.buf, &slog.HandlerOptions{ReplaceAttr: eventKeys})
	return r
}

// render returns a line of JSON with a line feed at the end. The caller owns it.
func (r *renderer) render(rec slog.Record) []byte {
	r.buf.Reset()
	_ = r.handler.Handle(context.Background(), rec) // writing to a buffer never fails
	return bytes.Clone(r.buf.Bytes())
}

// eventKeys renames slog's message to event, and converts times to UTC, because lines of several
// replicas are read together.
func eventKeys(groups []string, a slog.Attr) slog.Attr {
	if len(groups) > 0 {
		return a
	}
	switch a.Key {
	case slog.MessageKey:
		a.Key = "event"
	case slog.TimeKey:
		a = inUTC(a)
	}
	return a
}

func inUTC(a slog.Attr) slog.Attr {
	if a.Value.Kind() == slog.KindTime {
		a.Value = slog.TimeValue(a.Value.Time().UTC())
	}
	return a
}

// cause limits and redacts an error message.
func cause(s string) string {
	if len(s) > maxRaw {
		// A secret that is cut in two is not detected: omit the last word.
		s = s[:maxRaw]
		s = s[:strings.LastIndexAny(s, " \t\r\n")+1] + "…"
	}
	return clean(redact.Text(clean(s, 4*maxRaw)), maxCause)
}

// clean returns text that fits one line of at most limit bytes: invalid bytes and characters that a
// terminal or a browser would interpret (control and format characters) become spaces.
func clean(s string, limit int) string {
	ok := len(s) <= limit
	for i := 0; ok && i < len(s); i++ {
		ok = s[i] >= ' ' && s[i] < 0x7f
	}
	if ok {
		return s
	}
	const ellipsis = "…"
	var b strings.Builder
	cut := 0 // the longest length at which an ellipsis still fits
	for _, c := range s {
		if !unicode.IsGraphic(c) || unicode.Is(unicode.Zl, c) || unicode.Is(unicode.Zp, c) {
			c = ' '
		}
		if b.Len()+utf8.RuneLen(c) > limit {
			return b.String()[:cut] + ellipsis
		}
		b.WriteRune(c)
		if b.Len() <= limit-len(ellipsis) {
			cut = b.Len()
		}
	}
	return b.String()
}
