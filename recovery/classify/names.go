package classify

import (
	"slices"
	"strings"

	"github.com/rebound-llm/rebound/recovery/rule"
)

// outputNames are the folded names of the request fields that limit the output, in
// all formats.
var outputNames = []string{"max_completion_tokens", "max_output_tokens", "maxoutputtokens", "max_new_tokens", "max_tokens_to_sample",
	"max_tokens_to_generate", "max_tokens", "maxtokens", "maxtokencount", "max_gen_len", "num_predict", "n_predict"}

// isOutputName reports whether a folded name is that of a field that limits the output.
func isOutputName(name string) bool { return slices.Contains(outputNames, name) }

// knownNames are the request fields that texts mention without calling them
// fields. A longer name comes before a name that it contains.
var knownNames = []string{
	"max_completion_tokens", "max_output_tokens", "max_tokens", "temperature", "top_p", "top_k", "min_p", "frequency_penalty", "presence_penalty",
	"repetition_penalty", "presencepenalty", "frequencypenalty", "logit_bias", "top_logprobs", "logprobs", "parallel_tool_calls", "tool_choice",
	"response_format", "json_schema", "stream_options",
	"reasoning_effort", "enable_thinking", "thinking_budget", "budget_tokens", "thinking", "cache_control", "service_tier", "prompt_cache_key",
	"prompt_cache_retention", "store", "metadata", "prediction", "modalities", "seed", "stop_sequences", "verbosity", "safety_identifier",
	"reasoning", "dimensions",
}

func isKnown(name string) bool {
	return slices.Contains(knownNames, name) || name == "tools" || name == "messages" || name == "role" || name == "model" || name == "stream" || name == "n"
}

// firstKnown returns the name that occurs first in the text, or "".
func firstKnown(text string, names []string) string {
	name, _ := firstSpelling(text, names, func(n string) string { return n })
	return name
}

// firstMentioned returns the field that the text mentions first, by its name or in
// words: "thinking budget" is thinking_budget. Words that contain another field's
// name mean the field they spell: "enable thinking", "reasoning effort".
func firstMentioned(text string, names []string) string {
	name, at := firstSpelling(text, names, func(n string) string { return n })
	words, first := firstSpelling(text, names, func(n string) string {
		if n == "json_schema" { // the words "json schema" rarely mean the field
			return ""
		}
		return strings.ReplaceAll(n, "_", " ")
	})
	if name == "" || words != "" && first <= at {
		return words
	}
	return name
}

// firstSpelling returns the name whose spelling occurs first in the text, and where.
func firstSpelling(text string, names []string, spell func(string) string) (name string, at int) {
	for _, n := range names {
		if s := spell(n); s != "" {
			if i := indexAlone(text, s); i >= 0 && (name == "" || i < at) {
				name, at = n, i
			}
		}
	}
	return name, at
}

// indexAlone returns where a name first occurs in a text, or -1. It skips parts of
// longer names, such as models: "grok-4-fast-reasoning" is not about reasoning.
func indexAlone(text, name string) int {
	for from := 0; ; {
		i := rule.WordIn(text[from:], name)
		if i < 0 {
			return -1
		}
		i += from
		if from = i + len(name); (i == 0 || text[i-1] != '-') && !strings.HasPrefix(text[from:], "-") {
			return i
		}
	}
}
