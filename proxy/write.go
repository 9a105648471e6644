package proxy

import (
	"net/http"
	"time"

	"github.com/labstack/echo/v4"
)

// watchWrites ends an answer whose client accepts no byte of it for limits.write_stall.
func (s *Server) watchWrites(next echo.HandlerFunc) echo.HandlerFunc {
	return func(c echo.Context) error {
		w := c.Response().Writer
		watched := &watchedWriter{
			ResponseWriter: w, rc: http.NewResponseController(w),
			stall: s.core.Load().Config.Limits.WriteStall, armed: c.Request().ProtoMajor > 1,
		}
		if !watched.armed {
			watched.allow() // the deadline of the previous request may have passed
		}
		c.Response().Writer = watched
		if err := next(c); err != nil {
			c.Error(err)
		}
		watched.allow() // for the rest that net/http writes itself
		return nil
	}
}

// maxWrite is the largest write, in bytes, that must finish within one deadline.
const maxWrite = 256 << 10

// watchedWriter gives each write a deadline. net/http's own WriteTimeout does not fit: it limits a
// whole answer, and streams may have any length.
type watchedWriter struct {
	http.ResponseWriter
	rc    *http.ResponseController
	stall time.Duration
	armed bool      // HTTP/2: a deadline that passes ends the answer even between writes
	by    time.Time // the current deadline
}

// allow makes sure that the next write has at least the whole time, and at most half of it more.
func (w *watchedWriter) allow() {
	if now := time.Now(); w.by.Sub(now) < w.stall {
		w.by = now.Add(w.stall + w.stall/2)
		_ = w.rc.SetWriteDeadline(w.by) // not every connection has one
	}
}

// disarm removes the deadline after a write on HTTP/2: the next write may come much later.
func (w *watchedWriter) disarm() {
	if w.armed {
		w.by = time.Time{}
		_ = w.rc.SetWriteDeadline(w.by)
	}
}

// WriteHeader keeps net/http from guessing a content type that an upstream did not send.
func (w *watchedWriter) WriteHeader(status int) {
	if h := w.Header(); h["Content-Type"] == nil {
		h["Content-Type"] = nil
	}
	w.ResponseWriter.WriteHeader(status)
}

// Write implements io.Writer.
func (w *watchedWriter) Write(b []byte) (n int, err error) {
	defer w.disarm()
	for {
		w.allow()
		m, err := w.ResponseWriter.Write(b[:min(len(b), maxWrite)])
		n, b = n+m, b[m:]
		if err != nil || len(b) == 0 {
			return n, err
		}
	}
}

// FlushError implements what [http.ResponseController.Flush] looks for.
func (w *watchedWriter) FlushError() error {
	w.allow()
	defer w.disarm()
	return w.rc.Flush()
}

// Unwrap is for [http.ResponseController].
func (w *watchedWriter) Unwrap() http.ResponseWriter { return w.ResponseWriter }
