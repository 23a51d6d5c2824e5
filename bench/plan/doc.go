// Package plan says what is measured: cases, the launches that they are spread
// over, and the lines in which a worker reports.
//
// A launch is one job of MPI: an implementation, one of its I/O components, a number
// of ranks. It works through its cases. A case is one situation, such as four fields
// of 256³ on two slabs in shared memory, and its contestants, which take turns in it.
package plan
