package configs

import (
	"reflect"
	"slices"
	"strings"
	"testing"
)

// free lists the settings that accept any text: names, patterns and wordings of users and
// providers. A priority only sorts.
var free = []string{
	"auth.admin_env", "auth.keys[].env", "auth.keys[].models", "learn.first_token.reasoning_models", "models.NAME.targets[].model",
	"planner.keys.NAME.tools", "planner.model", "planner.tools", "repair.destructive", "repair.safe", "store.redis.master_name",
	"store.redis.password_env", "store.redis.sentinel_password_env", "store.redis.sentinel_username", "store.redis.server_name",
	"store.redis.username", "strategies.chains.NAME[].steps", "strategies.chains.NAME[].priority", "upstreams.NAME.headers", "upstreams.NAME.keys[].command",
	"upstreams.NAME.keys[].env", "upstreams.NAME.query",
	"classify.rules[].codes", "classify.rules[].not_codes",
}

// freeInRules are such settings of classify.rules and inspect.rules.
var freeInRules = []string{"and", "any", "begin", "end", "examples", "lookalikes", "meaning", "near", "not", "not_patterns", "patterns"}

// TestEverySettingIsChecked gives each setting an invalid value: -1, or an unknown word. It must be
// refused, unless the setting is listed in free.
func TestEverySettingIsChecked(t *testing.T) {
	accepted := map[string]bool{}
	schema(reflect.TypeFor[Config](), "", func(key, _ string, typ reflect.Type) {
		path := strings.NewReplacer("chains.NAME", "chains.file_not_found", "NAME", "name").Replace(key)
		switch typ.Kind() {
		case reflect.Pointer:
			typ = typ.Elem()
		case reflect.Slice:
			path, typ = path+"[]", typ.Elem()
		case reflect.Map:
			path, typ = path+".name", typ.Elem()
		}
		value := "-1"
		switch {
		case typ == durationType:
			value = "-1s"
		case typ.Kind() == reflect.String:
			value = "no such word"
		case !typ.ConvertibleTo(reflect.TypeFor[float64]()):
			return // true or false, or what has keys of its own
		}
		names := strings.Split(path, ".")
		without, with := "{}", value
		for i, name := range slices.Backward(names) {
			name, list := strings.CutSuffix(name, "[]")
			if list {
				with = "[" + with + "]"
			}
			if with = "{" + name + ": " + with + "}"; i < len(names)-1 {
				if list {
					without = "[" + without + "]"
				}
				without = "{" + name + ": " + without + "}"
			}
		}
		before, after := problems(without), problems(with)
		at := strings.ReplaceAll(path, "[]", "[0]")
		accepted[key] = !slices.ContainsFunc(after, func(p Problem) bool { return p.Key == at || !slices.Contains(before, p) })
	})
	if len(accepted) < 150 {
		t.Fatalf("only %d settings are found: this test looks in the wrong place", len(accepted))
	}
	for key, ok := range accepted {
		section, name, _ := strings.Cut(key, ".rules[].")
		if ok != (slices.Contains(free, key) || slices.Contains(freeInRules, name) && section != key) {
			t.Errorf("%s: accepts any value: %t; check it in Validate, or else list it as free", key, ok)
		}
	}
}

// problems returns the problems of a text, without their places.
func problems(text string) []Problem {
	_, err := Parse("x.yaml", []byte(text), everything)
	list, _ := err.(Errors)
	for i := range list {
		list[i] = Problem{Key: list[i].Key, Message: list[i].Message}
	}
	return list
}
