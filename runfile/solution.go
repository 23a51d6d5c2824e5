package runfile

import (
	"github.com/fieldstone-io/fieldstone/record"
)

// A Solution is what an output file holds: one segment of a run, or several joined.
type Solution struct {
	// Files are those that it was read from, in order.
	Files []string
	// Version is the format version of the last file.
	Version string

	Settings record.Record // of the last file
	Layout   Layout        // of the first file, with the latest units

	// Times are the accepted times, in seconds, at which states were saved, strictly
	// increasing. States[i] is the state vector at Times[i].
	Times  []float64
	States [][]float64

	Statistics Statistics
	Updates    []UpdateStates

	// units are those that the file stores, by unknown: none in files before 0.0.5.
	units map[string]string
	// carried is what goes with the settings into another file, nil unless they were read.
	carried *carried
	// origins tell for each saved state in which file it is, and which one there.
	origins []origin
	// fieldSums are the checksums of the chunks of fields that a session has written, by
	// the name of the field, for each saved state.
	fieldSums []map[string][]uint64
	reading   *fieldReading
}

// origin is where a saved state is.
type origin struct {
	file  string // as it was given
	index int
	path  string // absolute: fields are read later
}

// UpdateStates are the states of one interval update: States[i] was in force when
// state i of the solution was computed.
type UpdateStates struct {
	Name   string
	States [][]float64
}

// Statistics holds what a solver did. The fields of attempts have one entry for each
// attempted step, the rejected ones included; a field may also be nil, which reads as
// its default for every attempt.
type Statistics struct {
	Time                []float64 // that the attempt aimed at, in seconds
	StepLength          []float64 // in seconds
	Accepted            []bool
	ErrorEstimate       []float64
	NonlinearIterations []int64
	LinearIterations    []int64
	WallTime            []float64 // in seconds
	Outcome             []string

	// These have one entry for each nonlinear iteration.
	IterationAttempt  []int64 // the number of its attempt, from 1
	IterationResidual []float64
	IterationLinear   []int64

	others []otherStatistic // those of other writers
}

// A Checkpoint is a state to resume from.
type Checkpoint struct {
	File     string // that it was read from
	Previous bool   // it is the one before the last, which can't be read
	Version  string
	Settings record.Record
	Layout   Layout

	Time       float64 // accepted time in seconds
	State      []float64
	Segment    int // number of the segment that wrote it, 0 where that isn't known
	SavedCount int // states that the run had saved up to the time
	Summary    Summary
	// Stepper is what the stepper carries between steps. A state that comes from an
	// output file has none.
	Stepper    record.Record
	HasStepper bool
	Updates    []UpdateState
	// Bundles names, for each field, the bundle published with the checkpoint that
	// holds it; nil where the file does.
	Bundles map[string]string
	// NonFinite is how many numbers are NaN or infinite, by the names of unknowns; those
	// that aren't in it have none. Nil: nobody has counted. Sessions count.
	NonFinite map[string]int64

	passed    *passedOver       // the last one, for which this one is taken
	policies  unknownPolicies   // for which a session writes it
	units     map[string]string // that the file stores
	carried   *carried          // as that of a Solution, with the stepper too
	origin    origin
	output    bool                // it is one of the saved states of an output file
	fieldSums map[string][]uint64 // of the chunks of fields that a session has written
	reading   *fieldReading
}

// UpdateState is the state of one interval update.
type UpdateState struct {
	Name  string
	State []float64
}

// Summary counts what a run has done so far. What isn't known is -1, as of a run that
// began with a state of an output file that doesn't say what was before it.
type Summary struct {
	Attempted, Accepted                   int64 // steps
	NonlinearIterations, LinearIterations int64
	WallTime                              float64 // in seconds
}
