package redact

import (
	"encoding/base64"
	"strings"
	"testing"
)

func TestText(t *testing.T) {
	const hexKey = "0123456789abcdef0123456789abcdef"
	for _, tt := range []struct{ name, in, secret, keep string }{
		{"openai key", "Incorrect API key provided: sk-proj-Ab12Cd34Ef56.", "Ab12Cd34", "Incorrect API key provided: "},
		{"short key", "key sk-abc123x", "abc123", "key "},
		{"masked key", "Incorrect API key provided: sk-proj-********************wxyz.", "wxyz", "Incorrect"},
		{"underscore", "token hf_abcdefghijklm refused", "abcdefgh", "refused"},
		{"google", "API key AIzaSyA-1234567_890abc not valid", "1234567", "not valid"},
		{"amazon", "AKIAIOSFODNN7EXAMPLE has no access", "IOSFODNN", "has no access"},
		{"jwt", "got eyJhbGciOiJIUzI1NiJ9.eyJzdWIiOiIxIn0.c2ln-_x failed", "eyJzdWI", "failed"},
		{"bearer", "header was Bearer hunter2 there", "hunter2", "there"},
		{"bearer lower", "bearer   abcdef", "abcdef", "bearer"},
		{"bearer odd", "Bearer a!b$c%d", "b$c", "Bearer"},
		{"authorization", `Authorization: Bearer abc`, "abc", "Authorization: "},
		{"authorization json", `{"authorization":"Bearer abc def"}`, "abc", `{"authorization":"`},
		{"go header", `map[Authorization:[Bearer abc] Host:[x]]`, "abc", "Host:[x]"},
		{"basic", "Basic dXNlcjpwYXNzd29yZA==", "dXNlcjpw", "Basic "},
		{"api-key header", "api-key: letmein", "letmein", "api-key: "},
		{"x-api-key", `x-api-key=letmein&a=b`, "letmein", "&a=b"},
		{"json field", `{"api_key":"let me in","a":1}`, "me in", `,"a":1}`},
		{"json escaped quote", `{"password":"a\"b c"}`, "b c", `{"password":"`},
		{"escaped json", `{\"client_secret\": \"letmein\"}`, "letmein", "client_secret"},
		{"single quotes", `{'password': "it's a b"}`, "a b", "password"},
		{"yaml", "password: hunter2", "hunter2", "password: "},
		{"environment", "OPENAI_API_KEY=letmein", "letmein", "OPENAI_API_KEY="},
		{"cookie", "Set-Cookie: a=b; session=c", "session=c", "Set-Cookie"},
		{"userinfo", `dial "redis://user:pa%21ss@redis:6379/0": refused`, "pa%21ss", "@redis:6379/0"},
		{"userinfo at", "https://u:p@ss@host/x", "ss@", "@host/x"},
		{"userinfo slash", `parse "redis://:pa/ss@host:1": invalid port`, "pa/ss", "@host:1"},
		{"user only", "https://secretuser@host/", "secretuser", "@host/"},
		{"query key", "Get https://h/v1?key=letmein&alt=sse: EOF", "letmein", "&alt=sse: EOF"},
		{"signed", "https://h/o?X-Amz-Signature=abc&sig=def&x=1", "def", "&x=1"},
		{"api version stays", "https://h/o?api-version=2024-10-21&api_key=abc", "=abc", "api-version=2024-10-21"},
		{"hex", "key " + hexKey + " refused", hexKey, " refused"},
		{"base62", "auth T1b9XkQ27mZp0LwR5sVnY8cD3fHj refused", "T1b9XkQ27", "refused"},
		{"base64", "auth qL9+x/7RtZ0bN4mKc8Yw2Vp6Jd1Hs5Ff3Gg+Aa/Bb0= refused", "7RtZ0bN4", "refused"},
		{"private key", "a -----BEGIN RSA PRIVATE KEY-----\nMIIE\n-----END RSA PRIVATE KEY----- b", "MIIE", " b"},
		{"half a private key", "a -----BEGIN PRIVATE KEY----- MIIE abc", "MIIE", "a "},
	} {
		t.Run(tt.name, func(t *testing.T) {
			got := Text(tt.in)
			if strings.Contains(got, tt.secret) || !strings.Contains(got, Hidden) {
				t.Errorf("%q became %q: still has %q", tt.in, got, tt.secret)
			}
			if !strings.Contains(got, tt.keep) {
				t.Errorf("%q became %q: lost %q", tt.in, got, tt.keep)
			}
			if again := Text(got); again != got {
				t.Errorf("%q became %q the second time", got, again)
			}
		})
	}
}

// What an operator needs to find the cause must stay.
func TestTextKeeps(t *testing.T) {
	for _, s := range []string{
		"",
		"dial tcp 10.0.0.1:443: connect: connection refused",
		"read tcp [2001:db8:85a3:8d3:1319:8a2e:370:7348]:443: i/o timeout",
		"This model's maximum context length is 128000 tokens. However, you requested 130512 tokens (max_tokens: 4096).",
		"Rate limit reached for gpt-4o in organization acme on tokens per min (TPM): Limit 30000, Used 29000, Requested 61337.",
		"prompt_tokens=12 completion_tokens: 13 total_tokens 25",
		"request id: req_0123456789abcdef0123456789abcdef",
		"request 550e8400-e29b-41d4-a716-446655440000 failed",
		"chatcmpl-9xAbC1dEfG2hIjK3lMnO4pQrS5tUv was cut",
		"model Meta-Llama-3-1-405B-Instruct-FP8-dynamic not found",
		"model claude-3-5-sonnet-20241022-v2 not found",
		"ft model gpt-4o-mini-2024-07-18-preview-long-name not found",
		"open /home/user/Projects/my-project-2024/internal/config/rebound_default.yaml: no such file",
		"unknown field ChatCompletionStreamOptionsParameterIncludeUsage",
		"A bearer token is required. Bearer authentication failed; use the basic plan.",
		"https://us-east5-aiplatform.googleapis.com/v1/models/claude-opus-4@20250514:rawPredict",
		"https://host:8443/v1/models/claude@20250514",
		"sk-",
		"the task-scheduler and a risk-free disk_full_error",
		strings.Repeat("a", 300),
	} {
		if got := Text(s); got != s {
			t.Errorf("%q became %q", s, got)
		}
	}
}

func FuzzText(f *testing.F) {
	f.Add("prefix ", []byte("0123456789abcdefghijklmnopqrstuv"))
	f.Add("Authorization: ", []byte{0xff, 1, 2, 3, 250, 17, 99, 201, 5, 6, 77, 180, 9})
	f.Fuzz(func(t *testing.T, around string, random []byte) {
		Text(around) // whatever it is, it does not panic
		if strings.ContainsAny(around, "\\\"'") || len(random) < 8 || len(random) > 200 {
			return
		}
		key := "sk-" + base64.RawURLEncoding.EncodeToString(random)
		if got := Text(around + " " + key + " " + around); strings.Contains(got, key) {
			t.Errorf("%q kept %q", got, key)
		}
	})
}
