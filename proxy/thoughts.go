package proxy

import (
	"bytes"
	"context"
	"encoding/json"
	"slices"
	"strings"

	"github.com/rebound-llm/rebound/recovery"
	"github.com/rebound-llm/rebound/recovery/transcript"
	"github.com/rebound-llm/rebound/store"
)

// Some providers refuse a history whose calls lack the reasoning that led to them, and do not accept
// empty reasoning. Most clients do not send it. The gateway keeps it for targets that are known to
// require it, and replaces the placeholder (recovery.ConformThought) in a request to such a target.

// thoughtMark is the prefix of the keys of kept reasoning.
const thoughtMark = "thought "

// maxRead limits the arguments that are normalized for the key, in bytes; longer ones are used
// unchanged.
const maxRead = 64 << 10

// keptThought returns the key for the reasoning that led to a call. It normalizes the arguments,
// because clients reformat them.
func keptThought(id, name, arguments string) string {
	d := json.NewDecoder(strings.NewReader(arguments))
	d.UseNumber()
	var v any
	if len(arguments) <= maxRead && d.Decode(&v) == nil {
		if same, err := json.Marshal(v); err == nil {
			arguments = string(same)
		}
	}
	key, _ := json.Marshal([]string{id, name, arguments}) // strings always marshal
	return thoughtMark + string(key)
}

// keepsThoughts reports whether a later request may need the reasoning of an answer.
func (s *sender) keepsThoughts(a *recovery.Attempt) bool {
	if s.core.Vault == nil || a.Plain || !s.wire.thoughts || !s.x.Body.HasTools() {
		return false
	}
	return a.Edited && bytes.Contains(a.Body, []byte(recovery.ThoughtMissing)) ||
		slices.Contains(s.core.Engine.Knowledge.Edits(s.x.Known(a.Target.Target)), recovery.Edit{Conform: recovery.ConformThought})
}

// keepThought stores the reasoning that led to a call.
func (s *sender) keepThought(ctx context.Context, text string, c recovery.DraftCall) {
	if c.ID != "" {
		s.core.Vault.Put(context.WithoutCancel(ctx), s.who.credential,
			store.Entry{Key: keptThought(c.ID, c.Name, c.Arguments), Value: []byte(text), TTL: s.core.Keeping})
	}
}

// withThoughts returns the body of an attempt, with kept reasoning if its target requires some.
func (s *sender) withThoughts(ctx context.Context, a recovery.Attempt) []byte {
	if s.core.Vault == nil || !a.Edited || !bytes.Contains(a.Body, []byte(recovery.ThoughtMissing)) || !s.wire.thoughts {
		return a.Body
	}
	b, bad := transcript.Parse(a.Body, s.wire.requests, s.core.Config.Limits.transcript())
	if bad != nil {
		return a.Body
	}
	var keys []string
	var at []int
	list := b.Messages()
	for i := len(list) - 1; i >= 0 && len(keys) < maxReferred; i-- {
		raw, _ := list[i].Field(recovery.ThoughtField)
		if calls := list[i].ToolCalls(); len(calls) > 0 && string(raw) == recovery.ThoughtBlank {
			keys, at = append(keys, keptThought(calls[0].ID, calls[0].Name, calls[0].Text())), append(at, i)
		}
	}
	e := b.Edit()
	for n, text := range s.core.Vault.Get(ctx, s.who.credential, keys...) {
		if text != nil {
			e.SetMessageField(at[n], recovery.ThoughtField, transcript.String(string(text)))
		}
	}
	if body, err := e.Apply(); err == nil {
		return body
	}
	return a.Body
}
