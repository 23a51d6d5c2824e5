// Package faultfs is a filesystem that fails on purpose, for tests: what a program does to
// real files, an MPI library's and HDF5's calls among it, fails where a [Rule] says.
//
// [Mount] shows a directory under another path, through FUSE. A [Control] counts the calls
// of some processes there, or fails, shortens, delays, or carries out and then denies the
// n-th call of one of them:
//
//	faultfs.Mount(t, base, mount)
//	control := faultfs.Control(mount)
//	err := control.Fail(faultfs.Rule{Op: "fsync", Action: faultfs.Err, Argument: int(syscall.EIO), Times: 1})
//
// The filesystem is written in C, in csrc, and compiled by the test that uses it. It takes
// Linux, libfuse3 with its header, a C compiler, and a system that lets this user mount:
// otherwise the test is skipped, and the log says why.
//
// The tests of this package sweep the calls of the library through all faults, see
// docs/reliability.md.
package faultfs
