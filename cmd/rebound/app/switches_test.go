//go:build unix

package app_test

import (
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/tidwall/gjson"

	"github.com/rebound-llm/rebound/store/storetest"
)

// What an operator disables or limits at one replica is so at all of them, until it is undone.
func TestSwitches(t *testing.T) {
	t.Parallel()
	p := pair(t, slowStore(t, storetest.Redis(t)), modelMap("m", "default prim", "two spare"))
	answered := func(target string) {
		t.Helper()
		eventually(t, 10*time.Second, "replica 2 asks "+target, func() bool { return strings.HasPrefix(p.two.must(chat("m", false, "")).target(), target) })
	}
	answered("default/prim")
	p.one.admin(http.MethodPost, "/rebound/switches", `{"of":"upstream","name":"default","mode":"disabled"}`)
	answered("two/spare")
	if marks := gjson.Get(p.two.admin(http.MethodGet, "/rebound/targets", ""), "targets").Raw; !strings.Contains(marks, `"disabled"`) {
		t.Errorf("what is disabled is not listed: %s", marks)
	}
	p.one.admin(http.MethodPost, "/rebound/switches", `{"of":"target","name":"two/spare","mode":"disabled"}`)
	eventually(t, 10*time.Second, "nothing is left", func() bool {
		r := p.two.ask(t.Context(), chat("m", false, ""))
		return r.status == http.StatusServiceUnavailable && gjson.GetBytes(r.body, "error.code").Str == "target_disabled"
	})
	p.two.admin(http.MethodDelete, "/rebound/switches?of=target&name=two/spare", "")
	p.two.admin(http.MethodDelete, "/rebound/switches?of=upstream&name=default", "")
	answered("default/prim")

	// The failure of a model with mode off reaches the client unchanged; others are recovered.
	p.one.admin(http.MethodPost, "/rebound/switches", `{"of":"model","name":"x@503/ok","mode":"off"}`)
	eventually(t, 10*time.Second, "replica 2 hears of it", func() bool {
		return strings.Contains(p.two.admin(http.MethodGet, "/rebound/switches", ""), `"x@503/ok"`)
	})
	if r := p.two.ask(t.Context(), chat("x@503/ok", false, "")); r.status != http.StatusServiceUnavailable {
		t.Errorf("the model's failure is recovered: %v", r)
	}
	p.two.must(chat("y@503/ok", false, ""))

	for body, want := range map[string]int{
		`{"of":"key","name":"a","mode":"disabled"}`:               400,
		`{"of":"model","name":"m","mode":"act"}`:                  400,
		`[]`:                                                      400,
		`{"of":"model","name":"m","mode":"off"}`:                  204,
		`{"of":"upstream","name":"defualt","mode":"disabled"}`:    400,
		`{"of":"target","name":"defualt/prim","mode":"disabled"}`: 400,
		`{"of":"target","name":"default","mode":"disabled"}`:      400,
		`{"of":"target","name":"default/any","mode":"off"}`:       204,
		`{"of":"key","name":"nobody","mode":"off"}`:               400,
	} {
		if got := p.one.post("/rebound/switches", body); got != want {
			t.Errorf("%s: %d", body, got)
		}
	}
}

// The configured modes limit the mode that a client requests.
func TestModes(t *testing.T) {
	t.Parallel()
	p := pair(t, `models: {"m@503/ok": {mode: off, targets: [{upstream: default}]}}`)
	if r := p.one.ask(t.Context(), chat("m@503/ok", false, "")); r.status != http.StatusServiceUnavailable {
		t.Errorf("a model with mode off: %v", r)
	}
	p.one.must(chat("other@503/ok", false, ""))
}

// Replicas see one another with their configurations. One that has lost its store, or refuses a new configuration, says
// so.
func TestReplicasAreSeen(t *testing.T) {
	t.Parallel()
	redis := storetest.StartRedis(t)
	p := pair(t, shared(t, redis.URL(), 300*time.Millisecond))
	eventually(t, 20*time.Second, "replicas see one another", func() bool {
		list := gjson.Get(p.one.admin(http.MethodGet, "/rebound/replicas", ""), "replicas").Array()
		return len(list) == 2 && list[0].Get("self").Bool() && list[0].Get("config").Str == list[1].Get("config").Str && list[1].Get("store_up").Bool()
	})
	launch(t, strings.Replace(p.config, "listen: 127.0.0.1:0", "listen: localhost:0", 1)) // another address is no difference
	eventually(t, 20*time.Second, "replica 1 sees the third", func() bool { return strings.Contains(p.one.metrics(), "rebound_replicas 3") })
	if list := gjson.Get(p.one.admin(http.MethodGet, "/rebound/now", ""), "trouble").Raw; list != "[]" {
		t.Errorf("replicas that differ only in their addresses: %s", list)
	}
	if m := p.one.metrics(); !strings.Contains(m, "rebound_store_up 1") || !strings.Contains(m, "rebound_config_reload_success 1") || !strings.Contains(m, "rebound_replicas 3") {
		t.Error("metrics of a healthy pair are wrong")
	}
	redis.Kill()
	eventually(t, 20*time.Second, "the loss of the store is reported", func() bool {
		p.one.must(chat("m", false, ""))
		return strings.Contains(p.one.metrics(), "rebound_store_up 0") && strings.Contains(gjson.Get(p.one.admin(http.MethodGet, "/rebound/now", ""), "trouble").Raw, "has not answered since")
	})
}
