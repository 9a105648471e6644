// Package reverseproxy is the yardstick of the benchmark: the standard
// library's httputil.ReverseProxy, tuned as well as it can be by configuration
// alone. A gateway in Go that costs less than this does not pay for what it adds.
package reverseproxy

import (
	"net"
	"net/http"
	"net/http/httputil"
	"net/url"
	"os"
	"runtime/debug"
	"sync"
)

// Serve proxies to upstream (http://host:port) until l is closed; it returns
// the server's error. It sets the process's GOGC to 400, as Rebound does, unless
// the environment says otherwise.
func Serve(l net.Listener, upstream *url.URL) error {
	if os.Getenv("GOGC") == "" {
		debug.SetGCPercent(400)
	}
	proxy := &httputil.ReverseProxy{
		Rewrite: func(r *httputil.ProxyRequest) { r.SetURL(upstream) },
		Transport: &http.Transport{
			MaxIdleConnsPerHost: 4096, // of 2 by default, beyond which it reconnects for every request
			DisableCompression:  true,
		},
		FlushInterval: 0, // event streams are flushed per write all the same; -1 costs JSON answers a second write
		BufferPool:    &buffers{},
	}
	return (&http.Server{Handler: proxy}).Serve(l)
}

// buffers is the pool that ReverseProxy does without by default.
type buffers struct{ pool sync.Pool }

var _ httputil.BufferPool = (*buffers)(nil)

// bufferSize is what ReverseProxy itself would allocate.
const bufferSize = 32 << 10

// Get returns a buffer of 32 KiB.
func (b *buffers) Get() []byte {
	if p, ok := b.pool.Get().(*[bufferSize]byte); ok {
		return p[:]
	}
	return make([]byte, bufferSize)
}

// Put takes back what Get returned.
func (b *buffers) Put(p []byte) { b.pool.Put((*[bufferSize]byte)(p)) }
