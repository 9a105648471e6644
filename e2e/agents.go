package main

import (
	"errors"
	"fmt"
	"io"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/rebound-llm/rebound/e2e/agents"
	"github.com/rebound-llm/rebound/proxy/upstreamtest"
)

// agentRun is one scenario for one client and mode, and what came of it.
type agentRun struct {
	scenario *agents.Scenario
	client   string
	mode     agents.Mode
	n        int // of several equal runs, from 0

	straight, through agentLeg
	failures          []string
}

// agentLeg is one way to the end of a task.
type agentLeg struct {
	done     bool
	evidence agents.Evidence
	err      error // of the harness
}

const (
	// agentTime is how long a client may take for one task.
	agentTime = 200 * time.Second
	// maxSteps is more than any task needs.
	maxSteps = 60
	// atOnce is how many runs are under way; of the command-line agent, which is
	// a program of its own each time, fewer.
	atOnce, piAtOnce = 16, 3
)

// agentClient does tasks.
type agentClient interface {
	Do(t agents.Task) (agents.Outcome, error)
	Close() error
}

// agentDriver is a framework in a process of its own.
type agentDriver struct{ *process }

// Do runs one task to its end.
func (d agentDriver) Do(t agents.Task) (o agents.Outcome, err error) {
	err = d.ask(func(id int) any {
		t.ID = id
		return t
	}, &o)
	return o, err
}

// agentLibraries are the frameworks and how their drivers are started.
var agentLibraries = []library{
	{agents.LoopPython, func(t tree) []string { return []string{t.agentPython(), t.client("agents-python", "loop_python.py")} }},
	{agents.LoopNode, func(t tree) []string { return []string{"node", t.cached("agents-node", "loop_node.mjs")} }},
	{agents.OpenAIAgents, func(t tree) []string {
		return []string{t.agentPython(), t.client("agents-python", "openai_agents.py"), "chat"}
	}},
	{agents.LangGraph, func(t tree) []string {
		return []string{t.agentPython(), t.client("agents-python", "langgraph_agent.py")}
	}},
	{agents.PydanticAI, func(t tree) []string {
		return []string{t.agentPython(), t.client("agents-python", "pydantic_agent.py")}
	}},
	{agents.Vercel, func(t tree) []string { return []string{"node", t.cached("agents-node", "vercel_agent.mjs")} }},
	{agents.LoopPythonResponses, func(t tree) []string {
		return []string{t.agentPython(), t.client("agents-python", "loop_python_responses.py")}
	}},
	{agents.LoopNodeResponses, func(t tree) []string { return []string{"node", t.cached("agents-node", "loop_node_responses.mjs")} }},
	{agents.OpenAIAgentsResponses, func(t tree) []string { return []string{t.agentPython(), t.client("agents-python", "openai_agents.py")} }},
	{agents.AgentsNode, func(t tree) []string { return []string{"node", t.cached("agents-node", "agents_node.mjs")} }},
	{agents.VercelResponses, func(t tree) []string {
		return []string{"node", t.cached("agents-node", "vercel_agent.mjs"), "responses"}
	}},
	{agents.VercelAnthropic, func(t tree) []string {
		return []string{"node", t.cached("agents-node", "vercel_agent.mjs"), "anthropic"}
	}},
}

// startAgents starts the drivers of the named clients.
func startAgents(t tree, names []string) (map[string]agentClient, error) {
	clients := map[string]agentClient{}
	for _, l := range agentLibraries {
		if !slices.Contains(names, l.name) {
			continue
		}
		p, err := startProcess(l.name, t.cached("logs", "agent-"+l.name+".log"), l.command(t))
		if err != nil {
			return clients, err
		}
		clients[l.name] = agentDriver{p}
	}
	node, err := exec.LookPath("node")
	if err != nil {
		return clients, err
	}
	clients[agents.Pi], clients[agents.Codex] = newPi(t, node), newCodex(t, node)
	clients[agents.Opencode], clients[agents.OpencodeAnthropic] = newOpencode(t, "openai"), newOpencode(t, "anthropic")
	if program, err := exec.LookPath("claude"); err == nil {
		clients[agents.ClaudeCode] = newClaude(program)
	}
	return clients, nil
}

// expandAgents lists the runs of scenarios.
func expandAgents(scenarios []agents.Scenario, clients []string, modes []Mode, count int) (runs []*agentRun) {
	for i := range scenarios {
		s := &scenarios[i]
		for _, client := range clients {
			if !s.For(client) {
				continue
			}
			for _, m := range modes {
				mode := agents.Mode(m)
				if s.Only != "" && s.Only != mode || agents.OnlyStreams(client) && mode != agents.Streamed {
					continue
				}
				for n := range count {
					runs = append(runs, &agentRun{scenario: s, client: client, mode: mode, n: n})
				}
			}
		}
	}
	return runs
}

// agentBench is what the runs need.
type agentBench struct {
	tree    tree
	model   *agents.Model
	tap     *agents.Tap // nil: straight only
	clients map[string]agentClient
	scratch string
	path    string // the PATH of the agents' commands
	legs    string
}

// runAgents runs the second part of the suite and reports each scenario when it
// is done.
func (o *options) runAgents(binary string, report io.Writer) (passed, failed int, err error) {
	begun := time.Now()
	b := &agentBench{tree: o.tree, legs: o.leg}
	if b.path, err = safePath(o.tree); err != nil {
		return 0, 0, err
	}
	if b.scratch, err = os.MkdirTemp("", "rebound-agents-"); err != nil {
		return 0, 0, err
	}
	defer os.RemoveAll(b.scratch)
	b.clients, err = startAgents(o.tree, o.agents)
	defer func() {
		for _, name := range slices.Sorted(maps.Keys(b.clients)) {
			_ = b.clients[name].Close()
		}
	}()
	if err != nil {
		return 0, 0, err
	}
	if b.model, err = agents.NewModel(); err != nil {
		return 0, 0, err
	}
	defer b.model.Close()
	var gateway *Gateway
	if o.leg != "straight" {
		listen, err := upstreamtest.FreeAddr()
		if err != nil {
			return 0, 0, err
		}
		// Scripted models that never heed a note teach that notes are no help; what one
		// scenario taught must not decide what the next one is told.
		config := fmt.Sprintf("listen: %s\nupstreams:\n  default: {url: %q, passthrough: true, profile: hosted}\n  messages: {%s, passthrough: true, profile: hosted}\n"+
			"log: {requests: true}\nstrategies: {holdout: 0}\nlearn: {outcomes: observe}\n", listen, b.model.URL(), served(b.model.URL(), Messages))
		if o.plainProxy {
			config += "recovery: {mode: off}\n"
		}
		if gateway, err = startGateway(o.tree, binary, "gateway-agents", listen, config); err != nil {
			return 0, 0, err
		}
		if b.tap, err = agents.NewTap(gateway.URL); err != nil {
			return 0, 0, errors.Join(err, gateway.Stop())
		}
		defer b.tap.Close()
	}
	runs := expandAgents(o.scenarios, o.agents, o.modes, o.count)
	fmt.Printf("agents: %d runs\n", len(runs))
	var names []string
	for _, r := range runs {
		names = append(names, r.scenario.Name)
	}
	p := newProgress(os.Stdout, names)
	b.runAll(runs, func(r *agentRun) { p.done(r.ended()) })
	writeAgents(report, o.scenarios, o.agents, runs)
	fmt.Printf("agents: %.0f s\n", time.Since(begun).Seconds())
	if gateway != nil {
		err = gateway.Stop()
	}
	return p.passed, p.failed, err
}

// runAll runs everything, so many at once; the slow ones start first.
func (b *agentBench) runAll(runs []*agentRun, done func(*agentRun)) {
	queue := slices.Clone(runs)
	slices.SortStableFunc(queue, func(x, y *agentRun) int { return y.weight() - x.weight() })
	var all sync.WaitGroup
	var mu sync.Mutex
	few, many := make(chan struct{}, piAtOnce), make(chan struct{}, atOnce)
	for _, r := range queue {
		all.Go(func() {
			if agents.OnlyStreams(r.client) {
				few <- struct{}{}
				defer func() { <-few }()
			} else {
				many <- struct{}{}
				defer func() { <-many }()
			}
			b.run(r)
			mu.Lock()
			defer mu.Unlock()
			done(r)
		})
	}
	all.Wait()
}

// weight orders runs by how long they take: those with many files are the long ones.
func (r *agentRun) weight() int {
	if len(r.scenario.Files) > 5 {
		return 1
	}
	return 0
}

// run runs both legs and then the checks.
func (b *agentBench) run(r *agentRun) {
	var legs sync.WaitGroup
	if b.legs != "through" {
		legs.Go(func() { b.leg(r, &r.straight, "straight", b.model.URL()) })
	}
	if b.tap != nil {
		legs.Go(func() { b.leg(r, &r.through, "through", b.tap.URL()) })
	}
	legs.Wait()
	for _, l := range []struct {
		prefix  string
		leg     *agentLeg
		through bool
	}{{"straight: ", &r.straight, false}, {"", &r.through, true}} {
		if !l.leg.done {
			continue
		}
		if l.leg.err != nil {
			r.failures = append(r.failures, l.prefix+l.leg.err.Error())
			continue
		}
		for _, c := range r.scenario.Checks(r.client, l.through) {
			if err := c(&l.leg.evidence); err != nil {
				r.failures = append(r.failures, l.prefix+err.Error())
			}
		}
	}
	if r.straight.ok() && r.through.done && !r.through.ok() {
		r.failures = append(r.failures, "straight the client ends without an error, through the gateway it does not: "+r.result(&r.through))
	}
}

// ok reports whether the client saw no error in the end.
func (l *agentLeg) ok() bool {
	return l.done && l.err == nil && len(l.evidence.Outcomes) > 0 && l.evidence.Outcomes[len(l.evidence.Outcomes)-1].OK
}

// model names the run's model on one way.
func (r *agentRun) model(way string) string {
	return fmt.Sprintf("%s.%s.%s.%s.n%d", r.scenario.Name, r.client, r.mode, way, r.n)
}

// leg does the scenario's task as often as it says.
func (b *agentBench) leg(r *agentRun, l *agentLeg, way, baseURL string) {
	l.done = true
	model := r.model(way)
	b.model.Add(model, r.scenario.Play)
	l.evidence = agents.Evidence{Client: r.client, Mode: r.mode}
	for i := range max(1, r.scenario.Times) {
		dir := filepath.Join(b.scratch, model, fmt.Sprint(i))
		if l.err = layOut(dir, r.scenario.Files); l.err != nil {
			return
		}
		o, err := b.clients[r.client].Do(agents.Task{
			BaseURL: baseURL, APIKey: ClientKey, Model: model, Prompts: r.scenario.Prompts, Stream: r.mode == agents.Streamed,
			Dir: dir, Path: b.path, MaxSteps: maxSteps, GiveUpMS: agentTime.Milliseconds(),
		})
		if err != nil {
			l.err = err
			return
		}
		l.evidence.Outcomes = append(l.evidence.Outcomes, o)
	}
	l.evidence.Model = b.model.Records(model)
	if way == "through" {
		l.evidence.Sent = b.tap.Exchanges(model)
	}
}

// layOut writes the files that a task begins with.
func layOut(dir string, files map[string]string) error {
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return err
	}
	for _, name := range slices.Sorted(maps.Keys(files)) {
		at := filepath.Join(dir, filepath.FromSlash(name))
		if err := os.MkdirAll(filepath.Dir(at), 0o755); err != nil {
			return err
		}
		if err := os.WriteFile(at, []byte(files[name]), 0o644); err != nil {
			return err
		}
	}
	return nil
}

// safePath is a folder with the few programs that the tasks need: the agents'
// commands find nothing else, above all no python, on any machine.
func safePath(t tree) (string, error) {
	bin := t.cached("agents-bin")
	if err := errors.Join(os.RemoveAll(bin), os.MkdirAll(bin, 0o755)); err != nil {
		return "", err
	}
	real, err := command("", "python3", "-c", "import os, sys; print(os.path.realpath(sys.executable))")
	if err != nil {
		return "", err
	}
	programs := map[string]string{"python3": strings.TrimSpace(real)}
	for _, name := range []string{"sh", "bash", "cat", "ls", "find", "grep", "wc"} {
		for _, dir := range []string{"/bin", "/usr/bin", "/usr/local/bin"} {
			if _, err := os.Stat(filepath.Join(dir, name)); err == nil {
				programs[name] = filepath.Join(dir, name)
				break
			}
		}
		if programs[name] == "" {
			return "", fmt.Errorf("the program %s is needed", name)
		}
	}
	for _, name := range slices.Sorted(maps.Keys(programs)) {
		if err := os.Symlink(programs[name], filepath.Join(bin, name)); err != nil {
			return "", err
		}
	}
	return bin, nil
}
