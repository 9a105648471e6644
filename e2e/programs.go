package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"time"

	"github.com/rebound-llm/rebound/proxy/upstreamtest"
)

// runProgram is a command-line agent that `rebound run` starts, unchanged and with an
// empty home.
type runProgram struct {
	name   string
	folder string // of clients, where it is installed
	args   []string
	env    []string
}

// programModel is a name that all of them know.
const programModel = "gpt-4.1"

const programPrompt = "Say hello."

var runPrograms = []runProgram{
	{"codex", "agents-cli", []string{"exec", "--skip-git-repo-check", "--dangerously-bypass-approvals-and-sandbox", "-m", programModel, programPrompt}, nil},
	{"opencode", "agents-cli", []string{"run", "-m", "openai/" + programModel, programPrompt}, []string{"OPENCODE_DISABLE_AUTOUPDATE=1"}},
	{"pi", "agents-node", []string{"--provider", "openai", "--model", programModel, "-p", programPrompt}, []string{"PI_OFFLINE=1", "PI_TELEMETRY=0"}},
	{"qwen", "run-cli", []string{"--auth-type", "openai", "-m", programModel, "-p", programPrompt}, nil},
	{"copilot", "run-cli", []string{"-p", programPrompt, "--allow-all-tools"},
		[]string{"COPILOT_PROVIDER_TYPE=openai", "COPILOT_PROVIDER_API_KEY=" + ClientKey, "COPILOT_MODEL=" + programModel}},
}

// programFault is what each of them meets: two refusals, then a stream that breaks half-way.
const programFault = "503x2/cut=0.5/ok"

// runAllPrograms runs the programs, one after another, and says of each what was wrong.
func (o *options) runAllPrograms(binary string) (passed, failed int) {
	for _, p := range o.programs {
		began := time.Now()
		if err := p.run(o.tree, binary); err != nil {
			failed++
			fmt.Printf("FAIL  rebound run -- %s\n      %v\n", p.name, err)
			continue
		}
		passed++
		fmt.Printf("ok    rebound run -- %-12s %.0f s\n", p.name, time.Since(began).Seconds())
	}
	return passed, failed
}

// run starts the program before a faulty upstream: it must print the whole answer, and
// the summary what was recovered.
func (p *runProgram) run(t tree, binary string) error {
	const size = 80 // one line
	up, err := upstreamtest.New(upstreamtest.Options{Bytes: size}).Listen("127.0.0.1:0")
	if err != nil {
		return err
	}
	defer up.Close()
	if err := up.Script(programModel, programFault); err != nil {
		return err
	}
	dir, err := os.MkdirTemp("", "rebound-run-")
	if err != nil {
		return err
	}
	defer os.RemoveAll(dir)
	home, work := filepath.Join(dir, "home"), filepath.Join(dir, "work")
	if err := errors.Join(os.Mkdir(home, 0o755), os.Mkdir(work, 0o755)); err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(context.Background(), 3*time.Minute)
	defer cancel()
	program := t.cached(p.folder, "node_modules", ".bin", p.name)
	cmd := exec.CommandContext(ctx, binary, append([]string{"run", "--", program}, p.args...)...)
	cmd.Dir, cmd.WaitDelay = work, time.Second
	cmd.Env = append(p.env, "HOME="+home, "PATH="+os.Getenv("PATH"), "LC_ALL=C.UTF-8", "OPENAI_API_KEY="+ClientKey, "OPENAI_BASE_URL="+up.URL()+"/v1")
	var printed, said bytes.Buffer
	cmd.Stdout, cmd.Stderr = &printed, &said
	if err := cmd.Run(); err != nil {
		return fmt.Errorf("%w: %.600s", err, said.String())
	}
	if want := upstreamtest.TextOf(programModel, "", size); !strings.Contains(printed.String(), strings.TrimSpace(want)) {
		return fmt.Errorf("it printed %.600q, without %q", printed.String(), want)
	}
	if want := "rebound: 1 cut stream continued, 2 failed requests sent again\n"; !strings.HasSuffix(said.String(), want) {
		return fmt.Errorf("its standard error ends %q, not with %q", said.String()[max(0, said.Len()-300):], want)
	}
	return nil
}
