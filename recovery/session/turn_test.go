package session

import (
	"strings"
	"testing"
)

func TestMaskDates(t *testing.T) {
	for in, want := range map[string]string{
		"":                                  "",
		"Today: 2026-11-24.":                "Today: #.",
		"2026/11/24 24.11.2026 11/24/2026":  "# # #",
		"at 11/24/26, 10:05:30 PM":          "at #, #",
		"2026-11-24T10:00:00Z!":             "#!",
		"2026-11-24T10:00:00.123+01:00 x":   "# x",
		"2026-11-24 10:00":                  "# #",
		"10:00+0200":                        "#",
		"It is Mon Nov 24 2026":             "It is #",
		"Tuesday, November 24, 2026.":       "#.",
		"Tue, 24 Nov 2026 10:00:00 GMT":     "# # GMT",
		"Tue Nov 24 10:00:00 UTC 2026":      "# # UTC 2026",
		"Monday 2026-11-23":                 "#",
		"November 2026 edition":             "# edition",
		"24th of November, 2026":            "#",
		"on 1st May we":                     "on # we",
		"Sept. 3rd":                         "#",
		"Nov 24":                            "#",
		"sep 5, sep 6":                      "#, #",
		"10:05pm 9:05 am":                   "# #",
		"version 1.2.3 and 1.20.11":         "version 1.2.3 and 1.20.11",
		"Customer 1234, 24 seats, 3.14":     "Customer 1234, 24 seats, 3.14",
		"127.0.0.1:8080 localhost:8080":     "127.0.0.1:8080 localhost:8080",
		"a1:23 x2026-11-24 call_10:00":      "a1:23 x2026-11-24 call_10:00",
		"2026-11-24-build 1:1 1:234":        "#-build 1:1 1:234",
		"2026-11-241 2026-111-24 2026-11/2": "2026-11-241 2026-111-24 2026-11/2",
		"Order 123456789 May":               "Order 123456789 May",
		"decimal 12, marching 5":            "decimal 12, marching 5",
		"May 5":                             "#",
		"1st":                               "1st",
		"2":                                 "2",
		"5 ":                                "5 ",
		"5th of":                            "5th of",
		"é24 Nov":                           "é24 Nov",
	} {
		if got := strings.ReplaceAll(string(maskDates([]byte(in))), "\x00", "#"); got != want {
			t.Errorf("%q: %q, want %q", in, got, want)
		}
	}
}

func FuzzMaskDates(f *testing.F) {
	f.Add("Tuesday, November 24th, 2026 at 10:00:00 PM 2026-11-24T10:00:00.5+01:00")
	f.Fuzz(func(t *testing.T, in string) {
		out := string(maskDates([]byte(in)))
		if len(out) > len(in) {
			t.Fatalf("%q grew to %q", in, out)
		}
		if !strings.ContainsAny(in, "0123456789") && out != in {
			t.Fatalf("%q without a number became %q", in, out)
		}
	})
}

func TestSide(t *testing.T) {
	with := func(s string) string {
		return strings.Replace(s, `"model"`, `"tools":[{"type":"function","function":{"name":"bash"}}],"model"`, 1)
	}
	says := func(role, text string) string { return `{"role":"` + role + `","content":"` + text + `"}` }
	for name, c := range map[string]struct {
		raw  string
		want Side
	}{
		"agent":                    {with(request(system, user, call, result)), SideNone},
		"chat":                     {request(system, user), SideNone},
		"chat later":               {request(system, user, says("assistant", "x"), user), SideNone},
		"a person wants a title":   {request(system, says("user", "Please generate a title for my essay about summaries.")), SideNone},
		"opencode title":           {request(says("system", `You are a title generator. You output ONLY a thread title.`), says("user", "Generate a title for this conversation:\\n"), user), SideTitle},
		"title asked by the user":  {request(says("user", "Generate a title for this conversation:\\nhello")), SideTitle},
		"open-webui title":         {request(says("user", "### Task:\\nGenerate a concise, 3-5 word title")), SideTitle},
		"opencode compaction":      {request(says("system", "You are a helpful AI assistant tasked with summarizing conversations."), user, call, result, says("user", "Provide a detailed prompt for continuing our conversation above.")), SideSummary},
		"qwen compaction":          {request(says("system", "You are the component that summarizes internal chat history into a given structure."), user, says("assistant", "x"), user), SideSummary},
		"summary with tools":       {with(request(system, user, call, result, says("user", "Your task is to create a detailed summary of the conversation so far"))), SideSummary},
		"claude compaction":        {with(request(system, user, call, result, says("user", "CRITICAL: Respond with TEXT ONLY. Do NOT call any tools.\\n\\nYour task is"), says("system", "The task tools"))), SideSummary},
		"claude suggestion":        {with(request(system, user, says("assistant", "x"), says("user", "[SUGGESTION MODE: Suggest what the user might naturally type next into Claude Code.]"))), SideSummary},
		"claude title":             {request(says("system", "You are coming up with a succinct title and git branch name"), user), SideTitle},
		"tools withheld":           {request(system, user, call, result), SideOther},
		"probe":                    {strings.Replace(request(says("user", "hi")), `"model"`, `"max_tokens":1,"model"`, 1), SideProbe},
		"short answer in a dialog": {strings.Replace(request(user, says("assistant", "x"), user), `"model"`, `"max_tokens":1,"model"`, 1), SideNone},
		"nothing":                  {`{}`, SideNone},
	} {
		if got := SideOf(parse(t, c.raw)); got != c.want {
			t.Errorf("%s: %q, want %q", name, got, c.want)
		}
	}
}

func TestUserTurnOf(t *testing.T) {
	turn := func(raw string) UserTurn { return UserTurnOf(Input{Body: parse(t, raw), Credential: []byte("k")}) }
	one := turn(request(system, user))
	if one.Messages != 1 || one.Last == 0 || one != turn(request(system, user)) {
		t.Errorf("%+v", one)
	}
	step := turn(request(system, user, call, result))
	if step.Messages != one.Messages || step.Last != one.Last {
		t.Errorf("a step of the same turn: %+v", step)
	}
	again := turn(request(system, user, call, result, user))
	if again.Messages != 2 || again.Last != one.Last {
		t.Errorf("the same words again: %+v", again)
	}
	next := turn(request(system, user, call, result, `{"role":"user","content":"Thanks, now lint."}`))
	if next.Last == one.Last || next.Messages != 2 {
		t.Errorf("the next turn: %+v", next)
	}
	if none := turn(request(system)); none.Last != 0 || none.Messages != 0 {
		t.Errorf("%+v", none)
	}
	if other := UserTurnOf(Input{Body: parse(t, request(system, user)), Credential: []byte("l")}); other.Last == one.Last {
		t.Error("hashes are not keyed")
	}
}
