package main

import (
	"encoding/json"
	"os"
	"path/filepath"
	"strings"

	"github.com/tidwall/gjson"

	"github.com/rebound-llm/rebound/configs"
)

// pointed is how a program is pointed at a gateway.
type pointed struct {
	name, by string
	// point returns the program's arguments, and what is added to its environment.
	point func(args []string, base string, env configs.Env) ([]string, map[string]string)
	// refuses says why the program's login cannot be served, "" if it can; nil always can.
	refuses func(env configs.Env) string
}

// programs are the known ones; the last row is for all others.
var programs = []pointed{
	{"codex", `-c openai_base_url="URL" before its own arguments`, func(args []string, base string, env configs.Env) ([]string, map[string]string) {
		quoted, _ := json.Marshal(base) // TOML's basic strings are JSON's here
		return append([]string{"-c", "openai_base_url=" + string(quoted)}, args...), nil
	}, codexLogin},
	{"opencode", "OPENCODE_CONFIG_CONTENT (provider.openai.options.baseURL) and OPENAI_BASE_URL", func(args []string, base string, env configs.Env) ([]string, map[string]string) {
		content := map[string]any{}
		if own, ok := env("OPENCODE_CONFIG_CONTENT"); ok && json.Unmarshal([]byte(own), &content) != nil {
			content = map[string]any{} // opencode would refuse it
		}
		at := content
		for _, key := range [...]string{"provider", "openai", "options"} {
			in, ok := at[key].(map[string]any)
			if !ok {
				in = map[string]any{}
				at[key] = in
			}
			at = in
		}
		at["baseURL"] = base
		text, _ := json.Marshal(content) // it was JSON
		return args, map[string]string{"OPENCODE_CONFIG_CONTENT": string(text), "OPENAI_BASE_URL": base}
	}, nil},
	{"copilot", "COPILOT_PROVIDER_BASE_URL", byEnvironment("COPILOT_PROVIDER_BASE_URL"), nil},
	{"aider", "OPENAI_API_BASE", byEnvironment("OPENAI_API_BASE"), nil},
	{"qwen", "OPENAI_BASE_URL", byEnvironment("OPENAI_BASE_URL"), nil},
	{"any other", "OPENAI_BASE_URL and OPENAI_API_BASE", byEnvironment("OPENAI_BASE_URL", "OPENAI_API_BASE"), nil},
}

// pointing returns the row of a program's file.
func pointing(path string) pointed {
	name := strings.TrimSuffix(filepath.Base(path), filepath.Ext(path))
	for _, p := range programs[:len(programs)-1] {
		if p.name == name {
			return p
		}
	}
	return programs[len(programs)-1]
}

// byEnvironment points by the environment alone.
func byEnvironment(names ...string) func([]string, string, configs.Env) ([]string, map[string]string) {
	return func(args []string, base string, _ configs.Env) ([]string, map[string]string) {
		extra := map[string]string{}
		for _, name := range names {
			extra[name] = base
		}
		return args, extra
	}
}

// codexLogin recognises a login with a subscription, whose own back end only codex itself
// may ask: https://developers.openai.com/codex/auth.
func codexLogin(env configs.Env) string {
	if key, ok := env("OPENAI_API_KEY"); ok && key != "" {
		return ""
	}
	home, ok := env("CODEX_HOME")
	if !ok {
		user, err := os.UserHomeDir()
		if err != nil {
			return ""
		}
		home = filepath.Join(user, ".codex")
	}
	raw, err := os.ReadFile(filepath.Join(home, "auth.json"))
	if err != nil || gjson.GetBytes(raw, "OPENAI_API_KEY").Str != "" || !gjson.GetBytes(raw, "tokens").IsObject() {
		return ""
	}
	return "codex is logged in with a subscription, which only its own back end serves; set OPENAI_API_KEY to use an API key"
}
