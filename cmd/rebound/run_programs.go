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
	// upstream is the variable of the gateway that names the program's provider; "" is [configs.EnvUpstream].
	upstream string
	// extension is the text of a file that the program is given by -e, "" for none.
	extension string
}

// programs are the known ones; the last row is for all others.
var programs = []pointed{
	{"codex", `-c openai_base_url="URL" before its own arguments`, func(args []string, base string, env configs.Env) ([]string, map[string]string) {
		quoted, _ := json.Marshal(base) // TOML's basic strings are JSON's here
		return append([]string{"-c", "openai_base_url=" + string(quoted)}, args...), nil
	}, codexLogin, "", ""},
	{"claude", "ANTHROPIC_BASE_URL, and --settings where its own settings name another", func(args []string, base string, env configs.Env) ([]string, map[string]string) {
		args, extra := byEnvironment(anthropicBase)(args, base, env)
		if claudeProvider(env) != "" { // it wins over the environment, and an argument over both
			settings, _ := json.Marshal(map[string]any{"env": extra}) // strings always marshal
			args = append([]string{"--settings", string(settings)}, args...)
		}
		return args, extra
	}, claudeCloud, configs.EnvAnthropic, ""},
	{"opencode", "OPENCODE_CONFIG_CONTENT (baseURL of the providers openai and anthropic) and OPENAI_BASE_URL", func(args []string, base string, env configs.Env) ([]string, map[string]string) {
		content := map[string]any{}
		if own, ok := env("OPENCODE_CONFIG_CONTENT"); ok && json.Unmarshal([]byte(own), &content) != nil {
			content = map[string]any{} // opencode would refuse it
		}
		for _, provider := range [...]string{"openai", "anthropic"} {
			at := content
			for _, key := range [...]string{"provider", provider, "options"} {
				in, ok := at[key].(map[string]any)
				if !ok {
					in = map[string]any{}
					at[key] = in
				}
				at = in
			}
			at["baseURL"] = base
		}
		text, _ := json.Marshal(content) // it was JSON
		return args, map[string]string{"OPENCODE_CONFIG_CONTENT": string(text), "OPENAI_BASE_URL": base}
	}, nil, "", ""},
	{"copilot", "COPILOT_PROVIDER_BASE_URL", byEnvironment("COPILOT_PROVIDER_BASE_URL"), nil, "", ""},
	{"aider", "OPENAI_API_BASE", byEnvironment("OPENAI_API_BASE"), nil, "", ""},
	{"pi", "-e FILE, an extension that sets baseUrl of the providers openai and anthropic", byEnvironment("OPENAI_BASE_URL", anthropicBase), nil, "", piExtension},
	{"qwen", "OPENAI_BASE_URL", byEnvironment("OPENAI_BASE_URL"), nil, "", ""},
	{"any other", "OPENAI_BASE_URL, OPENAI_API_BASE and ANTHROPIC_BASE_URL", byEnvironment("OPENAI_BASE_URL", "OPENAI_API_BASE", anthropicBase), nil, "", ""},
}

// piExtension points pi, which reads base URLs from no variable by itself.
const piExtension = `export default function (pi) {
  pi.registerProvider("openai", { baseUrl: process.env.OPENAI_BASE_URL });
  pi.registerProvider("anthropic", { baseUrl: process.env.ANTHROPIC_BASE_URL });
}
`

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

// anthropicBase is the variable of clients of the Messages API, which add /v1 themselves.
const anthropicBase = "ANTHROPIC_BASE_URL"

// byEnvironment points by the environment alone.
func byEnvironment(names ...string) func([]string, string, configs.Env) ([]string, map[string]string) {
	return func(args []string, base string, _ configs.Env) ([]string, map[string]string) {
		extra := map[string]string{}
		for _, name := range names {
			if extra[name] = base; name == anthropicBase {
				extra[name] = strings.TrimSuffix(base, "/v1")
			}
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
	raw := settings(env, "CODEX_HOME", ".codex", "auth.json")
	if gjson.GetBytes(raw, "OPENAI_API_KEY").Str != "" || !gjson.GetBytes(raw, "tokens").IsObject() {
		return ""
	}
	return "codex is logged in with a subscription, which only its own back end serves; set OPENAI_API_KEY to use an API key"
}

// claudeProvider is the provider that Claude Code's own settings name, "" if they name none. They
// win over the environment: https://docs.claude.com/en/docs/claude-code/settings.
func claudeProvider(env configs.Env) string {
	return gjson.GetBytes(settings(env, "CLAUDE_CONFIG_DIR", ".claude", "settings.json"), "env."+anthropicBase).Str
}

// settings reads a file of a program, in the folder that a variable names, else in one of the user's home; nil without one.
func settings(env configs.Env, variable, folder, file string) []byte {
	home, ok := env(variable)
	if !ok {
		user, err := os.UserHomeDir()
		if err != nil {
			return nil
		}
		home = filepath.Join(user, folder)
	}
	raw, _ := os.ReadFile(filepath.Join(home, file))
	return raw
}

// claudeCloud recognises a provider that Claude Code asks in that provider's own format.
func claudeCloud(env configs.Env) string {
	for _, name := range [...]string{"CLAUDE_CODE_USE_BEDROCK", "CLAUDE_CODE_USE_VERTEX", "CLAUDE_CODE_USE_FOUNDRY"} {
		if v, _ := env(name); v != "" && v != "0" && v != "false" {
			return name + " is set: claude then speaks that cloud's own API, which the gateway does not serve; unset it"
		}
	}
	return ""
}
