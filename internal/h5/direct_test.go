//go:build hdf5

package h5

import (
	"errors"
	"os"
	"path/filepath"
	"slices"
	"testing"
)

// big has the row-major index of each element as its value.
func big(shape ...int) []float64 {
	n, _ := product(shape)
	data := make([]float64, n)
	for i := range data {
		data[i] = float64(i)
	}
	return data
}

// Large reads go past the library where the data is in few large pieces, and give what
// was written, in files that are open for reading and for writing.
func TestLargeReads(t *testing.T) {
	shape := []int{6, 7, 130, 160} // 7 MB
	for _, c := range []struct {
		name         string
		layout       Layout
		start, count []int
		direct       bool
	}{
		{"all of it", Layout{}, []int{0, 0, 0, 0}, shape, true},
		{"rows", Layout{}, []int{1, 0, 0, 0}, []int{5, 7, 130, 160}, true},
		{"planes", Layout{}, []int{0, 1, 0, 0}, []int{6, 6, 130, 160}, true},
		{"half planes", Layout{}, []int{0, 0, 11, 0}, []int{6, 7, 115, 160}, true},
		{"short runs", Layout{}, []int{0, 0, 0, 1}, []int{6, 7, 130, 159}, false},
		{"chunks of a row", Layout{Chunk: []int{1, 7, 130, 160}}, []int{0, 0, 0, 0}, shape, true},
		{"chunks that end with the array", Layout{Chunk: []int{1, 1, 130, 160}}, []int{0, 0, 0, 0}, shape, true},
		{"chunks that end behind it", Layout{Chunk: []int{4, 2, 130, 160}}, []int{0, 0, 0, 0}, shape, true},
		{"parts of chunks", Layout{Chunk: []int{2, 3, 130, 160}}, []int{1, 1, 0, 0}, []int{5, 6, 130, 160}, true},
		{"parts of chunks and rows", Layout{Chunk: []int{2, 3, 130, 160}}, []int{0, 0, 5, 0}, []int{6, 7, 120, 160}, true},
		{"reserved chunks", Layout{Chunk: []int{1, 4, 130, 160}, Extendible: true, Early: true}, []int{0, 0, 0, 0}, shape, true},
		{"more chunks than are looked up", Layout{Chunk: []int{1, 1, 65, 160}}, []int{0, 0, 0, 0}, shape, false},
		{"compressed chunks", Layout{Chunk: []int{1, 7, 130, 160}, Deflate: 1}, []int{0, 0, 0, 0}, shape, false},
		{"chunks across the rows", Layout{Chunk: []int{6, 7, 130, 32}}, []int{0, 0, 0, 0}, shape, false},
	} {
		t.Run(c.name, func(t *testing.T) {
			name := filepath.Join(t.TempDir(), "file.h5")
			f, err := Create(name)
			if err != nil {
				t.Fatal(err)
			}
			c.layout.Shape = shape
			all := big(shape...)
			err = errors.Join(CreateDataset[float64](f, "x", c.layout), WriteSlab(f, "x", all, []int{0, 0, 0, 0}, shape))
			if err != nil {
				t.Fatal(err)
			}
			var want []float64
			at := func(i, j, k int) int { return ((i*shape[1]+j)*shape[2] + k) * shape[3] }
			for i := c.start[0]; i < c.start[0]+c.count[0]; i++ {
				for j := c.start[1]; j < c.start[1]+c.count[1]; j++ {
					for k := c.start[2]; k < c.start[2]+c.count[2]; k++ {
						row := all[at(i, j, k):][:shape[3]]
						want = append(want, row[c.start[3]:c.start[3]+c.count[3]]...)
					}
				}
			}
			for _, mode := range []string{"while it is written", "later"} {
				got := make([]float64, len(want))
				if err := ReadSlab(f, "x", got, c.start, c.count); err != nil || !slices.Equal(got, want) {
					t.Errorf("%s: other values, %v", mode, err)
				}
				if read, _, err := Read[float64](f, "x"); err != nil || !slices.Equal(read, all) {
					t.Errorf("%s: other values of everything, %v", mode, err)
				}
				err := f.on("read", "x", "", false, func(o object) error {
					info, err := o.info()
					if err != nil {
						return err
					}
					clear(got)
					direct := o.(*libraryObject).readDirect(info, bufferOf(got), &slab{c.start, c.count})
					if direct != c.direct || direct && !slices.Equal(got, want) {
						t.Errorf("%s: past the library: %v", mode, direct)
					}
					return nil
				})
				if err = errors.Join(err, f.Close()); err != nil {
					t.Fatal(err)
				}
				if f, err = Open(name); err != nil {
					t.Fatal(err)
				}
			}
			if err := f.Close(); err != nil {
				t.Fatal(err)
			}
		})
	}
}

// What can't be read past the library is left to it.
func TestLargeReadsOfWhatIsNotThere(t *testing.T) {
	name := filepath.Join(t.TempDir(), "file.h5")
	f, err := Create(name)
	if err != nil {
		t.Fatal(err)
	}
	const n = 1 << 20
	err = errors.Join(
		CreateDataset[float64](f, "never written", Layout{Shape: []int{n}}),
		CreateDataset[float64](f, "written in part", Layout{Shape: []int{8, n / 8}, Chunk: []int{1, n / 8}}),
		WriteSlab(f, "written in part", []float64{1}, []int{3, 5}, []int{1, 1}),
		Write(f, "cut", big(n), n),
		f.Flush(),
	)
	if err != nil {
		t.Fatal(err)
	}
	for _, path := range []string{"never written", "written in part"} {
		got, _, err := Read[float64](f, path)
		if err != nil {
			t.Fatal(err)
		}
		want := make([]float64, n)
		if path == "written in part" {
			want[3*n/8+5] = 1
		}
		if !slices.Equal(got, want) {
			t.Errorf("%s: other values", path)
		}
	}
	if err := f.Close(); err != nil {
		t.Fatal(err)
	}
	// A file that is cut while it is open ends in zeros, as the library has it.
	if f, err = Open(name); err != nil {
		t.Fatal(err)
	}
	pieces, err := f.Pieces("cut", 0, n)
	if err == nil {
		err = os.Truncate(name, pieces[0].Offset+8*10)
	}
	if err != nil {
		t.Fatal(err)
	}
	got, _, err := Read[float64](f, "cut")
	want := make([]float64, n)
	copy(want, big(10))
	if err != nil || !slices.Equal(got, want) {
		t.Errorf("other values, %v", err)
	}
	if err := f.Close(); err != nil {
		t.Fatal(err)
	}
}

// The library is quick only with a memory that has the shape of the part of the file.
func TestMemoryHasTheShapeOfThePart(t *testing.T) {
	f, err := Create(filepath.Join(t.TempDir(), "file.h5"))
	if err != nil {
		t.Fatal(err)
	}
	l := Layout{Shape: []int{4, 5, 6}, Chunk: []int{2, 5, 6}, Extendible: true}
	err = errors.Join(CreateDataset[float64](f, "x", l), f.on("read", "x", "", false, func(o object) error {
		memory, file, err := o.(*libraryObject).spaces(&slab{[]int{1, 0, 2}, []int{3, 5, 4}})
		if err != nil {
			return err
		}
		defer closeSpaces(memory, file)
		if dims, _, err := memory.SimpleExtentDims(); err != nil || !slices.Equal(dims, []uint{3, 5, 4}) {
			t.Errorf("%v, %v", dims, err)
		}
		return nil
	}), f.Close())
	if err != nil {
		t.Fatal(err)
	}
}
