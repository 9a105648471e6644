package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strings"
	"text/tabwriter"
	"time"

	"github.com/spf13/cobra"

	"github.com/rebound-llm/rebound/configs"
)

// adminCommand is a command that calls the admin API of a running gateway.
type adminCommand struct {
	*cobra.Command
	stdout      io.Writer
	adminClient // its url is set once the flags are parsed
}

// adminCommand returns a command with the flag --url. The caller sets what it does with
// [adminCommand.do].
func (p *program) adminCommand(use, short, long string, args cobra.PositionalArgs) *adminCommand {
	c := &adminCommand{Command: &cobra.Command{Use: use, Short: short, Args: usageArgs(args)}, stdout: p.stdout, adminClient: adminClient{env: p.env}}
	c.Long = long + `

Without --url it uses the gateway on this machine (at REBOUND_LISTEN, or else at
127.0.0.1:8080). For a gateway on another machine set REBOUND_ADMIN_TOKEN.

Exit code: 0 done, 1 the gateway does not answer or refuses, 2 wrong command line.`
	c.Flags().StringVar(&c.url, "url", "", "base `URL` of the gateway, such as http://127.0.0.1:8080")
	return c
}

// do sets the function that runs the command, and returns the command.
func (c *adminCommand) do(run func(args []string) error) *cobra.Command {
	c.RunE = func(_ *cobra.Command, args []string) error {
		if c.url == "" {
			var err error
			if c.url, err = localURL(c.env); err != nil {
				return usageError{err}
			}
		}
		c.url = strings.TrimSuffix(strings.TrimRight(c.url, "/"), "/v1")
		if u, err := url.Parse(c.url); err != nil || u.Host == "" || u.Scheme != "http" && u.Scheme != "https" {
			return usageError{fmt.Errorf("--url %q: write it as http://HOST:PORT", c.url)}
		}
		return run(args)
	}
	return c.Command
}

// json adds the flag --json.
func (c *adminCommand) json() *bool {
	return c.Flags().Bool("json", false, "print the gateway's answer as JSON")
}

// show prints the gateway's answer at a path: unchanged if raw, or else as the table that
// write makes of it, with tabs between the columns.
func (c *adminCommand) show(path string, raw bool, write func(w io.Writer, answer []byte) error) error {
	answer, err := c.ask(http.MethodGet, path, nil)
	if err != nil {
		return err
	}
	if raw {
		_, err = c.stdout.Write(answer)
		return err
	}
	w := tabwriter.NewWriter(c.stdout, 0, 0, 2, ' ', 0)
	if err := write(w, answer); err != nil {
		return fmt.Errorf("not a Rebound gateway: %w", err)
	}
	return w.Flush()
}

// act sends a request without an answer, and prints what it has done.
func (c *adminCommand) act(method, path string, body io.Reader, format string, done ...any) error {
	if _, err := c.ask(method, path, body); err != nil {
		return err
	}
	_, err := fmt.Fprintf(c.stdout, format+"\n", done...)
	return err
}

// listTable returns a write function for [adminCommand.show] and an answer {"field": [...]}.
// It writes the head and a row for each entry, or the text empty if there is none.
func listTable[T any](field, empty, head string, row func(w io.Writer, entry T)) func(w io.Writer, answer []byte) error {
	return func(w io.Writer, answer []byte) error {
		var fields map[string]json.RawMessage
		if err := json.Unmarshal(answer, &fields); err != nil {
			return err
		}
		var entries []T
		if err := json.Unmarshal(fields[field], &entries); err != nil { // also if the field is missing
			return err
		}
		if len(entries) == 0 {
			fmt.Fprintln(w, empty)
			return nil
		}
		fmt.Fprintln(w, head)
		for _, e := range entries {
			row(w, e)
		}
		return nil
	}
}

// adminClient calls the admin API of a gateway.
type adminClient struct {
	url string // without a trailing slash
	env configs.Env
}

const (
	adminTimeout   = 5 * time.Second // of a request other than a stream
	maxAdminAnswer = 32 << 20        // limit of an answer, in bytes
)

// ask sends a request and reads the whole answer. A nil body sends none.
func (c adminClient) ask(method, path string, body io.Reader) ([]byte, error) {
	ctx, cancel := context.WithTimeout(context.Background(), adminTimeout)
	defer cancel()
	resp, err := c.open(ctx, method, path, body, "")
	if err != nil {
		return nil, err
	}
	defer resp.Body.Close()
	return io.ReadAll(io.LimitReader(resp.Body, maxAdminAnswer))
}

// open sends a request and returns the answer, whose body the caller closes. A stream continues
// after the event with the id last, if not "". An answer with an error status is an error.
func (c adminClient) open(ctx context.Context, method, path string, body io.Reader, last string) (*http.Response, error) {
	req, err := http.NewRequestWithContext(ctx, method, c.url+path, body)
	if err != nil {
		return nil, err
	}
	if token, ok := c.env(configs.EnvAdminToken); ok && token != "" {
		req.Header.Set("Authorization", "Bearer "+token)
	}
	if last != "" {
		req.Header.Set("Last-Event-ID", last)
	}
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		if why := new(url.Error); errors.As(err, &why) {
			err = why.Err // without the whole URL
		}
		return nil, fmt.Errorf("no gateway answers at %s (--url names another): %w", c.url, err)
	}
	if resp.StatusCode < 300 {
		return resp, nil
	}
	defer resp.Body.Close()
	var answer struct {
		Error struct{ Type, Message string } `json:"error"`
	}
	text, _ := io.ReadAll(io.LimitReader(resp.Body, maxAdminAnswer))
	_ = json.Unmarshal(text, &answer)                       // what is no error of a gateway is from another server
	if bytes.Contains(text, []byte("to an HTTPS server")) { // net/http's own words
		return nil, fmt.Errorf("the gateway at %s serves HTTPS: write --url https://NAME:PORT with the name in its certificate", c.url)
	}
	if answer.Error.Type != "rebound_error" {
		return nil, fmt.Errorf("not a Rebound gateway: %s answers %s (--url names another)", c.url, resp.Status)
	}
	return nil, errors.New(answer.Error.Message)
}
