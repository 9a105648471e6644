package tokenizer

import (
	"bytes"
	"compress/gzip"
	"embed"
	"encoding/base64"
	"errors"
	"fmt"
	"io"
	"math/bits"
	"strconv"
)

// vocabularies holds OpenAI's vocabulary files, compressed to a third of their
// size. `go test ./tokenizer -update` writes them.
//
//go:embed vocabularies/*.gz
var vocabularies embed.FS

// noRank is the rank of bytes that are not a token. It is larger than all ranks.
const noRank = 1<<32 - 1

// A slot of the table is 0 (empty), or holds rank+1 in the low bits and a part of
// the hash in the high bits, which avoids most comparisons with a wrong token.
const (
	rankBits  = 18
	rankMask  = 1<<rankBits - 1
	maxTokens = rankMask
)

// vocabulary maps the bytes of a token to its rank. It is a hash table with linear
// probing over one block of bytes. It does not change after loading.
type vocabulary struct {
	text    []byte   // all tokens, in the order of their ranks
	ends    []uint32 // token r is text[ends[r]:ends[r+1]]
	slots   []uint32 // their number is a power of two; at most half are in use
	longest int      // bytes of the longest token
}

// loadVocabulary reads one of the embedded vocabulary files.
func loadVocabulary(asset string) (*vocabulary, error) {
	file, err := vocabularies.Open("vocabularies/" + asset + ".gz")
	if err != nil {
		return nil, fmt.Errorf("opening vocabulary: %w", err)
	}
	defer file.Close() // only read
	unzipped, err := gzip.NewReader(file)
	if err != nil {
		return nil, fmt.Errorf("opening vocabulary %s: %w", asset, err)
	}
	data, err := io.ReadAll(unzipped)
	if err != nil {
		return nil, fmt.Errorf("unpacking vocabulary %s: %w", asset, err)
	}
	v, err := parseVocabulary(data)
	if err != nil {
		return nil, fmt.Errorf("reading vocabulary %s: %w", asset, err)
	}
	return v, nil
}

// parseVocabulary reads tiktoken's file format: one line for each token with its
// bytes in base64, a space, and its rank. Ranks must count up from 0.
func parseVocabulary(data []byte) (*vocabulary, error) {
	tokens := bytes.Count(data, []byte("\n")) + 1
	text := make([]byte, 0, len(data)/2)
	ends := append(make([]uint32, 0, tokens+1), 0)
	for line := range bytes.Lines(data) {
		line = bytes.TrimSuffix(line, []byte("\n"))
		if len(line) == 0 {
			continue
		}
		word, number, _ := bytes.Cut(line, []byte(" "))
		rank, err := strconv.Atoi(string(number))
		if err != nil {
			return nil, fmt.Errorf("rank of token %d: %w", len(ends)-1, err)
		}
		if rank != len(ends)-1 || rank >= maxTokens {
			return nil, fmt.Errorf("token %d has rank %d", len(ends)-1, rank)
		}
		before := len(text)
		text, err = base64.StdEncoding.AppendDecode(text, word)
		if err != nil {
			return nil, fmt.Errorf("bytes of token %d: %w", rank, err)
		}
		if len(text) == before {
			return nil, errors.New("empty token")
		}
		ends = append(ends, uint32(len(text)))
	}
	return newVocabulary(bytes.Clone(text), ends), nil
}

// newVocabulary builds the table. Token r is text[ends[r]:ends[r+1]].
func newVocabulary(text []byte, ends []uint32) *vocabulary {
	v := &vocabulary{text: text, ends: ends, slots: make([]uint32, 1<<bits.Len(uint(2*len(ends))))}
	mask := len(v.slots) - 1
	for r := range len(ends) - 1 {
		word := text[ends[r]:ends[r+1]]
		v.longest = max(v.longest, len(word))
		h := hash(word)
		i := int(h) & mask
		for v.slots[i] != 0 {
			i = (i + 1) & mask
		}
		v.slots[i] = uint32(h>>32)&^rankMask | uint32(r+1)
	}
	return v
}

// rank returns the rank of the token that consists of these bytes, or noRank.
func (v *vocabulary) rank(word string) uint32 {
	if len(word) > v.longest {
		return noRank
	}
	h := hash(word)
	tag := uint32(h>>32) &^ rankMask
	mask := len(v.slots) - 1
	for i := int(h) & mask; ; i = (i + 1) & mask {
		slot := v.slots[i]
		if slot == 0 {
			return noRank
		}
		if slot&^rankMask != tag {
			continue
		}
		r := slot&rankMask - 1
		if string(v.text[v.ends[r]:v.ends[r+1]]) == word {
			return r
		}
	}
}

// hash returns the hash of a short string. It needs no seed: the keys in the table are
// fixed, so no input can cause more collisions.
func hash[T string | []byte](s T) uint64 {
	h := uint64(len(s)) * 0x9e3779b97f4a7c15
	for ; len(s) > 8; s = s[8:] {
		h = mix(h ^ word64(s))
	}
	switch n := len(s); {
	case n == 8:
		h ^= word64(s)
	case n >= 4:
		h ^= word32(s) | word32(s[n-4:])<<32
	case n > 0:
		h ^= uint64(s[0]) | uint64(s[n/2])<<8 | uint64(s[n-1])<<16
	}
	return mix(h)
}

// mix is the folded multiplication known from wyhash.
func mix(x uint64) uint64 {
	hi, lo := bits.Mul64(x^0xa0761d6478bd642f, 0xe7037ed1a0b428db)
	return hi ^ lo
}

func word64[T string | []byte](s T) uint64 {
	_ = s[7]
	return uint64(s[0]) | uint64(s[1])<<8 | uint64(s[2])<<16 | uint64(s[3])<<24 |
		uint64(s[4])<<32 | uint64(s[5])<<40 | uint64(s[6])<<48 | uint64(s[7])<<56
}

func word32[T string | []byte](s T) uint64 {
	_ = s[3]
	return uint64(s[0]) | uint64(s[1])<<8 | uint64(s[2])<<16 | uint64(s[3])<<24
}
