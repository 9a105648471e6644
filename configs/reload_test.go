package configs

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
	"testing/synctest"
	"time"
)

// A running gateway refuses half of a file that is valid YAML, and settings that are
// only safe on another listen address.
func TestReplaceable(t *testing.T) {
	const (
		ups   = "upstreams: {default: {url: \"http://127.0.0.1:9000/v1\"}}\n"
		spend = "upstreams: {default: {url: \"http://127.0.0.1:9000/v1\", keys: [{name: main, env: A}]}}\n"
		keys  = "auth: {keys: [{name: alice, env: B}]}\n"
		admin = "auth: {admin_env: B, admin_local: false}\n"
		wide  = "listen: 0.0.0.0:8080\n"
		local = "listen: 127.0.0.1:8080\n"
	)
	for name, c := range map[string]struct{ old, next, refused string }{
		"the same":                            {wide + keys + spend, wide + keys + spend, ""},
		"another key":                         {wide + keys + spend, wide + "auth: {keys: [{name: bob, env: A}]}\n" + ups, ""},
		"more":                                {ups, keys + spend, ""},
		"no file before":                      {"", ups, ""},
		"nothing declared before":             {local, local + "drain: 5s\n", ""},
		"half of it":                          {wide + keys + spend, wide, "auth.keys upstreams"},
		"a section without anything":          {keys + spend, "auth:\nupstreams:\n", "auth.keys upstreams"},
		"without the last key":                {local + keys + ups, local + "auth: {admin_env: B}\n" + ups, "auth.keys"},
		"without auth":                        {admin + ups, ups, "auth"},
		"without upstreams":                   {keys + ups, keys, "upstreams"},
		"keys, and listen for this machine":   {wide + ups, local + spend, "upstreams.default.keys"},
		"keys, where listen is this machine":  {local + ups, local + spend, ""},
		"another listen, with gateway keys":   {wide + keys + spend, local + keys + spend, ""},
		"another listen, and nothing to lose": {wide + ups, local + ups, ""},
	} {
		old, next := mustParse(t, c.old, "A=secret-aaaaaaaa", "B=secret-bbbbbbbb"), mustParse(t, c.next, "A=secret-aaaaaaaa", "B=secret-bbbbbbbb")
		var got []string
		if err := old.Replaceable(next); err != nil {
			for _, p := range err.(Errors) {
				got = append(got, p.Key)
			}
		}
		if keys := strings.Join(got, " "); keys != c.refused {
			t.Errorf("%s: refused %q, want %q", name, keys, c.refused)
		}
	}
}

// A reload requested while a file is being written waits until it stops changing.
func TestReloadWaitsForTheEnd(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		dir := t.TempDir()
		path := filepath.Join(dir, "c.yaml")
		write(t, path, level("info"))
		s := watch(t, dir, path)
		defer s.stop()
		stamp := func() { // the bubble's clock differs from the file system's
			if err := os.Chtimes(path, time.Now(), time.Now()); err != nil {
				t.Fatal(err)
			}
		}
		write(t, path, "log: {level: warn}\nauth: {")
		stamp()
		s.w.Reload()
		time.Sleep(settleTime / 2)
		write(t, path, level("debug"))
		stamp()
		s.expect("written", 1, 0)
		if got := s.changes[0].Log.Level; got != "debug" {
			t.Errorf("level %q", got)
		}
	})
}
