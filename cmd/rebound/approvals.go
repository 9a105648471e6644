package main

import (
	"fmt"
	"io"
	"net/url"
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
	c := adminCommand{
		name: "approvals", usage: approvalsUsage, path: "/rebound/approvals", none: "no plan waits for approval",
		table:  tableOf("approvals", "ID\tSTATE\tFOR\tSESSION\tPLAN\tTOOL\tPARAMETERS\tSURE\tWHY", approvalRow),
		decide: func(id string) string { return "/rebound/approvals/" + url.PathEscape(id) },
	}
	return c.run(args, env, stdout, stderr)
}

func approvalRow(w io.Writer, a admin.Approval) {
	if a.Plan != nil {
		fmt.Fprintf(w, "%s\t%s\t%s\t%s\t%s\t%q\t%q\t%.2f\t%q\n", a.ID, a.State, max(time.Until(a.Until), 0).Round(time.Second), a.Session,
			a.Plan.Strategy, a.Plan.Tool, a.Plan.Parameters, a.Plan.Confidence, a.Plan.Reasoning)
	}
}
