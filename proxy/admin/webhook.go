package admin

import (
	"bytes"
	"context"
	"crypto/hmac"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"net/http"
	"strconv"
	"sync"
	"sync/atomic"
	"time"

	"github.com/rebound-llm/rebound/recovery"
)

// Bounds of a webhook.
const (
	hookQueue = 64
	hookTime  = 5 * time.Second // of one delivery
	hookTries = 3
	hookPause = time.Second // before the second try; it doubles
)

// Hook is where a webhook is sent, and the secret that signs it.
type Hook struct{ URL, Secret string }

// Webhook tells another server of plans that wait for approval, and of sessions that a budget
// has ended (kind session_stopped): a POST with that as JSON, X-Rebound-Timestamp in Unix seconds, and X-Rebound-Signature,
// "sha256=" and the HMAC of the timestamp, a full stop and the body in hexadecimal.
// It never blocks: what cannot be sent is lost, and told. Safe for concurrent use.
type Webhook struct {
	hook   atomic.Pointer[Hook]
	lost   func(cause string)
	client *http.Client
	queue  chan any
	ctx    context.Context
	stop   context.CancelFunc
	work   sync.WaitGroup
}

// NewWebhook starts a webhook; one without a URL sends nothing. lost is told of what
// could not be sent, and must not block. Close ends it.
func NewWebhook(hook Hook, lost func(cause string)) *Webhook {
	w := &Webhook{lost: lost, queue: make(chan any, hookQueue), client: &http.Client{
		Timeout: hookTime, Transport: &http.Transport{Proxy: http.ProxyFromEnvironment, MaxIdleConns: 1, IdleConnTimeout: hookTime},
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }, // what is signed for one server goes to no other
	}}
	w.ctx, w.stop = context.WithCancel(context.Background())
	w.Reconfigure(hook)
	w.work.Go(w.run)
	return w
}

// Reconfigure sends to another place from now on.
func (w *Webhook) Reconfigure(hook Hook) { w.hook.Store(&hook) }

// Tell sends an approval, behind.
func (w *Webhook) Tell(a recovery.Approval) { w.send(a) }

// TellStopped sends a session that its budget has ended, behind.
func (w *Webhook) TellStopped(o recovery.OpenSession) {
	o.Accounts = nil
	w.send(struct {
		Kind string `json:"kind"`
		recovery.OpenSession
	}{"session_stopped", o})
}

// send sends a message, behind.
func (w *Webhook) send(a any) {
	if w.hook.Load().URL == "" {
		return
	}
	select {
	case w.queue <- a:
	default:
		w.lost("too many webhooks wait")
	}
}

// Close ends what is under way; what waits is lost.
func (w *Webhook) Close() {
	w.stop()
	w.work.Wait()
	w.client.CloseIdleConnections()
}

func (w *Webhook) run() {
	for {
		select {
		case <-w.ctx.Done():
			return
		case a := <-w.queue:
			if cause := w.deliver(a); cause != "" {
				w.lost(cause)
			}
		}
	}
}

// deliver sends an approval; cause says why it could not be.
func (w *Webhook) deliver(a any) (cause string) {
	body, err := json.Marshal(a)
	if err != nil {
		return "the message cannot be written"
	}
	wait := hookPause
	for try := 1; ; try++ {
		if cause = w.post(body); cause == "" || try == hookTries {
			return cause
		}
		timer := time.NewTimer(wait)
		select {
		case <-timer.C:
		case <-w.ctx.Done():
			timer.Stop()
			return cause
		}
		wait *= 2
	}
}

func (w *Webhook) post(body []byte) (cause string) {
	hook := w.hook.Load()
	req, err := http.NewRequestWithContext(w.ctx, http.MethodPost, hook.URL, bytes.NewReader(body))
	if err != nil {
		return "the webhook's address cannot be used"
	}
	stamp := strconv.FormatInt(time.Now().Unix(), 10)
	mac := hmac.New(sha256.New, []byte(hook.Secret))
	_, _ = mac.Write([]byte(stamp + ".")) // a hash takes everything
	_, _ = mac.Write(body)
	req.Header.Set("Content-Type", "application/json")
	req.Header.Set("X-Rebound-Timestamp", stamp)
	req.Header.Set("X-Rebound-Signature", "sha256="+hex.EncodeToString(mac.Sum(nil)))
	resp, err := w.client.Do(req)
	if err != nil {
		return "the webhook was not reached"
	}
	_ = resp.Body.Close() // nobody reads it
	if resp.StatusCode >= 300 {
		return "the webhook was refused: " + strconv.Itoa(resp.StatusCode)
	}
	return ""
}
