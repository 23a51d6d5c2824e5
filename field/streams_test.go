package field_test

import (
	"bytes"
	"testing"

	"github.com/fieldstone-io/fieldstone/device"
	"github.com/fieldstone-io/fieldstone/field"
	"github.com/fieldstone-io/fieldstone/internal/devtest"
	"github.com/fieldstone-io/fieldstone/pack"
)

// Nobody waits for an event that was recorded on a field's stream once the field, and its
// stream with it, is gone: HIP follows a pointer to the queue of the stream then. The ring
// stays for other fields, which come by each of its chunks.
func TestNoEventOutlivesItsStream(t *testing.T) {
	smallSlots(t)
	d := domain(40, 25, 2) // 4 chunks
	leave := map[string]func(t *testing.T, f *field.Field[float64]){
		"cells that were written and waited for": func(t *testing.T, f *field.Field[float64]) {
			must(t, get(f.Sink())(t).WriteCells(onDisk(f, 1), 0))
			must(t, f.Upload())
		},
		"cells that were written": func(t *testing.T, f *field.Field[float64]) {
			must(t, get(f.Sink())(t).WriteCells(onDisk(f, 1), 0))
		},
		"cells that the mirror's refresh waited for": func(t *testing.T, f *field.Field[float64]) {
			must(t, get(f.Sink())(t).WriteCells(onDisk(f, 1), 0))
			get(f.View())(t)
		},
		"cells that were read": func(t *testing.T, f *field.Field[float64]) {
			must(t, get(f.Source())(t).ReadCells(make([]byte, 8*d.Cells()), 0))
		},
		"cells that are packed ahead": func(t *testing.T, f *field.Field[float64]) {
			must(t, get(f.Source())(t).ReadCells(make([]byte, 8), 0))
		},
		"cells that nobody reads any more": func(t *testing.T, f *field.Field[float64]) {
			s := get(f.Source())(t)
			must(t, s.ReadCells(make([]byte, 8), 0))
			must(t, s.ReadCells(make([]byte, 8), 1900))
		},
		"cells that were lent": func(t *testing.T, f *field.Field[float64]) {
			s := get(f.Source())(t).(pack.LendSource)
			s.ReturnCells(get(s.LendCells(0, 800))(t))
		},
	}
	spaces := map[string]func(s device.Space) device.Space{
		"":                  func(s device.Space) device.Space { return s },
		", without kernels": func(s device.Space) device.Space { return plain{s} },
	}
	devtest.Run(t, func(t *testing.T, dev devtest.Device) {
		for what, begin := range leave {
			for how, without := range spaces {
				for _, wrapped := range []bool{false, true} {
					if dev.Slow && (wrapped || how != "") {
						continue
					}
					name := what + how
					if wrapped {
						name += ", on the solver's stream"
					}
					t.Run(name, func(t *testing.T) {
						space := get(dev.Open())(t)
						s := without(space)
						after := get(field.New[float64](d, d.Box(), field.In(s)))(t)
						put(t, after, 2)
						if wrapped {
							stream, mem := get(space.NewStream())(t), get(space.Allocate(8*d.Cells()))(t)
							f := get(field.WrapDevice[float64](d, d.Box(), mem.Ptr(), on{stream, s}, nil))(t)
							put(t, f, 1)
							begin(t, f)
							free(t, f.Free, stream.Close, mem.Free)
						} else {
							f := get(field.New[float64](d, d.Box(), field.In(s)))(t)
							put(t, f, 1)
							begin(t, f)
							must(t, f.Free())
						}
						for seed := range 3 {
							must(t, get(after.Sink())(t).WriteCells(onDisk(after, float64(seed)), 0))
							b := make([]byte, 8*d.Cells())
							must(t, get(after.Source())(t).ReadCells(b, 0))
							if !bytes.Equal(b, onDisk(after, float64(seed))) {
								t.Error("other cells")
							}
						}
						// A field that needs larger chunks waits until the ring is idle.
						larger := get(field.New[float64](d, d.Box(), field.In(s), field.Ring(8192, 5)))(t)
						must(t, get(larger.Sink())(t).WriteCells(onDisk(larger, 1), 0))
						free(t, larger.Free, after.Free, space.Close)
					})
				}
			}
		}
	})
}

// on is a stream that says it is another space's.
type on struct {
	device.Stream
	space device.Space
}

func (s on) Space() device.Space { return s.space }

// One field is freed while another one comes by the chunks that it has left.
func TestFreeWhileAnotherFieldComesByItsChunks(t *testing.T) {
	smallSlots(t)
	d := domain(40, 25, 2) // 4 chunks
	devtest.Run(t, func(t *testing.T, dev devtest.Device) {
		space := get(dev.Open())(t)
		after := get(field.New[float64](d, d.Box(), field.In(space)))(t)
		cells := onDisk(after, 1)
		for range 20 {
			f := get(field.New[float64](d, d.Box(), field.In(space)))(t)
			must(t, get(f.Sink())(t).WriteCells(cells, 0))
			freed := make(chan error)
			go func() { freed <- f.Free() }()
			must(t, get(after.Sink())(t).WriteCells(cells, 0))
			must(t, <-freed)
		}
		must(t, after.Upload())
		checkOwned(t, after, 1)
		free(t, after.Free, space.Close)
	})
}
