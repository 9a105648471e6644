package configs

import (
	"encoding/json"
	"fmt"
	"log/slog"
	"path/filepath"
	"strings"
	"testing"
)

const everySecret = `
listen: 0.0.0.0:8080
auth:
  keys: [{name: alice, env: ALICE, models: [a, "b:c"]}]
  admin_env: ADMIN
limits: {body: 1500, headers: 1.5KiB}
drain: 90s
upstreams:
  default:
    keys: [{name: main, env: MAIN, weight: 2.5}, {name: spare, env: SPARE}]
    headers: {X-Title: "it's: \"quoted\"", X-Signature: abcsecret, "X_Yes": "yes"}
    query: {sig-token: abcsecret, api-version: "2024-10-21"}
    proxy: env
  local: {url: "http://127.0.0.1:1/v1", profile: local}
models:
  gpt-4.1: {targets: [{upstream: local, rank: 2, weight: 0.25}, {upstream: default, model: m}], fallback_for: []}
  "odd name: #": {targets: [{upstream: local}]}
learn: {first_token: {reasoning_models: []}}
store: {redis: {url_env: REDIS, password_env: REDIS_PASSWORD}}
`

func secretConfig(t *testing.T) *Config {
	t.Helper()
	return mustParse(t, everySecret, "ALICE=abcsecret1", "ADMIN=abcsecret2", "MAIN=abcsecret3", "SPARE=abcsecret4",
		"REDIS=redis://user:abcsecret@localhost:6379/0", "REDIS_PASSWORD=abcsecret5")
}

func TestSecretsAreNotShown(t *testing.T) {
	c := secretConfig(t)
	if c.Proxy.Auth.Keys[0].Value != "abcsecret1" || c.Proxy.Auth.AdminToken != "abcsecret2" || c.Upstreams["default"].Keys[1].Value != "abcsecret4" {
		t.Fatal("the secrets were not read")
	}
	var log strings.Builder
	slog.New(slog.NewTextHandler(&log, nil)).Info("x", "config", c, "value", *c)
	slog.New(slog.NewJSONHandler(&log, nil)).Info("x", "config", c, "value", *c)
	encoded, err := json.Marshal(c)
	if err != nil {
		t.Fatal(err)
	}
	for i, text := range []string{c.Redacted(), c.String(), fmt.Sprint(c), fmt.Sprintf("%v %+v %#v %s %q %x", *c, *c, *c, c, c, c), log.String(),
		string(encoded)} {
		if strings.Contains(text, "abcsecret") {
			t.Errorf("%d shows a secret:\n%s", i, text)
		}
	}
}

func TestRedacted(t *testing.T) {
	compare(t, filepath.Join("testdata", "redacted.golden"), secretConfig(t).Redacted())
}

func TestRedactedLoadsAgain(t *testing.T) {
	env := []string{"ALICE=s1", "ADMIN=s2", "MAIN=s3", "SPARE=s4", "REDIS=redis://h:1", "REDIS_PASSWORD=s5"}
	for name, text := range map[string]string{
		"defaults": "",
		"much":     strings.NewReplacer("X-Signature: abcsecret", "X-B: c", "sig-token: abcsecret", "d: e").Replace(everySecret),
	} {
		t.Run(name, func(t *testing.T) {
			c := mustParse(t, text, env...)
			same(t, *mustParse(t, c.Redacted(), env...), *c)
		})
	}
}
