package fit

import (
	"crypto/aes"
	"crypto/cipher"
	"crypto/hkdf"
	"crypto/rand"
	"crypto/sha256"
	"unicode/utf8"
)

// sealed is a text of the summariser and what it takes the place of. Whoever
// has the store and not both the credential and the replaced messages cannot
// read it.
type sealed struct {
	Op    op     `json:"o"`           // opSealed for one result, opCut for a run of messages
	First uint64 `json:"k"`           // key of the first message of the run
	Span  int    `json:"n"`           // length of the run
	Kept  []int  `json:"s,omitempty"` // messages of the run that stay, as offsets
	Box   []byte `json:"b"`           // nonce and ciphertext

	text string // opened
}

// sealKey is the key for the text in place of these messages.
func (v *view) sealKey(k keys, removed []int) ([]byte, error) {
	secret := append(make([]byte, 0, 32*(1+len(removed))), k.secret[:]...)
	for _, i := range removed {
		secret = append(secret, v.items[i].sum[:]...)
	}
	return hkdf.Key(sha256.New, secret, nil, "rebound fit summary v1", 32)
}

// seal encrypts a text; nil if the system has no randomness or cipher.
func seal(key []byte, text string) []byte {
	aead, err := newAEAD(key)
	if err != nil {
		return nil
	}
	nonce := make([]byte, aead.NonceSize(), aead.NonceSize()+len(text)+aead.Overhead())
	if _, err := rand.Read(nonce); err != nil {
		return nil
	}
	return aead.Seal(nonce, nonce, []byte(text), nil)
}

// unsealed decrypts what seal made; ok is false for anything else.
func unsealed(key, box []byte) (text string, ok bool) {
	aead, err := newAEAD(key)
	if err != nil || len(box) < aead.NonceSize() {
		return "", false
	}
	plain, err := aead.Open(nil, box[:aead.NonceSize()], box[aead.NonceSize():], nil)
	if err != nil || !utf8.Valid(plain) || !compressed(string(plain)) {
		return "", false
	}
	return string(plain), true
}

func newAEAD(key []byte) (cipher.AEAD, error) {
	block, err := aes.NewCipher(key)
	if err != nil {
		return nil, err
	}
	return cipher.NewGCM(block)
}

// removedIn lists the messages that a sealed run takes out of a history in which
// it begins at start; ok is false if they are not all there.
func (s *sealed) removedIn(v *view, start int) (removed []int, ok bool) {
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
