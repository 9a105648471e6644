//go:build unix

package app_test

import (
	"bytes"
	"encoding/base64"
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/tidwall/gjson"

	"github.com/rebound-llm/rebound/recovery/fit/probetest"
	"github.com/rebound-llm/rebound/store/storetest"
)

// kept is how a session's requests went.
type kept struct {
	rewritten int // requests that arrived in another form than the client's
	changed   int // of those, how often the part that two requests share was rewritten anew
	bill      float64
}

// A session that has overflowed once does not overflow again: its requests are
// rewritten the same way before they are sent, on every replica and after a
// restart, so that they cost less than the long ones would.
func TestFitSessions(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		session *recording
		from    float64         // requests of at least this share of the session
		windows map[int]float64 // with the highest bill, as a share of an unlimited window's; 0: it all fits, or hardly exceeds it
	}{
		"recorded":  {recorded(t, "pi-large-session-seg0-slice2"), 0.5, map[int]float64{80_000: 0, 48_000: 0}},
		"whole":     {recorded(t, "pi-large-session-seg0-full"), 0.25, map[int]float64{64_000: 0.70}},
		"synthetic": {record(t, probetest.Synthetic(11, 600_000)), 0.2, map[int]float64{80_000: 1, 64_000: 1, 48_000: 1}},
	} {
		if raceEnabled && name != "synthetic" {
			continue
		}
		list := c.session.requests(c.from, 1000)
		whole := sync.OnceValue(func() float64 { // the same requests, on a window that has no end
			w := newWindowed(0)
			for _, body := range list {
				w.ask([]byte(body))
			}
			return w.billed
		})
		for _, window := range slices.Sorted(maps.Keys(c.windows)) {
			if raceEnabled && window != 80_000 {
				continue
			}
			t.Run(fmt.Sprintf("%s/%d", name, window), func(t *testing.T) {
				t.Parallel()
				w := newWindowed(window)
				up := startStrict(t, w.ask)
				server := storetest.StartRedis(t)
				config := up.config(noNotes, fastRecovery, "store: {redis: {url: \""+server.URL()+"\", prefix: \""+storetest.Prefix(t)+"\"}}")
				one, two := launch(t, config), launch(t, config)
				all := []*gateway{one, two}
				fits := w.fits(list[len(list)-1])
				var k kept
				heard, missed := false, 0
				var before, sent []byte
				for i, body := range list {
					if i == len(list)*2/3 {
						stop(t, one, two)
						one, two = launch(t, config), launch(t, config)
						all = append(all, one, two)
					}
					g := []*gateway{one, two}[i/2%2]
					stored := remembered(t, server)
					r := g.must(body)
					got := w.last()
					if string(got) != body {
						k.rewritten++
						if before != nil && !bytes.HasPrefix(got, sent[:common(before, []byte(body), sent)]) {
							k.changed++
						}
						before, sent = []byte(body), got
					} else if k.rewritten > 0 {
						t.Errorf("request %d arrived as it was: %v", i, r)
					}
					if w.overflows == 0 {
						continue
					}
					// What one replica learns of an answer is written behind it, and the
					// others hear of a target's window within a second.
					if !waitFor(time.Second, func() bool { return !bytes.Equal(remembered(t, server), stored) }) {
						missed++
					}
					if !heard {
						heard = true
						honour(t)
					}
				}
				stop(t, all...)
				k.bill = w.billed / whole()
				if n := told(t, "trajectory_compressed", all...); k.changed > max(0, n-1) {
					t.Errorf("the prefix was rewritten %d times, and edited %d times", k.changed, n)
				}
				t.Logf("%d requests: %d overflows, %d summaries, %d rewritten, %d times anew; bill %.2f of an unlimited window's, %.2f for summaries",
					len(list), w.overflows, w.summaries, k.rewritten, k.changed, k.bill, w.extra/whole())
				if fits {
					if w.overflows+k.rewritten > 0 {
						t.Errorf("a session that fits was rewritten")
					}
					return
				}
				if most := 1 + missed; w.overflows < 1 || w.overflows > most {
					t.Errorf("%d overflows, at most %d", w.overflows, most)
				}
				if 8*k.changed > k.rewritten {
					t.Errorf("the prefix was rewritten %d times", k.changed)
				}
				if most := c.windows[window]; most > 0 && k.bill > most {
					t.Errorf("the bill is %.2f of what an unlimited window costs", k.bill)
				}
			})
		}
	}
}

// common is how much of a rewritten request has to come again in the next one:
// all of it up to its last message, as far as the client's requests agree.
func common(before, body, sent []byte) int {
	end := bytes.LastIndex(before, []byte("]}"))
	if !bytes.HasPrefix(body, before[:end]) {
		return 0
	}
	return bytes.LastIndex(sent, []byte("]}"))
}

// remembered is what the store has of fitted sessions.
func remembered(t *testing.T, server *storetest.Server) []byte {
	t.Helper()
	return []byte(server.Do("EVAL", "local out = '' for _, k in ipairs(redis.call('KEYS', '*fit/*')) do out = out .. redis.call('GET', k) end return out", "0"))
}

// waitFor waits until cond holds, at most so long.
func waitFor(most time.Duration, cond func() bool) bool {
	for end := time.Now().Add(most); time.Now().Before(end); {
		if cond() {
			return true
		}
		time.Sleep(2 * time.Millisecond)
	}
	return false
}

// noNotes keeps what the sessions' tools answered from changing requests.
const noNotes = "inspect: {enabled: false}"

// What cannot be made to fit, or is none of the gateway's business, meets the
// upstream's own error.
func TestFitLeavesAlone(t *testing.T) {
	t.Parallel()
	s := record(t, probetest.Synthetic(5, 200_000))
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
				if r := g.must(c.before); r.did() != "fit" {
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

// A session with edits whose target refuses them gets the client's bytes sent
// again, and then what is really wrong with those.
func TestFitRefused(t *testing.T) {
	t.Parallel()
	s := record(t, probetest.Synthetic(5, 200_000))
	w := newWindowed(40_000)
	strictly := false
	up := startStrict(t, func(body []byte) ruling {
		if strictly && bytes.Contains(body, []byte("_compressed")) {
			return ruling{status: 400, body: `{"error":{"message":"This deployment takes no such marks.","type":"invalid_request_error","param":null,"code":null}}`}
		}
		return w.ask(body)
	})
	g := launch(t, up.config(noNotes, fastRecovery))
	n := len(s.ends)
	if r := g.must(s.body(s.ends[n-2])); r.did() != "fit" {
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

// The same where the first fitted copy is refused: the client learns that its
// request is too long, which it may know how to help.
func TestFitRefusedAtOnce(t *testing.T) {
	t.Parallel()
	s := record(t, probetest.Synthetic(5, 200_000))
	w := newWindowed(40_000)
	up := startStrict(t, func(body []byte) ruling {
		if bytes.Contains(body, []byte("_compressed")) {
			return ruling{status: 400, body: `{"error":{"message":"This deployment takes no such marks.","type":"invalid_request_error","param":null,"code":null}}`}
		}
		return w.ask(body)
	})
	g := launch(t, up.config(noNotes, fastRecovery))
	r := g.ask(t.Context(), s.body(s.ends[len(s.ends)-1]))
	if r.status != 400 || gjson.GetBytes(r.body, "error.code").Str != "context_length_exceeded" {
		t.Errorf("not the error of the client's own bytes, after %d attempts: %v", len(up.bodies()), r)
	}
}

// A picture is not counted by the size of its bytes, and stays where it is when
// the history around it is made smaller.
func TestFitPictures(t *testing.T) {
	t.Parallel()
	s := record(t, probetest.Synthetic(5, 200_000))
	// The header of a PNG of 512 by 512 pixels, and then nothing of meaning.
	header := []byte{0x89, 'P', 'N', 'G', 13, 10, 26, 10, 0, 0, 0, 13, 'I', 'H', 'D', 'R', 0, 0, 2, 0, 0, 0, 2, 0, 8, 2, 0, 0, 0}
	picture := fmt.Sprintf(`{"role":"user","content":[{"type":"text","text":"It looks like this:"},{"type":"image_url","image_url":{"url":"data:image/png;base64,%s"}}]}`,
		base64.StdEncoding.EncodeToString(append(header, make([]byte, 300_000)...)))
	w := newWindowed(40_000)
	up := startStrict(t, w.ask)
	g := launch(t, up.config(noNotes, fastRecovery))
	end, other := s.ends[len(s.ends)-1], record(t, probetest.Synthetic(6, 200_000))
	if r := g.must(other.body(other.ends[len(other.ends)-1])); r.did() != "fit" { // now the window is known
		t.Fatalf("not fitted: %v", r)
	}
	early := s.ends[len(s.ends)/3]
	small := strings.TrimSuffix(s.body(early), "]}") + "," + picture + "]}"
	if r := g.must(small); r.did() != "" || string(w.last()) != small {
		t.Errorf("a request that fits was changed for the size of its picture: %v", r)
	}
	s.messages[early] = picture
	large := strings.TrimSuffix(s.body(end), "]}") + "," + picture + "]}"
	if r := g.must(large); !strings.Contains(r.did(), "fit") || bytes.Count(w.last(), []byte("data:image/png")) == 0 {
		t.Errorf("the last picture is gone: %v", r)
	}
	if tail := w.last(); !bytes.HasSuffix(tail, []byte(picture+"]}")) {
		t.Errorf("the last message was changed: %.100s", tail[max(0, len(tail)-100):])
	}
}

// Nothing happens to small requests, also where the window is known.
func TestFitHealthy(t *testing.T) {
	t.Parallel()
	s, other := record(t, probetest.Synthetic(5, 200_000)), record(t, probetest.Synthetic(6, 200_000))
	w := newWindowed(40_000)
	up := startStrict(t, w.ask)
	g := launch(t, up.config(noNotes, fastRecovery))
	for _, known := range []bool{false, true} {
		if known {
			g.must(other.body(other.ends[len(other.ends)-1]))
			eventually(t, 2*time.Second, "the fitting is told", func() bool { return strings.Contains(g.log.String(), "trajectory_compressed") })
		}
		before := len(g.log.lines(t, named("trajectory_compressed")))
		for _, end := range s.ends[:len(s.ends)/4] {
			body := strings.Replace(s.body(end), `"stream":false`, `"stream" : false, "x":1.50`, 1)
			if r := g.must(body); string(w.last()) != body || r.did() != "" || r.tries() != "1" {
				t.Errorf("a healthy request was changed: %v", r)
			}
		}
		if n := len(g.log.lines(t, named("trajectory_compressed"))); n != before {
			t.Errorf("%d more events", n-before)
		}
	}
	if w.overflows != 1 {
		t.Errorf("%d overflows", w.overflows)
	}
}
