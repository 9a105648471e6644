package proxy_test

import (
	"io"
	"net/http"
	"strings"
	"testing"
)

// An upstream's page is shown as one of nobody: it has no scripts, and neither cookies nor
// rules of its own for the gateway's origin. An answer that says what is to be done next keeps that.
func TestAnswersAreForeign(t *testing.T) {
	const (
		ofOrigin = "Set-Cookie: rebound_admin=x; Path=/rebound/\nClear-Site-Data: \"*\"\nService-Worker-Allowed: /\nRefresh: 0;url=http://evil.example\n" +
			"Strict-Transport-Security: max-age=9\nAlt-Svc: h3=\":443\"\nCross-Origin-Opener-Policy: unsafe-none\nContent-Security-Policy: default-src *\n" +
			"X-Content-Type-Options: sniff\nAccess-Control-Allow-Origin: *\nAccess-Control-Allow-Credentials: true\nX-Hop: 1\nX-Rebound-Target: spoofed\n"
		ofAnswer = "Location: /v1/made/1\nWww-Authenticate: Basic realm=\"x\"\n"
	)
	up := record(t, func(w http.ResponseWriter, r *http.Request) {
		for line := range strings.Lines(ofOrigin + ofAnswer) {
			name, value, _ := strings.Cut(strings.TrimSpace(line), ": ")
			w.Header().Set(name, value)
		}
		w.Header().Set("Connection", "X-Hop, close")
		kind, status := "application/json", 200
		switch {
		case strings.HasSuffix(r.URL.Path, "/page"):
			kind = "text/html"
		case strings.HasSuffix(r.URL.Path, "/made"):
			status = 201
		case strings.HasSuffix(r.URL.Path, "/denied"):
			status = 401
		}
		w.Header().Set("Content-Type", kind)
		w.WriteHeader(status)
		_, _ = io.WriteString(w, answered)
	})
	g := startAt(t, up.url, "auth: {keys: [{name: a, env: KEY_A}]}\n")
	const ask = `{"model":"m","messages":[{"role":"user","content":"Hi"}]}`
	for _, c := range []struct {
		begin, headers, body string
		page                 bool     // may be shown by a browser
		kept                 []string // of what is about the answer
	}{
		{"GET /v1/page", "Accept: text/html\r\nSec-Fetch-Mode: navigate\r\n", "", true, nil},
		{"GET /v1/page", "", "", true, nil},
		{"POST /v1/page", jsonType + "Accept: text/html,application/xhtml+xml,*/*;q=0.8\r\n", "{}", true, nil},
		{"POST /v1/chat/completions", jsonType, ask, false, nil},
		{"POST /v1/embeddings", jsonType + "Accept: application/json\r\n", `{"model":"m","input":"x"}`, false, nil},
		{"POST /v1/made", jsonType, "{}", false, []string{"Location"}},
		{"GET /v1/denied", "", "", true, []string{"Www-Authenticate"}},
	} {
		status, answer := g.send(c.begin, "Authorization: Bearer sk-key-aaaaaaaaaaaa\r\n"+c.headers, c.body)
		head, _, _ := strings.Cut(answer, "\r\n\r\n")
		for line := range strings.Lines(ofOrigin + ofAnswer) {
			line = strings.TrimSpace(line)
			name, _, _ := strings.Cut(line, ": ")
			keeps := len(c.kept) == 1 && c.kept[0] == name
			if strings.Contains(head, line) != keeps {
				t.Errorf("%s: %d, %s is kept: %v", c.begin, status, line, !keeps)
			}
		}
		if !strings.Contains(head, "X-Content-Type-Options: nosniff") || strings.Contains(head, "Content-Security-Policy: sandbox;") != c.page {
			t.Errorf("%s: %d %s", c.begin, status, head)
		}
	}
}

// A person who types the gateway's address gets the page; a program is told of its mistake.
func TestRoot(t *testing.T) {
	g := start(t, "")
	if status, answer := g.send("GET /", "Accept: text/html,*/*\r\n", ""); status != 302 || !strings.Contains(answer, "Location: /rebound/\r\n") {
		t.Errorf("a browser: %d %s", status, answer)
	}
	if status, answer := g.send("GET /", "Accept: application/json\r\n", ""); status != 404 || code(answer) != "unknown_path" {
		t.Errorf("a program: %d %s", status, answer)
	}
}
