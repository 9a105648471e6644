package classify

import (
	"strings"

	"github.com/rebound-llm/rebound/recovery/rule"
)

// outputNames are the request fields that bound the output, in the spellings of
// all formats, folded.
var outputNames = [...]string{"max_completion_tokens", "max_output_tokens", "maxoutputtokens", "max_new_tokens", "max_tokens_to_sample",
	"max_tokens_to_generate", "max_tokens", "maxtokens", "maxtokencount", "max_gen_len", "num_predict", "n_predict"}

// isOutputName reports that a folded name is one of a field that bounds the output.
func isOutputName(name string) bool {
	for _, k := range outputNames {
		if k == name {
			return true
		}
	}
	return false
}

// knownNames are the request fields that texts mention without saying that
// they are fields, the longer spelling before the one it contains.
var knownNames = [...]string{
	"max_completion_tokens", "max_output_tokens", "max_tokens", "temperature", "top_p", "top_k", "min_p", "frequency_penalty", "presence_penalty",
	"repetition_penalty", "presencepenalty", "frequencypenalty", "logit_bias", "top_logprobs", "logprobs", "parallel_tool_calls", "tool_choice",
	"response_format", "json_schema", "stream_options",
	"reasoning_effort", "enable_thinking", "thinking_budget", "budget_tokens", "thinking", "cache_control", "service_tier", "prompt_cache_key",
	"prompt_cache_retention", "store", "metadata", "prediction", "modalities", "seed", "stop_sequences", "verbosity", "safety_identifier",
	"reasoning",
}

func isKnown(name string) bool {
	for _, k := range knownNames {
		if k == name {
			return true
		}
	}
	return name == "tools" || name == "messages" || name == "role" || name == "model" || name == "stream" || name == "n"
}

// firstKnown returns the name that stands first in the text, or "".
func firstKnown(text string, names []string) string {
	best, at := "", -1
	for _, n := range names {
		if i := rule.WordIn(text, n); i >= 0 && (at < 0 || i < at) {
			best, at = n, i
		}
	}
	return best
}

// spaced returns the first name that the text writes as words: "thinking budget"
// is thinking_budget, "max tokens" max_tokens.
func spaced(text string, names []string) string {
	best, at := "", -1
	for _, n := range names {
		// Of a schema and of a JSON schema much is said that is not about the field.
		if !strings.Contains(n, "_") || n == "json_schema" {
			continue
		}
		if i := rule.WordIn(text, strings.ReplaceAll(n, "_", " ")); i >= 0 && (at < 0 || i < at) {
			best, at = n, i
		}
	}
	return best
}

// firstMeant returns the known field that the text mentions first, under its
// name or in words. Words that contain a name are about the field they spell:
// "enable thinking", "reasoning effort".
func firstMeant(text string) string {
	name, words := firstKnown(text, knownNames[:]), spaced(text, knownNames[:])
	if name == "" || words != "" && rule.WordIn(text, strings.ReplaceAll(words, "_", " ")) <= rule.WordIn(text, name) {
		return words
	}
	return name
}

// isWord reports a byte that names and numbers are made of, in folded text.
func isWord(c byte) bool {
	return c >= 'a' && c <= 'z' || c >= '0' && c <= '9' || c == '_'
}

// measured reads the field of which a text counts the entries: "more than 8 stop
// strings but len(stop) = 10".
func measured(text string) string {
	if _, rest, ok := strings.Cut(text, "len("); ok {
		if name := firstName(rest); isParam(name) && strings.HasPrefix(rest[len(name):], ")") {
			return name
		}
	}
	if says(text, "stop strings", "stop words") {
		return "stop"
	}
	return ""
}
