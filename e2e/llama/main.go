// Command llama runs the tests that llama-server has of its own for chat completions,
// responses and messages twice: straight, and through the gateway. It demands the same verdict
// on each.
//
//	go run ./e2e/llama          builds llama-server first: ten minutes and more, once
//	go run ./e2e/llama -k NAME  only tests with such a name
//	go run ./e2e/llama -lab FILE.gguf  asks a real model instead; see lab.go
//
// Server and tests come from the source package llama_cpp_python, the model has
// random weights, so that tests which expect certain words fail both ways.
package main

import (
	"context"
	"encoding/xml"
	"errors"
	"flag"
	"fmt"
	"log"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
)

// suites are the files of tests that are run.
var suites = []string{"unit/test_compat_oai_responses.py", "unit/test_compat_anthropic.py", "unit/test_chat_completion.py"}

func main() {
	log.SetFlags(0)
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	var err error
	if os.Getenv(envModel) != "" {
		err = front(ctx) // the tests have started it as their server
	} else {
		only := flag.String("k", "", "run only tests with such a `NAME`, as pytest's -k, or trials of -lab whose name contains it")
		model := flag.String("lab", "", "ask the model of this `FILE` (GGUF), straight and through the gateway, and print a table")
		server := flag.String("server", "", "llama-server's `PROGRAM` for -lab (default: the one built here)")
		count := flag.Int("n", 40, "how often -lab asks each thing")
		flag.Parse()
		err = run(ctx, *only, *model, *server, *count)
	}
	if err != nil {
		log.Fatal(err)
	}
}

// run installs what is needed, and runs the lab or the server's tests.
func run(ctx context.Context, only, model, server string, count int) error {
	root, err := os.Getwd()
	if err != nil {
		return err
	}
	t := tree{clients: filepath.Join(root, "e2e", "clients", "llama"), at: filepath.Join(root, "e2e", ".cache", "llama")}
	if server == "" {
		if err := t.install(ctx); err != nil {
			return err
		}
		server = t.server()
	}
	if err := os.MkdirAll(t.at, 0o755); err != nil {
		return err
	}
	if err := t.command(ctx, root, "go", "build", "-o", t.gateway(), "./cmd/rebound"); err != nil {
		return err
	}
	if model != "" {
		return lab(ctx, t.gateway(), server, model, only, count, os.Stdout)
	}
	return t.compare(ctx, only)
}

// compare runs the tests both ways.
func (t tree) compare(ctx context.Context, only string) error {
	straight, err := t.tests(ctx, only, "")
	if err != nil {
		return err
	}
	through, err := t.tests(ctx, only, t.gateway())
	if err != nil {
		return err
	}
	return judge(straight, through)
}

// verdict is what became of a test: empty if it passed, else where it failed and how.
type verdict struct{ name, failure string }

// judge prints the verdicts and fails where they differ.
func judge(straight, through []verdict) error {
	if len(straight) == 0 || len(straight) != len(through) {
		return fmt.Errorf("%d tests straight, %d through the gateway", len(straight), len(through))
	}
	passed, differ := 0, 0
	for i, a := range straight {
		b := through[i]
		switch {
		case a != b:
			differ++
			fmt.Printf("DIFFERS %s\n  straight: %s\n  through:  %s %s\n", a.name, a.failure, b.name, b.failure)
		case a.failure == "":
			passed++
			fmt.Printf("passes  %s\n", a.name)
		default:
			fmt.Printf("fails   %s: %s\n", a.name, a.failure)
		}
	}
	fmt.Printf("%d tests: %d pass both ways, %d fail alike, %d differ\n", len(straight), passed, len(straight)-passed-differ, differ)
	if differ > 0 {
		return errors.New("the gateway makes a difference")
	}
	if passed == 0 {
		return errors.New("no test passes: nothing is shown")
	}
	return nil
}

// tests runs the suites; with a gateway's program, through it.
func (t tree) tests(ctx context.Context, only, gateway string) ([]verdict, error) {
	self, err := os.Executable()
	if err != nil {
		return nil, err
	}
	way := "straight"
	if gateway != "" {
		way = "through"
	}
	port, err := freePort()
	if err != nil {
		return nil, err
	}
	report, said := filepath.Join(t.at, way+".xml"), filepath.Join(t.at, way+".log")
	_ = os.Remove(report)
	out, err := os.Create(said)
	if err != nil {
		return nil, err
	}
	defer out.Close()
	c := exec.CommandContext(ctx, t.python(), slices.Concat([]string{"-m", "pytest", "--noconftest", "-p", "rebound_plugin", "-q", "-k", only, "--junitxml", report}, suites)...)
	c.Dir = filepath.Join(t.source(), "tools", "server", "tests")
	c.Env = append(os.Environ(), "PYTHONPATH="+t.clients+string(filepath.ListSeparator)+c.Dir, "LLAMA_SERVER_BIN_PATH="+self, "PORT="+port,
		envServer+"="+t.server(), envModel+"="+t.model(), envGateway+"="+gateway)
	c.Stdout, c.Stderr = out, out
	fmt.Printf("%s: %s\n", way, said)
	if err := c.Run(); err != nil {
		if exit := (*exec.ExitError)(nil); !errors.As(err, &exit) || exit.ExitCode() != 1 { // 1: some failed
			return nil, fmt.Errorf("running the tests %s: %w, see %s", way, err, said)
		}
	}
	return read(report)
}

// read reads the report of a run.
func read(file string) ([]verdict, error) {
	data, err := os.ReadFile(file)
	if err != nil {
		return nil, err
	}
	type failure struct {
		Message string `xml:"message,attr"`
		Text    string `xml:",chardata"`
	}
	var report struct {
		Cases []struct {
			Class   string    `xml:"classname,attr"`
			Name    string    `xml:"name,attr"`
			Failure []failure `xml:"failure"`
			Error   []failure `xml:"error"`
		} `xml:"testsuite>testcase"`
	}
	if err := xml.Unmarshal(data, &report); err != nil {
		return nil, fmt.Errorf("reading %s: %w", file, err)
	}
	var list []verdict
	for _, c := range report.Cases {
		v := verdict{name: c.Class + " " + c.Name}
		for _, f := range append(c.Failure, c.Error...) {
			message, _, _ := strings.Cut(f.Message, "\n")
			v.failure += lastLine(f.Text) + " " + message
		}
		list = append(list, v)
	}
	return list, nil
}

// lastLine is the place in the code at the end of a trace.
func lastLine(trace string) string {
	lines := strings.Split(strings.TrimSpace(trace), "\n")
	return lines[len(lines)-1]
}
