package pack

import "sync"

// An operator multiplies a register by a fixed power of x: eight table
// look-ups, one for each byte.
type operator [8][256]uint64

// fill makes o feed n zero bytes.
func (o *operator) fill(n int64) {
	column := shift(one, n)
	for i := 7; i >= 0; i-- {
		t := &o[i]
		t[0] = 0
		for bit := 0x80; bit > 0; bit >>= 1 {
			t[bit] = column
			column = timesX(column)
		}
		for top := 2; top < 256; top <<= 1 {
			for low := 1; low < top; low++ {
				t[top+low] = t[top] ^ t[low]
			}
		}
	}
}

func (o *operator) apply(r uint64) uint64 {
	return o[0][byte(r)] ^ o[1][byte(r>>8)] ^ o[2][byte(r>>16)] ^ o[3][byte(r>>24)] ^
		o[4][byte(r>>32)] ^ o[5][byte(r>>40)] ^ o[6][byte(r>>48)] ^ o[7][r>>56]
}

// operators is shared by all checksums: the fields of a bundle have the same
// gaps. An operator in use elsewhere is never overwritten, only dropped.
var operators operatorCache

// operatorCache keeps the last operators that were asked for, 1 MiB at most.
type operatorCache struct {
	mu   sync.Mutex
	gaps [64]int64
	ops  [64]*operator
	next int
}

func (c *operatorCache) get(gap int64) *operator {
	c.mu.Lock()
	defer c.mu.Unlock()
	for i, g := range c.gaps {
		if g == gap {
			return c.ops[i]
		}
	}
	o := new(operator)
	o.fill(gap)
	c.gaps[c.next], c.ops[c.next] = gap, o
	c.next = (c.next + 1) % len(c.gaps)
	return o
}
