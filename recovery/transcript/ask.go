package transcript

import "strconv"

// Question is a request that the gateway itself sends to a model: one user's message,
// without streaming.
type Question struct {
	Model  string
	System string // instructions; empty for none
	User   string
	// Limit names the field that limits the output to MaxOutput tokens; "" or 0 for no limit.
	Limit     string
	MaxOutput int
	// Temperature is the sampling temperature; nil for the server's default.
	Temperature *float64
	// Effort is the reasoning effort; empty for the server's default.
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

// appendForm appends a schema's name and the schema, as Chat Completions and the Responses API spell them.
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
