package proxy

import (
	"net/http"
	"time"

	"github.com/labstack/echo/v4"
)

// watchWrites ends an answer whose client takes no byte of it for limits.write_stall.
func (s *Server) watchWrites(next echo.HandlerFunc) echo.HandlerFunc {
	return func(c echo.Context) error {
		w := c.Response().Writer
		watched := &watchedWriter{ResponseWriter: w, rc: http.NewResponseController(w), stall: s.core.Load().Config.Limits.WriteStall}
		watched.allow() // a deadline of the request before is over
		c.Response().Writer = watched
		return next(c)
	}
}

// maxWrite is the largest write that has to end within one time-out.
const maxWrite = 256 << 10

// watchedWriter gives each write a deadline. net/http's own WriteTimeout is of no
// use here: it bounds a whole answer, and streams may be as long as they like.
type watchedWriter struct {
	http.ResponseWriter
	rc    *http.ResponseController
	stall time.Duration
	by    time.Time // the deadline that is set
}

// allow sees to it that the next write has the whole time, and at most half of it more.
func (w *watchedWriter) allow() {
	if now := time.Now(); w.by.Sub(now) < w.stall {
		w.by = now.Add(w.stall + w.stall/2)
		_ = w.rc.SetWriteDeadline(w.by) // not every connection has one
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
	return w.rc.Flush()
}

// Unwrap is for [http.ResponseController].
func (w *watchedWriter) Unwrap() http.ResponseWriter { return w.ResponseWriter }
