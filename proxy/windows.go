package proxy

import (
	"bytes"
	"io"

	"github.com/rebound-llm/rebound/proxy/upstream"
	"github.com/rebound-llm/rebound/recovery"
)

// Windows learns the context windows that lists of models contain.
type Windows interface {
	ListWindow(t recovery.Target, tokens int)
}

// noteWindows reads the context windows in a list of models. Most servers list none.
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

// copyingBody records what is read of a body, up to maxModelList bytes.
type copyingBody struct {
	io.ReadCloser
	seen bytes.Buffer
}

func (o *copyingBody) Read(p []byte) (int, error) {
	n, err := o.ReadCloser.Read(p)
	if o.seen.Len()+n <= maxModelList {
		o.seen.Write(p[:n])
	}
	return n, err
}
