package fit

import (
	"context"
	"math"
	"slices"

	"github.com/rebound-llm/rebound/recovery/fit/count"
	"github.com/rebound-llm/rebound/recovery/transcript"
)

// Counter counts the tokens of requests and texts, uncalibrated.
type Counter interface {
	Measure(b *transcript.Body, model string) count.Counts
	Text(model, s string) int
}

// goal is how large a request may be, in the counter's units, without the output reserve.
type goal struct {
	budget int // a request must be smaller
	target int // the size to fit to
	limit  int // above it the next request would have to be fitted again
}

// goalFor returns the goal for a budget. Above trigger the next request would be fitted again.
func (c *Config) goalFor(budget, trigger int) goal {
	target := int(c.TargetShare * float64(budget))
	return goal{budget: budget, target: target, limit: max(target, min(trigger, budget-1))}
}

// The kinds of edits, as events and reports name them.
const (
	TierResults   = "results"     // old results are shortened
	TierArguments = "arguments"   // arguments of old calls are shortened
	TierLong      = "long"        // texts that alone take much of the budget are shortened
	TierSummary   = "summary"     // a model's summary, with quotations, replaces the oldest turns
	TierDigest    = "digest"      // quotations alone replace the oldest turns
	TierMedia     = "attachments" // attachments of finished turns are removed, for a limit of bytes
	TierOutput    = "output"      // the output limit is lowered; the history stays
)

// shrinker brings one history to its goal.
type shrinker struct {
	cfg        *Config
	goal       goal
	summarizer *summarizer // nil without one
	perToken   int         // bytes of the request per token
	halvings   int         // how often the size of a large text is halved, see largeTokens
	cramped    bool        // instructions, task and last turn take nearly all of the budget
	cutPastes  bool        // protected messages of the user are cut too, where something was pasted into them
}

// run adds edits to k until it meets the goal. It reports whether the result
// fits the budget; it may miss the target. Messages up to the last edit keep their bytes
// if cutting later ones suffices, since the provider has cached them.
func (p *shrinker) run(ctx context.Context, k *revision) bool {
	p.perToken = max(2, min(6, len(k.v.body.Raw())/max(1, k.counts.Total)))
	p.measure(k)
	prot := protect(k.v, k.tokens, p.goal.budget, p.cfg.KeepRecent)
	if p.cannotFit(k, prot) {
		return false
	}
	met := p.cut(ctx, k, prot, k.editedEnd())
	p.summarizeResults(ctx, k)
	if !met {
		p.replaceOldest(ctx, k, prot)
	}
	// If the goal is missed, protect less.
	for level := 1; level <= narrowLevels+maxHalvings && p.measure(k) > p.goal.limit && ctx.Err() == nil; level++ {
		p.halvings = max(0, level-narrowLevels)
		p.cutPastes = p.cutPastes || level > narrowLevels
		try, less := k.clone(), prot.narrowed(k.v, level)
		p.cut(ctx, try, less, 0)
		if p.measure(try) > p.goal.target {
			p.replaceOldest(ctx, try, less)
		}
		if p.measure(try) < k.total {
			*k = *try
		}
	}
	return ctx.Err() == nil && p.measure(k) < p.goal.budget
}

// cannotFit reports whether the messages that no tier may change exceed the budget alone,
// without what a user pasted into them. It also sets cramped and cutPastes.
func (p *shrinker) cannotFit(k *revision, prot *protection) bool {
	floor, users, out, last := k.counts.Fixed, 0, 0, k.v.lastStep()
	for i := range k.v.items {
		it := &k.v.items[i]
		if prot.reasons[i]&(protectLead|protectSystem) == 0 && (i < last || prot.reasons[i]&protectUser == 0) {
			if prot.reasons[i]&protectUser != 0 {
				users += k.tokens[i]
			}
			continue
		}
		floor += k.tokens[i]
		if k.tokens[i] > p.largeTokens() && it.Role == transcript.RoleUser && !it.isReplacement() {
			n := 0
			for _, s := range findPastes(it.text, i >= k.v.leadEnd) {
				n += s.End - s.Start
			}
			out += int(float64(k.tokens[i]) * float64(n) / float64(len(it.text)+1))
		}
	}
	p.cramped = floor > p.goal.budget*9/10
	p.cutPastes = floor+users > (p.goal.target+p.goal.limit)/2 // else the target, or little more, is met without
	return floor-out >= p.goal.budget
}

// The lengths that cut tries, as factors of the configured thresholds. Below minFactor a
// digest of the steps says more than the remains of each.
const (
	stepFactor = 1.15
	minFactor  = 0.4
	slack      = 1.25 // texts that exceed a length by less are not cut
)

// largeTokens returns the size in tokens above which recent results, and messages into which
// a user pasted something, are cut too.
func (p *shrinker) largeTokens() int { return p.goal.budget / 8 >> p.halvings }

// maxHalvings limits halvings. Halving helps if a turn has many results that are too large
// only together.
const maxHalvings = 4

// cut shortens old results, arguments of old calls, and single texts that take much of the
// budget to a common length, the greatest that meets the target. It cuts nothing before
// message from, except pastes in the task if the request is cramped. It reports whether
// the target is met.
func (p *shrinker) cut(ctx context.Context, k *revision, prot *protection, from int) bool {
	longest := 1.0
	for i := from; i < len(k.v.items); i++ {
		it := &k.v.items[i]
		n := float64(len(it.text)) / float64(p.cfg.ThresholdChars)
		for _, c := range it.calls {
			n = max(n, float64(len(c.text))/float64(p.cfg.ThresholdArgs))
		}
		longest = max(longest, n)
	}
	at := func(step int) *revision {
		try := k.clone()
		p.cutTo(try, prot, longest*math.Pow(stepFactor, -float64(step)), from)
		return try
	}
	// Binary search: the first step that meets the target is in (low, high]; if none does, it is high.
	low, high := 0, int(math.Log(longest/minFactor)/math.Log(stepFactor))+1
	best := at(high)
	for met := p.measure(best) <= p.goal.target; met && high-low > 1 && ctx.Err() == nil; {
		middle := (low + high) / 2
		if try := at(middle); p.measure(try) <= p.goal.target {
			high, best = middle, try
		} else {
			low = middle
		}
	}
	*k = *best
	return k.total <= p.goal.target
}

// cutTo shortens each text that is longer than factor times its threshold.
func (p *shrinker) cutTo(k *revision, prot *protection, factor float64, from int) {
	length := func(threshold int) int { return max(64, int(math.Min(float64(threshold)*factor, maxKeep))) }
	results, args := length(p.cfg.ThresholdChars), length(p.cfg.ThresholdArgs)
	large := max(results, p.largeTokens()*p.perToken)
	over := func(text string, most int) bool { return float64(len(text)) > slack*float64(most) }
	for i := range k.v.items {
		if i < from && i >= k.v.leadEnd || i < k.v.leadEnd && !p.cramped {
			continue
		}
		it, of := &k.v.items[i], prot.reasons[i]
		switch {
		case over(it.text, large) && k.tokens[i] > p.largeTokens() && ((it.result || it.Reminder()) && of&^(protectRecent|protectError) == 0 ||
			it.Role == transcript.RoleUser && !it.isReplacement() && (of&protectUser == 0 || p.cutPastes)):
			k.add(i, recipe{Op: opLong, Length: uint32(large)}, minSaving)
		case of == 0 && it.result && (over(it.text, results) || it.shape.Media > 0):
			k.add(i, recipe{Op: opShorten, Length: uint32(results)}, minSaving)
		case of == 0 && slices.ContainsFunc(it.calls, func(c callInfo) bool { return over(c.text, args) }):
			k.add(i, recipe{Op: opArguments, Length: uint32(args)}, minSaving)
		}
	}
}

// summarizeResults has the summariser condense large results that were cut, if configured.
func (p *shrinker) summarizeResults(ctx context.Context, k *revision) {
	if !p.cfg.SummarizeResults || p.summarizer == nil {
		return
	}
	for i := range k.v.items {
		it := &k.v.items[i]
		if len(it.text) < 4*p.cfg.ThresholdChars || it.shape.Media > 0 || len(k.recipes[i]) != 1 || k.recipes[i][0].Op == opArguments {
			continue
		}
		if text, ok := p.summarizer.condenseResult(ctx, k, i); ok {
			k.seal(i, &sealed{Op: opSealed, First: it.key, Span: 1, Box: k.v.seal([]int{i}, text), text: text})
		}
	}
}

// The length of a summary in tokens: 1/summaryShare of the budget, within limits.
const (
	summaryShare = 32
	summaryMin   = 400
	summaryMax   = 3000
)

// digestMin is the minimum for a digest, in tokens. If the messages that stay exceed the
// target already, a digest still gets 1/digestShare of the budget, as all that remains of
// the old turns.
const (
	digestMin   = 300
	digestShare = 32
)

// replaceOldest replaces the old turns, and an earlier such replacement, by one text: a
// summary, if there is a summariser, and quotations, as many as the target allows. If the
// text leaves room, the latest of those turns stay.
func (p *shrinker) replaceOldest(ctx context.Context, k *revision, prot *protection) {
	c, saved := p.oldestRun(k, prot, prot.recent)
	if len(c.removed) < 2 || saved < 2*digestMin {
		return
	}
	rest := k.total - saved
	room := max(p.goal.target-rest, min(p.goal.budget/digestShare, p.goal.limit-rest))
	room = max(digestMin, min(room, saved*9/10))
	d, words := k.digest(ctx, c.removed), ""
	if p.summarizer != nil {
		words = p.summarizer.summarizeTurns(ctx, d, min(max(summaryMin, p.goal.budget/summaryShare), summaryMax, room))
	}
	text, used := k.replacement(c.removed, words, d, room)
	if end := p.startWithin(k, c.end, room-used); end < c.end && p.goal.target > rest {
		if fewer, _ := p.oldestRun(k, prot, end); len(fewer.removed) > 1 {
			c = fewer
			text, _ = k.replacement(c.removed, words, k.digest(ctx, c.removed), used)
		}
	}
	if ctx.Err() != nil {
		return
	}
	start := c.removed[0]
	c.sealed = &sealed{Op: opCut, First: k.v.items[start].key, Span: c.end - start, Box: k.v.seal(c.removed, text), text: text}
	for i := start; i < c.end; i++ {
		if _, gone := slices.BinarySearch(c.removed, i); !gone {
			c.sealed.Kept = append(c.sealed.Kept, i-start)
		}
	}
	k.remove(c)
}

// oldestRun returns the run of complete turns before message end, and how many tokens its
// removal saves. Messages that are removed already stay removed.
func (p *shrinker) oldestRun(k *revision, prot *protection, end int) (c cut, saved int) {
	if k.cut != nil {
		end, saved = max(end, k.cut.end), k.cut.tokens
	}
	end = k.v.stepStart(end)
	for i := k.v.leadEnd; i < end; i++ {
		if prot.reasons[i]&keepReasons == 0 || k.removed(i) {
			c.removed = append(c.removed, i)
			saved += k.tokens[i]
		}
	}
	if n := len(c.removed); n > 0 { // a run begins and ends with a message that goes
		c.end = c.removed[n-1] + 1
	}
	return c, saved
}

// startWithin returns the start of the turns before message end that have at most tokens.
func (p *shrinker) startWithin(k *revision, end, tokens int) int {
	for i := end; i > k.v.leadEnd; {
		i--
		if tokens -= k.tokens[i]; tokens < 0 {
			break
		}
		if k.v.boundary(i) {
			end = i
		}
	}
	return end
}

// measure builds and counts the edited request, and returns its total.
func (p *shrinker) measure(k *revision) int {
	if b, err := k.build(); err == nil {
		k.total = k.counter.Measure(b, k.model).Total
	}
	return k.total
}
