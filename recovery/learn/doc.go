// Package learn remembers what targets proved: fields they refuse, output
// limits, and how long they take to their first token. Facts are shared by all
// replicas and expire; paces are counted in the process.
//
// And it remembers what notes to models brought:
//
//	guidance_injected → an intervention is open
//	what followed, as later requests show → its outcome → an entry of the corpus, a shared log
//	corpus → Fold: counters by gateway key, chain, strategy and model, older outcomes worth less
//	question → Choose: rates of success order the strategies, or withhold the note
//
// The corpus is the truth: counters are made of it anew, in each replica. It has no
// text but templates of words that stand in this program's own rules.
package learn
