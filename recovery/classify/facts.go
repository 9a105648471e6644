package classify

import (
	"reflect"
	"strings"

	"github.com/rebound-llm/rebound/recovery"
)

// stated is the set of facts that a text states. Zero is a value here: "can
// only afford 0" is a statement.
type stated struct {
	facts recovery.Facts
	zeros map[*int]bool // the numbers that are stated as zero
}

// set keeps the first statement of a number: texts repeat themselves, and what
// they say first is the sentence, what follows the advice.
func (s *stated) set(fact *int, n int) {
	switch {
	case fact == nil || n < 0 || *fact != 0 || s.zeros[fact]:
	case n > 0:
		*fact = n
	default:
		if s.zeros == nil {
			s.zeros = make(map[*int]bool)
		}
		s.zeros[fact] = true
	}
}

// named returns the facts by their JSON names.
func (s *stated) named() map[string]any {
	out := make(map[string]any)
	facts := reflect.ValueOf(&s.facts).Elem()
	for i := range facts.NumField() {
		field := facts.Field(i)
		name, _, _ := strings.Cut(facts.Type().Field(i).Tag.Get("json"), ",")
		if name == "-" {
			continue
		}
		if n, ok := field.Addr().Interface().(*int); !field.IsZero() || ok && s.zeros[n] {
			out[name] = field.Interface()
		}
	}
	return out
}

// gather reads the facts of a view whose class is known: the same number means
// different things in a refusal for size, for money and for rate.
func gather(v *view, class recovery.Class) *stated {
	s := &stated{}
	f := &s.facts
	numbers := scanNumbers(v.text)
	for i := range numbers {
		n := &numbers[i]
		switch {
		case n.unit == "bytes":
			s.set(n.sized(&f.LimitBytes, &f.RequestedBytes), n.value)
		case n.unit == "chars":
			s.set(n.sized(&f.LimitChars, &f.RequestedChars), n.value)
		case n.unit == "pixels":
			if !says(strings.ReplaceAll(n.before, "at least one", ""), "minimum", "at least", "below") && !says(n.after, "below", "total pixels") {
				s.set(&f.LimitPixels, n.value)
			}
		}
	}
	switch class {
	case recovery.ContextLengthExceeded:
		sizeFacts(v, numbers, s)
	case recovery.MaxOutputExceeded:
		outputFacts(numbers, s)
	case recovery.RateLimit:
		rateFacts(v, numbers, s)
	case recovery.QuotaExhausted:
		quotaFacts(v, numbers, s)
	case recovery.PayloadTooLarge:
		for _, n := range numbers {
			switch {
			case n.unit != "" || n.value < 1000:
			case strings.HasPrefix(n.after, " vs"):
				s.set(&f.RequestedBytes, n.value)
			case strings.HasSuffix(n.lead, "vs. "):
				s.set(&f.LimitBytes, n.value)
			case says(tail(n.before, 24), "actual", "got", "received", "was "):
				s.set(&f.RequestedBytes, n.value)
			case says(n.before, "less than or equal to", "maximum", "limit", "larger than max"):
				s.set(&f.LimitBytes, n.value)
			}
		}
	}
	if class == recovery.RateLimit || class == recovery.QuotaExhausted {
		s.facts.ResetAt = resetAt(v.text)
		s.facts.ResetEpochMS = v.hints.epoch
		if n := v.hints.limit; n > 0 && strings.Contains(v.text, "models-per") {
			s.set(&f.LimitRequests, n)
		}
	}
	if v.HasRetryAfter {
		s.facts.RetryAfterS = v.RetryAfter.Seconds()
	}
	parameters(v, class, &s.facts)
	return s
}

// sizeFacts reads an overflow of the window.
func sizeFacts(v *view, numbers []number, s *stated) {
	f := &s.facts
	// "max_tokens must be at least 1, got -7584": what was left is negative.
	if _, left, ok := strings.Cut(v.text, "must be at least 1, got -"); ok && strings.Contains(v.text, "max_") {
		if n, _, ok := readNumber(left); ok && n > 0 {
			s.set(&f.OverflowTokens, n)
			return
		}
	}
	if v.counts.window > 0 {
		s.set(&f.LimitTokens, v.counts.window)
	}
	if v.counts.prompt > 0 {
		s.set(&f.RequestedTokens, v.counts.prompt)
	}
	// "188240 + 21333 > 200000": input, output, window.
	for i := 0; i+2 < len(numbers); i++ {
		a, b, c := &numbers[i], &numbers[i+1], &numbers[i+2]
		if a.after == " + " && b.after == " > " && !strings.HasSuffix(a.before, "- ") {
			s.set(&f.InputTokens, a.value)
			s.set(&f.MaxOutputTokens, b.value)
			s.set(&f.LimitTokens, c.value)
			return
		}
	}
	parted := says(v.text, " of tool input", " in the functions")
	for i := range numbers {
		n := &numbers[i]
		if n.unit != "" || n.lowEnd() || says(tail(n.before, 9), "leaves ", "leaving ") {
			continue
		}
		switch {
		case says(tail(n.before, 24), " by ", "by at least ", "over by") && strings.HasPrefix(n.after, " token"):
			s.set(&f.OverflowTokens, n.value)
		case parted && n.ahead(ofPart):
		case n.ahead(ofInput):
			s.set(&f.InputTokens, n.value)
		case n.ahead(ofOutput):
			s.set(&f.MaxOutputTokens, n.value)
		case says(tail(n.before, 9), "needs ", "requires "):
			s.set(&f.RequestedTokens, n.value)
		case i+1 < len(numbers) && n.ahead(outdoes), n.after == "/":
			s.set(n.usedAs(f), n.value)
		case strings.HasSuffix(n.lead, "/"):
			s.set(&f.LimitTokens, n.value)
		case says(n.before, "used") && says(v.text, "limit"):
			s.set(&f.UsedTokens, n.value)
		case n.limits():
			s.set(&f.LimitTokens, n.value)
		case says(n.before, "max_tokens", "max_completion_tokens", "max_new_tokens", "max_output_tokens"):
			s.set(&f.MaxOutputTokens, n.value)
		case amount.MatchString(tail(n.before, 40)):
			s.set(n.usedAs(f), n.value)
		}
		if f.RequestedTokens == n.value && says(tail(n.before, 28), "input token count", "prompt token count") {
			s.set(&f.InputTokens, n.value) // what is held against the limit is the input alone
		}
	}
}

// What the words after a number of tokens make of it, and those before it.
var (
	ofInput = recovery.NewPattern(`^(?:(?:tokens )?(?:in|of|from)(?: the| your| text)? (?:prompt|messages|input)|(?:input|prompt|inputs) tokens?|` +
		`'inputs'|(?:prompt|input) \+)`)
	ofOutput = recovery.NewPattern(`^(?:(?:tokens )?(?:in|for|of)(?: the)? (?:completion|output)|(?:output|completion|new) tokens|` +
		`max_(?:new_|completion_)?tokens|max generation|completion\))`)
	ofPart    = recovery.NewPattern(`^(?:of (?:text|tool) input|in the (?:messages|functions))`)
	beyond    = recovery.NewPattern(`^(?:>|is (?:not less|too large|greater|larger|above)|(?:which )?exceeds|is |must)`)
	outdoes   = recovery.NewPattern(`^(?:(?:estimated )?tokens )?(?:exceed(?:s| the|ed (?:the|this|max(?:imum)?|model)) |is (?:greater|larger|longer) than |> )`)
	ofRequest = recovery.NewPattern(`^(?:(?:requests?|api calls|calls) ?(?:per|for|/|a )|api calls|rpm)`)
	ofRate    = recovery.NewPattern(`^(?:(?:(?:input|output|prompt|completion) )?tokens(?: per|/| a )|tpm)`)

	amount = recovery.NewPattern(`request|total|resulted in|will take|contains|got|given|received|provided|prefill|current length|token count|prompt (?:is )?too long|` +
		`you sent|n_prompt_tokens|n_keep|keep the first|required|ha[vs]e?|used|with |input|prompt|length|messages|your |sequence|tokens:|` +
		`conversation|共|当前|实际|输入|token数`)
	ownInput = recovery.NewPattern(`(?:input|prompt) (?:length(?: of)?|tokens)[ (:]*$`)
	whole    = recovery.NewPattern(`token count|and (?:maximum )?output|keep the first|n_keep|request|total|resulted in|will take|(?:is )?too long|` +
		`current length|n_prompt_tokens|messages|conversation`)
	ofPrompt = recovery.NewPattern(`prompt|input|given|输入`)
)

// usedAs tells a count of the prompt alone from a count of the whole request.
func (n *number) usedAs(f *recovery.Facts) *int {
	near := tail(n.before, 48)
	if ownInput.MatchString(near) || !whole.MatchString(near) && ofPrompt.MatchString(near) {
		return &f.InputTokens
	}
	return &f.RequestedTokens
}

// outputFacts reads a refusal of the requested output limit.
func outputFacts(numbers []number, s *stated) {
	f := &s.facts
	for i := range numbers {
		n := &numbers[i]
		if n.unit != "" {
			continue
		}
		near := tail(n.before, 56)
		switch {
		case strings.HasPrefix(n.after, " (inclusive)") && n.value <= 1:
		case strings.HasPrefix(n.after, " (exclusive)"):
			s.set(&f.MaxOutputLimit, n.value-1)
		case n.value <= 1, n.lowEnd():
		case n.inRange(), n.limits() && !n.follows(">", "exceeds"):
			s.set(&f.MaxOutputLimit, n.value)
			if i > 0 && strings.HasSuffix(numbers[i-1].before, "range of max_tokens should be [") {
				// The frame in which the same server states its window.
				s.set(&f.LimitTokens, n.value)
			}
		case says(near, "got", "provided", "you requested", "requested", "given", "received", "value of", "is too large", "too large:",
			"you passed", "was "):
			s.set(&f.RequestedOutput, n.value)
		case n.ahead(beyond):
			s.set(&f.RequestedOutput, n.value)
		case n.limits(), says(near, "<=", "less than", "equal to", "at most", "between", "[", "not exceed", "cannot exceed", "lower than", "up to",
			"than ", "supports", "range", "maximum", "max ", "> ", "limit", "不能大于", "超过", "应在", "最大"):
			s.set(&f.MaxOutputLimit, n.value)
		case says(near, "max_tokens", "max_completion_tokens", "max_output_tokens", "maxoutputtokens", "max_new_tokens"):
			s.set(&f.RequestedOutput, n.value)
		}
	}
}

// rateFacts reads the size of a rate window.
func rateFacts(v *view, numbers []number, s *stated) {
	f := &s.facts
	tokens := says(v.text, "token", "tpm", "tpd")
	requests := says(v.text, "requests per", "(rpm)", "(rpd)", "requests", "request rate")
	for i := range numbers {
		n := &numbers[i]
		if n.unit != "" || n.isWait() {
			continue
		}
		// The nearest subject before the number decides: one text may name
		// limits of requests and of tokens.
		said := strings.ReplaceAll(v.text[:n.at], "requested", "")
		ofTokens := lastOf(said, "token", "tpm", "tpd") > lastOf(said, "requests per", "_requests", "request rate", "rpm", "rpd", "requests")
		switch {
		case n.after == " / " && ofTokens:
			s.set(&f.UsedTokens, n.value)
		case strings.HasSuffix(n.lead, " / ") && ofTokens:
			s.set(&f.LimitTokens, n.value)
		case n.ahead(ofRequest):
			s.set(&f.LimitRequests, n.value)
		case n.ahead(ofRate):
			s.set(&f.LimitTokens, n.value)
		case strings.HasSuffix(n.before, ": ") && says(tail(n.before, 36), "rpm", "rpd", "requests per") && !says(tail(n.before, 12), "current", "used",
			"remaining"):
			s.set(&f.LimitRequests, n.value)
		case says(tail(n.before, 12), "limit", "limit:"):
			if ofTokens {
				s.set(&f.LimitTokens, n.value)
			} else if requests || tokens {
				s.set(&f.LimitRequests, n.value)
			}
		case says(tail(n.before, 12), "used", "current") && ofTokens:
			s.set(&f.UsedTokens, n.value)
		case says(tail(n.before, 14), "requested") && ofTokens:
			s.set(&f.RequestedTokens, n.value)
		}
	}
}

// quotaFacts reads what an account could still pay for.
func quotaFacts(v *view, numbers []number, s *stated) {
	f := &s.facts
	param, ofOutput := limitedOutput(v.text)
	for i := range numbers {
		n := &numbers[i]
		switch {
		case n.unit != "":
		case says(tail(n.before, 24), "can only afford", "afford"):
			if says(v.text, "max_tokens", "fewer max") {
				s.set(&f.AffordableOutput, n.value)
				if n.value > 0 {
					s.facts.Param = firstKnown(v.text, outputNames)
				}
			} else {
				s.set(&f.AffordableTokens, n.value)
			}
		case says(tail(n.before, 24), "requested up to"):
			s.set(&f.RequestedOutput, n.value)
		case ofOutput && strings.HasPrefix(n.after, " > "):
			s.set(&f.RequestedOutput, n.value)
		case ofOutput && strings.HasSuffix(n.before, " > "):
			s.set(&f.AffordableOutput, n.value)
			s.facts.Param = param
		case says(n.before, "prompt tokens limit exceeded") && strings.HasPrefix(n.after, " >"):
			s.set(&f.RequestedTokens, n.value)
		case says(n.before, "> ") && says(v.text, "prompt tokens limit exceeded"):
			s.set(&f.AffordableTokens, n.value)
		}
	}
}

// limitedOutput reports that the text is about an output limit that is more
// than an account may ask for, as in OpenRouter's "max_tokens limit exceeded:
// 100000 > 9577", and the parameter that it names.
func limitedOutput(text string) (param string, ok bool) {
	head, _, found := strings.Cut(text, " limit exceeded: ")
	if !found {
		return "", false
	}
	if name := lastName(head); isOutputName(name) {
		return name, true
	}
	return "", strings.HasSuffix(head, "completion tokens") || strings.HasSuffix(head, "output tokens")
}
