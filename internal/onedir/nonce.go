package onedir

import (
	"crypto/rand"
	"encoding/binary"
	"encoding/hex"
	"math"
)

// A Nonce tells what rank 0 has made from everything else.
type Nonce [16]byte

// NewNonce returns one that nobody else has.
func NewNonce() (n Nonce, err error) {
	_, err = rand.Read(n[:])
	return n, err
}

// String returns the nonce as it is written: 32 digits.
func (n Nonce) String() string { return hex.EncodeToString(n[:]) }

// Words returns what the ranks reduce to the maximum, so that all of them know the nonce
// of rank 0; own is true there and false elsewhere.
func (n Nonce) Words(own bool) []int64 {
	v := []int64{math.MinInt64, math.MinInt64}
	if own {
		for i := range v {
			v[i] = int64(binary.LittleEndian.Uint64(n[8*i:]))
		}
	}
	return v
}

// Set takes the nonce from the words that came out.
func (n *Nonce) Set(v []int64) {
	for i, word := range v {
		binary.LittleEndian.PutUint64(n[8*i:], uint64(word))
	}
}
