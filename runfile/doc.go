// Package runfile writes and reads the HDF5 files of a run: its output in segments,
// its last and previous checkpoint, the records of its settings, layout and stepper.
//
// A time loop opens a [Session], which writes the files of its run by itself. This is
// what the session is made of, and what reads the files afterwards:
//
//	WriteOutput      one solution to a file of any name
//	WriteCheckpoint  the last checkpoint of a run; the one before becomes the previous
//	ReadOutput       a file, or the segments of a run joined
//	ReadRun          the segments of a run that exist, joined
//	ReadState        one saved state, or that of a checkpoint
//	ReadCheckpoint   the last checkpoint, or the previous one where that can't be read
//	ReadSettings     the record of the run
//	Inspect, Outline what a file holds, or joined segments hold, without their states
//	Faults, Verify   whether all of a file is as it should be
//
// # What is in a file
//
// A [Layout] says of which unknowns the state of a run consists: distributed fields,
// scalars, and unknowns with values at radii, or on momentum grids at radii.
// All but the fields are one vector, [Solution.States]. Fields stay in their files;
// [Solution.ReadField] reads boxes of them.
//
// Solvers of phase fields use fields and scalars. Radial and kinetic unknowns, momentum grids
// and the attributes of the root that begin with runes2p come from the format that these
// files extend, the output format 0.0.5 of the plasma solver Runes2P.
//
// Settings are a [record.Record]. It comes back type for type, so that its hash is that
// of what was written. The page docs/run-file-format.md describes the files as
// h5py or h5dump show them; every version of the format from 0.0.1 on is read.
//
// # Failures
//
// Checkpoints, and outputs with [Atomic], are written to a temporary file that is synced
// and renamed: whenever the program is killed or the disk is full, a path has its old or
// its new content, and one of two checkpoints can be read. A file without the mark that
// is written last is refused as torn. Errors name the file and the object in it, and
// match the sentinel errors of this package and those of the system, such as
// [io/fs.ErrNotExist] and syscall.ENOSPC.
//
// Values have checksums, which whoever reads all of something compares with them: an error
// that matches [ErrChecksum] says that a file has others than were written.
//
// Files of any content can be given to the readers: what a file declares is compared
// with what it can hold before memory is reserved, and links to other files are refused.
//
// # Build tag
//
// The tag hdf5 brings in HDF5, with cgo. Without it the functions that touch a file
// return [ErrNoHDF5].
//
// # Concurrency
//
// All functions may be called from several goroutines; the HDF5 library lets one in at a
// time. A run has one writer: a session holds a lock for it. Readers may come at any
// time. The methods of [Session] are collective, nothing else here is.
package runfile
