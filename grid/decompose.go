package grid

import "fmt"

// Option changes how [Decompose] cuts a domain.
type Option func(*decomposeOptions) error

type decomposeOptions struct {
	processes [3]int
	explicit  bool
}

// ProcessGrid sets the number of ranks along each axis. The product must be
// the number of ranks.
func ProcessGrid(px, py, pz int) Option {
	return func(o *decomposeOptions) error {
		if px <= 0 || py <= 0 || pz <= 0 {
			return fmt.Errorf("process grid %d x %d x %d: every number must be greater than 0", px, py, pz)
		}
		o.processes, o.explicit = [3]int{px, py, pz}, true
		return nil
	}
}

// Decomposition assigns one box of a domain to each rank: the domain is cut
// into a Cartesian grid of processes, and along each axis the first processes
// get one cell more where the size isn't divisible. With more processes along
// an axis than cells, the last ones get empty boxes.
//
// The zero value has no ranks.
type Decomposition struct {
	domain    Domain
	processes [3]int
}

// Decompose cuts d for the given number of ranks. By default it chooses the
// process grid with the fewest empty boxes, among those the one with the
// smallest surface between ranks, which is where halos are exchanged, among
// those the smallest largest box, and then the one that cuts the slowest axis
// most, so that rows of x stay whole.
func Decompose(d Domain, ranks int, opts ...Option) (Decomposition, error) {
	if err := d.Validate(); err != nil {
		return Decomposition{}, fmt.Errorf("decompose: %w", err)
	}
	if ranks <= 0 {
		return Decomposition{}, fmt.Errorf("decompose: number of ranks is %d, must be greater than 0", ranks)
	}
	var o decomposeOptions
	for _, opt := range opts {
		if err := opt(&o); err != nil {
			return Decomposition{}, fmt.Errorf("decompose: %w", err)
		}
	}
	if !o.explicit {
		return Decomposition{domain: d, processes: bestProcesses(d, ranks)}, nil
	}
	p := o.processes
	// Divided rather than multiplied, so that nothing overflows.
	if ranks%p[0] != 0 || ranks/p[0]%p[1] != 0 || ranks/p[0]/p[1] != p[2] {
		return Decomposition{}, fmt.Errorf("decompose: process grid %d x %d x %d is not for %d ranks", p[0], p[1], p[2], ranks)
	}
	return Decomposition{domain: d, processes: p}, nil
}

// bestProcesses tries every factorisation of ranks into three factors.
func bestProcesses(d Domain, ranks int) [3]int {
	var best [3]int
	var bestCost cost
	divs := divisors(ranks)
	for _, pz := range divs {
		for _, py := range divs {
			if ranks/pz%py != 0 {
				continue
			}
			p := [3]int{ranks / pz / py, py, pz}
			c := costOf(d, p)
			if best[0] == 0 || c.less(bestCost) {
				best, bestCost = p, c
			}
		}
	}
	return best
}

// divisors returns the divisors of n, the largest first.
func divisors(n int) []int {
	var small, large []int
	for i := 1; i <= n/i; i++ {
		if n%i != 0 {
			continue
		}
		small = append(small, i)
		if i != n/i {
			large = append(large, n/i)
		}
	}
	for i := len(small) - 1; i >= 0; i-- {
		large = append(large, small[i])
	}
	return large
}

// cost ranks process grids: smaller is better, earlier fields first.
type cost struct {
	idle    int   // ranks with an empty box
	surface int64 // cell faces between two ranks
	largest int64 // cells of the largest box
}

func costOf(d Domain, p [3]int) cost {
	busy := 1
	var c cost
	c.largest = 1
	ranks := p[0] * p[1] * p[2]
	for a, n := range d.Size {
		eff := min(p[a], n)
		busy *= eff
		cuts := eff - 1
		if d.Periodic[a] && eff > 1 {
			cuts = eff
		}
		// cuts <= n, so this is at most the number of cells.
		c.surface += int64(cuts) * (d.Cells() / int64(n))
		c.largest *= int64((n + eff - 1) / eff)
	}
	c.idle = ranks - busy
	return c
}

func (c cost) less(o cost) bool {
	if c.idle != o.idle {
		return c.idle < o.idle
	}
	if c.surface != o.surface {
		return c.surface < o.surface
	}
	return c.largest < o.largest
}

// Domain returns the domain that was cut.
func (d Decomposition) Domain() Domain { return d.domain }

// Processes returns the number of ranks along x, y and z.
func (d Decomposition) Processes() [3]int { return d.processes }

// Ranks returns the number of ranks.
func (d Decomposition) Ranks() int {
	return d.processes[0] * d.processes[1] * d.processes[2]
}

// Coords returns the place of a rank in the process grid; the place along x
// changes fastest. For a rank outside of [0, Ranks()) it returns
// [-1 -1 -1].
func (d Decomposition) Coords(rank int) [3]int {
	if rank < 0 || rank >= d.Ranks() {
		return [3]int{-1, -1, -1}
	}
	px, py := d.processes[0], d.processes[1]
	return [3]int{rank % px, rank / px % py, rank / px / py}
}

// Rank returns the rank at a place of the process grid, or -1 if coords lies
// outside of it. Periodicity isn't applied; see [Decomposition.Neighbor].
func (d Decomposition) Rank(coords [3]int) int {
	for a, c := range coords {
		if c < 0 || c >= d.processes[a] {
			return -1
		}
	}
	return coords[0] + d.processes[0]*(coords[1]+d.processes[1]*coords[2])
}

// Box returns the cells that a rank owns. It is empty for a rank that got none
// and for a rank outside of [0, Ranks()).
func (d Decomposition) Box(rank int) Box {
	c := d.Coords(rank)
	if c[0] < 0 {
		return Box{}
	}
	var b Box
	for a := range b.Low {
		share, rest := d.domain.Size[a]/d.processes[a], d.domain.Size[a]%d.processes[a]
		b.Low[a] = c[a]*share + min(c[a], rest)
		b.Size[a] = share
		if c[a] < rest {
			b.Size[a]++
		}
	}
	return b
}

// Neighbor returns the rank that owns the cells next to those of the given
// rank along an axis (0, 1, 2), on the lower (side < 0) or upper (side > 0)
// side. Ranks with empty boxes are passed over, and a periodic axis is closed
// to a ring, so that a rank can be its own neighbour. It returns false at the
// end of a bounded axis, for a rank without cells, and for arguments out of
// range.
func (d Decomposition) Neighbor(rank, axis, side int) (int, bool) {
	if axis < 0 || axis > 2 || side == 0 || d.Box(rank).Empty() {
		return -1, false
	}
	c := d.Coords(rank)
	// Ranks without cells are the last ones of an axis.
	busy := min(d.processes[axis], d.domain.Size[axis])
	if side < 0 {
		c[axis]--
	} else {
		c[axis]++
	}
	if c[axis] < 0 || c[axis] >= busy {
		if !d.domain.Periodic[axis] {
			return -1, false
		}
		c[axis] = (c[axis] + busy) % busy
	}
	return d.Rank(c), true
}
