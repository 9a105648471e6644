//go:build unix

package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/rogpeppe/go-internal/testscript"

	"github.com/rebound-llm/rebound/proxy/upstreamtest"
)

// TestMain lets scripts run this binary as the program rebound, and as post, a client.
func TestMain(m *testing.M) {
	testscript.Main(m, map[string]func(){
		"rebound": func() { os.Exit(run(os.Args[1:], os.Stdin, os.Stdout, os.Stderr)) },
		"post":    func() { os.Exit(post(os.Args[1:], os.Stdout, os.Stderr)) },
	})
}

// TestScript runs the program end to end: testdata/script/*.txtar. Each script
// has a scripted upstream of its own ($UPSTREAM), a free address ($ADDR), and these
// commands besides those of testscript:
//
//	exits CODE PROGRAM [ARGUMENT...]  exec, for one exit code
//	await URL [STATUS]   waits until the address answers with 200 or that status
//	down URL             waits until the address does not answer
//	asked MODEL N        waits until the upstream has got N requests for the model, and
//	                     fails if it got more
//	signal NAME          sends HUP, INT or TERM to the gateway in the background
//	logged TEXT          waits until the gateway's log ($LOG) contains the text
//	post URL FILE [NAME=VALUE...]  a program: sends the file with these headers and
//	                     prints the status, the X-Rebound headers and the answer;
//	                     exit code 1 unless that is complete and its status is 200
func TestScript(t *testing.T) {
	// The deadline kills a program that does not end.
	end := time.Now().Add(5 * time.Minute) // of all scripts, on a busy machine
	if limit, ok := t.Deadline(); ok && limit.Before(end) {
		end = limit.Add(-5 * time.Second)
	}
	testscript.Run(t, testscript.Params{
		Deadline:            end,
		Dir:                 filepath.Join("testdata", "script"),
		RequireExplicitExec: true,
		RequireUniqueNames:  true,
		Setup: func(env *testscript.Env) error {
			up, err := upstreamtest.New(upstreamtest.Options{}).Listen("127.0.0.1:0")
			if err != nil {
				return err
			}
			env.Defer(up.Close)
			env.Values[upstreamKey{}] = up
			addr, err := upstreamtest.FreeAddr()
			env.Setenv("UPSTREAM", up.URL())
			env.Setenv("ADDR", addr)
			env.Setenv("LOG", filepath.Join(env.WorkDir, "gateway.log"))
			return err
		},
		Cmds: map[string]func(ts *testscript.TestScript, neg bool, args []string){
			"exits": exits, "await": await, "down": down, "asked": asked, "signal": signalGateway, "logged": logged,
		},
	})
}

type upstreamKey struct{}

// patience is the time limit of every wait in a script.
const patience = 20 * time.Second

// until waits for a condition.
func until(ts *testscript.TestScript, what string, cond func() bool) {
	end := time.Now().Add(patience)
	for !cond() {
		if time.Now().After(end) {
			ts.Fatalf("not within %v: %s", patience, what)
		}
		time.Sleep(10 * time.Millisecond)
	}
}

func usageOf(ts *testscript.TestScript, ok bool, text string) {
	if !ok {
		ts.Fatalf("usage: %s", text)
	}
}

// status returns the status of a URL, 0 without an answer.
func status(url string) int {
	client := http.Client{Timeout: time.Second, Transport: &http.Transport{DisableKeepAlives: true}}
	resp, err := client.Get(url)
	if err != nil {
		return 0
	}
	resp.Body.Close()
	return resp.StatusCode
}

func exits(ts *testscript.TestScript, neg bool, args []string) {
	usageOf(ts, !neg && len(args) >= 2, "exits CODE PROGRAM [ARGUMENT...]")
	code := 0
	err := ts.Exec(args[1], args[2:]...)
	if exit := (*exec.ExitError)(nil); errors.As(err, &exit) {
		code = exit.ExitCode()
	} else {
		ts.Check(err)
	}
	if strconv.Itoa(code) != args[0] {
		ts.Fatalf("exit code %d, want %s", code, args[0])
	}
}

func await(ts *testscript.TestScript, neg bool, args []string) {
	usageOf(ts, !neg && (len(args) == 1 || len(args) == 2), "await URL [STATUS]")
	want := "200"
	if len(args) == 2 {
		want = args[1]
	}
	until(ts, args[0]+" answers "+want, func() bool { return strconv.Itoa(status(args[0])) == want })
}

func down(ts *testscript.TestScript, neg bool, args []string) {
	usageOf(ts, !neg && len(args) == 1, "down URL")
	until(ts, args[0]+" is down", func() bool { return status(args[0]) == 0 })
}

func asked(ts *testscript.TestScript, neg bool, args []string) {
	usageOf(ts, !neg && len(args) == 2, "asked MODEL N")
	want, err := strconv.Atoi(args[1])
	ts.Check(err)
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	recs, _ := ts.Value(upstreamKey{}).(*upstreamtest.Running).AwaitArrival(ctx, args[0], want)
	if len(recs) != want {
		ts.Fatalf("the upstream got %d requests for %s, want %d", len(recs), args[0], want)
	}
}

func signalGateway(ts *testscript.TestScript, neg bool, args []string) {
	signals := map[string]os.Signal{"HUP": syscall.SIGHUP, "INT": syscall.SIGINT, "TERM": syscall.SIGTERM}
	usageOf(ts, !neg && len(args) == 1 && signals[args[0]] != nil, "signal HUP|INT|TERM")
	for _, cmd := range ts.BackgroundCmds() {
		if strings.Contains(strings.Join(cmd.Args, " "), "rebound serve") {
			ts.Check(cmd.Process.Signal(signals[args[0]]))
			return
		}
	}
	ts.Fatalf("no gateway runs in the background")
}

func logged(ts *testscript.TestScript, neg bool, args []string) {
	usageOf(ts, !neg && len(args) == 1, "logged TEXT")
	until(ts, "the log says "+args[0], func() bool {
		text, err := os.ReadFile(ts.Getenv("LOG"))
		return err == nil && strings.Contains(string(text), args[0])
	})
}

// post is the client that scripts run. It returns the exit code.
func post(args []string, stdout, stderr io.Writer) int {
	if len(args) < 2 {
		fmt.Fprintln(stderr, "usage: post URL FILE [NAME=VALUE...]")
		return 2
	}
	body, err := os.Open(args[1])
	if err != nil {
		fmt.Fprintln(stderr, err)
		return 2
	}
	defer body.Close()
	req, err := http.NewRequest(http.MethodPost, args[0], body)
	if err != nil {
		fmt.Fprintln(stderr, err)
		return 2
	}
	req.Header.Set("Content-Type", "application/json")
	for _, pair := range args[2:] {
		name, value, _ := strings.Cut(pair, "=")
		req.Header.Set(name, value)
	}
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		fmt.Fprintln(stderr, err)
		return 1
	}
	defer resp.Body.Close()
	fmt.Fprintln(stdout, "status:", resp.StatusCode)
	for name, values := range resp.Header {
		if strings.HasPrefix(name, "X-Rebound-") {
			fmt.Fprintf(stdout, "%s: %s\n", name, strings.Join(values, ", "))
		}
	}
	if _, err := io.Copy(stdout, resp.Body); err != nil {
		fmt.Fprintln(stderr, "the answer is cut:", err)
		return 1
	}
	if resp.StatusCode != http.StatusOK {
		return 1
	}
	return 0
}
