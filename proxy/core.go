package proxy

import (
	"crypto/sha256"
	"encoding/hex"
	"hash/maphash"
	"maps"
	"net/http"
	"sync/atomic"
	"time"

	"github.com/rebound-llm/rebound/proxy/quota"
	"github.com/rebound-llm/rebound/proxy/recording"
	"github.com/rebound-llm/rebound/proxy/redact"
	"github.com/rebound-llm/rebound/proxy/stream"
	"github.com/rebound-llm/rebound/proxy/upstream"
	"github.com/rebound-llm/rebound/recovery"
	"github.com/rebound-llm/rebound/recovery/transcript"
	"github.com/rebound-llm/rebound/store"
)

// Core is everything that a reload replaces: built anew, then swapped in with
// one pointer. It is immutable but for what it remembers.
type Core struct {
	Config    Config
	Stream    stream.Config
	Budgets   Budgets // nil: nothing is counted for sessions
	Engine    *recovery.Engine
	Relay     *recovery.Engine // for requests that are tried again as they are, and nothing else
	Forward   *recovery.Engine // for forwarded requests that may be sent again
	Router    Router
	Reasons   func(t recovery.Target) bool // whether a target's model reasons before it answers; nil knows of none
	Upstreams map[string]*upstream.Upstream
	endings   stream.Endings
	// The upstreams of models that are not mapped, and of all other paths: for clients of
	// OpenAI's formats, and of the Messages API. Empty: there is none.
	Fallback, Messages string
	Identifier         Identifier
	Classifier         recovery.Classifier
	Observer           recovery.Observer
	// Accepted is told of exchanges whose credential an upstream accepted, and
	// when; may be nil.
	Accepted func(*recovery.Exchange, time.Time)
	Windows  Windows         // nil: lists of models teach nothing
	Mender   recovery.Mender // nil: answers are passed on as they are

	Tracer Tracer // nil: nobody follows requests

	Owners  Owners                                        // nil: keys that are restricted to models own nothing
	Vault   *store.Vault                                  // keeps what was shown of answers that no server has; nil: nothing is kept
	Keeping time.Duration                                 // for so long
	Measure func(body *transcript.Body, model string) int // about how many tokens a request has; nil: nobody knows

	Limiter *quota.Limiter // nil: neither keys nor all clients together are limited

	Recorder *recording.Recorder // nil: nothing is recorded

	labels  labels
	plain   *store.Cache[recovery.Target, struct{}] // targets that refused a schema for their answer
	keys    keyring
	hidden  atomic.Pointer[redact.Known] // what no client may read; renewed when a key is
	guarded bool                         // it adds a credential of its own and asks clients for none
}

// maxPlain bounds how many targets are known to refuse a schema for their answer.
const maxPlain = 256

// prepare makes what follows from the configuration.
func (k *Core) prepare() {
	k.plain = store.NewCache[recovery.Target, struct{}](maxPlain)
	k.keys = newKeyring(k.Config.Auth.Keys)
	for _, u := range k.Upstreams {
		k.guarded = k.guarded || u.Spends() && len(k.keys) == 0
		u.OnSecret(k.hide)
	}
	k.hide()
}

// hide renews what no client may read.
func (k *Core) hide() {
	known := []string{k.Config.Auth.AdminToken}
	for _, key := range k.Config.Auth.Keys {
		known = append(known, key.Value)
	}
	for _, u := range k.Upstreams {
		known = append(known, u.Secrets()...)
	}
	k.hidden.Store(redact.NewKnown(known, redact.Least))
}

// Router knows the model map.
type Router interface {
	// Candidates are those that speak the Messages API, or those that do not.
	Candidates(model string, messages bool, credential string, affinity uint64) []recovery.Choice
	Names() []string
	// Chooses reports whether a model has more than one target of these.
	Chooses(model string, messages bool) bool
}

// Identifier knows which conversation a request belongs to.
type Identifier interface {
	Identify(body *transcript.Body, credential, explicit string, hints []string) Identity
}

// Identity is a request's conversation.
type Identity interface {
	Session() string  // empty on the first request
	Hint() string     // the client's own name of the conversation, hashed with its credential; empty without one
	Pin() string      // session and turn; empty without a session
	Affinity() uint64 // shared by requests with the same beginning
	Side() bool       // a request of the client's own, for a title or a summary; never without a session
}

// Budgets count what sessions use. Safe for concurrent use; Spent never blocks.
type Budgets interface {
	Spent(x *recovery.Exchange, tokens int64, money float64)
}

// Tracer follows requests and their attempts, for what watches several services.
type Tracer interface {
	// Trace begins a request that is about to be asked upstream; its request_done
	// ends it. operation is what is done, header the client's.
	Trace(request, operation, model string, arrived time.Time, header http.Header) (end func())
	// TraceAttempt begins an attempt; the headers are for its upstream.
	TraceAttempt(request string, number int, target recovery.Target) http.Header
}

// traced is the client's header with that of an attempt's trace.
func (k *Core) traced(header http.Header, request string, number int, target recovery.Target) http.Header {
	if k.Tracer == nil {
		return header
	}
	more := k.Tracer.TraceAttempt(request, number, target)
	if more == nil {
		return header
	}
	own := maps.Clone(header)
	maps.Copy(own, more)
	return own
}

// InFlight counts requests under way. Safe for concurrent use.
type InFlight interface {
	Begin()
	End()
}

// sessionHints are the headers in which clients name their conversation.
var sessionHints = [...]string{"X-Claude-Code-Session-Id", "Session-Id", "Thread-Id", "X-Session-Id", "X-Session-Affinity"}

// credentialOf is the client's own credential as it came.
func credentialOf(h http.Header) string {
	for _, k := range [...]string{"Authorization", "Api-Key", "X-Api-Key"} {
		if v := first(h, k); v != "" {
			return v
		}
	}
	return ""
}

// first is a header's first value, by its canonical name: [http.Header.Get]
// makes that anew each time.
func first(h http.Header, canonical string) string {
	if v := h[canonical]; len(v) > 0 {
		return v[0]
	}
	return ""
}

// labels name credentials without revealing them: by a prefix of their hash. The
// names of those that come again and again are remembered, the credentials are
// not; that is bounded. Safe for concurrent use; the zero value is ready.
type labels struct{ known recovery.Memo[credentialMark] }

// credentialMark stands for a credential: two hashes with seeds that nobody
// outside knows.
type credentialMark [2]uint64

var markSeeds = [2]maphash.Seed{maphash.MakeSeed(), maphash.MakeSeed()}

func (l *labels) of(credential string) string {
	if credential == "" {
		return ""
	}
	mark := credentialMark{maphash.String(markSeeds[0], credential), maphash.String(markSeeds[1], credential)}
	return l.known.Of(mark, func(credentialMark) string { return label(credential) })
}

func label(credential string) string {
	const context, prefix = "rebound credential label\x00", "client-"
	var usual [256]byte // a longer one costs an allocation
	sum := sha256.Sum256(append(append(usual[:0], context...), credential...))
	var b [len(prefix) + 16]byte
	return string(hex.AppendEncode(append(b[:0], prefix...), sum[:8]))
}
