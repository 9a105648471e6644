package tokenizer

import "strings"

// families lists the models whose encoding is known: those of tiktoken's own table
// (tiktoken/model.py), and later members of the same families. A model belongs to a
// family if its name is the family's, alone or followed by a dash; after a family
// that ends in a dot anything may follow. The first match counts.
var families = []struct {
	name     string
	encoding *Encoding
}{
	{"gpt-5", &o200k},
	{"gpt-5.", &o200k},
	{"gpt-4.5", &o200k},
	{"gpt-4.1", &o200k},
	{"gpt-4o", &o200k},
	{"chatgpt-4o", &o200k},
	{"o1", &o200k},
	{"o3", &o200k},
	{"o4", &o200k},
	{"codex", &o200k},
	{"gpt-oss", &o200kHarmony},
	{"gpt-4", &cl100k},
	{"gpt-3.5", &cl100k},
	{"gpt-35", &cl100k}, // as Azure writes it
	{"text-embedding-3", &cl100k},
	{"text-embedding-ada-002", &cl100k},
	{"davinci-002", &cl100k},
	{"babbage-002", &cl100k},
}

// ForModel returns the encoding for a model, and whether it is that model's own. For
// models of other vendors and unknown names it returns o200k_base with exact
// false: the count is an estimate. It accepts names as gateways and clouds write
// them: with a provider before a slash or colon ("openai/gpt-4o"), a tag or
// version behind a colon or at sign ("gpt-oss:20b"), as a fine-tune
// ("ft:gpt-4o-mini:org::id"), or with the vendor before a dot
// ("openai.gpt-oss-120b-1:0"). Case does not matter. It cannot recognise
// deployments with a name of their own.
func ForModel(model string) (enc *Encoding, exact bool) {
	name := strings.ToLower(strings.TrimSpace(model))
	if _, tuned, ok := strings.Cut("/"+name, "/ft:"); ok {
		base, _, _ := strings.Cut(tuned, ":")
		return forName(base)
	}
	name = name[strings.LastIndexByte(name, '/')+1:]
	for part := range strings.FieldsFuncSeq(name, func(r rune) bool { return r == ':' || r == '@' }) {
		if enc, exact := forName(part); exact {
			return enc, exact
		}
	}
	return &o200k, false
}

// forName is ForModel for a name without provider, tag and version.
func forName(name string) (enc *Encoding, exact bool) {
	if _, after, ok := strings.Cut("."+name, ".openai."); ok {
		name = after
	}
	for _, f := range families {
		rest, ok := strings.CutPrefix(name, f.name)
		if ok && (rest == "" || rest[0] == '-' || strings.HasSuffix(f.name, ".")) {
			return f.encoding, true
		}
	}
	return &o200k, false
}
