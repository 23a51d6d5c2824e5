package mpi

import (
	"errors"
	"syscall"
	"testing"
)

func TestErrorCarriesErrno(t *testing.T) {
	cases := []struct {
		name, class, text string
		errno             syscall.Errno
		want              string
	}{
		{
			"a class that names an errno",
			"MPI_ERR_NO_SPACE", "MPI_ERR_NO_SPACE: no space on disk", syscall.ENOSPC,
			"write psi: MPI_ERR_NO_SPACE: no space on disk",
		},
		{
			"the quota",
			"MPI_ERR_QUOTA", "Quota exceeded", syscall.EDQUOT,
			"write psi: MPI_ERR_QUOTA: Quota exceeded",
		},
		{
			"a vague class with the system's words, over several lines",
			"MPI_ERR_IO", "Other I/O error, error stack:\nADIOI_GEN_WRITECONTIG(58)..: Other I/O error No space left on device", syscall.ENOSPC,
			"write psi: MPI_ERR_IO: Other I/O error, error stack: ADIOI_GEN_WRITECONTIG(58)..: Other I/O error No space left on device",
		},
		{
			"nothing known",
			"MPI_ERR_OTHER", "unknown", 0,
			"write psi: MPI_ERR_OTHER: unknown",
		},
	}
	for _, tc := range cases {
		t.Run(tc.name, func(t *testing.T) {
			err := newError("write psi", tc.class, tc.text)
			if err.Error() != tc.want {
				t.Errorf("text is %q, want %q", err, tc.want)
			}
			if tc.errno == 0 && err.Unwrap() != nil {
				t.Errorf("wraps %v", err.Unwrap())
			}
			if tc.errno != 0 && !errors.Is(err, tc.errno) {
				t.Errorf("is not %v", tc.errno)
			}
		})
	}
}

func TestImplementationNames(t *testing.T) {
	for words, want := range map[string]string{
		"Open MPI v4.1.4, package: Debian OpenMPI, ident: 4.1.4, repo rev: v4.1.4": "openmpi 4.1.4",
		"MPICH Version:\t4.0.2\nMPICH Release date:\tThu Apr  7\n":                 "mpich 4.0.2",
		"Some MPI 1.0 \nmore": "Some MPI 1.0",
	} {
		if got := implementation(words); got != want {
			t.Errorf("%q is %q, want %q", words, got, want)
		}
	}
}
