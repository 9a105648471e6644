package fit

import (
	"crypto/cipher"
	"unicode/utf8"

	"github.com/rebound-llm/rebound/store"
)

// sealed is an encrypted text and the messages that it replaces. Reading it takes both the
// credential and the replaced messages, so a leaked store reveals nothing.
type sealed struct {
	Op    op     `json:"o"`           // opSealed for one result, opCut for a run of messages
	First uint64 `json:"k"`           // key of the first message of the run
	Span  int    `json:"n"`           // length of the run
	Kept  []int  `json:"s,omitempty"` // messages of the run that stay, as offsets
	Box   []byte `json:"b"`           // nonce and ciphertext

	text string // decrypted
}

// cipher returns the cipher for a text that replaces the messages removed.
func (v *history) cipher(removed []int) cipher.AEAD {
	secret := append(make([]byte, 0, 32*(1+len(removed))), v.secret...)
	for _, i := range removed {
		secret = append(secret, v.items[i].sum[:]...)
	}
	aead, _ := store.Cipher(secret, "rebound fit summary v1") // fails for short keys only; this one has 32 bytes or more
	return aead
}

// sealOverhead is an upper limit of the bytes that encryption adds.
const sealOverhead = 64

// seal encrypts a text that replaces the messages removed.
func (v *history) seal(removed []int, text string) []byte {
	return v.cipher(removed).Seal(nil, nil, []byte(text), nil)
}

// unseal decrypts a box of seal; ok is false for anything else.
func (v *history) unseal(removed []int, box []byte) (text string, ok bool) {
	plain, err := v.cipher(removed).Open(nil, nil, box, nil)
	if err != nil || !utf8.Valid(plain) || !isCompressed(string(plain)) {
		return "", false
	}
	return string(plain), true
}

// removedIn lists the messages that a sealed run replaces in a history in which it begins at
// start; ok is false if the run does not fit.
func (s *sealed) removedIn(v *history, start int) (removed []int, ok bool) {
	if s.Span < 1 || start+s.Span > len(v.items) {
		return nil, false
	}
	kept := s.Kept
	for n := range s.Span {
		if len(kept) > 0 && kept[0] == n {
			kept = kept[1:]
			continue
		}
		removed = append(removed, start+n)
	}
	return removed, len(removed) > 0 && len(kept) == 0
}
