package main

import (
	"crypto/x509"
	"encoding/pem"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/rebound-llm/rebound/configs"
)

// "rebound run" accepts the configuration file of a server, also while that server runs: the program gets an http URL,
// and the gateway does not listen at the server's addresses.
func TestRunWithAServersConfiguration(t *testing.T) {
	up := httptest.NewTLSServer(http.NotFoundHandler()) // only for its certificate
	defer up.Close()
	key, err := x509.MarshalPKCS8PrivateKey(up.TLS.Certificates[0].PrivateKey)
	if err != nil {
		t.Fatal(err)
	}
	taken, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer taken.Close()
	dir := t.TempDir()
	for name, text := range map[string][]byte{
		"cert.pem": pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: up.TLS.Certificates[0].Certificate[0]}),
		"key.pem":  pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: key}),
		"rebound.yaml": []byte("tls: {cert: cert.pem, key: key.pem}\nadmin: {listen: \"" + taken.Addr().String() + "\"}\nlog: {format: text, level: error}\n" +
			"upstreams: {default: {url: \"http://127.0.0.1:1/v1\"}}\nrecovery: {attempts: 2, patience: 0s, backoff_min: 1ms, backoff_max: 1ms}\n"),
	} {
		if err := os.WriteFile(filepath.Join(dir, name), text, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	t.Chdir(dir)
	text, errs, code := runAsking(noEnv, "/chat/completions", `{"model":"m","messages":[{"role":"user","content":"Hello."}]}`, "--config", "rebound.yaml")
	if code != 0 || !strings.Contains(text, "connection refused") {
		t.Errorf("exit code %d: %s %s", code, text, errs)
	}
	if !strings.Contains(errs, "1 request failed despite recovery") {
		t.Errorf("the summary is %q", errs)
	}
}

// runAsking sends a request through the gateway of "rebound run", in the working directory. It returns the answer's text,
// and what the command wrote to standard error with its exit code.
func runAsking(env configs.Env, path, body string, flags ...string) (text, errs string, code int) {
	got := make(chan string, 1)
	_, _ = os.Remove("base"), os.Remove("asked")
	go func() {
		defer os.WriteFile("asked", nil, 0o600) // ends the program
		for range 200 {
			base, err := os.ReadFile("base")
			if url, whole := strings.CutSuffix(string(base), "\n"); err == nil && whole {
				req, _ := http.NewRequest(http.MethodPost, url+path, strings.NewReader(body))
				req.Header = http.Header{"Content-Type": {"application/json"}, "Authorization": {"Bearer own"}}
				resp, err := http.DefaultClient.Do(req)
				if err != nil {
					got <- err.Error()
					return
				}
				defer resp.Body.Close()
				text, _ := io.ReadAll(resp.Body)
				got <- string(text)
				return
			}
			time.Sleep(50 * time.Millisecond)
		}
		got <- "the program did not start"
	}()
	_, errs, code = runWith(env, "", append(append([]string{"run"}, flags...), "--", "sh", "-c", "echo $OPENAI_BASE_URL >base; until [ -e asked ]; do sleep 0.05; done")...)
	return <-got, errs, code
}

// Keys of a configuration go only where the configuration says, whatever provider the environment names.
func TestRunSendsKeysWhereTheFileSays(t *testing.T) {
	asked := func(named string) *httptest.Server {
		server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			_, _ = io.WriteString(w, named+" "+r.Header.Get("Authorization"))
		}))
		t.Cleanup(server.Close)
		return server
	}
	file, environment := asked("file"), asked("environment")
	t.Chdir(t.TempDir())
	env := func(name string) (string, bool) {
		v, ok := map[string]string{"OPENAI_BASE_URL": environment.URL + "/v1", "OUR_KEY": "secret-of-the-file"}[name]
		return v, ok
	}
	for keys, want := range map[string]string{"keys: [{name: a, env: OUR_KEY}]": "file Bearer secret-of-the-file", "passthrough: true": "environment Bearer own"} {
		text := "upstreams: {default: {url: \"" + file.URL + "/v1\", " + keys + "}}\n"
		if err := os.WriteFile("rebound.yaml", []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		got, errs, code := runAsking(env, "/embeddings", "{}", "--config", "rebound.yaml")
		if code != 0 || got != want {
			t.Errorf("%s: exit code %d: %q, want %q: %s", keys, code, got, want, errs)
		}
	}
}

// The summary counts what was done, not what was only observed, however the log is written.
func TestTally(t *testing.T) {
	var n tally
	for _, piece := range []string{
		`{"event":"stream_resumed"}` + "\n" + `{"event":"stream_`, `resumed"}` + "\n" + "no JSON\n",
		`{"event":"error_recovery_attempt","strategy":"wait"}` + "\n" + `{"event":"error_recovery_attempt","strategy":"resend","observed":true}` + "\n",
		`{"event":"error_recovery_attempt","strategy":"reask"}` + "\n" + `{"event":"error_recovery_attempt","strategy":"adapt_parameter"}` + "\n",
		`{"event":"guidance_injected","held_out":true}` + "\n" + `{"event":"guidance_injected","withheld":true}` + "\n" + `{"msg":"listening"}` + "\n",
		`{"event":"request_done","observed":true}` + "\n",
		`{"event":"trajectory_compressed","original_tokens":50000,"compressed_tokens":29400}` + "\n" + `{"event":"trajectory_compressed","original_tokens":51000,"compressed_tokens":30600}` + "\n",
	} {
		if _, err := n.Write([]byte(piece)); err != nil {
			t.Fatal(err)
		}
	}
	if got, want := n.String(), "2 cut streams continued, 1 rate limit waited for, 2 histories shortened, 1 unusable answer asked for again, 1 request adapted to its target, about 41,000 tokens not sent"; got != want {
		t.Errorf("%q, want %q", got, want)
	}
}
