// Package rule classifies texts by rules that are data. A rule lists wordings, codes and statuses, with examples that it
// must decide and lookalikes that it must not decide.
//
// A [Set] is the content of a file of rules. [Compile] checks it and returns a [List], whose rules are tried in order: the
// first one that matches decides. [List.Explain] returns all rules that match, and the conditions that failed for rules
// that nearly match.
//
// The package does not know what the texts mean. The caller prepares a [Subject]: the text, folded by [Fold], the codes
// and the status, and facts that no wording can express. The package reads no files.
package rule
