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
	racy        = 2 * time.Second        // a file this young may change without a new modification time
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

	empty bool     // the applied configuration's file has no content
	seen  []source // the files of the last attempt, successful or not
	stats map[watched]reading
}

// watched is one file with its limit; a file may be watched with several limits.
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

// Watch watches the files of a loaded configuration until the context ends. Every
// interval it compares them with those that current was read from: by time, size and
// identity first, then by content, so that it notices atomic renames and the symbolic
// links of Kubernetes. It reads changed files once they have stopped changing.
//
// A valid configuration goes to onChange, unless its content is the same as before. An
// invalid one goes to onError, once for each distinct content, and the old one stays; a
// file that has become empty is invalid too. The old content after an invalid one goes
// to onChange, which takes back the error. One goroutine calls both functions; while
// they block, further changes are not noticed. A configuration that was not loaded from
// a file changes only by [Watcher.Reload].
func Watch(ctx context.Context, current *Config, env Env, interval time.Duration, onChange func(*Config), onError func(error)) *Watcher {
	w := &Watcher{
		env: env, path: current.origin.path, interval: max(interval, minInterval),
		onChange: onChange, onError: onError,
		reload: make(chan struct{}, 1), done: make(chan struct{}),
		empty: current.origin.empty, seen: current.origin.files,
		stats: map[watched]reading{},
	}
	go w.run(ctx)
	return w
}

// Reload reads the files now, or as soon as they have stopped changing, and calls
// onChange or onError even if nothing has changed, as operators expect of SIGHUP. It
// does not wait; calls before the first one is handled count as one.
func (w *Watcher) Reload() {
	select {
	case w.reload <- struct{}{}:
	default:
	}
}

// Done is closed when the context has ended and no callback is running.
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

// try loads the configuration and calls onChange or onError. With forced set it does so
// even if the content is not new.
func (w *Watcher) try(ctx context.Context, forced bool) {
	l, err := load(w.path, w.env, false)
	c, files := l.config, l.files
	if ctx.Err() != nil {
		return
	}
	if err == nil && c.origin.empty && !w.empty {
		// The cause may be a full disk or an interrupted editor. The defaults would
		// lock everybody out, or let everybody in.
		err = Errors{{File: w.path, Message: "is empty now: if the defaults are meant, write {} into it"}}
	}
	if !forced && slices.Equal(files, w.seen) {
		return
	}
	if w.seen = files; err != nil {
		w.onError(err)
		return
	}
	w.empty = c.origin.empty
	w.onChange(c)
}

// settle waits until two readings of the files agree. It returns false if the context ended.
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

// quiet reports whether no file was modified within settleTime.
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

// look reads the files again if they may have changed.
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
		return f // a pipe cannot be read again
	case f.limit == 0:
		data, err = readBounded(f.path, maxBytes+1)
	default:
		data, err = readRegular(f.path, f.limit)
	}
	src := newSource(f.path, f.limit, data, err)
	w.stats[watched{f.path, f.limit}] = reading{info: info, at: now, src: src}
	return src
}
