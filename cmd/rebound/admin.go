package main

import (
	"context"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"io"
	"net/http"
	"strings"
	"text/tabwriter"
	"time"

	"github.com/rebound-llm/rebound/configs"
)

const adminFlags = `
Without --url it is the gateway of this machine (REBOUND_LISTEN, else
127.0.0.1:8080). For another machine's set REBOUND_ADMIN_TOKEN.

Exit code: 0 done, 1 the gateway did not do it, 2 wrong use.
`

// adminCommand is a command that asks the admin interface of a running gateway.
type adminCommand struct {
	flags          *flag.FlagSet // a command adds its own before run
	usage          string
	stdout, stderr io.Writer
	adminClient    // has its URL once run has read the flags
}

func newAdminCommand(name, usage string, env configs.Env, stdout, stderr io.Writer) *adminCommand {
	flags := flag.NewFlagSet(name, flag.ContinueOnError)
	flags.SetOutput(io.Discard)
	return &adminCommand{flags, usage, stdout, stderr, adminClient{env: env}}
}

// wrongUse is an error after which the usage is shown.
type wrongUse struct{ error }

// run reads the arguments, has the command done with the words behind the flags and
// returns the exit code.
func (c *adminCommand) run(args []string, do func(words []string) error) int {
	c.flags.StringVar(&c.url, "url", "", "")
	err := c.flags.Parse(args)
	if errors.Is(err, flag.ErrHelp) {
		fmt.Fprint(c.stdout, c.usage+adminFlags)
		return 0
	}
	if err == nil && c.url == "" {
		c.url, err = ownURL(c.env)
	}
	if err != nil {
		err = wrongUse{err}
	} else {
		c.url = strings.TrimRight(c.url, "/")
		err = do(c.flags.Args())
	}
	if err == nil {
		return 0
	}
	fmt.Fprintf(c.stderr, "rebound %s: %v\n", c.flags.Name(), err)
	if errors.As(err, new(wrongUse)) {
		fmt.Fprint(c.stderr, "\n"+c.usage+adminFlags)
		return 2
	}
	return 1
}

// wrongWords is the error for words that the command does not know, or too few of them.
func wrongWords(words []string) error {
	return wrongUse{fmt.Errorf("not understood: %q", words)}
}

// noWords is for a command that takes flags alone.
func noWords(do func() error) func(words []string) error {
	return func(words []string) error {
		if len(words) > 0 {
			return wrongWords(words)
		}
		return do()
	}
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
	_ = json.NewDecoder(io.LimitReader(resp.Body, maxAdminAnswer)).Decode(&answer) // without a message the status has to do
	return nil, fmt.Errorf("%s %s", resp.Status, answer.Error.Message)
}
