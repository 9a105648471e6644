package recording

import (
	"bytes"
	"context"
	"crypto/cipher"
	"encoding/json"
	"errors"
	"fmt"
	"hash/crc32"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/rebound-llm/rebound/proxy/coding"
	"github.com/rebound-llm/rebound/store"
)

// Values is the part of a store that recordings need.
type Values interface {
	Get(ctx context.Context, keys ...string) ([][]byte, error)
	Set(ctx context.Context, entries ...store.Entry) error
	Delete(ctx context.Context, keys ...string) error
	Append(ctx context.Context, log string, entry []byte, size int) error
	Tail(ctx context.Context, log string, n int) ([][]byte, error)
}

const (
	// maxWaiting limits the bytes that wait to be stored; further recordings are lost.
	maxWaiting = 32 << 20
	// storeTime limits an operation of the store. No request waits for it.
	storeTime = 2 * time.Second
	// maxAttempts limits the recorded attempts of a request.
	maxAttempts = 32
	// perRecording limits a recording, as a multiple of the largest body.
	perRecording = 4
	prefix       = "recording/"
	// index is the prefix of the logs that list all replicas' recordings, and indexes the number of
	// these logs: together they hold more entries than replicas keep recordings.
	index   = "recordings/"
	indexes = 8
)

// Recorder stores requests, encrypted. It lives as long as the process. All methods are safe for
// concurrent use.
type Recorder struct {
	values Values
	lost   func(why error) // called for each recording that could not be stored
	now    atomic.Pointer[settings]

	mu      sync.Mutex // guards closed, and the queue against a close during a send
	closed  bool
	queue   chan job
	waiting atomic.Int64 // bytes
	done    chan struct{}

	kept  []kept // used by the worker only; oldest first
	bytes int
}

// job is a task of the worker: a recording to store, or a deletion, which therefore runs after all
// earlier recordings.
type job struct {
	*Recording
	delete func()
}

// settings is the active configuration.
type settings struct {
	Config
	aead cipher.AEAD // nil: nothing is recorded
}

// kept is a stored recording.
type kept struct {
	id    string
	bytes int
	until time.Time
}

// New creates a recorder; cfg must be valid. lost is called, by any goroutine, for each recording that
// could not be stored. Close ends the recorder's goroutine.
func New(cfg Config, v Values, lost func(why error)) *Recorder {
	r := &Recorder{values: v, lost: lost, queue: make(chan job, 1024), done: make(chan struct{})}
	r.Reconfigure(cfg)
	go r.run()
	return r
}

// Reconfigure applies another configuration. Recordings with another key can no longer be read.
func (r *Recorder) Reconfigure(cfg Config) {
	s := &settings{Config: cfg}
	if cfg.Enabled() {
		aead, err := store.Cipher([]byte(cfg.Key), "rebound recording v1")
		if err != nil {
			panic(err) // the key size is always valid
		}
		s.aead = aead
	}
	r.now.Store(s)
}

// Recording is one request, before and after the gateway's changes. Several goroutines may add
// attempts until [Recorder.Keep].
type Recording struct {
	Request string    `json:"request"`
	Session string    `json:"session,omitempty"`
	Model   string    `json:"model,omitempty"`
	Time    time.Time `json:"time"`
	Client  Body      `json:"client"`
	// Attempts are in the order in which they were added.
	Attempts []Attempt `json:"attempts"`

	mu   sync.Mutex
	size int
}

// Attempt is a request as it went upstream.
type Attempt struct {
	Number int    `json:"attempt"`
	Target string `json:"target"`
	Same   bool   `json:"same,omitempty"` // the client's bytes, unchanged
	Body
}

// Body is the JSON of a body, or only its size if it is too large.
type Body struct {
	Body     json.RawMessage `json:"body,omitempty"`
	TooLarge int             `json:"too_large,omitempty"` // bytes
}

// Attempt adds a request that goes upstream. body may be read until Keep has returned, and must not
// change; same means that it is the client's own.
func (c *Recording) Attempt(number int, target string, body []byte, same bool) {
	a := Attempt{Number: number, Target: target, Same: same}
	if !same {
		a.Body.Body = body
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if len(c.Attempts) < maxAttempts {
		c.Attempts = append(c.Attempts, a)
	}
}

// Keep queues a recording. It copies the bodies.
func (r *Recorder) Keep(c *Recording) {
	s := r.now.Load()
	if s.aead == nil {
		return
	}
	own := &Recording{Request: c.Request, Session: c.Session, Model: c.Model, Time: c.Time}
	c.mu.Lock()
	own.Client = own.keep(c.Client, s.Config.Body)
	for _, a := range c.Attempts { // copied, because an unfinished attempt may still add to c
		a.Body = own.keep(a.Body, s.Config.Body)
		own.Attempts = append(own.Attempts, a)
	}
	c.mu.Unlock()
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.closed {
		return
	}
	if r.waiting.Add(int64(own.size)) <= maxWaiting {
		select {
		case r.queue <- job{Recording: own}:
			return
		default:
		}
	}
	r.waiting.Add(-int64(own.size))
	r.lost(errWaiting)
}

// keep returns a copy of a body, or only its size if it exceeds the limit of one body or of the
// recording.
func (c *Recording) keep(b Body, limit int) Body {
	n := len(b.Body)
	if n > limit || c.size+n > perRecording*limit {
		return Body{TooLarge: n}
	}
	c.size += n
	return Body{Body: bytes.Clone(b.Body)}
}

// run executes jobs until the queue is closed and empty.
func (r *Recorder) run() {
	defer close(r.done)
	packer, err := coding.NewPacker()
	for c := range r.queue {
		switch {
		case c.delete != nil:
			c.delete()
			continue
		case err != nil:
			r.lost(err)
		default:
			if lost := r.store(c.Recording, packer); lost != nil {
				r.lost(lost)
			}
		}
		r.waiting.Add(-int64(c.size))
	}
}

// store encrypts and stores a recording, and deletes the oldest ones beyond the limits.
func (r *Recorder) store(c *Recording, p *coding.Packer) error {
	s := r.now.Load()
	if s.aead == nil {
		return nil
	}
	var plain bytes.Buffer
	e := json.NewEncoder(&plain)
	e.SetEscapeHTML(false)
	if err := e.Encode(c); err != nil {
		return errors.New("a body is no JSON") // the encoder's error may quote it
	}
	sealed := s.aead.Seal(nil, nil, p.Pack(plain.Bytes()), []byte(c.Request))
	if len(sealed) > store.MaxValue {
		return fmt.Errorf("it takes %d bytes, and the store takes %d", len(sealed), store.MaxValue)
	}
	ctx, cancel := context.WithTimeout(context.Background(), storeTime)
	defer cancel()
	if err := r.values.Set(ctx, store.Entry{Key: prefix + c.Request, Value: sealed, TTL: s.TTL}); err != nil {
		return err
	}
	if err := r.values.Append(ctx, indexOf(c.Request), []byte(c.Request+" "+c.Session), store.MaxLog); err != nil {
		_ = r.values.Delete(ctx, prefix+c.Request) // without an index entry it could not be deleted later
		return err
	}
	now := time.Now()
	r.kept = append(r.kept, kept{c.Request, len(sealed), now.Add(s.TTL)})
	r.bytes += len(sealed)
	var over []string
	for len(r.kept) > s.Requests || r.bytes > s.Total || r.kept[0].until.Before(now) {
		over = append(over, prefix+r.kept[0].id)
		r.bytes -= r.kept[0].bytes
		r.kept = r.kept[1:]
	}
	for batch := range slices.Chunk(over, store.MaxKeys) {
		_ = r.values.Delete(ctx, batch...) // on an error they expire
	}
	return nil
}

// Errors of recordings that cannot be shown.
var (
	ErrOff     = errors.New("recording is off: recording.key_env or recording.key_file turns it on")
	ErrUnknown = errors.New("nothing is recorded of this request, or not any more")
	ErrKey     = errors.New("this request was recorded with another key")

	errWaiting = errors.New("too many recordings wait to be stored")
)

// Find returns the recording of a request, in the JSON form of [Recording].
func (r *Recorder) Find(ctx context.Context, request string) (json.RawMessage, error) {
	s := r.now.Load()
	if s.aead == nil {
		return nil, ErrOff
	}
	if !valid(request) {
		return nil, ErrUnknown
	}
	values, err := r.values.Get(ctx, prefix+request)
	if err != nil {
		return nil, err
	}
	if values[0] == nil {
		return nil, ErrUnknown
	}
	small, err := s.aead.Open(nil, nil, values[0], []byte(request))
	if err != nil {
		return nil, ErrKey
	}
	// The data was sealed here: bodies within the limit, and little else.
	return coding.Unpack(small, perRecording*maxBody+1<<20)
}

// valid reports whether a request with this id can be recorded.
func valid(request string) bool { return request != "" && len(prefix)+len(request) <= store.MaxKey }

// Delete deletes the recording of a request. The error is ErrUnknown if there is none, or that of the
// store.
func (r *Recorder) Delete(ctx context.Context, request string) error {
	if !valid(request) {
		return ErrUnknown
	}
	n, err := r.remove(ctx, func() ([]string, error) { return []string{request}, nil })
	if err == nil && n == 0 {
		err = ErrUnknown
	}
	return err
}

// DeleteAll deletes all recordings of all replicas, or those of one session if it is not empty, and
// returns their number. It does not include recordings that other replicas have not stored yet. The
// error is that of the store.
func (r *Recorder) DeleteAll(ctx context.Context, session string) (int, error) {
	return r.remove(ctx, func() (requests []string, err error) {
		for i := range indexes {
			entries, err := r.values.Tail(ctx, fmt.Sprint(index, i), store.MaxLog)
			if err != nil {
				return nil, err
			}
			for _, e := range entries {
				request, of, ok := strings.Cut(string(e), " ")
				if ok && valid(request) && (session == "" || of == session) {
					requests = append(requests, request)
				}
			}
		}
		return requests, nil
	})
}

// remove has the worker delete the recordings of the requests that find returns, after it has stored
// all waiting ones, and returns how many existed.
func (r *Recorder) remove(ctx context.Context, find func() ([]string, error)) (int, error) {
	type result struct {
		n   int
		err error
	}
	done := make(chan result, 1)
	work := job{delete: func() {
		requests, err := find()
		n := 0
		if err == nil {
			n, err = r.drop(ctx, requests)
		}
		done <- result{n, err}
	}}
	r.mu.Lock()
	if r.closed {
		r.mu.Unlock()
		return 0, store.ErrClosed
	}
	select {
	case r.queue <- work:
		r.mu.Unlock()
	default:
		r.mu.Unlock()
		return 0, errWaiting
	}
	select {
	case got := <-done:
		return got.n, got.err
	case <-ctx.Done():
		return 0, ctx.Err()
	}
}

// drop deletes recordings from the store and returns how many existed. Only the worker calls it.
func (r *Recorder) drop(ctx context.Context, requests []string) (n int, err error) {
	gone := map[string]bool{}
	for batch := range slices.Chunk(requests, store.MaxKeys) {
		keys := make([]string, len(batch))
		for i, request := range batch {
			keys[i], gone[request] = prefix+request, true
		}
		found, err := r.values.Get(ctx, keys...)
		if err == nil {
			err = r.values.Delete(ctx, keys...)
		}
		if err != nil {
			return n, err
		}
		for _, v := range found {
			if v != nil {
				n++
			}
		}
	}
	r.kept = slices.DeleteFunc(r.kept, func(k kept) bool {
		if gone[k.id] {
			r.bytes -= k.bytes
		}
		return gone[k.id]
	})
	return n, nil
}

// indexOf returns the log that lists a recording.
func indexOf(request string) string {
	return fmt.Sprint(index, crc32.ChecksumIEEE([]byte(request))%indexes)
}

// Close stores the waiting recordings. If ctx ends first, the rest is lost.
func (r *Recorder) Close(ctx context.Context) {
	r.mu.Lock()
	if !r.closed {
		r.closed = true
		close(r.queue)
	}
	r.mu.Unlock()
	select {
	case <-r.done:
	case <-ctx.Done():
	}
}
