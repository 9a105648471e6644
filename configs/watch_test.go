package configs

import (
	"context"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"go.uber.org/goleak"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// watching is a watched file inside a synctest bubble.
type watching struct {
	t       *testing.T
	dir     string
	path    string
	w       *Watcher
	cancel  context.CancelFunc
	mu      sync.Mutex
	changes []*Config
	errs    []error
}

func watch(t *testing.T, dir, path string) *watching {
	t.Helper()
	c, err := Load(path, environment("SET=x"))
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	s := &watching{t: t, dir: dir, path: path, cancel: cancel}
	s.w = Watch(ctx, c, environment("SET=x"), time.Second,
		func(c *Config) {
			s.mu.Lock()
			defer s.mu.Unlock()
			s.changes = append(s.changes, c)
		},
		func(err error) {
			s.mu.Lock()
			defer s.mu.Unlock()
			s.errs = append(s.errs, err)
		})
	return s
}

// expect waits long enough and checks the number of calls so far.
func (s *watching) expect(step string, changes, errs int) {
	s.t.Helper()
	time.Sleep(10 * time.Second)
	synctest.Wait()
	s.mu.Lock()
	defer s.mu.Unlock()
	if len(s.changes) != changes || len(s.errs) != errs {
		s.t.Fatalf("%s: %d changes and %d errors, want %d and %d: %v", step, len(s.changes), len(s.errs), changes, errs, s.errs)
	}
}

func (s *watching) stop() {
	s.t.Helper()
	s.cancel()
	<-s.w.Done()
}

func level(s string) string { return "log: {level: " + s + "}\n" }

func TestWatch(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		dir := t.TempDir()
		path := filepath.Join(dir, "c.yaml")
		write(t, path, level("info"))
		s := watch(t, dir, path)
		defer s.stop()
		s.expect("nothing happened", 0, 0)

		write(t, path, level("warn"))
		s.expect("changed", 1, 0)
		if got := s.changes[0].Log.Level; got != "warn" {
			t.Errorf("level %q", got)
		}
		write(t, path, level("warn"))
		s.expect("written again", 1, 0)

		write(t, path, level("oops"))
		s.expect("bad", 1, 1)
		s.expect("still bad", 1, 1)
		write(t, path, level("ooops"))
		s.expect("bad in another way", 1, 2)
		write(t, path, level("warn"))
		s.expect("what is in force, which takes the error back", 2, 2)

		next := filepath.Join(dir, "next")
		write(t, next, level("debu")) // another file of the same size
		if err := os.Rename(next, path); err != nil {
			t.Fatal(err)
		}
		s.expect("renamed over, bad", 2, 3)
		write(t, next, level("info"))
		if err := os.Rename(next, path); err != nil {
			t.Fatal(err)
		}
		s.expect("renamed over, good", 3, 3)

		if err := os.Remove(path); err != nil {
			t.Fatal(err)
		}
		s.expect("gone", 3, 4)
		s.expect("still gone", 3, 4)
		s.w.Reload()
		s.expect("asked for while gone", 3, 5)
		write(t, path, level("error"))
		s.expect("back", 4, 5)
		s.w.Reload()
		s.expect("asked for", 5, 5)

		write(t, path, "\n")
		s.expect("emptied", 5, 6)
		if got := s.errs[5].Error(); !strings.Contains(got, "is empty now") {
			t.Error(got)
		}
		write(t, path, "{}")
		s.expect("the defaults on purpose", 6, 6)
	})
}

// Kubernetes mounts a ConfigMap as links: file -> ..data/file, ..data -> a
// folder with a time in its name, and swaps ..data.
func TestWatchSymbolicLinks(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		dir := t.TempDir()
		link := func(target, name string) {
			t.Helper()
			if err := os.Symlink(target, filepath.Join(dir, name)); err != nil {
				t.Fatal(err)
			}
		}
		for _, d := range []string{"v1", "v2"} {
			if err := os.Mkdir(filepath.Join(dir, d), 0o700); err != nil {
				t.Fatal(err)
			}
		}
		write(t, filepath.Join(dir, "v1", "c.yaml"), level("info"))
		write(t, filepath.Join(dir, "v2", "c.yaml"), level("warn"))
		link("v1", "..data")
		link("..data/c.yaml", "c.yaml")
		s := watch(t, dir, filepath.Join(dir, "c.yaml"))
		defer s.stop()
		s.expect("nothing happened", 0, 0)
		link("v2", "..tmp")
		if err := os.Rename(filepath.Join(dir, "..tmp"), filepath.Join(dir, "..data")); err != nil {
			t.Fatal(err)
		}
		if err := os.RemoveAll(filepath.Join(dir, "v1")); err != nil {
			t.Fatal(err)
		}
		s.expect("swapped", 1, 0)
	})
}

func TestWatchSecretFiles(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		dir := t.TempDir()
		path, secret := filepath.Join(dir, "c.yaml"), filepath.Join(dir, "key")
		write(t, secret, "one\n")
		write(t, path, "upstreams: {default: {keys: [{name: a, file: key}]}}")
		s := watch(t, dir, path)
		defer s.stop()
		s.expect("nothing happened", 0, 0)
		write(t, secret, "two\n")
		s.expect("rotated", 1, 0)
		if got := s.changes[0].Upstreams["default"].Keys[0].Value; got != "two" {
			t.Errorf("key %q", got)
		}
		if err := os.Remove(secret); err != nil {
			t.Fatal(err)
		}
		s.expect("gone", 1, 1)
		write(t, secret, "three\n")
		s.expect("back", 2, 1)
		write(t, secret, strings.Repeat("x", maxSecret+1))
		s.expect("too large", 2, 2)
		s.expect("still too large", 2, 2)
	})
}

// A change between Load and Watch is noticed.
func TestWatchStartsFromWhatWasLoaded(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		path := filepath.Join(t.TempDir(), "c.yaml")
		write(t, path, level("info"))
		c, err := Load(path, nil)
		if err != nil {
			t.Fatal(err)
		}
		write(t, path, level("warn"))
		ctx, cancel := context.WithCancel(t.Context())
		var got []string
		w := Watch(ctx, c, nil, time.Second, func(c *Config) { got = append(got, c.Log.Level) }, func(err error) { t.Error(err) })
		time.Sleep(5 * time.Second)
		cancel()
		<-w.Done()
		if len(got) != 1 || got[0] != "warn" {
			t.Errorf("%q", got)
		}
	})
}

// A file that is being written is read once it stops changing.
func TestWatchWaitsForTheEnd(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		dir := t.TempDir()
		path := filepath.Join(dir, "c.yaml")
		write(t, path, level("info"))
		s := watch(t, dir, path)
		defer s.stop()
		time.Sleep(900 * time.Millisecond)
		for _, half := range []string{"", "log", "log: {", "log: {level"} {
			write(t, path, half)
			time.Sleep(170 * time.Millisecond)
		}
		write(t, path, level("debug"))
		s.expect("written", 1, 0)
	})
}

func TestReloadWithoutFile(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c, err := Default(environment())
		if err != nil {
			t.Fatal(err)
		}
		ctx, cancel := context.WithCancel(t.Context())
		var n atomic.Int32
		w := Watch(ctx, c, environment(), time.Second, func(*Config) { n.Add(1) }, func(err error) { t.Error(err) })
		time.Sleep(time.Minute)
		if n.Load() != 0 {
			t.Error("changed by itself")
		}
		w.Reload()
		time.Sleep(time.Second)
		cancel()
		<-w.Done()
		if n.Load() != 1 {
			t.Errorf("%d reloads", n.Load())
		}
	})
}

// An old file with the same time, size and identity is not read again.
func TestUnchangedFilesAreNotRead(t *testing.T) {
	path := filepath.Join(t.TempDir(), "c.yaml")
	write(t, path, "aaaa")
	old := time.Now().Add(-time.Hour)
	touch := func() {
		if err := os.Chtimes(path, old, old); err != nil {
			t.Fatal(err)
		}
	}
	touch()
	w := &Watcher{stats: map[watched]reading{}}
	first := w.lookAt(source{path: path})
	write(t, path, "bbbb")
	touch()
	if w.lookAt(source{path: path}) != first {
		t.Error("read again")
	}
	write(t, path, "bbbb")
	if w.lookAt(source{path: path}) == first {
		t.Error("a new time was overlooked")
	}
}
