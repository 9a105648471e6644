// Command e2e runs real, unmodified client libraries through every fault and
// agents at their tasks, straight at a scripted upstream and through the gateway,
// and says what must hold and what does. README.md explains it.
//
//	go run ./e2e                      everything: faults, scaled, then at real pace; agents
//	go run ./e2e -part faults -pace scaled -case cut -client openai-go,vercel
//	go run ./e2e -part agents -case overflow
//	go run ./e2e -part judge          the verdict of another project's scripted upstream
//	go run ./e2e -leg straight        without the gateway
//	go run ./e2e -leg through -count 20 -case stall
//
// It ends with "N passed, N failed" and exit code 1 if anything failed.
package main

import (
	"bytes"
	"errors"
	"flag"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"time"

	"github.com/rebound-llm/rebound/e2e/agents"
	"github.com/rebound-llm/rebound/proxy/upstreamtest"
)

type options struct {
	tree       tree
	paces      []*Pace
	cases      []Case
	outage     bool
	scenarios  []agents.Scenario
	judgements []judgement
	agents     []string // clients of the second part
	programs   []runProgram
	plainProxy bool
	clients    []string // of the scaled pace
	realClient []string
	modes      []Mode
	leg        string
	count      int
	binary     string
	out        string
}

func main() {
	opts, err := parseFlags()
	if err == nil {
		var failed int
		if failed, err = run(opts); err == nil && failed == 0 {
			return
		}
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, "e2e:", err)
	}
	os.Exit(1)
}

func parseFlags() (*options, error) {
	pace := flag.String("pace", "both", "scaled (time limits ten times shorter, all clients), real (the defaults, one client) or both")
	part := flag.String("part", "all", "faults (client libraries through every fault), agents (agents at their tasks), "+
		"judge (another project's verdict on the gateway), run (agents behind `rebound run`) or all")
	match := flag.String("case", "", "run the cases and the agents' scenarios whose names match this `regexp`")
	client := flag.String("client", "", "run these clients: a `list` of "+strings.Join(append(clientNames(), agents.Clients()...), ",")+
		" (default: all; for the real pace openai-python,plain,python-responses,plain-responses,anthropic-python,plain-messages)")
	mode := flag.String("mode", "", "stream or whole; empty is both")
	leg := flag.String("leg", "both", "straight (at the upstream, without the gateway), through (the gateway) or both")
	plainProxy := flag.Bool("plain-proxy", false, "switch recovery off for the agents: most of their scenarios must fail then")
	count := flag.Int("count", 1, "run every case this `often`, to find what fails now and then")
	binary := flag.String("binary", "", "gateway `program` to run (default: built from the checkout)")
	out := flag.String("out", "", "write the tables and the evidence of failures to this markdown `file`")
	root := flag.String("root", ".", "the checkout's `folder`")
	cache := flag.String("cache", "", "`folder` for installed clients, programs and logs (default e2e/.cache in the checkout)")
	flag.Parse()
	if flag.NArg() > 0 {
		return nil, fmt.Errorf("unexpected argument %q", flag.Arg(0))
	}

	o := &options{clients: clientNames(), agents: agents.Clients(), realClient: []string{"openai-python", plain, "python-responses", plainResponses, "anthropic-python", plainMessages},
		modes: []Mode{Streamed, Whole}, leg: *leg, count: *count, binary: *binary, out: *out, plainProxy: *plainProxy}
	if *client != "" {
		o.clients, o.agents = nil, nil
		for _, c := range strings.Split(*client, ",") {
			switch {
			case slices.Contains(clientNames(), c):
				o.clients = append(o.clients, c)
			case slices.Contains(agents.Clients(), c):
				o.agents = append(o.agents, c)
			case slices.ContainsFunc(runPrograms, func(p runProgram) bool { return p.name == c }): // of the part run alone
			default:
				return nil, fmt.Errorf("no client is called %q: %s, %s", c, strings.Join(clientNames(), ", "), strings.Join(agents.Clients(), ", "))
			}
		}
		o.realClient = o.clients
	}
	if _, err := exec.LookPath("claude"); err != nil && slices.Contains(o.agents, agents.ClaudeCode) {
		if *client != "" {
			return nil, fmt.Errorf("client %s: %w", agents.ClaudeCode, err)
		}
		fmt.Println("without Claude Code, which is not installed")
		o.agents = slices.DeleteFunc(o.agents, func(c string) bool { return c == agents.ClaudeCode })
	}
	switch *pace {
	case "scaled":
		o.paces = []*Pace{&scaledPace}
	case "real":
		o.paces = []*Pace{&realPace}
	case "both":
		o.paces = []*Pace{&scaledPace, &realPace}
	default:
		return nil, fmt.Errorf("-pace %q is none of scaled, real, both", *pace)
	}
	switch Mode(*mode) {
	case Streamed, Whole:
		o.modes = []Mode{Mode(*mode)}
	case "":
	default:
		return nil, fmt.Errorf("-mode %q is none of stream, whole", *mode)
	}
	if !slices.Contains([]string{"straight", "through", "both"}, o.leg) {
		return nil, fmt.Errorf("-leg %q is none of straight, through, both", o.leg)
	}
	pattern, err := regexp.Compile(*match)
	if err != nil {
		return nil, fmt.Errorf("-case: %w", err)
	}
	if !slices.Contains([]string{"faults", "agents", "judge", "run", "all"}, *part) {
		return nil, fmt.Errorf("-part %q is none of faults, agents, judge, run, all", *part)
	}
	asked := func(name string) bool { return *part == name || *part == "all" }
	for _, c := range table {
		if asked("faults") && len(o.clients) > 0 && pattern.MatchString(c.Name) {
			o.cases = append(o.cases, c)
		}
	}
	o.outage = asked("faults") && len(o.clients) > 0 && o.leg != "through" && pattern.MatchString(outageName)
	for _, s := range agents.Scenarios() {
		if asked("agents") && len(o.agents) > 0 && pattern.MatchString(s.Name) {
			o.scenarios = append(o.scenarios, s)
		}
	}
	for _, j := range judgements {
		if asked("judge") && slices.ContainsFunc(o.clients, isJudgeClient) && o.leg != "straight" && pattern.MatchString(j.Name) {
			o.judgements = append(o.judgements, j)
		}
	}
	for _, p := range runPrograms { // all of them, or those that the part is asked for
		if asked("run") && o.leg != "straight" && pattern.MatchString(p.name) && (*client == "" || *part == "run" && slices.Contains(strings.Split(*client, ","), p.name)) {
			o.programs = append(o.programs, p)
		}
	}
	if len(o.cases) == 0 && !o.outage {
		o.paces = nil
		if len(o.scenarios) == 0 && len(o.judgements) == 0 && len(o.programs) == 0 {
			return nil, fmt.Errorf("no case and no scenario matches %q for these clients", *match)
		}
	}
	if o.tree.root, err = filepath.Abs(*root); err != nil {
		return nil, err
	}
	o.tree.cache = o.tree.root + "/e2e/.cache"
	if o.binary != "" {
		if o.binary, err = filepath.Abs(o.binary); err != nil {
			return nil, err
		}
	}
	if *cache != "" {
		if o.tree.cache, err = filepath.Abs(*cache); err != nil {
			return nil, err
		}
	}
	return o, nil
}

// run does what the options say and returns how many runs failed.
func run(o *options) (failed int, err error) {
	begun := time.Now()
	names := map[string]bool{}
	for _, p := range o.paces {
		for _, c := range o.clientsAt(p) {
			names[c] = true
		}
	}
	for _, c := range o.agents {
		names[c] = len(o.scenarios) > 0
	}
	names[judgeClient] = len(o.judgements) > 0
	for _, p := range o.programs {
		names[p.folder] = true
	}
	if err := install(o.tree, names); err != nil {
		return 0, err
	}
	binary := o.binary
	if o.leg != "straight" && binary == "" {
		if binary, err = buildGateway(o.tree); err != nil {
			return 0, err
		}
	}
	fmt.Printf("installed and built in %.0f s\n", time.Since(begun).Seconds())

	clients, err := startClients(o.tree, names)
	defer func() {
		for _, c := range clients {
			_ = c.Close()
		}
	}()
	if err != nil {
		return 0, err
	}
	var report bytes.Buffer
	report.WriteString("# Clients through every fault\n\n")
	passed := 0
	for _, pace := range o.paces {
		p, err := o.at(pace, binary, clients, &report)
		passed, failed = passed+p.passed, failed+p.failed
		if err != nil {
			fmt.Println("FAIL ", err)
			failed++
		}
	}
	if len(o.scenarios) > 0 {
		p, f, err := o.runAgents(binary, &report)
		passed, failed = passed+p, failed+f
		if err != nil {
			fmt.Println("FAIL ", err)
			failed++
		}
	}
	if len(o.judgements) > 0 {
		p, f := o.runJudge(binary, &report)
		passed, failed = passed+p, failed+f
	}
	if len(o.programs) > 0 {
		p, f := o.runAllPrograms(binary)
		passed, failed = passed+p, failed+f
	}
	fmt.Fprintf(&report, "%d passed, %d failed\n", passed, failed)
	if o.out != "" {
		if err := os.WriteFile(o.out, report.Bytes(), 0o644); err != nil {
			return failed, err
		}
	}
	fmt.Printf("%d passed, %d failed in %.0f s\n", passed, failed, time.Since(begun).Seconds())
	return failed, nil
}

func (o *options) clientsAt(p *Pace) []string {
	if p.Scaled {
		return o.clients
	}
	return o.realClient
}

// at runs everything at one pace: with an upstream and a gateway of its own.
func (o *options) at(pace *Pace, binary string, clients map[string]Client, report *bytes.Buffer) (*progress, error) {
	begun := time.Now()
	runs := expand(o.cases, pace, o.clientsAt(pace), o.modes, o.count)
	var names []string
	for _, r := range runs {
		names = append(names, r.Case.Name)
	}
	p := newProgress(os.Stdout, names)
	var outage *Outage
	var extra []model
	if o.outage {
		outage = newOutage(pace, o.clientsAt(pace))
		extra = append(extra, outage.model())
	}
	up, err := upstreamtest.New(upstreamtest.Options{KeepRequests: 1 << 18, KeepBytes: 512 << 20}).Listen("127.0.0.1:0")
	if err != nil {
		return p, err
	}
	defer up.Close()
	b := &Bench{Upstream: up, Clients: clients, SkipStraight: o.leg == "through"}
	if o.leg != "straight" {
		listen, err := upstreamtest.FreeAddr()
		if err != nil {
			return p, err
		}
		config := configure(listen, up.URL()+"/v1", pace, runs, extra)
		if b.Gateway, err = startGateway(o.tree, binary, "gateway-"+pace.Name, listen, config); err != nil {
			return p, err
		}
	}
	fmt.Printf("%s pace: %d runs\n", pace.Name, len(runs))
	// At the scaled pace time limits are tight: the steady traffic has its turn
	// after the rest. At the real pace there is time for both at once.
	traffic := make(chan struct{})
	go func() {
		defer close(traffic)
		if outage != nil && !pace.Scaled {
			outage.run(b)
		}
	}()
	b.runAll(runs, func(r *Run) { p.done(r.ended()) })
	<-traffic
	if outage != nil {
		if pace.Scaled {
			outage.run(b)
		}
		p.outage(outage)
	}
	writeMarkdown(report, pace, o.clientsAt(pace), runs, outage)
	fmt.Printf("%s pace: %.0f s\n", pace.Name, time.Since(begun).Seconds())
	if b.Gateway != nil {
		err = b.Gateway.Stop()
	}
	return p, errors.Join(err)
}
