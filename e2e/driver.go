package main

import (
	"bufio"
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
	Comments []int64           `json:"-"` // when SSE comments arrived, in milliseconds
	IDs      []string          `json:"-"` // different ids of a stream's chunks
	Finishes int               `json:"-"` // chunks with a finish_reason
	Done     bool              `json:"-"` // [DONE] came
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

// driver is a client library in a process of its own. It is safe for
// concurrent use.
type driver struct {
	name string
	cmd  *exec.Cmd
	in   io.WriteCloser

	mu      sync.Mutex
	last    int
	waiting map[int]chan Answer
	dead    error
}

// startDriver starts a driver; what it says besides answers goes to a log file.
func startDriver(name, logFile string, command []string) (Client, error) {
	out, err := os.Create(logFile)
	if err != nil {
		return nil, err
	}
	defer out.Close() // the process has it, too
	d := &driver{name: name, waiting: map[int]chan Answer{}}
	d.cmd = exec.Command(command[0], command[1:]...)
	d.cmd.Stderr = out
	d.cmd.Env = append(os.Environ(), "PYTHONDONTWRITEBYTECODE=1", "PYTHONUNBUFFERED=1", "LANGSMITH_TRACING=false")
	if d.in, err = d.cmd.StdinPipe(); err != nil {
		return nil, err
	}
	answers, err := d.cmd.StdoutPipe()
	if err != nil {
		return nil, err
	}
	if err := d.cmd.Start(); err != nil {
		return nil, fmt.Errorf("starting %s: %w", name, err)
	}
	go d.read(answers, logFile)
	return d, nil
}

func (d *driver) read(from io.Reader, logFile string) {
	lines := bufio.NewScanner(from)
	lines.Buffer(nil, 64<<20)
	for lines.Scan() {
		var a Answer
		if err := json.Unmarshal(lines.Bytes(), &a); err != nil {
			fmt.Fprintf(os.Stderr, "%s wrote what is no answer: %.200s\n", d.name, lines.Text())
			continue
		}
		d.mu.Lock()
		to := d.waiting[a.ID]
		delete(d.waiting, a.ID)
		d.mu.Unlock()
		if to != nil {
			to <- a
		}
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	d.dead = fmt.Errorf("the driver of %s has ended, see %s", d.name, logFile)
	for _, to := range d.waiting {
		close(to)
	}
	d.waiting = nil
}

// Do runs one call to its end.
func (d *driver) Do(c Call) (Answer, error) {
	to := make(chan Answer, 1)
	d.mu.Lock()
	if d.dead != nil {
		d.mu.Unlock()
		return Answer{}, d.dead
	}
	d.last++
	c.ID = d.last
	d.waiting[c.ID] = to
	line, err := json.Marshal(c)
	if err == nil {
		_, err = d.in.Write(append(line, '\n'))
	}
	d.mu.Unlock()
	if err != nil {
		return Answer{}, fmt.Errorf("asking %s: %w", d.name, err)
	}
	a, ok := <-to
	if !ok {
		return Answer{}, d.dead
	}
	return a, nil
}

// Close ends the process.
func (d *driver) Close() error {
	err := d.in.Close()
	kill := time.AfterFunc(5*time.Second, func() { _ = d.cmd.Process.Kill() })
	defer kill.Stop()
	return errors.Join(err, d.cmd.Wait())
}
