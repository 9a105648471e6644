package main

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync"

	"github.com/rebound-llm/rebound/e2e/agents"
)

// plain is the client that is no library; the other two speak /v1/responses and /v1/messages.
const plain, plainResponses, plainMessages = "plain", "plain-responses", "plain-messages"

// library is a client library and how its driver is started, once installed.
type library struct {
	name    string
	command func(t tree) []string
}

// streamHelper and messageHelper are ways to ask that know streams only.
const streamHelper, messageHelper = "node-stream", "anthropic-stream"

var streamHelpers = []string{streamHelper, messageHelper}

// libraries are the clients, in the order of the tables.
var libraries = []library{
	{"openai-go", func(t tree) []string { return []string{t.cached("openai-go")} }},
	{"openai-node", func(t tree) []string { return []string{"node", t.cached("node", "openai.mjs")} }},
	{"openai-python", func(t tree) []string { return []string{t.python(), t.client("python", "openai_driver.py")} }},
	{"vercel", func(t tree) []string { return []string{"node", t.cached("node", "vercel.mjs")} }},
	{"langchain", func(t tree) []string { return []string{t.python(), t.client("python", "langchain_driver.py")} }},
	{"node-responses", func(t tree) []string { return []string{"node", t.cached("node", "responses.mjs")} }},
	{streamHelper, func(t tree) []string { return []string{"node", t.cached("node", "responses.mjs"), "stream"} }},
	{"python-responses", func(t tree) []string { return []string{t.python(), t.client("python", "responses_driver.py")} }},
	{"vercel-responses", func(t tree) []string { return []string{"node", t.cached("node", "vercel.mjs"), "responses"} }},
	{"anthropic-node", func(t tree) []string { return []string{"node", t.cached("node", "messages.mjs")} }},
	{messageHelper, func(t tree) []string { return []string{"node", t.cached("node", "messages.mjs"), "stream"} }},
	{"anthropic-python", func(t tree) []string { return []string{t.python(), t.client("python", "messages_driver.py")} }},
	{"vercel-anthropic", func(t tree) []string { return []string{"node", t.cached("node", "vercel.mjs"), "anthropic"} }},
	{"langchain-anthropic", func(t tree) []string {
		return []string{t.python(), t.client("python", "langchain_driver.py"), "anthropic"}
	}},
}

// clientNames are all clients, the plain ones last.
func clientNames() []string {
	var names []string
	for _, l := range libraries {
		names = append(names, l.name)
	}
	return append(names, plain, plainResponses, plainMessages)
}

// tree is where things are: the checkout and the cache.
type tree struct{ root, cache string }

func (t tree) cached(parts ...string) string {
	return filepath.Join(append([]string{t.cache}, parts...)...)
}

func (t tree) client(parts ...string) string {
	return filepath.Join(append([]string{t.root, "e2e", "clients"}, parts...)...)
}

func (t tree) python() string { return t.cached("python", "bin", "python") }

func (t tree) agentPython() string { return t.cached("agents-python", "bin", "python") }

// command runs a program to its end and returns what it printed.
func command(dir, name string, args ...string) (string, error) {
	c := exec.Command(name, args...)
	c.Dir = dir
	out, err := c.CombinedOutput()
	if err != nil {
		return "", fmt.Errorf("%s %s: %w\n%s", name, strings.Join(args, " "), err, out)
	}
	return string(out), nil
}

var number = regexp.MustCompile(`(\d+)\.(\d+)`)

// atLeast checks the version of a program that must be there.
func atLeast(name string, major, minor int) error {
	out, err := command("", name, "--version")
	if err != nil {
		return fmt.Errorf("%s %d.%d or newer is needed: %w", name, major, minor, err)
	}
	if v := number.FindStringSubmatch(out); v != nil {
		a, _ := strconv.Atoi(v[1])
		b, _ := strconv.Atoi(v[2])
		if a > major || a == major && b >= minor {
			return nil
		}
	}
	return fmt.Errorf("%s %d.%d or newer is needed, found %s", name, major, minor, strings.TrimSpace(out))
}

// once does the work unless it was done for the same pins; a file keeps their hash.
func once(pins, mark string, work func() error) error {
	data, err := os.ReadFile(pins)
	if err != nil {
		return err
	}
	sum := sha256.Sum256(data)
	want := hex.EncodeToString(sum[:])
	if got, err := os.ReadFile(mark); err == nil && string(got) == want {
		return nil
	}
	if err := work(); err != nil {
		return err
	}
	return os.WriteFile(mark, []byte(want), 0o644)
}

func installGo(t tree) error {
	_, err := command(t.client("go"), "go", "build", "-o", t.cached("openai-go"), ".")
	return err
}

// installPython makes an environment of a client folder's pins.
func installPython(t tree, folder string) error {
	if err := atLeast("python3", 3, 11); err != nil {
		return err
	}
	pins, venv := t.client(folder, "requirements.txt"), t.cached(folder)
	return once(pins, filepath.Join(venv, "installed"), func() error {
		if err := os.RemoveAll(venv); err != nil {
			return err
		}
		if _, err := command("", "python3", "-m", "venv", venv); err != nil {
			return err
		}
		_, err := command("", filepath.Join(venv, "bin", "python"), "-m", "pip", "install", "--quiet", "--disable-pip-version-check", "-r", pins)
		return err
	})
}

// installNode puts the drivers beside their libraries, where Node looks for them.
func installNode(t tree, folder string) error {
	if err := atLeast("node", 20, 0); err != nil {
		return err
	}
	at := t.cached(folder)
	err := once(t.client(folder, "package.json"), filepath.Join(at, "installed"), func() error {
		if err := os.RemoveAll(at); err != nil {
			return err
		}
		if err := os.MkdirAll(at, 0o755); err != nil {
			return err
		}
		if err := copyFile(t.client(folder, "package.json"), at); err != nil {
			return err
		}
		_, err := command(at, "npm", "install", "--no-package-lock", "--no-audit", "--no-fund", "--loglevel=error")
		return err
	})
	if err != nil {
		return err
	}
	drivers, err := filepath.Glob(t.client(folder, "*.mjs"))
	if err != nil {
		return err
	}
	for _, d := range drivers {
		if err := copyFile(d, at); err != nil {
			return err
		}
	}
	return nil
}

func copyFile(file, dir string) error {
	data, err := os.ReadFile(file)
	if err != nil {
		return err
	}
	return os.WriteFile(filepath.Join(dir, filepath.Base(file)), data, 0o644)
}

// install makes the named clients ready, one ecosystem beside the other.
func install(t tree, names map[string]bool) error {
	if err := os.MkdirAll(t.cached("logs"), 0o755); err != nil {
		return err
	}
	anyOf := func(clients ...string) bool {
		return slices.ContainsFunc(clients, func(c string) bool { return names[c] })
	}
	var todo sync.WaitGroup
	errs := make([]error, 8)
	for i, work := range []struct {
		needed bool
		do     func(tree) error
	}{
		{names["openai-go"], installGo},
		{anyOf("openai-python", "langchain", "python-responses", "anthropic-python", "langchain-anthropic"), func(t tree) error { return installPython(t, "python") }},
		{anyOf("openai-node", "vercel", "node-responses", streamHelper, "vercel-responses", "anthropic-node", messageHelper, "vercel-anthropic"),
			func(t tree) error { return installNode(t, "node") }},
		{anyOf(agents.LoopPython, agents.OpenAIAgents, agents.LangGraph, agents.PydanticAI, agents.LoopPythonResponses, agents.OpenAIAgentsResponses),
			func(t tree) error { return installPython(t, "agents-python") }},
		{names[judgeClient], func(t tree) error { return installPython(t, judgeClient) }},
		{names["run-cli"], func(t tree) error { return installNode(t, "run-cli") }},
		{anyOf("agents-node", agents.LoopNode, agents.Vercel, agents.Pi, agents.LoopNodeResponses, agents.AgentsNode, agents.VercelResponses, agents.VercelAnthropic),
			func(t tree) error { return installNode(t, "agents-node") }},
		{anyOf("agents-cli", agents.Codex, agents.Opencode, agents.OpencodeAnthropic), func(t tree) error { return installNode(t, "agents-cli") }},
	} {
		if work.needed {
			todo.Go(func() { errs[i] = work.do(t) })
		}
	}
	todo.Wait()
	for _, err := range errs {
		if err != nil {
			return fmt.Errorf("installing client libraries: %w", err)
		}
	}
	return nil
}

// startClients starts the drivers of the named clients.
func startClients(t tree, names map[string]bool) (map[string]Client, error) {
	clients := map[string]Client{}
	for _, name := range []string{plain, plainResponses, plainMessages} {
		if names[name] {
			clients[name] = newPlainClient(name)
		}
	}
	for _, l := range libraries {
		if !names[l.name] {
			continue
		}
		c, err := startDriver(l.name, t.cached("logs", l.name+".log"), l.command(t))
		if err != nil {
			return clients, err
		}
		clients[l.name] = c
	}
	return clients, nil
}
