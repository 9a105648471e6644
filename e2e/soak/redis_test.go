//go:build linux

package soak_test

import (
	"context"
	"fmt"
	"math/rand/v2"
	"net"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/rebound-llm/rebound/store/storetest"
)

// stores are the servers of all legs, and what happens to them. Its methods are
// for the test's goroutine.
type stores struct {
	t        *testing.T
	rand     *rand.Rand
	single   *storetest.Server
	sentinel *storetest.Sentinel
	cluster  []*storetest.Server
}

func startStores(t *testing.T, r *rand.Rand) *stores {
	return &stores{t: t, rand: r, single: storetest.StartRedis(t), sentinel: storetest.StartSentinel(t), cluster: storetest.StartCluster(t)}
}

// legs are the gateways' stores, as their configurations say.
func (s *stores) legs() []*leg {
	return []*leg{
		{name: "memory"},
		{name: "Redis", store: fmt.Sprintf("store: {redis: {url: %q}}", s.single.URL())},
		{name: "Sentinel", store: fmt.Sprintf("store: {redis: {addresses: [%q], master_name: %s}}", s.sentinel.Watcher.Addr(), s.sentinel.Name)},
		{name: "Cluster", store: fmt.Sprintf("store: {redis: {addresses: [%q, %q], cluster: true}}", s.cluster[0].Addr(), s.cluster[1].Addr())},
	}
}

// kill ends the single server, which comes back with nothing.
func (s *stores) kill(ctx context.Context) {
	s.single.Kill()
	wait(ctx, time.Duration(500+s.rand.IntN(1500))*time.Millisecond)
	s.single.Restart()
}

// pause stops the single server for a while. It answers late what it was asked.
func (s *stores) pause(ctx context.Context) {
	s.single.Pause()
	wait(ctx, time.Duration(300+s.rand.IntN(1500))*time.Millisecond)
	s.single.Resume()
}

// failover kills the master that Sentinel watches, waits until a replica has
// its place, and brings it back as a replica.
func (s *stores) failover(ctx context.Context) {
	master := s.sentinel.Master()
	if master == nil {
		return // the last failover is not over
	}
	master.Kill()
	storetest.Eventually(s.t, "a replica is the master", time.Minute, func() bool { return s.sentinel.Master() != nil || ctx.Err() != nil })
	master.Restart()
}

// pauseNode stops one of the Cluster's nodes, for less than it takes to be given up.
func (s *stores) pauseNode(ctx context.Context) {
	node := s.cluster[s.rand.IntN(len(s.cluster))]
	node.Pause()
	wait(ctx, time.Duration(300+s.rand.IntN(1000))*time.Millisecond)
	node.Resume()
}

// moveSlot moves a slot that holds keys from one of the Cluster's nodes to
// another, with traffic while half of it is here and half there.
func (s *stores) moveSlot(ctx context.Context) {
	nodes := make([]*redis.Client, len(s.cluster))
	for i, srv := range s.cluster {
		nodes[i] = redis.NewClient(&redis.Options{Addr: srv.Addr()})
		defer nodes[i].Close()
	}
	from := s.rand.IntN(len(nodes))
	to := (from + 1 + s.rand.IntN(len(nodes)-1)) % len(nodes)
	key, err := nodes[from].RandomKey(ctx).Result()
	if err != nil {
		return // it has none yet
	}
	do := func(node int, args ...any) *redis.Cmd {
		cmd := nodes[node].Do(context.Background(), args...)
		if cmd.Err() != nil {
			s.t.Errorf("moving a slot: %v: %v", args, cmd.Err())
		}
		return cmd
	}
	slot, err := nodes[from].ClusterKeySlot(ctx, key).Result()
	if err != nil {
		return
	}
	source, _ := do(from, "CLUSTER", "MYID").Text()
	target, _ := do(to, "CLUSTER", "MYID").Text()
	_, port, _ := net.SplitHostPort(s.cluster[to].Addr())
	do(to, "CLUSTER", "SETSLOT", slot, "IMPORTING", source)
	do(from, "CLUSTER", "SETSLOT", slot, "MIGRATING", target)
	for {
		keys, err := do(from, "CLUSTER", "GETKEYSINSLOT", slot, 10).StringSlice()
		if err != nil || len(keys) == 0 {
			break
		}
		args := []any{"MIGRATE", "127.0.0.1", port, "", 0, 5000, "KEYS"}
		for _, k := range keys {
			args = append(args, k)
		}
		do(from, args...)
		wait(ctx, 200*time.Millisecond)
	}
	wait(ctx, 300*time.Millisecond)
	do(to, "CLUSTER", "SETSLOT", slot, "NODE", target)
	for node := range nodes {
		do(node, "CLUSTER", "SETSLOT", slot, "NODE", target)
	}
}

// wait lets time pass, unless the test is over.
func wait(ctx context.Context, d time.Duration) {
	select {
	case <-ctx.Done():
	case <-time.After(d):
	}
}
