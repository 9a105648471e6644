// Command rebound is an OpenAI-compatible gateway that recovers from upstream
// failures before the client notices them.
package main

import (
	"fmt"
	"io"
	"os"
	"runtime/debug"
)

// version is set by the linker.
var version = ""

func main() {
	os.Exit(run(os.Args[1:], os.Stdin, os.Stdout, os.Stderr))
}

const usage = `Rebound is an OpenAI-compatible gateway that recovers from upstream failures
before the client notices them.

  rebound [serve] [--config FILE]   start the gateway (no file: http://127.0.0.1:8080/v1 -> api.openai.com)
          [--listen ADDRESS] [--upstream URL]
  rebound check FILE                validate a configuration
  rebound classify [FILE|-]         tell what went wrong from error answers, one JSON object a line
  rebound rules [NAME]              the rules by which it tells, with their examples
  rebound inspect [FILE|-]          tell what a chat request's tools answered, and what the model would be told
  rebound compress --limit N [FILE] make a chat request fit a context window
  rebound tokens [FILE|-]           count tokens
  rebound demo [--page]             faults, straight and through the gateway, side by side; --page goes on, to be watched
  rebound events [--follow]         what was done about failures, of all replicas
  rebound top                       what a running gateway does, live
  rebound sessions [reset ID]       agents' sessions that were stopped; let one go on
  rebound approvals [approve ID]    plans for stuck agents that wait for a person; approve or refuse one
  rebound targets [reset TARGET]    what is kept of upstreams and models: breakers, cool-downs, what was learned
  rebound keys                      what gateway keys with limits use now
  rebound learn [report]            what notes to models brought; export, import and reset of what was learned
  rebound completion SHELL          complete commands and flags in bash, zsh or fish
  rebound healthcheck [URL]         exit 0 if the gateway on this machine answers
  rebound version

The configuration reference: rebound serve --print-defaults, --print-chains
`

// run is main with everything handed in; it returns the exit code.
func run(args []string, stdin io.Reader, stdout, stderr io.Writer) int {
	name := "serve"
	if len(args) > 0 && (args[0] == "" || args[0][0] != '-') {
		name, args = args[0], args[1:]
	} else if len(args) > 0 && (args[0] == "-h" || args[0] == "--help" || args[0] == "-help") {
		name = "help"
	} else if len(args) > 0 && args[0] == "--version" {
		name = "version"
	}
	switch name {
	case "serve":
		return runServe(args, os.LookupEnv, stdout, stderr)
	case "check":
		return runCheck(args, os.LookupEnv, stdout, stderr)
	case "classify":
		return runClassify(args, os.LookupEnv, stdin, stdout, stderr)
	case "rules":
		return runRules(args, os.LookupEnv, stdout, stderr)
	case "inspect":
		return runInspect(args, os.LookupEnv, stdin, stdout, stderr)
	case "compress":
		return runCompress(args, stdin, stdout, stderr)
	case "tokens":
		return runTokens(args, stdin, stdout, stderr)
	case "demo":
		return runDemo(args, stdout, stderr)
	case "events":
		return runEvents(args, os.LookupEnv, stdout, stderr)
	case "top":
		return runTop(args, os.LookupEnv, stdout, stderr)
	case "sessions":
		return runSessions(args, os.LookupEnv, stdout, stderr)
	case "approvals":
		return runApprovals(args, os.LookupEnv, stdout, stderr)
	case "targets":
		return runTargets(args, os.LookupEnv, stdout, stderr)
	case "keys":
		return runKeys(args, os.LookupEnv, stdout, stderr)
	case "learn":
		return runLearn(args, os.LookupEnv, stdin, stdout, stderr)
	case "completion":
		return runCompletion(args, stdout, stderr)
	case "healthcheck":
		return runHealthcheck(args, os.LookupEnv, stdout, stderr)
	case "version":
		fmt.Fprintln(stdout, "rebound", buildVersion())
		return 0
	case "help":
		fmt.Fprint(stdout, usage)
		return 0
	}
	fmt.Fprintf(stderr, "rebound: unknown command %q\n\n%s", name, usage)
	return 2
}

// buildVersion is the linker's, else what the build knows: the module's version
// after "go install MODULE@VERSION", the commit after a build in a checkout.
func buildVersion() string {
	if version != "" {
		return version
	}
	info, ok := debug.ReadBuildInfo()
	if !ok {
		return "dev"
	}
	if v := info.Main.Version; v != "" && v != "(devel)" {
		return v
	}
	commit, changed := "", ""
	for _, s := range info.Settings {
		switch {
		case s.Key == "vcs.revision":
			commit = "-" + s.Value[:min(len(s.Value), 12)]
		case s.Key == "vcs.modified" && s.Value == "true":
			changed = "-dirty"
		}
	}
	return "dev" + commit + changed
}
