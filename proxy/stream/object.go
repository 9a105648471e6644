package stream

import (
	"github.com/tidwall/gjson"

	"github.com/rebound-llm/rebound/recovery/transcript"
)

// Object is the format of answers of the Responses API that are JSON objects other than a response.
// They are passed on unchanged.
type Object struct{ Responses }

// DecodeWhole reads a complete answer.
func (Object) DecodeWhole(body []byte) (d Delta) {
	if transcript.Valid(body, maxDepth) != nil || !isObject(body) {
		return Delta{Kind: KindNoise}
	}
	if u := gjson.GetBytes(body, "usage"); u.IsObject() {
		d.whole([]byte(`{"usage":` + u.Raw + `}`))
	}
	d.Kind, d.Choices = KindCall, 1
	if v := gjson.GetBytes(body, "error"); !empty(v) || len(gjson.ParseBytes(body).Map()) == 0 {
		d.Kind = KindError
	}
	return d
}
