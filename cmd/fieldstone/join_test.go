//go:build hdf5

package main

import (
	"bytes"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"syscall"
	"testing"

	"github.com/fieldstone-io/fieldstone/grid"
	"github.com/fieldstone-io/fieldstone/internal/h5"
	"github.com/fieldstone-io/fieldstone/record"
	"github.com/fieldstone-io/fieldstone/runfile"
)

func TestJoin(t *testing.T) {
	runs(t)
	j := decodeJSON[joined](t, mustRun(t, 0, "join", "--json", segment1, segment2, "-o", "decay.h5"))
	if j.States != 5 || j.Attempted != 5 || !slices.Equal(j.Times, []number{0, 0.25, 0.5, 0.75, 1}) ||
		!reflect.DeepEqual(j.Files, []joinedFile{{Path: segment1, States: 4, Dropped: 1}, {Path: segment2, States: 2}}) {
		t.Errorf("%+v", j)
	}
	want, err := runfile.ReadOutput(t.Context(), []string{segment1, segment2})
	if err != nil {
		t.Fatal(err)
	}
	got, err := runfile.ReadOutput(t.Context(), []string{"decay.h5"})
	if err != nil {
		t.Fatal(err)
	}
	if err := sameSolution(want, got); err != nil {
		t.Error(err)
	}
	if err := sameFields(t.Context(), want, want.ReadField, got.ReadField); err != nil {
		t.Error(err)
	}
	// The state at 0.75 s is that of the second segment, with the rejected attempt gone.
	cell := make([]float64, 1)
	if err := got.ReadField(t.Context(), "phi", 3, grid.Box{Low: [3]int{3, 2, 1}, Size: [3]int{1, 1, 1}}, cell); err != nil || cell[0] != value(0.75, 3, 2, 1) {
		t.Errorf("%v, %v", cell, err)
	}
	if times := got.Statistics.Time; !slices.Equal(times, []float64{0.25, 0.5, 0.9, 0.75, 1}) {
		t.Errorf("attempts at %v", times)
	}
	says(t, mustRun(t, 0, "verify", "decay.h5").out, "good (output, 5 states, 4 hashes, ")
	if info, err := os.Stat("decay.h5"); err != nil || info.Mode().Perm()&0o444 != 0o444 {
		t.Errorf("mode %v, %v", info.Mode(), err)
	}
	if n := len(listed(t, ".")); n != 3 {
		t.Errorf("left over: %v", listed(t, "."))
	}
}

// Files of other writers and of one segment join as well.
func TestJoinOfOneFileOfAnotherWriter(t *testing.T) {
	nothingOpen(t)
	t.Chdir(t.TempDir())
	for _, version := range []string{"0.0.1", "0.0.2", "0.0.3", "0.0.4", "0.0.5"} {
		out := version + ".h5"
		mustRun(t, 0, "join", filepath.Join(goldenRuns, "output."+version+".h5"), "-o", out)
		says(t, mustRun(t, 0, "show", out).out, "fieldstone 0.1.0", "0.0.5", "(2, 2, 3)")
		// Lists are in the file as they were, in their order.
		f, err := h5.Open(out)
		if err != nil {
			t.Fatal(err)
		}
		order, err := f.ReadStrings("settings/system/terms/order")
		if err != nil || !slices.Equal(order, []string{"drift", "advection"}) {
			t.Errorf("the order is %v, %v", order, err)
		}
		if points, _, err := h5.Read[int64](f, "settings/system/points/2"); err != nil || !slices.Equal(points, []int64{1, 2, 3, 4}) {
			t.Errorf("the points are %v, %v", points, err)
		}
		if err := f.Close(); err != nil {
			t.Fatal(err)
		}
	}
}

// A joined file has everything of another writer's, also what a record of ours can't hold,
// and the hashes as they are, which nobody else can compute.
func TestJoinCarriesWhatOthersHave(t *testing.T) {
	nothingOpen(t)
	t.Chdir(t.TempDir())
	theirs := filepath.Join(goldenRuns, "foreign-output.0.0.5.h5")
	o := mustRun(t, 0, "join", theirs, "-o", "one.h5")
	for _, name := range []string{"total", "histogram", "pairs", "more"} {
		says(t, o.errors, "fieldstone: join: warning: ", `statistic "`+name+`" is left out`, theirs)
	}
	if n := strings.Count(o.errors, "\n"); n != 4 {
		t.Errorf("%d warnings: %s", n, o.errors)
	}
	if o := mustRun(t, 0, "join", "one.h5", "-o", "two.h5"); o.errors != "" {
		t.Errorf("once more: %s", o.errors)
	}
	want, err := runfile.ReadSettings(t.Context(), theirs)
	if err != nil {
		t.Fatal(err)
	}
	for _, path := range []string{"one.h5", "two.h5"} {
		says(t, mustRun(t, 0, "verify", path).out, "good (segment 2, 2 states, hashes of another writer not checked, ")
		got, err := runfile.ReadSettings(t.Context(), path)
		if err != nil || !got.Equal(want) {
			t.Errorf("%s: %v, the settings are %v", path, err, got)
		}
		for _, key := range []string{"forms/order", "forms/1", "forms/numbered/1/v", "forms/named/order/name", "hashes/run"} {
			if !got.Has(key) {
				t.Errorf("%s: there is no %s", path, key)
			}
		}
	}
}

// What is odd is told, and no reason to refuse a join.
func TestJoinWarnings(t *testing.T) {
	for name, c := range map[string]struct {
		change func(s *runfile.Solution)
		says   []string
	}{
		"a gap": {func(s *runfile.Solution) {
			s.Settings = must(s.Settings.With("segment", must(record.Of("index", 1, "start_time", 0.0, "end_time", 0.25, "attempts_before", 0))))
		}, []string{"ends at 0.25 s", "starts at 0.5 s"}},
		"no statistics": {func(s *runfile.Solution) { s.Statistics = runfile.Statistics{} },
			[]string{"0 steps are attempted before the second, which counts 3"}},
		"states that are missing": {func(s *runfile.Solution) {
			s.Times, s.States, s.Updates[0].States = s.Times[2:], s.States[2:], s.Updates[0].States[2:]
		}, []string{"1 states are saved before the second, which counts 3"}},
	} {
		t.Run(name, func(t *testing.T) {
			runs(t)
			s, fields := firstSegment()
			c.change(s)
			save(t, segment1, s, fields)
			o := mustRun(t, 0, "join", segment1, segment2, "-o", "decay.h5")
			says(t, o.errors, append(c.says, "fieldstone: join: warning: join "+segment1+" and "+segment2)...)
			if strings.Count(o.errors, "\n") != 1 || !exists("decay.h5") {
				t.Errorf("%q", o.errors)
			}
			says(t, mustRun(t, 0, "segments", "results", "decay").out, append(c.says, "the segments join\n", "warning: join ")...)
			l := decodeJSON[runListing](t, mustRun(t, 0, "segments", "--json", "results", "decay"))
			if len(l.JoinWarnings) != 1 || l.Join != nil {
				t.Errorf("%+v", l)
			}
		})
	}
}

// Every reason to refuse a join is told with the files and the values.
func TestJoinRefusals(t *testing.T) {
	segment := func(t *testing.T, keysAndValues ...any) record.Record { return must(record.Of(keysAndValues...)) }
	for name, c := range map[string]struct {
		change func(t *testing.T, s *runfile.Solution)
		says   []string
	}{
		"it starts before": {func(t *testing.T, s *runfile.Solution) {
			s.Settings = must(s.Settings.With("segment", segment(t, "index", 2, "start_time", -1.0)))
		}, []string{"-1 s", "0 s"}},
		"it goes on from another segment": {func(t *testing.T, s *runfile.Solution) {
			s.Settings = must(s.Settings.With("segment", segment(t, "index", 3, "start_time", 0.5, "resumed_from_segment", 2)))
		}, []string{"resumed from segment 2", "segment 1"}},
		"another setup": {func(t *testing.T, s *runfile.Solution) {
			s.Settings = must(s.Settings.With("segment", segment(t, "index", 2, "start_time", 0.5, "previous_setup_hash", "feed")))
		}, []string{"setup feed", "c4fcd48dbf92"}},
		"other unknowns": {func(t *testing.T, s *runfile.Solution) { s.Layout.Unknowns[0].Name = "J" }, []string{"I, T", "J, T"}},
		"another length": {func(t *testing.T, s *runfile.Solution) {
			s.Layout.Unknowns[1].Components = 2
			for i := range s.States {
				s.States[i] = append(s.States[i], 0, 0)
			}
		}, []string{"11", "13"}},
		"other interval updates": {func(t *testing.T, s *runfile.Solution) { s.Updates[0].Name = "flux" }, []string{"mean of 2", "flux of 2"}},
		"times that repeat": {func(t *testing.T, s *runfile.Solution) {
			s.Settings = s.Settings.Without("segment")
		}, []string{"0.75 s"}},
	} {
		t.Run(name, func(t *testing.T) {
			runs(t)
			s, fields := secondSegment()
			c.change(t, s)
			save(t, segment2, s, fields)
			o := mustRun(t, 1, "join", segment1, segment2, "-o", "decay.h5")
			says(t, o.errors, append(c.says, "fieldstone: join: "+segment1+" and "+segment2)...)
			if o.out != "" || strings.Count(o.errors, "\n") != 1 || exists("decay.h5") {
				t.Errorf("%q, %q", o.out, o.errors)
			}
			says(t, mustRun(t, 0, "segments", "results", "decay").out, append(c.says, "the segments don't join: ", "  ?")...)
			mustRun(t, 1, "xdmf", segment1, segment2, "-o", "decay.xmf")
		})
	}
}

func TestJoinWarnsOfUnits(t *testing.T) {
	runs(t)
	s, fields := secondSegment()
	s.Layout.Unknowns[0].Unit = "kA"
	save(t, segment2, s, fields)
	o := mustRun(t, 0, "join", segment1, segment2, "-o", "decay.h5")
	says(t, o.errors, "fieldstone: join: warning: ", `"A"`, `"kA"`, segment1, segment2)
}

func TestJoinTargets(t *testing.T) {
	for name, c := range map[string]struct {
		prepare func(t *testing.T)
		args    []string
		status  int
		says    string
	}{
		"an existing file":                     {func(t *testing.T) { write(t, "out.h5", []byte("mine")) }, []string{"-o", "out.h5"}, 2, "join: out.h5: exists (--overwrite replaces it)"},
		"an existing file that may go":         {func(t *testing.T) { write(t, "out.h5", []byte("mine")) }, []string{"--overwrite", "-o", "out.h5"}, 0, ""},
		"a directory":                          {func(t *testing.T) {}, []string{"--overwrite", "-o", "results"}, 2, "join: results: exists, and is no regular file"},
		"a device":                             {func(t *testing.T) {}, []string{"--overwrite", "-o", "/dev/full"}, 2, "join: /dev/full: exists, and is no regular file"},
		"a link":                               {func(t *testing.T) { symlink(t, "theirs.h5", "out.h5") }, []string{"--overwrite", "-o", "out.h5"}, 2, "no regular file"},
		"one of the files":                     {func(t *testing.T) {}, []string{"--overwrite", "-o", "./" + segment1}, 2, "is one of the files that are read (" + segment1 + ")"},
		"one of the files by another name":     {func(t *testing.T) { link(t, segment1, "out.h5") }, []string{"--overwrite", "-o", "out.h5"}, 2, "is one of the files that are read"},
		"a directory that is missing":          {func(t *testing.T) {}, []string{"-o", "no/where.h5"}, 2, "join: no/where.h5: there is no directory no\n"},
		"a file in place of a directory":       {func(t *testing.T) {}, []string{"-o", "theirs.h5/out.h5"}, 2, "theirs.h5 is no directory"},
		"a directory in which nothing is made": {func(t *testing.T) {}, []string{"-o", "/proc/out.h5"}, 2, "join: /proc/out.h5: "},
	} {
		t.Run(name, func(t *testing.T) {
			runs(t)
			c.prepare(t)
			before := listed(t, ".")
			o := mustRun(t, c.status, append([]string{"join", segment1, segment2}, c.args...)...)
			says(t, o.errors, c.says)
			if after := listed(t, "."); !slices.Equal(before, after) {
				t.Errorf("there are %v, there were %v", after, before)
			}
			if c.status == 0 {
				says(t, mustRun(t, 0, "verify", "out.h5").out, "good")
			}
			if info, err := os.Stat("/dev/full"); err != nil || info.Mode().IsRegular() {
				t.Fatal("the device is gone")
			}
		})
	}
}

func link(t *testing.T, from, to string) {
	t.Helper()
	if err := os.Link(from, to); err != nil {
		t.Fatal(err)
	}
}

// Interrupted whenever it looks, a join leaves nothing, and what there was as it was.
func TestInterruptedJoin(t *testing.T) {
	runs(t)
	write(t, "out.h5", []byte("mine"))
	for n := 0; ; n += 1 + n/4 {
		if n > 1000 {
			t.Fatal("the join looks at the context for ever")
		}
		o := runContext(t, &countdown{t.Context(), n}, "join", segment1, segment2, "--overwrite", "-o", "out.h5")
		if o.status == 0 {
			if n < 10 {
				t.Errorf("it looked at the context %d times", n)
			}
			return
		}
		names := listed(t, ".")
		if o.status != 130 || o.errors != "fieldstone: interrupted\n" || !slices.Equal(names, []string{"out.h5", "results", "theirs.h5"}) {
			t.Fatalf("after %d looks: status %d, %q, left are %v", n, o.status, o.errors, names)
		}
	}
}

// Every command ends in order when it is interrupted.
func TestInterruptedRunCommands(t *testing.T) {
	runs(t)
	for _, args := range [][]string{
		{"show", segment1}, {"show", "--stats", segment1}, {"verify", "results"}, {"segments", "results", "decay"},
		{"settings", segment1}, {"settings", "diff", segment1, segment2}, {"xdmf", segment1, "-o", "-"},
	} {
		o := runContext(t, &countdown{t.Context(), 0}, args...)
		if o.status != 130 || o.errors != "fieldstone: interrupted\n" || o.out != "" {
			t.Errorf("%q: status %d, %q, %q", args, o.status, o.out, o.errors)
		}
	}
}

// No room for the joined file is an error, and leaves nothing: a limit on the size of
// files is what a user without rights can set.
func TestJoinWithoutRoom(t *testing.T) {
	runs(t)
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	write(t, "out.h5", []byte("mine"))
	before := listed(t, ".")
	for name, args := range map[string][]string{
		"join": {"join", segment1, segment2, "--overwrite", "-o", "out.h5"},
		"xdmf": {"xdmf", segment1, segment2, "--overwrite", "-o", "out.h5"},
	} {
		// In units of 512 bytes in dash, of 1024 in bash: 1 KiB at most.
		cmd := exec.Command("/bin/sh", append([]string{"-c", `ulimit -f 1; exec "$0" "$@"`, self}, args...)...)
		cmd.Env = append(os.Environ(), runAsTool+"=1")
		var errors bytes.Buffer
		cmd.Stderr = &errors
		if err := cmd.Run(); cmd.ProcessState.ExitCode() != statusFailed {
			t.Errorf("%s: %v: %s", name, err, errors.String())
		}
		says(t, errors.String(), "fieldstone: "+name+": out.h5: ", "file too large")
		if after := listed(t, "."); !slices.Equal(before, after) || string(read(t, "out.h5")) != "mine" {
			t.Errorf("%s: there are %v, there were %v", name, after, before)
		}
	}
}

func TestJoinOnAFullDisk(t *testing.T) {
	runs(t)
	dir := filepath.Join(t.TempDir(), "small")
	if err := os.Mkdir(dir, 0o777); err != nil {
		t.Fatal(err)
	}
	if err := syscall.Mount("tmpfs", dir, "tmpfs", 0, "size=16k"); err != nil {
		t.Skip("a small filesystem needs root; the limit on file sizes is tested instead:", err)
	}
	defer func() {
		if err := syscall.Unmount(dir, syscall.MNT_DETACH); err != nil {
			t.Error(err)
		}
	}()
	// In a process of its own: the library may keep what it could not write.
	cmd := tool(t, "join", segment1, segment2, "-o", filepath.Join(dir, "out.h5"))
	var errors bytes.Buffer
	cmd.Stderr = &errors
	if err := cmd.Run(); cmd.ProcessState.ExitCode() != statusFailed {
		t.Errorf("%v: %s", err, errors.String())
	}
	says(t, errors.String(), "no space left on device")
	if left := listed(t, dir); len(left) > 0 {
		t.Errorf("left are %v", left)
	}
}

// A file that verify calls bad is refused by join and called bad by segments, with the
// same text.
func TestADamagedSegmentIsRefusedByJoin(t *testing.T) {
	for name, c := range map[string]struct {
		damage func(t *testing.T)
		says   string
		values bool // that alone have changed: who reads none doesn't see it
	}{
		"a coordinate": {func(t *testing.T) {
			edit(t, segment2, func(f *h5.File) error { return h5.WriteSlab(f, "r", []float64{99}, []int{0}, []int{1}) })
		}, "r: does not match", false},
		"a value": {func(t *testing.T) {
			f, err := h5.OpenReadWrite(segment2)
			if err == nil {
				err = errors.Join(h5.WriteSlab(f, "unknowns/I", []float64{99}, []int{1}, []int{1}), f.Close())
			}
			if err != nil {
				t.Fatal(err)
			}
		}, "unknowns/I: the checksum", true},
		"the end": {func(t *testing.T) { write(t, segment2, read(t, segment2)[:3000]) }, "not a usable HDF5 file", false},
	} {
		t.Run(name, func(t *testing.T) {
			runs(t)
			c.damage(t)
			says(t, mustRun(t, 1, "verify", segment2).errors, c.says)
			o := mustRun(t, 1, "join", segment1, segment2, "-o", "decay.h5")
			says(t, o.errors, "fieldstone: join", segment2+": ", c.says)
			if o.out != "" || exists("decay.h5") {
				t.Errorf("%q, %q", o.out, o.errors)
			}
			if !c.values {
				says(t, mustRun(t, 0, "segments", "results", "decay").out, "bad", c.says)
			}
		})
	}
}
