// Package vfs is the filesystem as the publishing protocols see it: a small
// interface, [FS], so that a test can fail the i-th call, or crash after it.
//
// There are three implementations: [OS], the real one; [Mem], in memory, which
// can lose in a crash what no fsync covered; and [Inject], which counts, records
// and fails the calls to another one.
//
// # Concurrency
//
// A filesystem, its files and its locks may be used by several goroutines at
// once. The position that Read and Write share is moved as in [os.File].
//
// # Errors
//
// Errors are [*fs.PathError] or [*os.LinkError] and keep the errno, so that
// errors.Is works with fs.ErrExist, fs.ErrNotExist and syscall.ENOSPC alike.
package vfs
