package main

import (
	"fmt"
	"io"
	"maps"
	"net"
	"os"
	"slices"
	"strings"

	"github.com/tidwall/gjson"

	"github.com/rebound-llm/rebound/cmd/rebound/app"
	"github.com/rebound-llm/rebound/cmd/rebound/eventline"
	"github.com/rebound-llm/rebound/configs"
)

// isTerminal reports whether w is one, so that a person reads what is written there.
func isTerminal(w io.Writer) bool {
	f, ok := w.(*os.File)
	if !ok {
		return false
	}
	info, err := f.Stat()
	return err == nil && info.Mode()&os.ModeCharDevice != 0
}

// greet tells a person how to use a gateway that has just started.
func greet(w io.Writer, cfg *configs.Config, a *app.App) {
	scheme := "http://"
	if cfg.Proxy.TLS.Certificate != nil {
		scheme = "https://"
	}
	base := scheme + reachable(a.Addr().String())
	fmt.Fprintf(w, "Rebound %s is ready.\n\n  set       export OPENAI_BASE_URL=%s/v1\n", buildVersion(), base)
	names := slices.Sorted(maps.Keys(cfg.Upstreams))
	if slices.ContainsFunc(names, func(name string) bool { return cfg.Upstreams[name].Messages() }) {
		fmt.Fprintf(w, "            export ANTHROPIC_BASE_URL=%s\n", base)
	}
	fmt.Fprintf(w, "  page      %s/rebound/\n", scheme+reachable(a.AdminAddr().String()))
	for _, name := range names {
		u, credential := cfg.Upstreams[name], "no credential"
		switch {
		case len(u.Keys) > 0:
			credential = fmt.Sprintf("%d of its own keys", len(u.Keys))
		case u.Passthrough:
			credential = "the client's own key"
		}
		fmt.Fprintf(w, "  upstream  %s: %s (%s)\n", name, u.URL, credential)
	}
	fmt.Fprintf(w, "\nIt prints a line when it recovers something. Ctrl-C stops it.\n\n")
}

// reachable is an address as a client on this machine can use it.
func reachable(address string) string {
	host, port, err := net.SplitHostPort(address)
	if ip := net.ParseIP(host); err == nil && (host == "" || ip != nil && ip.IsUnspecified()) {
		return net.JoinHostPort("127.0.0.1", port)
	}
	return address
}

// people writes the lines of the log, which are JSON, for a person. It leaves out what greet has said.
type people struct{ out io.Writer }

// Write implements io.Writer; p is one whole line.
func (w people) Write(p []byte) (int, error) {
	line := gjson.ParseBytes(p)
	words := eventline.String(line, "msg")
	if msg := line.Get("msg").Str; msg != "" {
		if line.Get("level").Str == "INFO" && (strings.HasPrefix(msg, "listening") || msg == "upstream") {
			return len(p), nil
		}
		words = msg + words
	}
	_, err := fmt.Fprintln(w.out, line.Get("time").Time().Local().Format("15:04:05"), words)
	return len(p), err
}
