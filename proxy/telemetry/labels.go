package telemetry

import (
	"slices"

	"github.com/rebound-llm/rebound/recovery"
)

// Labels are the values that labels of metrics may have, all from configuration
// and from fixed tables. Whatever else occurs is counted as "other", so that no client
// can create series without bound; only the first models that answer get a
// label of their own without configuration (see maxMet). It is read when it is
// handed over and not kept.
type Labels struct {
	// Models are the configured model names with their targets, in order of
	// preference; the keys of those targets are not looked at.
	Models map[string][]recovery.Target
	// Upstreams are the configured upstreams with the labels of their own keys.
	Upstreams map[string][]string
	// Keys are the names of the gateway keys.
	Keys []string
	// Specs is the table of classes.
	Specs []*recovery.Spec
	// Strategies are the names of all strategies.
	Strategies []string
}

// The label values that stand for what has no name of its own.
const (
	labelOther  = "other"  // a name that is not configured
	labelNone   = "none"   // nothing applied
	labelClient = "client" // any credential of a client
	labelOK     = "ok"     // an attempt that answered
	labelGone   = "canceled"
)

// parallel is the engine's own strategy: a second attempt beside a silent one.
const parallel = "parallel"

func (l *Labels) strategies() []string {
	out := append([]string{parallel, labelNone}, l.Strategies...)
	slices.Sort(out)
	return slices.Compact(out)
}
