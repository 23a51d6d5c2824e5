//go:build mpi

package mpi

import (
	"os"
	"strings"
)

// sharedPointers names the components of Open MPI's OMPIO that keep pointers into files
// which ranks share. Nothing here uses such pointers, but every open prepares them, and
// makes a file for that: beside the data where ranks are on several nodes. Where that file
// can't be made the open fails on rank 0 alone and never returns on the others.
const sharedPointers = "OMPI_MCA_sharedfp"

// withoutSharedPointers leaves these components out, unless the user has chosen some. The
// library looks at the variable when the first file is opened. Others don't know it.
func withoutSharedPointers() {
	if _, chosen := os.LookupEnv(sharedPointers); chosen || !strings.HasPrefix(Implementation(), "openmpi") {
		return
	}
	// Where it can't be set the open is as it was.
	_ = os.Setenv(sharedPointers, "^lockedfile,sm")
}
