package classify

import (
	"reflect"
	"slices"
	"strings"

	"github.com/rebound-llm/rebound/recovery"
)

// stated holds the facts that a text states. A stated zero, as in "can only
// afford 0", differs from a missing value.
type stated struct {
	facts recovery.Facts
	zeros map[*int]bool // fields of facts that the text states as zero
}

// set keeps the first value of a fact: later numbers in a text repeat it or
// belong to advice. It ignores a nil fact and a negative n.
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

// eachFact calls do with the JSON name of each fact and a pointer to it.
func (s *stated) eachFact(do func(name string, fact any)) {
	facts := reflect.ValueOf(&s.facts).Elem()
	for i := range facts.NumField() {
		name, _, _ := strings.Cut(facts.Type().Field(i).Tag.Get("json"), ",")
		do(name, facts.Field(i).Addr().Interface())
	}
}

// asMap returns the facts by their JSON names.
func (s *stated) asMap() map[string]any {
	out := make(map[string]any)
	s.eachFact(func(name string, fact any) {
		n, isNumber := fact.(*int)
		if v := reflect.ValueOf(fact).Elem(); name != "-" && (!v.IsZero() || isNumber && s.zeros[n]) {
			out[name] = v.Interface()
		}
	})
	return out
}

// sentences are the known phrasings in which each number's meaning is fixed. A named
// group is the fact of that name; # stands for a number. The first value of a fact wins.
var sentences = map[recovery.Class][]*recovery.Pattern{
	recovery.ContextLengthExceeded: {
		sentence(`max_.*must be at least [01], got -(?P<overflow_tokens>#)`), // negative room for output
		sentence(`(?:^|[^-] )(?P<input_tokens>#) \+ (?P<max_output_tokens>#) > (?P<limit_tokens>#)`),
	},
	recovery.RateLimit: {
		sentence(`(?:^|[ (:/])(?P<limit_requests>#) ?(?:(?:requests?|(?:api )?calls) ?(?:per|for|/|a )|api calls|rpm)`),
		sentence(`(?:^|[ (:/])(?P<limit_tokens>#) ?(?:(?:(?:input|output|prompt|completion) )?tokens(?: per|/| a )|tpm)`),
		sentence(`token[^0-9¦]{0,32}(?P<used_tokens>#) ?/ ?(?P<limit_tokens>#)`),
		sentence(`(?:token|tp[md])[^0-9¦]{0,32}current: (?P<used_tokens>#), limit: (?P<limit_tokens>#)`),
		sentence(`(?:requests per [a-z]+|request rate|rp[md])[^0-9¦]{0,24}(?:limit[:=]? ?|: )(?P<limit_requests>#)`),
		// A text may state limits of requests and of tokens: the nearest subject before a number decides.
		sentence(`.*(?:(?:requests|request rate|rp[md])[^¦]*?limit[:=]? ?(?P<limit_requests>#)|(?:token|tp[md])[^¦]*?limit[:=]? ?(?P<limit_tokens>#)` +
			`(?: / [a-z]+| tokens)?(?:[,.]? (?:used|current)[:= ]+(?P<used_tokens>#))?(?:[,.]? requested[:= ]+(?P<requested_tokens>#))?)`),
	},
	recovery.QuotaExhausted: {
		sentence(`requested up to (?P<requested_output>#)`),
		sentence(`max_tokens.*can only afford (?P<affordable_output>#)`),
		sentence(`can only afford (?P<affordable_output>#).*max_tokens`),
		sentence(`^[^_]*can only afford (?P<affordable_tokens>#)[^_]*$`),
		sentence(`(?:max[a-z_]*|(?:completion|output) tokens) limit exceeded: (?P<requested_output>#) > (?P<affordable_output>#)`),
		sentence(`prompt tokens limit exceeded: (?P<requested_tokens>#) > (?P<affordable_tokens>#)`),
	},
}

func sentence(expr string) *recovery.Pattern {
	return recovery.NewPattern(strings.ReplaceAll(expr, "#", `[0-9]+(?:[,_][0-9]{3})*(?:\.[0-9]+)?(?:k\b)?`))
}

// readSentences reads the facts from the class's sentences and reports whether one matches.
func (s *stated) readSentences(text string, class recovery.Class) (found bool) {
	for _, p := range sentences[class] {
		m := p.FindStringSubmatch(text)
		if m == nil {
			continue
		}
		found = true
		s.eachFact(func(name string, fact any) {
			if i := slices.Index(p.SubexpNames(), name); i > 0 {
				if n, end, ok := readNumber(m[i]); ok && end == len(m[i]) {
					s.set(fact.(*int), n)
				}
			}
		})
	}
	return found
}

// gatherFacts reads the facts of a view. It needs the class, because the same number
// means different things in refusals for size, money and rate.
func gatherFacts(v *view, class recovery.Class) *stated {
	s := &stated{}
	f := &s.facts
	numbers := scanNumbers(v.text)
	for i := range numbers {
		n := &numbers[i]
		switch {
		case n.unit == "bytes", class == recovery.PayloadTooLarge && n.unit == "" && n.value >= 1000:
			s.set(n.limitOrAmount(&f.LimitBytes, &f.RequestedBytes), n.value)
		case n.unit == "chars":
			s.set(n.limitOrAmount(&f.LimitChars, &f.RequestedChars), n.value)
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
		s.readSentences(v.text, class)
	case recovery.QuotaExhausted:
		if s.readSentences(v.text, class); f.AffordableOutput > 0 {
			f.Param = firstKnown(v.text, outputNames)
		}
	}
	if class == recovery.RateLimit || class == recovery.QuotaExhausted {
		s.facts.ResetAt = resetAt(v.text)
		s.facts.ResetEpochMS = v.hints.epoch
		if n := v.hints.limit; n > 0 && strings.Contains(v.text, "models-per") {
			s.set(&f.LimitRequests, n)
		}
	}
	f.RetryAfterS, f.PerTime = v.RetryAfter.Seconds(), says(v.text, "tokens per min", "tokens per day", "(tpm)", "(tpd)")
	parameters(v, class, &s.facts)
	return s
}

// sizeFacts reads the token counts of a context overflow.
func sizeFacts(v *view, numbers []number, s *stated) {
	f := &s.facts
	if s.readSentences(v.text, recovery.ContextLengthExceeded) {
		return
	}
	if v.counts.window > 0 {
		s.set(&f.LimitTokens, v.counts.window)
	}
	if v.counts.prompt > 0 {
		s.set(&f.RequestedTokens, v.counts.prompt)
	}
	listsParts := says(v.text, " of tool input", " in the functions")
	for i := range numbers {
		n := &numbers[i]
		if n.unit != "" || n.startsRange() || says(recovery.Tail(n.before, 9), "leaves ", "leaving ") {
			continue
		}
		switch {
		case says(recovery.Tail(n.before, 24), " by ", "by at least ", "over by") && strings.HasPrefix(n.after, " token"):
			s.set(&f.OverflowTokens, n.value)
		case listsParts && n.followedByMatch(partAfter):
		case n.followedByMatch(inputAfter):
			s.set(&f.InputTokens, n.value)
		case n.followedByMatch(outputAfter):
			s.set(&f.MaxOutputTokens, n.value)
		case says(recovery.Tail(n.before, 9), "needs ", "requires "):
			s.set(&f.RequestedTokens, n.value)
		case i+1 < len(numbers) && n.followedByMatch(exceedsLimitAfter), n.after == "/":
			s.set(n.inputOrRequest(f), n.value)
		case says(n.before, "used") && says(v.text, "limit"):
			s.set(&f.UsedTokens, n.value)
		case n.isLimit(), strings.HasSuffix(n.lead, "/"):
			s.set(&f.LimitTokens, n.value)
		case says(n.before, "max_tokens", "max_completion_tokens", "max_new_tokens", "max_output_tokens"):
			s.set(&f.MaxOutputTokens, n.value)
		case amountBefore.MatchString(recovery.Tail(n.before, 40)):
			s.set(n.inputOrRequest(f), n.value)
		}
		if f.RequestedTokens == n.value && says(recovery.Tail(n.before, 28), "input token count", "prompt token count") {
			s.set(&f.InputTokens, n.value) // the limit applies to the input alone
		}
	}
}

// The words after (…After) or before (…Before) a token count that say what it counts.
var (
	inputAfter = recovery.NewPattern(`^(?:(?:tokens )?(?:in|of|from)(?: the| your| text)? (?:prompt|messages|input)|(?:input|prompt|inputs) tokens?|` +
		`'inputs'|(?:prompt|input) \+)`)
	outputAfter = recovery.NewPattern(`^(?:(?:tokens )?(?:in|for|of)(?: the)? (?:completion|output)|(?:output|completion|new) tokens|` +
		`max_(?:new_|completion_)?tokens|max generation|completion\))`)
	partAfter         = recovery.NewPattern(`^(?:of (?:text|tool) input|in the (?:messages|functions))`)
	exceedsAfter      = recovery.NewPattern(`^(?:>|is (?:not less|too large|greater|larger|above)|(?:which )?exceeds|is |must)`)
	exceedsLimitAfter = recovery.NewPattern(`^(?:(?:estimated )?tokens )?(?:exceed(?:s| the|ed (?:the|this|max(?:imum)?|model)) |is (?:greater|larger|longer) than |> )`)

	amountBefore = recovery.NewPattern(`request|total|resulted in|will take|contains|got|given|received|provided|prefill|current length|token count|prompt (?:is )?too long|` +
		`you sent|n_prompt_tokens|n_keep|keep the first|required|ha[vs]e?|used|with |input|prompt|length|messages|your |sequence|tokens:|` +
		`conversation|共|当前|实际|输入|token数`)
	inputBefore = recovery.NewPattern(`(?:input|prompt) (?:length(?: of)?|tokens)[ (:]*$`)
	totalBefore = recovery.NewPattern(`token count|and (?:maximum )?output|keep the first|n_keep|request|total|resulted in|will take|(?:is )?too long|` +
		`current length|n_prompt_tokens|messages|conversation`)
	promptBefore = recovery.NewPattern(`prompt|input|given|输入`)
)

// inputOrRequest returns the fact that the number states: the tokens of the input
// alone, or those of the whole request.
func (n *number) inputOrRequest(f *recovery.Facts) *int {
	near := recovery.Tail(n.before, 48)
	if inputBefore.MatchString(near) || !totalBefore.MatchString(near) && promptBefore.MatchString(near) {
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
		near := recovery.Tail(n.before, 56)
		switch {
		case strings.HasPrefix(n.after, " (exclusive)"):
			s.set(&f.MaxOutputLimit, n.value-1)
		case n.value <= 1, n.startsRange():
		case n.endsRange(), n.isLimit() && !n.followedBy(">", "exceeds"):
			s.set(&f.MaxOutputLimit, n.value)
			if i > 0 && strings.HasSuffix(numbers[i-1].before, "range of max_tokens should be [") {
				// This server uses the same wording for its context window.
				s.set(&f.LimitTokens, n.value)
			}
		case says(near, "got", "provided", "you requested", "requested", "given", "received", "value of", "is too large", "too large:",
			"you passed", "was "):
			s.set(&f.RequestedOutput, n.value)
		case n.followedByMatch(exceedsAfter):
			s.set(&f.RequestedOutput, n.value)
		case n.isLimit(), says(near, "<=", "equal to", "at most", "between", "[", "not exceed", "cannot exceed", "up to", "than ", "supports", "range", "maximum", "max ", "> ",
			"limit", "不能大于", "超过", "应在", "最大"):
			s.set(&f.MaxOutputLimit, n.value)
		case says(near, "max_tokens", "max_completion_tokens", "max_output_tokens", "maxoutputtokens", "max_new_tokens"):
			s.set(&f.RequestedOutput, n.value)
		}
	}
}
