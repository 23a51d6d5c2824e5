//go:build !purego

package pack

//go:noescape
func nonFiniteNEON(b []byte) int

// neon is generic except for the count, which takes too long in Go beside a checksum that
// has instructions of its own.
var neon = func() kernelSet {
	k := generic
	k.name = "NEON"
	k.nonFinite = func(b []byte) int {
		whole := len(b) &^ 63
		return nonFiniteNEON(b[:whole]) + nonFiniteGeneric(b[whole:])
	}
	return k
}()

func available() []*kernelSet { return []*kernelSet{&generic, &neon} }
