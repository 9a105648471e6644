package recovery

import (
	"bytes"
	"cmp"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	"github.com/rebound-llm/rebound/recovery/transcript"
)

// Edit changes one top-level field, or the roles, of the copy that goes upstream.
type Edit struct {
	Field   string `json:"field"`            // the field to change
	Rename  string `json:"rename,omitempty"` // its new name
	Drop    bool   `json:"drop,omitempty"`   // remove the field
	Value   string `json:"value,omitempty"`  // change it only if it has this value, as JSON; empty for any value
	Clamp   int    `json:"clamp,omitempty"`  // replace a larger number by this
	Role    string `json:"role,omitempty"`   // messages with this role get the role Rename; Field is empty
	Conform string `json:"mend,omitempty"`   // a Conformer's edit by name; Field is its argument, if it has one
}

// String describes the edit for operators.
func (e Edit) String() string {
	switch {
	case e.Conform == ConformBetas:
		return "refuses anthropic-beta " + cmp.Or(e.Field, "of any value")
	case e.Conform != "" && e.Field != "":
		return "needs " + e.Conform + " " + e.Field
	case e.Conform != "":
		return "needs " + e.Conform
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

// Replaces reports whether the edit takes the place of o for a target. A field may need a new name and a lower value, so these two
// stand beside each other.
func (e Edit) Replaces(o Edit) bool {
	return e.Field == o.Field && e.Role == o.Role && e.Conform == o.Conform && (e.Clamp > 0) == (o.Clamp > 0)
}

// Conformer carries out edits beyond single fields: of the history, of tool schemas, of content parts. It is pure
// and safe for concurrent use.
type Conformer interface {
	// Conform adds the edit's changes of b to e; it returns false if b needs none.
	Conform(b *transcript.Body, e *transcript.Editor, ed Edit) bool
}

// The edits of a history, a tool or a content that a target may need: values of Edit.Conform, which are stored. Package
// conform carries them out.
const (
	ConformPairing    = "pairing"        // every call has one result, directly after it; no result is without a call
	ConformCallIDs    = "call_ids"       // ids of calls have the form that the strictest servers accept
	ConformSignatures = "signatures"     // calls without Gemini's signature get one
	ConformStubTools  = "stub_tools"     // every tool that the history calls has a definition
	ConformAlternate  = "alternate"      // user and assistant take turns
	ConformBetween    = "answer_between" // the model has a message between tool results and the user's next words
	ConformSystem     = "system_first"   // system messages stand only at the beginning
	ConformEmpty      = "empty_content"  // no message without content
	ConformTextOnly   = "text_content"   // text is one string instead of parts
	ConformField      = "message_field"  // messages lose the field Field
	ConformKeyword    = "schema_keyword" // tool schemas lose the keyword Field
	ConformItems      = "schema_items"   // every array in a tool schema has items
	ConformObject     = "schema_object"  // every tool schema is one object, without alternatives beside its properties
	ConformStrict     = "schema_strict"  // tools are not strict; Field as for ConformPlain
	ConformPlain      = "schema_plain"   // tool schemas keep only the keywords that every provider accepts; Field says which: a SchemaMark or a ToolsMark, empty for all
	ConformMedia      = "media"          // text replaces images and other attachments; Field is the number of latest ones that stay
	ConformReasoning  = "reasoning"      // reasoning of earlier turns is removed; Field says which, empty for all
	ConformItemIDs    = "item_ids"       // items lose the ids that a server gave them
	ConformOwn        = "own_ids"        // items that the gateway created itself lose their ids
	ConformArguments  = "arguments"      // calls lose arguments that are not JSON
	ConformContent    = "content_field"  // every message has content, at least an empty one
	ConformAnswered   = "answer_field"   // every message of the model has the field Field, at least an empty one
	ConformThought    = "thought"        // every message of the model has reasoning, at least a blank: see ThoughtField
	ConformOneSystem  = "one_system"     // one system message, at the beginning
	ConformMissing    = "schema_missing" // every tool has a schema for its parameters
	ConformNested     = "nested_field"   // parts, calls and tools lose the field Field
	ConformNames      = "tool_names"     // tools have names that every provider accepts: see SafeNames
	ConformThinking   = "thinking_off"   // the model does not think; Field is the field of chat completions that says so: empty for enable_thinking, if the answer is not streamed
	ConformUnthinking = "thinking_edits" // no context edits for thinking if the model does not think
	ConformOption     = "no_option"      // no level of effort or verbosity among the options of the output; Field is its path and, after "=", the refused level
	ConformMarks      = "cache_marks"    // fewer marks of the cache; Field is how many go, the first of the history first
	ConformNoTools    = "no_tools"       // no options for tools if none are offered
	ConformUserFirst  = "user_first"     // the user has the first message
	ConformResults    = "result_names"   // results of calls have the names of their tools
	ConformUnique     = "unique_tools"   // no copies of a tool
	ConformTyped      = "schema_typed"   // every part of a tool schema has a type or alternatives, not both, and references are replaced by what they refer to; Field as for ConformPlain
	ConformFlat       = "schema_flat"    // parts of tool schemas that are nested deep are written without their own parts, and references are replaced
	ConformEnum       = "schema_enum"    // enumerations in tool schemas are of strings
	ConformAlone      = "schema_alone"   // nothing stands beside the alternatives of a tool schema
	ConformPadded     = "padded_content" // a message of the model that only calls tools has a blank as content
	ConformUntold     = "untold_tools"   // no tool has an empty description
	ConformSingle     = "single_calls"   // a message of the model has one call at most
	ConformNoSystem   = "no_system"      // the user says what system messages say
	ConformTrimmed    = "trimmed_end"    // the message of the model that the request ends with does not end with blanks
	ConformBetas      = "betas"          // the header anthropic-beta goes without the value Field, without any if empty; the body stays
)

// The reasoning that ConformThought gives to messages without one, if the target refuses an empty one. Package proxy
// replaces it by the stored reasoning of the message, if there is any.
const (
	ThoughtField   = "reasoning_content"
	ThoughtBlank   = `" "`
	ThoughtMissing = `"reasoning_content":" "`
)

// ReasoningFinished is the argument of ConformReasoning that keeps the reasoning of the current turn.
const ReasoningFinished = "finished"

// conformRank returns the position of an edit in the order of application: edits that complete the history come first, then
// those of turns, then those of ids. Unknown edits come last.
func conformRank(name string) int {
	order := [...]string{ConformOwn, ConformReasoning, ConformItemIDs, ConformPairing, ConformSingle, ConformSystem, ConformOneSystem, ConformNoSystem, ConformMedia, ConformTextOnly, ConformEmpty, ConformTrimmed, ConformContent, ConformPadded, ConformAlternate, ConformUserFirst, ConformBetween, ConformResults,
		ConformField, ConformNested, ConformAnswered, ConformThought, ConformArguments, ConformNames, ConformThinking, ConformUnthinking, ConformOption, ConformMarks, ConformNoTools, ConformBetas, ConformCallIDs, ConformSignatures,
		ConformStubTools, ConformUnique, ConformStrict, ConformMissing, ConformObject, ConformTyped, ConformFlat, ConformAlone, ConformEnum, ConformUntold, ConformPlain, ConformKeyword, ConformItems}
	for i, m := range order {
		if m == name {
			return i
		}
	}
	return len(order)
}

// MaxValue limits the length of Edit.Value, in bytes.
const MaxValue = 64

// Droppable reports whether a field may be removed if a target refuses it. Removing it may change how an answer is
// sampled, how hard the model thinks or how the request is labelled, but not what the client asked for. So it returns
// false for response_format, stop, n, tools and logit_bias, for service_tier, which decides about the price, and for
// parallel_tool_calls, which decides about the shape of turns. It accepts names in camel case, too.
func Droppable(field string) bool {
	name := Snake(field)
	switch name {
	case "temperature", "top_p", "top_k", "min_p", "top_a", "typical_p",
		"frequency_penalty", "presence_penalty", "repetition_penalty", "seed",
		"reasoning_effort", "reasoning", "verbosity", "thinking", "thinking_budget", "enable_thinking", "thinking_config", "chat_template_kwargs",
		"include_reasoning", "reasoning_format", "reasoning_split", "reasoning_summary", "preserve_thinking", "effort",
		"stream_options", "store", "metadata", "user", "safety_identifier",
		"prompt_cache_key", "prompt_cache_retention", "prompt_cache_options", "prediction", "include", "client_metadata", "usage",
		"tool_stream", "access_programs", "context_management", "truncation": // a history that grows too long without it is shortened as any other
		return true
	}
	for _, kind := range [...]string{"_", "reasoning_", "thinking_", "prompt_cache_"} { // private to a client, or how hard the model thinks and what the server caches
		if strings.HasPrefix(name, kind) {
			return true
		}
	}
	return false
}

// Implied reports whether a field with this value, as JSON, says what the request says without it: it is null, an empty
// list of offers, or the API's own default. Such a field may be removed whatever its meaning.
func Implied(field, value string) bool {
	var b bytes.Buffer
	if len(value) > MaxValue || json.Compact(&b, []byte(value)) != nil {
		return false
	}
	if b.String() == "null" {
		return field != "model" && field != "messages" && field != "input"
	}
	switch field + " " + b.String() {
	case "parallel_tool_calls true", "tools []", "functions []", "n 1", `response_format {"type":"text"}`, "logprobs false",
		"top_logprobs 0", "logit_bias {}", "stop []", `modalities ["text"]`, `service_tier "auto"`, `tool_choice "auto"`, `tool_choice {"type":"auto"}`, "plugins []", "transforms []",
		"signal {}": // an abort signal of JavaScript, as JSON
		return true
	}
	return false
}

// Snake converts a name to snake case.
func Snake(name string) string {
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

// Known reports whether a strategy can produce the edit. The gateway has not written any other edit to the store.
func (e Edit) Known() bool {
	switch {
	case e.Conform != "":
		return conformRank(e.Conform) < conformRank("") && e.Rename+e.Role == "" && !e.Drop && len(e.Field) <= 64
	case e.Role != "":
		return e.Field == "" && (e.Role == "developer" && e.Rename == "system" || e.Role == "system" && e.Rename == "developer")
	case e.Drop:
		return (Droppable(e.Field) || Implied(e.Field, e.Value)) && len(e.Value) <= MaxValue
	case e.Rename != "":
		return e.Rename == OtherLimit(e.Field)
	}
	return e.Clamp >= 16 && (e.Field == "max_output_tokens" || OtherLimit(e.Field) != "")
}

// OtherLimit returns the other of the two names for the output limit of a chat completion, "" if field is neither.
func OtherLimit(field string) string {
	switch field {
	case "max_tokens":
		return "max_completion_tokens"
	case "max_completion_tokens":
		return "max_tokens"
	}
	return ""
}

// lasting returns the edits to remember for the target, and those for its account. It leaves out edits for the content of one request, which would
// change healthy requests. Makers remembers for the session which accounts made its reasoning.
func (c *Choice) lasting() (forAll, own []Edit) {
	for _, ed := range c.Edits {
		passing := slices.Contains(c.requestEdits, ed)
		switch ed.Conform {
		case ConformReasoning, ConformItemIDs, ConformOwn:
			passing = true
		case ConformMedia, ConformPlain, ConformStrict, ConformTyped, ConformFlat, ConformAlone, ConformEnum:
			passing = passing || ed.Field == ""
		case ConformSignatures:
			passing = passing || ed.Field != ""
		}
		switch {
		case passing:
		case slices.Contains(c.accountEdits, ed), len(c.noBetas) > 0: // another account may use these betas and what needs them
			own = append(own, ed)
		default:
			forAll = append(forAll, ed)
		}
	}
	return forAll, own
}

// NestedLabel reports whether a field of parts, calls or tools carries no content of the conversation. Only such
// fields are removed if a target refuses them.
func NestedLabel(field string) bool {
	switch field {
	case "cache_control", "cache_control.scope", "cache_control.ttl", "citations", "strict", "index", "extra_content", "provider_specific_fields", "thought_signature", "annotations", "caller",
		"defer_loading", "eager_input_streaming", "input_examples", "allowed_callers":
		return true
	}
	return false
}

// maxToolName is the longest name of a tool that all providers accept, in bytes.
const maxToolName = 64

// SafeNames maps the names of a request's tools to names that every provider accepts: at most 64 letters, digits,
// underscores and hyphens, with a letter or an underscore first. Names that fit stay, and no two names become equal. The
// result depends only on the list, so that the names in an answer can be mapped back.
func SafeNames(names []string) map[string]string {
	out := make(map[string]string, len(names))
	uses := make(map[string]int, len(names)) // of a safe name
	for _, name := range names {
		if _, known := out[name]; !known {
			out[name] = safeName(name)
			uses[out[name]]++
		}
	}
	for name, safe := range out {
		if len(safe) > maxToolName || safe != name && uses[safe] > 1 {
			sum := sha256.Sum256([]byte(name))
			out[name] = safe[:min(len(safe), maxToolName-9)] + "_" + hex.EncodeToString(sum[:4])
		}
	}
	return out
}

// safeName replaces the characters of a name that not every provider accepts, whatever its length.
func safeName(name string) string {
	safe := []byte(name)
	for i, c := range safe {
		if c != '_' && c != '-' && (c < '0' || c > '9') && (c|0x20 < 'a' || c|0x20 > 'z') {
			safe[i] = '_'
		}
	}
	if name != "" && (safe[0] == '-' || safe[0] >= '0' && safe[0] <= '9') {
		safe = append([]byte{'_'}, safe...)
	}
	return string(safe)
}

// SchemaMark identifies the schema of a tool's parameters.
func SchemaMark(parameters []byte) string {
	sum := sha256.Sum256(parameters)
	return hex.EncodeToString(sum[:8])
}

// ToolsMark identifies a request's tools by their names.
func ToolsMark(tools []transcript.Tool) string {
	h := sha256.New()
	for _, t := range tools {
		_, _ = h.Write(append([]byte(t.Name), 0)) // a hash returns no error
	}
	return "tools " + hex.EncodeToString(h.Sum(nil)[:8])
}

// MessageLabel reports whether a field of messages carries no content of the conversation: labels, and the reasoning of
// earlier turns, which most servers ignore. Only such fields are removed if a target refuses them.
func MessageLabel(field string) bool {
	switch field {
	case "name", "refusal", "annotations", "audio",
		"cache_control", "extra_content", "provider_specific_fields", "id", "status", "phase", "namespace", "metadata", "timestamp", "prefix",
		"output_config": // the effort of one turn, as Claude Code sends it
		return true
	}
	return transcript.ReasoningField(field) || strings.HasPrefix(field, "_") || strings.HasPrefix(field, "internal_")
}
