package app

import (
	"time"

	"github.com/rebound-llm/rebound/configs"
	"github.com/rebound-llm/rebound/proxy/admin"
	"github.com/rebound-llm/rebound/recovery"
	"github.com/rebound-llm/rebound/recovery/plan"
	"github.com/rebound-llm/rebound/recovery/repair"
)

// newPlanner returns the planner. It lives as long as the gateway, because it holds running
// plans.
func (a *App) newPlanner(cfg *configs.Config) *plan.Planner {
	a.webhook = admin.NewWebhook(webhookConfig(cfg), func(cause string) {
		a.hub.Observe(recovery.Event{Name: recovery.EventDegraded, Time: time.Now(), Cause: cause})
	})
	parts := plan.Parts{Board: a.mirror, Decisions: a.store, Reader: repair.New(repair.Defaults()),
		Rules: func() plan.Rules { return a.notes.Load() }, Observer: pricedObserver{a}, Accepted: a.sessions.Accepted,
		Known:   func(q recovery.Question) (recovery.LearnedPattern, bool) { return a.outcomes.Known(q) },
		Waiting: a.webhook.Tell}
	if a.sharesContent {
		parts.Store = a.shared
	}
	return plan.New(cfg.Planner, parts)
}

// pricedObserver adds its cost to the event of a plan.
type pricedObserver struct{ *App }

// Observe implements recovery.Observer.
func (p pricedObserver) Observe(ev recovery.Event) {
	if ev.Name == recovery.EventPlanMade {
		ev.Spent = p.prices.Load().Spent(ev.Cost, ev.Target.Model, ev.Model)
	}
	p.hub.Observe(ev)
}

var _ admin.Approvals = (*plan.Planner)(nil)

func webhookConfig(cfg *configs.Config) admin.Hook {
	return admin.Hook{URL: cfg.Planner.Webhook.URL, Secret: cfg.Planner.Webhook.Secret}
}
