package publish

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"testing"

	"github.com/fieldstone-io/fieldstone/comm"
	"github.com/fieldstone-io/fieldstone/device"
	"github.com/fieldstone-io/fieldstone/field"
	"github.com/fieldstone-io/fieldstone/internal/devtest"
	"github.com/fieldstone-io/fieldstone/pack"
)

// A twoBuffers is the state of a solver that computes on a device: a field around the
// first of its two buffers.
type twoBuffers struct {
	stream  device.Stream
	buffers [2]device.Memory
	phi     *field.Field[float64]
}

func newTwoBuffers(space device.Space, path field.Path) (b *twoBuffers, err error) {
	b = &twoBuffers{}
	if b.stream, err = space.NewStream(); err != nil {
		return nil, err
	}
	for i := range b.buffers {
		if b.buffers[i], err = space.Allocate(8 * testDomain.Cells()); err != nil {
			return nil, err
		}
		if err := b.compute(i, 1); err != nil {
			return nil, err
		}
	}
	b.phi, err = field.WrapDevice[float64](testDomain, testDomain.Box(), b.buffers[0].Ptr(), b.stream, nil, field.Transfer(path))
	return b, err
}

// compute stands for a step that leaves its result in a buffer.
func (b *twoBuffers) compute(buffer int, value float64) error {
	cells := make([]float64, testDomain.Cells())
	for i := range cells {
		cells[i] = value
	}
	return errors.Join(b.stream.CopyToDevice(b.buffers[buffer].Ptr(), pack.Bytes(cells)), b.stream.Synchronize())
}

func (b *twoBuffers) close() error {
	return errors.Join(b.phi.Free(), b.buffers[0].Free(), b.buffers[1].Free(), b.stream.Close())
}

// firstCell reads a field of a bundle, or a dump, whose cells are all alike.
func firstCell(path string) (float64, error) {
	text, err := os.ReadFile(path)
	if err != nil {
		return 0, err
	}
	cells := make([]float64, len(text)/8)
	if _, err := binary.Decode(text, binary.LittleEndian, cells); err != nil {
		return 0, err
	}
	for _, v := range cells {
		if v != cells[0] {
			return 0, fmt.Errorf("%s has %v and %v", path, cells[0], v)
		}
	}
	return cells[0], nil
}

// The solver has looked at its field on the host, goes on by a step on the device, from 1
// to 2, and saves: a bundle and a dump. It has the device's cells whether or not the solver
// has said that it wrote them. Two rows can't be known: a solver that asks for the mirror
// and doesn't say that it is stale, and one whose result is in a buffer that it hasn't
// wrapped.
func TestDeviceWritesThatNobodyNoted(t *testing.T) {
	devtest.Run(t, func(t *testing.T, d devtest.Device) {
		for _, tt := range []struct {
			name       string
			look, note bool
			path       field.Path
			buffer     int // that the step leaves its result in
			want       float64
		}{
			{"no look", false, false, field.Automatic, 0, 2},
			{"a look, noted", true, true, field.Automatic, 0, 2},
			{"a look", true, false, field.Automatic, 0, 2},
			{"a look, directly", true, false, field.Direct, 0, 2},
			{"a look, by the mirror, noted", true, true, field.Mirror, 0, 2},
			{"a look, by the mirror", true, false, field.Mirror, 0, 1},
			{"the other buffer", false, true, field.Automatic, 1, 1},
		} {
			t.Run(tt.name, func(t *testing.T) {
				space := must1(d.Open())
				b := must1(newTwoBuffers(space, tt.path))
				if tt.look {
					must1(b.phi.View())
				}
				err := b.compute(tt.buffer, 2)
				if tt.note {
					err = errors.Join(err, b.phi.NoteDeviceWrite())
				}
				if err != nil {
					t.Fatal(err)
				}
				dir, fields := t.TempDir(), []field.Named{{ID: "phi", Field: b.phi}}
				bundle := filepath.Join(dir, "step_1")
				if err := SaveBundle(context.Background(), comm.Self(), bundle, State{Fields: fields, Increment: 1}); err != nil {
					t.Fatal(err)
				}
				dumps := must1(NewDumps(context.Background(), comm.Self(), filepath.Join(dir, "phi_%d.bin"), fields))
				must1(dumps.Write(context.Background(), 1, 1))
				dumps.Close()
				for _, path := range []string{filepath.Join(bundle, "fields/phi.bin"), filepath.Join(dir, "phi_1.bin")} {
					if got := must1(firstCell(path)); got != tt.want {
						t.Errorf("%s has %v, want %v", filepath.Base(path), got, tt.want)
					}
				}
				if err := errors.Join(b.close(), space.Close()); err != nil {
					t.Fatal(err)
				}
			})
		}
	})
}
