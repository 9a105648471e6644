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

// Some providers refuse a history whose calls lack the reasoning that led to them, and take none that
// is empty. Most clients do not send it. It is kept for targets that are known to demand it, and put in
// the place of what such a target's copy has instead (recovery.MendThought).

// thoughtMark begins the name of kept reasoning.
const thoughtMark = "thought "

// maxRead is the size of arguments that are read for their name, in bytes; larger ones count as they are written.
const maxRead = 64 << 10

// keptThought names the reasoning that led to a call. Clients write arguments anew: what they say counts.
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

// keepsThoughts reports whether the reasoning of an answer may be demanded later.
func (s *sender) keepsThoughts(a *recovery.Attempt) bool {
	if s.core.Vault == nil || a.Plain || s.wire.requests != transcript.Chat || !s.x.Body.HasTools() {
		return false
	}
	return a.Edited && bytes.Contains(a.Body, []byte(recovery.ThoughtMissing)) ||
		slices.Contains(s.core.Engine.Knowledge.Edits(a.Target.Target), recovery.Edit{Mend: recovery.MendThought})
}

// keepThought remembers the reasoning that led to a call.
func (s *sender) keepThought(ctx context.Context, text string, c recovery.DraftCall) {
	if c.ID != "" {
		s.core.Vault.Put(context.WithoutCancel(ctx), s.who.credential,
			store.Entry{Key: keptThought(c.ID, c.Name, c.Arguments), Value: []byte(text), TTL: s.core.Keeping})
	}
}

// thoughtful is the body of an attempt with the reasoning that is kept, where its target demands some.
func (s *sender) thoughtful(ctx context.Context, a recovery.Attempt) []byte {
	if s.core.Vault == nil || !a.Edited || !bytes.Contains(a.Body, []byte(recovery.ThoughtMissing)) || s.wire.requests != transcript.Chat {
		return a.Body
	}
	b, bad := transcript.Parse(a.Body, transcript.Chat, s.core.Config.Limits.transcript())
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
