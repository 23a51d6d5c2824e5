package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"math"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/fieldstone-io/fieldstone/comm"
	"github.com/fieldstone-io/fieldstone/device"
	"github.com/fieldstone-io/fieldstone/device/emulated"
	"github.com/fieldstone-io/fieldstone/grid"
	"github.com/fieldstone-io/fieldstone/publish"
)

// small is a run that takes a moment.
func small(t *testing.T) settings {
	set := defaults()
	set.grid = [3]int{11, 9, 8}
	set.periodic = [3]bool{true, false, false}
	set.start = startRandom
	set.steps = 30
	set.progress = false
	set.saves.Checkpoint.Directory = filepath.Join(t.TempDir(), "out")
	set.saves.Checkpoint.Every = 10
	return set
}

func (set settings) bundle(increment int64) string {
	return filepath.Join(set.saves.Checkpoint.Directory, publish.StepName(increment))
}

func runRanks(t *testing.T, ranks int, set settings) {
	t.Helper()
	err := comm.Run(ranks, func(c *comm.Comm) error { return run(t.Context(), c, set, t.Output()) })
	if err != nil {
		t.Fatal(err)
	}
}

// read returns the bits of the cells of a bundle.
func read(t *testing.T, bundle string) []uint64 {
	t.Helper()
	b, err := publish.OpenBundle(bundle)
	if err != nil {
		t.Fatal(err)
	}
	defer b.Close()
	if err := b.Verify(t.Context(), nil); err != nil {
		t.Fatal(err)
	}
	box := b.Metadata().Domain.Box()
	cells := make([]float64, box.Cells())
	if err := b.ReadBox("phi", box, cells); err != nil {
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
	g, w := read(t, got), read(t, want)
	for i := range w {
		if g[i] != w[i] {
			t.Fatalf("%s: cell %d is %v, want %v", got, i, math.Float64frombits(g[i]), math.Float64frombits(w[i]))
		}
	}
}

func TestSameBitsOnAnyDeviceAndRanks(t *testing.T) {
	whole := small(t)
	runRanks(t, 1, whole)
	for _, tc := range []struct {
		device    string
		processes [3]int
		progress  bool
	}{
		{"host", [3]int{2, 2, 1}, false},
		{"host", [3]int{1, 1, 10}, true}, // two ranks own nothing
		{"emulated:0", [3]int{1, 1, 1}, true},
		{"emulated:0", [3]int{1, 2, 1}, false},
		{"emulated", [3]int{3, 1, 2}, true},
		{firstGPU, [3]int{1, 1, 1}, true},
		{firstGPU, [3]int{2, 1, 2}, false},
		{secondGPU, [3]int{1, 1, 1}, false},
		{secondGPU, [3]int{3, 2, 1}, true},
	} {
		t.Run(fmt.Sprintf("%s, %v ranks", tc.device, tc.processes), func(t *testing.T) {
			set := whole
			set.saves.Checkpoint.Directory = filepath.Join(t.TempDir(), "cut")
			set.device, set.processes, set.progress = find(t, tc.device), tc.processes, tc.progress
			runRanks(t, tc.processes[0]*tc.processes[1]*tc.processes[2], set)
			for _, increment := range []int64{10, 20, 30} {
				mustBeEqual(t, set.bundle(increment), whole.bundle(increment))
			}
		})
	}
}

func TestStartDoesNotDependOnDeviceAndRanks(t *testing.T) {
	for _, start := range []string{startSphere, startPlane} {
		whole := small(t)
		whole.start, whole.steps = start, 1
		whole.periodic[0] = false
		runRanks(t, 1, whole)
		cut := whole
		cut.saves.Checkpoint.Directory = filepath.Join(t.TempDir(), "cut")
		cut.device, cut.processes = "emulated", [3]int{2, 2, 1}
		runRanks(t, 4, cut)
		mustBeEqual(t, cut.bundle(1), whole.bundle(1))
	}
}

func TestRestartOnAnotherDeviceEqualsUninterruptedRun(t *testing.T) {
	whole := small(t)
	runRanks(t, 1, whole)
	for _, devices := range [][4]string{
		{"emulated", "host", "emulated:1", "emulated:2"},
		{firstGPU, "host", secondGPU, "emulated"},
	} {
		t.Run(strings.Join(devices[:], ", "), func(t *testing.T) {
			parts := small(t)
			for i, part := range []struct {
				ranks int
				steps int64
			}{{2, 7}, {3, 15}, {1, 22}, {4, 30}} {
				parts.device, parts.steps = find(t, devices[i]), part.steps
				runRanks(t, part.ranks, parts)
				parts.saves.RestartFrom = publish.Latest
			}
			for _, increment := range []int64{10, 20, 30} {
				mustBeEqual(t, parts.bundle(increment), whole.bundle(increment))
			}
		})
	}
}

// With one rank nothing but checkpoints comes from the device: the owned cells, once
// each time. What goes there is the start, ghost cells included.
func TestCheckpointsCopyTheOwnedCellsOnce(t *testing.T) {
	set := small(t)
	set.device = "watched"
	watch.opened = nil
	runRanks(t, 1, set)
	n := set.grid
	cells, padded := int64(n[0]*n[1]*n[2]), int64((n[0]+2)*(n[1]+2)*(n[2]+2))
	got := watch.opened[0].Transfers()
	if want := 3 * 8 * cells; got.ToHost.Bytes != want {
		t.Errorf("%d bytes came from the device, want %d", got.ToHost.Bytes, want)
	}
	if want := 8 * padded; got.ToDevice.Bytes != want {
		t.Errorf("%d bytes went to the device, want %d", got.ToDevice.Bytes, want)
	}
}

// The energy includes the faces between ranks, once each.
func TestMeasuresDontDependOnDeviceAndRanks(t *testing.T) {
	measure := func(ranks int, set settings) (energy, share float64) {
		t.Helper()
		err := comm.Run(ranks, func(c *comm.Comm) error {
			sim, err := newSimulation(t.Context(), c, set)
			if err != nil {
				return err
			}
			defer sim.close()
			for range 3 {
				if err := sim.advance(t.Context()); err != nil {
					return err
				}
			}
			e, s, err := sim.measure(t.Context())
			if c.Rank() == 0 {
				energy, share = e, s
			}
			return err
		})
		if err != nil {
			t.Fatal(err)
		}
		return energy, share
	}
	set := small(t)
	wantEnergy, wantShare := measure(1, set)
	for _, tc := range []struct {
		device string
		ranks  int
	}{{"host", 6}, {"emulated", 1}, {"emulated", 4}} {
		set.device = tc.device
		energy, share := measure(tc.ranks, set)
		if math.Abs(energy/wantEnergy-1) > 1e-12 || math.Abs(share/wantShare-1) > 1e-12 {
			t.Errorf("%d ranks on %s: energy %v, share %v, want %v, %v", tc.ranks, tc.device, energy, share, wantEnergy, wantShare)
		}
	}
}

func TestSphereIsInTheMiddle(t *testing.T) {
	set := defaults()
	set.grid = [3]int{32, 48, 40}
	set.model.Spacing, set.model.Step = 0.5, 0.03
	d := grid.Domain{Size: set.grid, Spacing: [3]float64{0.5, 0.5, 0.5}}
	for _, tc := range []struct {
		radius, want float64
	}{{0, 6}, {4.5, 4.5}} {
		set.radius = tc.radius
		shape := set.shape(d)
		// The middle is between two cells.
		for _, cell := range [][3]int{{15, 23, 19}, {16, 24, 20}, {15, 24, 19}} {
			want := math.Tanh((tc.want - math.Sqrt(3)/4) / (math.Sqrt2 * 2))
			if got := shape(cell); math.Abs(got-want) > 1e-14 {
				t.Errorf("radius %v: phi of %v is %v, want %v", tc.radius, cell, got, want)
			}
		}
	}
}

// A watched device is an emulated one that a test gets hold of.
type watched struct {
	mu     sync.Mutex
	opened []*emulated.Device
}

func (w *watched) Devices() ([]device.Properties, error) {
	return []device.Properties{{Kind: "watched"}}, nil
}

func (w *watched) Open(string) (device.Space, error) {
	dev, err := emulated.New()
	w.mu.Lock()
	defer w.mu.Unlock()
	w.opened = append(w.opened, dev)
	return dev, err
}

var watch watched

func init() { device.RegisterDriver("watched", &watch) }

func TestDevicesAreGivenBack(t *testing.T) {
	for _, tc := range []struct {
		name  string
		spoil func(set *settings)
		fails bool
	}{
		{"after a run that ends", func(*settings) {}, false},
		{"after a restart that fails", func(set *settings) { set.saves.RestartFrom = "nowhere" }, true},
		{"after a decomposition that can't be", func(set *settings) { set.processes = [3]int{7, 1, 1} }, true},
	} {
		t.Run(tc.name, func(t *testing.T) {
			set := small(t)
			set.device = "watched"
			tc.spoil(&set)
			watch.opened = nil
			err := comm.Run(2, func(c *comm.Comm) error { return run(t.Context(), c, set, t.Output()) })
			if (err != nil) != tc.fails {
				t.Errorf("error is %v", err)
			}
			if len(watch.opened) != 2 {
				t.Errorf("%d devices were opened, want one for each rank", len(watch.opened))
			}
			for _, dev := range watch.opened {
				if live := dev.Live(); live != (emulated.Live{}) {
					t.Errorf("%+v is left", live)
				}
				if err := dev.Close(); !errors.Is(err, device.ErrClosed) {
					t.Errorf("a device wasn't closed: %v", err)
				}
			}
		})
	}
}

func TestWallTimeSavesAndStops(t *testing.T) {
	whole := small(t)
	runRanks(t, 1, whole)

	set := small(t)
	set.device, set.wallTime, set.progress = "emulated", time.Nanosecond, true
	set.processes = [3]int{1, 1, 3}
	var out bytes.Buffer
	err := comm.Run(3, func(c *comm.Comm) error {
		if c.Rank() == 0 {
			return run(t.Context(), c, set, &out)
		}
		return run(t.Context(), c, set, t.Output())
	})
	if err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{
		"11 x 9 x 8 cells on 1 x 1 x 3 ranks, rank 0 on emulated:0",
		"step 1 of 30 (3 %): time 0.1, free energy",
		"stopped at step 1: the wall time of 1ns is over\n",
		"the last bundle is " + set.bundle(1) + "\n",
	} {
		if !strings.Contains(out.String(), want) {
			t.Errorf("output doesn't have %q:\n%s", want, out.String())
		}
	}
	set.wallTime, set.saves.RestartFrom, set.processes = time.Hour, publish.Latest, [3]int{}
	runRanks(t, 2, set)
	mustBeEqual(t, set.bundle(30), whole.bundle(30))
}

func TestRestartRefusesAnotherModel(t *testing.T) {
	set := small(t)
	runRanks(t, 1, set)
	set.steps, set.saves.RestartFrom = 40, publish.Latest
	set.model.Kappa /= 2
	err := comm.Run(2, func(c *comm.Comm) error { return run(t.Context(), c, set, t.Output()) })
	if err == nil || !strings.Contains(err.Error(), "the method of the bundle") {
		t.Errorf("error is %v", err)
	}
}

func TestUnavailableDeviceIsOneErrorOnAllRanks(t *testing.T) {
	set := small(t)
	set.device = "emulated:99"
	err := comm.Run(3, func(c *comm.Comm) error {
		err := run(t.Context(), c, set, t.Output())
		var agreed *comm.RankError
		if !errors.As(err, &agreed) || !strings.Contains(err.Error(), `-device emulated:99: open device "emulated:99": unavailable`) {
			return fmt.Errorf("rank %d: error is %v", c.Rank(), err)
		}
		return nil
	})
	if err != nil {
		t.Error(err)
	}
}

// As one rank's device that is lacking, or out of memory.
func TestOneRankWithoutDeviceFailsAll(t *testing.T) {
	set := small(t)
	err := comm.Run(3, func(c *comm.Comm) error {
		mine := set
		if c.Rank() == 1 {
			mine.device = "emulated:99"
		}
		err := run(t.Context(), c, mine, t.Output())
		var agreed *comm.RankError
		if !errors.As(err, &agreed) || agreed.Rank != 1 {
			return fmt.Errorf("rank %d: error is %v", c.Rank(), err)
		}
		return nil
	})
	if err != nil {
		t.Error(err)
	}
}

func TestCancelledRunFailsOnAllRanks(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	set := small(t)
	set.device = "emulated"
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

func TestDescription(t *testing.T) {
	if got := describe(nil); got != "host" {
		t.Errorf("the host is %q", got)
	}
	space, err := device.Open("emulated:2")
	if err != nil {
		t.Fatal(err)
	}
	defer space.Close()
	if got := describe(space); !strings.HasPrefix(got, "emulated:2 (Emulated device") {
		t.Errorf("the device is %q", got)
	}
}
