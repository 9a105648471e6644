package inspect

import (
	"fmt"
	"strings"
	"testing"

	"github.com/rebound-llm/rebound/recovery"
	"github.com/rebound-llm/rebound/recovery/recoverytest"
	"github.com/rebound-llm/rebound/recovery/transcript"
)

func parsed(t testing.TB, raw []byte) *transcript.Body {
	t.Helper()
	return recoverytest.Parse(t, raw, transcript.Chat)
}

// script writes a history in short: each line is a message.
//
//	> text           a person
//	< text           the model, without a call
//	! tool args      a call of the model, in a turn of its own
//	& tool args      one more call in the same turn
//	= text           a result, for the calls in order; \n is a line break
func script(t testing.TB, text string) *transcript.Body {
	t.Helper()
	list := []string{said("system", "You are an agent."), said("user", "Do it.")}
	var calls []string
	id, open := 0, 0
	flush := func() {
		if calls != nil {
			list = append(list, `{"role":"assistant","content":"","tool_calls":[`+strings.Join(calls, ",")+`]}`)
			calls = nil
		}
	}
	for line := range strings.SplitSeq(strings.TrimSpace(text), "\n") {
		kind, rest, _ := strings.Cut(strings.TrimSpace(line), " ")
		rest = strings.ReplaceAll(rest, `\n`, "\n")
		switch kind {
		case ">", "<":
			flush()
			list = append(list, said(map[string]string{">": "user", "<": "assistant"}[kind], rest))
		case "!", "&":
			if kind == "!" {
				flush()
				open = id
			}
			tool, args, _ := strings.Cut(rest, " ")
			calls = append(calls, fmt.Sprintf(`{"id":"c%d","type":"function","function":{"name":%q,"arguments":%s}}`, id, tool, transcript.String(args)))
			id++
		case "=":
			flush()
			list = append(list, fmt.Sprintf(`{"role":"tool","tool_call_id":"c%d","content":%s}`, open, transcript.String(rest)))
			open++
		default:
			t.Fatalf("what is %q?", line)
		}
	}
	flush()
	return parsed(t, request(list...))
}

const (
	notFound = "\n! bash {\"command\":\"rg x\"}\n= bash: line 1: rg: command not found\\n\\nCommand exited with code 127"
	refused  = "\n! fetch {\"url\":\"http://h/x\"}\n= Error: connect ECONNREFUSED 203.0.113.7:443"
	listing  = "\n! ls {\"path\":\".\"}\n= go.mod\\nmain.go\\nREADME.md"
	polled   = "\n! check_run {\"id\":7}\n= {\"status\":\"pending\"}"
	booking  = "\n! book {\"amount\":5}\n= Error: payment does not add up"
	idea     = "\n! think {\"thought\":\"it must add up\"}\n="
)

func times(n int, s string) string { return strings.Repeat(s, n) }

func TestLoops(t *testing.T) {
	var fresh, half, writes, known, files string
	for i := range 13 {
		files += fmt.Sprintf("\n! read {\"path\":\"f%d\"}\n= package f%d is what this file has", i, i)
	}
	for i := range 14 {
		fresh += fmt.Sprintf("\n! grep {\"pattern\":\"p%d\"}\n= No matches found", i)
		writes += fmt.Sprintf("\n! write {\"path\":\"f%d\",\"content\":\"%d\"}\n= ok", i, i)
		known += fmt.Sprintf("\n! bash {\"command\":\"cat -n%d a\"}\n= package a is here for all to read", i)
	}
	half = fresh[:len(fresh)/2]
	half = half[:strings.LastIndex(half, "\n!")]
	run := func(failed int, time string) string {
		return fmt.Sprintf("\n! bash {\"command\":\"pytest\"}\n= FAILED test_a - assert 1 == 2\\n%d failed, 9 passed in %s\\n\\nCommand exited with code 1", failed, time)
	}
	for _, c := range []struct {
		name, text, want string
	}{
		{"one failure", notFound, ""},
		{"the line of the shell is another one", "! bash {\"command\":\"cd x\"}\n= /bin/bash: line 13: cd: x: No such file or directory\n! bash {\"command\":\"cd x\"}\n= /bin/bash: line 19: cd: x: No such file or directory", "same_error 2 [bash]"},
		{"a search in another order", "! web_search {\"query\":\"Ng rivers paper\"}\n= {\"results\":[]}\n! web_search {\"query\":\"Ng paper rivers\"}\n= {\"results\":[]}\n! web_search {\"query\":\"paper rivers Ng\"}\n= {\"results\":[]}\n! web_search {\"query\":\"rivers Ng paper pdf\"}\n= {\"results\":[]}", "rephrasing 4 [web_search]"},
		{"a search that the shell did not understand", strings.ReplaceAll("! bash {\"command\":\"grep -rwo foo /system | awk -F: '{print $1 A $2 A $3}'\"}\n=  $3}': -c: line 1: unexpected EOF while looking for matching `''\\n $3}': -c: line 2: syntax error: unexpected end of file\n"+
			"! bash {\"command\":\"grep -rwo foo /system | awk -F: '{print $1 $2 A $3}'\"}\n=  $3}': -c: line 1: unexpected EOF while looking for matching `''\\n $3}': -c: line 2: syntax error: unexpected end of file\n"+
			"! bash {\"command\":\"grep -rwo foo /system | awk -F: '{print $1 $2 $3 A}'\"}\n=  $3}': -c: line 1: unexpected EOF while looking for matching `''\\n $3}': -c: line 2: syntax error: unexpected end of file\n"+
			"! bash {\"command\":\"grep -rwo foo /system | awk -F: '{print A $1 $2 $3}'\"}\n=  $3}': -c: line 1: unexpected EOF while looking for matching `''\\n $3}': -c: line 2: syntax error: unexpected end of file", " A", " \\\":\\\""), ""},
		{"as often as a person asked", "< Which?\n> Run pytest 3 times." + times(3, run(1, "0.1s")), ""},
		{"more often than a person asked", "< Which?\n> Run pytest 2 times." + times(3, run(1, "0.1s")), "same_error 3 [bash]"},
		{"same error", times(2, notFound), "same_error 2 [bash]"},
		{"same error, firmer", times(3, notFound), "same_error 3 [bash]"},
		{"order of keys and blanks do not matter",
			"! bash {\"command\":\"ls\"}\n= go.mod\n! a {\"x\":1,\"y\":[true, {\"k\":\"v\"}]}\n= Error: bad thing\n! a { \"y\" : " +
				"[true,{\"k\":\"\\u0076\"}], \"x\":1.0 }\n= Error: bad thing", "same_error 2 [a]"},
		{"order in lists matters", "! a {\"x\":[1,2]}\n= Error: bad thing\n! a {\"x\":[2,1]}\n= Error: bad thing", ""},
		{"other arguments", "! a {\"x\":1}\n= Error: bad thing\n! a {\"x\":2}\n= Error: bad thing", ""},
		{"other tool", "! a {\"x\":1}\n= Error: bad thing\n! b {\"x\":1}\n= Error: bad thing", ""},
		{"times and ids do not matter", run(2, "1.25s") + run(2, "0.98s"), "same_error 2 [bash]"},
		{"fewer failing tests are progress", run(3, "1.25s") + run(2, "1.25s"), ""},
		{"something else failed between", notFound + booking + notFound, ""},
		{"retry after a network failure", times(2, refused), "same_error 2 [fetch]"},
		{"more retries after a network failure", times(3, refused), "same_error 3 [fetch]"},
		{"the retry helped", notFound + "\n! bash {\"command\":\"rg x\"}\n= a:1:x", ""},
		{"same result", times(2, listing), "same_result 2 [ls]"},
		{"empty result", times(2, "\n! bash {\"command\":\"find . -name x\"}\n= (no output)"), "same_result 2 [bash]"},
		{"took another time", "! bash {\"command\":\"go test\"}\n= ok pkg 0.012s\n! bash {\"command\":\"go test\"}\n= ok pkg 0.344s", "same_result 2 [bash]"},
		{"changed result", listing + "\n! ls {\"path\":\".\"}\n= go.mod\\nmain.go", ""},
		{"identical calls in one turn", "! ls {}\n& ls {}\n= a\\nb\n= a\\nb", ""},
		{"identical turns of identical calls", times(2, "\n! ls {}\n& ls {}\n= a\\nb\n= a\\nb"), "same_result 2 [ls]"},
		{"one of two calls again", "! ls {}\n& cat {\"p\":1}\n= a\\nb\n= text\n! ls {}\n= a\\nb", "same_result 2 [ls]"},
		{"one of two calls again, the other was an edit", "! ls {}\n& edit {\"p\":1}\n= a\\nb\n= ok\n! ls {}\n= a\\nb", ""},
		{"one more call", "! ls {}\n= a\\nb\n! ls {}\n& cat {\"p\":1}\n= a\\nb\n= text", ""},
		{"read again after an edit", listing + "\n! edit {\"p\":1}\n= ok" + listing, ""},
		{"a person spoke between", notFound + "\n> try again" + notFound, ""},
		{"a person spoke after", times(2, notFound) + "\n> leave it", ""},
		{"a client's reminder", times(3, notFound+"\n> [reminder] keep the list of tasks up to date"), "same_error 2 [bash]"},
		{"reminders of a client that differ", notFound + "\n> <system-reminder>3 tasks are open</system-reminder>" + notFound + "\n> <system-reminder>2 tasks are open</system-reminder>", "same_error 2 [bash]"},
		{"a person's words behind a reminder", notFound + "\n> <system-reminder>3 tasks are open</system-reminder> try again" + notFound, ""},
		{"the same question twice", "< hello\n> what is there?" + listing + "\n< three files\n> what is there?" + listing, ""},
		{"poll, twice", times(2, polled), ""},
		{"poll, without a pause", times(3, polled), ""},
		{"poll with a pause in it", times(5, "\n! bash {\"command\":\"sleep 30 && gh run view 7\"}\n= in_progress"), ""},
		{"poll with pauses between", times(5, polled+"\n! wait {\"seconds\":5}\n="), ""},
		{"poll with a pause beside", times(5, polled+"\n& wait {\"seconds\":5}\n="), ""},
		{"poll for a server that starts", times(4, "\n! bash {\"command\":\"sleep 2; curl -s localhost:80\"}\n= curl: (7) Failed to connect to localhost port 80\\n\\nCommand exited with code 7"), ""},
		{"waiting does not help", times(2, "\n! bash {\"command\":\"sleep 2; rg x\"}\n= bash: line 1: rg: command not found\\n\\nCommand exited with code 127"), "same_error 2 [bash]"},
		{"poll with a clock", "! stat {}\n= {\"status\":\"ok\",\"at\":\"2025-01-01T10:00:00Z\"}\n! stat {}\n= {\"status\":\"ok\",\"at\":\"2025-01-01T10:00:09Z\"}", ""},
		{"poll with a stop-watch", "! job {}\n= running for 1.5s\n! job {}\n= running for 2.5s\n! job {}\n= running for 3.5s", ""},
		{"gestures", times(4, "\n! browser_press_key {\"key\":\"Tab\"}\n= ok"), ""},
		{"gestures that fail", times(2, "\n! browser_press_key {\"key\":\"Tab\"}\n= Error: no page is open"), "same_error 2 [browser_press_key]"},
		{"gestures that show something", times(2, "\n! browser_press_key {\"key\":\"Tab\"}\n= a page with a title, a list and two buttons"), "same_result 2 [browser_press_key]"},
		{"a write that is told to go on", times(2, "\n! create_job {\"n\":7}\n= {\"status\":\"pending\"}"), "same_result 2 [create_job]"},
		{"alternation", run(1, "1s") + times(2, booking+idea), "alternation 2 [book think]"},
		{"a rule of a business", times(2, booking+idea), "alternation 2 [book think]"},
		{"alternation, third time", run(1, "1s") + times(3, booking+listing), "alternation 3 [book ls]"},
		{"half of a third time", run(1, "1s") + times(2, booking+listing) + booking, "alternation 2 [ls book]"},
		{"no alternation yet", booking + listing + booking, ""},
		{"alternation with another result", booking + listing + booking + "\n! ls {\"path\":\".\"}\n= go.mod", ""},
		{"alternation across a person's message", booking + listing + "\n> again" + booking + listing, ""},
		{"there and back", times(2, "\n! edit {\"old\":\"a\",\"new\":\"b\"}\n= ok\n! edit {\"old\":\"b\",\"new\":\"a\"}\n= ok"), "alternation 2 [edit]"},
		{"different edits, same test", "! edit {\"n\":1}\n= ok" + run(2, "1s") + "\n! edit {\"n\":2}\n= ok" + run(2, "1s") + "\n! edit {\"n\":3}\n= ok" + run(2, "1s"), ""},
		{"monologue", times(2, "\n< I will now read the code of the parser.\n> Please continue."), "monologue 2 []"},
		{"monologue, nearly the same", "< I will now read the code of the parser.\n> continue\n< Sure. I will now read the code of the parser!\n> continue", "monologue 2 []"},
		{"monologue, a client's message", times(3, "\n< I will now read the code.\n> No tool was used in the answer. Use a tool, or say that you are done."), "monologue 3 []"},
		{"other text", "< I will now read the code of the parser.\n> continue\n< The parser is fine; next is the writer.\n> continue", ""},
		{"the same answer to the same question", times(2, "\n< It listens on port 80.\n> Which port is it?"), ""},
		{"the same answer to other questions", "< Yes.\n> and does it continue after that one fails\n< Yes.\n> but the other part of the tools", ""},
		{"the same thanks", times(2, "\n< You are welcome!\n> thanks a lot"), ""},
		{"the same text with calls", "< Next.\n! ls {\"p\":1}\n= a\n< Next.\n! ls {\"p\":2}\n= b", ""},
		{"searches without a hit", half, ""},
		{"no progress", fresh, "no_progress 14 [grep]"},
		{"known results", "! read {\"p\":\"a\"}\n= package a is here for all to read" + known, "no_progress 14 [bash]"},
		{"no progress, in other words", fresh + "\n! grep {\"pattern\":\"q\"}\n= Nothing found in all of these files", "no_progress 15 [grep]"},
		{"all read again after an edit", files + "\n! edit {\"p\":1}\n= ok" + files, ""},
		{"all read again", files + files, "no_progress 13 [read]"},
		{"the same question again", half + "\n< It is not there.\n> Do it." + half, ""},
		{"writes", writes, ""},
		{"a write between", fresh + writes[:strings.Index(writes, "f1")-11] + half, ""},
		{"a person between", fresh + "\n> and now?" + half, ""},
		{"messages to go on between calls that bring something", "! ls {\"p\":1}\n= a\n> continue\n! ls {\"p\":2}\n= b\n> continue\n! ls {\"p\":3}\n= c\n> continue", ""},
		{"a note to change something, again and again", run(1, "1s") + times(3, "\n> [note] The same call failed. Diagnose first, then keep using tools."+listing+booking), "alternation 3 [ls book]"},
		{"such notes between new calls", "! ls {\"p\":1}\n= a\n> [note] diagnose\n! ls {\"p\":2}\n= b\n> [note] diagnose\n! ls {\"p\":3}\n= c", ""},
		{"no result yet", "! ls {}", ""},
		{"the model's own beginning last", times(2, notFound) + "\n< I", ""},
	} {
		loops := Loops(script(t, c.text))
		got := ""
		for _, l := range loops {
			got += fmt.Sprint(l.Kind, " ", l.Count, " ", l.Tools)
		}
		if got != c.want {
			t.Errorf("%s: %q, want %q", c.name, got, c.want)
		}
	}
}

func TestImagesTellResultsApart(t *testing.T) {
	shot := func(i int, data string) string {
		return fmt.Sprintf(`{"role":"tool","tool_call_id":"call_%d","content":[{"type":"text","text":"screen"},{"type":"image_url","image_url":{"url":"data:image/png;base64,%s"}}]}`, i, data)
	}
	for data, want := range map[string]int{"AAAA": 1, "BBBB": 0} {
		b := parsed(t, request(said("user", "x"), called(1, "snap", "{}"), shot(1, "AAAA"), called(2, "snap", "{}"), shot(2, data)))
		if got := Loops(b); len(got) != want {
			t.Errorf("%s: %+v", data, got)
		}
	}
}

func TestLoopIsDescribed(t *testing.T) {
	b := script(t, listing+times(2, notFound))
	l := Loops(b)[0]
	if l.From != 4 || l.To != 7 || l.Kind != recovery.LoopSameError {
		t.Errorf("%+v", l)
	}
	more := Loops(script(t, listing+times(4, notFound)))[0]
	if more.Fingerprint != l.Fingerprint || more.Count != 4 || more.From != 4 || more.To != 11 {
		t.Errorf("%+v after %+v", more, l)
	}
	if other := Loops(script(t, listing+"\n! bash {\"command\":\"make\"}\n= ok"+times(2, booking)))[0]; other.Fingerprint == l.Fingerprint {
		t.Error("another loop has the same fingerprint")
	}
}
