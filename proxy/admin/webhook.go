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

// Limits of a webhook.
const (
	hookQueue = 64
	hookTime  = 5 * time.Second // of one delivery
	hookTries = 3
	hookPause = time.Second // before the second try; doubled for each further one
)

// Hook is the address of a webhook, and the secret that signs it.
type Hook struct{ URL, Secret string }

// Webhook sends plans that wait for approval, and sessions that a budget has stopped (kind
// session_stopped), to another server: a POST with JSON, X-Rebound-Timestamp in Unix seconds, and
// X-Rebound-Signature, "sha256=" and the HMAC of the timestamp, a full stop and the body in
// hexadecimal. It never blocks: what cannot be sent is dropped and reported to lost. Safe for
// concurrent use.
type Webhook struct {
	hook   atomic.Pointer[Hook]
	lost   func(cause string)
	client *http.Client
	queue  chan any
	ctx    context.Context
	stop   context.CancelFunc
	work   sync.WaitGroup
}

// NewWebhook starts a webhook; without a URL it sends nothing. lost receives the cause of each message
// that could not be sent, and must not block. Close ends it.
func NewWebhook(hook Hook, lost func(cause string)) *Webhook {
	w := &Webhook{lost: lost, queue: make(chan any, hookQueue), client: &http.Client{
		Timeout: hookTime, Transport: &http.Transport{Proxy: http.ProxyFromEnvironment, MaxIdleConns: 1, IdleConnTimeout: hookTime},
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }, // a signed message must not go to another server
	}}
	w.ctx, w.stop = context.WithCancel(context.Background())
	w.Reconfigure(hook)
	w.work.Go(w.run)
	return w
}

// Reconfigure changes the address and secret for later messages.
func (w *Webhook) Reconfigure(hook Hook) { w.hook.Store(&hook) }

// Tell sends an approval in the background.
func (w *Webhook) Tell(a recovery.Approval) { w.send(a) }

// TellStopped sends a session that its budget has stopped, in the background.
func (w *Webhook) TellStopped(o recovery.OpenSession) {
	o.Accounts = nil
	w.send(struct {
		Kind string `json:"kind"`
		recovery.OpenSession
	}{"session_stopped", o})
}

// send queues a message.
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

// Close cancels the current delivery and drops the queue.
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

// deliver sends a message; cause says why that failed.
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
	_, _ = mac.Write([]byte(stamp + ".")) // writing to a hash never fails
	_, _ = mac.Write(body)
	req.Header.Set("Content-Type", "application/json")
	req.Header.Set("X-Rebound-Timestamp", stamp)
	req.Header.Set("X-Rebound-Signature", "sha256="+hex.EncodeToString(mac.Sum(nil)))
	resp, err := w.client.Do(req)
	if err != nil {
		return "the webhook was not reached"
	}
	_ = resp.Body.Close() // the body is not needed
	if resp.StatusCode >= 300 {
		return "the webhook was refused: " + strconv.Itoa(resp.StatusCode)
	}
	return ""
}
