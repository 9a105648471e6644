package app

import (
	"cmp"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/rebound-llm/rebound/configs"
	"github.com/rebound-llm/rebound/proxy/admin"
	"github.com/rebound-llm/rebound/proxy/redact"
	"github.com/rebound-llm/rebound/proxy/telemetry"
	"github.com/rebound-llm/rebound/store"
)

// boardReplicas is the board of the gateways that share a store. Its fields are an admin.Replica in
// JSON for each replica id.
const boardReplicas = "replicas"

// Each replica posts a heartbeat every replicaEvery, which expires after replicaGone.
const (
	replicaEvery = 5 * time.Second
	replicaGone  = 20 * time.Second
)

// replicaState is guarded by App.mu.
type replicaState struct {
	reloadError    string    // why the latest configuration is not in force, "" if it is
	reloadFailed   time.Time // when reloadError was set
	storeDownSince time.Time // zero while the store answers
}

// fingerprint identifies a configuration, to compare those of replicas. Addresses do not count: each replica has its own.
func fingerprint(cfg *configs.Config) string {
	same := *cfg
	same.Proxy.Listen, same.Proxy.Admin.Listen = "", ""
	sum := sha256.Sum256([]byte(same.Redacted()))
	return hex.EncodeToString(sum[:4])
}

// heartbeat posts this replica to the others until stopHeartbeat is closed, and detects outages of the store.
func (a *App) heartbeat() {
	tick := time.NewTicker(replicaEvery)
	defer tick.Stop()
	defer close(a.heartbeatDone)
	defer a.mirror.Remove(boardReplicas, a.hub.Replica())
	for {
		me := a.self()
		raw, _ := json.Marshal(me) // texts and a time always marshal
		a.mirror.Post(boardReplicas, store.Field{Name: me.ID, Value: raw, Until: time.Now().Add(replicaGone)}, false)
		a.spending.post(a.mirror, me.ID)
		select {
		case <-tick.C:
		case <-a.stopHeartbeat:
			a.spending.post(a.mirror, me.ID)
			return
		}
	}
}

// self describes this replica for the others.
func (a *App) self() admin.Replica {
	a.mu.Lock()
	defer a.mu.Unlock()
	up := a.shared == nil || a.shared.Up()
	switch {
	case up:
		a.state.storeDownSince = time.Time{}
	case a.state.storeDownSince.IsZero():
		a.state.storeDownSince = time.Now()
	}
	return admin.Replica{ID: a.hub.Replica(), Version: a.version, Config: fingerprint(a.config), Address: a.listener.Addr().String(), Started: a.started.UTC(), StoreUp: up, Refused: a.state.reloadError}
}

// replicas lists the gateways that share the store, this one first.
func (a *App) replicas() []admin.Replica {
	list := []admin.Replica{a.self()}
	list[0].Self = true
	a.mirror.Each(boardReplicas, func(f store.Field) bool {
		var r admin.Replica
		if json.Unmarshal(f.Value, &r) == nil && r.ID == f.Name && r.ID != list[0].ID {
			list = append(list, r)
		}
		return true
	})
	slices.SortFunc(list[1:], func(x, y admin.Replica) int { return cmp.Compare(x.ID, y.ID) })
	return list
}

// replicaCount returns the number of gateways that share the store. Requests call it, so it does not describe them.
func (a *App) replicaCount() int {
	n := 1
	a.mirror.Each(boardReplicas, func(f store.Field) bool {
		if f.Name != a.hub.Replica() {
			n++
		}
		return true
	})
	return n
}

// condition returns the state of this replica for the metrics and the page.
func (a *App) condition() telemetry.Condition {
	list := a.replicas()
	a.mu.Lock()
	h := a.state
	a.mu.Unlock()
	c := telemetry.Condition{StoreUp: list[0].StoreUp, Reloaded: h.reloadError == "", Replicas: len(list)}
	if !c.StoreUp {
		c.Trouble = append(c.Trouble, fmt.Sprintf("The store has not answered since %s: this replica continues with what it knows and does not see other replicas.", h.storeDownSince.UTC().Format("15:04:05 MST")))
	}
	if !c.Reloaded {
		c.Trouble = append(c.Trouble, fmt.Sprintf("The configuration of %s was refused, the previous one stays in force: %s", h.reloadFailed.UTC().Format("15:04:05 MST"), h.reloadError))
	}
	for what, of := range map[string]func(admin.Replica) string{
		"configurations": func(r admin.Replica) string { return r.Config }, "versions": func(r admin.Replica) string { return r.Version }} {
		var seen []string
		for _, r := range list {
			seen = append(seen, of(r))
		}
		slices.Sort(seen)
		if seen = slices.Compact(seen); len(seen) > 1 {
			c.Trouble = append(c.Trouble, fmt.Sprintf("The %d replicas have different %s: %s.", len(list), what, strings.Join(seen, ", ")))
		}
	}
	slices.Sort(c.Trouble)
	return c
}

// setReloadError records why a new configuration is not in force; nil records that it is.
func (a *App) setReloadError(err error) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.state = (replicaState{storeDownSince: a.state.storeDownSince}); err != nil {
		a.state.reloadError, a.state.reloadFailed = redact.Text(err.Error()), time.Now()
	}
}
