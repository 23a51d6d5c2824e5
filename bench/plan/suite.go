package plan

import (
	"fmt"
	"slices"
)

// A Suite is all that a run does.
type Suite struct {
	Launches []Launch
	Measures []Measure
	Growth   []Growth
	Scaled   string // what the short form makes smaller
}

// A Measure is a line of the summary: the worst ratio of rates over its cases,
// yardsticks and components. Without yardsticks it is about memory.
type Measure struct {
	Name      string
	Must, Aim float64
	Ours      string
	Theirs    []string
	Cases     []string
	Best      bool // against the best component of MPI-IO, not the default one

	Component string // of the jobs that count; empty: the default one
}

// A Growth is a series of cases in which one thing grows.
type Growth struct {
	Name  string // of what grows
	Cases []string
	X     []float64
}

// DefaultComponent is the component of MPI-IO that a program gets who asks for none.
const DefaultComponent = "ompio"

// H5py marks, as a component, the jobs of the Python peer. They have their own
// processes and their own floor.
const H5py = "h5py"

// RunFiles marks, as a component, the jobs with files of runs. They use no MPI.
const RunFiles = "run files"

// An Effort is what a form of the benchmark may take: repetitions in a launch, launches
// of each component, and the sizes.
type Effort struct {
	repeats   int
	seconds   float64
	kernels   int // repetitions of a copy
	rounds    int
	kernel    int // cells of a copy, in planes of 64x1024
	save      int // n of 4 fields of n³
	wide      int // 1 field of 2n x 2n x n
	compare   int // against libraries and the common scheme, which take long
	disk      int
	restart   int
	states    int  // of a run
	everybody bool // all contestants, not only those of the summary
}

// The forms.
var (
	Full  = Effort{repeats: 9, seconds: 4, kernels: 12, rounds: 3, kernel: 256, save: 256, wide: 256, compare: 256, disk: 256, restart: 256, states: 4, everybody: true}
	Quick = Effort{repeats: 4, seconds: 0.3, kernels: 6, rounds: 1, kernel: 128, save: 160, wide: 160, compare: 128, disk: 128, restart: 128, states: 2}
)

// NewSuite is the suite of a form.
func NewSuite(e Effort) *Suite {
	s := &Suite{}
	one := Launch{MPI: "openmpi", Component: DefaultComponent, Ranks: 1}
	two := Launch{MPI: "openmpi", Component: DefaultComponent, Ranks: 2}
	three := Launch{MPI: "openmpi", Component: DefaultComponent, Ranks: 3}
	four := Launch{MPI: "openmpi", Component: DefaultComponent, Ranks: 4}
	add := func(l *Launch, c Case, contestants ...string) string {
		for i, k := range l.Cases {
			if k.Name == c.Name {
				l.Cases[i].Contestants = Union(k.Contestants, contestants)
				return c.Name
			}
		}
		c.Contestants, c.Repeats, c.Seconds = contestants, e.repeats, e.seconds
		if c.Kind == Kernel {
			c.Repeats = e.kernels
		}
		l.Cases = append(l.Cases, c)
		return c.Name
	}
	// all adds those who are there for information only.
	all := func(those []string, more ...string) []string {
		if e.everybody {
			return Union(those, more)
		}
		return those
	}
	target := func(m Measure) { s.Measures = append(s.Measures, m) }

	// The memory comes first: it is compared with that before the first save.
	save := cube(e.save)
	memory := []string{
		add(&two, situation(Memory, save, slabs2), "fieldstone"),
		add(&two, situation(Memory, save, splitX2), "fieldstone"),
	}

	// Copies in memory, one rank.
	copies := all([]string{"memcpy", "pack-stream"}, "memcpy-stream", "pack", "pack-rows", "pack-naive")
	kernel := func(row, halo int) string {
		c := situation(Kernel, processes(1, 1, 1), fields(1), cells(row, 65536/row, e.kernel))
		c.Halo = halo
		c.Name = nameOf(c)
		return add(&one, c, copies...)
	}
	var wide, deep []string
	for _, row := range []int{64, 256} {
		for _, halo := range []int{0, 1, 2} {
			wide = append(wide, kernel(row, halo))
		}
		deep = append(deep, kernel(row, 4))
	}
	short := kernel(16, 2)
	if e.everybody {
		for _, halo := range []int{0, 1, 4} {
			kernel(16, halo)
		}
	}
	packing := func(name string, must, aim float64, cases ...string) {
		target(Measure{Name: "pack / memcpy: " + name, Must: must, Aim: aim, Ours: "pack-stream", Theirs: []string{"memcpy"}, Cases: cases})
	}
	packing("rows >= 64 cells, halo 0 to 2", 1.1, 1.3, wide...)
	packing("rows >= 64 cells, halo 4", 0.9, 1.0, deep...)
	packing("rows of 16 cells, halo 2", 0.6, 0.8, short)

	chunks := situation(Kernel, processes(1, 1, 1), fields(1), cells(256, 256, e.kernel))
	chunks.Name = "chunks of " + chunks.Name
	add(&one, chunks, "pwrite-chunks", "chunks", "chunks-sum", "chunks-sum-file")
	target(Measure{Name: "chunked pack + CRC / chunked pack", Must: 0.7, Aim: 0.85, Ours: "chunks-sum", Theirs: []string{"chunks"}, Cases: []string{chunks.Name}})
	target(Measure{Name: "chunked pack + CRC + pwrite / pwrite, existing pages", Must: 0.85, Aim: 0.95, Ours: "chunks-sum-file", Theirs: []string{"pwrite-chunks"}, Cases: []string{chunks.Name}})

	// Saving, against the floor.
	everybody := all([]string{"floor", "fieldstone"}, "common", "rows", "hdf5", "pnetcdf", "separate", "fieldstone-fresh", "fieldstone-posix", "fieldstone-mpiio")
	floor := func(name string, must, aim float64, l *Launch, vary ...variation) string {
		n := add(l, situation(Save, vary...), everybody...)
		target(Measure{Name: name, Must: must, Aim: aim, Ours: "fieldstone", Theirs: []string{"floor"}, Cases: []string{n}})
		return n
	}
	about := fmt.Sprintf("save 4 x %d³, tmpfs, ", e.save)
	oneRank := floor(about+"slabs, 1 rank / floor", 0.9, 0.95, &one, save, processes(1, 1, 1))
	base := floor(about+"slabs, 2 ranks / floor", 1.15, 1.3, &two, save, slabs2)
	fourRanks := floor(about+"slabs, 4 ranks / floor", 0.9, 1.1, &four, save, slabs4)
	field := fmt.Sprintf("save 1 x %dx%dx%d, tmpfs, ", 2*e.wide, 2*e.wide, e.wide)
	large := []variation{fields(1), cells(2*e.wide, 2*e.wide, e.wide)}
	floor(field+"slabs, 2 ranks / floor", 0.95, 1.05, &two, append(large, slabs2)...)
	floor(field+"x-split, 2 ranks / floor", 0.9, 1.0, &two, append(large, splitX2)...)
	floor(about+"x-split, 2 ranks / floor", 0.7, 0.95, &two, save, splitX2)
	floor(about+"x-split, 4 ranks / floor", 0.65, 0.9, &four, save, splitX4)
	floor(fmt.Sprintf("save 4 x %d³, disk + fsync, slabs, 2 ranks / floor + fsync", e.disk), 0.95, 1.1, &two, cube(e.disk), slabs2, withFsync)

	// Restarting.
	add(&four, situation(Bundle, cube(e.restart), slabs4))
	loads := []string{"pread", "inplace", "all-or-nothing"}
	var slabs []string
	for _, c := range []struct {
		name      string
		l         *Launch
		cut       variation
		must, aim float64
	}{
		{"2 slabs", &two, slabs2, 0.85, 0.95},
		{"3 slabs", &three, processes(1, 1, 3), 0.85, 0.95},
		{"2 x-split", &two, splitX2, 0.45, 0.7},
		{"3 x-split", &three, processes(3, 1, 1), 0.3, 0.6},
	} {
		who := all(loads, "inplace-fresh", "common-load")
		if c.l == &two { // the others take long
			who = all(who, "rows-load", "hdf5-load", "pnetcdf-load")
		}
		n := add(c.l, situation(Restart, cube(e.restart), c.cut), who...)
		target(Measure{Name: "restart in place, " + c.name + " / pread", Must: c.must, Aim: c.aim, Ours: "inplace", Theirs: []string{"pread"}, Cases: []string{n}})
		if c.must == 0.85 {
			slabs = append(slabs, n)
		}
	}
	target(Measure{Name: "restart all-or-nothing, slabs / pread", Must: 0.5, Aim: 0.6, Ours: "all-or-nothing", Theirs: []string{"pread"}, Cases: slabs})

	// Against the libraries and the common scheme.
	components := []*Launch{
		&two,
		{MPI: "openmpi", Component: "romio", Ranks: 2},
		{MPI: "mpich", Component: "mpich", Ranks: 2},
	}
	libraries := []string{"hdf5", "pnetcdf"}
	against := func(name string, must, aim float64, best bool, theirs []string, c Case) {
		target(Measure{Name: name, Must: must, Aim: aim, Ours: "fieldstone", Theirs: theirs, Cases: []string{c.Name}, Best: best})
		for i, l := range components {
			if i == 0 || best {
				add(l, c, Union([]string{"floor", "fieldstone"}, theirs)...)
			}
		}
	}
	against("save, slabs, tmpfs / HDF5, PnetCDF", 1.5, 2.0, true, libraries, situation(Save, cube(e.compare), slabs2))
	against("save, x-split, tmpfs / HDF5, PnetCDF", 1.5, 2.2, true, libraries, situation(Save, cube(e.compare), splitX2))
	against("save, x-split, disk + fsync / HDF5, PnetCDF", 1.2, 1.5, true, libraries, situation(Save, cube(e.disk), splitX2, withFsync))
	common := []string{"common"}
	against("save, slabs / common scheme", 2.5, 3.5, false, common, situation(Save, cube(e.compare), slabs2))
	against("save, x-split / common scheme", 3.0, 4.5, false, common, situation(Save, cube(e.compare), splitX2))
	against("100 fields of 32³, slabs / common scheme", 2.5, 3.5, true, common, situation(Save, fields(100), cube(32), slabs2))
	against("100 fields of 32³, x-split / common scheme", 2.5, 4.0, true, common, situation(Save, fields(100), cube(32), splitX2))

	target(Measure{Name: "extra memory of a save: allowed / taken", Must: 1, Ours: "fieldstone", Cases: memory})

	// Files of a run, against h5py. A state has three unknowns.
	runs := Launch{Component: RunFiles, Ranks: 1}
	file := func(name string, must float64, kind Kind, unknowns int, vary ...variation) {
		vary = append(vary, processes(1, 1, 1), cells(256, 64, 64), fields(unknowns*e.states), halo(0))
		n := add(&runs, situation(kind, vary...), "h5py", "fieldstone")
		target(Measure{Name: name, Must: must, Ours: "fieldstone", Theirs: []string{"h5py"}, Cases: []string{n}, Component: RunFiles})
	}
	file("run file write, tmpfs / h5py", 1, WriteRun, 3)
	file("run file write, disk + fsync / h5py + fsync", 1, WriteRun, 3, withFsync)
	file("run file read, tmpfs / h5py", 1, ReadRun, 2)
	file("field of a run file read, tmpfs / h5py", 1, ReadRunField, 1)

	var rest []Launch
	if e.everybody {
		rest = s.vary(e, add)
		h5py := Launch{MPI: "openmpi", Component: H5py, Ranks: 2}
		for _, vary := range [][]variation{{slabs2}, {splitX2}, {splitX2, withFsync}} {
			add(&h5py, situation(Save, append(vary, save)...), "floor", "h5py")
		}
		rest = append(rest, h5py)
	} else {
		s.Scaled = fmt.Sprintf("the short form takes fields of %d³ where the full one takes 256³, and of %d³ against libraries and the common scheme, on disk and for restarts", e.save, e.compare)
	}
	s.Growth = append(s.Growth, Growth{fmt.Sprintf("ranks (4 fields of %d³, slabs)", e.save), []string{oneRank, base, fourRanks}, []float64{1, 2, 4}})
	// The components alternate, so that a machine that changes meanwhile changes for all.
	s.Launches = []Launch{one, four, three}
	for round := range e.rounds {
		for i, l := range components {
			k := *l
			k.Cases = nil
			for _, c := range l.Cases {
				alternates := len(components[1].Cases) > 0 && named(components[1].Cases, c.Name)
				if !alternates && round > 0 {
					continue
				}
				if alternates || i > 0 {
					c.Repeats = (c.Repeats + e.rounds - 1) / e.rounds
					c.Seconds /= float64(e.rounds)
				}
				k.Cases = append(k.Cases, c)
			}
			s.Launches = append(s.Launches, k)
		}
	}
	s.Launches = append(append(s.Launches, runs), rest...)
	return s
}

// vary adds the cases in which one factor differs from the base, and the series.
func (s *Suite) vary(e Effort, add func(*Launch, Case, ...string) string) []Launch {
	two := Launch{MPI: "openmpi", Component: DefaultComponent, Ranks: 2}
	four := Launch{MPI: "openmpi", Component: DefaultComponent, Ranks: 4}
	who := []string{"floor", "fieldstone", "hdf5"}
	withCommon := append(slices.Clone(who), "common")
	series := func(name string, x []float64, cases []string) {
		s.Growth = append(s.Growth, Growth{name, cases, x})
	}
	sizes := func(cut variation, who []string) (names []string, x []float64) {
		for _, n := range []int{32, 64, 128, 256, 512} {
			names = append(names, add(&two, situation(Save, fields(1), cube(n), cut), who...))
			x = append(x, float64(n)*float64(n)*float64(n))
		}
		return names, x
	}
	names, x := sizes(slabs2, withCommon)
	series("cells (1 field, 2 slabs)", x, names)
	names, x = sizes(splitX2, who)
	series("cells (1 field, 2 ranks, x-split)", x, names)
	numbers := func(n int, counts ...int) (names []string, x []float64) {
		for _, k := range counts {
			names = append(names, add(&two, situation(Save, fields(k), cube(n), slabs2), withCommon...))
			x = append(x, float64(k))
		}
		return names, x
	}
	// 16 fields of 256³ would be more than 4 GiB with their copies.
	names, x = numbers(192, 1, 2, 4, 8, 16)
	series("fields (of 192³, 2 slabs)", x, names)
	names, x = numbers(32, 1, 4, 16, 64)
	series("fields (of 32³, 2 slabs)", x, names)
	for _, n := range []int{0, 1, 3, 4} {
		add(&two, situation(Save, halo(n), slabs2), who...)
	}
	add(&two, situation(Save, processes(1, 2, 1)), who...)
	add(&four, situation(Save, processes(1, 2, 2)), who...)
	add(&four, situation(Save, processes(2, 1, 2)), who...)
	add(&two, situation(Save, onDisk, slabs2), who...)
	for _, l := range []*Launch{&two, &four} {
		for i := range l.Cases {
			l.Cases[i].Repeats = 5
			l.Cases[i].Seconds = e.seconds / 2
		}
	}
	return []Launch{two, four}
}

func named(cases []Case, name string) bool {
	for _, c := range cases {
		if c.Name == name {
			return true
		}
	}
	return false
}

// Union is a and what b has beside it.
func Union(a, b []string) []string {
	u := append([]string(nil), a...)
	for _, x := range b {
		found := false
		for _, y := range u {
			found = found || x == y
		}
		if !found {
			u = append(u, x)
		}
	}
	return u
}
