package main

import (
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strings"
	"time"

	"github.com/rebound-llm/rebound/configs"
	"github.com/rebound-llm/rebound/proxy/admin"
)

const approvalsUsage = `usage: rebound approvals [--url URL] [--json] [list]
       rebound approvals [--url URL] approve|refuse ID

Lists the plans for stuck agents that wait for a person's approval, and decides
about them. One that is approved is carried out with the session's next request that
is stuck in the same; one that is refused is dropped; one that nobody decides about
is only proposed to the agent in the end.
`

// runApprovals is `rebound approvals`; it returns the exit code.
func runApprovals(args []string, env configs.Env, stdout, stderr io.Writer) int {
	c := newAdminCommand("approvals", approvalsUsage, env, stdout, stderr)
	asJSON := c.flags.Bool("json", false, "")
	return c.run(args, func(words []string) error {
		switch {
		case len(words) == 0, len(words) == 1 && words[0] == "list":
			return c.show("/rebound/approvals", *asJSON, listTable("approvals", "no plan waits for approval",
				"ID\tSTATE\tFOR\tSESSION\tPLAN\tTOOL\tPARAMETERS\tSURE\tWHY", writeApproval))
		case len(words) == 2 && (words[0] == "approve" || words[0] == "refuse"):
			body := fmt.Sprintf(`{"approve":%v}`, words[0] == "approve")
			if _, err := c.ask(http.MethodPost, "/rebound/approvals/"+url.PathEscape(words[1]), strings.NewReader(body)); err != nil {
				return err
			}
			fmt.Fprintf(stdout, "plan %s: %sd\n", words[1], words[0])
			return nil
		}
		return wrongWords(words)
	})
}

func writeApproval(w io.Writer, a admin.Approval) {
	if a.Plan != nil {
		fmt.Fprintf(w, "%s\t%s\t%s\t%s\t%s\t%q\t%q\t%.2f\t%q\n", a.ID, a.State, max(time.Until(a.Until), 0).Round(time.Second),
			a.Session, a.Plan.Strategy, a.Plan.Tool, a.Plan.Parameters, a.Plan.Confidence, a.Plan.Reasoning)
	}
}
