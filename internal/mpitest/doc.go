// Package mpitest runs tests on several ranks.
//
// [Run] calls a test's body on every rank of a group. In a binary with the tag
// mpi, the test executes itself again under the launcher of the MPI that it is
// linked to, once per number of ranks; without the tag the ranks are goroutines
// of comm.Run. So the same test covers the logic everywhere and MPI where there
// is one:
//
//	func TestSum(t *testing.T) {
//		mpitest.Run(t, []int{1, 3}, func(t *mpitest.T, c *comm.Comm) {
//			v := []int64{1}
//			if err := c.AllReduceInt64(t.Context(), comm.Sum, v); err != nil || v[0] != int64(c.Size()) {
//				t.Errorf("sum is %d, %v", v[0], err)
//			}
//		})
//	}
//
// What the test function does before Run is done again on every rank, so set up
// and check inside the body.
//
// A launch that hangs is ended by a watchdog, which shows the goroutines of
// every rank. A rank that ends with a non-zero status, or without having run
// the body to its end, fails the test.
//
// [Command] launches a program that the test binary registered, for tests that
// kill ranks and look at what is left.
package mpitest
