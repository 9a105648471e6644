package eventline_test

import (
	"testing"

	"github.com/tidwall/gjson"

	"github.com/rebound-llm/rebound/cmd/rebound/eventline"
)

func TestString(t *testing.T) {
	ev := gjson.Parse(`{"id":"1","time":"2026-03-01T02:00:00Z","level":"INFO","event":"request_done","request":"r","model":"a b\u001b[31m","upstream_key":"client-1",` +
		`"status":200,"usage":{"input":7},"attempts":[{}]}`)
	if got, want := eventline.String(ev, "request"), `request_done model="a b\x1b[31m" status=200 usage={"input":7}`; got != want {
		t.Errorf("%s\nwant %s", got, want)
	}
}
