package main

import (
	"bufio"
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"sync"
	"time"
)

// Call is one request for a client library: a line of JSON on its driver's
// standard input. What is empty is left to the library's own default.
type Call struct {
	ID                  int       `json:"id"`
	BaseURL             string    `json:"base_url"`
	APIKey              string    `json:"api_key"`
	Model               string    `json:"model"`
	Messages            []Message `json:"messages"`
	Tools               []Tool    `json:"tools,omitempty"`
	Stream              bool      `json:"stream"`
	IncludeUsage        bool      `json:"include_usage,omitempty"`
	MaxTokens           int       `json:"max_tokens,omitempty"`
	MaxCompletionTokens int       `json:"max_completion_tokens,omitempty"`
	Temperature         float64   `json:"temperature,omitempty"`
	Seed                int       `json:"seed,omitempty"`
	// Store is sent by clients of /v1/responses.
	Store *bool `json:"store,omitempty"`
	// TimeoutMS is the library's own time limit of one request, where it has one.
	TimeoutMS int64 `json:"timeout_ms,omitempty"`
	// CancelAfterMS is when the user leaves; GiveUpMS is when the harness stops
	// waiting. Both break the request off, as the library lets its user do.
	CancelAfterMS int64 `json:"cancel_after_ms,omitempty"`
	GiveUpMS      int64 `json:"give_up_ms,omitempty"`
}

// Message is one message of a conversation.
type Message struct {
	Role    string `json:"role"`
	Content string `json:"content"`
}

// Tool is one function that the model may call.
type Tool struct {
	Name        string         `json:"name"`
	Description string         `json:"description"`
	Parameters  map[string]any `json:"parameters"`
}

// Answer is what a client library made of the answer: a line of JSON on its
// driver's standard output.
type Answer struct {
	ID int `json:"id"`
	// OK says that the library reported no error. Text may be set without it.
	OK           bool       `json:"ok"`
	Text         string     `json:"text"`
	ToolCalls    []ToolCall `json:"tool_calls"`
	FinishReason string     `json:"finish_reason"`
	Model        string     `json:"model"`
	Usage        *Usage     `json:"usage"`
	Error        string     `json:"error"`
	ErrorType    string     `json:"error_type"`
	Status       int        `json:"status"`
	Code         string     `json:"code"`
	BegunMS      int64      `json:"begun_ms"` // of the Unix epoch
	ElapsedMS    int64      `json:"elapsed_ms"`
	FirstTokenMS int64      `json:"first_token_ms"` // -1: none, or not streamed
	Chunks       int        `json:"chunks"`         // that carried a part of the answer
	Ended        string     `json:"ended"`          // cancelled or gave_up, if it was broken off
	// Sent are the HTTP requests that the library made, where it lets one see.
	Sent []Sent `json:"sent"`

	// What only the plain client sees.
	Header   map[string]string `json:"-"`
	Comments []int64           `json:"-"` // when SSE comments and pings arrived, in milliseconds
	IDs      []string          `json:"-"` // different ids of a stream's chunks, or started messages
	Finishes int               `json:"-"` // chunks with a finish_reason
	Done     bool              `json:"-"` // [DONE] or message_stop came
	Wrong    []string          `json:"-"` // what breaks the rules of /v1/responses and /v1/messages
}

// ToolCall is one call of a function by the model.
type ToolCall struct {
	ID        string `json:"id"`
	Name      string `json:"name"`
	Arguments string `json:"arguments"`
}

// Usage is the token count of an answer.
type Usage struct {
	Prompt     int `json:"prompt_tokens"`
	Completion int `json:"completion_tokens"`
	Total      int `json:"total_tokens"`
}

// Sent is one HTTP request of a client library.
type Sent struct {
	AtMS   int64 `json:"at_ms"`
	Status int   `json:"status"`
}

// Begun is when the call began.
func (a *Answer) Begun() time.Time { return time.UnixMilli(a.BegunMS) }

// Elapsed is how long the call took.
func (a *Answer) Elapsed() time.Duration { return time.Duration(a.ElapsedMS) * time.Millisecond }

// Client answers calls; any number may be under way.
type Client interface {
	Do(c Call) (Answer, error)
	Close() error
}

// process is a driver: it reads questions and writes answers, each of them a line
// of JSON with the same id. It is safe for concurrent use.
type process struct {
	name string
	cmd  *exec.Cmd
	in   io.WriteCloser

	mu      sync.Mutex
	last    int
	waiting map[int]chan json.RawMessage
	dead    error
}

// startProcess starts a driver; what it says besides answers goes to a log file.
func startProcess(name, logFile string, command []string) (*process, error) {
	out, err := os.Create(logFile)
	if err != nil {
		return nil, err
	}
	defer out.Close() // the process has it, too
	p := &process{name: name, waiting: map[int]chan json.RawMessage{}}
	p.cmd = exec.Command(command[0], command[1:]...)
	p.cmd.Stderr = out
	p.cmd.Env = append(os.Environ(), "PYTHONDONTWRITEBYTECODE=1", "PYTHONUNBUFFERED=1", "LANGSMITH_TRACING=false")
	if p.in, err = p.cmd.StdinPipe(); err != nil {
		return nil, err
	}
	answers, err := p.cmd.StdoutPipe()
	if err != nil {
		return nil, err
	}
	if err := p.cmd.Start(); err != nil {
		return nil, fmt.Errorf("starting %s: %w", name, err)
	}
	go p.read(answers, logFile)
	return p, nil
}

func (p *process) read(from io.Reader, logFile string) {
	lines := bufio.NewScanner(from)
	lines.Buffer(nil, 64<<20)
	for lines.Scan() {
		var of struct {
			ID int `json:"id"`
		}
		if err := json.Unmarshal(lines.Bytes(), &of); err != nil {
			fmt.Fprintf(os.Stderr, "%s wrote what is no answer: %.200s\n", p.name, lines.Text())
			continue
		}
		p.mu.Lock()
		to := p.waiting[of.ID]
		delete(p.waiting, of.ID)
		p.mu.Unlock()
		if to != nil {
			to <- bytes.Clone(lines.Bytes())
		}
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	p.dead = fmt.Errorf("the driver of %s has ended, see %s", p.name, logFile)
	for _, to := range p.waiting {
		close(to)
	}
	p.waiting = nil
}

// ask writes the question that has an id of its own, and reads its answer.
func (p *process) ask(question func(id int) any, answer any) error {
	to := make(chan json.RawMessage, 1)
	p.mu.Lock()
	if p.dead != nil {
		p.mu.Unlock()
		return p.dead
	}
	p.last++
	p.waiting[p.last] = to
	line, err := json.Marshal(question(p.last))
	if err == nil {
		_, err = p.in.Write(append(line, '\n'))
	}
	p.mu.Unlock()
	if err != nil {
		return fmt.Errorf("asking %s: %w", p.name, err)
	}
	raw, ok := <-to
	if !ok {
		return p.dead
	}
	if err := json.Unmarshal(raw, answer); err != nil {
		return fmt.Errorf("%s wrote what is no answer: %w", p.name, err)
	}
	return nil
}

// Close ends the process.
func (p *process) Close() error {
	err := p.in.Close()
	kill := time.AfterFunc(5*time.Second, func() { _ = p.cmd.Process.Kill() })
	defer kill.Stop()
	return errors.Join(err, p.cmd.Wait())
}

// driver is a client library in a process of its own.
type driver struct{ *process }

// startDriver starts a driver; what it says besides answers goes to a log file.
func startDriver(name, logFile string, command []string) (Client, error) {
	p, err := startProcess(name, logFile, command)
	if err != nil {
		return nil, err
	}
	return driver{p}, nil
}

// Do runs one call to its end.
func (d driver) Do(c Call) (Answer, error) {
	var a Answer
	err := d.ask(func(id int) any {
		c.ID = id
		return c
	}, &a)
	return a, err
}
