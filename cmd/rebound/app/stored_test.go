//go:build unix

package app_test

import (
	"encoding/json"
	"flag"
	"fmt"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"
	"github.com/tidwall/gjson"

	"github.com/rebound-llm/rebound/proxy/upstreamtest"
	"github.com/rebound-llm/rebound/store/storetest"
)

var versionBefore = flag.String("before", "", "the `program` of the version before: what it stores becomes testdata/stored.json")

// storeDump holds the contents of a server below one prefix.
type storeDump struct {
	At     int64                        `json:"at"` // microseconds; the ends of fields are relative to it
	Values map[string]string            `json:"values"`
	Lists  map[string][]string          `json:"lists"`
	Fields map[string]map[string]string `json:"fields"`
}

const storedFile = "testdata/stored.json"

// storedConfig is valid for both versions. STORE is the server.
const storedConfig = quick + "\nfit: {min_tokens: 1000}\nstore: {redis: {url: STORE, timeout: 5s}}\n"

// longResult returns a long tool result that differs for each n.
func longResult(n int) string {
	var b strings.Builder
	for i := range 400 {
		fmt.Fprintf(&b, "file-%d-%d.go: %d bytes, changed by hand\n", n, i, n*i)
	}
	return b.String()
}

// sessionRequest is a request of a session after so many turns, each with a call and its result.
func sessionRequest(model string, turns int, result func(n int) string) string {
	list := []any{map[string]any{"role": "system", "content": "You work on " + model}, map[string]any{"role": "user", "content": "Mend the build."}}
	for n := range turns {
		id := "call_" + strconv.Itoa(n)
		list = append(list,
			map[string]any{"role": "assistant", "content": nil, "tool_calls": []any{map[string]any{"id": id, "type": "function",
				"function": map[string]any{"name": "bash", "arguments": `{"command":"make all"}`}}}},
			map[string]any{"role": "tool", "tool_call_id": id, "content": result(n)})
	}
	b, _ := json.Marshal(map[string]any{"model": model, "messages": list, "temperature": 0.5, "max_tokens": 100, "tools": []any{map[string]any{
		"type": "function", "function": map[string]any{"name": "bash", "parameters": map[string]any{"type": "object", "properties": map[string]any{"command": map[string]any{"type": "string"}}}}}}})
	return string(b)
}

func failure(int) string { return "make: *** No rule to make target 'all'.  Stop." }

// The models of the scenario.
const (
	overflows = "window@ctx=7000"           // edits of a session, and a window that is learned
	repeats   = "stuck@ok"                  // a ring of failures
	refuses   = "fussy@no-param=max_tokens" // a learned edit
	cools     = "limited@429,retry-after=30/ok"
)

// TestStoredBefore checks that values of the previous version are read or ignored, and never misread. That program stored
// the values in testdata.
func TestStoredBefore(t *testing.T) {
	srv := storetest.StartRedis(t)
	db := redis.NewClient(&redis.Options{Addr: srv.Addr()})
	defer db.Close()
	up := upstreamtest.New(upstreamtest.Options{}).Start(t)
	config := strings.NewReplacer("UP/", up.URL()+"/", "STORE", srv.URL()).Replace(storedConfig)
	if *versionBefore != "" {
		recordStored(t, db, config)
		return
	}
	text, err := os.ReadFile(storedFile)
	if err != nil {
		t.Fatal(err)
	}
	var d storeDump
	if err := json.Unmarshal(text, &d); err != nil {
		t.Fatal(err)
	}
	loadStored(t, db, d)
	g := launch(t, config)

	// The session's edits, read or ignored: what goes up is smaller, and every call has its result.
	g.must(sessionRequest(overflows, 7, longResult))
	reqs := up.Requests(overflows)
	last := reqs[len(reqs)-1].Body
	calls, results := map[string]bool{}, 0
	for _, m := range gjson.Get(last, "messages").Array() {
		for _, c := range m.Get("tool_calls").Array() {
			calls[c.Get("id").Str] = true
		}
		if id := m.Get("tool_call_id"); id.Exists() {
			results++
			if !calls[id.Str] {
				t.Errorf("a result of %s has no call", id)
			}
		}
	}
	if !strings.Contains(last, "file-6-399.go") || len(last) > 30_000 || results != len(calls) {
		t.Errorf("%d results of %d calls: %.3000s", results, len(calls), last)
	}
	// The fifth failing turn and more, after four of the version before: the agent is stopped in the end.
	stopped := false
	for turns := 5; turns < 10 && !stopped; turns++ {
		stopped = strings.HasPrefix(gjson.GetBytes(g.must(sessionRequest(repeats, turns, failure)).body, "id").Str, "chatcmpl-rebound-")
	}
	if !stopped {
		t.Error("the agent is never stopped")
	}
	// Another session is not affected.
	if r := g.must(strings.Replace(sessionRequest(repeats, 2, failure), "Mend the build", "Another thing", 1)); strings.HasPrefix(gjson.GetBytes(r.body, "id").Str, "chatcmpl-rebound-") {
		t.Error("another session is stopped")
	}
	g.must(sessionRequest(refuses, 1, longResult))
	if n := count(up, refuses); n > 1 {
		t.Errorf("a field that is known to be refused was sent %d times", n-1)
	}
	if lines := g.log.lines(t, func(line map[string]any) bool { return isWarning(line) && line["event"] == nil }); len(lines) > 0 {
		t.Errorf("the log has %v", lines)
	}
}

// recordStored runs the scenario with the previous version and keeps what it stores.
func recordStored(t *testing.T, db *redis.Client, config string) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	addr := l.Addr().String()
	l.Close()
	file := filepath.Join(t.TempDir(), "rebound.yaml")
	if err := os.WriteFile(file, []byte(config), 0o600); err != nil {
		t.Fatal(err)
	}
	cmd := exec.Command(*versionBefore, "serve", "--config", file, "--listen", addr)
	cmd.Env = []string{"KEY_A=" + keyA, "KEY_B=" + keyB}
	cmd.Stderr = os.Stderr
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	defer func() {
		_ = cmd.Process.Signal(os.Interrupt)
		_ = cmd.Wait()
	}()
	g := &gateway{t: t, url: "http://" + addr, client: &http.Client{}}
	eventually(t, 10*time.Second, "the version before is ready", func() bool {
		r, err := http.Get(g.url + "/readyz")
		return err == nil && r.Body.Close() == nil && r.StatusCode == http.StatusOK
	})
	for turns := 1; turns <= 6; turns++ {
		g.must(sessionRequest(overflows, turns, longResult))
	}
	for turns := 1; turns <= 4; turns++ {
		g.must(sessionRequest(repeats, turns, failure))
	}
	g.must(sessionRequest(refuses, 1, longResult))
	g.ask(t.Context(), sessionRequest(cools, 1, longResult))
	time.Sleep(time.Second) // for asynchronous writes
	ctx := t.Context()
	d := storeDump{At: time.Now().UnixMicro(), Values: map[string]string{}, Lists: map[string][]string{}, Fields: map[string]map[string]string{}}
	for _, key := range db.Keys(ctx, "*").Val() {
		switch db.Type(ctx, key).Val() {
		case "string":
			d.Values[key] = fmt.Sprintf("%q", db.Get(ctx, key).Val())
		case "list":
			if strings.HasPrefix(key, "rebound:l:") {
				continue // for people
			}
			for _, v := range db.LRange(ctx, key, 0, -1).Val() {
				d.Lists[key] = append(d.Lists[key], fmt.Sprintf("%q", v))
			}
		case "hash":
			d.Fields[key] = map[string]string{}
			for f, v := range db.HGetAll(ctx, key).Val() {
				d.Fields[key][f] = fmt.Sprintf("%q", v)
			}
		}
	}
	text, err := json.MarshalIndent(d, "", "\t")
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(storedFile, append(text, '\n'), 0o644); err != nil {
		t.Fatal(err)
	}
}

// loadStored writes the recorded values to a server, with current times.
func loadStored(t *testing.T, db *redis.Client, d storeDump) {
	t.Helper()
	ctx, ttl := t.Context(), time.Hour
	plain := func(quoted string) string {
		s, err := strconv.Unquote(quoted)
		if err != nil {
			t.Fatal(err)
		}
		return s
	}
	check := func(err error) {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
	}
	for key, v := range d.Values {
		check(db.Set(ctx, key, plain(v), ttl).Err())
	}
	for key, list := range d.Lists {
		for _, v := range list {
			check(db.RPush(ctx, key, plain(v)).Err())
		}
		check(db.Expire(ctx, key, ttl).Err())
	}
	for key, fields := range d.Fields {
		for f, v := range fields {
			until, value, ok := strings.Cut(plain(v), ":")
			end, err := strconv.ParseInt(until, 10, 64)
			if !ok || err != nil {
				t.Fatalf("%s %s: %q", key, f, v)
			}
			check(db.HSet(ctx, key, f, fmt.Sprintf("%d:%s", end-d.At+time.Now().UnixMicro(), value)).Err())
		}
		check(db.Expire(ctx, key, ttl).Err())
	}
	if len(d.Values) == 0 || len(d.Lists) == 0 || len(d.Fields) < 2 {
		t.Errorf("the recording is incomplete: %d values, %d lists, %d boards", len(d.Values), len(d.Lists), len(d.Fields))
	}
}
