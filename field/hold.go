package field

import "github.com/fieldstone-io/fieldstone/device"

// hold lets the calls on the device that follow, of this goroutine, share the cost of
// making its context current, until release. Nothing of the solver's runs meanwhile.
func (g *ring) hold() {
	if h, ok := g.space.(device.Holder); ok {
		h.Hold()
	}
}

// release ends the newest hold of the goroutine.
func (g *ring) release() {
	if h, ok := g.space.(device.Holder); ok {
		h.Release()
	}
}

// holding reads past the mirror within a hold.
func (g *ring) holding(rd *reader, past func(rd *reader) error) error {
	g.hold()
	defer g.release()
	return past(rd)
}
