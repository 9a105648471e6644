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

// Core is everything that a reload replaces: a reload builds a new Core and swaps one pointer. It is
// immutable apart from its caches.
type Core struct {
	Config    Config
	Stream    stream.Config
	Budgets   Budgets // nil: sessions have no budget
	Engine    *recovery.Engine
	Relay     *recovery.Engine // for requests that are retried only unchanged at their first target
	Forward   *recovery.Engine // for forwarded requests that are safe to repeat
	Router    Router
	Switches  recovery.Stage               // applies an operator's switches to forwarded requests; nil: there are none
	Reasons   func(t recovery.Target) bool // reports whether a target's model reasons before it answers; nil means false for all
	Upstreams map[string]*upstream.Upstream
	endings   stream.Endings
	// Defaults names each API's upstream for models that are not mapped and for all other paths. Empty means none.
	Defaults   [transcript.APICount]string
	Identifier Identifier
	Classifier recovery.Classifier
	Observer   recovery.Observer
	// Accepted is called after an exchange whose credential an upstream accepted, with the time; may
	// be nil.
	Accepted func(*recovery.Exchange, time.Time)
	Windows  Windows         // nil: windows in lists of models are ignored
	Mender   recovery.Mender // nil: answers are not repaired

	Tracer Tracer // nil: no tracing

	Owners  Owners                                        // nil: keys that are restricted to models own nothing
	Vault   *store.Vault                                  // keeps parts of answers that the client has and no server stores; nil: nothing is kept
	Keeping time.Duration                                 // how long the vault keeps an entry
	Measure func(body *transcript.Body, model string) int // estimates the tokens of a request; nil: no estimates

	Limiter *quota.Limiter // nil: neither keys nor all clients together are limited

	Recorder *recording.Recorder // nil: nothing is recorded

	labels  labels
	plain   *store.Cache[recovery.Target, struct{}] // targets that refused a response schema
	keys    keyring
	hidden  atomic.Pointer[redact.Known] // secrets that no client may read; renewed when a key changes
	guarded bool                         // some upstream gets a credential of the gateway's own, and clients need no gateway key
}

// maxPlain limits how many targets are remembered that refused a response schema.
const maxPlain = 256

// prepare computes the fields that follow from the configuration.
func (k *Core) prepare() {
	k.plain = store.NewCache[recovery.Target, struct{}](maxPlain)
	k.keys = newKeyring(k.Config.Auth.Keys)
	for _, u := range k.Upstreams {
		k.guarded = k.guarded || u.Spends() && len(k.keys) == 0
		u.OnSecret(k.hide)
	}
	k.hide()
}

// hide renews the set of secrets that no client may read.
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

// Router resolves models to targets.
type Router interface {
	// Candidates returns the targets of an API.
	Candidates(model string, api transcript.API, credential string, affinity uint64) []recovery.Choice
	Names() []string
	// Chooses reports whether a model has more than one such target.
	Chooses(model string, api transcript.API) bool
}

// Identifier finds the conversation that a request belongs to.
type Identifier interface {
	Identify(body *transcript.Body, credential, explicit string, hints []string) Identity
}

// Identity is the conversation of a request.
type Identity interface {
	Session() string  // empty on the first request
	Hint() string     // the client's own id of the conversation, hashed with its credential; empty without one
	Pin() string      // session and turn; empty without a session
	Affinity() uint64 // shared by requests with the same beginning
	Side() bool       // a helper request of the client, for a title or a summary; always false without a session
}

// Budgets counts the usage of sessions. Safe for concurrent use; Spent never blocks.
type Budgets interface {
	Spent(x *recovery.Exchange, tokens int64, money float64)
}

// Tracer makes spans of requests and their attempts for distributed tracing.
type Tracer interface {
	// Trace begins the span of a request; the returned function ends it. operation is the span's
	// operation name, header the client's headers.
	Trace(request, operation, model string, arrived time.Time, header http.Header) (end func())
	// TraceAttempt begins the span of an attempt and returns headers to send to its upstream.
	TraceAttempt(request string, number int, target recovery.Target) http.Header
}

// traced returns the client's headers with the trace headers of an attempt.
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

// InFlight counts active requests. Safe for concurrent use.
type InFlight interface {
	Begin()
	End()
}

// sessionHints are the headers in which clients name their conversation.
var sessionHints = [...]string{"X-Claude-Code-Session-Id", "Session-Id", "Thread-Id", "X-Session-Id", "X-Session-Affinity"}

// credentialOf returns the client's own credential unchanged, or "" without one.
func credentialOf(h http.Header) string {
	for _, k := range [...]string{"Authorization", "Api-Key", "X-Api-Key"} {
		if v := first(h, k); v != "" {
			return v
		}
	}
	return ""
}

// first returns the first value of a header by its canonical name. [http.Header.Get] computes that
// name on each call.
func first(h http.Header, canonical string) string {
	if v := h[canonical]; len(v) > 0 {
		return v[0]
	}
	return ""
}

// labels computes labels of credentials, which do not reveal them: a prefix of their hash. It caches
// labels, but no credentials; the cache is bounded. Safe for concurrent use; the zero value is ready.
type labels struct{ known recovery.Memo[credentialMark] }

// credentialMark identifies a credential in the cache: two hashes with random seeds of this process.
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
	var usual [256]byte // large enough for most credentials; a longer one costs an allocation
	sum := sha256.Sum256(append(append(usual[:0], context...), credential...))
	var b [len(prefix) + 16]byte
	return string(hex.AppendEncode(append(b[:0], prefix...), sum[:8]))
}
