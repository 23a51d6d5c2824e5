package publish

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"log/slog"
	"math"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/fieldstone-io/fieldstone/comm"
	"github.com/fieldstone-io/fieldstone/field"
	"github.com/fieldstone-io/fieldstone/grid"
	"github.com/fieldstone-io/fieldstone/internal/vfs"
	"github.com/fieldstone-io/fieldstone/internal/xdmf"
)

var tinyDomain = grid.Domain{Size: [3]int{3, 2, 2}, Spacing: [3]float64{1, 1, 1}}

// tinyField is a field of one rank that holds a value everywhere.
func tinyField(t *testing.T, id string, value float64) field.Named {
	t.Helper()
	f, err := field.New[float64](tinyDomain, tinyDomain.Box())
	if err != nil {
		t.Fatal(err)
	}
	fillTiny(t, f, value)
	return field.Named{ID: id, Field: f}
}

func fillTiny(t *testing.T, f field.Any, value float64) {
	t.Helper()
	data, err := f.(*field.Field[float64]).MutableView()
	if err != nil {
		t.Fatal(err)
	}
	for i := range data {
		data[i] = value
	}
}

// dumped is a write of dumps. What is dumped is the time.
type dumped struct {
	increment int64
	time      float64
}

// dumpRun is a run of a solver that dumps.
type dumpRun struct {
	template string
	ids      []string
	rewind   int64 // when above 0
	writes   []dumped
	opts     []Option
}

func (r dumpRun) run(t *testing.T, fsys vfs.FS) error {
	t.Helper()
	d, fields, err := r.open(t, fsys)
	if err != nil {
		return err
	}
	defer d.Close()
	if r.rewind > 0 {
		if err := d.Rewind(t.Context(), r.rewind); err != nil {
			return err
		}
	}
	return r.write(t, d, fields)
}

func (r dumpRun) open(t *testing.T, fsys vfs.FS) (*Dumps, []field.Named, error) {
	t.Helper()
	var fields []field.Named
	for _, id := range r.ids {
		fields = append(fields, tinyField(t, id, 0))
	}
	d, err := NewDumps(t.Context(), comm.Self(), r.template, fields, append(r.opts, Filesystem(fsys))...)
	return d, fields, err
}

func (r dumpRun) write(t *testing.T, d *Dumps, fields []field.Named) error {
	t.Helper()
	for _, w := range r.writes {
		for i, f := range fields {
			fillTiny(t, f.Field, w.time+100*float64(i))
		}
		if _, err := d.Write(t.Context(), w.increment, w.time); err != nil {
			return err
		}
	}
	return nil
}

// listed lists a series as "file@time", and checks that each file holds that time.
func listed(t *testing.T, fsys vfs.FS, path string) []string {
	t.Helper()
	if exists, err := vfs.Exists(fsys, path); err != nil || !exists {
		return nil
	}
	var list []string
	for _, s := range readSeriesAt(t, fsys, path).Steps {
		for i, a := range s.Arrays {
			file := filepath.Join(filepath.Dir(path), a.Path)
			data, err := vfs.ReadFile(fsys, file, 1<<20)
			if err != nil {
				t.Errorf("%s: %v", a.Path, err)
				continue
			}
			if v := math.Float64frombits(binary.LittleEndian.Uint64(data)); v != s.Time+100*float64(i) {
				t.Errorf("%s holds %v, and the series says %v", a.Path, v, s.Time)
			}
			list = append(list, fmt.Sprintf("%s@%v", strings.TrimSuffix(a.Path, ".bin"), s.Time))
		}
	}
	return list
}

func TestASeriesSaysWhatTheFilesHold(t *testing.T) {
	const numbered, fixed = "/data/psi_%d.bin", "/data/psi.bin"
	psi := []string{"psi"}
	for _, c := range []struct {
		name string
		runs []dumpRun
		want []string
	}{
		{"a run that goes on", []dumpRun{
			{numbered, psi, 0, []dumped{{0, 0}, {10, 1}}, nil},
			{numbered, psi, 0, []dumped{{20, 2}, {30, 3}}, nil},
		}, []string{"psi_0@0", "psi_10@1", "psi_20@2", "psi_30@3"}},
		{"a restart with the same steps", []dumpRun{
			{numbered, psi, 0, []dumped{{0, 0}, {10, 1}, {20, 2}, {30, 3}}, nil},
			{numbered, psi, 0, []dumped{{20, 2}}, nil},
		}, []string{"psi_0@0", "psi_10@1", "psi_20@2"}},
		{"a restart with longer steps writes a file at a later time", []dumpRun{
			{numbered, psi, 0, []dumped{{10, 1}, {20, 2}, {30, 3}}, nil},
			{numbered, psi, 0, []dumped{{20, 2.5}, {30, 4}}, nil},
		}, []string{"psi_10@1", "psi_20@2.5", "psi_30@4"}},
		{"a restart with shorter steps writes a file at an earlier time", []dumpRun{
			{numbered, psi, 0, []dumped{{10, 1}, {20, 2}, {30, 3}}, nil},
			{numbered, psi, 0, []dumped{{20, 1.5}}, nil},
		}, []string{"psi_10@1", "psi_20@1.5"}},
		{"what was written at a later increment is of the branch that was left", []dumpRun{
			{numbered, psi, 0, []dumped{{10, 1}, {20, 2}, {30, 3}}, nil},
			{numbered, psi, 0, []dumped{{15, 3.5}}, nil},
		}, []string{"psi_10@1", "psi_15@3.5"}},
		{"and at a later time", []dumpRun{
			{numbered, psi, 0, []dumped{{10, 1}, {20, 2}, {30, 3}}, nil},
			{numbered, psi, 0, []dumped{{40, 1.5}}, nil},
		}, []string{"psi_10@1", "psi_40@1.5"}},
		{"a restart that is told from where", []dumpRun{
			{numbered, psi, 0, []dumped{{10, 1}, {11, 1.1}, {12, 1.2}, {13, 1.3}}, nil},
			{numbered, psi, 11, []dumped{{20, 2}}, nil},
		}, []string{"psi_10@1", "psi_11@1.1", "psi_20@2"}},
		{"a restart that dumps nothing", []dumpRun{
			{numbered, psi, 0, []dumped{{10, 1}, {20, 2}}, nil},
			{numbered, psi, 10, nil, nil},
		}, []string{"psi_10@1"}},
		{"a restart from before the first dump", []dumpRun{
			{numbered, psi, 0, []dumped{{10, 1}, {20, 2}}, nil},
			{numbered, psi, 5, nil, nil},
		}, nil},
		{"a run anew", []dumpRun{
			{numbered, psi, 0, []dumped{{0, 0}, {10, 1}, {20, 2}}, nil},
			{numbered, psi, 0, []dumped{{0, 0}}, nil},
		}, []string{"psi_0@0"}},
		{"one file for all", []dumpRun{
			{fixed, psi, 0, []dumped{{10, 1}, {20, 2}}, nil},
			{fixed, psi, 0, []dumped{{20, 2}, {30, 3}}, nil},
		}, []string{"psi@3"}},
		{"one file for all, and a restart at an earlier time", []dumpRun{
			{fixed, psi, 0, []dumped{{10, 1}, {20, 2}}, nil},
			{fixed, psi, 0, []dumped{{15, 1.5}}, nil},
		}, []string{"psi@1.5"}},
		{"one run that goes back", []dumpRun{
			{numbered, psi, 0, []dumped{{10, 1}, {20, 2}, {30, 3}, {15, 1.5}, {20, 1.75}}, nil},
		}, []string{"psi_10@1", "psi_15@1.5", "psi_20@1.75"}},
		{"blanks at the begin and the end of names", []dumpRun{
			{"/data/%5d", psi, 0, []dumped{{1, 1}, {2, 2}}, nil},
			{"/data/%5d", psi, 0, []dumped{{2, 2}}, nil},
		}, []string{"./    1@1", "./    2@2"}},
	} {
		t.Run(c.name, func(t *testing.T) {
			fsys := newFS(t)
			for _, r := range c.runs {
				if err := r.run(t, fsys); err != nil {
					t.Fatal(err)
				}
			}
			path := "/data/psi.xmf"
			if strings.HasPrefix(c.runs[0].template, "/data/%") {
				path = "/data/series.xmf"
			}
			if d := cmp.Diff(c.want, listed(t, fsys, path)); d != "" {
				t.Errorf("-want +got:\n%s", d)
			}
		})
	}
}

// TestASeriesOfAnOlderVersion lists a file twice: the later step is what it holds.
func TestASeriesOfAnOlderVersionIsMended(t *testing.T) {
	fsys := newFS(t)
	r := dumpRun{template: "/data/psi_%d.bin", ids: []string{"psi"}, writes: []dumped{{10, 1}, {20, 3.5}}}
	if err := r.run(t, fsys); err != nil {
		t.Fatal(err)
	}
	s := readSeries(t, fsys)
	old := s.Steps[1]
	old.Time = 2
	s.Steps = []xdmf.Step{s.Steps[0], old, s.Steps[1]}
	var text strings.Builder
	if err := xdmf.Write(&text, s); err != nil {
		t.Fatal(err)
	}
	damage(t, fsys, "/data/psi.xmf", func([]byte) []byte { return []byte(text.String()) })
	r.writes = []dumped{{30, 4}}
	if err := r.run(t, fsys); err != nil {
		t.Fatal(err)
	}
	if d := cmp.Diff([]string{"psi_10@1", "psi_20@3.5", "psi_30@4"}, listed(t, fsys, "/data/psi.xmf")); d != "" {
		t.Errorf("-want +got:\n%s", d)
	}
}

func TestStepsWhoseFilesAreGoneLeaveTheSeries(t *testing.T) {
	fsys := newFS(t)
	r := dumpRun{template: "/data/%s_%d.bin", ids: []string{"psi", "T"}, writes: []dumped{{10, 1}, {20, 2}, {30, 3}, {40, 4}}}
	if err := r.run(t, fsys); err != nil {
		t.Fatal(err)
	}
	damage(t, fsys, "/data/psi_10.bin", remove)
	damage(t, fsys, "/data/T_10.bin", remove)
	damage(t, fsys, "/data/T_20.bin", remove)
	damage(t, fsys, "/data/psi_30.bin", func(d []byte) []byte { return d[1:] })
	damage(t, fsys, "/data/T_30.bin", func(d []byte) []byte { return append(d, 0) })
	var log logs
	r.writes, r.opts = []dumped{{50, 5}}, []Option{Logger(slog.New(slog.NewTextHandler(&log, nil)))}
	if err := r.run(t, fsys); err != nil {
		t.Fatal(err)
	}
	want := []string{"psi_20@2", "psi_40@4", "T_40@4", "psi_50@5", "T_50@5"}
	if d := cmp.Diff(want, listed(t, fsys, "/data/series.xmf")); d != "" {
		t.Errorf("-want +got:\n%s", d)
	}
	for _, file := range []string{"psi_10", "T_10", "T_20", "psi_30", "T_30"} {
		if !strings.Contains(log.String(), file+".bin") {
			t.Errorf("the log doesn't name %s:\n%s", file, log.String())
		}
	}
}

// TestWhatBeginsToBeWrittenIsNotListed: the file may have anything in it then.
func TestWhatBeginsToBeWrittenIsNotListed(t *testing.T) {
	for _, c := range []struct {
		template string
		want     []string
	}{
		{"/data/psi_%d.bin", []string{"psi_10@1"}},
		{"/data/psi.bin", nil},
	} {
		fsys := newFS(t)
		r := dumpRun{template: c.template, ids: []string{"psi"}, writes: []dumped{{10, 1}, {20, 2}}}
		if err := r.run(t, fsys); err != nil {
			t.Fatal(err)
		}
		inject := vfs.NewInject(fsys)
		if err := inject.Fail(vfs.Rule{Pattern: "*.bin", Kinds: []vfs.Kind{vfs.OpWriteAt}, Err: syscall.EIO}); err != nil {
			t.Fatal(err)
		}
		r.writes = []dumped{{20, 3}}
		if err := r.run(t, inject); !errors.Is(err, syscall.EIO) {
			t.Errorf("got %v", err)
		}
		if d := cmp.Diff(c.want, listed(t, fsys, "/data/psi.xmf")); d != "" {
			t.Errorf("%s: -want +got:\n%s", c.template, d)
		}
		if err := r.run(t, fsys); err != nil {
			t.Error(err)
		}
	}
}

func TestTwoSeriesDoNotShareAnXDMFFile(t *testing.T) {
	for _, c := range []struct {
		name        string
		first, next dumpRun
	}{
		{"another suffix", dumpRun{template: "/data/psi_%d.bin", ids: []string{"psi"}}, dumpRun{template: "/data/psi_%d.raw", ids: []string{"psi"}}},
		{"another separator", dumpRun{template: "/data/psi_%d.bin", ids: []string{"psi"}}, dumpRun{template: "/data/psi-%d.bin", ids: []string{"psi"}}},
		{"another field in the same files", dumpRun{template: "/data/psi_%d.bin", ids: []string{"psi"}}, dumpRun{template: "/data/psi_%d.bin", ids: []string{"c"}}},
		{"one file for all", dumpRun{template: "/data/psi_%d.bin", ids: []string{"psi"}}, dumpRun{template: "/data/psi.bin", ids: []string{"psi"}}},
		{"no name but the number", dumpRun{template: "/data/%d.bin", ids: []string{"psi"}}, dumpRun{template: "/data/%d.raw", ids: []string{"psi"}}},
		{"several fields", dumpRun{template: "/data/%s_%d.bin", ids: []string{"a", "b"}}, dumpRun{template: "/data/%s-%d.bin", ids: []string{"a", "b"}}},
	} {
		t.Run(c.name, func(t *testing.T) {
			fsys := newFS(t)
			c.first.writes, c.next.writes = []dumped{{10, 1}}, []dumped{{20, 2}}
			// Both in one process, before any of them has written.
			d, fields, err := c.first.open(t, fsys)
			if err != nil {
				t.Fatal(err)
			}
			path := d.series.path
			_, _, err = c.next.open(t, fsys)
			wantError(t, err, ErrInput, path, "in use", c.first.template)
			if err := c.first.write(t, d, fields); err != nil {
				t.Fatal(err)
			}
			d.Close()
			d.Close()
			// And in a later run.
			before := fsys.Dump()
			_, _, err = c.next.open(t, fsys)
			wantError(t, err, nil, path, "it lists ", c.next.template, "remove the XDMF file")
			sameFiles(t, fsys, before)
			// Without files the old series says nothing.
			for _, a := range readSeriesAt(t, fsys, path).Steps[0].Arrays {
				damage(t, fsys, "/data/"+a.Path, remove)
			}
			if err := c.next.run(t, fsys); err != nil {
				t.Fatal(err)
			}
			if got := listed(t, fsys, path); len(got) != len(c.next.ids) {
				t.Errorf("the series lists %q", got)
			}
		})
	}
}

// TestTheSameSeriesTwiceInAProcess: the two find each other's steps.
func TestTheSameSeriesTwiceInAProcess(t *testing.T) {
	fsys := newFS(t)
	r := dumpRun{template: "/data/psi_%d.bin", ids: []string{"psi"}}
	a, fields, err := r.open(t, fsys)
	if err != nil {
		t.Fatal(err)
	}
	defer a.Close()
	b, _, err := r.open(t, fsys)
	if err != nil {
		t.Fatal(err)
	}
	defer b.Close()
	for i := range int64(4) {
		r.writes = []dumped{{i, float64(i)}}
		if err := r.write(t, []*Dumps{a, b}[i%2], fields); err != nil {
			t.Fatal(err)
		}
		if i%2 == 1 { // b was given fields of its own
			damage(t, fsys, fmt.Sprintf("/data/psi_%d.bin", i), func(d []byte) []byte {
				binary.LittleEndian.PutUint64(d, math.Float64bits(float64(i)))
				return d
			})
		}
	}
	if d := cmp.Diff([]string{"psi_0@0", "psi_1@1", "psi_2@2", "psi_3@3"}, listed(t, fsys, "/data/psi.xmf")); d != "" {
		t.Errorf("-want +got:\n%s", d)
	}
	// Somebody clears the directory.
	for i := range int64(4) {
		damage(t, fsys, fmt.Sprintf("/data/psi_%d.bin", i), remove)
	}
	damage(t, fsys, "/data/psi.xmf", remove)
	r.writes = []dumped{{4, 4}}
	if err := r.write(t, a, fields); err != nil {
		t.Fatal(err)
	}
	if d := cmp.Diff([]string{"psi_4@4"}, listed(t, fsys, "/data/psi.xmf")); d != "" {
		t.Errorf("-want +got:\n%s", d)
	}
}

// TestSeveralFieldsAreOneSeries: real and complex ones are steps together.
func TestSeveralFieldsAreOneSeries(t *testing.T) {
	for _, ranks := range []int{1, 3} {
		fsys := newFS(t)
		err := onRanks(t, ranks, func(c *comm.Comm) error {
			ctx := context.Background()
			dec, err := grid.Decompose(testDomain, ranks)
			if err != nil {
				return err
			}
			box := dec.Box(c.Rank())
			re, err1 := field.New[float64](testDomain, box, field.Halo(1))
			z, err2 := field.New[complex128](testDomain, box)
			small, err3 := field.New[float32](testDomain, box)
			if err := c.Agree(ctx, errors.Join(err1, err2, err3)); err != nil {
				return err
			}
			d, err := NewDumps(ctx, c, "/data/out_%s.%d", []field.Named{{ID: "re", Field: re}, {ID: "z k", Field: z}, {ID: "small", Field: small}}, Filesystem(fsys))
			if err != nil {
				return err
			}
			defer d.Close()
			for n := range int64(2) {
				for p := range re.Owned().Cells() {
					g := re.Global(p[0], p[1], p[2])
					v := float64(n) + float64(g[0]+10*g[1]+100*g[2])
					a, err1 := re.MutableView()
					b, err2 := z.MutableView()
					s, err3 := small.MutableView()
					if err := errors.Join(err1, err2, err3); err != nil {
						return err
					}
					a[re.Index(p[0], p[1], p[2])] = v
					b[z.Index(p[0], p[1], p[2])] = complex(v, -v)
					s[small.Index(p[0], p[1], p[2])] = float32(2 * v)
				}
				paths, err := d.Write(ctx, n, float64(n)/2)
				if err != nil {
					return err
				}
				want := []string{fmt.Sprintf("/data/out_re.%d", n), fmt.Sprintf("/data/out_z k.%d", n), fmt.Sprintf("/data/out_small.%d", n)}
				if diff := cmp.Diff(want, paths); diff != "" {
					return fmt.Errorf("paths: %s", diff)
				}
			}
			return nil
		})
		if err != nil {
			t.Fatal(err)
		}
		s := readSeriesAt(t, fsys, "/data/out.xmf")
		if s.Name != "out" || len(s.Steps) != 2 {
			t.Fatalf("got %+v", s)
		}
		for n, step := range s.Steps {
			var names []string
			for _, a := range step.Arrays {
				names = append(names, fmt.Sprint(a.Name, a.Complex))
				data, err := vfs.ReadFile(fsys, "/data/"+a.Path, 1<<20)
				if err != nil {
					t.Fatal(err)
				}
				size := 8
				if a.Complex {
					size = 16
				}
				if int64(len(data)) != testDomain.Cells()*int64(size) {
					t.Fatalf("%s has %d bytes", a.Path, len(data))
				}
				for cell := range testDomain.Cells() {
					i, j, k := cell%5, cell/5%7, cell/35
					want := float64(n) + float64(i+10*j+100*k)
					if a.Name == "small" {
						want *= 2
					}
					if got := math.Float64frombits(binary.LittleEndian.Uint64(data[int(cell)*size:])); got != want {
						t.Fatalf("%d ranks: %s: cell %d is %v, want %v", ranks, a.Path, cell, got, want)
					}
				}
			}
			if d := cmp.Diff([]string{"refalse", "z ktrue", "smallfalse"}, names); d != "" || step.Time != float64(n)/2 {
				t.Errorf("step %d at %v: -want +got:\n%s", n, step.Time, d)
			}
		}
	}
}

// TestFieldsOfADumpCanBeGivenWithTheCall: a solver that swaps two buffers.
func TestFieldsOfADumpCanBeGivenWithTheCall(t *testing.T) {
	fsys := newFS(t)
	now, next := tinyField(t, "psi", 0), tinyField(t, "psi", 0)
	other := tinyField(t, "T", 100)
	d, err := NewDumps(t.Context(), comm.Self(), "/data/%s_%d.bin", []field.Named{now, other}, Filesystem(fsys))
	if err != nil {
		t.Fatal(err)
	}
	defer d.Close()
	for n := range int64(4) {
		fillTiny(t, now.Field, float64(n))
		fillTiny(t, next.Field, -1)
		fillTiny(t, other.Field, 100+float64(n))
		if _, err := d.Write(t.Context(), n, float64(n), now); err != nil {
			t.Fatal(err)
		}
		now, next = next, now
	}
	want := []string{"psi_0@0", "T_0@0", "psi_1@1", "T_1@1", "psi_2@2", "T_2@2", "psi_3@3", "T_3@3"}
	if d := cmp.Diff(want, listed(t, fsys, "/data/series.xmf")); d != "" {
		t.Errorf("-want +got:\n%s", d)
	}
	larger, err := field.New[float64](testDomain, testDomain.Box())
	if err != nil {
		t.Fatal(err)
	}
	before := fsys.Dump()
	for _, c := range []struct {
		given []field.Named
		want  string
	}{
		{[]field.Named{tinyField(t, "c", 0)}, `field "c" is none of the series`},
		{[]field.Named{now, next}, `field "psi" is given twice`},
		{[]field.Named{{ID: "psi"}}, `field "psi" is nil`},
		{[]field.Named{{ID: "psi", Field: larger}}, `another domain than field "psi"`},
	} {
		_, err := d.Write(t.Context(), 9, 9, c.given...)
		wantError(t, err, ErrInput, "/data/psi_9.bin", c.want)
	}
	sameFiles(t, fsys, before)
}

func TestFieldsThatCannotBeASeriesAreRefused(t *testing.T) {
	fsys := newFS(t)
	larger, err := field.New[float64](testDomain, testDomain.Box())
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		template string
		fields   []field.Named
		want     string
	}{
		{"/data/psi_%d.bin", nil, "no fields to dump"},
		{"/data/psi_%d.bin", []field.Named{{ID: "psi"}}, `field "psi" is nil`},
		{"/data/psi_%d.bin", []field.Named{tinyField(t, "a", 0), tinyField(t, "b", 0)}, "no %s for the ids of the 2 fields"},
		{"/data/%s_%d.bin", []field.Named{tinyField(t, "a", 0), tinyField(t, "a", 0)}, "given twice"},
		{"/data/%s_%d.bin", []field.Named{tinyField(t, "a/b", 0)}, "must not contain a slash"},
		{"/data/%s_%d.bin", []field.Named{tinyField(t, "a", 0), {ID: "b", Field: larger}}, "another domain"},
		{"/data/psi_%-4d", []field.Named{tinyField(t, "psi", 0)}, "begins or ends with white space"},
		{"/data/psi|%d", []field.Named{tinyField(t, "psi", 0)}, "contains a |"},
		{"/data/50%x/%d", []field.Named{tinyField(t, "psi", 0)}, "a % itself is %%"},
	} {
		_, err := NewDumps(t.Context(), comm.Self(), c.template, c.fields, Filesystem(fsys))
		wantError(t, err, ErrInput, c.want)
	}
	err = onRanks(t, 2, func(c *comm.Comm) error {
		f, err := field.New[float64](testDomain, grid.Box{Size: [3]int{5, 7, 3 * (1 - c.Rank())}})
		if err := c.Agree(context.Background(), err); err != nil {
			return err
		}
		fields := []field.Named{{ID: "a", Field: f}, {ID: "b", Field: f}}
		_, err = NewDumps(context.Background(), c, "/data/%s_%d.bin", fields[:1+c.Rank()], Filesystem(fsys))
		return err
	})
	wantError(t, err, ErrInput, "the ranks disagree")
}

// TestTheSystemSaysWhereDotsLeadAfterALink: dumps and XDMF file lie together.
func TestTheSystemSaysWhereDotsLeadAfterALink(t *testing.T) {
	dir := t.TempDir()
	t.Chdir(dir)
	if err := os.MkdirAll("a/b", 0o777); err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink("a/b", "link"); err != nil {
		t.Fatal(err)
	}
	r := dumpRun{template: "link/../psi_%d.bin", ids: []string{"psi"}}
	for i := range int64(2) { // the second run finds what the first one wrote
		r.writes = []dumped{{i, float64(i)}}
		if err := r.run(t, vfs.OS); err != nil {
			t.Fatal(err)
		}
	}
	if d := cmp.Diff([]string{"psi_0@0", "psi_1@1"}, listed(t, vfs.OS, filepath.Join(dir, "a/psi.xmf"))); d != "" {
		t.Errorf("-want +got:\n%s", d)
	}
}

// TestDumpsStayWhereTheyAre: a change of the working directory doesn't move them.
func TestDumpsStayWhereTheyAre(t *testing.T) {
	dir := t.TempDir()
	t.Chdir(dir)
	d, err := NewDumps(t.Context(), comm.Self(), "psi_%d.bin", []field.Named{tinyField(t, "psi", 7)})
	if err != nil {
		t.Fatal(err)
	}
	defer d.Close()
	t.Chdir(t.TempDir())
	paths, err := d.Write(t.Context(), 1, 0)
	if err != nil || paths[0] != filepath.Join(dir, "psi_1.bin") {
		t.Fatalf("got %q, %v", paths, err)
	}
	for _, name := range []string{"psi_1.bin", "psi.xmf"} {
		if _, err := os.Stat(filepath.Join(dir, name)); err != nil {
			t.Error(err)
		}
		if _, err := os.Stat(name); err == nil {
			t.Errorf("%s followed the working directory", name)
		}
	}
}
