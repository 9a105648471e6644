package telemetry

import (
	"fmt"
	"io"
	"log/slog"
	"sync"

	"github.com/rebound-llm/rebound/proxy/redact"
)

// output writes the log lines: every Write is one whole line. A line that cannot be written (a full
// disk, a closed pipe) is only counted, because there is no other place to report it.
type output struct {
	mu      sync.Mutex
	w       io.Writer
	dropped func(n int)
}

// Write implements io.Writer.
func (o *output) Write(p []byte) (int, error) {
	o.mu.Lock()
	defer o.mu.Unlock()
	n, err := o.w.Write(p)
	if err != nil {
		o.dropped(1)
	}
	return n, err
}

// handler returns the slog handler of the configured format.
func handler(format string, w io.Writer, opts *slog.HandlerOptions) slog.Handler {
	if format == "text" {
		return slog.NewTextHandler(w, opts)
	}
	return slog.NewJSONHandler(w, opts)
}

// ownKeys makes the process's own lines consistent with those of events: UTC, and no secrets in text
// of libraries and the system.
func ownKeys(groups []string, a slog.Attr) slog.Attr {
	if len(groups) == 0 && a.Key == slog.TimeKey {
		return inUTC(a)
	}
	switch a.Value.Kind() {
	case slog.KindString:
		if a.Key != "request" && a.Key != "session" { // ids look as random as secrets
			a.Value = slog.StringValue(redact.Text(a.Value.String()))
		}
	case slog.KindAny:
		switch v := a.Value.Any().(type) {
		case error:
			a.Value = slog.StringValue(redact.Text(v.Error()))
		case fmt.Stringer:
			a.Value = slog.StringValue(redact.Text(v.String()))
		}
	}
	return a
}
