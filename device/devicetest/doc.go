// Package devicetest checks whether an implementation of [device.Space] does
// what that interface promises. A backend runs it in its tests:
//
//	func TestConformance(t *testing.T) {
//		devicetest.Run(t, devicetest.Config{
//			Open:  func() (device.Space, error) { return device.Open("emulated:0") },
//			Image: image,
//		})
//	}
//
// The suite is itself tested, by backends with planted bugs; [Plant] makes
// them, also for tests of code that uses a space.
//
// # Concurrency
//
// The checks of one call of Run run one after the other, each on a space of
// its own.
package devicetest
