// Package rule recognises texts by rules that are data: wordings, codes and
// statuses, each rule with examples that it must decide and lookalikes that it
// must not.
//
// A [Set] is what a file of rules holds. [Compile] checks it and makes a [List],
// whose rules are tried in order: the first one that matches decides. [List.Explain]
// tells which rule that was, which others would have matched, and what kept out
// those that nearly did.
//
// The package knows nothing of what is recognised. Its user prepares a [Subject]:
// the text, folded by [Fold], the codes and the status, and the facts that no
// wording can express. It reads no files.
package rule
