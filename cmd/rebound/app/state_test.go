//go:build unix

package app_test

import (
	"context"
	"fmt"
	"net/http"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/rebound-llm/rebound/store/storetest"
)

// At every replica, only the client that received an id may use it, from the end of its answer on. If Redis does not
// answer who owns an id, no client may.
func TestReplicasShareOwners(t *testing.T) {
	t.Parallel()
	srv := storetest.StartRedis(t)
	p := pair(t, shared(t, srv.URL(), outage), modelMap("m", "two m"), "auth: {keys: [{name: alice, env: KEY_A}, {name: bob, env: KEY_B}]}")
	list := [2]*gateway{p.one, p.two}
	goOn := func(g *gateway, id, key string) reply {
		return g.at(http.MethodPost, "", fmt.Sprintf(`{"model":"m","previous_response_id":%q,"input":"Go on."}`, id), key)
	}
	last := p.one.at(http.MethodPost, "", `{"model":"m","input":"Hello."}`, keyA)
	for i := range 10 {
		id := last.field("id").Str
		if last.status != http.StatusOK || id == "" {
			t.Fatalf("response %d: %v", i, last)
		}
		before := count(p.up, "m")
		for _, g := range list {
			if r := goOn(g, id, keyB); r.status != http.StatusBadRequest || r.field("error.code").Str != "previous_response_not_found" {
				t.Errorf("another client goes on from response %d: %v", i, r)
			}
		}
		if n := count(p.up, "m"); n != before {
			t.Errorf("%d requests of another client reached the upstream", n-before)
		}
		last = goOn(list[(i+1)%2], id, keyA)
	}
	srv.Kill()
	if r := goOn(p.two, last.field("id").Str, keyA); r.status != http.StatusBadRequest { // the first replica made it
		t.Errorf("without Redis, a response of another replica: %v", r)
	}
	if r := goOn(p.one, last.field("id").Str, keyA); r.status != http.StatusOK {
		t.Errorf("without Redis, a response of this replica: %v", r)
	}
}

// A request reads everything it needs of a session in one read, and writes all changes in one write. As long as one replica
// serves a conversation, it does not read its edits.
func TestSessionTrips(t *testing.T) {
	t.Parallel()
	p := startStoreCounter(t, storetest.StartRedis(t).Addr())
	up := acceptingUpstream(t)
	_, list := twoReplicas(t, up, "redis://"+p.addr+"/0", "fit: {min_tokens: 1000}")
	acceptCredential(t, list...)
	polls := func(n int) string {
		k := history.with(calls(call("call_l", "bash", `{"command":"cat log"}`)), result("call_l", longResult(1)))
		for i := range n {
			id := fmt.Sprintf("call_p%d", i)
			k = k.with(calls(call(id, "bash", `{"command":"sleep 10; kubectl wait --for=condition=available deployment/web --timeout=60s"}`)),
				result(id, "error: timed out waiting for the condition on deployments/web\n\nCommand exited with code 1"))
		}
		return k.body()
	}
	for n := 2; n <= 6; n++ {
		before, wrote := p.named.Load(), p.wrote.Load()
		mustReachModel(t, list[n%2].must(polls(n)))
		if reads, writes := p.named.Load()-before-(p.wrote.Load()-wrote), p.wrote.Load()-wrote; reads != 1 || writes != 1 {
			t.Errorf("request %d: %d reads and %d writes", n, reads, writes)
		}
	}
}

// agents runs sessions of five failing turns each until end is called, alternating between the gateways. Every request must be
// answered, and soon, whatever happens to the store.
func agents(t *testing.T, list ...*gateway) (end func()) {
	ctx, cancel := context.WithCancel(t.Context())
	stalled := storetest.Stalls(t)
	var wg sync.WaitGroup
	var mu sync.Mutex
	var n int
	var slowest time.Duration
	for a := range 4 {
		wg.Go(func() {
			for s := 0; ctx.Err() == nil; s++ {
				for turn := 1; turn <= 5; turn++ {
					r := list[(turn+a)%len(list)].ask(context.WithoutCancel(ctx), cutTo(a, s, turn))
					if !r.ok() || r.answerText() != "Once more." && r.recovery() != "session_stopped" {
						t.Errorf("agent %d, session %d, turn %d: %v", a, s, turn, r)
					}
					mu.Lock()
					n++
					slowest = max(slowest, r.took)
					mu.Unlock()
					time.Sleep(5 * time.Millisecond)
				}
			}
		})
	}
	return func() {
		cancel()
		wg.Wait()
		t.Logf("%d requests, the slowest took %v", n, slowest)
		if most := time.Second/2 + stalled(); n < 100 || slowest > most {
			t.Errorf("%d requests, the slowest took %v, more than %v", n, slowest, most)
		}
	}
}

// cutTo is a request after so many failing turns, from a client that cuts its history.
func cutTo(agent, session, turns int) string {
	k := sliding(turns)
	k.messages[len(history.messages)-1] = user(fmt.Sprintf("Task %d of agent %d.", session, agent))
	return k.body()
}

// stopsAtTheFifth checks that two replicas still share session state, with alternating requests.
func stopsAtTheFifth(t *testing.T, name string, list ...*gateway) {
	t.Helper()
	storetest.Eventually(t, name+": a session is stopped at its fifth failing turn", time.Minute, func() bool {
		session := int(time.Now().UnixNano())
		for turn := 1; turn <= 5; turn++ {
			r := list[turn%2].must(cutTo(-1, session, turn))
			if stopped := r.recovery() == "session_stopped"; stopped != (turn == 5) {
				return false
			}
		}
		return true
	})
}

// Twenty faults of Redis, of ten kinds, while agents alternate between two replicas: no request fails, and afterwards
// the replicas share as before.
func TestTwentyFaults(t *testing.T) {
	if testing.Short() {
		t.Skip("it takes half a minute")
	}
	srv := storetest.StartRedis(t)
	up := acceptingUpstream(t)
	config := up.config(fmt.Sprintf("store: {redis: {url: %q}}", srv.URL()))
	list := []*gateway{launch(t, config), launch(t, config)}
	acceptCredential(t, list...)
	end := agents(t, list...)
	for i := range 20 {
		pause := func() { time.Sleep(time.Duration(100+50*i) * time.Millisecond) }
		switch i % 10 {
		case 0:
			srv.Kill()
			pause()
			srv.Restart()
		case 1: // longer than a request may take
			srv.Pause()
			time.Sleep(time.Second)
			srv.Resume()
		case 2: // requests are never answered
			srv.Pause()
			time.Sleep(time.Second)
			srv.Restart()
		case 3:
			srv.Do("CLIENT", "KILL", "TYPE", "normal")
		case 4:
			srv.Do("FLUSHALL")
		case 5:
			srv.Do("SCRIPT", "FLUSH")
		case 6: // it takes no writes
			srv.Do("CONFIG", "SET", "maxmemory", "1")
			pause()
			srv.Do("CONFIG", "SET", "maxmemory", "0")
		case 7:
			srv.Do("REPLICAOF", "127.0.0.1", "1")
			pause()
			srv.Do("REPLICAOF", "NO", "ONE")
		case 8:
			srv.Do("CLIENT", "PAUSE", "300", "ALL")
		case 9: // short outages
			for range 5 {
				srv.Pause()
				time.Sleep(60 * time.Millisecond)
				srv.Resume()
				time.Sleep(20 * time.Millisecond)
			}
		}
		pause()
	}
	stopsAtTheFifth(t, "after twenty faults", list...)
	end()
}

// When the master of a Sentinel or Cluster is gone, no request fails, and the replicas share again after the failover.
func TestFailovers(t *testing.T) {
	if testing.Short() {
		t.Skip("it takes half a minute")
	}
	for _, name := range []string{"Sentinel", "Cluster"} {
		t.Run(name, func(t *testing.T) {
			var store string
			var kill, wait func()
			if name == "Sentinel" {
				s := storetest.StartSentinel(t)
				store = fmt.Sprintf("addresses: [%q], master_name: %s", s.Watcher.Addr(), s.Name)
				kill = s.Servers[0].Kill
				wait = func() {
					storetest.Eventually(t, "a replica is the master", time.Minute, func() bool { return s.Master() != nil })
				}
			} else {
				nodes := storetest.StartCluster(t)
				r := storetest.Replicate(t, nodes, nodes[0])
				store = fmt.Sprintf("addresses: [%q, %q], cluster: true", nodes[0].Addr(), nodes[1].Addr())
				kill = nodes[0].Kill
				wait = func() {
					storetest.Eventually(t, "the replica is a master", time.Minute, func() bool {
						info, err := r.Command("INFO", "replication")
						return err == nil && strings.Contains(info, "role:master")
					})
				}
			}
			up := acceptingUpstream(t)
			config := up.config("store: {redis: {" + store + "}}")
			list := []*gateway{launch(t, config), launch(t, config)}
			acceptCredential(t, list...)
			stopsAtTheFifth(t, "before", list...)
			end := agents(t, list...)
			time.Sleep(300 * time.Millisecond)
			kill()
			wait()
			stopsAtTheFifth(t, "after", list...)
			end()
		})
	}
}
