package app

import (
	"io"
	"testing"

	"github.com/rebound-llm/rebound/configs"
)

// Each request with a budget asks for the number of replicas, so counting them neither waits for a reload, which holds the
// lock while it builds, nor describes any of them.
func TestReplicaCount(t *testing.T) {
	cfg, err := configs.Parse("test.yaml", []byte("listen: \"127.0.0.1:0\"\nupstreams: {default: {url: \"http://127.0.0.1:9/v1\"}}"), func(string) (string, bool) { return "", false })
	if err != nil {
		t.Fatal(err)
	}
	a, err := New(cfg, io.Discard, "test")
	if err != nil {
		t.Fatal(err)
	}
	defer a.close()
	if n := testing.AllocsPerRun(100, func() {
		if n := a.replicaCount(); n != 1 {
			t.Errorf("%d replicas", n)
		}
	}); n > 10 {
		t.Errorf("counting the replicas costs %v allocations", n)
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	_ = a.replicaCount()
}
