package main

import (
	"cmp"
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

// adminCommand is a command that lists something of a running gateway, and may
// reset one of it.
type adminCommand struct {
	name  string // of the command
	usage string
	path  string                 // what is listed, below the gateway's address
	one   func(id string) string // what is deleted to reset one; nil where nothing can be reset
	done  string                 // what is said then, with the id in it
	// decide is what is posted to, to approve or refuse one; nil where nothing is decided.
	decide func(id string) string
	// send opens what is sent to path, by the command's argument; nil sends nothing.
	send   func(arg string) (io.ReadCloser, error)
	method string // of the request without anything to send, GET if empty
	// table writes the rows of a listing; false if there are none. nil writes the answer as it is.
	table func(body []byte, w io.Writer) (rows bool, err error)
	none  string // what is said where there are none
}

// tableOf writes the rows of a listing, which is an object with one list, below a head.
func tableOf[T any](list, head string, row func(w io.Writer, v T)) func(body []byte, w io.Writer) (bool, error) {
	return func(body []byte, w io.Writer) (bool, error) {
		var answer map[string][]T
		if err := json.Unmarshal(body, &answer); err != nil {
			return false, err
		}
		fmt.Fprintln(w, head)
		for _, v := range answer[list] {
			row(w, v)
		}
		return len(answer[list]) > 0, nil
	}
}

const adminFlags = `
Without --url it is the gateway of this machine (REBOUND_LISTEN, else
127.0.0.1:8080). For another machine's set REBOUND_ADMIN_TOKEN.

Exit code: 0 done, 1 the gateway did not do it, 2 wrong use.
`

// maxAdminAnswer bounds what is read of the gateway's answer.
const maxAdminAnswer = 32 << 20

// run is the command; it returns the exit code.
func (c *adminCommand) run(args []string, env configs.Env, stdout, stderr io.Writer) int {
	fail := func(code int, problem any) int {
		fmt.Fprintf(stderr, "rebound %s: %v\n", c.name, problem)
		return code
	}
	flags := flag.NewFlagSet(c.name, flag.ContinueOnError)
	asJSON := flags.Bool("json", false, "")
	address, code := adminArgs(flags, c.usage, 2, args, env, stdout, stderr, nil)
	switch {
	case address == "":
		return code
	case flags.NArg() == 0 && c.send == nil, flags.NArg() == 1 && flags.Arg(0) == "list" && c.decide != nil, flags.NArg() == 1 && c.send != nil:
		method, content := cmp.Or(c.method, http.MethodGet), io.Reader(nil)
		if c.send != nil {
			in, err := c.send(flags.Arg(0))
			if err != nil {
				return fail(1, err)
			}
			defer in.Close()
			method, content = http.MethodPost, in
		}
		body, err := sendAdmin(method, address+c.path, env, content)
		if err != nil {
			return fail(1, err)
		}
		if *asJSON || c.table == nil {
			_, _ = stdout.Write(body)
			return 0
		}
		w := tabwriter.NewWriter(stdout, 0, 0, 2, ' ', 0)
		rows, err := c.table(body, w)
		if err != nil {
			return fail(1, fmt.Errorf("that is no gateway: %w", err))
		}
		if !rows {
			fmt.Fprintln(stdout, c.none)
			return 0
		}
		_ = w.Flush()
		return 0
	case flags.NArg() == 2 && flags.Arg(0) == "reset" && c.one != nil:
		if _, err := askAdmin(http.MethodDelete, address+c.one(flags.Arg(1)), env); err != nil {
			return fail(1, err)
		}
		fmt.Fprintf(stdout, c.done+"\n", flags.Arg(1))
		return 0
	case flags.NArg() == 2 && c.decide != nil && (flags.Arg(0) == "approve" || flags.Arg(0) == "refuse"):
		body := fmt.Sprintf(`{"approve":%v}`, flags.Arg(0) == "approve")
		if _, err := sendAdmin(http.MethodPost, address+c.decide(flags.Arg(1)), env, strings.NewReader(body)); err != nil {
			return fail(1, err)
		}
		fmt.Fprintf(stdout, "plan %s: %sd\n", flags.Arg(1), flags.Arg(0))
		return 0
	}
	fmt.Fprint(stderr, c.usage+adminFlags)
	return 2
}

// adminArgs reads the arguments of a command that asks a gateway: its own flags, whose
// values check looks at, and up to rest words behind them. It returns the gateway's
// address; "" where there is nothing more to do but to end with the code.
func adminArgs(flags *flag.FlagSet, usage string, rest int, args []string, env configs.Env, stdout, stderr io.Writer, check func() error) (address string, code int) {
	flags.SetOutput(io.Discard)
	base := flags.String("url", "", "")
	err := flags.Parse(args)
	switch {
	case errors.Is(err, flag.ErrHelp):
		fmt.Fprint(stdout, usage+adminFlags)
		return "", 0
	case err == nil && flags.NArg() > rest:
		err = fmt.Errorf("unexpected argument %q", flags.Arg(rest))
	case err == nil && check != nil:
		err = check()
	}
	if err == nil && *base == "" {
		*base, err = ownURL(env)
	}
	if err != nil {
		fmt.Fprintf(stderr, "rebound %s: %v\n\n%s", flags.Name(), err, usage+adminFlags)
		return "", 2
	}
	return strings.TrimRight(*base, "/"), 0
}

// askAdmin asks a gateway's admin interface and reads the answer.
func askAdmin(method, url string, env configs.Env) ([]byte, error) {
	return sendAdmin(method, url, env, nil)
}

// sendAdmin is askAdmin with a body, nil for none.
func sendAdmin(method, url string, env configs.Env, body io.Reader) ([]byte, error) {
	ctx, cancel := context.WithTimeout(context.Background(), adminPatience)
	defer cancel()
	resp, err := openAdmin(ctx, method, url, env, "", body)
	if err != nil {
		return nil, err
	}
	defer resp.Body.Close()
	return io.ReadAll(io.LimitReader(resp.Body, maxAdminAnswer))
}

// adminPatience bounds an answer that is no stream.
const adminPatience = 5 * time.Second

// openAdmin asks a gateway's admin interface; last is the event after which a stream
// goes on; body is nil for none. An answer with an error status is an error.
func openAdmin(ctx context.Context, method, url string, env configs.Env, last string, body io.Reader) (*http.Response, error) {
	req, err := http.NewRequestWithContext(ctx, method, url, body)
	if err != nil {
		return nil, err
	}
	if token, ok := env(configs.EnvAdminToken); ok && token != "" {
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
