package device

// Holder is a [Space] whose driver keeps a current context for each OS thread, so
// that each call has to make the space's own one current, and to restore what was
// current before. Several calls in a row share that between Hold and Release:
//
//	if h, ok := space.(device.Holder); ok {
//		h.Hold()
//		defer h.Release()
//	}
//
// A caller that has no use for that needs neither.
type Holder interface {
	// Hold makes the space's context current on the OS thread of the calling
	// goroutine, and keeps the goroutine on the thread, until Release. The
	// goroutine calls nothing else meanwhile that changes the current context,
	// or relies on it; it may use other spaces, and other goroutines may use this
	// one. If the driver refuses, that is the error of the calls that follow.
	Hold()
	// Release ends the newest hold of the calling goroutine, which is one of this
	// space: it restores what was current before. Holds nest.
	Release()
}
