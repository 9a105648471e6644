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
	out := AppendField([]byte{'{'}, modelField, q.Model)
	if q.Limit != "" && q.MaxOutput > 0 {
		out = AppendField(out, q.Limit, q.MaxOutput)
	}
	if q.Temperature != nil {
		out = AppendField(out, "temperature", strconv.AppendFloat(nil, *q.Temperature, 'g', -1, 64))
	}
	return append(f.reader().ask(out, q), '}')
}

func (chat) ask(out []byte, q Question) []byte {
	if q.Effort != "" {
		out = AppendField(out, "reasoning_effort", q.Effort)
	}
	if q.Schema != nil {
		out = AppendField(out, "response_format", Object("type", "json_schema", "json_schema", Object("name", q.Name, "schema", q.Schema)))
	}
	var list [][]byte
	if q.System != "" {
		list = append(list, Object("role", RoleSystem, "content", q.System))
	}
	return AppendField(out, "messages", List(append(list, Object("role", RoleUser, "content", q.User))))
}
