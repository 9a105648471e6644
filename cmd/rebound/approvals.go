package main

import (
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/rebound-llm/rebound/recovery"
)

// approvalsCommand lists, approves and refuses plans that need approval.
func (p *program) approvalsCommand() *cobra.Command {
	list := p.adminCommand("approvals", "List, approve or refuse recovery plans that wait for approval",
		`Lists the recovery plans for stuck agents that wait for a person's approval. An
approved plan runs with the session's next stuck request. A plan that nobody approves
or refuses expires and is only suggested to the agent.`, cobra.NoArgs)
	asJSON := list.json()
	cmd := list.do(func([]string) error {
		return list.show("/rebound/approvals", *asJSON, listTable("approvals", "no plan waits for approval",
			"ID\tSTATE\tFOR\tSESSION\tPLAN\tTOOL\tPARAMETERS\tCONFIDENCE\tWHY", writeApproval))
	})
	cmd.AddCommand(&cobra.Command{Use: "list", Short: "List the plans", Long: "Lists the plans, like \"rebound approvals\".", Args: usageArgs(cobra.NoArgs), RunE: cmd.RunE})
	for verb, short := range map[string]string{"approve": "Approve a plan", "refuse": "Refuse a plan"} {
		decide := p.adminCommand(verb+" ID", short, short+".", cobra.ExactArgs(1))
		cmd.AddCommand(decide.do(func(args []string) error {
			body := fmt.Sprintf(`{"approve":%v}`, verb == "approve")
			return decide.act(http.MethodPost, "/rebound/approvals/"+url.PathEscape(args[0]), strings.NewReader(body), "plan %s: %sd", args[0], verb)
		}))
	}
	return cmd
}

func writeApproval(w io.Writer, a recovery.Approval) {
	if a.Plan != nil {
		fmt.Fprintf(w, "%s\t%s\t%s\t%s\t%s\t%q\t%q\t%.2f\t%q\n", a.ID, a.State, max(time.Until(a.Until), 0).Round(time.Second),
			a.Session, a.Plan.Strategy, a.Plan.Tool, a.Plan.Parameters, a.Plan.Confidence, a.Plan.Reasoning)
	}
}
