package main

import (
	"bytes"
	"context"
	"fmt"
	"image/png"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/fieldstone-io/fieldstone/comm"
	"github.com/fieldstone-io/fieldstone/grid"
	"github.com/fieldstone-io/fieldstone/pack"
	"github.com/fieldstone-io/fieldstone/publish"
)

// small is a run that takes a moment.
func small(dir string) settings {
	set := defaults()
	set.Grid = [2]int{37, 29}
	set.Steps = 60
	set.Checkpoint.Directory = dir
	set.Checkpoint.Every = 20
	set.progress = progressNone
	return set
}

func runRanks(t *testing.T, ranks int, set settings) {
	t.Helper()
	err := comm.Run(ranks, func(c *comm.Comm) error { return run(t.Context(), c, set, t.Output()) })
	if err != nil {
		t.Fatal(err)
	}
}

// read returns the bits of a field of a bundle.
func read(t *testing.T, bundle, id string) []uint64 {
	t.Helper()
	b, err := publish.OpenBundle(bundle)
	if err != nil {
		t.Fatal(err)
	}
	defer b.Close()
	box := b.Metadata().Domain.Box()
	cells := make([]float64, box.Cells())
	if err := b.ReadBox(id, box, cells); err != nil {
		t.Fatal(err)
	}
	bits := make([]uint64, len(cells))
	for i, v := range cells {
		bits[i] = math.Float64bits(v)
	}
	return bits
}

func mustBeEqual(t *testing.T, got, want string) {
	t.Helper()
	for _, id := range []string{"phi", "T"} {
		g, w := read(t, got, id), read(t, want, id)
		if slices.Equal(g, w) {
			continue
		}
		for i := range w {
			if g[i] != w[i] {
				t.Fatalf("%s: cell %d of %s is %v, want %v", got, i, id, math.Float64frombits(g[i]), math.Float64frombits(w[i]))
			}
		}
	}
}

func TestSameBitsOnAnyDecompositionAndHalo(t *testing.T) {
	for _, periodic := range [][2]bool{{false, false}, {true, false}, {false, true}, {true, true}} {
		whole := small(filepath.Join(t.TempDir(), "whole"))
		whole.Periodic = periodic
		// A crystal across the walls, so that what happens there matters.
		whole.Model.Radius = 0.4
		whole.Checkpoint.Every = 0
		runRanks(t, 1, whole)

		for _, tc := range []struct {
			processes [2]int
			halo      int
		}{
			{[2]int{1, 1}, 4},
			{[2]int{2, 1}, 1},
			{[2]int{1, 2}, 2},
			{[2]int{3, 1}, 3},
			{[2]int{1, 3}, 1},
			{[2]int{2, 2}, 4},
			{[2]int{4, 1}, 2},
			{[2]int{3, 2}, 1},
			{[2]int{2, 3}, 3},
			{[2]int{1, 31}, 4}, // boxes thinner than the halo, and two empty ones
		} {
			name := fmt.Sprintf("periodic %v, %d x %d ranks, halo %d", periodic, tc.processes[0], tc.processes[1], tc.halo)
			t.Run(name, func(t *testing.T) {
				set := whole
				set.Checkpoint.Directory = filepath.Join(t.TempDir(), "cut")
				set.processes, set.halo = tc.processes, tc.halo
				runRanks(t, tc.processes[0]*tc.processes[1], set)
				mustBeEqual(t, filepath.Join(set.Checkpoint.Directory, "step_60"), filepath.Join(whole.Checkpoint.Directory, "step_60"))
			})
		}
	}
}

func TestRestartEqualsUninterruptedRun(t *testing.T) {
	whole := small(filepath.Join(t.TempDir(), "whole"))
	runRanks(t, 1, whole)
	end := filepath.Join(whole.Checkpoint.Directory, "step_60")

	for _, tc := range []struct {
		name    string
		restart func(dir string) string
	}{
		{"from latest", func(string) string { return publish.Latest }},
		{"from a path", func(dir string) string { return filepath.Join(dir, "step_40") }},
	} {
		t.Run(tc.name, func(t *testing.T) {
			dir := filepath.Join(t.TempDir(), "parts")
			first := small(dir)
			first.Steps, first.halo = 40, 2
			runRanks(t, 4, first)

			second := small(dir)
			second.processes, second.halo = [2]int{1, 3}, 3
			second.RestartFrom = tc.restart(dir)
			second.events = true
			var out bytes.Buffer
			err := comm.Run(3, func(c *comm.Comm) error {
				if c.Rank() > 0 {
					return run(t.Context(), c, second, new(bytes.Buffer))
				}
				return run(t.Context(), c, second, &out)
			})
			if err != nil {
				t.Fatal(err)
			}
			if want := fmt.Sprintf("@ restart=40 bundle=%s\n", filepath.Join(dir, "step_40")); !strings.Contains(out.String(), want) {
				t.Errorf("events %q don't have %q", out.String(), want)
			}
			mustBeEqual(t, filepath.Join(dir, "step_60"), end)
		})
	}
}

func TestRestartRefusesAnotherModel(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "out")
	set := small(dir)
	set.Steps = 20
	runRanks(t, 1, set)
	set.RestartFrom = publish.Latest
	set.Model.Latent *= 2
	err := comm.Run(2, func(c *comm.Comm) error { return run(t.Context(), c, set, t.Output()) })
	if err == nil || !strings.Contains(err.Error(), "the method of the bundle") {
		t.Errorf("error is %v", err)
	}
}

func TestFinalStateIsSaved(t *testing.T) {
	set := small(filepath.Join(t.TempDir(), "out"))
	set.Steps = 47
	runRanks(t, 2, set)
	m, err := publish.ReadMetadata(filepath.Join(set.Checkpoint.Directory, "step_47"))
	if err != nil {
		t.Fatal(err)
	}
	if m.AcceptedIncrement != 47 || m.AcceptedTime != 47*set.Model.Step {
		t.Errorf("increment %d, time %v", m.AcceptedIncrement, m.AcceptedTime)
	}
}

func TestCancelledRunFailsOnAllRanks(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	set := small(filepath.Join(t.TempDir(), "out"))
	err := comm.Run(3, func(c *comm.Comm) error {
		if err := run(ctx, c, set, t.Output()); err == nil {
			return fmt.Errorf("rank %d went on", c.Rank())
		}
		return nil
	})
	if err != nil {
		t.Error(err)
	}
}

func TestPictureShowsCrystalAndMelt(t *testing.T) {
	set := small(filepath.Join(t.TempDir(), "out"))
	set.picture = filepath.Join(t.TempDir(), "crystal.png")
	runRanks(t, 2, set)
	f, err := os.Open(set.picture)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	img, err := png.Decode(f)
	if err != nil {
		t.Fatal(err)
	}
	if got := img.Bounds().Size(); got.X != 37 || got.Y != 29 {
		t.Fatalf("picture of %v", got)
	}
	if r, _, b, _ := img.At(18, 14).RGBA(); r < 0x7000 || b < 0xd000 {
		t.Errorf("the crystal is %v", img.At(18, 14))
	}
	if r, _, b, _ := img.At(0, 0).RGBA(); r > 0x1000 || b > 0x3000 {
		t.Errorf("the melt is %v", img.At(0, 0))
	}
}

func TestPictureOfNoBundleFails(t *testing.T) {
	if err := writePicture(t.TempDir(), filepath.Join(t.TempDir(), "p.png")); err == nil {
		t.Error("no error")
	}
}

// The ghost cells that the stencil reaches hold the cells of the neighbours,
// diagonal ones included, and at walls the cells beside them.
func TestExchangeFillsGhostCells(t *testing.T) {
	const nx, ny, halo = 7, 5, 2
	for _, tc := range []struct {
		name     string
		periodic [3]bool
		px, py   int
	}{
		{"walls", [3]bool{}, 2, 2},
		{"periodic along x, one rank along x", [3]bool{true, false, false}, 1, 3},
		{"periodic, two ranks along each axis", [3]bool{true, true, false}, 2, 2},
		{"periodic, one rank", [3]bool{true, true, false}, 1, 1},
		{"one column for each rank", [3]bool{true, false, false}, 7, 1},
		{"more ranks than rows", [3]bool{false, true, false}, 1, 6},
	} {
		t.Run(tc.name, func(t *testing.T) {
			d := grid.Domain{Size: [3]int{nx, ny, 1}, Spacing: [3]float64{1, 1, 1}, Periodic: tc.periodic}
			cut, err := grid.Decompose(d, tc.px*tc.py, grid.ProcessGrid(tc.px, tc.py, 1))
			if err != nil {
				t.Fatal(err)
			}
			err = comm.Run(cut.Ranks(), func(c *comm.Comm) error { return checkGhosts(t.Context(), c, cut, halo) })
			if err != nil {
				t.Error(err)
			}
		})
	}
}

func checkGhosts(ctx context.Context, c *comm.Comm, cut grid.Decomposition, halo int) error {
	d, box := cut.Domain(), cut.Box(c.Rank())
	l := pack.Layout{Size: box.Size, Halo: [3]int{halo, halo, 0}}
	fields := [][]float64{make([]float64, l.PaddedCells()), make([]float64, l.PaddedCells())}
	each := func(margin int, visit func(at, x, y int) error) error {
		for j := -margin; j < box.Size[1]+margin; j++ {
			for i := -margin; i < box.Size[0]+margin; i++ {
				if err := visit(l.Index(i, j, 0), box.Low[0]+i, box.Low[1]+j); err != nil {
					return err
				}
			}
		}
		return nil
	}
	const untouched = -1
	for f := range fields {
		for i := range fields[f] {
			fields[f][i] = untouched
		}
	}
	value := func(f, x, y int) float64 { return float64(1000*f + 100*x + y) }
	fill := func(at, x, y int) error {
		for f := range fields {
			fields[f][at] = value(f, x, y)
		}
		return nil
	}
	if !box.Empty() {
		if err := each(0, fill); err != nil {
			return err
		}
	}
	e := newExchange(c, cut, l)
	for range 2 { // the second time with buffers that are there
		if err := e.refresh(ctx, fields...); err != nil {
			return err
		}
	}
	if box.Empty() {
		if slices.Max(fields[0]) > untouched {
			return fmt.Errorf("rank %d owns nothing and has %v", c.Rank(), fields[0])
		}
		return nil
	}
	place := func(axis, k int) int {
		n := d.Size[axis]
		if d.Periodic[axis] {
			return (k + n) % n
		}
		return min(max(k, 0), n-1)
	}
	touched := 0
	err := each(1, func(at, x, y int) error {
		for f := range fields {
			if want := value(f, place(0, x), place(1, y)); fields[f][at] != want {
				return fmt.Errorf("rank %d: cell %d, %d of field %d is %v, want %v", c.Rank(), x, y, f, fields[f][at], want)
			}
		}
		touched++
		return nil
	})
	if err != nil {
		return err
	}
	for _, v := range fields[0] {
		if v == untouched {
			touched++
		}
	}
	if touched != len(fields[0]) {
		return fmt.Errorf("rank %d: ghost cells beyond the reach of the stencil were filled", c.Rank())
	}
	return nil
}
