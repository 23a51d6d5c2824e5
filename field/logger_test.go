package field_test

import (
	"context"
	"log/slog"
	"testing"
	"time"

	"github.com/fieldstone-io/fieldstone/device"
	"github.com/fieldstone-io/fieldstone/device/emulated"
	"github.com/fieldstone-io/fieldstone/field"
)

// plainSpace is a space without kernels for boxes, which counts holds.
type plainSpace struct {
	device.Space
	depth int
}

func (s *plainSpace) Hold()    { s.depth++ }
func (s *plainSpace) Release() { s.depth-- }

// asking is a handler that calls ask for each record.
type asking struct{ ask func() }

func (asking) Enabled(context.Context, slog.Level) bool    { return true }
func (a asking) WithAttrs([]slog.Attr) slog.Handler        { return a }
func (a asking) WithGroup(string) slog.Handler             { return a }
func (a asking) Handle(context.Context, slog.Record) error { a.ask(); return nil }

// A logger is the solver's: it may use the field that it hears of, and change the current
// context of its thread.
func TestALoggerIsCalledWithoutLocksAndHolds(t *testing.T) {
	for _, reads := range []bool{true, false} {
		space := &plainSpace{Space: get(emulated.New())(t)}
		heard := 0
		var f *field.Field[float64]
		log := slog.New(asking{func() {
			heard++
			f.Residency()
			if space.depth != 0 {
				t.Error("the context of the space is held")
			}
		}})
		d := domain(8, 4, 2)
		f = get(field.New[float64](d, d.Box(), field.In(space), field.Transfer(field.Direct), field.Logger(log)))(t)
		done := make(chan error, 1)
		go func() {
			cells := make([]byte, 8*64)
			if reads {
				s, err := f.Source()
				if err == nil {
					err = s.ReadCells(cells, 0)
				}
				done <- err
				return
			}
			s, err := f.Sink()
			if err == nil {
				err = s.WriteCells(cells, 0)
			}
			done <- err
		}()
		select {
		case err := <-done:
			must(t, err)
		case <-time.After(time.Minute):
			t.Fatal("the logger waits for a lock")
		}
		if heard == 0 {
			t.Error("there was no warning")
		}
		must(t, f.Free())
		must(t, space.Close())
	}
}
