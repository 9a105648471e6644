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
	// maxWaiting is how many bytes may wait to be stored; what comes then is lost.
	maxWaiting = 32 << 20
	// storeTime bounds an operation of the store. Nobody waits for it.
	storeTime = 2 * time.Second
	// maxAttempts is how many attempts of a request are kept.
	maxAttempts = 32
	// perRecording is how many of the largest bodies one recording may hold.
	perRecording = 4
	prefix       = "recording/"
	// index is the logs of which recordings there are, of all replicas, and indexes how
	// many logs: together they hold more entries than replicas keep recordings.
	index   = "recordings/"
	indexes = 8
)

// Recorder keeps requests, encrypted. It lives as long as the process. All methods
// are safe for concurrent use.
type Recorder struct {
	values Values
	lost   func(why error) // of each recording that could not be kept
	now    atomic.Pointer[settings]

	mu      sync.Mutex // guards what follows
	closed  bool
	queue   chan job     // nil until something is recorded
	waiting atomic.Int64 // bytes
	done    chan struct{}

	kept  []kept // the worker's: the oldest first
	bytes int
}

// job is what the worker does next: a recording to store, or a deletion, which so comes
// after all recordings that waited.
type job struct {
	*Recording
	delete func()
}

// settings are a configuration in force.
type settings struct {
	Config
	aead cipher.AEAD // nil: nothing is recorded
}

// kept is a recording in the store.
type kept struct {
	id    string
	bytes int
	until time.Time
}

// New makes a recorder; cfg must be valid. lost is called for each recording that
// could not be kept, by any goroutine.
func New(cfg Config, v Values, lost func(why error)) *Recorder {
	r := &Recorder{values: v, lost: lost}
	r.Reconfigure(cfg)
	return r
}

// Reconfigure puts another configuration in force. Recordings of another key can no
// longer be read.
func (r *Recorder) Reconfigure(cfg Config) {
	s := &settings{Config: cfg}
	if cfg.Enabled() {
		aead, err := store.Cipher([]byte(cfg.Key), "rebound recording v1")
		if err != nil {
			panic(err) // the sizes are right
		}
		s.aead = aead
	}
	r.now.Store(s)
}

// Recording is one request, before and after. Until [Recorder.Keep] attempts may be
// added by several goroutines.
type Recording struct {
	Request string    `json:"request"`
	Session string    `json:"session,omitempty"`
	Model   string    `json:"model,omitempty"`
	Time    time.Time `json:"time"`
	Client  Body      `json:"client"`
	// Attempts are in the order of their numbers.
	Attempts []Attempt `json:"attempts"`

	mu   sync.Mutex
	size int
}

// Attempt is a request as it went upstream.
type Attempt struct {
	Number int    `json:"attempt"`
	Target string `json:"target"`
	Same   bool   `json:"same,omitempty"` // the client's own bytes
	Body
}

// Body is JSON, or, where it is larger than what is kept, its size.
type Body struct {
	Body     json.RawMessage `json:"body,omitempty"`
	TooLarge int             `json:"too_large,omitempty"` // bytes
}

// Attempt adds a request that goes upstream. body may be read until Keep has
// returned, and must not be changed; same says that it is the client's own.
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

// Keep stores a recording, later. It copies what it keeps of the bodies.
func (r *Recorder) Keep(c *Recording) {
	s := r.now.Load()
	if s.aead == nil {
		return
	}
	own := &Recording{Request: c.Request, Session: c.Session, Model: c.Model, Time: c.Time}
	c.mu.Lock()
	own.Client = own.keep(c.Client, s.Config.Body)
	for _, a := range c.Attempts { // one that still goes on may add nothing any more
		a.Body = own.keep(a.Body, s.Config.Body)
		own.Attempts = append(own.Attempts, a)
	}
	c.mu.Unlock()
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.closed {
		return
	}
	r.start()
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

// start starts the worker, once. The caller holds mu.
func (r *Recorder) start() {
	if r.queue == nil {
		r.queue, r.done = make(chan job, 1024), make(chan struct{})
		go r.run(r.queue)
	}
}

// keep is a copy of a body, within what one recording may hold.
func (c *Recording) keep(b Body, limit int) Body {
	n := len(b.Body)
	if n > limit || c.size+n > perRecording*limit {
		return Body{TooLarge: n}
	}
	c.size += n
	return Body{Body: bytes.Clone(b.Body)}
}

// run stores what comes, until the queue is closed and empty.
func (r *Recorder) run(queue chan job) {
	defer close(r.done)
	packer, err := coding.NewPacker()
	for c := range queue {
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

// store encrypts a recording and puts it into the store, and takes out what is too much.
func (r *Recorder) store(c *Recording, p *coding.Packer) error {
	s := r.now.Load()
	if s.aead == nil {
		return nil
	}
	var plain bytes.Buffer
	e := json.NewEncoder(&plain)
	e.SetEscapeHTML(false)
	if err := e.Encode(c); err != nil {
		return errors.New("a body is no JSON") // the error may quote it
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
		_ = r.values.Delete(ctx, prefix+c.Request) // nobody could delete it later
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
		_ = r.values.Delete(ctx, batch...) // else they go when their time is over
	}
	return nil
}

// The reasons why a request cannot be shown.
var (
	ErrOff     = errors.New("recording is off: recording.key_env turns it on")
	ErrUnknown = errors.New("nothing is recorded of this request, or not any more")
	ErrKey     = errors.New("this request was recorded with another key")

	errWaiting = errors.New("too many wait to be stored")
)

// Find returns the recording of a request, as JSON like [Recording]'s.
func (r *Recorder) Find(ctx context.Context, request string) (json.RawMessage, error) {
	s := r.now.Load()
	if s.aead == nil {
		return nil, ErrOff
	}
	if request == "" || len(prefix)+len(request) > store.MaxKey {
		return nil, ErrUnknown
	}
	values, err := r.values.Get(ctx, prefix+request)
	if err != nil {
		return nil, err
	}
	if len(values) == 0 || values[0] == nil {
		return nil, ErrUnknown
	}
	small, err := s.aead.Open(nil, nil, values[0], []byte(request))
	if err != nil {
		return nil, ErrKey
	}
	// What is sealed was made here: the bodies, and little else.
	return coding.Unpack(small, perRecording*maxBody+1<<20)
}

// Delete deletes the recording of a request. The error is ErrUnknown where there is
// none, or that of the store.
func (r *Recorder) Delete(ctx context.Context, request string) error {
	n, err := r.remove(ctx, func() ([]string, error) {
		if request == "" || len(prefix)+len(request) > store.MaxKey {
			return nil, nil
		}
		values, err := r.values.Get(ctx, prefix+request)
		if err != nil || len(values) == 0 || values[0] == nil {
			return nil, err
		}
		return []string{request}, nil
	})
	if err == nil && n == 0 {
		err = ErrUnknown
	}
	return err
}

// DeleteAll deletes all recordings of all replicas, or those of one session where one
// is given, and returns how many there were. What other replicas have not stored yet
// is not among them. The error is that of the store.
func (r *Recorder) DeleteAll(ctx context.Context, session string) (int, error) {
	return r.remove(ctx, func() (requests []string, err error) {
		for i := range indexes {
			entries, err := r.values.Tail(ctx, fmt.Sprint(index, i), store.MaxLog)
			if err != nil {
				return nil, err
			}
			for _, e := range entries {
				request, of, ok := strings.Cut(string(e), " ")
				if ok && request != "" && len(prefix)+len(request) <= store.MaxKey && (session == "" || of == session) {
					requests = append(requests, request)
				}
			}
		}
		return requests, nil
	})
}

// remove has the worker delete the recordings of the requests that find returns, after
// it has stored all that wait, and returns how many were there.
func (r *Recorder) remove(ctx context.Context, find func() ([]string, error)) (n int, err error) {
	done := make(chan struct{})
	r.mu.Lock()
	if r.closed {
		r.mu.Unlock()
		return 0, store.ErrClosed
	}
	r.start()
	select {
	case r.queue <- job{delete: func() {
		defer close(done)
		var requests []string
		if requests, err = find(); err == nil {
			n, err = r.drop(ctx, requests)
		}
	}}:
	default:
		err = errWaiting
	}
	r.mu.Unlock()
	if err != nil {
		return 0, err
	}
	select {
	case <-done:
		return n, err
	case <-ctx.Done():
		return 0, ctx.Err()
	}
}

// drop deletes recordings from the store and returns how many were there. Only the
// worker calls it.
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

// indexOf is the log that a recording is listed in.
func indexOf(request string) string {
	return fmt.Sprint(index, crc32.ChecksumIEEE([]byte(request))%indexes)
}

// Close stores what waits. If ctx ends first, the rest is lost.
func (r *Recorder) Close(ctx context.Context) {
	r.mu.Lock()
	running := r.queue != nil
	if running && !r.closed {
		close(r.queue)
	}
	r.closed = true
	r.mu.Unlock()
	if !running {
		return
	}
	select {
	case <-r.done:
	case <-ctx.Done():
	}
}
