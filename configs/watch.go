package configs

import (
	"context"
	"io/fs"
	"os"
	"slices"
	"time"
)

// How the watcher waits.
const (
	minInterval = 100 * time.Millisecond
	settleTime  = 500 * time.Millisecond // a changed file must stay as it is for this long
	settleTries = 20                     // then it is read even if it keeps changing
	racy        = 2 * time.Second        // a file as young as this may change without a new time
)

// Watcher reloads a configuration when its file, or a file that it names,
// changes. It is safe for concurrent use.
type Watcher struct {
	env      Env
	path     string
	interval time.Duration
	onChange func(*Config)
	onError  func(error)

	reload chan struct{}
	done   chan struct{}

	empty   bool     // the file in force is
	applied []source // of the configuration in force
	seen    []source // of the last try, good or bad
	stats   map[watched]reading
}

// watched is one file; the same one may be read for two purposes.
type watched struct {
	path  string
	limit int64
}

// reading is a file as the last poll found it.
type reading struct {
	info fs.FileInfo
	at   time.Time
	src  source
}

// Watch looks after the files of a loaded configuration until the context
// ends. Every interval it compares them with what current was made of: by
// time, size and identity first, then by content, so that atomic renames and
// the symbolic links of Kubernetes are seen. What has changed is read once it
// has been still for a moment.
//
// A good configuration goes to onChange; the same content again does not. A bad
// one goes to onError, once for each distinct content, and the old one stays in
// force; a file that has become empty is bad too. Both are called from one goroutine, one after the other; they may
// block, and then no further change is noticed meanwhile. A configuration that
// was not loaded from a file changes only by [Watcher.Reload].
func Watch(ctx context.Context, current *Config, env Env, interval time.Duration, onChange func(*Config), onError func(error)) *Watcher {
	w := &Watcher{
		env: env, path: current.origin.path, interval: max(interval, minInterval),
		onChange: onChange, onError: onError,
		reload: make(chan struct{}, 1), done: make(chan struct{}),
		empty: current.origin.empty, applied: current.origin.files, seen: current.origin.files,
		stats: map[watched]reading{},
	}
	go w.run(ctx)
	return w
}

// Reload reads the files now, or as soon as they are still, and reports to onChange
// or onError even if nothing has changed, as an operator expects of SIGHUP. It does not
// wait; calls that come before the first is served are one.
func (w *Watcher) Reload() {
	select {
	case w.reload <- struct{}{}:
	default:
	}
}

// Done is closed when the watcher has ended: the context is over and no call is running.
func (w *Watcher) Done() <-chan struct{} { return w.done }

func (w *Watcher) run(ctx context.Context) {
	defer close(w.done)
	tick := time.NewTicker(w.interval)
	defer tick.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-w.reload:
			if w.quiet() || w.settle(ctx) {
				w.try(ctx, true)
			}
		case <-tick.C:
			if w.path != "" && w.changed(w.seen) && w.settle(ctx) {
				w.try(ctx, false)
			}
		}
	}
}

// try loads and reports. Forced, it reports also what is not new.
func (w *Watcher) try(ctx context.Context, forced bool) {
	l, err := load(w.path, w.env, false)
	c, files := l.config, l.files
	if ctx.Err() != nil {
		return
	}
	if err == nil && c.origin.empty && !w.empty {
		// A full disk or an interrupted editor; the defaults would lock everybody
		// out, or let everybody in.
		err = Errors{{File: w.path, Message: "is empty now: if the defaults are meant, write {} into it"}}
	}
	repeated := slices.Equal(files, w.seen)
	w.seen = files
	switch {
	case err != nil:
		if forced || !repeated {
			w.onError(err)
		}
	case forced || !slices.Equal(files, w.applied):
		w.applied, w.empty = files, c.origin.empty
		w.onChange(c)
	}
}

// settle waits until two looks at the files agree. False: the context ended.
func (w *Watcher) settle(ctx context.Context) bool {
	timer := time.NewTimer(settleTime)
	defer timer.Stop()
	for range settleTries {
		before := w.look(w.seen)
		select {
		case <-ctx.Done():
			return false
		case <-timer.C:
			timer.Reset(settleTime)
		}
		if slices.Equal(before, w.look(w.seen)) {
			break
		}
	}
	return true
}

// quiet reports whether no file was written in the last moment, by their times.
func (w *Watcher) quiet() bool {
	for _, f := range w.seen {
		info, err := os.Stat(f.path)
		if err == nil && time.Since(info.ModTime()) < settleTime {
			return false
		}
	}
	return true
}

func (w *Watcher) changed(files []source) bool {
	return !slices.Equal(files, w.look(files))
}

// look reads the same files again, as far as they may have changed.
func (w *Watcher) look(files []source) []source {
	out := make([]source, len(files))
	for i, f := range files {
		out[i] = w.lookAt(f)
	}
	return out
}

func (w *Watcher) lookAt(f source) source {
	info, err := os.Stat(f.path)
	last, known := w.stats[watched{f.path, f.limit}]
	if err == nil && known && last.info != nil && os.SameFile(info, last.info) && info.Size() == last.info.Size() &&
		info.ModTime().Equal(last.info.ModTime()) && last.at.Sub(info.ModTime()) > racy {
		return last.src
	}
	now := time.Now()
	var data []byte
	switch {
	case err == nil && f.limit == 0 && !info.Mode().IsRegular() && !info.IsDir():
		return f // a pipe can be read once only; it was
	case f.limit == 0:
		data, err = readBounded(f.path, maxBytes+1)
	default:
		data, err = readRegular(f.path, f.limit)
	}
	src := newSource(f.path, f.limit, data, err)
	w.stats[watched{f.path, f.limit}] = reading{info: info, at: now, src: src}
	return src
}
