// Package devtest says which devices the tests of fields and bundles run on: emulated
// ones, and those of the CUDA and HIP backends on their fake drivers; or the one that
// the environment variable FIELDSTONE_DEVICE names, and nothing else.
//
//	devtest.Run(t, func(t *testing.T, d devtest.Device) {
//		space, err := d.Open()
//		...
//	})
package devtest
