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

// boardReplicas is the board of the gateways that share a store: field is a replica's id, value what
// admin.Replica says.
const boardReplicas = "replicas"

// Each replica says every replicaEvery that it is there; one that was not heard of for replicaGone is none.
const (
	replicaEvery = 5 * time.Second
	replicaGone  = 20 * time.Second
)

// health is what a gateway knows of itself beside its requests; App.mu guards it.
type health struct {
	refused string    // why the latest change of the configuration is not in force; empty if it is
	at      time.Time // when it was refused
	away    time.Time // since when the store does not answer; zero if it does
}

// fingerprint names a configuration: replicas with the same one have the same.
func fingerprint(cfg *configs.Config) string {
	sum := sha256.Sum256([]byte(cfg.Redacted()))
	return hex.EncodeToString(sum[:4])
}

// beat tells the other replicas of this one until stop ends, and notices when the store is away.
func (a *App) beat() {
	tick := time.NewTicker(replicaEvery)
	defer tick.Stop()
	defer close(a.beaten)
	defer a.mirror.Remove(boardReplicas, a.hub.Replica())
	for {
		me := a.self()
		if raw, err := json.Marshal(me); err == nil {
			a.mirror.Post(boardReplicas, store.Field{Name: me.ID, Value: raw, Until: time.Now().Add(replicaGone)}, false)
		}
		a.spending.post(a.mirror, me.ID)
		select {
		case <-tick.C:
		case <-a.quiet:
			a.spending.post(a.mirror, me.ID)
			return
		}
	}
}

// self is this replica as others see it.
func (a *App) self() admin.Replica {
	a.mu.Lock()
	defer a.mu.Unlock()
	up := a.shared == nil || a.shared.Up()
	switch {
	case up:
		a.state.away = time.Time{}
	case a.state.away.IsZero():
		a.state.away = time.Now()
	}
	return admin.Replica{ID: a.hub.Replica(), Version: a.version, Config: fingerprint(a.config), Address: a.listener.Addr().String(), Started: a.started.UTC(), StoreUp: up, Refused: a.state.refused}
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

// condition returns the state of this replica for the metrics and the page.
func (a *App) condition() telemetry.Condition {
	list := a.replicas()
	a.mu.Lock()
	h := a.state
	a.mu.Unlock()
	c := telemetry.Condition{StoreUp: list[0].StoreUp, Reloaded: h.refused == "", Replicas: len(list)}
	if !c.StoreUp {
		c.Trouble = append(c.Trouble, fmt.Sprintf("The store does not answer since %s: this replica goes on with what it knows, and other replicas are not seen.", h.away.UTC().Format("15:04:05 MST")))
	}
	if !c.Reloaded {
		c.Trouble = append(c.Trouble, fmt.Sprintf("The configuration of %s is refused, the one before stays in force: %s", h.at.UTC().Format("15:04:05 MST"), h.refused))
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

// refuse notes that a change of the configuration is not in force; nil that one is.
func (a *App) refuse(err error) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.state = (health{away: a.state.away}); err != nil {
		a.state.refused, a.state.at = redact.Text(err.Error()), time.Now()
	}
}
