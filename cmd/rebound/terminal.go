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
	"github.com/rebound-llm/rebound/recovery/transcript"
)

// isTerminal reports whether w is a character device, such as a terminal, but not the null device.
func isTerminal(w io.Writer) bool {
	f, ok := w.(*os.File)
	if !ok {
		return false
	}
	info, err := f.Stat()
	null, _ := os.Stat(os.DevNull) // nil on an error, which equals no file
	return err == nil && info.Mode()&os.ModeCharDevice != 0 && !os.SameFile(info, null)
}

// printBanner prints how to use a gateway that has just started.
func printBanner(w io.Writer, cfg *configs.Config, a *app.App) {
	scheme := "http://"
	if cfg.Proxy.TLS.Certificate != nil {
		scheme = "https://"
	}
	base := scheme + localAddress(a.Addr().String())
	fmt.Fprintf(w, "Rebound %s is ready.\n\n  set       export OPENAI_BASE_URL=%s/v1\n", buildVersion(), base)
	names := slices.Sorted(maps.Keys(cfg.Upstreams))
	if cfg.DefaultOf(transcript.Anthropic) != "" {
		fmt.Fprintf(w, "            export ANTHROPIC_BASE_URL=%s\n", base)
	}
	fmt.Fprintf(w, "  page      %s/rebound/\n", scheme+localAddress(a.AdminAddr().String()))
	for _, name := range names {
		u, credential := cfg.Upstreams[name], "no credential"
		switch {
		case len(u.Keys) > 0:
			credential = fmt.Sprintf("%d keys of the gateway", len(u.Keys))
		case u.Passthrough:
			credential = "the client's credential"
		}
		fmt.Fprintf(w, "  upstream  %s: %s (%s)\n", name, u.URL, credential)
	}
	fmt.Fprintf(w, "\nThe gateway prints a line for each recovery. Press Ctrl-C to stop it.\n\n")
}

// localAddress returns the address for a client on this machine: 127.0.0.1 in place of all interfaces.
func localAddress(address string) string {
	host, port, err := net.SplitHostPort(address)
	if ip := net.ParseIP(host); err == nil && (host == "" || ip != nil && ip.IsUnspecified()) {
		return net.JoinHostPort("127.0.0.1", port)
	}
	return address
}

// terminalLog writes the lines of a JSON log as plain text, without those that repeat printBanner.
type terminalLog struct{ out io.Writer }

// Write implements io.Writer; p is one whole line.
func (w terminalLog) Write(p []byte) (int, error) {
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
