package recovery

import (
	"errors"
	"time"
)

// PlanStrategy is the kind of next step that a planner proposes.
type PlanStrategy string

// The strategies.
const (
	PlanRetry     PlanStrategy = "retry"                // the same call again
	PlanOtherTool PlanStrategy = "alternative-tool"     // another tool
	PlanAdjust    PlanStrategy = "parameter-adjustment" // the same tool with other parameters
	PlanEscalate  PlanStrategy = "escalate"             // a question for the user
	PlanGiveUp    PlanStrategy = "give-up"              // the agent skips the impossible part and says so
)

// PlanStrategies lists the strategies.
func PlanStrategies() []PlanStrategy {
	return []PlanStrategy{PlanRetry, PlanOtherTool, PlanAdjust, PlanEscalate, PlanGiveUp}
}

// Calls reports whether the strategy is a call of a tool.
func (s PlanStrategy) Calls() bool { return s == PlanRetry || s == PlanOtherTool || s == PlanAdjust }

// PlanHint means that the rules' note is known to help, so that no plan is needed. Only learned patterns have it.
const PlanHint PlanStrategy = Hint

// PlanBand is what a plan's confidence allows.
type PlanBand string

// The bands.
const (
	BandAct      PlanBand = "act"      // the model must carry it out
	BandPropose  PlanBand = "propose"  // it is proposed, or waits for a person's approval
	BandEscalate PlanBand = "escalate" // the user is asked
)

// The sources of a plan.
const (
	PlanPlanner   = "planner"   // a model
	PlanHeuristic = "heuristic" // the fallback if the planner fails
	PlanLearned   = "learned"   // a learned pattern, in place of the planner
)

// Plan proposes how a stuck agent can go on. What a model wrote in it is data: limited in length, checked against the
// request, and never an instruction to the gateway.
type Plan struct {
	Strategy   PlanStrategy `json:"strategy"`
	Reasoning  string       `json:"reasoning,omitempty"`
	Tool       string       `json:"tool,omitempty"`       // tool of the request, for strategies that call one
	Parameters string       `json:"parameters,omitempty"` // JSON object with the tool's arguments
	Message    string       `json:"message,omitempty"`    // the question for the user
	Expected   string       `json:"expected,omitempty"`   // the expected outcome
	Confidence float64      `json:"confidence"`
	Band       PlanBand     `json:"band"`
	Source     string       `json:"source"`
	Percent    int          `json:"percent,omitempty"` // the planner's estimate of the progress
	Blockers   []string     `json:"blockers,omitempty"`
	Milestone  string       `json:"milestone,omitempty"` // the next one
	// Steps are the calls in their order; the first is Tool with Parameters.
	Steps      []PlanStep     `json:"steps,omitempty"`
	Iterations int            `json:"estimated_iterations,omitempty"` // the planner's estimate of the calls until it works
	Fallbacks  []PlanStrategy `json:"fallback_chain,omitempty"`       // what to try if it fails, in order
	// Forced is set if the model must call Tool next: see plan.Config.Force.
	Forced bool `json:"forced,omitempty"`
}

// PlanStep is one call of a plan.
type PlanStep struct {
	Tool       string `json:"tool"`
	Parameters string `json:"parameters,omitempty"` // a JSON object
	Expected   string `json:"expected,omitempty"`
}

// Bare returns the plan for an event, without the sentences and arguments that a model wrote.
func (p *Plan) Bare() *Plan {
	bare := &Plan{Strategy: p.Strategy, Tool: p.Tool, Confidence: p.Confidence, Band: p.Band, Source: p.Source, Percent: p.Percent,
		Iterations: p.Iterations, Fallbacks: p.Fallbacks, Forced: p.Forced}
	for _, s := range p.Steps {
		bare.Steps = append(bare.Steps, PlanStep{Tool: s.Tool})
	}
	return bare
}

// MadePlan is a recent plan.
type MadePlan struct {
	Session string    `json:"session"`
	Key     string    `json:"key,omitempty"` // name of the gateway key
	Model   string    `json:"model"`
	Made    time.Time `json:"made"`
	Cause   string    `json:"cause,omitempty"` // why the planner's own plan was useless
	Plan    *Plan     `json:"plan"`
}

// Approval is a plan for a stuck agent with its state of approval.
type Approval struct {
	ID      string    `json:"id"`
	State   string    `json:"state"` // waiting, approved or refused
	Session string    `json:"session"`
	Key     string    `json:"key,omitempty"` // name of the gateway key
	Model   string    `json:"model"`
	Made    time.Time `json:"made"`
	Until   time.Time `json:"until"` // from then on it is only proposed
	Plan    *Plan     `json:"plan"`
}

// Errors of decisions about a plan.
var (
	ErrNoApproval = errors.New("no such plan waits for approval")
	ErrDecided    = errors.New("that plan is already decided")
)
