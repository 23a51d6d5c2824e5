// Package runfile writes and reads the HDF5 files of a run: its output in segments,
// its last and previous checkpoint, the records of its settings, layout and stepper.
package runfile
