package proxy

import (
	"bytes"
	"io"

	"github.com/rebound-llm/rebound/proxy/upstream"
	"github.com/rebound-llm/rebound/recovery"
)

// Windows learn the context windows that lists of models tell.
type Windows interface {
	ListWindow(t recovery.Target, tokens int)
}

// noteWindows reads a list of models for their windows. Most servers tell none.
func (k *Core) noteWindows(name string, list []byte) {
	if k.Windows == nil {
		return
	}
	for id, window := range upstream.ListedModels(list) {
		if window > 0 && len(id) <= maxModel {
			k.Windows.ListWindow(recovery.Target{Upstream: name, Model: id}, window)
		}
	}
}

// overheard copies what is read of a body, up to a limit.
type overheard struct {
	io.ReadCloser
	seen bytes.Buffer
}

func (o *overheard) Read(p []byte) (int, error) {
	n, err := o.ReadCloser.Read(p)
	if o.seen.Len()+n <= maxModelList {
		o.seen.Write(p[:n])
	}
	return n, err
}
