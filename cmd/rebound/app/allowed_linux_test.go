package app_test

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"net/http"
	"os"
	"os/exec"
	"strings"
	"sync"
	"testing"

	"github.com/rebound-llm/rebound/cmd/rebound/app"
	"github.com/rebound-llm/rebound/configs"
	"github.com/rebound-llm/rebound/proxy/upstreamtest"
)

// A process with limited memory refuses bodies that it cannot hold, and survives.
func TestLimitedMemory(t *testing.T) {
	if testing.Short() || raceEnabled {
		t.Skip("hundreds of large bodies, in a limited address space")
	}
	up := upstreamtest.New(upstreamtest.Options{}).Start(t)
	cmd := exec.Command("sh", "-c", `ulimit -v 3000000; exec "$0" -test.run='^TestLimitedMemoryProcess$'`, os.Args[0])
	cmd.Env = append(os.Environ(), "REBOUND_TEST_UPSTREAM="+up.URL())
	cmd.Stderr = os.Stderr
	in, err1 := cmd.StdinPipe()
	out, err2 := cmd.StdoutPipe()
	if err1 != nil || err2 != nil || cmd.Start() != nil {
		t.Fatal("the process does not start", err1, err2)
	}
	defer func() { _ = cmd.Wait() }()
	defer in.Close()
	line, err := bufio.NewReader(out).ReadString('\n')
	if err != nil {
		t.Fatal(err)
	}
	url := strings.TrimSpace(line) + "/v1/chat/completions"
	ask := func(body string) int {
		resp, err := http.Post(url, "application/json", strings.NewReader(body))
		if err != nil {
			t.Log(err)
			return 0
		}
		defer resp.Body.Close()
		_, _ = io.Copy(io.Discard, resp.Body)
		return resp.StatusCode
	}
	large := `{"model":"slow@delay=2","messages":[{"role":"user","content":"` + strings.Repeat("word ", 400_000) + `"}]}`
	var all sync.WaitGroup
	var mu sync.Mutex
	got := map[int]int{}
	for range 400 {
		all.Go(func() {
			status := ask(large)
			mu.Lock()
			defer mu.Unlock()
			got[status]++
		})
	}
	all.Wait()
	if got[200] == 0 || got[503] == 0 || got[200]+got[503] != 400 {
		t.Errorf("statuses %v", got)
	}
	if status := ask(`{"model":"m","messages":[{"role":"user","content":"Hi"}]}`); status != 200 {
		t.Errorf("afterwards: %d", status)
	}
}

// TestLimitedMemoryProcess is the process of TestLimitedMemory.
func TestLimitedMemoryProcess(t *testing.T) {
	upstream := os.Getenv("REBOUND_TEST_UPSTREAM")
	if upstream == "" {
		t.Skip("it is a process of its own")
	}
	cfg, err := configs.Parse("test.yaml", []byte("{listen: 127.0.0.1:0, upstreams: {default: {url: "+upstream+"/v1}}}"), nil)
	if err != nil {
		t.Fatal(err)
	}
	a, err := app.New(cfg, io.Discard, "test")
	if err != nil {
		t.Fatal(err)
	}
	ctx, stop := context.WithCancel(context.Background())
	go func() {
		_, _ = io.Copy(io.Discard, os.Stdin)
		stop()
	}()
	fmt.Println("http://" + a.Addr().String())
	if err := a.Run(ctx); err != nil {
		t.Error(err)
	}
}
