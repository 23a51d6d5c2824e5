//go:build !mpi

package mpi

import (
	"os"
	"time"
)

// Enabled says whether the program was built with MPI.
const Enabled = false

// Comm is a communicator. Without MPI there is none.
type Comm struct{}

// File is an open file. Without MPI there is none.
type File struct{}

// Implementation names the MPI library.
func Implementation() string { return "none" }

// World fails: there is no MPI.
func World(limit time.Duration) (*Comm, error) { return nil, ErrUnavailable }

// FromFortran fails: there is no MPI.
func FromFortran(handle int, limit time.Duration) (*Comm, error) { return nil, ErrUnavailable }

// Finalize has nothing to end.
func Finalize() error { return nil }

// Rank is 0.
func (c *Comm) Rank() int { return 0 }

// Size is 1.
func (c *Comm) Size() int { return 1 }

// Fortran is no handle.
func (c *Comm) Fortran() int { return 0 }

// SetHangLimit has nothing to limit.
func (c *Comm) SetHangLimit(d time.Duration) {}

// Free fails.
func (c *Comm) Free() error { return ErrUnavailable }

// Abort ends the process.
func (c *Comm) Abort(code int) { os.Exit(code) }

// Split fails.
func (c *Comm) Split(color, key int, limit time.Duration) (*Comm, error) {
	return nil, ErrUnavailable
}

// SplitNode fails.
func (c *Comm) SplitNode(limit time.Duration) (*Comm, error) { return nil, ErrUnavailable }

// AllReduceInt64 fails.
func (c *Comm) AllReduceInt64(op Op, v []int64, limit time.Duration) error { return ErrUnavailable }

// AllReduceFloat64 fails.
func (c *Comm) AllReduceFloat64(op Op, v []float64, limit time.Duration) error {
	return ErrUnavailable
}

// Exchange fails.
func (c *Comm) Exchange(digest uint64, op Op, floats bool, words []int64, limit time.Duration) (same bool, err error) {
	return false, ErrUnavailable
}

// Stop has nothing to stop.
func (c *Comm) Stop(why error) {}

// Broadcast fails.
func (c *Comm) Broadcast(root int, data []byte, limit time.Duration) ([]byte, error) {
	return nil, ErrUnavailable
}

// AllGather fails.
func (c *Comm) AllGather(data []byte, limit time.Duration) ([][]byte, error) {
	return nil, ErrUnavailable
}

// GatherShort fails.
func (c *Comm) GatherShort(data []byte, longest int, limit time.Duration) ([][]byte, error) {
	return nil, ErrUnavailable
}

// SendRecv fails.
func (c *Comm) SendRecv(to int, send []byte, from int, recv []byte, tag int, limit time.Duration) error {
	return ErrUnavailable
}

// OpenFile fails.
func (c *Comm) OpenFile(path string, write bool, hints map[string]string) (*File, error) {
	return nil, ErrUnavailable
}

// WriteAt fails.
func (f *File) WriteAt(b []byte, offset int64) (n int, err error) { return 0, ErrUnavailable }

// ReadAt fails.
func (f *File) ReadAt(b []byte, offset int64) (n int, err error) { return 0, ErrUnavailable }

// Hints fails.
func (f *File) Hints() (map[string]string, error) { return nil, ErrUnavailable }

// Close fails.
func (f *File) Close() error { return ErrUnavailable }
