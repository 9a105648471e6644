package tokenizer

import "testing"

func TestForModel(t *testing.T) {
	for _, tc := range []struct {
		model, want string
		exact       bool
	}{
		{"gpt-4o", O200K, true},
		{"gpt-4o-mini", O200K, true},
		{"gpt-4o-2024-08-06", O200K, true},
		{"gpt-4o-audio-preview", O200K, true},
		{"chatgpt-4o-latest", O200K, true},
		{"gpt-4.1", O200K, true},
		{"gpt-4.1-nano-2025-04-14", O200K, true},
		{"gpt-4.5-preview", O200K, true},
		{"gpt-5", O200K, true},
		{"gpt-5-mini", O200K, true},
		{"gpt-5.1", O200K, true},
		{"gpt-5.1-codex-max", O200K, true},
		{"gpt-5-chat-latest", O200K, true},
		{"o1", O200K, true},
		{"o1-preview", O200K, true},
		{"o3-pro-2025-06-10", O200K, true},
		{"o4-mini", O200K, true},
		{"codex-mini-latest", O200K, true},
		{"gpt-oss-20b", O200KHarmony, true},
		{"gpt-oss:20b", O200KHarmony, true},
		{"openai.gpt-oss-120b-1:0", O200KHarmony, true},
		{"us.openai.gpt-oss-20b-1:0", O200KHarmony, true},
		{"publishers/openai/models/gpt-oss-120b-maas", O200KHarmony, true},
		{"accounts/fireworks/models/gpt-oss-120b", O200KHarmony, true},
		{"hf.co/unsloth/gpt-oss-20b-GGUF:Q4_K_M", O200KHarmony, true},
		{"gpt-4", CL100K, true},
		{"gpt-4-0613", CL100K, true},
		{"gpt-4-32k", CL100K, true},
		{"gpt-4-turbo-2024-04-09", CL100K, true},
		{"gpt-4-1106-preview", CL100K, true},
		{"gpt-3.5-turbo", CL100K, true},
		{"gpt-3.5-turbo-16k", CL100K, true},
		{"gpt-35-turbo", CL100K, true},
		{"text-embedding-3-large", CL100K, true},
		{"text-embedding-ada-002", CL100K, true},
		{"davinci-002", CL100K, true},
		{"openai/gpt-5-mini", O200K, true},
		{"openai:gpt-4", CL100K, true},
		{"azure/gpt-35-turbo-16k", CL100K, true},
		{"openrouter/openai/gpt-4o:free", O200K, true},
		{"openai/gpt-4o@2024-08-06", O200K, true},
		{"ft:gpt-4o-mini-2024-07-18:org::id", O200K, true},
		{"ft:gpt-4o-mini:org/team:gpt-4:id", O200K, true},
		{"openai/ft:gpt-3.5-turbo:org::id", CL100K, true},
		{"gpt-4o-mini-2024-07-18.ft-0e208cf33a6a466994aff31a08aba678", O200K, true},
		{" GPT-4o ", O200K, true},

		{"", O200K, false},
		{"/", O200K, false},
		{":::@", O200K, false},
		{"ft:", O200K, false},
		{"ft:llama-3:gpt-4::id", O200K, false},
		{"gpt-4.2", O200K, false},
		{"gpt-40", O200K, false},
		{"gpt-6", O200K, false},
		{"gpt-image-1", O200K, false},
		{"o2", O200K, false},
		{"o10-mini", O200K, false},
		{"omni-moderation-latest", O200K, false},
		{"gpt-4/llama-3", O200K, false},
		{"claude-sonnet-4-5", O200K, false},
		{"us.anthropic.claude-sonnet-4-5-20250929-v1:0", O200K, false},
		{"gemini-2.5-pro", O200K, false},
		{"qwen3-coder:30b", O200K, false},
		{"deepseek/deepseek-chat", O200K, false},
		{"my-deployment", O200K, false},
		{"gpt-4\xff", O200K, false},
	} {
		enc, exact := ForModel(tc.model)
		if enc.Name() != tc.want || exact != tc.exact {
			t.Errorf("ForModel(%q) = %s, %v; want %s, %v", tc.model, enc.Name(), exact, tc.want, tc.exact)
		}
	}
}
