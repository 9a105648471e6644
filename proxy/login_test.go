package proxy

import (
	"net/http"
	"net/http/httptest"
	"net/netip"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"
)

// A cookie is made of the token and ends; nothing that was not made so passes.
func TestStamp(t *testing.T) {
	now := time.Now()
	with := func(value string) *http.Request {
		r := httptest.NewRequest("GET", "/rebound/", nil)
		r.AddCookie(&http.Cookie{Name: adminCookie, Value: value})
		return r
	}
	good := stamp("token", now.Add(time.Hour))
	if !stamped(with(good), "token", now) {
		t.Error("a good cookie is refused")
	}
	for name, r := range map[string]*http.Request{
		"another token":  with(stamp("other", now.Add(time.Hour))),
		"one that ended": with(stamp("token", now.Add(-time.Second))),
		"one for ever":   with(stamp("token", now.Add(1000*time.Hour))),
		"a changed one":  with(good[:30] + string(good[30]^1) + good[31:]),
		"a short one":    with(good[:20]),
		"nonsense":       with("%%%"),
		"none":           httptest.NewRequest("GET", "/rebound/", nil),
	} {
		if stamped(r, "token", now) {
			t.Errorf("%s is accepted", name)
		}
	}
	if stamped(with(stamp("", now.Add(time.Hour))), "", now) {
		t.Error("without a token every cookie is accepted")
	}
}

// From elsewhere a browser is asked for the token once, and nothing is shown before.
func TestLogin(t *testing.T) {
	t.Parallel()
	s := &Server{}
	core := &Core{}
	core.Config.Auth.AdminToken = "secret-token"
	s.core.Store(core)
	h := s.admin(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { _, _ = w.Write([]byte("inside")) }))
	ask := func(method, path, body string, header http.Header) *httptest.ResponseRecorder {
		r := httptest.NewRequest(method, "https://gateway.example"+path, strings.NewReader(body))
		r.Header = header
		if body != "" {
			r.Header.Set("Content-Type", "application/x-www-form-urlencoded")
		}
		w := httptest.NewRecorder()
		h.ServeHTTP(w, r)
		return w
	}
	if w := ask("GET", "/rebound/", "", http.Header{}); w.Code != 403 || !strings.Contains(w.Body.String(), `action="/rebound/login"`) ||
		!strings.Contains(w.Header().Get("Content-Security-Policy"), "default-src 'none'") {
		t.Errorf("the form: %d %v %s", w.Code, w.Header(), w.Body)
	}
	for _, path := range []string{"/rebound/main.js", "/rebound/events", "/rebound/now", "/rebound/login", "/metrics"} {
		if w := ask("GET", path, "", http.Header{}); w.Code != 403 || !strings.Contains(w.Body.String(), "admin_only") {
			t.Errorf("%s: %d %s", path, w.Code, w.Body)
		}
	}
	for _, body := range []string{"token=", "token=wrong", "x=1", "token=" + strings.Repeat("a", maxForm)} {
		if w := ask("POST", "/rebound/login", body, http.Header{}); w.Code != 403 || len(w.Result().Cookies()) != 0 {
			t.Errorf("%.20s: %d %v", body, w.Code, w.Header())
		}
	}
	if w := ask("POST", "/rebound/login", "token=secret-token", http.Header{"Origin": {"https://evil.example"}}); w.Code != 403 || len(w.Result().Cookies()) != 0 {
		t.Errorf("from another site: %d", w.Code)
	}
	w := ask("POST", "/rebound/login", "token=secret-token", http.Header{"Origin": {"https://gateway.example"}})
	cookies := w.Result().Cookies()
	if w.Code != http.StatusSeeOther || len(cookies) != 1 {
		t.Fatalf("the token: %d %v", w.Code, w.Header())
	}
	if c := cookies[0]; !c.HttpOnly || !c.Secure || c.SameSite != http.SameSiteStrictMode || c.Path != "/rebound/" || strings.Contains(c.Value, "secret") {
		t.Errorf("the cookie is %v", c)
	}
	cookie := cookies[0].Name + "=" + cookies[0].Value
	if w := ask("GET", "/rebound/events", "", http.Header{"Cookie": {cookie}}); w.Body.String() != "inside" {
		t.Errorf("with the cookie: %d %s", w.Code, w.Body)
	}
	if w := ask("DELETE", "/rebound/targets", "", http.Header{"Cookie": {cookie}, "Sec-Fetch-Site": {"cross-site"}}); w.Code != 403 {
		t.Errorf("with the cookie from another site: %d", w.Code)
	}
	core.Config.Auth.AdminToken = ""
	if w := ask("GET", "/rebound/", "", http.Header{"Cookie": {cookie}}); w.Code != 403 || !strings.Contains(w.Body.String(), "admin_only") {
		t.Errorf("without a token: %d %s", w.Code, w.Body)
	}
}

// A wrong token is slow, and only that: the right one and cookies are answered at once,
// however many wrong ones wait, from the same peer, too.
func TestTries(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := &Server{}
		core := &Core{}
		core.Config.Auth.AdminToken = "secret-token"
		s.core.Store(core)
		h := s.admin(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { _, _ = w.Write([]byte("inside")) }))
		serve := func(r *http.Request) (code int, took time.Duration) {
			w, start := httptest.NewRecorder(), time.Now()
			h.ServeHTTP(w, r)
			return w.Code, time.Since(start)
		}
		ask := func(token string, cookie bool) (code int, took time.Duration) {
			r := httptest.NewRequest("GET", "https://gateway.example/rebound/now", nil)
			if cookie {
				r.AddCookie(&http.Cookie{Name: adminCookie, Value: stamp("secret-token", time.Now().Add(time.Hour))})
			} else {
				r.Header.Set("Authorization", "Bearer "+token)
			}
			return serve(r)
		}
		login := func(token string) (code int, took time.Duration) {
			r := httptest.NewRequest("POST", "https://gateway.example/rebound/login", strings.NewReader("token="+token))
			r.Header.Set("Content-Type", "application/x-www-form-urlencoded")
			return serve(r)
		}
		var all sync.WaitGroup
		for range 500 {
			all.Go(func() {
				if code, took := ask("wrong", false); code != 403 || took != wrongToken {
					t.Errorf("a wrong one: %d after %v", code, took)
				}
				if code, took := login("wrong"); code != 403 || took != wrongToken {
					t.Errorf("a wrong one in the form: %d after %v", code, took)
				}
			})
		}
		synctest.Wait()
		if code, took := ask("", true); code != 200 || took != 0 {
			t.Errorf("a cookie meanwhile: %d after %v", code, took)
		}
		if code, took := ask("secret-token", false); code != 200 || took != 0 {
			t.Errorf("the right one meanwhile: %d after %v", code, took)
		}
		if code, took := login("secret-token"); code != http.StatusSeeOther || took != 0 {
			t.Errorf("the right one in the form meanwhile: %d after %v", code, took)
		}
		all.Wait()
	})
}

// A peer's first wrong gateway keys of a minute are answered at once, the rest slowly; that
// changes nothing for other peers and for right keys. Of how many peers that is known is bounded.
func TestGuessesOfKeys(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s, core := &Server{guesses: tries{free: freeGuesses}}, &Core{}
		core.Config.Auth.Keys = []ClientKey{{Name: "a", Value: "sk-right"}}
		core.keys = newKeyring(core.Config.Auth.Keys)
		ask := func(peer, key string) (ok bool, took time.Duration) {
			r := httptest.NewRequest("GET", "/v1/models", nil)
			r.RemoteAddr = peer
			if key != "" {
				r.Header.Set("Authorization", "Bearer "+key)
			}
			start := time.Now()
			_, err := s.authenticate(core, r)
			return err == nil, time.Since(start)
		}
		for i := range freeGuesses + 5 {
			want := time.Duration(0)
			if i >= freeGuesses {
				want = wrongToken
			}
			if ok, took := ask("[2001:db8::1]:1000", "sk-wrong"); ok || took != want {
				t.Errorf("wrong key %d: %v after %v", i, ok, took)
			}
		}
		for name, c := range map[string]struct {
			peer, key string
			ok        bool
			took      time.Duration
		}{
			"the right one":           {"[2001:db8::1]:1000", "sk-right", true, 0},
			"none":                    {"[2001:db8::1]:1000", "", false, 0},
			"its network":             {"[2001:db8::2]:1000", "sk-wrong", false, wrongToken},
			"another network":         {"[2001:db8:0:1::1]:1000", "sk-wrong", false, 0},
			"another peer":            {"192.0.2.1:1000", "sk-wrong", false, 0},
			"a neighbour of that one": {"192.0.2.2:1000", "sk-wrong", false, 0},
		} {
			if ok, took := ask(c.peer, c.key); ok != c.ok || took != c.took {
				t.Errorf("%s: %v after %v", name, ok, took)
			}
		}
		time.Sleep(triesWindow)
		if _, took := ask("[2001:db8::1]:1000", "sk-wrong"); took != 0 {
			t.Errorf("a minute later: %v", took)
		}
		for i := range 2 * maxPeers {
			s.guesses.allows(netip.PrefixFrom(netip.AddrFrom4([4]byte{10, byte(i >> 16), byte(i >> 8), byte(i)}), 32), time.Now())
		}
		if n := len(s.guesses.peers); n > maxPeers {
			t.Errorf("%d peers are counted", n)
		}
	})
}
