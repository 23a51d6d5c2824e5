// Package stepper keeps the phase field of the Allen-Cahn example in the memory of
// the host or of a device, and advances it there. A solver uses a [Stepper] without
// knowing where its cells are:
//
//	s, err := stepper.New(space, model, domain, box, sides) // space nil: on the host
//	...
//	err = s.Gather()     // the outermost cells to buffers on the host
//	...                  // exchange them with the neighbours
//	err = s.Scatter()    // what came to the ghost cells
//	err = s.Step()
//
// On a device nothing but these faces travels, through pinned memory; the cells
// beyond walls, and those at the other end of a periodic axis that isn't cut, are
// found by the kernel itself. Steps are queued: the host waits when it needs faces,
// or looks at the field.
//
// The kernel is allencahn.cu, one source for CUDA and HIP. What a driver loads is
// compiled from it and committed; scripts/kernels compiles it again. The emulated
// device runs the host's code instead.
package stepper
