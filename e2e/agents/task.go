package agents

import "slices"

// Task is what a client is told to do: a line of JSON on its driver's standard
// input. The command-line agent gets the same by its own means.
type Task struct {
	ID       int      `json:"id"`
	BaseURL  string   `json:"base_url"`
	APIKey   string   `json:"api_key"`
	Model    string   `json:"model"`
	Prompts  []string `json:"prompts"` // one after another in one conversation
	Stream   bool     `json:"stream"`
	Dir      string   `json:"dir"`  // where its tools work
	Path     string   `json:"path"` // the PATH of its commands
	MaxSteps int      `json:"max_steps"`
	GiveUpMS int64    `json:"give_up_ms"`
}

// Outcome is what came of a task: a line of JSON on the driver's standard output.
type Outcome struct {
	ID        int      `json:"id"`
	OK        bool     `json:"ok"`    // the framework reported no error
	Texts     []string `json:"texts"` // its last word to each prompt
	Error     string   `json:"error"`
	ErrorType string   `json:"error_type"`
	Executed  []Call   `json:"executed"` // tools that really ran, in order
	History   string   `json:"history"`  // the conversation as the framework keeps it
	ElapsedMS int64    `json:"elapsed_ms"`
}

// last is the last word, "" without one.
func (o *Outcome) last() string {
	if len(o.Texts) == 0 {
		return ""
	}
	return o.Texts[len(o.Texts)-1]
}

// Mode is how answers are asked for.
type Mode string

// The modes.
const (
	Streamed Mode = "stream"
	Whole    Mode = "whole"
)

// The clients.
const (
	LoopPython   = "loop-python"   // a plain loop over openai for Python
	LoopNode     = "loop-node"     // a plain loop over openai for Node
	OpenAIAgents = "openai-agents" // for Python, with its chat completions model
	LangGraph    = "langgraph"     // create_agent of LangChain for Python
	PydanticAI   = "pydantic-ai"
	Vercel       = "vercel-agent" // generateText and streamText with tools
	Pi           = "pi"           // the command-line agent; always streams

	// They speak /v1/responses.
	LoopPythonResponses   = "loop-python-responses"
	LoopNodeResponses     = "loop-node-responses" // with the helper .stream()
	OpenAIAgentsResponses = "openai-agents-responses"
	AgentsNode            = "agents-node" // @openai/agents
	VercelResponses       = "vercel-agent-responses"
	Codex                 = "codex"    // the command-line agent; always streams
	Opencode              = "opencode" // another one; always streams

	// They speak /v1/messages.
	VercelAnthropic   = "vercel-agent-anthropic"
	OpencodeAnthropic = "opencode-anthropic"
	ClaudeCode        = "claude-code" // the command-line agent, where it is installed; always streams
)

// fewOf are the scenarios for opencode, which takes many seconds for each prompt.
var fewOf = []string{
	"healthy", "no-python", "args-cut", "name-unknown", "cut-call", "cut-after-text", "empty-turn", "rough-road", "overflow",
}

// notClaude are scenarios that are no fault for Claude Code, whose tools begin with
// capitals, or that it cannot finish in any way: calls whose id it knows are one to it.
var notClaude = []string{"name-case", "same-ids"}

// likes are the clients of the table that speak another format, with those of chat
// completions whose expectations are theirs.
var likes = map[string]string{
	LoopPythonResponses: LoopPython, LoopNodeResponses: LoopNode, OpenAIAgentsResponses: OpenAIAgents, AgentsNode: OpenAIAgents,
	VercelResponses: Vercel, Codex: Pi, Opencode: Pi,
	VercelAnthropic: Vercel, OpencodeAnthropic: Pi, ClaudeCode: Pi,
}

// Like is the client whose expectations hold for this one, too.
func Like(client string) string {
	if l, ok := likes[client]; ok {
		return l
	}
	return client
}

// OnlyStreams reports whether a client has no other way to ask, or the model none to
// answer: a call whose input is no JSON can only be streamed in /v1/messages.
func OnlyStreams(client string) bool { return Like(client) == Pi || client == VercelAnthropic }

// Clients are all clients, in the order of the tables.
func Clients() []string {
	return []string{
		LoopPython, LoopNode, OpenAIAgents, LangGraph, PydanticAI, Vercel,
		LoopPythonResponses, LoopNodeResponses, OpenAIAgentsResponses, AgentsNode, VercelResponses,
		VercelAnthropic, Pi, Codex, Opencode, OpencodeAnthropic, ClaudeCode,
	}
}

// Scenario is one task, how the model plays it, and what must hold.
type Scenario struct {
	Name    string // part of model names
	Want    string // what must hold, in words
	Files   map[string]string
	Prompts []string
	Play    Play
	Clients []string // and those that are Like them; empty is all
	Only    Mode     // empty is both
	Times   int      // runs of the task, one after another; default 1

	// End is what the agent's last word must have, through the gateway; none:
	// how it ends is for the checks.
	End []string

	// Straight is what is certain without the gateway; StraightOf adds what is
	// certain of one client and those Like it. Nothing certain: the outcome is only recorded.
	Straight   []Check
	StraightOf map[string][]Check
	// Through is what must hold through the gateway, besides Always.
	Through []Check
}

// Evidence is what a leg left behind.
type Evidence struct {
	Client   string
	Mode     Mode
	Outcomes []Outcome
	Model    []Record   // what reached the model
	Sent     []Exchange // what the client sent and got; through the gateway only
}

// Check says what is wrong with a leg, or nothing.
type Check func(e *Evidence) error

// For reports whether a client does the task.
func (s *Scenario) For(client string) bool {
	if client == ClaudeCode && slices.Contains(notClaude, s.Name) {
		return false
	}
	return (len(s.Clients) == 0 || slices.Contains(s.Clients, Like(client))) && (client != Opencode && client != OpencodeAnthropic || slices.Contains(fewOf, s.Name))
}

// Ended reports whether the task was done: no error, and the right last word.
func (s *Scenario) Ended(e *Evidence) error { return says(s.End...)(e) }

// Checks are those of a leg.
func (s *Scenario) Checks(client string, through bool) []Check {
	if !through {
		of, own := s.StraightOf[client]
		if !own {
			of = s.StraightOf[Like(client)]
		}
		return append(slices.Clone(s.Straight), of...)
	}
	all := slices.Clone(s.Through)
	if len(s.End) > 0 {
		all = append([]Check{s.Ended}, all...)
	}
	return append(all, Always()...)
}

func (e *Evidence) outcome() *Outcome { return &e.Outcomes[len(e.Outcomes)-1] }
