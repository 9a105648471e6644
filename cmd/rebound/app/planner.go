package app

import (
	"time"

	"github.com/rebound-llm/rebound/configs"
	"github.com/rebound-llm/rebound/proxy/admin"
	"github.com/rebound-llm/rebound/recovery"
	"github.com/rebound-llm/rebound/recovery/plan"
	"github.com/rebound-llm/rebound/recovery/repair"
)

// newPlanner makes the part that asks a planner. It lives as long as the gateway:
// plans under way are in it.
func (a *App) newPlanner(cfg *configs.Config) *plan.Planner {
	a.webhook = admin.NewWebhook(hook(cfg), func(cause string) {
		a.hub.Observe(recovery.Event{Name: recovery.EventDegraded, Time: time.Now(), Cause: cause})
	})
	parts := plan.Parts{Board: a.mirror, Decisions: a.store, Reader: repair.New(repair.Defaults()),
		Rules: func() plan.Rules { return a.notes.Load() }, Observer: priced{a}, Accepted: a.sessions.Accepted,
		Known:   func(q recovery.Question) (recovery.LearnedPattern, bool) { return a.outcomes.Known(q) },
		Waiting: a.webhook.Tell}
	if a.sharesContent() {
		parts.Store = a.shared
	}
	return plan.New(cfg.Planner, parts)
}

// priced tells what a plan has cost.
type priced struct{ *App }

// Observe implements recovery.Observer.
func (p priced) Observe(ev recovery.Event) {
	if ev.Name == recovery.EventPlanMade {
		ev.Spent = p.prices.Load().Spent(ev.Cost, ev.Target.Model, ev.Model)
	}
	p.hub.Observe(ev)
}

var _ admin.Approvals = (*plan.Planner)(nil)

func hook(cfg *configs.Config) admin.Hook {
	return admin.Hook{URL: cfg.Planner.Webhook.URL, Secret: cfg.Planner.Webhook.Secret}
}
