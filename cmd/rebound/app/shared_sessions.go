package app

import (
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/rebound-llm/rebound/recovery"
	"github.com/rebound-llm/rebound/recovery/breaker"
	"github.com/rebound-llm/rebound/recovery/fit"
	"github.com/rebound-llm/rebound/recovery/plan"
	"github.com/rebound-llm/rebound/store"
)

// sessionPrefetch is the stage that loads a session's values from the store in one round trip, for later stages.
type sessionPrefetch struct{ *App }

// Prepare implements recovery.Stage.
func (k sessionPrefetch) Prepare(_ context.Context, x *recovery.Exchange) error {
	if k.shared != nil && x.Session != "" {
		x.Stored = store.NewSession(k.shared, func() []string {
			keys := breaker.Keys(x)
			if k.sharesContent {
				keys = slices.Concat(keys, plan.Keys(x.Session), fit.Keys(x.Session))
			}
			return keys
		})
	}
	return nil
}

// maxVault is the memory that the vault may use, in bytes.
const maxVault = 32 << 20

// newVault returns the vault, which keeps parts of answers for the clients that received them.
func (a *App) newVault(within time.Duration) *store.Vault {
	var values store.Values
	if a.sharesContent {
		values = a.shared
	}
	return store.NewVault(values, within, maxVault, a.shared == nil)
}

// newFitter returns the part that fits requests to context windows. It lives as long as the
// gateway, because it holds the edits of sessions.
func (a *App) newFitter(cfg fit.Config) *fit.Fitter {
	var shared fit.Values // nil if sessions are not shared
	if a.sharesContent {
		shared = a.shared
	}
	return fit.New(cfg, fit.Parts{
		Meter: a.meter, Windows: a.facts, Store: shared,
		Truncated: func(request, session string, t recovery.Target, counted, reported int) {
			a.hub.Observe(recovery.Event{Name: recovery.EventTruncated, Time: time.Now(), Origin: recovery.Origin{Request: request, Session: session}, Target: t,
				Cause: fmt.Sprintf("the upstream read %d tokens of about %d", reported, counted)})
		},
	})
}
