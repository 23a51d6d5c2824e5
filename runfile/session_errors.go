package runfile

import (
	"errors"

	"github.com/fieldstone-io/fieldstone/comm"
)

// What a caller of a [Session] may want to tell apart. They hold, with errors.Is, on
// every rank.
var (
	// ErrInUse: another run of the name is going on.
	ErrInUse = errors.New("in use by another run")
	// ErrFilesExist: files of the name exist that the run must not replace.
	ErrFilesExist = errors.New("files of an earlier run exist")
	// ErrStopFile: the stop file is there, so that nothing is to begin.
	ErrStopFile = errors.New("the stop file is there")
	// ErrUnreadable: the run has checkpoints, and none of them is good.
	ErrUnreadable = errors.New("checkpoints exist and can't be read")
	// ErrResume: a stored state is not one that the run can go on from.
	ErrResume = errors.New("can't resume")
	// ErrOutOfStep: the ranks don't make the same calls. The session is of no more
	// use than to be closed.
	ErrOutOfStep = errors.New("the ranks are out of step")
	// ErrNonFinite: the state has numbers that are NaN or infinite, and the policy is to
	// refuse them ([RefuseNonFinite]). The checkpoints are as they were.
	ErrNonFinite = errors.New("NaN or infinite numbers are refused")
	// ErrStopped: the session has told the caller to stop, or was closed.
	ErrStopped = errors.New("the session has ended")
)

func init() {
	for name, err := range map[string]error{
		"ErrInput":         ErrInput,
		"ErrInUse":         ErrInUse,
		"ErrFilesExist":    ErrFilesExist,
		"ErrStopFile":      ErrStopFile,
		"ErrUnreadable":    ErrUnreadable,
		"ErrResume":        ErrResume,
		"ErrOutOfStep":     ErrOutOfStep,
		"ErrNonFinite":     ErrNonFinite,
		"ErrStopped":       ErrStopped,
		"ErrVersion":       ErrVersion,
		"ErrTorn":          ErrTorn,
		"ErrNotRunFile":    ErrNotRunFile,
		"ErrNotOutput":     ErrNotOutput,
		"ErrNotCheckpoint": ErrNotCheckpoint,
		"ErrMismatch":      ErrMismatch,
		"ErrNoState":       ErrNoState,
		"ErrHash":          ErrHash,
		"ErrChecksum":      ErrChecksum,
		"ErrNotOneRun":     ErrNotOneRun,
		"errUnsynced":      errUnsynced,
	} {
		comm.Register("runfile."+name, err)
	}
}
