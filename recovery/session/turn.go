package session

import (
	"bytes"

	"github.com/rebound-llm/rebound/recovery/transcript"
)

// Side is the kind of a request that is not part of the conversation but serves the client itself. Such a request does not
// count as a turn, and the gateway does not change what it asks for.
type Side string

// The kinds of side requests.
const (
	SideNone    Side = ""
	SideTitle   Side = "title"   // a name, topic or tags for the conversation
	SideSummary Side = "summary" // the client's own compaction, or a recap or name that it shows
	SideProbe   Side = "probe"   // a test whether the endpoint works
	SideOther   Side = "other"   // a history of tool calls, but no tools are offered
)

// UserTurn identifies the user's turn of a request: requests with equal values belong to the same turn. It is comparable.
type UserTurn struct {
	// Messages counts the user's messages; in text protocols these include the results of tools.
	Messages int
	// Last is a hash of the user's last message, keyed with the credential; 0 if
	// there is none.
	Last uint64
}

// UserTurnOf returns the user's turn of a request.
func UserTurnOf(in Input) UserTurn {
	t := UserTurn{Messages: in.Body.UserTurns()}
	if m, ok := in.Body.LastUser(); ok {
		k := newKeyed(in.Credential)
		defer k.release()
		k.begin("user")
		k.message('u', in.Body, m.Index)
		t.Last = k.number()
	}
	return t
}

// Instructions of side requests, as known clients write them, in lower case. A system prompt may contain titles and
// summaries near its beginning; a user's message must begin with one of the other two, since a person may ask for a title,
// too.
var (
	titles = []string{
		"title generator", "generate a title", "generate a short title", "generate a concise", "create a short title", "write a short title", "a succinct title",
		"reply with a title", "conversation title", "chat title", "thread title", "new conversation topic", "generate 1-3 broad tags", "relevant follow-up questions",
	}
	summaries = []string{
		"summarizing conversations", "summarizes internal chat history", "summarize the conversation", "summarizes conversations", "summary of the conversation",
		"context summarization assistant", "context checkpoint compaction", "context extraction assistant", "anchored context summarization", "conversation summarizer",
	}
	askTitles    = []string{"generate a title for this conversation", "generate a title for the following", "### task:\ngenerate a concise", "### task:\nsuggest", "### task:\ngenerate 1-3"}
	askSummaries = []string{
		"your task is to create a detailed summary of", "provide a detailed prompt for continuing our conversation", "you are performing a context checkpoint compaction",
		"critical: respond with text only. do not call any tools",
		"first, reason in your scratchpad. then, generate the <state_snapshot>", "summarize the conversation above", "summarize our conversation so far",
		"critical: respond with text only. do not call any tools.", "the user stepped away and is coming back. recap",
		"generate a short kebab-case name", "[suggestion mode: suggest what the user might",
	}
)

// SideOf returns the kind of a side request, as far as a single request shows it. A side request with another system
// prompt than the conversation's also gets another session ID.
func SideOf(b *transcript.Body) Side {
	const systemHead, userHead = 1 << 10, 256
	offers := len(b.Tools()) > 0
	var user []byte
	if m, ok := b.LastUser(); ok {
		user = lowerHead(m, userHead)
	}
	if begins(user, askSummaries) {
		return SideSummary // it may offer the conversation's tools, so that the provider's prompt cache applies
	}
	if offers {
		return SideNone
	}
	if begins(user, askTitles) {
		return SideTitle
	}
	list := b.Messages()
	if outside := []byte(b.Instructions()); len(outside) > 0 {
		switch system := bytes.ToLower(outside[:min(systemHead, len(outside))]); {
		case contains(system, titles):
			return SideTitle
		case contains(system, summaries):
			return SideSummary
		}
	}
	if len(list) > 0 && (list[0].Role == transcript.RoleSystem || list[0].Role == transcript.RoleDeveloper) {
		switch system := lowerHead(list[0], systemHead); {
		case contains(system, titles):
			return SideTitle
		case contains(system, summaries):
			return SideSummary
		}
	}
	answered := false
	for _, m := range list {
		switch m.Role {
		case transcript.RoleTool:
			return SideOther
		case transcript.RoleAssistant:
			answered = true
		}
	}
	if _, limit, ok := b.OutputLimit(); ok && limit <= 16 && !answered && b.UserTurns() <= 1 {
		return SideProbe
	}
	return SideNone
}

// lowerHead returns at most n bytes from the beginning of a message's text, in lower case.
func lowerHead(m transcript.Message, n int) []byte {
	k := newKeyed(nil) // for its buffer
	defer k.release()
	if n := m.End - m.Start; cap(k.buf) < n {
		k.buf = make([]byte, 0, n)
	}
	k.buf = m.AppendText(k.buf[:0])
	text := bytes.TrimSpace(k.buf)
	return bytes.ToLower(text[:min(n, len(text))])
}

func begins(text []byte, list []string) bool {
	for _, s := range list {
		if bytes.HasPrefix(text, []byte(s)) {
			return true
		}
	}
	return false
}

func contains(text []byte, list []string) bool {
	for _, s := range list {
		if bytes.Contains(text, []byte(s)) {
			return true
		}
	}
	return false
}
