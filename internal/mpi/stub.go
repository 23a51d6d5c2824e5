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

// File is a collective file. Without MPI there is none.
type File struct{}

func Implementation() string { return "none" }

func World(limit time.Duration) (*Comm, error) { return nil, ErrUnavailable }

func FromFortran(handle int, limit time.Duration) (*Comm, error) { return nil, ErrUnavailable }

func Finalize() error { return nil }

func (c *Comm) Rank() int { return 0 }

func (c *Comm) Size() int { return 1 }

func (c *Comm) Fortran() int { return 0 }

func (c *Comm) Free() error { return ErrUnavailable }

func (c *Comm) Abort(code int) { os.Exit(code) }

func (c *Comm) Split(color, key int, limit time.Duration) (*Comm, error) {
	return nil, ErrUnavailable
}

func (c *Comm) SplitNode(limit time.Duration) (*Comm, error) { return nil, ErrUnavailable }

func (c *Comm) AllReduceInt64(op Op, v []int64, limit time.Duration) error { return ErrUnavailable }

func (c *Comm) AllReduceFloat64(op Op, v []float64, limit time.Duration) error {
	return ErrUnavailable
}

func (c *Comm) Broadcast(root int, data []byte, limit time.Duration) ([]byte, error) {
	return nil, ErrUnavailable
}

func (c *Comm) AllGather(data []byte, limit time.Duration) ([][]byte, error) {
	return nil, ErrUnavailable
}

func (c *Comm) SendRecv(to int, send []byte, from int, recv []byte, tag int, limit time.Duration) error {
	return ErrUnavailable
}

func (c *Comm) OpenFile(path string, write bool, hints map[string]string) (*File, error) {
	return nil, ErrUnavailable
}

func (f *File) SetView(disp int64, elemSize int, global, local, start [3]int) error {
	return ErrUnavailable
}

func (f *File) WriteAtAll(elemOffset int64, buf []byte, elemSize int) error { return ErrUnavailable }

func (f *File) ReadAtAll(elemOffset int64, buf []byte, elemSize int) error { return ErrUnavailable }

func (f *File) Hints() (map[string]string, error) { return nil, ErrUnavailable }

func (f *File) Close() error { return ErrUnavailable }
