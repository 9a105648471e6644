package recovery

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"slices"
	"strings"

	"github.com/rebound-llm/rebound/recovery/transcript"
)

// Edit changes one top-level field, or the roles, of the copy that goes upstream.
type Edit struct {
	Field  string `json:"field"`            // the field that is changed
	Rename string `json:"rename,omitempty"` // its new name
	Drop   bool   `json:"drop,omitempty"`   // take it out
	Value  string `json:"value,omitempty"`  // only where it has this value, as JSON; empty: whatever it has
	Clamp  int    `json:"clamp,omitempty"`  // lower a larger number to this
	Role   string `json:"role,omitempty"`   // messages with this role get the role Rename; Field is empty
	Mend   string `json:"mend,omitempty"`   // a Conformer's edit by name; Field is its argument, if it has one
}

// String says what the edit does, for operators.
func (e Edit) String() string {
	switch {
	case e.Mend != "" && e.Field != "":
		return "mends " + e.Mend + " " + e.Field
	case e.Mend != "":
		return "mends " + e.Mend
	case e.Role != "":
		return "takes " + e.Role + " as " + e.Rename
	case e.Drop && e.Value != "":
		return "refuses " + e.Value + " as " + e.Field
	case e.Drop:
		return "refuses " + e.Field
	case e.Rename != "":
		return "takes " + e.Field + " as " + e.Rename
	}
	return fmt.Sprintf("%s at most %d", e.Field, e.Clamp)
}

// Conformer carries out the edits that a target needs beyond single fields: of
// the history, of tool schemas, of content parts. It is pure and safe for concurrent use.
type Conformer interface {
	// Conform adds to e what the edit changes in b; false where b needs nothing.
	Conform(b *transcript.Body, e *transcript.Edit, ed Edit) bool
}

// The mends of a history, a tool or a content that a target may need: names of
// an Edit's Mend, as they are remembered. Package conform carries them out.
const (
	MendPairing    = "pairing"        // every call answered once, right behind it; no result without a call
	MendCallIDs    = "call_ids"       // ids of calls in the form that the strictest servers take
	MendSignatures = "signatures"     // calls without the signature that Gemini wants back
	MendStubTools  = "stub_tools"     // definitions for the tools that the history has called
	MendAlternate  = "alternate"      // user and assistant take turns
	MendSystem     = "system_first"   // no system message but at the beginning
	MendEmpty      = "empty_content"  // no message without content
	MendTextOnly   = "text_content"   // text as one string instead of parts
	MendField      = "message_field"  // without the message field Field
	MendKeyword    = "schema_keyword" // tool schemas without the keyword Field
	MendItems      = "schema_items"   // every array of a tool schema says what its items are
	MendStrict     = "schema_strict"  // tools are not strict
	MendPlain      = "schema_plain"   // tool schemas with the keywords that every provider takes, and no others
	MendMedia      = "media"          // text in place of images and other attachments; Field says how many may stay, the latest
	MendReasoning  = "reasoning"      // without the reasoning of earlier turns; Field says which of it, empty for all
	MendItemIDs    = "item_ids"       // without the ids that a server gave to what it wrote
	MendOwn        = "own_ids"        // without the ids of what the gateway answered itself
	MendArguments  = "arguments"      // calls whose arguments are no JSON have none
	MendContent    = "content_field"  // every message has a content, empty where it had none
	MendAnswered   = "answer_field"   // every message of the model has the field Field, empty where it had none
	MendThought    = "thought"        // every message of the model has reasoning, blank where it had none: see ThoughtField
	MendOneSystem  = "one_system"     // one system message, at the beginning
	MendMissing    = "schema_missing" // every tool has a schema of its parameters
	MendNested     = "nested_field"   // without the field Field of parts, calls and tools
	MendNames      = "tool_names"     // names of tools that every provider takes; SafeNames
	MendThinking   = "thinking_off"   // the model does not think where the answer is not streamed
	MendNoTools    = "no_tools"       // no options of tools where none are offered
)

// What MendThought gives messages without reasoning, where an empty one is refused, as it then stands in them.
// The edge puts what is kept of it there.
const (
	ThoughtField   = "reasoning_content"
	ThoughtBlank   = `" "`
	ThoughtMissing = `"reasoning_content":" "`
)

// ReasoningFinished is the argument of MendReasoning that spares the turn under way.
const ReasoningFinished = "finished"

// mendRank orders mends: a history is made whole before its turns are looked
// at, and its ids are changed last. Unknown ones come at the end.
func mendRank(mend string) int {
	order := [...]string{MendOwn, MendReasoning, MendItemIDs, MendPairing, MendSystem, MendOneSystem, MendMedia, MendTextOnly, MendEmpty, MendContent, MendAlternate,
		MendField, MendNested, MendAnswered, MendThought, MendArguments, MendNames, MendThinking, MendNoTools, MendCallIDs, MendSignatures,
		MendStubTools, MendMissing, MendKeyword, MendItems, MendPlain, MendStrict}
	for i, m := range order {
		if m == mend {
			return i
		}
	}
	return len(order)
}

// MaxValue limits the refused value of a field that is remembered, in bytes.
const MaxValue = 64

// Droppable lists the fields whose absence changes how an answer is sampled,
// how hard the model thinks, or how the request is labelled, but not what was
// asked for: neither response_format, stop, n, tools and logit_bias, nor what
// decides about money (service_tier) or about the shape of turns (parallel_tool_calls).
// Names in camel case are the same fields.
func Droppable(field string) bool {
	switch snake(field) {
	case "temperature", "top_p", "top_k", "min_p", "top_a", "typical_p",
		"frequency_penalty", "presence_penalty", "repetition_penalty", "seed",
		"reasoning_effort", "reasoning", "verbosity", "thinking", "thinking_budget", "enable_thinking", "thinking_config", "chat_template_kwargs",
		"include_reasoning", "reasoning_format", "reasoning_split", "reasoning_summary", "preserve_thinking", "effort",
		"stream_options", "store", "metadata", "user", "safety_identifier",
		"prompt_cache_key", "prompt_cache_retention", "prompt_cache_options", "prediction", "include", "client_metadata":
		return true
	}
	return false
}

// snake is a name in snake case.
func snake(name string) string {
	var b strings.Builder
	for i, c := range name {
		if c >= 'A' && c <= 'Z' {
			if i > 0 {
				b.WriteByte('_')
			}
			c += 'a' - 'A'
		}
		b.WriteRune(c)
	}
	return b.String()
}

// Known reports whether an edit is one that a strategy makes: what else stands
// in a store was not written by us.
func (e Edit) Known() bool {
	switch {
	case e.Mend != "":
		return mendRank(e.Mend) < mendRank("") && e.Rename+e.Role == "" && !e.Drop && len(e.Field) <= 64
	case e.Role != "":
		return e.Field == "" && (e.Role == "developer" && e.Rename == "system" || e.Role == "system" && e.Rename == "developer")
	case e.Drop:
		return Droppable(e.Field) && len(e.Value) <= MaxValue
	case e.Rename != "":
		return e.Rename == OtherLimit(e.Field)
	}
	return e.Clamp >= 16 && (e.Field == "max_output_tokens" || OtherLimit(e.Field) != "")
}

// OtherLimit returns the other one of the two names that the output limit of a chat completion has, "" for what is neither.
func OtherLimit(field string) string {
	switch field {
	case "max_tokens":
		return "max_completion_tokens"
	case "max_completion_tokens":
		return "max_tokens"
	}
	return ""
}

// lasting returns the edits without those that answer to what one request contains
// rather than to what its target takes: they would change requests that are well. Whose
// reasoning a session carries is remembered for the session.
func (c *Choice) lasting() (out []Edit) {
	for _, ed := range c.Edits {
		passing := slices.Contains(c.passing, ed)
		switch ed.Mend {
		case MendReasoning, MendItemIDs, MendOwn:
			passing = true
		case MendMedia:
			passing = passing || ed.Field == ""
		case MendSignatures:
			passing = passing || ed.Field != ""
		}
		if !passing {
			out = append(out, ed)
		}
	}
	return out
}

// NestedLabel lists the fields of parts, calls and tools that carry no part of what was
// said or asked for. Only these are taken out where a target refuses them.
func NestedLabel(field string) bool {
	switch field {
	case "cache_control", "strict", "index", "extra_content", "provider_specific_fields", "thought_signature", "annotations", "caller",
		"defer_loading", "eager_input_streaming", "input_examples", "allowed_callers":
		return true
	}
	return false
}

// maxToolName is the longest name of a tool that all providers take, in bytes.
const maxToolName = 64

// SafeNames returns, for the names of a request's tools, names that every provider takes: at
// most 64 letters, digits, underscores and hyphens behind a letter or an underscore. Names
// that are so already stay. The result depends on nothing but the list, so that an answer's
// names lead back.
func SafeNames(names []string) map[string]string {
	out := make(map[string]string, len(names))
	for _, name := range names {
		safe := []byte(name)
		for i, c := range safe {
			if c != '_' && c != '-' && (c < '0' || c > '9') && (c|0x20 < 'a' || c|0x20 > 'z') {
				safe[i] = '_'
			}
		}
		if name != "" && (safe[0] == '-' || safe[0] >= '0' && safe[0] <= '9') {
			safe = append([]byte{'_'}, safe...)
		}
		if to := string(safe); len(to) > maxToolName || to != name && slices.Contains(names, to) {
			sum := sha256.Sum256([]byte(name))
			out[name] = to[:min(len(to), maxToolName-9)] + "_" + hex.EncodeToString(sum[:4])
		} else {
			out[name] = to
		}
	}
	return out
}

// MessageLabel lists the fields of messages that carry no part of what was
// said: labels, and the reasoning of earlier turns, which most servers ignore.
// Only these are taken out where a target refuses them.
func MessageLabel(field string) bool {
	switch field {
	case "name", "refusal", "annotations", "audio",
		"cache_control", "extra_content", "provider_specific_fields", "id", "status", "phase", "metadata", "timestamp", "prefix":
		return true
	}
	return transcript.ReasoningField(field)
}
