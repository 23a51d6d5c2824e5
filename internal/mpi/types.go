package mpi

import "strings"

// Op is a reduction.
type Op int

// The reductions; the order is that of package comm.
const (
	Sum Op = iota
	Min
	Max
	BitXor
	BitOr
)

// MessageWords is how many numbers one message of Exchange carries.
const MessageWords = 61

// implementation makes a name such as "openmpi 4.1.4" of a library's own words.
func implementation(words string) string {
	line, _, _ := strings.Cut(words, "\n")
	if rest, ok := strings.CutPrefix(line, "Open MPI v"); ok {
		version, _, _ := strings.Cut(rest, ",")
		return "openmpi " + version
	}
	if rest, ok := strings.CutPrefix(line, "MPICH Version:"); ok {
		return "mpich " + strings.TrimSpace(rest)
	}
	return strings.TrimSpace(line)
}
