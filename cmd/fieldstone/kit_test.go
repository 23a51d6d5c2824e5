package main

import (
	"bytes"
	"context"
	"encoding/json"
	"flag"
	"fmt"
	"math"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/fieldstone-io/fieldstone/comm"
	"github.com/fieldstone-io/fieldstone/field"
	"github.com/fieldstone-io/fieldstone/grid"
	"github.com/fieldstone-io/fieldstone/pack"
	"github.com/fieldstone-io/fieldstone/publish"
)

var update = flag.Bool("update", false, "rewrite the golden files and the examples of docs/cli.md")

// runAsTool makes the test binary behave as the tool.
const runAsTool = "FIELDSTONE_RUN_AS_TOOL"

func TestMain(m *testing.M) {
	if os.Getenv(runAsTool) != "" {
		main()
	}
	flag.Parse()
	status := m.Run()
	for _, dir := range prepared {
		if err := os.RemoveAll(dir); err != nil {
			panic(err)
		}
	}
	os.Exit(status)
}

// outcome is what a command line came to.
type outcome struct {
	status      int
	out, errors string
}

func run(t *testing.T, args ...string) outcome {
	t.Helper()
	return runContext(t, t.Context(), args...)
}

func runContext(t *testing.T, ctx context.Context, args ...string) outcome {
	t.Helper()
	var out, errors bytes.Buffer
	status := execute(ctx, args, &out, &errors)
	return outcome{status, out.String(), errors.String()}
}

// mustRun also checks the exit status.
func mustRun(t *testing.T, status int, args ...string) outcome {
	t.Helper()
	o := run(t, args...)
	if o.status != status {
		t.Fatalf("fieldstone %s: exit status %d, want %d\n%s%s", strings.Join(args, " "), o.status, status, o.out, o.errors)
	}
	return o
}

// says checks that a text has all of some parts.
func says(t *testing.T, text string, parts ...string) {
	t.Helper()
	for _, p := range parts {
		if !strings.Contains(text, p) {
			t.Errorf("no %q in\n%s", p, text)
		}
	}
}

// sample is a bundle to be made.
type sample struct {
	domain    grid.Domain // the zero value is sampleDomain
	increment int64
	fields    []sampleField // nil is phi and T
	method    string
	walls     []publish.Boundary
	sidecar   any
}

type sampleField struct {
	id    string
	value func(cell int) float64 // by the index in the file
}

var sampleDomain = grid.Domain{
	Size:     [3]int{4, 3, 2},
	Origin:   [3]float64{0, -1.5, 0},
	Spacing:  [3]float64{0.5, 0.5, 1},
	Periodic: [3]bool{true, true, false},
}

// created is when samples say that they were written.
var created = time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)

// save publishes a sample. The same sample gives the same bytes.
func (s sample) save(t *testing.T, dir string) string {
	t.Helper()
	if s.domain == (grid.Domain{}) {
		s.domain = sampleDomain
	}
	if s.fields == nil {
		s.fields = []sampleField{
			{"phi", func(cell int) float64 { return float64(cell) / 4 }},
			{"T", func(cell int) float64 { return -1 - float64(cell) }},
		}
	}
	if s.method == "" {
		s.method = "euler"
	}
	state := publish.State{
		Time:          float64(s.increment) / 8,
		Increment:     s.increment,
		ResultCounter: s.increment / 10,
		Method:        s.method,
		Boundaries:    s.walls,
		Sidecar:       s.sidecar,
	}
	for _, f := range s.fields {
		fld, err := field.New[float64](s.domain, s.domain.Box())
		if err != nil {
			t.Fatal(err)
		}
		data, err := fld.MutableView()
		if err != nil {
			t.Fatal(err)
		}
		for i := range data {
			data[i] = f.value(i)
		}
		state.Fields = append(state.Fields, field.Named{ID: f.id, Field: fld})
	}
	if err := os.MkdirAll(filepath.Dir(dir), 0o777); err != nil {
		t.Fatal(err)
	}
	err := publish.SaveBundle(t.Context(), comm.Self(), dir, state, publish.WithDurability(publish.None))
	if err != nil {
		t.Fatal(err)
	}
	editMetadata(t, dir, func(m *publish.Metadata) {
		m.Writer = &publish.Writer{Version: "0.1.0", Created: created}
	})
	return dir
}

// editMetadata changes the metadata of a bundle and their checksum.
func editMetadata(t *testing.T, dir string, edit func(*publish.Metadata)) {
	t.Helper()
	m, err := publish.ReadMetadata(dir)
	if err != nil {
		t.Fatal(err)
	}
	edit(&m)
	text, err := publish.EncodeMetadata(m)
	if err != nil {
		t.Fatal(err)
	}
	rewrite(t, dir, "metadata.json", func([]byte) []byte { return text })
	reseal(t, dir)
}

// reseal makes the checksums of a bundle those of its files.
func reseal(t *testing.T, dir string) {
	t.Helper()
	rewrite(t, dir, "checksums.txt", func(old []byte) []byte {
		var b bytes.Buffer
		for line := range strings.Lines(string(old)) {
			file := strings.TrimSpace(line[18:])
			fmt.Fprintf(&b, "%016x  %s\n", pack.Sum(read(t, filepath.Join(dir, file))), file)
		}
		return b.Bytes()
	})
}

func read(t *testing.T, path string) []byte {
	t.Helper()
	data, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	return data
}

func write(t *testing.T, path string, data []byte) {
	t.Helper()
	if err := os.MkdirAll(filepath.Dir(path), 0o777); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path, data, 0o666); err != nil {
		t.Fatal(err)
	}
}

func rewrite(t *testing.T, dir, file string, edit func([]byte) []byte) {
	t.Helper()
	path := filepath.Join(dir, file)
	write(t, path, edit(read(t, path)))
}

func remove(t *testing.T, path string) {
	t.Helper()
	if err := os.RemoveAll(path); err != nil {
		t.Fatal(err)
	}
}

func symlink(t *testing.T, target, path string) {
	t.Helper()
	if err := os.Symlink(target, path); err != nil {
		t.Fatal(err)
	}
}

func rename(t *testing.T, from, to string) {
	t.Helper()
	if err := os.Rename(from, to); err != nil {
		t.Fatal(err)
	}
}

// flip flips a bit in the middle of a file.
func flip(t *testing.T, dir, file string) {
	t.Helper()
	rewrite(t, dir, file, func(data []byte) []byte {
		data[len(data)/2] ^= 1
		return data
	})
}

// version1 makes a bundle one that another writer could have written: format
// version 1, no list of fields, no checksums.
func version1(t *testing.T, dir string) {
	t.Helper()
	remove(t, filepath.Join(dir, "checksums.txt"))
	rewrite(t, dir, "metadata.json", func([]byte) []byte {
		return []byte(`{"format_version": 1, "accepted_time": 1.25, "accepted_increment": 10, "domain":
			{"global_dimensions": [4, 3, 2], "physical_origin": [0, -1.5, 0], "grid_spacing": [0.5, 0.5, 1]},
			"method_identity": "euler"}`)
	})
}

// golden compares text with a file under testdata.
func golden(t *testing.T, name, text string) {
	t.Helper()
	// Tests change the directory.
	path := filepath.Join(testdata, name)
	if *update {
		write(t, path, []byte(text))
	}
	if want := string(read(t, path)); text != want {
		t.Errorf("%s (rewrite it with -update):\n%s\nwant:\n%s", name, text, want)
	}
}

var testdata = func() string {
	dir, err := filepath.Abs("testdata")
	if err != nil {
		panic(err)
	}
	return dir
}()

// decodeJSON reads the JSON output of a command.
func decodeJSON[T any](t *testing.T, o outcome) T {
	t.Helper()
	var v T
	if err := json.Unmarshal([]byte(o.out), &v); err != nil {
		t.Fatalf("%v in\n%s", err, o.out)
	}
	return v
}

// results makes results/ckpt under a fresh current directory, with everything that
// a directory of bundles can hold.
func results(t *testing.T) {
	t.Helper()
	prepare(t, "results", func(dir string) { makeResults(t, filepath.Join(dir, "results/ckpt")) })
}

// prepare makes a fresh current directory with a copy of what fill makes once for all
// tests.
func prepare(t *testing.T, name string, fill func(dir string)) {
	t.Helper()
	t.Chdir(t.TempDir())
	if prepared[name] == "" {
		dir, err := os.MkdirTemp("", "fieldstone")
		if err != nil {
			t.Fatal(err)
		}
		prepared[name] = dir
		fill(dir)
	}
	if err := os.CopyFS(".", os.DirFS(prepared[name])); err != nil {
		t.Fatal(err)
	}
}

// prepared are the directories that prepare copies. TestMain removes them.
var prepared = make(map[string]string)

func makeResults(t *testing.T, ckpt string) {
	t.Helper()
	dir := func(name string) string { return filepath.Join(ckpt, name) }
	for _, n := range []int64{9, 10, 20, 30} {
		s := sample{increment: n}
		if n == 20 {
			s.walls = []publish.Boundary{
				wall{config: `{"type":"fixed","value":-1}`},
				wall{config: `{"type":"moving"}`, state: `{"xpos":1.5,"idx":3,"first":false}`},
			}
			s.sidecar = map[string]any{"seed": 7}
		}
		s.save(t, dir(publish.StepName(n)))
	}
	sample{increment: 40}.save(t, dir("step_40"))
	rewrite(t, dir("step_40"), "fields/T.bin", func(b []byte) []byte { return b[:len(b)-8] })
	// Damage that only the checksum shows.
	flip(t, dir("step_30"), "fields/phi.bin")

	sample{increment: 15}.save(t, dir("step_15.damaged"))
	remove(t, dir("step_15.damaged/fields/T.bin"))
	sample{increment: 50}.save(t, dir("step_50.superseded"))
	sample{increment: 25}.save(t, dir("before the thaw ψ"))
	write(t, dir("step_60.publishing/fields/phi.bin"), []byte("begun"))
	write(t, dir("step_60.publishing.lock"), nil)
	write(t, dir("step_5.removing/fields/phi.bin"), []byte("half gone"))
	write(t, dir("notes.txt"), []byte("not a bundle"))
}

// wall is a boundary condition.
type wall struct{ config, state string }

func (w wall) Config() (json.RawMessage, error) { return json.RawMessage(w.config), nil }

func (w wall) CheckpointState(context.Context, *comm.Comm) (json.RawMessage, error) {
	if w.state == "" {
		return nil, nil
	}
	return json.RawMessage(w.state), nil
}

func (w wall) RestoreCheckpointState(json.RawMessage) error { return nil }

// Values that arithmetic treats specially.
var special = []float64{
	0, math.Copysign(0, -1), 1, -1, math.Inf(1), math.Inf(-1), math.NaN(),
	math.Float64frombits(0xfff8000000000001), // a NaN of other bits
	math.SmallestNonzeroFloat64, -math.SmallestNonzeroFloat64,
	math.MaxFloat64, -math.MaxFloat64, 0x1p-1022, math.Nextafter(0x1p-1022, 0), 1e-200, 1e200,
}
