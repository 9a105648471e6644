package fit

import (
	"fmt"
	"hash/fnv"
	"time"

	"github.com/rebound-llm/rebound/recovery"
	"github.com/rebound-llm/rebound/recovery/transcript"
	"github.com/rebound-llm/rebound/store"
)

// draft is what the fitter does to one exchange, from Prepare to Settle. The
// goroutine that owns the exchange owns it.
type draft struct {
	fitter  *Fitter
	x       *recovery.Exchange
	session *session      // as it was remembered, nil if nothing was
	asked   bool          // the store was asked for it
	used    time.Duration // that the request has waited for the store
	history *history
	keys    keys
	work    *work            // the edits so far
	body    *transcript.Body // the history with those edits, nil for the client's own
	out     *transcript.Body // what goes upstream: body, with the answer's limit as it was lowered
	sticky  bool             // there are no edits but those that were remembered
	sure    bool             // the refusal stated the size of the prompt
	names   []string         // of the tiers
	fits    int              // how often Fit was asked
	spent   int              // tokens spent on summaries
	cost    recovery.Usage   // of summaries, as reported and not yet told
	window  int              // that was fitted to
	learned int              // the window that a refusal told, and of which target
	target  recovery.Target
	guessed int // the prompt that fits, where it did not say how large the window is
	scale   ratio
	next    *session        // the session with the edits made now, nil without any
	later   bool            // these are kept once the upstream has answered
	saved   <-chan struct{} // closed once they are in the store, nil where nothing is to be waited for
}

// sent is the history as it goes upstream, in place of the client's.
func (d *draft) sent(b *transcript.Body) *transcript.Body {
	if d.body != nil {
		return d.body
	}
	return b
}

// limit makes what goes upstream of the history, with a limit of the answer of at
// most so many tokens; false where it had that already.
func (d *draft) limit(b *transcript.Body, tokens int) bool {
	d.out = d.sent(b)
	field, now, ok := d.out.OutputLimit()
	if !ok || now <= tokens {
		return false
	}
	lowered, err := d.out.Edit().SetInt(field, tokens).Body()
	if err != nil {
		return false
	}
	d.out = lowered
	return true
}

// fitted describes what goes upstream.
func (d *draft) fitted(x *recovery.Exchange, scale ratio) *recovery.Fitted {
	cost := d.cost
	d.cost = recovery.Usage{} // told once
	return &recovery.Fitted{Body: d.out, Sticky: d.sticky, Compression: recovery.Compression{
		Before: scale.of(d.work.counts.Total), After: scale.of(d.work.total),
		Tiers: d.names, Steps: d.work.steps(), BytesBefore: len(x.Body.Raw()), BytesAfter: len(d.out.Raw()),
		Extra: cost,
	}}
}

// ratio converts between what is counted and what upstreams count.
type ratio struct{ tokens, raw0 int }

func (r ratio) of(raw int) int {
	if r.raw0 <= 0 || r.tokens <= 0 {
		return raw
	}
	return int(float64(raw) * float64(r.tokens) / float64(r.raw0))
}

func (r ratio) raw(tokens int) int {
	if r.raw0 <= 0 || r.tokens <= 0 {
		return tokens
	}
	return int(float64(tokens) * float64(r.raw0) / float64(r.tokens))
}

func (r ratio) permille() uint32 { return uint32(min(max(r.of(1_000_000)/1000, 100), 10_000)) }

// tokensFor is how a body's count converts, by the best that is known.
func (f *Fitter) tokensFor(model string, s *session, b *transcript.Body) ratio {
	raw := f.parts.Meter.Measure(b, model).Total
	if s == nil {
		s = &session{}
	}
	tokens, basis := f.parts.Meter.Estimate(b, model, s.Anchor)
	if basis < BasisSession && s.Scale > 0 {
		return ratio{int(s.Scale), 1000}
	}
	return ratio{tokens, raw}
}

// maxWindows bounds how many targets' windows are remembered.
const maxWindows = 512

// windows are the context windows that refusals stated. They expire, for
// providers enlarge them. Safe for concurrent use.
type windows struct {
	ttl    time.Duration
	limits *store.Cache[recovery.Target, limit]
}

// limit is a context window that a refusal stated, 0 where it did not.
type limit struct {
	tokens  int
	since   time.Time
	until   time.Time
	request string // id of the request that told it
}

func newWindows(ttl time.Duration) *windows {
	return &windows{ttl, store.NewCache[recovery.Target, limit](maxWindows)}
}

// keyless is the target without its key: all keys see the same model.
func keyless(t recovery.Target) recovery.Target {
	t.Key = ""
	return t
}

// Window implements Windows.
func (w *windows) Window(t recovery.Target) int {
	if l, _ := w.limits.Get(keyless(t)); time.Now().Before(l.until) {
		return l.tokens
	}
	return 0
}

// Overflowed implements Windows.
func (w *windows) Overflowed(t recovery.Target) bool {
	l, _ := w.limits.Get(keyless(t))
	return time.Now().Before(l.until)
}

// LearnWindow implements Windows.
func (w *windows) LearnWindow(t recovery.Target, tokens int, request string) {
	now := time.Now()
	l, known := w.limits.Get(keyless(t))
	if !known || tokens != 0 && tokens != l.tokens {
		l = limit{tokens: tokens, since: now, request: request}
	}
	l.until = now.Add(w.ttl)
	w.limits.Put(keyless(t), l, 1)
}

// itemSize names how many bytes a target takes.
const itemSize = "size of a request"

// Marks lists the targets that refused a request for its bytes, in this process.
func (f *Fitter) Marks() (marks []recovery.Mark) {
	f.bytes.limits.Each(func(t recovery.Target, l limit) bool {
		if time.Now().Before(l.until) {
			marks = append(marks, recovery.Mark{Target: t.String(), Kind: recovery.MarkWindow, Item: itemSize, Detail: fmt.Sprintf("takes %d bytes at most", l.tokens),
				Evidence: "a refusal for its size", Request: l.request, Since: l.since, Until: l.until})
		}
		return true
	})
	return marks
}

// Clear forgets how many bytes a target takes, as a Mark names both, if item is that or empty.
func (f *Fitter) Clear(name, item string) {
	if item != "" && item != itemSize {
		return
	}
	var gone []recovery.Target // all keys of one target are one
	f.bytes.limits.Each(func(t recovery.Target, _ limit) bool {
		if t.String() == name {
			gone = append(gone, t)
		}
		return true
	})
	for _, t := range gone {
		f.bytes.limits.Delete(t)
	}
}

// targetHash names a target in what is stored.
func targetHash(t recovery.Target) uint64 {
	h := fnv.New64a()
	h.Write([]byte(t.Upstream + "\x00" + t.Model))
	return h.Sum64()
}
