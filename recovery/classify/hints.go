package classify

import (
	"math"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/tidwall/gjson"

	"github.com/rebound-llm/rebound/recovery"
	"github.com/rebound-llm/rebound/recovery/rule"
)

// maxWait caps the wait that a hint asks for, so that arithmetic on it is safe.
// The engine has its own, much smaller limits.
const maxWait = 366 * 24 * time.Hour

// hints collects what an answer says about waiting before a retry.
type hints struct {
	now    time.Time
	header http.Header
	body   []time.Duration // waits from fields of the body
	limit  int             // X-Ratelimit-Limit from headers that the body repeats
	epoch  int64           // a reset time from such headers, in milliseconds
	resets []reset         // rate-limit windows from such headers
}

// reset is one rate-limit window: when it ends, and whether it is used up.
type reset struct {
	after     time.Duration
	known     bool // the headers say whether it is used up
	exhausted bool // it is used up
}

// retryable reports whether a retry can succeed, so that a wait in the text counts.
// Routers append "(reset after 30s)" to deterministic refusals too (9router#355).
func retryable(c recovery.Class) bool {
	switch c {
	case recovery.RateLimit, recovery.QuotaExhausted, recovery.Overloaded, recovery.ServerError, recovery.Timeout:
		return true
	}
	return false
}

// setRetryAfter sets RetryAfter from the most explicit hint: retry headers, then
// fields of the body and its text, then the resets of rate-limit windows.
func (v *view) setRetryAfter(class recovery.Class) {
	v.HasRetryAfter, v.RetryAfter = false, 0
	if d, ok := v.hints.explicit(); ok {
		v.HasRetryAfter, v.RetryAfter = true, d
		return
	}
	if class == recovery.Unknown || retryable(class) {
		// A field often rounds the text's wait down. The advice of a page is always the same: it counts only if there is a limit.
		d, ok := longest(v.hints.body)
		if t, found := textWait(v.text, v.hints.now); found && (!ok || t > d) && (!v.html || class == recovery.RateLimit) {
			d, ok = t, true
		}
		if ok {
			v.HasRetryAfter, v.RetryAfter = true, d
			return
		}
	}
	windows := append(v.hints.headerResets(), v.hints.resets...)
	if d, ok := pickReset(windows, class == recovery.RateLimit || v.Status == http.StatusTooManyRequests); ok {
		v.HasRetryAfter, v.RetryAfter = true, d
	}
}

func longest(ds []time.Duration) (time.Duration, bool) {
	var d time.Duration
	for _, x := range ds {
		d = max(d, x)
	}
	return d, len(ds) > 0
}

// pickReset returns the wait for rate-limit windows: until every used-up window has
// reset. If none is known to be used up and the failure is a rate limit, it is the
// earliest reset, if possible of a window without a known state.
func pickReset(windows []reset, limited bool) (time.Duration, bool) {
	var used, unknown, open []time.Duration
	for _, w := range windows {
		switch {
		case w.exhausted:
			used = append(used, w.after)
		case w.known:
			open = append(open, w.after)
		default:
			unknown = append(unknown, w.after)
		}
	}
	switch {
	case len(used) > 0:
		return slices.Max(used), true
	case limited && len(unknown) > 0:
		return slices.Min(unknown), true
	case limited && len(open) > 0:
		return slices.Min(open), true
	}
	return 0, false
}

// explicit reads the headers that say how long to wait, those in milliseconds first.
func (h *hints) explicit() (time.Duration, bool) {
	for _, name := range []string{"Retry-After-Ms", "X-Ms-Retry-After-Ms"} {
		if f, ok := parseNumber(h.header.Get(name)); ok && f > 0 { // Azure rounds down to 0 and states the wait in seconds, too
			return seconds(f / 1000)
		}
	}
	for _, name := range []string{"Retry-After", "X-Retry-After", "X-Ratelimit-Timeremaining", "Ratelimit-Retry-After"} {
		s := strings.TrimSpace(h.header.Get(name))
		if s == "" {
			continue
		}
		if d, ok := h.parseWait(s); ok {
			return d, true
		}
	}
	return 0, false
}

// headerResets reads every rate-limit reset header, with the window's "remaining"
// or status header.
func (h *hints) headerResets() []reset {
	var out []reset
	for name, values := range h.header {
		if len(values) == 0 {
			continue
		}
		key := strings.ToLower(name)
		if !strings.Contains(key, "ratelimit") && !strings.Contains(key, "rate-limit") || !strings.Contains(key, "reset") {
			continue
		}
		d, ok := h.parseWait(strings.TrimSpace(values[0]))
		if !ok {
			continue
		}
		w := reset{after: d}
		remaining := h.header.Get(strings.ReplaceAll(key, "reset", "remaining"))
		if strings.HasPrefix(key, "anthropic-ratelimit-unified") {
			status := h.header.Get(strings.TrimSuffix(key, "reset") + "status")
			w.known, w.exhausted = status != "", status == "rejected" || status == "exceeded"
		} else if f, ok := parseNumber(remaining); ok {
			w.known, w.exhausted = true, f <= 0
		}
		out = append(out, w)
	}
	return out
}

// parseWait parses a wait in any form that headers and fields use: seconds, a
// duration, a Unix time in seconds or milliseconds, or a date.
func (h *hints) parseWait(s string) (time.Duration, bool) {
	if f, ok := parseNumber(s); ok {
		switch {
		case f >= 1e14:
			return 0, false
		case f >= 1e11:
			return h.until(time.UnixMilli(int64(f)))
		case f >= 1e9:
			return h.until(time.Unix(int64(f), 0))
		}
		return seconds(f)
	}
	if t, err := http.ParseTime(s); err == nil {
		return h.until(t)
	}
	if t, err := time.Parse(time.RFC3339, s); err == nil {
		return h.until(t)
	}
	folded := rule.Fold(s)
	if d, n := duration(folded, ""); n == len(folded) && n > 0 {
		return d, true
	}
	return 0, false
}

func (h *hints) until(t time.Time) (time.Duration, bool) {
	if h.now.IsZero() {
		return 0, false
	}
	return clampWait(t.Sub(h.now)), true
}

// The body fields that say how long or until when to wait.
var (
	waitField = recovery.NewPattern(`^(?:retry(?:delay|after|in|at)|resets?(?:in|at|time)?|wait(?:time)?|cooldown|estimatedtime|` +
		`quotareset(?:delay|timestamp))(?:seconds|s)?$`)
	waitFieldMS = recovery.NewPattern(`^(?:retryafter|resetafter|resetsin|wait)(?:ms|milliseconds)$`)
)

// readObject reads the hints in the fields of a JSON object.
func (h *hints) readObject(r gjson.Result) {
	r.ForEach(func(k, e gjson.Result) bool {
		if e.Type != gjson.String && e.Type != gjson.Number {
			if (k.Str == "headers" || k.Str == "rate_limit_headers") && e.IsObject() {
				h.readHeaders(e)
			}
			return true
		}
		s := strings.TrimSpace(e.String())
		if s == "" || len(s) > 64 || len(h.body) > 16 {
			return true
		}
		var d time.Duration
		ok := false
		switch key := plainKey(k.Str); {
		case waitField.MatchString(key):
			d, ok = h.parseWait(s)
		case waitFieldMS.MatchString(key):
			if f, isNumber := parseNumber(s); isNumber {
				d, ok = seconds(f / 1000)
			}
		}
		if ok {
			h.body = append(h.body, d)
		}
		return true
	})
}

// readHeaders reads the rate-limit headers that an aggregator repeats in its body.
func (h *hints) readHeaders(r gjson.Result) {
	at := make(http.Header)
	n := 0
	r.ForEach(func(k, e gjson.Result) bool {
		if n++; e.Type == gjson.String || e.Type == gjson.Number {
			at.Set(k.Str, e.String())
		}
		return n < 64
	})
	inner := hints{now: h.now, header: at}
	if d, ok := inner.explicit(); ok {
		h.body = append(h.body, d)
	}
	h.resets = append(h.resets, inner.headerResets()...)
	if f, ok := parseNumber(at.Get("X-Ratelimit-Limit")); ok && f < 1e9 {
		h.limit = int(f)
	}
	for name, values := range at {
		if strings.Contains(strings.ToLower(name), "reset") {
			if f, ok := parseNumber(values[0]); ok && f >= 1e9 {
				if f < 1e11 {
					f *= 1000
				}
				h.epoch = int64(f)
			}
		}
	}
}

// The words before or after a wait in a text. After "retry after" a bare number
// means seconds.
var (
	waitPrefix = recovery.NewPattern(`(?:(?:try again|retry|retry your request|retry again|refresh(?:es)?|resets?|available|available again|regain access|` +
		`retrying) (?:in|after)|wait(?: for| at least)?|estimated wait time|again in about|cooldown:|请在|请等待|请|等待|将在|剩余)` + fillers)
	waitSeconds = recovery.NewPattern(`retry[ _-]after:?` + fillers)
	waitSuffix  = recovery.NewPattern(`[0-9.]+ ?(?:秒|分钟|小时|天)之?后`)
	waitEpoch   = recovery.NewPattern(`limit reached\|([0-9]+)`)
	waitUntil   = recovery.NewPattern(`will reset at |resets? at |regain access on |until |available at |again after `)
)

const fillers = `[ :~']*(?:(?:about|approximately|around|at least|another) )*`

// textWait returns the longest wait in a text. Without one it uses a reset time.
func textWait(text string, now time.Time) (best time.Duration, found bool) {
	try := func(places [][]int, end int, unit string) {
		for _, m := range places {
			if d, n := duration(text[m[end]:], unit); n > 0 && d > best {
				best, found = d, true
			}
		}
	}
	try(waitPrefix.FindAllStringSubmatchIndex(text, 32), 1, "")
	try(waitSeconds.FindAllStringSubmatchIndex(text, 8), 1, "s")
	try(waitSuffix.FindAllStringSubmatchIndex(text, 1), 0, "")
	if found {
		return best, true
	}
	h := hints{now: now}
	if m := waitEpoch.FindStringSubmatch(text); m != nil {
		if d, ok := h.parseWait(m[1]); ok {
			return d, true
		}
	}
	for _, m := range waitUntil.FindAllStringSubmatchIndex(text, 8) {
		if d, ok := h.parseInstant(text[m[1]:]); ok && d > 0 {
			return d, true
		}
	}
	return 0, false
}

// parseInstant parses a time with a zone at the start of s. A time without a zone
// is no hint, because it is in the provider's local time.
func (h *hints) parseInstant(s string) (time.Duration, bool) {
	s = strings.ToUpper(s)
	if len(s) > 40 {
		s = s[:40]
	}
	if f := strings.Fields(s); len(f) > 0 {
		if t, err := time.Parse(time.RFC3339, strings.TrimRight(f[0], ".,;)'")); err == nil {
			return h.until(t)
		}
	}
	for _, layout := range []string{"2006-01-02 AT 15:04 UTC", "2006-01-02 15:04:05 UTC", "2006-01-02 15:04 UTC", "2006-01-02 15:04:05Z"} {
		if len(s) >= len(layout) {
			if t, err := time.Parse(layout, s[:len(layout)]); err == nil {
				return h.until(t)
			}
		}
	}
	return 0, false
}

var resetInstant = recovery.NewPattern(`(?:resets? at|将在|will reset on|regain access on) *([0-9]{4}-[0-9:. tz+-]{5,27})`)

// resetAt returns the reset time that a text states, in upper case, or "".
func resetAt(text string) string {
	if m := resetInstant.FindStringSubmatch(text); m != nil {
		if s := strings.TrimRight(m[1], " .:-"); len(s) >= 10 {
			return strings.ToUpper(s)
		}
	}
	return ""
}

// durationPart is a part of a duration: "1m", "30.002s", "6hr", " and 5 分钟".
var durationPart = recovery.NewPattern(`^([0-9]+\.?[0-9]*|\.[0-9]+) *(milliseconds?|msec|ms|毫秒|microseconds?|µs|us|ns|seconds?|secs?|s|秒|` +
	`minutes?|mins?|m|分钟?|hours?|hrs?|h|小时|weeks?|days?|d|天)(?:[^a-z]|$)`)

// units maps the start of a unit's name to the unit. The first match counts.
var units = [...]struct {
	name string
	unit time.Duration
}{
	{"mil", time.Millisecond}, {"ms", time.Millisecond}, {"毫", time.Millisecond}, {"mic", time.Microsecond}, {"µs", time.Microsecond},
	{"us", time.Microsecond}, {"ns", time.Nanosecond}, {"s", time.Second}, {"秒", time.Second}, {"m", time.Minute}, {"分", time.Minute},
	{"h", time.Hour}, {"小", time.Hour}, {"w", 7 * 24 * time.Hour}, {"d", 24 * time.Hour}, {"天", 24 * time.Hour},
}

// duration parses a duration at the start of s: "1m30.002s", "59 seconds",
// "6hr 29min", "5 分钟". With unit "s" a bare number counts as seconds. It also
// returns the number of bytes read, 0 for no duration.
func duration(s, unit string) (total time.Duration, read int) {
	for {
		rest := s[read:]
		if read > 0 {
			rest = strings.TrimPrefix(strings.TrimLeft(rest, " ,"), "and ")
		}
		ms := durationPart.FindAllStringSubmatchIndex(rest, 1)
		if len(ms) == 0 {
			break
		}
		m := ms[0]
		f, _ := strconv.ParseFloat(rest[m[2]:m[3]], 64)
		for _, u := range units {
			if strings.HasPrefix(rest[m[4]:], u.name) {
				total = clampWait(total + time.Duration(math.Min(f*float64(u.unit), float64(maxWait))))
				break
			}
		}
		read = len(s) - len(rest) + m[5]
	}
	if digits := len(s) - len(strings.TrimLeft(s, "0123456789.")); read == 0 && unit == "s" && digits > 0 {
		if f, err := strconv.ParseFloat(strings.TrimSuffix(s[:digits], "."), 64); err == nil && f < 1e8 {
			return clampWait(time.Duration(f * float64(time.Second))), digits
		}
	}
	return clampWait(total), read
}

// parseNumber parses a number that is finite and not negative.
func parseNumber(s string) (float64, bool) {
	f, err := strconv.ParseFloat(strings.TrimSpace(s), 64)
	return f, err == nil && !math.IsNaN(f) && !math.IsInf(f, 0) && f >= 0
}

func seconds(seconds float64) (time.Duration, bool) {
	return clampWait(time.Duration(math.Min(seconds*float64(time.Second), float64(maxWait)))), true
}

func clampWait(d time.Duration) time.Duration { return min(max(d, 0), maxWait) }
