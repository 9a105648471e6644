package stream

import (
	"errors"
	"net/http"
	"strings"
	"testing"
	"testing/synctest"
	"time"
)

// TestWholeAfterKeepAlive: a client that reads a stream of keep-alives gets no whole answer into it.
func TestWholeAfterKeepAlive(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		x := newExchange()
		x.sink.KeepAwake(http.Header{}, true)
		defer x.sink.Close()
		w, broken := ReadWhole(respond(strings.NewReader(`{"id":"a","choices":[{"index":0,"message":{"content":"Hi"},"finish_reason":"stop"}]}`)), x.options())
		if broken != nil {
			t.Fatalf("%+v", broken)
		}
		time.Sleep(x.config.KeepAliveAfter + time.Second)
		if b := w.Deliver(t.Context()); b == nil || b.Client || !errors.Is(b.Err, ErrEnded) || strings.Contains(x.got(), "{") {
			t.Errorf("%+v: %q", b, x.got())
		}
	})
}
