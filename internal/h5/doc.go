// Package h5 is the only code that touches the HDF5 library.
//
// It reads and writes what run files consist of: groups, datasets and attributes
// of booleans, integers, floats and strings. Paths lead from the root of the file,
// such as "settings/time/points"; the root itself is "/". Shapes are in C order, the
// slowest axis first, as h5py and h5dump show them; no shape means a scalar.
//
//	f, err := h5.Create("run.h5")
//	err = h5.Write(f, "time", []float64{0, 1}, 2)
//	err = f.SetAttributeString("time", "unit", "s")
//	err = errors.Join(f.Sync(), f.Close())
//
// Every call checks types, ranks and lengths before the library sees them, opens
// what it needs and closes it again: a [File] is the only thing that stays open.
//
// # Build tag
//
// The tag hdf5 brings in the library, with cgo, by pkg-config's hdf5-serial. Without
// it everything else is the same, and Create and Open return [ErrUnsupported].
//
// # Concurrency
//
// All calls may be made from several goroutines. They wait for each other: one lock
// guards the library, which is not thread-safe. Code outside this package that calls
// HDF5 in the same process is not covered, and must close its files itself: the library
// does not do so at the end of the process.
//
// # Failures
//
// The first failure of a call that changes a file is kept, and later writes, Flush,
// Sync and Close return it: after a full disk the library itself reports success.
// Such a file has no defined content. Errors are [*Error]s that name the file and
// the object; what the library said is a [*LibraryError] with the system's errno, so
// that errors.Is finds syscall.ENOSPC or fs.ErrNotExist. Nothing is printed.
//
// # Files of others
//
// Sizes that a file declares are compared with what the file can hold before memory
// is reserved. Links to other files, data in other files and filters from outside the
// library are refused. Files are written in the format of HDF5 1.8, which its readers
// and all later ones open, and whose object headers have checksums. Strings of
// variable length are read by this package itself: the library follows a damaged
// reference to them wherever it leads. That the library withstands every damaged file
// is not promised: the tests look for what it does not.
package h5
