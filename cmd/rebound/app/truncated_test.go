package app_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/rebound-llm/rebound/proxy/upstreamtest"
)

// A local server that reads only the last 4,096 tokens of a prompt, and says nothing, is reported; one whose window is
// configured gets no more than that.
func TestSilentlyTruncated(t *testing.T) {
	t.Parallel()
	up := upstreamtest.New(upstreamtest.Options{As: "silent"}).Start(t)
	g := launch(t, fmt.Sprintf("listen: 127.0.0.1:0\nupstreams: {default: {url: %q, passthrough: true}}\nrepair: {enabled: false}\n", up.URL()+"/v1")+
		"models: {known: {targets: [{upstream: default, window: 4096}]}}\n")
	for _, model := range []string{"unknown", "known"} {
		k := conversation{model: model, tools: []string{shell, files}, messages: []string{message("system", "You are an agent."), user("Read all files of " + model + ".")}}
		for i := range 8 {
			id := fmt.Sprint("c", i)
			k = k.with(calls(call(id, "read", fmt.Sprintf(`{"path":"f%d.txt"}`, i))), result(id, strings.Repeat(fmt.Sprintf("The line of file %d says nothing new. ", i), 170)))
			if i == 7 || model == "known" {
				g.must(k.body())
			}
		}
	}
	truncated := func(line map[string]any) bool { return line["event"] == "context_truncated" }
	eventually(t, 10*time.Second, "the truncation is reported", func() bool { return len(g.log.lines(t, truncated)) > 0 })
	for _, line := range g.log.lines(t, truncated) {
		if line["target"] != "default/unknown" || !strings.HasPrefix(line["cause"].(string), "the upstream read 4096 tokens of about ") {
			t.Errorf("reported: %v", line)
		}
	}
}
