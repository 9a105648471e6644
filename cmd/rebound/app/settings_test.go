package app_test

import (
	"fmt"
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/rebound-llm/rebound/configs"
	"github.com/rebound-llm/rebound/proxy/upstreamtest"
)

// With the least and with an absurdly large value of each number, the configuration is refused, or a healthy request is
// answered.
func TestExtremeSettings(t *testing.T) {
	t.Parallel()
	up := upstreamtest.New(upstreamtest.Options{}).Start(t)
	served := 0
	for key, typ := range numbers(reflect.TypeFor[configs.Config](), "") {
		values := []string{"0", "9000000000"}
		if typ == reflect.TypeFor[time.Duration]() {
			values = []string{"0s", "1ns", "90000h"}
		}
		for _, value := range values {
			inner, more := "", ""
			if name, ok := strings.CutPrefix(key, "upstreams.NAME."); ok {
				inner = ", " + name + ": " + value
			} else {
				more = strings.ReplaceAll(key, ".", ": {") + ": " + value + strings.Repeat("}", strings.Count(key, "."))
			}
			cfg, err := configs.Parse("test.yaml", fmt.Appendf(nil, "listen: 127.0.0.1:0\nupstreams: {default: {url: %q, passthrough: true%s}}\n%s\n", up.URL()+"/v1", inner, more), environ)
			if err != nil {
				continue
			}
			served++
			t.Run(key+"="+value, func(t *testing.T) {
				g := launchConfig(t, cfg)
				g.must(chat("m", false, ""))
				g.must(chat("m", true, ""))
			})
		}
	}
	if served < 60 {
		t.Errorf("%d values are accepted: this test looks in the wrong place", served)
	}
}

// numbers returns the keys of all numbers that a file can set, outside of lists.
func numbers(typ reflect.Type, key string) map[string]reflect.Type {
	out := map[string]reflect.Type{}
	switch {
	case typ.Kind() == reflect.Struct:
		for _, f := range reflect.VisibleFields(typ) {
			name, inline, _ := strings.Cut(f.Tag.Get("yaml"), ",")
			if name == "-" || name == "" && inline == "" || len(f.Index) > 1 {
				continue
			}
			for k, t := range numbers(f.Type, strings.Trim(key+"."+name, ".")) {
				out[k] = t
			}
		}
	case typ.Kind() == reflect.Map && key == "upstreams":
		return numbers(typ.Elem(), key+".NAME")
	case typ.Kind() != reflect.String && typ.ConvertibleTo(reflect.TypeFor[float64]()):
		out[key] = typ
	}
	return out
}
