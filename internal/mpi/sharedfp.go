//go:build mpi

package mpi

import (
	"os"
	"strings"
)

// sharedPointers chooses the components of Open MPI's OMPIO that keep pointers into files
// which ranks share. Nothing here uses such pointers, but every open prepares them. Two of
// the three components make a file beside the data for that, where ranks are on several nodes,
// or where a file is only written. If that file can't be made on one rank, the open or the
// close never returns on the others.
const sharedPointers = "OMPI_MCA_sharedfp"

// withoutSharedPointers leaves these two out, unless the user has chosen some. The third one
// steps back where ranks are on several nodes; without any, OMPIO opens nothing. The library
// looks at the variable when the first file is opened. Others don't know it.
func withoutSharedPointers() {
	if _, chosen := os.LookupEnv(sharedPointers); chosen || !strings.HasPrefix(Implementation(), "openmpi") {
		return
	}
	// Where it can't be set the open is as it was.
	_ = os.Setenv(sharedPointers, "^individual,lockedfile")
}
