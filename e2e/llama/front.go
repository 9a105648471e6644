package main

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/http/httputil"
	"net/url"
	"os"
	"os/exec"
	"slices"
	"strings"
	"time"

	"github.com/rebound-llm/rebound/proxy/upstreamtest"
)

// What the tests' server is told by the environment.
const (
	envServer  = "REBOUND_LLAMA_SERVER"
	envModel   = "REBOUND_LLAMA_MODEL"
	envGateway = "REBOUND_LLAMA_GATEWAY" // empty: straight
)

// front stands in the place of llama-server: it starts that with the options of the
// test, but another model and port, and the gateway before it. What is no completion
// goes to the server.
func front(ctx context.Context) error {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	args, listen := options(os.Args[1:])
	port, err := freePort()
	if err != nil {
		return err
	}
	start := func(env []string, name string, args ...string) {
		c := exec.CommandContext(ctx, name, args...)
		c.Env = append(os.Environ(), env...)
		c.Stdout, c.Stderr = os.Stdout, os.Stderr
		if err := c.Start(); err != nil {
			cancel(err)
			return
		}
		go func() { cancel(fmt.Errorf("%s ended: %w", name, c.Wait())) }()
	}
	start(nil, os.Getenv(envServer), append(args, "--model", os.Getenv(envModel), "--port", port)...)
	server := proxyTo("127.0.0.1:" + port)
	completions := server
	if gateway := os.Getenv(envGateway); gateway != "" {
		at, err := freePort()
		if err != nil {
			return err
		}
		start([]string{"ANTHROPIC_UPSTREAM_URL=http://127.0.0.1:" + port}, gateway, "serve", "--listen", "127.0.0.1:"+at, "--upstream", "http://127.0.0.1:"+port+"/v1")
		completions = proxyTo("127.0.0.1:" + at)
		if err := ready(ctx, "http://127.0.0.1:"+at+"/readyz"); err != nil {
			return err
		}
	}
	h := &http.Server{Addr: listen, ReadHeaderTimeout: time.Minute, Handler: http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		path, versioned := strings.CutPrefix(r.URL.Path, "/v1")
		if !versioned && !strings.HasPrefix(path, "/chat/completions") && !strings.HasPrefix(path, "/responses") {
			server.ServeHTTP(w, r)
			return
		}
		r.URL.Path = "/v1" + path
		completions.ServeHTTP(w, r)
	})}
	go func() { cancel(h.ListenAndServe()) }()
	<-ctx.Done()
	_ = h.Close()
	if err := context.Cause(ctx); !errors.Is(err, context.Canceled) {
		return err
	}
	return nil
}

// options are the server's as the test gives them without model and port, and where
// the test looks for it.
func options(args []string) (rest []string, listen string) {
	host, port := "127.0.0.1", ""
	for i := 0; i < len(args); i++ {
		switch flag := args[i]; {
		case flag == "--offline":
		case slices.Contains([]string{"--hf-repo", "--hf-file", "--model-url", "--model"}, flag):
			i++
		case flag == "--port":
			i++
			port = args[i]
		default:
			if flag == "--host" {
				host = args[i+1]
			}
			rest = append(rest, flag)
		}
	}
	return rest, net.JoinHostPort(host, port)
}

func proxyTo(address string) http.Handler {
	p := httputil.NewSingleHostReverseProxy(&url.URL{Scheme: "http", Host: address})
	p.FlushInterval = -1
	return p
}

// ready waits until an address answers.
func ready(ctx context.Context, address string) error {
	for {
		if res, err := http.Get(address); err == nil {
			res.Body.Close()
			if res.StatusCode == http.StatusOK {
				return nil
			}
		}
		select {
		case <-ctx.Done():
			return context.Cause(ctx)
		case <-time.After(20 * time.Millisecond):
		}
	}
}

func freePort() (string, error) {
	addr, err := upstreamtest.FreeAddr()
	if err != nil {
		return "", err
	}
	_, port, err := net.SplitHostPort(addr)
	return port, err
}
