package classify

import (
	"math"
	"net/http"
	"strconv"
	"strings"
	"time"

	"github.com/rebound-llm/rebound/recovery"
	"github.com/rebound-llm/rebound/recovery/rule"
	"github.com/tidwall/gjson"
)

// maxWait bounds what a hint may ask for, so that arithmetic on it is safe.
// The engine has its own, much smaller limits.
const maxWait = 366 * 24 * time.Hour

// hints collects what an answer says about waiting.
type hints struct {
	now    time.Time
	header http.Header
	body   []time.Duration // from fields of the body, any form
	limit  int             // the window's size, from rate-limit headers that a body repeats
	epoch  int64           // a reset instant in the body, in milliseconds
	resets []reset         // reset fields of rate-limit headers that a body repeats
}

// reset is one rate-limit window: when it ends, and whether it is used up.
type reset struct {
	after     time.Duration
	known     bool // the matching remaining was sent
	exhausted bool // and is zero
}

// retryable reports whether waiting or repeating can change the outcome, so
// that a text's "in 30s" is to be believed. Routers append "(reset after 30s)"
// to deterministic refusals too (9router#355).
func retryable(c recovery.Class) bool {
	switch c {
	case recovery.RateLimit, recovery.QuotaExhausted, recovery.Overloaded, recovery.ServerError, recovery.Timeout:
		return true
	}
	return false
}

// settleRetry fills RetryAfter with the most explicit hint: retry headers, then
// fields of the body and its text, then the ends of used-up windows.
func (v *view) settleRetry(class recovery.Class) {
	v.HasRetryAfter, v.RetryAfter = false, 0
	if d, ok := v.hints.explicit(); ok {
		v.HasRetryAfter, v.RetryAfter = true, d
		return
	}
	if class == recovery.Unknown || retryable(class) {
		// A structured hint is often the text's rounded down: the longer of
		// both is right and costs nothing.
		d, ok := longest(v.hints.body)
		if t, found := textWait(v.text, v.hints.now); found && (!ok || t > d) {
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

// pickReset chooses among windows: all that are used up must end; if none says
// so and the failure is a rate limit, the earliest end is the most that can be
// concluded.
func pickReset(windows []reset, limited bool) (time.Duration, bool) {
	var used, first, open time.Duration
	var haveUsed, haveFirst, haveOpen bool
	for _, w := range windows {
		switch {
		case w.exhausted:
			used, haveUsed = max(used, w.after), true
		case !w.known:
			if !haveFirst || w.after < first {
				first, haveFirst = w.after, true
			}
		default:
			if !haveOpen || w.after < open {
				open, haveOpen = w.after, true
			}
		}
	}
	switch {
	case haveUsed:
		return used, true
	case limited && haveFirst:
		return first, true
	case limited && haveOpen:
		return open, true
	}
	return 0, false
}

// explicit reads the headers that say how long to wait, the precise ones first.
func (h *hints) explicit() (time.Duration, bool) {
	for _, name := range []string{"Retry-After-Ms", "X-Ms-Retry-After-Ms"} {
		if f, ok := parseNumber(h.header.Get(name)); ok {
			return wait(f / 1000)
		}
	}
	for _, name := range []string{"Retry-After", "X-Retry-After", "X-Ratelimit-Timeremaining", "Ratelimit-Retry-After"} {
		s := strings.TrimSpace(h.header.Get(name))
		if s == "" {
			continue
		}
		if d, ok := h.moment(s); ok {
			return d, true
		}
	}
	return 0, false
}

// headerResets reads the reset headers of all known families, each with the
// remaining of the same window.
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
		d, ok := h.moment(strings.TrimSpace(values[0]))
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

// moment reads a wait in any of the spellings that headers and fields use:
// seconds, a duration, an epoch in seconds or milliseconds, a date.
func (h *hints) moment(s string) (time.Duration, bool) {
	if f, ok := parseNumber(s); ok {
		switch {
		case f >= 1e14:
			return 0, false
		case f >= 1e11:
			return h.until(time.UnixMilli(int64(f)))
		case f >= 1e9:
			return h.until(time.Unix(int64(f), 0))
		}
		return wait(f)
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

// readObject takes the hints that are fields of a body.
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
		switch plainKey(k.Str) {
		case "retrydelay", "retryafter", "retryafterseconds", "retryafters", "resetsinseconds", "resetinseconds", "resetseconds",
			"estimatedtime", "waitseconds", "waittime", "retryinseconds", "retryins", "retryin", "resetsin", "cooldownseconds", "resettime",
			"resetsat", "resetat", "resetstime", "retryat", "quotaresetdelay", "quotaresettimestamp":
			d, ok = h.moment(s)
		case "retryafterms", "retryaftermilliseconds", "resetaftermilliseconds", "resetsinms", "waitms":
			if f, isNumber := parseNumber(s); isNumber {
				d, ok = wait(f / 1000)
			}
		}
		if ok {
			h.body = append(h.body, d)
		}
		return true
	})
}

// readHeaders takes the rate-limit headers that an aggregator repeats in its body.
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

// anchors are the words before a wait in a text. Those without a unit of their
// own name one for a bare number.
var anchors = [...]struct{ words, unit string }{
	{"try again in", ""}, {"retry in", ""}, {"try again after", ""}, {"retry after", "s"}, {"retry-after:", "s"}, {"retry_after:", "s"},
	{"retry-after", "s"}, {"retry_after", "s"}, {"retry your request after", ""}, {"retry your request in", ""}, {"reset in", ""},
	{"resets in", ""}, {"reset after", ""}, {"resets after", ""}, {"available in", ""}, {"available again in", ""}, {"please wait", ""},
	{"wait for", ""}, {"wait at least", ""}, {"must wait", ""}, {"wait", ""}, {"estimated wait time", ""}, {"retrying in", ""}, {"again in about",
		""},
	{"please retry again in", ""}, {"refresh in", ""}, {"refreshes in", ""}, {"regain access in", ""}, {"cooldown:", ""}, {"请在", ""},
	{"请等待", ""}, {"请", ""}, {"等待", ""}, {"将在", ""}, {"剩余", ""},
}

// textWait finds the wait that a text names. It also reads "N 秒后".
func textWait(text string, now time.Time) (time.Duration, bool) {
	var best time.Duration
	found := false
	for _, a := range anchors {
		for from, tries := 0, 0; tries < 8; tries++ {
			i := strings.Index(text[from:], a.words)
			if i < 0 {
				break
			}
			from += i + len(a.words)
			rest := strings.TrimLeft(text[from:], " :~'")
			for _, filler := range []string{"about ", "approximately ", "around ", "at least ", "another "} {
				rest = strings.TrimPrefix(rest, filler)
			}
			if d, n := duration(rest, a.unit); n > 0 && d > best {
				best, found = d, true
			}
		}
	}
	for _, a := range [...]string{"秒后", "秒之后", "分钟后", "分钟之后", "小时后", "天后"} {
		if i := strings.Index(text, a); i > 0 {
			j := len(strings.TrimRight(text[:i], " "))
			for j > 0 && (text[j-1] >= '0' && text[j-1] <= '9' || text[j-1] == '.') {
				j--
			}
			if d, n := duration(text[j:], ""); n > 0 && d > best {
				best, found = d, true
			}
		}
	}
	if i := strings.Index(text, "limit reached|"); i >= 0 && !found {
		h := hints{now: now}
		s := text[i+len("limit reached|"):]
		if d, ok := h.moment(s[:len(s)-len(strings.TrimLeft(s, "0123456789"))]); ok {
			return d, true
		}
	}
	if !found {
		for _, word := range []string{"will reset at ", "resets at ", "reset at ", "regain access on ", "until ", "available at "} {
			if i := strings.Index(text, word); i >= 0 {
				h := hints{now: now}
				if d, ok := h.untilText(text[i+len(word):]); ok && d > 0 {
					return d, true
				}
			}
		}
	}
	return best, found
}

// untilText reads an instant with a zone. One without is no hint: providers
// mean their own wall clock.
func (h *hints) untilText(s string) (time.Duration, bool) {
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

// resetAt returns the instant that a text names, as sent.
func resetAt(text string) string {
	for _, word := range []string{"reset at ", "resets at ", "将在", "will reset on ", "regain access on "} {
		i := strings.Index(text, word)
		if i < 0 {
			continue
		}
		s := strings.TrimLeft(text[i+len(word):], " ")
		n := 0
		for n < len(s) && n < 32 && (s[n] >= '0' && s[n] <= '9' || strings.IndexByte("-:. tz+", s[n]) >= 0) {
			n++
		}
		if s = strings.TrimRight(s[:n], " .:-"); len(s) >= 10 && s[4] == '-' {
			return strings.ToUpper(s)
		}
	}
	return ""
}

// units of durations, longest spelling first.
var units = [...]struct {
	name string
	unit time.Duration
}{
	{"milliseconds", time.Millisecond}, {"millisecond", time.Millisecond}, {"毫秒", time.Millisecond},
	{"microseconds", time.Microsecond}, {"seconds", time.Second}, {"second", time.Second}, {"minutes", time.Minute}, {"minute", time.Minute},
	{"hours", time.Hour}, {"hour", time.Hour}, {"weeks", 7 * 24 * time.Hour}, {"week", 7 * 24 * time.Hour}, {"days", 24 * time.Hour}, {"day",
		24 * time.Hour},
	{"secs", time.Second}, {"sec", time.Second}, {"mins", time.Minute}, {"min", time.Minute}, {"hrs", time.Hour}, {"hr", time.Hour},
	{"msec", time.Millisecond}, {"ms", time.Millisecond}, {"µs", time.Microsecond}, {"us", time.Microsecond}, {"ns", time.Nanosecond},
	{"分钟", time.Minute}, {"小时", time.Hour}, {"秒", time.Second}, {"天", 24 * time.Hour}, {"分", time.Minute},
	{"s", time.Second}, {"m", time.Minute}, {"h", time.Hour}, {"d", 24 * time.Hour},
}

// duration reads a duration at the start of s: "1m30.002s", "59 seconds",
// "6hr 29min", "5 分钟". A bare number counts only if unit names its unit. It
// returns the bytes read, 0 for none.
func duration(s, unit string) (total time.Duration, read int) {
	for read < len(s) {
		i := read
		for i < len(s) && (s[i] == ' ' || s[i] == ',') && read > 0 {
			i++
		}
		if read > 0 && strings.HasPrefix(s[i:], "and ") {
			i += 4
		}
		j := i
		for j < len(s) && (s[j] >= '0' && s[j] <= '9' || s[j] == '.') && j-i < 24 {
			j++
		}
		f, err := strconv.ParseFloat(strings.TrimSuffix(s[i:j], "."), 64)
		if err != nil || j == i {
			break
		}
		k := j
		for k < len(s) && s[k] == ' ' {
			k++
		}
		matched := false
		for _, u := range units {
			e := k + len(u.name)
			if strings.HasPrefix(s[k:], u.name) && (e == len(s) || !(s[e] >= 'a' && s[e] <= 'z')) {
				total += clampWait(time.Duration(math.Min(f*float64(u.unit), float64(maxWait))))
				read, matched = e, true
				break
			}
		}
		if !matched {
			if read == 0 && unit == "s" && f < 1e8 {
				return clampWait(time.Duration(f * float64(time.Second))), j
			}
			break
		}
	}
	return clampWait(total), read
}

func parseNumber(s string) (float64, bool) {
	f, err := strconv.ParseFloat(strings.TrimSpace(s), 64)
	return f, err == nil && !math.IsNaN(f) && !math.IsInf(f, 0) && f >= 0
}

func wait(seconds float64) (time.Duration, bool) {
	return clampWait(time.Duration(math.Min(seconds*float64(time.Second), float64(maxWait)))), true
}

func clampWait(d time.Duration) time.Duration { return min(max(d, 0), maxWait) }
