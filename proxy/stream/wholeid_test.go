package stream

import (
	"strings"
	"testing"
)

// TestIDOfDeliveredWhole: the id of a message stays when its buffer has gone to another answer.
func TestIDOfDeliveredWhole(t *testing.T) {
	x := newExchange()
	x.format = Messages{}
	w, broken := ReadWhole(respond(strings.NewReader(`{"id":"msg_1","type":"message","content":[{"type":"text","text":"Hi"}],"stop_reason":"end_turn"}`)), x.options())
	if broken != nil {
		t.Fatalf("%+v", broken)
	}
	buffer := w.buf.Bytes()
	if b := w.Deliver(t.Context()); b != nil {
		t.Fatalf("%+v", b)
	}
	copy(buffer, strings.Repeat("x", len(buffer)))
	if got := w.AnswerID(); got != "msg_1" {
		t.Errorf("the id is %q", got)
	}
}
