package upstream

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os/exec"
	"strings"
	"sync"
	"time"
)

const (
	// commandTime limits one run of a command.
	commandTime = 30 * time.Second
	// commandAgain is the shortest interval between runs of a failing command.
	commandAgain = time.Second
	// maxOutput limits how much of a command's output is read, in bytes.
	maxOutput = 64 << 10
	// renewAt is the fraction of a key's lifetime after which it is renewed in the background.
	renewAt = 0.8
)

// CredentialError means that a key's command printed no valid key.
type CredentialError struct {
	Key string // its label
	Err error
}

// Error implements error.
func (e *CredentialError) Error() string {
	return fmt.Sprintf("the command of the key %s gave no key: %v", e.Key, e.Err)
}

// Unwrap returns the command's error.
func (e *CredentialError) Unwrap() error { return e.Err }

// command is a key that a program prints, such as a cloud's access token. One run serves all waiting
// requests; it uses no shell. Safe for concurrent use.
type command struct {
	name    string
	args    []string
	ttl     time.Duration // 0: valid until an upstream refuses it
	changed func()        // called after a run has printed a key; may be nil

	mu      sync.Mutex
	value   string
	at      time.Time     // when value was printed
	failed  time.Time     // when the latest run failed
	err     error         // the error of the latest run
	running chan struct{} // closed at the end of the current run; nil without one
}

// key returns a valid key. It runs the command again for a key other than refused, which an upstream
// has refused.
func (c *command) key(ctx context.Context, refused string) (string, error) {
	c.mu.Lock()
	age := time.Since(c.at)
	fresh := c.value != "" && c.value != refused && (c.ttl == 0 || age < c.ttl)
	switch {
	case fresh && (c.ttl == 0 || age < time.Duration(renewAt*float64(c.ttl))), time.Since(c.failed) < commandAgain:
	case c.running == nil:
		c.running = make(chan struct{})
		go c.run()
	}
	running := c.running
	c.mu.Unlock()
	if !fresh && running != nil {
		select {
		case <-running:
		case <-ctx.Done():
			return "", context.Cause(ctx)
		}
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.value != "" && (fresh || c.err == nil) {
		return c.value, nil
	}
	return "", &CredentialError{c.name, c.err}
}

// run runs the command once.
func (c *command) run() {
	ctx, cancel := context.WithTimeout(context.Background(), commandTime)
	defer cancel()
	cmd := exec.CommandContext(ctx, c.args[0], c.args[1:]...)
	var out, complaint bytes.Buffer
	cmd.Stdout, cmd.Stderr = &capped{w: &out, left: maxOutput}, &capped{w: &complaint, left: 1 << 10}
	cmd.WaitDelay = time.Second
	err := cmd.Run()
	value := strings.TrimRight(out.String(), "\r\n")
	switch {
	case err != nil:
		if line, _, _ := strings.Cut(strings.TrimSpace(complaint.String()), "\n"); line != "" {
			err = fmt.Errorf("%w: %s", err, line)
		}
	case value == "":
		err = errors.New("it prints nothing")
	case strings.ContainsFunc(value, func(r rune) bool { return r <= ' ' || r > '~' }):
		err = errors.New("it prints more than one word of plain text")
	}
	c.mu.Lock()
	if c.err = err; err == nil {
		c.value, c.at = value, time.Now()
	} else {
		c.failed = time.Now()
	}
	close(c.running)
	c.running = nil
	c.mu.Unlock()
	if err == nil && c.changed != nil {
		c.changed()
	}
}

// printed returns the last printed key, or "" before the first run.
func (c *command) printed() string {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.value
}

// capped drops everything beyond its limit.
type capped struct {
	w    io.Writer
	left int
}

// Write implements io.Writer.
func (c *capped) Write(p []byte) (int, error) {
	n := min(len(p), c.left)
	c.left -= n
	_, err := c.w.Write(p[:n])
	return len(p), err
}
