package mock

import (
	"bytes"
	"strconv"
	"time"
)

// order is what one request asks for.
type order struct {
	model   []byte // part of the request's body
	stream  bool
	usage   bool // stream_options.include_usage
	stamped bool // chunks carry the time they were sent
	latency time.Duration
	delay   time.Duration // before each chunk
	chunks  int
	content int // bytes of content in a JSON answer
}

// tail is how much of a body's end is searched first: the SDKs put the model
// behind the messages, which are nearly all of a large body.
const tail = 4 << 10

// parseOrder reads a request's body. It looks the members up by their quoted
// names alone: inside a JSON string the quotes would be escaped, so text cannot
// pass for a member.
func parseOrder(body []byte) order {
	o := order{chunks: 20, content: 600}
	members := body[max(0, len(body)-tail):]
	if o.model = stringMember(members, `"model":"`); o.model == nil {
		members = body
		o.model = stringMember(members, `"model":"`)
	}
	o.stream = bytes.Contains(members, []byte(`"stream":true`))
	o.usage = o.stream && bytes.Contains(members, []byte(`"include_usage":true`))
	for part := range bytes.SplitSeq(o.model, []byte("-")) {
		o.apply(string(part))
	}
	return o
}

func stringMember(b []byte, name string) []byte {
	_, value, found := bytes.Cut(b, []byte(name))
	if !found {
		return nil
	}
	value, _, found = bytes.Cut(value, []byte(`"`))
	if !found {
		return nil
	}
	return value
}

// apply takes one part of the model's name; unknown parts are ignored.
func (o *order) apply(part string) {
	if part == "ts" {
		o.stamped = true
		return
	}
	digits := len(part)
	for digits > 0 && part[digits-1] >= '0' && part[digits-1] <= '9' {
		digits--
	}
	n, err := strconv.Atoi(part[digits:])
	if err != nil {
		return
	}
	switch part[:digits] {
	case "lat":
		o.latency = time.Duration(n) * time.Millisecond
	case "d":
		o.delay = time.Duration(n) * time.Millisecond
	case "n":
		o.chunks = n
	case "b":
		o.content = min(n, len(prose))
	}
}
