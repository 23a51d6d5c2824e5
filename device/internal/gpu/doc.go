// Package gpu is what the spaces over a vendor's driver have in common: what
// the interfaces of package device promise beyond what a driver does. The
// driver itself is an [API].
//
//   - Each call runs with the space's context current on an OS thread of its
//     own, and leaves the thread as it was.
//   - Memory, streams, events and modules are used by calls, and freed by
//     none that is still using them. What wasn't freed is reported by Close.
//   - The first sticky error is kept with the call that met it. Later calls
//     fail with it, those that free something succeed.
//   - Host memory that isn't pinned is copied before the call returns, so that
//     nobody has to keep it for a driver that might use it later.
package gpu
