// Package tokenizer counts the tokens of a text exactly as OpenAI's tiktoken
// does, offline and in bounded time.
//
// The flow of one count:
//
//	ForModel              name -> *Encoding (nothing is loaded yet)
//	Encoding.Count        first call: load the vocabulary, once per process
//	  splitCL100K/O200K   text  -> pieces (letters, digits, symbols, spaces)
//	  vocabulary.rank     a piece that is one token: done (most pieces)
//	  mergeShort          a short piece: repeated scan for the lowest rank
//	  countLong           a long piece: windows, each merged with a heap
//
// # Sources
//
// The vocabularies o200k_base and cl100k_base, and the patterns that cut a text
// into pieces, are those of OpenAI's tiktoken (github.com/openai/tiktoken, MIT,
// file tiktoken_ext/openai_public.py). The vocabulary files come from
// github.com/pkoukk/tiktoken-go-loader (MIT) and are embedded compressed; the
// network is never used.
// o200k_harmony differs from o200k_base only in its special tokens, so it
// shares vocabulary and pattern. The patterns are written out by hand: a
// regular expression engine costs ten times the rest of the work.
//
// # Cost
//
// Splitting is linear. A piece of n bytes is merged in O(n log n) for any
// content, with scratch memory that does not grow with n (see countLong). An
// encoding holds about 4 MB (o200k_base) or 2 MB (cl100k_base) once it is used.
//
// # Limits
//
//   - Text is ordinary text: "<|endoftext|>" counts as its characters, never as
//     a special token. The caller adds the tokens that frame chat messages, tools
//     and images.
//   - Each byte that is not valid UTF-8 counts as one U+FFFD, as in tiktoken-go
//     and in Go's JSON decoder.
//   - Character classes are those of the Go release's Unicode tables. A letter
//     that Unicode added later counts as a symbol.
//   - The patterns are those that OpenAI published first. Later releases of
//     tiktoken split cl100k_base differently if a text ends in white space, and
//     their (?i:'s) also matches the long s (U+017F). Pieces may differ there; the
//     counts did not in a comparison over all short runs of white space.
//
// The package is not responsible for requests, messages or usage: it only sees text.
package tokenizer
