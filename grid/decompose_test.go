package grid_test

import (
	"math"
	"testing"

	"github.com/fieldstone-io/fieldstone/grid"
	"pgregory.net/rapid"
)

func TestDecomposeChoosesProcesses(t *testing.T) {
	periodic := domain(12, 12, 1)
	periodic.Periodic = [3]bool{true, false, false}
	tests := []struct {
		name   string
		domain grid.Domain
		ranks  int
		want   [3]int
	}{
		{"one rank", domain(8, 8, 8), 1, [3]int{1, 1, 1}},
		{"a cube for a cube", domain(64, 64, 64), 8, [3]int{2, 2, 2}},
		{"a large cube", domain(1024, 1024, 1024), 4096, [3]int{16, 16, 16}},
		{"rows stay whole where it costs nothing", domain(64, 64, 64), 2, [3]int{1, 1, 2}},
		{"a prime number cuts the slowest axis", domain(64, 64, 64), 7, [3]int{1, 1, 7}},
		{"the longest axis is cut", domain(256, 16, 16), 4, [3]int{4, 1, 1}},
		{"an axis without extent isn't cut", domain(128, 128, 1), 4, [3]int{2, 2, 1}},
		{"a line", domain(100, 1, 1), 10, [3]int{10, 1, 1}},
		{"a periodic axis has one cut more", periodic, 2, [3]int{1, 2, 1}},
		{"no rank is idle if possible, whatever the surface", domain(2, 8, 64), 1024, [3]int{2, 8, 64}},
		{"more ranks than cells", domain(2, 1, 1), 3, [3]int{3, 1, 1}},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			d, err := grid.Decompose(tt.domain, tt.ranks)
			if err != nil {
				t.Fatal(err)
			}
			if got := d.Processes(); got != tt.want {
				t.Errorf("processes %v, want %v", got, tt.want)
			}
		})
	}
}

func TestDecomposeRejects(t *testing.T) {
	tests := []struct {
		name   string
		domain grid.Domain
		ranks  int
		opts   []grid.Option
		want   []string
	}{
		{"an invalid domain", domain(4, 0, 4), 1, nil, []string{"decompose", "size", "y"}},
		{"no ranks", domain(4, 4, 4), 0, nil, []string{"ranks", "0"}},
		{"a negative number of ranks", domain(4, 4, 4), -2, nil, []string{"ranks", "-2"}},
		{"a process grid for other ranks", domain(4, 4, 4), 4, []grid.Option{grid.ProcessGrid(2, 1, 1)}, []string{"2 x 1 x 1", "4 ranks"}},
		{"a process grid with 0", domain(4, 4, 4), 4, []grid.Option{grid.ProcessGrid(4, 1, 0)}, []string{"4 x 1 x 0"}},
		{"a process grid of negative numbers", domain(4, 4, 4), 4, []grid.Option{grid.ProcessGrid(-2, -2, 1)}, []string{"-2 x -2 x 1"}},
		{"a process grid that overflows", domain(4, 4, 4), 4, []grid.Option{grid.ProcessGrid(math.MaxInt, 2, 2)}, []string{"4 ranks"}},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			d, err := grid.Decompose(tt.domain, tt.ranks, tt.opts...)
			checkText(t, err, tt.want)
			if d != (grid.Decomposition{}) {
				t.Errorf("decomposition %v beside the error", d)
			}
		})
	}
}

func TestUnevenBoxes(t *testing.T) {
	d, err := grid.Decompose(domain(10, 6, 3), 5, grid.ProcessGrid(1, 1, 5))
	if err != nil {
		t.Fatal(err)
	}
	want := []grid.Box{
		box(0, 10, 0, 6, 0, 1), box(0, 10, 0, 6, 1, 2), box(0, 10, 0, 6, 2, 3),
		box(0, 10, 0, 6, 3, 3), box(0, 10, 0, 6, 3, 3),
	}
	for r, w := range want {
		if got := d.Box(r); got != w {
			t.Errorf("box of rank %d is %v, want %v", r, got, w)
		}
	}
	d, err = grid.Decompose(domain(10, 6, 3), 4, grid.ProcessGrid(4, 1, 1))
	if err != nil {
		t.Fatal(err)
	}
	for r, w := range []grid.Box{box(0, 3, 0, 6, 0, 3), box(3, 6, 0, 6, 0, 3), box(6, 8, 0, 6, 0, 3), box(8, 10, 0, 6, 0, 3)} {
		if got := d.Box(r); got != w {
			t.Errorf("box of rank %d is %v, want %v", r, got, w)
		}
	}
}

func TestDecompositionOutOfRange(t *testing.T) {
	d, err := grid.Decompose(domain(8, 8, 8), 8)
	if err != nil {
		t.Fatal(err)
	}
	for _, r := range []int{-1, 8} {
		if got := d.Box(r); got != (grid.Box{}) {
			t.Errorf("box of rank %d is %v, want none", r, got)
		}
		if got := d.Coords(r); got != [3]int{-1, -1, -1} {
			t.Errorf("coords of rank %d are %v", r, got)
		}
		if n, ok := d.Neighbor(r, 0, 1); ok {
			t.Errorf("rank %d has neighbour %d", r, n)
		}
	}
	for _, a := range []int{-1, 3} {
		if n, ok := d.Neighbor(0, a, 1); ok {
			t.Errorf("along axis %d there is neighbour %d", a, n)
		}
	}
	if n, ok := d.Neighbor(0, 0, 0); ok {
		t.Errorf("on side 0 there is neighbour %d", n)
	}
	for _, c := range [][3]int{{2, 0, 0}, {0, -1, 0}, {0, 0, 2}} {
		if got := d.Rank(c); got != -1 {
			t.Errorf("rank at %v is %d, want -1", c, got)
		}
	}
	if got := (grid.Decomposition{}).Ranks(); got != 0 {
		t.Errorf("the zero decomposition has %d ranks", got)
	}
}

func genDomain(maxSize int) *rapid.Generator[grid.Domain] {
	return rapid.Custom(func(t *rapid.T) grid.Domain {
		d := domain(1, 1, 1)
		for a := range 3 {
			d.Size[a] = rapid.IntRange(1, maxSize).Draw(t, "size")
			d.Periodic[a] = rapid.Bool().Draw(t, "periodic")
		}
		return d
	})
}

func genDecomposition(t *rapid.T) grid.Decomposition {
	d := genDomain(9).Draw(t, "domain")
	if rapid.Bool().Draw(t, "explicit") {
		p := [3]int{}
		for a := range p {
			p[a] = rapid.IntRange(1, 5).Draw(t, "processes")
		}
		dec, err := grid.Decompose(d, p[0]*p[1]*p[2], grid.ProcessGrid(p[0], p[1], p[2]))
		if err != nil {
			t.Fatal(err)
		}
		return dec
	}
	dec, err := grid.Decompose(d, rapid.IntRange(1, 40).Draw(t, "ranks"))
	if err != nil {
		t.Fatal(err)
	}
	return dec
}

// The boxes tile the domain, sizes along an axis differ by one at most, and
// ranks are numbered with x fastest.
func TestDecompositionProperties(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		dec := genDecomposition(t)
		p := dec.Processes()
		if dec.Ranks() != p[0]*p[1]*p[2] {
			t.Fatalf("%d ranks for processes %v", dec.Ranks(), p)
		}
		boxes := make([]grid.Box, dec.Ranks())
		rank := 0
		for z := range p[2] {
			for y := range p[1] {
				for x := range p[0] {
					c := [3]int{x, y, z}
					if dec.Coords(rank) != c || dec.Rank(c) != rank {
						t.Fatalf("rank %d: coords %v, want %v; rank there %d", rank, dec.Coords(rank), c, dec.Rank(c))
					}
					boxes[rank] = dec.Box(rank)
					for a, n := range boxes[rank].Size {
						if share := dec.Domain().Size[a] / p[a]; n != share && n != share+1 {
							t.Fatalf("rank %d has %d cells along axis %d, want %d or one more", rank, n, a, share)
						}
					}
					rank++
				}
			}
		}
		if err := bruteTile(dec.Domain().Box(), boxes); err != "" {
			t.Fatalf("boxes %v: %s", boxes, err)
		}
		if err := grid.Tile(dec.Domain().Box(), boxes); err != nil {
			t.Fatal(err)
		}
	})
}

// A neighbour owns the cells behind the face, as found by looking for the
// owner of the cell next to the box.
func TestNeighborOwnsTheNextCell(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		dec := genDecomposition(t)
		d := dec.Domain()
		for rank := range dec.Ranks() {
			b := dec.Box(rank)
			for a := range 3 {
				for _, side := range []int{-1, 1} {
					got, ok := dec.Neighbor(rank, a, side)
					want := -1
					if !b.Empty() {
						cell := b.Low
						if side < 0 {
							cell[a]--
						} else {
							cell[a] += b.Size[a]
						}
						if d.Periodic[a] {
							cell[a] = (cell[a] + d.Size[a]) % d.Size[a]
						}
						for r := range dec.Ranks() {
							if dec.Box(r).ContainsCell(cell) {
								want = r
							}
						}
					}
					if got != want || ok != (want >= 0) {
						t.Fatalf("%v over %v: neighbour of rank %d along axis %d, side %d is %d %t, want %d", d, dec.Processes(), rank, a, side, got, ok, want)
					}
				}
			}
		}
	})
}

// No other factorisation has fewer idle ranks, or as few and less surface.
func TestDefaultProcessesAreBest(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		d := genDomain(20).Draw(t, "domain")
		ranks := rapid.IntRange(1, 60).Draw(t, "ranks")
		dec, err := grid.Decompose(d, ranks)
		if err != nil {
			t.Fatal(err)
		}
		idle, faces := measure(dec)
		for px := 1; px <= ranks; px++ {
			for py := 1; px*py <= ranks; py++ {
				if ranks%(px*py) != 0 {
					continue
				}
				other, err := grid.Decompose(d, ranks, grid.ProcessGrid(px, py, ranks/px/py))
				if err != nil {
					t.Fatal(err)
				}
				if i, f := measure(other); i < idle || i == idle && f < faces {
					t.Fatalf("%v has %d idle ranks and %d faces, %v has %d and %d", dec.Processes(), idle, faces, other.Processes(), i, f)
				}
			}
		}
	})
}

// measure counts ranks without cells and cell faces to other ranks.
func measure(dec grid.Decomposition) (idle int, faces int64) {
	for r := range dec.Ranks() {
		b := dec.Box(r)
		if b.Empty() {
			idle++
			continue
		}
		for a := range 3 {
			if n, ok := dec.Neighbor(r, a, 1); ok && n != r {
				faces += b.Cells() / int64(b.Size[a])
			}
		}
	}
	return idle, faces
}
