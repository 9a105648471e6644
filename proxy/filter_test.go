package proxy_test

import (
	"bufio"
	"bytes"
	"context"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"

	"github.com/tidwall/gjson"
)

// witness is an upstream that keeps what it was sent.
type witness struct {
	url string

	mu   sync.Mutex
	seen []received
}

type received struct {
	method, uri string
	header      http.Header
	body        string
}

const answered = `{"id":"made-1","object":"chat.completion","created":1,"model":"m","choices":[{"index":0,"message":{"role":"assistant","content":"Hello."},"finish_reason":"stop"}]}`

// record starts a witness. answer may be nil: then it answers a completion.
func record(t *testing.T, answer http.HandlerFunc) *witness {
	t.Helper()
	u := &witness{}
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body)
		u.mu.Lock()
		u.seen = append(u.seen, received{r.Method, r.RequestURI, r.Header.Clone(), string(body)})
		u.mu.Unlock()
		if answer != nil {
			answer(w, r)
			return
		}
		w.Header().Set("Content-Type", "application/json")
		w.Header().Set("Access-Control-Allow-Origin", "*")
		_, _ = io.WriteString(w, answered)
	}))
	t.Cleanup(s.Close)
	u.url = s.URL
	return u
}

// take returns what was received since it was last asked.
func (u *witness) take() []received {
	u.mu.Lock()
	defer u.mu.Unlock()
	list := u.seen
	u.seen = nil
	return list
}

// raw sends bytes on a connection of their own and returns the status and what
// else came back; the request must say that it closes.
func (g *gateway) raw(text string) (status int, answer string) {
	g.t.Helper()
	c, err := net.Dial("tcp", strings.TrimPrefix(g.url, "http://"))
	if err != nil {
		g.t.Fatal(err)
	}
	defer c.Close()
	if _, err := io.WriteString(c, text); err != nil {
		g.t.Fatal(err)
	}
	resp, err := http.ReadResponse(bufio.NewReader(c), nil)
	if err != nil {
		g.t.Fatalf("%.80q: %v", text, err)
	}
	defer resp.Body.Close()
	body, _ := io.ReadAll(resp.Body)
	var head bytes.Buffer
	_ = resp.Header.Write(&head)
	return resp.StatusCode, head.String() + string(body)
}

// send makes a raw request of a request line's beginning, headers and a body.
func (g *gateway) send(begin, headers, body string) (int, string) {
	g.t.Helper()
	if !strings.Contains("\n"+headers, "\nHost:") {
		headers += "Host: localhost\r\n"
	}
	if body != "" {
		headers += fmt.Sprintf("Content-Length: %d\r\n", len(body))
	}
	return g.raw(begin + " HTTP/1.1\r\n" + headers + "Connection: close\r\n\r\n" + body)
}

const jsonType = "Content-Type: application/json\r\n"

func code(answer string) string {
	i := strings.Index(answer, "{")
	if i < 0 {
		return ""
	}
	return gjson.Get(answer[i:], "error.code").Str
}

// A path goes upstream as it came, and one that leads elsewhere goes nowhere,
// nor does a model that would make it so.
func TestPaths(t *testing.T) {
	up := record(t, nil)
	g := startAt(t, up.url, `
models:
  "../../admin": {targets: [{upstream: placed}]}
  "meta/llama 3": {targets: [{upstream: placed}]}
`)
	for _, path := range []string{"/v1/models/meta-llama%2FLlama-3", "/v1/models/a%20b%25", "/v1/files/x?after=%2F&limit=1", "/v1//odd/", "/v1/models/a..b"} {
		status, answer := g.send("GET "+path, "", "")
		if got := up.take(); status != 200 || len(got) != 1 || got[0].uri != path {
			t.Errorf("%s: %d %s, the upstream saw %+v", path, status, answer, got)
		}
	}
	for _, path := range []string{"/v1/../admin", "/v1/%2e%2e/admin", "/v1/%252e%252e/admin", "/v1/..%2fadmin", `/v1/..%5cadmin`, "/v1/..;/admin", "/v1/a%00", "/v1/%2E"} {
		status, answer := g.send("GET "+path, "", "")
		if got := up.take(); status != 400 || code(answer) != "invalid_path" || len(got) != 0 {
			t.Errorf("%s: %d %s, the upstream saw %+v", path, status, answer, got)
		}
	}
	for model, want := range map[string]string{"meta/llama 3": "/d/meta/llama%203/chat/completions", "../../admin": ""} {
		for _, path := range []string{"chat/completions", "embeddings"} {
			status, answer := g.send("POST /v1/"+path, jsonType, fmt.Sprintf(`{"model":%q,"messages":[{"role":"user","content":"Hi"}]}`, model))
			got := up.take()
			if want == "" && (status != 404 || code(answer) != "model_not_found" || len(got) != 0) ||
				want != "" && (status != 200 || len(got) != 1 || got[0].uri != strings.Replace(want, "chat/completions", path, 1)) {
				t.Errorf("%s for %s: %d %s, the upstream saw %+v", path, model, status, answer, got)
			}
		}
	}
}

// Only methods that an API has are forwarded: an upstream's answer to TRACE
// would show the gateway's own credential.
func TestMethods(t *testing.T) {
	up := record(t, func(w http.ResponseWriter, r *http.Request) { _ = r.Header.Write(w) })
	g := startAt(t, up.url, "default_upstream: two\n")
	for _, method := range []string{"TRACE", "TRACK", "CONNECT", "PROPFIND", "DEBUG"} {
		for _, path := range []string{"/v1/models", "/v1/x", "/v1/chat/completions"} {
			status, answer := g.send(method+" "+path, "", "")
			if got := up.take(); status < 400 || strings.Contains(answer, "sk-key") || len(got) != 0 {
				t.Errorf("%s %s: %d %s, the upstream saw %+v", method, path, status, answer, got)
			}
		}
	}
	for _, method := range []string{"GET", "HEAD", "PUT", "PATCH", "DELETE"} {
		if g.send(method+" /v1/x", "", ""); len(up.take()) != 1 {
			t.Errorf("%s was not forwarded", method)
		}
	}
}

// Where a page could spend the gateway's own key, pages of other sites, names
// that are not the gateway's, and bodies that need no permission are refused.
// Programs are not disturbed.
func TestBrowsers(t *testing.T) {
	const chat, ask = "POST /v1/chat/completions", `{"model":"m","messages":[{"role":"user","content":"Hi"}]}`
	cases := []struct {
		name, begin, headers, body string
		status                     int
		code                       string
	}{
		{"program", chat, jsonType, ask, 200, ""},
		{"program, Node's fetch", chat, jsonType + "Sec-Fetch-Mode: cors\r\nAccept-Language: *\r\n", ask, 200, ""},
		{"program, charset", chat, "Content-Type: application/json; charset=UTF-8\r\n", ask, 200, ""},
		{"program, other loopback names", chat, jsonType + "Host: [::1]:8080\r\n", ask, 200, ""},
		{"program, a name that was declared", chat, jsonType + "Host: Gateway.internal:8080\r\n", ask, 200, ""},
		{"program, multipart", "POST /v1/audio/transcriptions", "Content-Type: multipart/form-data; boundary=x\r\n", "--x--", 200, ""},
		{"program, no body", "GET /v1/models", "", "", 200, ""},
		{"own page", chat, jsonType + "Origin: http://localhost:8080\r\nHost: localhost:8080\r\nSec-Fetch-Site: same-origin\r\n", ask, 200, ""},
		{"typed address", "GET /v1/models", "Sec-Fetch-Site: none\r\n", "", 200, ""},
		{"page, simple request", chat, "Content-Type: text/plain\r\nOrigin: https://evil.example\r\nSec-Fetch-Site: cross-site\r\n", ask, 403, "cross_site"},
		{"page, old browser", chat, "Content-Type: text/plain\r\n", ask, 415, "content_type"},
		{"page, form", chat, "Content-Type: application/x-www-form-urlencoded\r\n", ask, 415, "content_type"},
		{"page, no type", chat, "", ask, 415, "content_type"},
		{"page, two types", chat, jsonType + "Content-Type: text/plain\r\n", ask, 415, "content_type"},
		{"page, multipart completion", chat, "Content-Type: multipart/form-data; boundary=x\r\n", ask, 415, "content_type"},
		{"page, another path", "POST /v1/images/generations", "Content-Type: text/plain\r\n", ask, 415, "content_type"},
		{"page, responses", "POST /v1/responses", "Content-Type: application/octet-stream\r\n", ask, 415, "content_type"},
		{"page, origin alone", chat, jsonType + "Origin: https://evil.example\r\n", ask, 403, "cross_site"},
		{"page, null origin", chat, jsonType + "Origin: null\r\n", ask, 403, "cross_site"},
		{"page, another port of this machine", chat, jsonType + "Origin: http://localhost:3000\r\nSec-Fetch-Site: same-site\r\n", ask, 403, "cross_site"},
		{"page, image", "GET /v1/models", "Sec-Fetch-Site: cross-site\r\nSec-Fetch-Mode: no-cors\r\n", "", 403, "cross_site"},
		{"page, two origins", chat, jsonType + "Origin: https://ok.example\r\nOrigin: https://evil.example\r\n", ask, 403, "cross_site"},
		{"rebinding", chat, jsonType + "Host: evil.example:8080\r\nOrigin: http://evil.example:8080\r\nSec-Fetch-Site: same-origin\r\n", ask, 403, "foreign_host"},
		{"rebinding, GET", "GET /v1/models", "Host: evil.example\r\n", "", 403, "foreign_host"},
		{"rebinding, all addresses", "GET /v1/models", "Host: 0.0.0.0:8080\r\n", "", 403, "foreign_host"},
		{"rebinding, a name like ours", "GET /v1/models", "Host: localhost.evil.example\r\n", "", 403, "foreign_host"},
		{"preflight", "OPTIONS /v1/chat/completions", "Origin: https://evil.example\r\nAccess-Control-Request-Method: POST\r\n", "", 403, "cross_site"},
		{"allowed page", chat, jsonType + "Origin: https://ok.example\r\nSec-Fetch-Site: cross-site\r\n", ask, 200, ""},
		{"allowed page, preflight", "OPTIONS /v1/chat/completions", "Origin: https://ok.example\r\nAccess-Control-Request-Method: POST\r\nAccess-Control-Request-Headers: content-type, x-stainless-os\r\n", "", 204, ""},
	}
	const open = "hosts: [gateway.internal]\ncors: {origins: [\"https://ok.example\"]}\n"
	up := record(t, nil)
	for _, c := range []struct {
		name, config, headers string
		guarded               bool
	}{
		{"own keys", "default_upstream: two\n", "", true},
		{"gateway keys", "default_upstream: two\nauth: {keys: [{name: a, env: KEY_A}]}\n", "Authorization: Bearer sk-key-aaaaaaaaaaaa\r\n", false},
	} {
		g := startAt(t, up.url, open, c.config)
		for _, x := range cases {
			status, answer := g.send(x.begin, x.headers+c.headers, x.body)
			got := up.take()
			if !c.guarded && x.name != "allowed page, preflight" {
				if x.status != 415 && strings.HasPrefix(x.begin, "POST /v1/chat") && status != 200 {
					t.Errorf("%s, %s: %d %s", c.name, x.name, status, answer)
				}
				continue
			}
			if status != x.status || code(answer) != x.code || (len(got) > 0) != (status == 200) {
				t.Errorf("%s, %s: %d %s, the upstream saw %d", c.name, x.name, status, answer, len(got))
			}
			if allowed := strings.Contains(answer, "Access-Control-Allow-Origin: https://ok.example"); allowed != strings.HasPrefix(x.name, "allowed") ||
				strings.Contains(answer, "Access-Control-Allow-Origin: *") {
				t.Errorf("%s, %s: %s", c.name, x.name, answer)
			}
			if x.status == 204 && !strings.Contains(answer, "Access-Control-Allow-Headers: content-type, x-stainless-os") {
				t.Errorf("%s: %s", x.name, answer)
			}
		}
	}
	t.Run("clients' own keys", func(t *testing.T) {
		g := startYAML(t, "listen: 127.0.0.1:0\nupstreams: {default: {url: "+up.url+"/v1}}\n")
		for _, x := range cases[:len(cases)-2] {
			if strings.HasPrefix(x.begin, "POST /v1/chat") && x.status != 415 {
				if status, answer := g.send(x.begin, x.headers, x.body); status != 200 || !strings.Contains(answer, "Access-Control-Allow-Origin: *") {
					t.Errorf("%s: %d %s", x.name, status, answer)
				}
			}
		}
	})
}

// Secrets of the gateway do not leave it, whatever an upstream says.
func TestSecretsStayInside(t *testing.T) {
	const secret = "sk-key-aaaaaaaaaaaa"
	said := fmt.Sprintf(`{"error":{"message":"Incorrect key %s. Also %s.","type":"invalid_request_error","code":"odd"}}`, secret, "sk-key-bbbbbbbbbbbb")
	up := record(t, func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("X-Echo", r.Header.Get("Authorization"))
		w.Header().Set("Content-Type", "application/json")
		body := said
		switch {
		case strings.Contains(r.URL.Path, "stream"), strings.Contains(r.Header.Get("X-Stainless-Arch"), "stream"):
			w.Header().Del("X-Echo")
			w.Header().Set("Content-Type", "text/event-stream")
			body = "data: {\"id\":\"c\",\"object\":\"chat.completion.chunk\",\"choices\":[{\"index\":0,\"delta\":{\"role\":\"assistant\",\"content\":\"Hel\"}}]}\n\ndata: " + said + "\n\n"
		case r.Header.Get("X-Stainless-Arch") == "unauthorized":
			w.WriteHeader(401)
		default:
			w.WriteHeader(422)
		}
		for i := range len(body) { // in pieces
			_, _ = io.WriteString(w, body[i:i+1])
			if i%7 == 0 {
				_ = http.NewResponseController(w).Flush()
			}
		}
	})
	g := startAt(t, up.url, "default_upstream: two\n")
	const ask = `{"model":"m","stream":%v,"messages":[{"role":"user","content":"Hi"}]}`
	for _, mode := range []string{"act", "observe", "off"} {
		for _, kind := range []string{"refused", "unauthorized", "stream"} {
			for _, path := range []string{"/v1/chat/completions", "/v1/embeddings", "/v1/stream"} {
				status, answer := g.send("POST "+path, jsonType+"X-Rebound-Mode: "+mode+"\r\nX-Stainless-Arch: "+kind+"\r\n", fmt.Sprintf(ask, kind == "stream"))
				if strings.Contains(answer, "sk-key") || !strings.Contains(answer, "[redacted]") && !strings.Contains(answer, "upstream_credentials") {
					t.Errorf("%s, %s %s: %d %s", mode, kind, path, status, answer)
				}
			}
		}
	}
}

// A gateway key goes nowhere, whatever carries it.
func TestGatewayKeysGoNowhere(t *testing.T) {
	up := record(t, nil)
	g := startAt(t, up.url, "auth: {keys: [{name: a, env: KEY_A}, {name: b, env: KEY_B}]}\n")
	const key, other = "sk-key-aaaaaaaaaaaa", "sk-key-bbbbbbbbbbbb"
	for name, headers := range map[string]string{
		"twice":            "Authorization: Bearer " + key + "\r\nX-Api-Key: " + key + "\r\n",
		"another":          "Authorization: Bearer " + key + "\r\nX-Goog-Api-Key: " + other + "\r\nX-Other: Token " + other + "\r\n",
		"two values":       "Authorization: Bearer " + key + "\r\nAuthorization: Bearer " + other + "\r\n",
		"inside":           "Api-Key: " + key + "\r\nCookie: a=1; key=" + key + "\r\nReferer: http://h/?k=" + key + "\r\n",
		"with its own key": "X-Api-Key: " + key + "\r\nAuthorization: Bearer sk-mine\r\n",
	} {
		for _, path := range []string{"/v1/chat/completions", "/v1/embeddings", "/v1/models"} {
			begin, body := "POST "+path, `{"model":"m","messages":[{"role":"user","content":"Hi"}]}`
			if path == "/v1/models" {
				begin, body = "GET "+path, ""
			}
			status, answer := g.send(begin+"?key="+key+"&token="+other+"&limit=2", jsonType+headers, body)
			got := up.take()
			if status != 200 || len(got) != 1 || strings.Contains(fmt.Sprint(got), "sk-key") || !strings.HasSuffix(got[0].uri, "?limit=2") {
				t.Errorf("%s, %s: %d %s, the upstream saw %+v", name, path, status, answer, got)
			}
			if own := len(got) == 1 && got[0].header.Get("Authorization") == "Bearer sk-mine"; own != (name == "with its own key") {
				t.Errorf("%s, %s: the upstream saw %+v", name, path, got)
			}
		}
	}
}

// What a request moved on to is judged, not what was asked first.
func TestJudgesWhoAnswered(t *testing.T) {
	up := record(t, func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		w.WriteHeader(401)
		_, _ = io.WriteString(w, `{"error":{"message":"bad key of the operator"}}`)
	})
	for name, c := range map[string]struct {
		targets []string
		status  int
		code    string
	}{
		"own key after a dead one":      {[]string{"dead a", "two a"}, 502, "upstream_credentials"},
		"client's after a dead own key": {[]string{"lost a", "default a"}, 401, ""},
	} {
		g := startAt(t, up.url, models(map[string][]string{"m": c.targets}))
		r := g.post(context.Background(), "/v1/embeddings", `{"model":"m","input":"x"}`, nil)
		if r.status != c.status || gjson.GetBytes(r.body, "error.code").Str != c.code {
			t.Errorf("%s: %d %s", name, r.status, r.body)
		}
	}
}
