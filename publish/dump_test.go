package publish

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"math"
	"strings"
	"testing"

	"github.com/fieldstone-io/fieldstone/comm"
	"github.com/fieldstone-io/fieldstone/field"
	"github.com/fieldstone-io/fieldstone/grid"
	"github.com/fieldstone-io/fieldstone/internal/vfs"
	"github.com/fieldstone-io/fieldstone/internal/xdmf"
)

// dumpSteps writes dumps of a field of type T whose cell (i, j, k) holds
// value(increment, cell).
func dumpSteps[T float32 | float64 | complex128](t *testing.T, fsys vfs.FS, ranks int, increments []int64, value func(int64, [3]int) T) error {
	t.Helper()
	return onRanks(t, ranks, func(c *comm.Comm) error {
		ctx := context.Background()
		dec, err := grid.Decompose(testDomain, ranks)
		if err := c.Agree(ctx, err); err != nil {
			return err
		}
		f, err := field.New[T](testDomain, dec.Box(c.Rank()), field.Halo(2))
		if err := c.Agree(ctx, err); err != nil {
			return err
		}
		d, err := NewDumps(ctx, c, "/data/psi_%04d.bin", []field.Named{{ID: "psi", Field: f}}, Filesystem(fsys))
		if err != nil {
			return err
		}
		defer d.Close()
		for _, n := range increments {
			data, err := f.MutableView()
			if err == nil {
				for cell := range f.Owned().Cells() {
					data[f.Index(cell[0], cell[1], cell[2])] = value(n, f.Global(cell[0], cell[1], cell[2]))
				}
			}
			if err := c.Agree(ctx, err); err != nil {
				return err
			}
			paths, err := d.Write(ctx, n, float64(n)/4)
			if err != nil {
				return err
			}
			if want := fmt.Sprintf("/data/psi_%04d.bin", n); len(paths) != 1 || paths[0] != want {
				return fmt.Errorf("paths %q, want %s", paths, want)
			}
		}
		return nil
	})
}

func readSeries(t *testing.T, fsys vfs.FS) xdmf.Series {
	t.Helper()
	return readSeriesAt(t, fsys, "/data/psi.xmf")
}

func readSeriesAt(t *testing.T, fsys vfs.FS, path string) xdmf.Series {
	t.Helper()
	data, err := vfs.ReadFile(fsys, path, 1<<20)
	if err != nil {
		t.Fatal(err)
	}
	s, err := xdmf.Read(data)
	if err != nil {
		t.Fatal(err)
	}
	return s
}

func TestDumpsHoldTheGlobalArrayAndXDMFListsThem(t *testing.T) {
	for _, ranks := range []int{1, 2, 4} {
		fsys := newFS(t)
		err := dumpSteps(t, fsys, ranks, []int64{0, 20, 12345}, func(n int64, c [3]int) complex128 {
			return complex(float64(n)+float64(c[0]), float64(c[1])-100*float64(c[2]))
		})
		if err != nil {
			t.Fatal(err)
		}
		for _, n := range []int64{0, 20, 12345} {
			data, err := vfs.ReadFile(fsys, fmt.Sprintf("/data/psi_%04d.bin", n), 1<<20)
			if err != nil {
				t.Fatal(err)
			}
			var want []byte
			for k := range testDomain.Size[2] {
				for j := range testDomain.Size[1] {
					for i := range testDomain.Size[0] {
						want = binary.LittleEndian.AppendUint64(want, math.Float64bits(float64(n)+float64(i)))
						want = binary.LittleEndian.AppendUint64(want, math.Float64bits(float64(j)-100*float64(k)))
					}
				}
			}
			if string(data) != string(want) {
				t.Errorf("%d ranks: the dump of increment %d has other bytes", ranks, n)
			}
		}
		s := readSeries(t, fsys)
		var got []string
		for _, step := range s.Steps {
			got = append(got, fmt.Sprint(step.Time, step.Arrays[0].Path, step.Arrays[0].Complex))
		}
		if want := "0psi_0000.bintrue 5psi_0020.bintrue 3086.25psi_12345.bintrue"; strings.ReplaceAll(strings.Join(got, "|"), " ", "") != strings.ReplaceAll(want, " ", "|") {
			t.Errorf("the series lists %q", got)
		}
	}
}

func TestALaterRunGoesOnWithTheSeries(t *testing.T) {
	fsys := newFS(t)
	value := func(n int64, c [3]int) float32 { return float32(n) }
	for _, run := range [][]int64{{4, 8, 12}, {8, 16}} {
		if err := dumpSteps(t, fsys, 2, run, value); err != nil {
			t.Fatal(err)
		}
	}
	var times []float64
	for _, step := range readSeries(t, fsys).Steps {
		times = append(times, step.Time)
	}
	if fmt.Sprint(times) != "[1 2 4]" {
		t.Errorf("the series has the times %v: want those of 4, and of 8 and 16 of the later run", times)
	}
}

func TestAForeignXDMFFileIsNotOverwritten(t *testing.T) {
	fsys := newFS(t)
	if err := vfs.WriteFile(fsys, "/data/psi.xmf", []byte("<Xdmf>mine</Xdmf>"), 0o666, true); err != nil {
		t.Fatal(err)
	}
	err := dumpSteps(t, fsys, 2, []int64{1}, func(int64, [3]int) float64 { return 0 })
	wantError(t, err, nil, "/data/psi.xmf", "rank 0")
	data, err := vfs.ReadFile(fsys, "/data/psi.xmf", 1<<20)
	if err != nil || string(data) != "<Xdmf>mine</Xdmf>" {
		t.Errorf("the file now has %q, %v", data, err)
	}
}

func TestBadDumpsAreRefusedOnAllRanks(t *testing.T) {
	type write struct {
		increment int64
		time      float64
	}
	for name, w := range map[string]func(c *comm.Comm) write{
		"negative increment": func(*comm.Comm) write { return write{-1, 0} },
		"NaN time":           func(*comm.Comm) write { return write{1, math.NaN()} },
		"another increment":  func(c *comm.Comm) write { return write{int64(c.Rank()), 0} },
		"another time":       func(c *comm.Comm) write { return write{1, float64(c.Rank())} },
	} {
		t.Run(name, func(t *testing.T) {
			fsys := newFS(t)
			before := fsys.Dump()
			err := onRanks(t, 2, func(c *comm.Comm) error {
				ctx := context.Background()
				s, err := newTestSolver(c, 1, "psi")
				if err := c.Agree(ctx, err); err != nil {
					return err
				}
				d, err := NewDumps(ctx, c, "/data/psi_%d.bin", s.named(), Filesystem(fsys))
				if err != nil {
					return fmt.Errorf("test: %w", err)
				}
				defer d.Close()
				v := w(c)
				_, err = d.Write(ctx, v.increment, v.time)
				return err
			})
			if !errors.Is(err, ErrInput) {
				t.Errorf("got %v, want ErrInput", err)
			}
			sameFiles(t, fsys, before)
		})
	}
}
