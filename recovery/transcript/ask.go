package transcript

import "strconv"

// Question is a request of the gateway's own to a model: one message of the user,
// and no stream.
type Question struct {
	Model  string
	System string // instructions; empty for none
	User   string
	// Limit names the field that bounds the output to MaxOutput tokens; empty, or 0, for none.
	Limit     string
	MaxOutput int
	// Temperature is that of sampling; nil leaves it to the server.
	Temperature *float64
	// Effort is how much a model that reasons may think; empty leaves it to the server.
	Effort string
	// Schema is a JSON schema that the answer must follow, called Name; nil for plain text.
	Schema []byte
	Name   string
}

// Ask writes a question in the format.
func (f Format) Ask(q Question) []byte {
	out := append([]byte(`{"model":`), String(q.Model)...)
	if q.Limit != "" && q.MaxOutput > 0 {
		out = append(AppendString(append(out, ','), q.Limit), ':')
		out = appendInt(out, q.MaxOutput)
	}
	if q.Temperature != nil {
		out = strconv.AppendFloat(append(out, `,"temperature":`...), *q.Temperature, 'g', -1, 64)
	}
	return f.reader().ask(out, q)
}

// appendForm appends a schema's name and the schema, as both formats want them.
func appendForm(out []byte, q Question) []byte {
	out = append(append(out, `"name":`...), String(q.Name)...)
	return append(append(out, `,"schema":`...), q.Schema...)
}

func (chat) ask(out []byte, q Question) []byte {
	if q.Effort != "" {
		out = append(append(out, `,"reasoning_effort":`...), String(q.Effort)...)
	}
	if q.Schema != nil {
		out = append(appendForm(append(out, `,"response_format":{"type":"json_schema","json_schema":{`...), q), `}}`...)
	}
	out = append(out, `,"messages":[`...)
	if q.System != "" {
		out = append(append(append(out, `{"role":"system","content":`...), String(q.System)...), `},`...)
	}
	out = append(append(out, `{"role":"user","content":`...), String(q.User)...)
	return append(out, `}]}`...)
}
