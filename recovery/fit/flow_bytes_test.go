package fit

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/rebound-llm/rebound/recovery"
)

func tooLarge(facts recovery.Facts) *recovery.Failure {
	return &recovery.Failure{Diagnosis: recovery.Diagnosis{Spec: &recovery.Spec{Class: recovery.PayloadTooLarge}, Facts: facts}, Response: recovery.Response{Status: 413}}
}

// imageMessage returns a user message with an image of bytes.
func imageMessage(n, bytes int) string {
	return fmt.Sprintf(`{"role":"user","content":[{"type":"text","text":"Look at picture %d."},{"type":"image_url","image_url":{"url":"data:ima`+
		`ge/png;base64,%s"}}]}`, n, strings.Repeat("iVBORw0K", bytes/8))
}

// A 413 removes attachments of finished turns, the oldest first, and only as many as
// needed. The next request of the session is reduced the same way before it is sent.
func TestPayloadOfAttachments(t *testing.T) {
	for _, facts := range []recovery.Facts{{}, {LimitBytes: 1 << 20}, {RequestedBytes: 1 << 20}} {
		s := &script{}
		s.say("system", "You look at pictures.")
		for n := range 8 {
			s.raw(imageMessage(n, 150_000)).say("assistant", fmt.Sprintf("Picture %d shows a cat.", n))
		}
		s.raw(imageMessage(99, 150_000))
		b := s.body(t)
		f := newTestFitter(t, Defaults(), nil)
		x := exchange(b, "s", nil)
		out := f.Fit(context.Background(), x, &x.Candidates[0], tooLarge(facts))
		if out == nil {
			t.Fatalf("%+v: not fitted", facts)
		}
		text := string(out.Body.Raw())
		if n := strings.Count(text, "base64,"); n < 3 || n > 6 || len(text) > 1<<20 {
			t.Errorf("%+v: %d pictures and %d of %d bytes are left", facts, n, len(text), len(b.Raw()))
		}
		first, last := strings.Index(text, "base64,"), strings.LastIndex(text, "removed: "+mediaGone)
		if last > first || last < 0 || !strings.HasSuffix(text, string(b.Raw()[len(b.Raw())-1000:])) {
			t.Error("not the oldest pictures are gone")
		}
		for n := range 8 {
			if !strings.Contains(text, fmt.Sprintf("Look at picture %d.", n)) {
				t.Errorf("what the person wrote with picture %d is gone", n)
			}
		}
		x.Fitted = out
		f.Commit(context.Background(), x)
		s.say("assistant", "A dog.").say("user", "And now?")
		y := exchange(s.body(t), "s", nil)
		if !f.MayNeedFitting(y) {
			t.Fatal("the next request is not looked at")
		}
		next := f.Prepared(context.Background(), y)
		if next == nil || !strings.HasPrefix(string(messagesOf(next.Body)), string(messagesOf(out.Body))) {
			t.Error("the next request is another")
		}
		// Another session of the target is fitted before it is refused.
		z := exchange(b, "other", nil)
		if !f.MayNeedFitting(z) || f.Prepared(context.Background(), z) == nil {
			t.Error("the limit is not remembered")
		}
		z = exchange(b, "other", nil)
		if z.Candidates[0].Target.Upstream = "elsewhere"; f.exceedsByteLimit(z) {
			t.Error("another target is taken for this one")
		}
	}
}

// Without attachments the history is shortened as for a window, by bytes.
func TestPayloadOfText(t *testing.T) {
	s := newScript()
	for i := range 40 {
		s.call("bash", fmt.Sprintf(`{"command":"make part%d"}`, i), shellOutput(50_000))
	}
	b := s.body(t)
	f := newTestFitter(t, Defaults(), nil)
	x := exchange(b, "s", nil)
	out := f.Fit(context.Background(), x, &x.Candidates[0], tooLarge(recovery.Facts{LimitBytes: 1_000_000}))
	if out == nil {
		t.Fatal("not fitted")
	}
	if n := len(out.Body.Raw()); n > 610_000 || n < 400_000 {
		t.Errorf("%d bytes are left, %v", n, out.Tiers)
	}
}

// A limit on a single text shortens only the texts that exceed it.
func TestPayloadOfOneText(t *testing.T) {
	if testing.Short() {
		t.Skip("texts of megabytes")
	}
	for _, who := range []string{"tool", "user"} {
		s := newScript()
		s.call("bash", `{"command":"ls"}`, shellOutput(100_000))
		if who == "tool" {
			s.call("bash", `{"command":"make"}`, shellOutput(1_200_000))
		} else {
			s.say("user", "Why does it fail?\n"+shellOutput(1_200_000))
		}
		b := s.body(t)
		f := newTestFitter(t, Defaults(), nil)
		x := exchange(b, "s", nil)
		const limit = 1_048_576
		out := f.Fit(context.Background(), x, &x.Candidates[0], tooLarge(recovery.Facts{LimitChars: limit, RequestedChars: 1_200_000, Param: "messages[4].content"}))
		if out == nil || out.Steps != 1 {
			t.Fatalf("%s: %+v", who, out)
		}
		list := out.Body.Messages()
		if n := len(list[len(list)-1].Text()); n > limit || n < limit/2 {
			t.Errorf("%s: %d characters are left", who, n)
		}
		if string(list[3].Raw()) != string(b.Messages()[3].Raw()) {
			t.Errorf("%s: another message has changed", who)
		}
	}
	f := newTestFitter(t, Defaults(), nil)
	x := exchange(newScript().say("assistant", "a").say("user", "b").body(t), "s", nil)
	if out := f.Fit(context.Background(), x, &x.Candidates[0], tooLarge(recovery.Facts{LimitChars: 5000})); out != nil {
		t.Errorf("a request without a long text became %s", out.Body.Raw())
	}
}

// A learned limit of bytes is listed with the request that showed it, and can be cleared.
func TestBytesAreShown(t *testing.T) {
	s := &script{}
	for n := range 8 {
		s.raw(imageMessage(n, 150_000)).say("assistant", "A cat.")
	}
	s.raw(imageMessage(99, 150_000))
	f := newTestFitter(t, Defaults(), nil)
	x := exchange(s.body(t), "s", nil)
	x.ID = "r1"
	if f.Fit(context.Background(), x, &x.Candidates[0], tooLarge(recovery.Facts{LimitBytes: 1 << 20})) == nil {
		t.Fatal("not fitted")
	}
	marks := f.Marks()
	if len(marks) != 1 || marks[0].Target != x.Candidates[0].Target.Keyless().String() || marks[0].Kind != recovery.MarkWindow || marks[0].Detail != "takes 1048576 bytes at most" ||
		marks[0].Request != "r1" || time.Since(marks[0].Since) > time.Hour || time.Until(marks[0].Until) <= 0 {
		t.Fatalf("%+v", marks)
	}
	f.Clear(marks[0].Target, "window")
	f.Clear("elsewhere/m", "")
	if len(f.Marks()) != 1 {
		t.Error("another reset has cleared it")
	}
	f.Clear(marks[0].Target, marks[0].Item)
	if len(f.Marks()) != 0 || f.exceedsByteLimit(exchange(s.body(t), "s2", nil)) {
		t.Error("it is known after the reset")
	}
}

// A request that is far larger than what a target took before, and cannot be made small enough, does not raise the limit.
func TestByteLimitIsNotRaised(t *testing.T) {
	f := newTestFitter(t, Defaults(), nil)
	refuse := func(s *script) *recovery.Fitted {
		x := exchange(s.body(t), "", nil)
		return f.Fit(context.Background(), x, &x.Candidates[0], tooLarge(recovery.Facts{}))
	}
	s := &script{}
	s.say("system", "You look at pictures.").raw(imageMessage(1, 150_000)).say("assistant", "A cat.").say("user", "And now?")
	if refuse(s) == nil {
		t.Fatal("not fitted")
	}
	target := recovery.Target{Upstream: "u", Model: "gpt-4o"}
	known := f.byteLimits.of(target)
	s.say("assistant", "A dog.").raw(imageMessage(2, 3_000_000)) // stays, since the model has not seen it
	if out := refuse(s); out != nil {
		t.Errorf("a request of %d bytes is sent again, at a target that takes fewer than %d", len(out.Body.Raw()), known)
	}
	if now := f.byteLimits.of(target); now != known {
		t.Errorf("the limit was %d bytes and is %d", known, now)
	}
}
