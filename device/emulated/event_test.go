package emulated_test

import (
	"testing"

	"github.com/fieldstone-io/fieldstone/device"
)

// Who asks for an event after its stream was closed is told, as on a real device it would
// be told nothing and might read memory that is somebody else's. The event itself is good
// for another stream.
func TestAnEventOfAClosedStream(t *testing.T) {
	d := open(t)
	other := newStream(t, d)
	for what, ask := range map[string]func(e device.Event) error{
		"query":       func(e device.Event) error { _, err := e.Query(); return err },
		"synchronize": func(e device.Event) error { return e.Synchronize() },
		"wait":        func(e device.Event) error { return other.Wait(e) },
	} {
		s := newStream(t, d)
		e, err := d.NewEvent()
		must(t, err)
		must(t, s.Record(e))
		must(t, ask(e))
		must(t, s.Close())
		wantIs(t, what, ask(e), device.ErrInvalid)
		must(t, other.Record(e))
		must(t, ask(e))
		must(t, e.Close())
	}
	must(t, other.Close())
	must(t, d.Close())
}
