package main

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"strings"
	"text/tabwriter"
	"time"

	"github.com/spf13/cobra"

	"github.com/rebound-llm/rebound/configs"
)

// adminCommand is a command that asks the admin interface of a running gateway.
type adminCommand struct {
	*cobra.Command
	stdout      io.Writer
	adminClient // has its URL once the flags are read
}

// adminCommand returns a command with the flag --url; its RunE, set by do, gets the
// words behind the flags.
func (p *program) adminCommand(use, short, long string, args cobra.PositionalArgs) *adminCommand {
	c := &adminCommand{Command: &cobra.Command{Use: use, Short: short, Args: words(args)}, stdout: p.stdout, adminClient: adminClient{env: p.env}}
	c.Long = long + `

Without --url it asks the gateway of this machine (REBOUND_LISTEN, else
127.0.0.1:8080). For another machine's set REBOUND_ADMIN_TOKEN.

Exit code: 0 done, 1 the gateway did not do it, 2 wrong use.`
	c.Flags().StringVar(&c.url, "url", "", "`URL` of the gateway")
	return c
}

// do sets what the command does and returns it.
func (c *adminCommand) do(run func(args []string) error) *cobra.Command {
	c.RunE = func(_ *cobra.Command, args []string) error {
		if c.url == "" {
			var err error
			if c.url, err = ownURL(c.env); err != nil {
				return usageError{err}
			}
		}
		c.url = strings.TrimRight(c.url, "/")
		return run(args)
	}
	return c.Command
}

// json adds the flag --json.
func (c *adminCommand) json() *bool {
	return c.Flags().Bool("json", false, "print the gateway's own answer")
}

// show shows what the gateway answers at a path: as it is, or as the table that write
// makes of it, whose columns are cells between tabs.
func (c *adminCommand) show(path string, asIs bool, write func(w io.Writer, answer []byte) error) error {
	answer, err := c.ask(http.MethodGet, path, nil)
	if err != nil {
		return err
	}
	if asIs {
		_, err = c.stdout.Write(answer)
		return err
	}
	w := tabwriter.NewWriter(c.stdout, 0, 0, 2, ' ', 0)
	if err := write(w, answer); err != nil {
		return fmt.Errorf("that is no gateway: %w", err)
	}
	return w.Flush()
}

// listTable is what show writes of an answer {"field": [...]}: the head and a row for
// each entry, or, where there is none, empty.
func listTable[T any](field, empty, head string, row func(w io.Writer, entry T)) func(w io.Writer, answer []byte) error {
	return func(w io.Writer, answer []byte) error {
		var fields map[string]json.RawMessage
		if err := json.Unmarshal(answer, &fields); err != nil {
			return err
		}
		var entries []T
		if err := json.Unmarshal(fields[field], &entries); err != nil { // where there is no such field, too
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

// adminClient asks the admin interface of a gateway.
type adminClient struct {
	url string // without a slash at its end
	env configs.Env
}

const (
	adminPatience  = 5 * time.Second // for an answer that is no stream
	maxAdminAnswer = 32 << 20        // bytes that are read of one
)

// ask sends a request, with a body unless that is nil, and reads the answer.
func (c adminClient) ask(method, path string, body io.Reader) ([]byte, error) {
	ctx, cancel := context.WithTimeout(context.Background(), adminPatience)
	defer cancel()
	resp, err := c.open(ctx, method, path, body, "")
	if err != nil {
		return nil, err
	}
	defer resp.Body.Close()
	return io.ReadAll(io.LimitReader(resp.Body, maxAdminAnswer))
}

// open sends a request and returns the answer, whose body is to be closed; last is the
// event after which a stream goes on. An answer with an error status is an error.
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
		return nil, fmt.Errorf("no gateway answers there: %w", err)
	}
	if resp.StatusCode < 300 {
		return resp, nil
	}
	defer resp.Body.Close()
	var answer struct {
		Error struct{ Message string } `json:"error"`
	}
	_ = json.NewDecoder(io.LimitReader(resp.Body, maxAdminAnswer)).Decode(&answer) // without a message it is another server
	if answer.Error.Message == "" {
		return nil, fmt.Errorf("that is no gateway: %s answers %s", c.url, resp.Status)
	}
	return nil, fmt.Errorf("%s %s", resp.Status, answer.Error.Message)
}
