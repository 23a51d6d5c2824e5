package publish

import (
	"bytes"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"math"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/fieldstone-io/fieldstone/brick"
	"github.com/fieldstone-io/fieldstone/comm"
	"github.com/fieldstone-io/fieldstone/field"
	"github.com/fieldstone-io/fieldstone/grid"
	"github.com/fieldstone-io/fieldstone/internal/mpitest"
	"github.com/fieldstone-io/fieldstone/internal/vfs"
)

// cut decomposes a domain for a number of ranks.
type cut struct {
	name      string
	processes func(n int) [3]int // nil: what grid.Decompose finds
}

var cuts = []cut{
	{"near-cubic", nil},
	{"slabs of z", func(n int) [3]int { return [3]int{1, 1, n} }},
	{"columns of x and y", func(n int) [3]int {
		if n%2 == 0 {
			return [3]int{2, n / 2, 1}
		}
		return [3]int{n, 1, 1}
	}},
	{"columns of y and z", func(n int) [3]int {
		if n%2 == 0 {
			return [3]int{1, n / 2, 2}
		}
		return [3]int{1, n, 1}
	}},
}

func (d cut) box(domain grid.Domain, c *comm.Comm) (grid.Box, error) {
	var opts []grid.Option
	if d.processes != nil {
		p := d.processes(c.Size())
		opts = append(opts, grid.ProcessGrid(p[0], p[1], p[2]))
	}
	dec, err := grid.Decompose(domain, c.Size(), opts...)
	if err != nil {
		return grid.Box{}, err
	}
	return dec.Box(c.Rank()), nil
}

// sizes are uneven for most numbers of ranks, and too small for all of them: on
// three ranks and more some own nothing.
var sizes = [][3]int{{5, 7, 3}, {9, 4, 1}, {16, 1, 1}, {3, 2, 2}, {1, 1, 1}}

func sized(n int) grid.Domain {
	d := testDomain
	d.Size = sizes[n]
	return d
}

var (
	host64   = space{}
	host32   = space{single: true}
	device64 = space{onDevice: true}
	device32 = space{single: true, onDevice: true}
	second   = []space{host32, device64, host64, device32} // beside a plain one
)

func spacesOf(size int) []space { return []space{host64, second[size%len(second)]} }

func halos(n int) [3]int { return [3]int{n % 5, (n / 2) % 5, (n / 3) % 5} }

// TestEveryDecompositionWritesTheSameBytesAndReadsThem saves bundles of all
// sizes in all decompositions, and loads each in another one, into fields with
// another halo. The files are those of a single rank without MPI, whose bundles
// are loaded too.
func TestEveryDecompositionWritesTheSameBytesAndReadsThem(t *testing.T) {
	const increment = 3
	onComponents(t, func(t *testing.T, opts ...mpitest.Option) {
		alone := sharedDir(t, func(dir string) {
			for n := range sizes {
				if err := saveAlone(dir, n, increment); err != nil {
					t.Fatal(err)
				}
			}
		})
		mpitest.Run(t, []int{1, 2, 3, 4, 7}, func(t *mpitest.T, c *comm.Comm) {
			for n := range sizes {
				for k := range cuts {
					if every := []int{1, 1, 1, 2, 2, 4, 4, 4}[c.Size()]; (n+k)%every != 0 {
						continue // more ranks than cores are slow
					}
					dir := filepath.Join(t.TempDir(), fmt.Sprintf("size-%d-cut-%d", n, k))
					saveOpts := []Option{WithDurability(None)}
					if n == k {
						saveOpts = nil
					}
					if k == 2 { // several rounds per file
						saveOpts = append(saveOpts, Bricks(brick.Staging(64)))
					}
					must(t, c, saveSized(c, dir, n, k, increment, saveOpts...))
					var err error
					if c.Rank() == 0 {
						err = errors.Join(checkBundle(vfs.OS, dir, sized(n), increment, spacesOf(n)...),
							sameBundle(dir, filepath.Join(alone, StepName(int64(n)))))
					}
					if err := c.Agree(t.Context(), err); err != nil {
						t.Fatalf("size %v, %s: %v", sizes[n], cuts[k].name, err)
					}
					other := (k + 1 + n%3) % len(cuts)
					var loadOpts []Option
					if (n+k)%2 == 0 {
						loadOpts = append(loadOpts, InPlace())
					}
					from := dir
					if k == 1 {
						from = filepath.Join(alone, StepName(int64(n)))
					}
					if err := c.Agree(t.Context(), loadSized(c, from, n, other, increment, loadOpts...)); err != nil {
						t.Fatalf("size %v, %s into %s: %v", sizes[n], cuts[k].name, cuts[other].name, err)
					}
				}
			}
		}, opts...)
	})
}

func saveAlone(dir string, n int, increment int64) error {
	return saveSized(comm.Self(), filepath.Join(dir, StepName(int64(n))), n, 0, increment, Bricks(brick.Using(brick.POSIX)))
}

func saveSized(c *comm.Comm, dir string, n, k int, increment int64, opts ...Option) error {
	box, err := cuts[k].box(sized(n), c)
	if err != nil {
		return err
	}
	p, err := newPart(sized(n), box, halos(n+k), spacesOf(n)...)
	if err != nil {
		return err
	}
	if err := p.set(increment); err != nil {
		return err
	}
	err = SaveBundle(context.Background(), c, dir, p.state(increment), opts...)
	return errors.Join(err, p.check(increment), p.close())
}

func loadSized(c *comm.Comm, dir string, n, k int, increment int64, opts ...Option) error {
	box, err := cuts[k].box(sized(n), c)
	if err != nil {
		return err
	}
	p, err := newPart(sized(n), box, halos(n+2*k+1), spacesOf(n)...)
	if err != nil {
		return err
	}
	l, err := LoadBundle(context.Background(), c, dir, Request{Fields: p.named(), Method: "euler"}, opts...)
	if err != nil {
		return errors.Join(err, p.untouched(), p.close())
	}
	if l.Metadata.AcceptedIncrement != increment || l.Metadata.AcceptedTime != testTime(increment) || !l.Verified {
		err = fmt.Errorf("loaded %+v", l)
	}
	return errors.Join(err, p.check(increment), p.close())
}

// sameBundle reports whether two bundles have the same bytes, but for what their
// metadata say about the writer.
func sameBundle(a, b string) error {
	var texts [2][]byte
	for i, dir := range []string{a, b} {
		m, err := ReadMetadata(dir)
		if err != nil {
			return err
		}
		m.Writer, m.Decomposition = nil, nil
		if texts[i], err = EncodeMetadata(m); err != nil {
			return err
		}
		for _, id := range m.Fields {
			file, err := os.ReadFile(filepath.Join(dir, "fields", id+".bin"))
			if err != nil {
				return err
			}
			texts[i] = append(texts[i], file...)
		}
		sums, err := os.ReadFile(filepath.Join(dir, "checksums.txt"))
		if err != nil {
			return err
		}
		for line := range strings.Lines(string(sums)) {
			if !strings.Contains(line, "metadata.json") {
				texts[i] = append(texts[i], line...)
			}
		}
	}
	if string(texts[0]) != string(texts[1]) {
		return fmt.Errorf("%s and %s differ", a, b)
	}
	return nil
}

// TestABundleOfOneLaunchRestartsInAnother writes on three ranks and reads on
// others, each time by a new launch.
func TestABundleOfOneLaunchRestartsInAnother(t *testing.T) {
	onComponents(t, func(t *testing.T, opts ...mpitest.Option) {
		dir := sharedDir(t, nil)
		mpitest.Run(t, []int{3}, func(t *mpitest.T, c *comm.Comm) {
			for n := range sizes {
				must(t, c, saveSized(c, filepath.Join(dir, StepName(int64(n))), n, 0, 8))
			}
		}, opts...)
		mpitest.Run(t, []int{1, 2, 4, 7}, func(t *mpitest.T, c *comm.Comm) {
			for n := range sizes {
				if c.Size() == 7 && n%2 == 1 {
					continue // more ranks than cores are slow
				}
				must(t, c, loadSized(c, filepath.Join(dir, StepName(int64(n))), n, 1+n%3, 8))
			}
		}, opts...)
	})
}

// TestGroupsOfALaunchPublishAndLoadOnTheirOwn splits the ranks into groups of two
// sizes that work at the same time, and then reads each group's bundle in the
// other one.
func TestGroupsOfALaunchPublishAndLoadOnTheirOwn(t *testing.T) {
	onComponents(t, func(t *testing.T, opts ...mpitest.Option) {
		mpitest.Run(t, []int{3, 4}, func(t *mpitest.T, c *comm.Comm) {
			color := 0
			if c.Rank() == 1 {
				color = 1
			}
			group, err := c.Split(color, -c.Rank())
			must(t, c, err)
			path := func(color int) string { return filepath.Join(t.TempDir(), fmt.Sprintf("group-%d", color)) }
			must(t, c, saveSized(group, path(color), 0, 2, 6))
			must(t, c, loadSized(group, path(1-color), 0, 3, 6))
			must(t, c, loadSized(c, path(1), 0, 1, 6))
			must(t, c, group.Free())
		}, opts...)
	})
}

// TestBundlesOfVersion1LoadOnAnyNumberOfRanks loads the golden bundle and, where
// it is beside the checkout, that of the reference writer.
func TestBundlesOfVersion1LoadOnAnyNumberOfRanks(t *testing.T) {
	golden := filepath.Join("testdata", "golden-v1")
	reference := filepath.Join("..", "..", "shared", "cases", "openpfc-v1-bundle")
	// sin(0.1 i), rounded correctly, as the C library does and Go does not.
	sin := [10]float64{0.0, 0.09983341664682815, 0.19866933079506122, 0.2955202066613396, 0.3894183423086505, 0.479425538604203, 0.5646424733950355, 0.6442176872376911, 0.7173560908995228, 0.7833269096274834}
	psi := map[string]func(i, j, k int) float64{
		golden: wave,
		reference: func(i, j, k int) float64 {
			return float64(sin[i]+float64(1e-3*float64(j))) - float64(7.25*float64(k))
		},
	}
	mpitest.Run(t, []int{1, 2, 3, 4, 7}, func(t *mpitest.T, c *comm.Comm) {
		for _, dir := range []string{golden, reference} {
			if _, err := os.Stat(dir); dir == reference && os.IsNotExist(err) {
				t.Logf("%s is not here", dir)
				continue
			}
			m, err := ReadMetadata(dir)
			must(t, c, err)
			for k := range cuts {
				if c.Size() == 7 && k > 1 {
					continue // more ranks than cores are slow
				}
				box, err := cuts[k].box(m.Domain, c)
				must(t, c, err)
				a, err := field.New[float64](m.Domain, box, field.Halo(k))
				must(t, c, err)
				b, err := field.New[float64](m.Domain, box)
				must(t, c, err)
				l, err := LoadBundle(t.Context(), c, dir, Request{Method: "etd1", Fields: []field.Named{{ID: "temperature", Field: b}, {ID: "psi", Field: a}}})
				if sameOutcome(t, c, err) != nil {
					t.Fatal(err)
				}
				if l.Verified || l.Sidecar != nil || l.Metadata.FormatVersion != 1 || l.Metadata.AcceptedTime != 12.375 ||
					l.Metadata.AcceptedIncrement != 99 || l.Metadata.ResultCounter != 0 || l.Metadata.Domain.Periodic != [3]bool{true, true, true} {
					t.Errorf("%s: loaded %+v", dir, l)
				}
				checkCells(t, a, psi[dir])
				checkCells(t, b, count)
			}
			// What its writer could not say is not taken from it.
			f, err := field.New[float64](m.Domain, grid.Box{})
			if c.Rank() == 0 {
				f, err = field.New[float64](m.Domain, m.Domain.Box())
			}
			must(t, c, err)
			for _, want := range []Request{
				{Method: "euler", Fields: []field.Named{{ID: "psi", Field: f}}},
				{Fields: []field.Named{{ID: "phi", Field: f}}},
			} {
				_, err := LoadBundle(t.Context(), c, dir, want)
				if err := sameOutcome(t, c, err); !errors.Is(err, ErrMismatch) {
					t.Errorf("%s, wanted as %v: %v", dir, want, err)
				}
			}
		}
	})
}

func checkCells(t *mpitest.T, f *field.Field[float64], want func(i, j, k int) float64) {
	t.Helper()
	data, err := f.View()
	if err != nil {
		t.Fatal(err)
	}
	for c := range f.Owned().Cells() {
		g := f.Global(c[0], c[1], c[2])
		got, want := data[f.Index(c[0], c[1], c[2])], want(g[0], g[1], g[2])
		if math.Float64bits(got) != math.Float64bits(want) {
			t.Fatalf("cell %v is %v, want %v", g, got, want)
		}
	}
}

// TestDumpsAreTheSameBytesOnAnyNumberOfRanks writes the series of a complex field
// and of a float32 one, each with a float64 one beside it.
func TestDumpsAreTheSameBytesOnAnyNumberOfRanks(t *testing.T) {
	onComponents(t, func(t *testing.T, opts ...mpitest.Option) {
		mpitest.Run(t, []int{1, 2, 3}, func(t *mpitest.T, c *comm.Comm) {
			testDumps(t, c, "psi", func(cell [3]int, increment int64) complex128 {
				return complex(cellValue("re", increment, cell), cellValue("im", increment, cell))
			})
			testDumps(t, c, "T", func(cell [3]int, increment int64) float32 {
				return narrowBits(cellBits("T", true, increment, cell))
			})
		}, opts...)
	})
}

func testDumps[T float32 | complex128](t *mpitest.T, c *comm.Comm, id string, value func(cell [3]int, increment int64) T) {
	t.Helper()
	box, err := cuts[2].box(testDomain, c)
	must(t, c, err)
	f, err := field.New[T](testDomain, box, field.Halo(2))
	must(t, c, err)
	plain, err := field.New[float64](testDomain, box)
	must(t, c, err)
	dumps, err := NewDumps(t.Context(), c, filepath.Join(t.TempDir(), id+"_%s_%03d.bin"), []field.Named{{ID: id, Field: f}, {ID: "plain", Field: plain}})
	must(t, c, err)
	defer dumps.Close()
	for increment := range int64(3) {
		data, err := f.MutableView()
		must(t, c, err)
		for p := range f.Owned().Cells() {
			data[f.Index(p[0], p[1], p[2])] = value(f.Global(p[0], p[1], p[2]), increment)
		}
		paths, err := dumps.Write(t.Context(), increment, testTime(increment))
		if err := sameOutcome(t, c, err); err != nil {
			t.Fatal(err)
		}
		var want []byte
		for k := range testDomain.Size[2] {
			for j := range testDomain.Size[1] {
				for i := range testDomain.Size[0] {
					switch v := any(value([3]int{i, j, k}, increment)).(type) {
					case complex128:
						want = binary.LittleEndian.AppendUint64(want, math.Float64bits(real(v)))
						want = binary.LittleEndian.AppendUint64(want, math.Float64bits(imag(v)))
					case float32:
						want = binary.LittleEndian.AppendUint64(want, widenBits(v))
					}
				}
			}
		}
		path := paths[0]
		got, err := os.ReadFile(path)
		if err != nil || !bytes.Equal(got, want) {
			t.Errorf("%s has %d bytes that are not those of the field, %v", path, len(got), err)
		}
	}
	if series, err := os.ReadFile(filepath.Join(t.TempDir(), id+".xmf")); err != nil || strings.Count(string(series), "_002.bin") != 2 {
		t.Errorf("the series is\n%s\n%v", series, err)
	}
}
