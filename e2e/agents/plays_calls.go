package agents

import (
	"fmt"
	"net/http"
	"strings"
	"time"
)

// misspells answers with a bad call until it is told, by whomever.
func misspells(good func(r *Request) Call, bad func(r *Request) Reply) Play {
	return bounded(func(r *Request) Reply {
		if last, ok := readsPlan(r); ok {
			return last
		}
		if m := r.find(rainCode); m != nil {
			return done("Reference %s", m[1])
		}
		if r.Turns() > 0 || r.Reasked() {
			return calls("", good(r))
		}
		return bad(r)
	})
}

// The good calls.
func plan(r *Request) Call    { return r.read(planFile) }
func catPlan(r *Request) Call { return r.run("cat " + planFile) }
func forecast(r *Request) Call {
	return Call{Name: "get_forecast", Arguments: `{"city":"Oslo","days":3}`}
}

// misnamed is a good call whose name is spelled in another way.
func misnamed(good func(r *Request) Call, spell func(name string) string) func(r *Request) Reply {
	return func(r *Request) Reply {
		c := good(r)
		c.Name = spell(c.Name)
		return calls("", c)
	}
}

func prefixed(name string) string { return "functions." + name }
func oracle(string) string        { return "summon_oracle" }

// inCapitals is Read_File for read_file.
func inCapitals(name string) string {
	words := strings.Split(name, "_")
	for i, w := range words {
		words[i] = strings.ToUpper(w[:1]) + w[1:]
	}
	return strings.Join(words, "_")
}

// with is a good call with other arguments.
func with(good func(r *Request) Call, arguments func(good string) string) func(r *Request) Reply {
	return func(r *Request) Reply {
		c := good(r)
		c.Arguments = arguments(c.Arguments)
		return calls("", c)
	}
}

func fenced(s string) string { return "```json\n" + s + "\n```" }
func twice(s string) string  { return string(marshal(s)) }

// stopsAtLength is a good call that the limit of the output cuts off.
func stopsAtLength(good func(r *Request) Call) func(r *Request) Reply {
	return func(r *Request) Reply {
		c := good(r)
		c.Arguments = cutOff(c.Arguments)
		return Reply{Calls: []Call{c}, Finish: "length"}
	}
}

// both reads the plan in two ways at once; the second call has a fence.
func both(r *Request) Reply {
	c := catPlan(r)
	c.Arguments = fenced(c.Arguments)
	return calls("", plan(r), c)
}

func cutOff(s string) string { return s[:len(s)-6] } // in the middle of the last string
func emptied(string) string  { return "{}" }

// after is a bad reply with a text before it.
func after(text string, reply func(r *Request) Reply) func(r *Request) Reply {
	return func(r *Request) Reply {
		out := reply(r)
		out.Text = text + out.Text
		return out
	}
}

// leaks writes the call into its text.
func leaks(r *Request) Reply {
	c := plan(r)
	return done("<tool_call>\n{\"name\": %q, \"arguments\": %s}\n</tool_call>", c.Name, c.Arguments)
}

// refusedCall is a provider that refuses what its own model wrote, as Groq does.
var refusedCall = bounded(func(r *Request) Reply {
	if last, ok := readsPlan(r); ok {
		return last
	}
	if r.Reasked() {
		return calls("", plan(r))
	}
	c := plan(r)
	return Reply{Status: http.StatusBadRequest, Error: string(marshal(object{"error": object{
		"message": "Failed to call a function. Please adjust your prompt. See 'failed_generation' for more details.",
		"type":    "invalid_request_error", "code": "tool_use_failed",
		"failed_generation": fmt.Sprintf("<function=%s>%s</function>", c.Name, c.Arguments),
	}}))}
})

// breaksOff is a model that reads the plan, but whose first answers, so many times, stop in the middle of the call. clean
// ends them without breaking the connection.
func breaksOff(text string, times int, clean bool) Play {
	return func(r *Request) Reply {
		if last, ok := readsPlan(r); ok {
			return last
		}
		reply := calls(text, plan(r))
		if r.N < times {
			reply.Cut, reply.Clean = 0.6, clean
			if text != "" {
				reply.Cut = 0.85 // text is the larger part
			}
		}
		return reply
	}
}

// breaksAtTheEnd breaks off once in its last words, when the model is asked for the second time.
func breaksAtTheEnd(r *Request) Reply {
	last, ok := readsPlan(r)
	if !ok {
		return calls("", plan(r))
	}
	last.Text = chatter + last.Text
	if r.N == 1 {
		last.Cut = 0.6
	}
	return last
}

// otherText breaks off in its first answer, and its next one has another text.
func otherText(r *Request) Reply {
	if last, ok := readsPlan(r); ok {
		return last
	}
	reply := calls(chatter, plan(r))
	if r.N == 0 {
		reply.Cut = 0.85
	} else {
		reply.Text = "To find the code, the plan has to be read, which I am doing now. It should not take long."
	}
	return reply
}

// thoughtPause is how long a model thinks between its text and its call.
const thoughtPause = 700 * time.Millisecond

// thinks says something, and calls after a while.
var thinks = bounded(func(r *Request) Reply {
	if last, ok := readsPlan(r); ok {
		return last
	}
	reply := calls(chatter, plan(r))
	reply.Pause = thoughtPause
	return reply
})

// stones are how many files the task on the rough road reads.
const stones = 9

func stoneName(i int) string { return fmt.Sprintf("road/stone-%d.txt", i) }

func stoneFiles() map[string]string {
	out := map[string]string{}
	for i := 1; i <= stones; i++ {
		out[stoneName(i)] = fmt.Sprintf("Stone %d of %d.\nmark: s%d\n", i, stones, i*i*31)
	}
	return out
}

// roughRoad reads one file after another; every other answer of the model, or of
// its provider, has a fault, and each time another one.
func roughRoad(r *Request) Reply {
	n := r.Turns() + 1
	if r.N > 6*stones {
		return done(gaveUp)
	}
	if n > stones {
		return done("The last mark is s%d.", stones*stones*31)
	}
	good := calls(fmt.Sprintf("Now stone %d of the road.", n), r.read(stoneName(n)))
	if r.N%2 == 1 || r.Reasked() {
		return good
	}
	c := &good.Calls[0]
	switch r.N / 2 % 9 {
	case 0:
		good.Cut = 0.7
	case 1:
		return Reply{Status: http.StatusServiceUnavailable, Error: "<html><body>503 Service Temporarily Unavailable</body></html>"}
	case 2:
		c.Name = prefixed(c.Name)
	case 3:
		c.Arguments = cutOff(c.Arguments)
	case 4:
		return Reply{}
	case 5:
		c.Arguments = fenced(c.Arguments)
	case 6:
		good.Cut, good.Clean = 0.7, true
	case 7:
		return Reply{Status: http.StatusTooManyRequests, Error: `{"error":{"message":"Rate limit reached for requests. ` +
			`Please try again in 200ms.","type":"requests","param":null,"code":"rate_limit_exceeded"}}`}
	case 8:
		c.Arguments = emptied("")
	}
	return good
}
