package plan

import "fmt"

// Kind says what the contestants of a case do.
type Kind string

// The kinds of cases.
const (
	Save    Kind = "save"    // write all fields into fresh files
	Restart Kind = "restart" // read all fields of a bundle that Bundle wrote
	Bundle  Kind = "bundle"  // write that bundle; nothing is timed
	Kernel  Kind = "kernel"  // copies in the memory of one rank
	Memory  Kind = "memory"  // what a save needs beside the fields

	// Files of a run, on one rank: a file with a distribution, profiles and a field,
	// of so many cells each, at each saved state.
	WriteRun     Kind = "write run"
	ReadRun      Kind = "read run"       // what is no field
	ReadRunField Kind = "read run field" // one state after the other
)

// Place is where the files are.
type Place string

// The places.
const (
	Tmpfs Place = "tmpfs"
	Disk  Place = "disk"
)

// A Case is one situation and the contestants that take turns in it.
type Case struct {
	Name        string
	Kind        Kind
	Cells       [3]int // of the domain
	Processes   [3]int // ranks along each axis
	Fields      int
	Halo        int
	Place       Place
	Sync        bool // durable on return
	Contestants []string

	// A first repetition is dropped. Then come 3, and more up to Repeats for
	// about Seconds, in which contestants rest that take several times as long as the
	// first one.
	Repeats int
	Seconds float64
}

// Ranks is the number of ranks that the case needs.
func (c Case) Ranks() int { return c.Processes[0] * c.Processes[1] * c.Processes[2] }

// Bytes is what a contestant moves in all.
func (c Case) Bytes() int64 {
	return 8 * int64(c.Cells[0]) * int64(c.Cells[1]) * int64(c.Cells[2]) * int64(c.Fields)
}

// A Launch is one job of MPI.
type Launch struct {
	MPI       string // "openmpi" or "mpich"; empty for RunFiles
	Component string // of MPI-IO: "ompio", "romio" or "mpich"; or H5py, RunFiles
	Ranks     int
	Cases     []Case
}

func (l Launch) String() string {
	if l.MPI == "" {
		return l.Component
	}
	return fmt.Sprintf("%s/%s, %d ranks", l.MPI, l.Component, l.Ranks)
}

// A Job is what the worker reads: a launch and its surroundings.
type Job struct {
	Launch    Launch
	Libraries string // the folder of the peers' libraries
	Tmpfs     string // folders for files, which exist
	Disk      string
}

// A Line is what the worker prints for each contestant of a case.
type Line struct {
	Case       string
	Contestant string
	Bytes      int64     `json:",omitempty"` // moved in each repetition by all ranks
	Seconds    []float64 `json:",omitempty"` // per repetition; the i-th ones of a case belong together
	Limit      int64     `json:",omitempty"` // of a Memory case: what Bytes may be
	Checked    int       `json:",omitempty"` // outputs that were compared byte for byte
	Took       float64   `json:",omitempty"` // seconds for the whole case, preparations and checks included
	Missing    string    `json:",omitempty"` // why the contestant doesn't take part
	Error      string    `json:",omitempty"` // why it was taken out; its times don't count
}
