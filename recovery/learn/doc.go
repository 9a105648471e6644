// Package learn remembers what targets proved: fields they refuse, output
// limits, and how long they take to their first token. Facts are shared by all
// replicas and expire; paces are measured per process.
//
// It also remembers what notes to models achieved:
//
//	guidance_injected → an intervention is open
//	what followed, as later requests show → its outcome → an entry of the corpus, a shared log
//	corpus → Fold: counters by gateway key, chain, strategy and model; older outcomes weigh less
//	question → Choose: success rates order the strategies, or withhold the note
//
// The corpus is the only source: each replica computes its counters from it. It contains no
// text except templates of words that occur in this program's own rules.
package learn
