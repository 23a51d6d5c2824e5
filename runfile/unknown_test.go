package runfile

import (
	"fmt"
	"math"
	"strings"
	"testing"

	"github.com/fieldstone-io/fieldstone/grid"
)

// Planes of fields are in memory as a whole, so their bytes must be an int: on 32 bits
// not all domains are possible. No product on the way wraps.
func TestThePlaneOfAFieldFitsAnInt(t *testing.T) {
	for _, size := range [][3]int{{1, 1, 1}, {16000, 16000, 2}, {20000, 20000, 2}, {1 << 16, 1 << 16, 1}} {
		l := Layout{Unknowns: []Unknown{{Name: "psi", Kind: Field, Domain: grid.Domain{Size: size, Spacing: [3]float64{1, 1, 1}}}}}
		err := l.Validate()
		if fits := int64(size[0])*int64(size[1])*8 <= math.MaxInt; fits != (err == nil) {
			t.Errorf("%v: %v", size, err)
		}
		if err != nil && !strings.Contains(err.Error(), fmt.Sprintf(`"psi": a plane of %d x %d cells`, size[0], size[1])) {
			t.Errorf("%v: the error is %v", size, err)
		}
		_, err = planes(l.Unknowns[0].Domain, chunkBytes)
		if bytes := int64(size[0]) * int64(size[1]) * 8; (bytes < largestChunk) != (err == nil) {
			t.Errorf("%v: chunks: %v", size, err)
		}
	}
}
