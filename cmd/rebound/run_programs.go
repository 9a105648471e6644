package main

import (
	"encoding/json"
	"os"
	"path/filepath"
	"strings"

	"github.com/tidwall/gjson"

	"github.com/rebound-llm/rebound/configs"
)

// integration describes how to make a program use the gateway.
type integration struct {
	name, how string // how is for people, in --list
	// configure returns the program's new arguments, and variables to add to its environment.
	configure func(args []string, base string, env configs.Env) ([]string, map[string]string)
	// unsupported says why the gateway cannot serve the program's login, "" if it can; nil means it always can.
	unsupported func(env configs.Env) string
	// provider returns the gateway's variable for the program's provider, and the provider that the program's own
	// settings name, if any; nil is configs.EnvUpstream and none.
	provider func(env configs.Env) (variable string, own setting)
	// extension is the text of a file to pass with -e, "" for none.
	extension string
}

// programs lists the known programs; the last row is for all others.
var programs = []integration{
	{"codex", `-c openai_base_url="URL" before its own arguments`, func(args []string, base string, env configs.Env) ([]string, map[string]string) {
		quoted, _ := json.Marshal(base) // a TOML basic string, which is the same as a JSON string here
		return append([]string{"-c", "openai_base_url=" + string(quoted)}, args...), nil
	}, codexLogin, nil, ""},
	{"claude", "ANTHROPIC_BASE_URL, and --settings if its own settings name another URL", func(args []string, base string, env configs.Env) ([]string, map[string]string) {
		args, extra := byEnvironment(anthropicBase)(args, base, env)
		if _, own := claudeProvider(env); own.value != "" { // settings override the environment, and an argument overrides both
			settings, _ := json.Marshal(map[string]any{"env": extra}) // strings always marshal
			args = append([]string{"--settings", string(settings)}, args...)
		}
		return args, extra
	}, claudeCloud, claudeProvider, ""},
	{"opencode", "OPENCODE_CONFIG_CONTENT (sets baseURL of the providers openai and anthropic) and OPENAI_BASE_URL", func(args []string, base string, env configs.Env) ([]string, map[string]string) {
		content := map[string]any{}
		if own, ok := env("OPENCODE_CONFIG_CONTENT"); ok && json.Unmarshal([]byte(own), &content) != nil {
			content = map[string]any{} // opencode could not read it either
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
		text, _ := json.Marshal(content) // decoded JSON always marshals
		return args, map[string]string{"OPENCODE_CONFIG_CONTENT": string(text), "OPENAI_BASE_URL": base}
	}, nil, nil, ""},
	{"copilot", copilotBase, func(args []string, base string, env configs.Env) ([]string, map[string]string) {
		if variable, _ := copilotProvider(env); variable == configs.EnvAnthropic {
			base = strings.TrimSuffix(base, "/v1")
		}
		return args, map[string]string{copilotBase: base}
	}, copilotAzure, copilotProvider, ""},
	{"pi", "-e FILE, an extension that sets baseUrl of the providers openai and anthropic", byEnvironment("OPENAI_BASE_URL", anthropicBase), nil, nil, piExtension},
	{"any other", "OPENAI_BASE_URL, OPENAI_API_BASE and ANTHROPIC_BASE_URL (aider, qwen)", byEnvironment("OPENAI_BASE_URL", "OPENAI_API_BASE", anthropicBase), nil, nil, ""},
}

// piExtension makes pi read its base URLs from the environment, which it does not do by itself.
const piExtension = `export default function (pi) {
  pi.registerProvider("openai", { baseUrl: process.env.OPENAI_BASE_URL });
  pi.registerProvider("anthropic", { baseUrl: process.env.ANTHROPIC_BASE_URL });
}
`

// integrationFor returns the row for the program at path.
func integrationFor(path string) integration {
	name := strings.TrimSuffix(filepath.Base(path), filepath.Ext(path))
	for _, p := range programs[:len(programs)-1] {
		if p.name == name {
			return p
		}
	}
	return programs[len(programs)-1]
}

// anthropicBase is the base URL of clients of the Messages API, which append /v1 themselves.
const anthropicBase = "ANTHROPIC_BASE_URL"

// byEnvironment sets only environment variables.
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

// codexLogin refuses a login with a ChatGPT subscription: its back end accepts only codex
// itself. See https://developers.openai.com/codex/auth.
func codexLogin(env configs.Env) string {
	if key, ok := env("OPENAI_API_KEY"); ok && key != "" {
		return ""
	}
	raw := settings(env, "CODEX_HOME", ".codex", "auth.json")
	if gjson.GetBytes(raw, "OPENAI_API_KEY").Str != "" || !gjson.GetBytes(raw, "tokens").IsObject() {
		return ""
	}
	return "codex is logged in with a subscription, which works only without a gateway; set OPENAI_API_KEY to use an API key"
}

// claudeProvider returns the base URL in Claude Code's own settings, if any. Those settings
// override the environment: https://docs.claude.com/en/docs/claude-code/settings.
func claudeProvider(env configs.Env) (variable string, own setting) {
	url := gjson.GetBytes(settings(env, "CLAUDE_CONFIG_DIR", ".claude", "settings.json"), "env."+anthropicBase).Str
	return configs.EnvAnthropic, setting{url, "Claude Code's settings.json"}
}

// copilotBase is the base URL of GitHub Copilot CLI for a provider of the user's own ("copilot help providers").
const copilotBase = "COPILOT_PROVIDER_BASE_URL"

// copilotProvider returns the provider in Copilot's own variables, if any. For the Messages API Copilot appends /v1 itself.
func copilotProvider(env configs.Env) (variable string, own setting) {
	variable = configs.EnvUpstream
	if kind, _ := env("COPILOT_PROVIDER_TYPE"); kind == "anthropic" {
		variable = configs.EnvAnthropic
	}
	url, _ := env(copilotBase)
	return variable, setting{url, copilotBase}
}

// copilotAzure refuses Copilot's paths for Azure, which the gateway does not serve.
func copilotAzure(env configs.Env) string {
	if kind, _ := env("COPILOT_PROVIDER_TYPE"); kind != "azure" {
		return ""
	}
	return "COPILOT_PROVIDER_TYPE is azure, which the gateway does not support; set it to openai, and COPILOT_PROVIDER_BASE_URL to https://RESOURCE.openai.azure.com/openai/v1"
}

// settings reads a program's settings file from the folder in a variable, or else in the home directory. It returns nil on any error.
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

// claudeCloud refuses the clouds for which Claude Code uses the cloud's own API.
func claudeCloud(env configs.Env) string {
	for _, name := range [...]string{"CLAUDE_CODE_USE_BEDROCK", "CLAUDE_CODE_USE_VERTEX", "CLAUDE_CODE_USE_FOUNDRY"} {
		if v, _ := env(name); v != "" && v != "0" && v != "false" {
			return name + " is set, so claude uses that cloud's own API, which the gateway does not support; unset it"
		}
	}
	return ""
}
