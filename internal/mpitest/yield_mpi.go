//go:build mpi

package mpitest

// #cgo linux LDFLAGS: -ldl
import "C"

// The file beside this one makes MPICH's ranks give their core away while they wait.
