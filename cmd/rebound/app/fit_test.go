//go:build unix

package app_test

import (
	"bytes"
	"encoding/base64"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/tidwall/gjson"

	"github.com/rebound-llm/rebound/recovery/fit/agenttest"
	"github.com/rebound-llm/rebound/store/storetest"
)

// rewriteStats counts how a session's requests were rewritten.
type rewriteStats struct {
	rewritten int // requests that arrived in another form than the client's
	changed   int // of those, how often the part that two requests share changed
	before    string
	sent      []byte
}

// record compares what arrived with a body; it reports whether it was rewritten.
func (k *rewriteStats) record(body string, got []byte) bool {
	if string(got) == body {
		return false
	}
	k.rewritten++
	if k.before != "" && !bytes.HasPrefix(got, k.sent[:common(k.before, body, k.sent)]) {
		k.changed++
	}
	k.before, k.sent = body, got
	return true
}

// A session that has overflowed once does not overflow again: every replica rewrites its requests in the same
// way before it sends them, also after a restart, and however soon the next request comes. So the session
// costs less than on an unlimited window.
func TestFitSessions(t *testing.T) {
	t.Parallel()
	long := []fitted{{80_000, 0.65}, {64_000, 0.57}, {48_000, 0.45}}
	for _, c := range []struct {
		name    string
		session *recording
		runs    []fitted
	}{
		{"long", recorded(t, "pi-large-session-seg0-full"), long},
		{"short", recorded(t, "pi-large-session-seg0-slice2"), []fitted{{80_000, 1}, {48_000, 1.05}}}, // it hardly exceeds the window at its end
		{"synthetic", record(t, agenttest.Synthetic(11, 600_000)), []fitted{{80_000, 0.88}, {64_000, 0.8}, {48_000, 0.7}}},
	} {
		brief := raceEnabled || testing.Short()
		if brief && c.name != "synthetic" {
			continue
		}
		whole := newWindowed(0) // the same requests, on a window that has no end
		for _, body := range c.session.requests {
			whole.ask([]byte(body))
		}
		for i, run := range c.runs {
			if brief && i > 0 {
				continue
			}
			for replicas := 1; replicas <= 2; replicas++ {
				if replicas == 1 && i > 0 {
					continue // a single replica makes no more requests than two
				}
				t.Run(fmt.Sprintf("%s/%d/%d", c.name, run.window, replicas), func(t *testing.T) {
					t.Parallel()
					run.replay(t, c.session, replicas, whole.billed, false)
				})
			}
		}
		if c.name == "long" {
			t.Run("long/useless summaries", func(t *testing.T) {
				t.Parallel()
				long[0].replay(t, c.session, 2, whole.billed, true)
			})
		}
	}
}

// fitted is the limit of a session's cost on a window, as a share of its cost on an unlimited one.
type fitted struct {
	window int
	most   float64
}

// replay sends a session's requests through gateways in turn, which restart in the middle, and checks the result.
func (f fitted) replay(t *testing.T, session *recording, replicas int, whole float64, useless bool) {
	w := newWindowed(f.window)
	w.useless = useless
	up := startStrict(t, w.ask)
	config := up.config(noNotes, fastRecovery, slowStore(t, storetest.StartRedis(t).URL()))
	var now, all []*gateway
	var k rewriteStats
	for i, body := range session.requests {
		if i == 0 || i == len(session.ends)*2/3 {
			stop(t, now...)
			now = nil
			for range replicas {
				now = append(now, launch(t, config))
			}
			all = append(all, now...)
		}
		r := now[i%replicas].must(body)
		if !k.record(body, w.last()) && k.rewritten > 0 {
			t.Errorf("request %d arrived as it was: %v", i, r)
		}
		up.forget()
	}
	stop(t, all...)
	bill := w.billed / whole
	t.Logf("%d requests: %d overflows, %d summaries, %d rewritten, %d times anew; bill %.3f of an unlimited window's, %.3f for summaries",
		len(session.ends), w.overflows, w.summaries, k.rewritten, k.changed, bill, w.extra/whole)
	if bill > f.most {
		t.Errorf("the bill is %.3f of what an unlimited window costs, at most %.2f", bill, f.most)
	}
	if w.fits(session.body(session.ends[len(session.ends)-1])) {
		if w.overflows+k.rewritten > 0 {
			t.Errorf("a session that fits was rewritten")
		}
		return
	}
	if w.overflows != 1 {
		t.Errorf("%d overflows", w.overflows)
	}
	if n := countEvents(t, "trajectory_compressed", all...); k.changed > max(0, n-1) || 8*k.changed > k.rewritten {
		t.Errorf("the prefix was rewritten %d times, and edited %d times", k.changed, n)
	}
}

// patientLimits avoid parallel attempts on a busy machine, whose cost is not that of fitting.
const patientLimits = "learn: {first_token: {min: 60s, whole: 60s, per_tokens: 1000000, same_after: 60s, reasoning: 60s}}"

// common returns how much of a rewritten request must be in the next one unchanged: everything before its last
// message, as far as the client's requests agree.
func common(before, body string, sent []byte) int {
	end := strings.LastIndex(before, "]}")
	if !strings.HasPrefix(body, before[:end]) {
		return 0
	}
	return bytes.LastIndex(sent, []byte("]}"))
}

// With notes at the end and a fitted history, each request still begins like the one before, apart from notes.
func TestNotesAndFitting(t *testing.T) {
	t.Parallel()
	s := recorded(t, "pi-large-session-seg0-slice2")
	for n := 0; n < len(s.ends); n += 5 { // every so often a program is missing that another one stands in for
		if m := &s.messages[s.ends[n]-1]; gjson.Get(*m, "role").Str == "tool" {
			*m = fmt.Sprintf(`{"role":"tool","tool_call_id":%s,"content":"bash: line 1: %s: command not found\n\nCommand exited with code 127"}`,
				gjson.Get(*m, "tool_call_id").Raw, []string{"rg", "fd", "wget", "which", "eza", "bat", "md5", "ag"}[n/5%8])
		}
	}
	w := newWindowed(32_000)
	up := startStrict(t, w.ask)
	g := launch(t, up.config(fastRecovery))
	var k rewriteStats
	notes, fittings := 0, 0
	for i, body := range s.requests {
		sent := g.sent(w, body)
		if at := bytes.Index(sent, []byte("[gateway note")); at > 0 {
			notes++
			sent = append(sent[:bytes.LastIndex(sent[:at], []byte(`,{"role"`)):at], "]}"...)
		}
		if string(sent) == body {
			continue
		}
		before := k.changed
		if k.record(body, sent); k.changed > before {
			eventually(t, 10*time.Second, fmt.Sprintf("request %d begins otherwise because it was fitted", i), func() bool {
				return countEvents(t, "trajectory_compressed", g) > fittings
			})
		}
		fittings = countEvents(t, "trajectory_compressed", g)
	}
	t.Logf("%d notes, %d of %d requests rewritten, %d fittings", notes, k.rewritten, len(s.ends), fittings)
	if notes < 3 || fittings < 1 || k.rewritten < 10 {
		t.Errorf("only %d notes, %d fittings, %d requests rewritten", notes, fittings, k.rewritten)
	}
	stop(t, g)
}

// As soon as the client has an answer, its next request may go to another replica: by then the edits are in the
// store, however slow the store is.
func TestFitAtOnce(t *testing.T) {
	t.Parallel()
	s := record(t, agenttest.Synthetic(5, 300_000))
	w := newWindowed(40_000)
	up := startStrict(t, w.ask)
	server := storetest.StartRedis(t)
	config := up.config(noNotes, fastRecovery, slowStore(t, server.URL()))
	near := launch(t, config)
	far := launch(t, strings.Replace(config, server.Addr(), distant(t, server.Addr(), 4*time.Millisecond), 1))
	var k rewriteStats
	late := s.ends[len(s.ends)-10 : len(s.ends)-2]
	for i, end := range late {
		body := s.body(end)
		if k.record(body, []*gateway{far, near}[i%2].sent(w, body)); k.changed > 0 {
			t.Errorf("request %d has another beginning", i)
		}
	}
	if w.overflows != 1 || k.rewritten != len(late) {
		t.Errorf("%d overflows, %d of %d requests rewritten", w.overflows, k.rewritten, len(late))
	}
	stop(t, far, near)
}

// sent sends a request that has to succeed and returns what arrives at the upstream.
func (g *gateway) sent(w *windowed, body string) []byte {
	g.t.Helper()
	g.must(body)
	return w.last()
}

// A healthy conversation at one process never reads the store. Another process that takes it over reads once.
func TestFitStoreTrips(t *testing.T) {
	t.Parallel()
	p := startStoreCounter(t, storetest.StartRedis(t).Addr())
	s := record(t, agenttest.Synthetic(5, 200_000))
	w := newWindowed(0)
	up := startStrict(t, w.ask)
	_, list := twoReplicas(t, up, "redis://"+p.addr+"/0", noNotes, patientLimits)
	one, two := list[0], list[1]
	served := 0
	trips := func(g *gateway, n int) int64 {
		before := p.named.Load()
		for range n {
			if body := s.body(s.ends[served]); string(g.sent(w, body)) != body {
				t.Errorf("request %d was changed", served)
			}
			served++
		}
		return p.named.Load() - before
	}
	first := len(s.ends) - 6
	for _, c := range []struct {
		name string
		by   *gateway
		n    int
		want int64
	}{{"from the beginning", one, first, 0}, {"taken over", two, 1, 1}, {"going on", two, 3, 0}, {"back again", one, 1, 1}, {"going on there", one, 1, 0}} {
		if n := trips(c.by, c.n); n != c.want {
			t.Errorf("%s: %d requests made %d trips to the store", c.name, c.n, n)
		}
	}
	stop(t, list...)
}

// noNotes keeps tool results from changing requests.
const noNotes = "inspect: {enabled: false}"

// A request that cannot be fitted, or must not be, gets the upstream's own error.
func TestFitLeavesAlone(t *testing.T) {
	t.Parallel()
	s := record(t, agenttest.Synthetic(5, 200_000))
	last := s.body(s.ends[len(s.ends)-1])
	words := strings.Repeat("Every word of this message is from the user and has to stay. ", 4000)
	bare := func(messages string) string { return fmt.Sprintf(`{"model":%q,"messages":[%s]}`, fitModel, messages) }
	own := strings.TrimSuffix(last, "]}") + "," + user("Your task is to create a detailed summary of the conversation so far.") + "]}"
	for name, c := range map[string]struct {
		window       int
		before, body string
	}{
		"one message":                  {16_000, "", bare(user(words))},
		"the first words":              {16_000, "", bare(user(words) + "," + says("Yes.") + "," + user("Go on."))},
		"own compaction":               {40_000, "", own},
		"own compaction after an edit": {40_000, last, own},
		"own title":                    {16_000, "", bare(message("system", "You are a title generator.") + "," + user(words) + "," + says("Yes.") + "," + user("The title, please."))},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := newWindowed(c.window)
			up := startStrict(t, w.ask)
			g := launch(t, up.config(noNotes, fastRecovery))
			if c.before != "" {
				if r := g.must(c.before); r.recovery() != "fit" {
					t.Fatalf("not fitted: %v", r)
				}
			}
			n := len(up.bodies())
			r := g.ask(t.Context(), c.body)
			seen := up.since(n)
			if want := fmt.Sprintf(`{"error":{"message":"This model's maximum context length is %d tokens.`, c.window); r.status != 400 || !bytes.HasPrefix(r.body, []byte(want)) {
				t.Errorf("not the upstream's own error: %v", r)
			}
			if len(seen) != 1 || string(seen[0]) != c.body {
				t.Errorf("%d requests arrived", len(seen))
			}
		})
	}
}

// If the target refuses a session's edits, the gateway sends the client's bytes, and the client gets their real error.
func TestFitRefused(t *testing.T) {
	t.Parallel()
	s := record(t, agenttest.Synthetic(5, 200_000))
	w := newWindowed(40_000)
	strictly := false
	up := startStrict(t, func(body []byte) verdict {
		if strictly && bytes.Contains(body, []byte("_compressed")) {
			return verdict{status: 400, body: `{"error":{"message":"This deployment takes no such marks.","type":"invalid_request_error","param":null,"code":null}}`}
		}
		return w.ask(body)
	})
	g := launch(t, up.config(noNotes, fastRecovery))
	n := len(s.ends)
	if r := g.must(s.body(s.ends[n-2])); r.recovery() != "fit" {
		t.Fatalf("not fitted: %v", r)
	}
	up.mu.Lock()
	strictly = true
	up.mu.Unlock()
	body, sent := s.body(s.ends[n-1]), len(up.bodies())
	r := g.ask(t.Context(), body)
	if !slices.ContainsFunc(up.since(sent), func(b []byte) bool { return string(b) == body }) {
		t.Errorf("the client's bytes were not sent: %v", r)
	}
	if r.status != 400 || gjson.GetBytes(r.body, "error.code").Str != "context_length_exceeded" {
		t.Errorf("not the error of the client's own bytes, after %d attempts: %v", len(up.since(sent)), r)
	}
}

// If the target refuses the first fitted copy, the client learns that its request is too long.
func TestFitRefusedAtOnce(t *testing.T) {
	t.Parallel()
	s := record(t, agenttest.Synthetic(5, 200_000))
	w := newWindowed(40_000)
	up := startStrict(t, func(body []byte) verdict {
		if bytes.Contains(body, []byte("_compressed")) {
			return verdict{status: 400, body: `{"error":{"message":"This deployment takes no such marks.","type":"invalid_request_error","param":null,"code":null}}`}
		}
		return w.ask(body)
	})
	g := launch(t, up.config(noNotes, fastRecovery))
	r := g.ask(t.Context(), s.body(s.ends[len(s.ends)-1]))
	if r.status != 400 || gjson.GetBytes(r.body, "error.code").Str != "context_length_exceeded" {
		t.Errorf("not the error of the client's own bytes, after %d attempts: %v", len(up.bodies()), r)
	}
}

// A picture is not counted by its bytes, and stays when the history around it is shortened.
func TestFitPictures(t *testing.T) {
	t.Parallel()
	s := record(t, agenttest.Synthetic(5, 200_000))
	// The header of a PNG of 512 by 512 pixels, and then nothing of meaning.
	header := []byte{0x89, 'P', 'N', 'G', 13, 10, 26, 10, 0, 0, 0, 13, 'I', 'H', 'D', 'R', 0, 0, 2, 0, 0, 0, 2, 0, 8, 2, 0, 0, 0}
	picture := fmt.Sprintf(`{"role":"user","content":[{"type":"text","text":"It looks like this:"},{"type":"image_url","image_url":{"url":"data:image/png;base64,%s"}}]}`,
		base64.StdEncoding.EncodeToString(append(header, make([]byte, 300_000)...)))
	w := newWindowed(40_000)
	up := startStrict(t, w.ask)
	g := launch(t, up.config(noNotes, fastRecovery))
	end, other := s.ends[len(s.ends)-1], record(t, agenttest.Synthetic(6, 200_000))
	if r := g.must(other.body(other.ends[len(other.ends)-1])); r.recovery() != "fit" { // now the window is known
		t.Fatalf("not fitted: %v", r)
	}
	early := s.ends[len(s.ends)/3]
	small := strings.TrimSuffix(s.body(early), "]}") + "," + picture + "]}"
	if r := g.must(small); r.recovery() != "" || string(w.last()) != small {
		t.Errorf("a request that fits was changed for the size of its picture: %v", r)
	}
	s.messages[early] = picture
	large := strings.TrimSuffix(s.body(end), "]}") + "," + picture + "]}"
	if r := g.must(large); !strings.Contains(r.recovery(), "fit") || bytes.Count(w.last(), []byte("data:image/png")) == 0 {
		t.Errorf("the last picture is gone: %v", r)
	}
	if tail := w.last(); !bytes.HasSuffix(tail, []byte(picture+"]}")) {
		t.Errorf("the last message was changed: %.100s", tail[max(0, len(tail)-100):])
	}
}

// Small requests are not changed, also if the window is known.
func TestFitHealthy(t *testing.T) {
	t.Parallel()
	s, other := record(t, agenttest.Synthetic(5, 200_000)), record(t, agenttest.Synthetic(6, 200_000))
	w := newWindowed(40_000)
	up := startStrict(t, w.ask)
	g := launch(t, up.config(noNotes, fastRecovery))
	for _, known := range []bool{false, true} {
		if known {
			g.must(other.body(other.ends[len(other.ends)-1]))
			eventually(t, 20*time.Second, "the fitting is in the log", func() bool { return strings.Contains(g.log.String(), "trajectory_compressed") })
		}
		before := len(g.log.lines(t, isEvent("trajectory_compressed")))
		for _, end := range s.ends[:len(s.ends)/4] {
			body := strings.Replace(s.body(end), `"stream":false`, `"stream" : false, "x":1.50`, 1)
			if r := g.must(body); string(w.last()) != body || r.recovery() != "" || r.attempts() != "1" {
				t.Errorf("a healthy request was changed: %v", r)
			}
		}
		if n := len(g.log.lines(t, isEvent("trajectory_compressed"))); n != before {
			t.Errorf("%d more events", n-before)
		}
	}
	if w.overflows != 1 {
		t.Errorf("%d overflows", w.overflows)
	}
}
