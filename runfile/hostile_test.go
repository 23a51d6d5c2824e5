//go:build hdf5

package runfile

import (
	"errors"
	"io/fs"
	"math/rand/v2"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"

	"github.com/fieldstone-io/fieldstone/internal/h5"
	"github.com/fieldstone-io/fieldstone/record"
)

// edit is what happens to a sound file.
type edit func(f *h5.File) error

func unlink(path string) edit { return func(f *h5.File) error { return f.Unlink(path) } }

func attribute(path, name, value string) edit {
	return func(f *h5.File) error { return f.SetAttributeString(path, name, value) }
}

func replace(path string, write func(f *h5.File) error) edit {
	return func(f *h5.File) error {
		if err := f.Unlink(path); err != nil {
			return err
		}
		return write(f)
	}
}

func floats(path string, v []float64, shape ...int) edit {
	return replace(path, func(f *h5.File) error { return h5.Write(f, path, v, shape...) })
}

func ints(path string, v []int64, shape ...int) edit {
	return replace(path, func(f *h5.File) error { return h5.Write(f, path, v, shape...) })
}

func str(path, s string) edit {
	return replace(path, func(f *h5.File) error { return f.WriteString(path, s) })
}

func strs(path string, list ...string) edit {
	return replace(path, func(f *h5.File) error { return f.WriteStrings(path, list, h5.Fixed) })
}

func group(path string) edit {
	return replace(path, func(f *h5.File) error { return f.CreateGroup(path) })
}

// withoutSums takes the checksums away, as who changes a file does.
func withoutSums(f *h5.File) error {
	has, err := f.Exists(sumsGroup)
	if err == nil && has {
		err = f.Unlink(sumsGroup)
	}
	return err
}

// apply edits a file, and takes its checksums away: what else is wrong with it shows.
func apply(t *testing.T, path string, edits ...edit) {
	t.Helper()
	f, err := h5.OpenReadWrite(path)
	if err != nil {
		t.Fatal(err)
	}
	for _, e := range append([]edit{withoutSums}, edits...) {
		if err := e(f); err != nil {
			t.Fatal(err)
		}
	}
	if err := f.Close(); err != nil {
		t.Fatal(err)
	}
}

// refusals of output files: what is done to a sound one, which error there is, and what
// it names beside the file.
var refusals = map[string]struct {
	do    edit
	want  error
	names []string
}{
	"older version":          {attribute("/", "format_version", "0.0.0"), ErrVersion, []string{"0.0.0", "0.0.5"}},
	"newer patch":            {attribute("/", "format_version", "0.0.6"), ErrVersion, []string{"0.0.6", "0.0.5"}},
	"newer minor":            {attribute("/", "format_version", "0.1.0"), ErrVersion, []string{"0.1.0", "0.0.5"}},
	"newer major":            {attribute("/", "format_version", "1.0.0"), ErrVersion, []string{"1.0.0", "0.0.5"}},
	"two numbers":            {attribute("/", "format_version", "0.5"), ErrVersion, []string{`"0.5"`}},
	"a negative number":      {attribute("/", "format_version", "0.0.-5"), ErrVersion, []string{"0.0.-5"}},
	"no version":             {func(f *h5.File) error { return f.DeleteAttribute("/", "format_version") }, ErrNotRunFile, []string{"format_version"}},
	"a number for a version": {func(f *h5.File) error { return h5.SetAttribute(f, "/", "format_version", []float64{0.5}) }, h5.ErrType, []string{"format_version"}},
	"not finished":           {func(f *h5.File) error { return f.DeleteAttribute("/", "complete") }, ErrTorn, []string{"complete"}},
	"marked as unfinished":   {func(f *h5.File) error { return h5.SetAttribute(f, "/", "complete", []uint8{0}) }, ErrTorn, []string{"complete"}},
	"a checkpoint":           {func(f *h5.File) error { return f.CreateGroup("checkpoint") }, ErrNotOutput, nil},

	"no settings":                  {unlink("settings"), fs.ErrNotExist, []string{"settings"}},
	"settings are no group":        {str("settings", "none"), h5.ErrKind, []string{"settings"}},
	"a list without its order":     {unlink("settings/records/order"), ErrMismatch, []string{"settings/records", "order"}},
	"an order of too few":          {strs("settings/records/order", "z"), ErrMismatch, []string{"settings/records", "order"}},
	"an order of others":           {strs("settings/records/order", "z", "b"), ErrMismatch, []string{"settings/records", `"b"`}},
	"an order with one twice":      {strs("settings/records/order", "z", "z"), record.ErrDuplicate, []string{"settings/records"}},
	"an order of numbers":          {ints("settings/records/order", []int64{1, 2}, 2), h5.ErrType, []string{"settings/records/order"}},
	"a record with another name":   {str("settings/records/z/name", "y"), ErrMismatch, []string{"settings/records/z"}},
	"a list of arrays with a hole": {unlink("settings/many_arrays/3"), ErrMismatch, []string{"settings/many_arrays", `"3"`}},
	"a text among arrays":          {str("settings/many_arrays/3", "x"), ErrMismatch, []string{"settings/many_arrays/3"}},

	"no layout":                     {unlink("layout"), fs.ErrNotExist, []string{"layout"}},
	"a newer layout":                {ints("layout/layout_version", []int64{3}), ErrVersion, []string{"layout", "3", "2"}},
	"an unknown of no kind":         {unlink("layout/unknowns/E/kind"), record.ErrMissing, []string{"layout", "E", "kind"}},
	"an unknown of another kind":    {str("layout/unknowns/E/kind", "tensor"), ErrMismatch, []string{"layout", "E", "tensor"}},
	"components of the wrong type":  {str("layout/unknowns/E/components", "one"), record.ErrType, []string{"layout", "E", "components"}},
	"more components than memory":   {ints("layout/unknowns/E/components", []int64{1 << 62}), ErrMismatch, []string{"layout", "E"}},
	"a product that overflows":      {ints("layout/unknowns/E/components", []int64{1 << 43}), ErrMismatch, []string{"layout", "E"}},
	"a group that starts at 0":      {ints("layout/unknowns/ions/group_starts", []int64{0, 2}, 2), ErrMismatch, []string{"layout", "ions", "group_starts"}},
	"groups that don't ascend":      {ints("layout/unknowns/ions/group_starts", []int64{1, 1}, 2), ErrMismatch, []string{"layout", "ions"}},
	"a grid that is not there":      {strs("layout/unknowns/f/grids", "grid_9"), ErrMismatch, []string{"layout", "f", "grid_9"}},
	"faces that don't ascend":       {floats("layout/grids/grid_1/p_faces", []float64{0, 2, 1, 3, 4}, 5), ErrMismatch, []string{"layout", "grid_1"}},
	"faces that are no numbers":     {strs("layout/grids/grid_1/p_faces", "a"), record.ErrType, []string{"layout", "grid_1", "p_faces"}},
	"faces along two axes":          {floats("layout/r_faces", []float64{0, 1, 2, 3}, 2, 2), record.ErrType, []string{"layout", "r_faces"}},
	"a scale below zero":            {floats("layout/unknowns/E/scale", []float64{-1}), ErrMismatch, []string{"layout", "E", "-1"}},
	"a domain of two axes":          {ints("layout/unknowns/phi/cells", []int64{4, 3}, 2), ErrMismatch, []string{"layout", "phi", "cells"}},
	"a domain without cells":        {ints("layout/unknowns/phi/cells", []int64{4, 0, 2}, 3), ErrMismatch, []string{"layout", "phi", "cells"}},
	"a domain of too many cells":    {ints("layout/unknowns/phi/cells", []int64{1 << 40, 1 << 40, 1 << 40}, 3), ErrMismatch, []string{"layout", "phi"}},
	"a grid more than the unknowns": {unlink("layout/grids/grid_2"), ErrMismatch, []string{"layout/grids", "order"}},

	"times that don't ascend":    {floats("time", []float64{0, 0}, 2), ErrMismatch, []string{"time", "0 s"}},
	"a time more than states":    {floats("time", []float64{0, 0.5, 1}, 3), ErrMismatch, []string{"unknowns/", "[3", "[2"}},
	"times along two axes":       {floats("time", []float64{0, 1}, 1, 2), ErrMismatch, []string{"time"}},
	"times that are texts":       {strs("time", "0", "1"), h5.ErrType, []string{"time"}},
	"no unknowns":                {unlink("unknowns"), fs.ErrNotExist, []string{"unknowns/"}},
	"an unknown is missing":      {unlink("unknowns/ions"), fs.ErrNotExist, []string{"unknowns/ions"}},
	"a field is missing":         {unlink("unknowns/phi"), fs.ErrNotExist, []string{"unknowns/phi"}},
	"an unknown of another rank": {floats("unknowns/E", make([]float64, 6), 2, 3), ErrMismatch, []string{"unknowns/E", "[2 3]", "[2 3 1]"}},
	"an unknown transposed":      {floats("unknowns/ions", make([]float64, 30), 2, 5, 3), ErrMismatch, []string{"unknowns/ions", "[2 5 3]"}},
	"a field of other cells":     {floats("unknowns/phi", make([]float64, 48), 2, 4, 3, 2), ErrMismatch, []string{"unknowns/phi"}},
	"a group for an unknown":     {group("unknowns/E"), h5.ErrKind, []string{"unknowns/E"}},
	"an unknown of texts":        {strs("unknowns/current", "a", "b"), h5.ErrType, []string{"unknowns/current"}},
	"a radius is missing":        {unlink("unknowns/hot/radius_2"), fs.ErrNotExist, []string{"unknowns/hot/radius_2"}},
	"one dataset for all radii":  {floats("unknowns/hot", make([]float64, 40), 2, 20), nil, []string{"unknowns/hot/radius_1"}},
	"an unknown without its numbers": {func(f *h5.File) error {
		const path = "unknowns/ions"
		layout := h5.Layout{Shape: []int{2, 3, 1 << 36}, Chunk: []int{1, 1, 1024}}
		return errors.Join(
			ints("layout/unknowns/ions/components", []int64{1 << 36})(f),
			replace(path, func(f *h5.File) error { return h5.CreateDataset[float64](f, path, layout) })(f))
	}, h5.ErrTooLarge, []string{"unknowns/ions"}},

	"attempts of two lengths":        {floats("solver_statistics/time", []float64{1}, 1), ErrMismatch, []string{"solver_statistics", "1 entries for 3 attempts"}},
	"iterations of two lengths":      {floats("solver_statistics/iteration_residual", []float64{1}, 1), ErrMismatch, []string{"iteration_residual"}},
	"an iteration of no attempt":     {ints("solver_statistics/iteration_attempt", []int64{1, 1, 2, 4}, 4), ErrMismatch, []string{"iteration_attempt", "4"}},
	"outcomes that are numbers":      {floats("solver_statistics/outcome", []float64{1, 2, 3}, 3), h5.ErrType, []string{"solver_statistics/outcome"}},
	"updates without a state each":   {floats("update_states/flux", []float64{1, 2}, 1, 2), ErrMismatch, []string{"update_states/flux", "[1 2]"}},
	"updates along one axis":         {floats("update_states/flux", []float64{1, 2}, 2), ErrMismatch, []string{"update_states/flux"}},
	"a group in place of an update":  {group("update_states/flux"), h5.ErrKind, []string{"update_states/flux"}},
	"a dataset in place of updates":  {str("update_states", "x"), h5.ErrKind, []string{"update_states"}},
	"a dataset in place of unknowns": {str("unknowns", "x"), nil, []string{"unknowns"}},
}

func TestWhatIsNotAnOutputFileIsRefused(t *testing.T) {
	sound := filepath.Join(t.TempDir(), "sound.h5")
	if err := WriteOutput(t.Context(), sound, everything(t, 2), Fields(fieldValues)); err != nil {
		t.Fatal(err)
	}
	content, err := os.ReadFile(sound)
	if err != nil {
		t.Fatal(err)
	}
	for name, r := range refusals {
		t.Run(name, func(t *testing.T) {
			closed(t)
			path := filepath.Join(t.TempDir(), "run.h5")
			spoil(t, path, content)
			apply(t, path, r.do)
			s, err := ReadOutput(t.Context(), []string{path}, noWarnings(t))
			if err == nil {
				t.Fatalf("it is read: %+v", s)
			}
			if r.want != nil && !errors.Is(err, r.want) {
				t.Errorf("%v is no %q", err, r.want)
			}
			for _, n := range append(r.names, path) {
				if !strings.Contains(err.Error(), n) {
					t.Errorf("%v does not name %s", err, n)
				}
			}
		})
	}
}

func TestWhatIsNotACheckpointIsRefused(t *testing.T) {
	dir := t.TempDir()
	if err := WriteCheckpoint(t.Context(), dir, "run", checkpointAt(t, 2.5), Fields(fieldValues)); err != nil {
		t.Fatal(err)
	}
	content, err := os.ReadFile(CheckpointFile(dir, "run"))
	if err != nil {
		t.Fatal(err)
	}
	for name, r := range map[string]struct {
		do    edit
		want  error
		names []string
	}{
		"an output file":       {unlink("checkpoint"), ErrNotCheckpoint, []string{"checkpoint"}},
		"another time":         {floats("checkpoint/time", []float64{3}), ErrMismatch, []string{"checkpoint/time", "3 s", "2.5 s"}},
		"no time":              {unlink("time"), ErrMismatch, []string{"time"}},
		"no segment":           {unlink("checkpoint/segment"), fs.ErrNotExist, []string{"checkpoint/segment"}},
		"two segments":         {ints("checkpoint/segment", []int64{1, 2}, 2), ErrMismatch, []string{"checkpoint/segment"}},
		"a count below zero":   {ints("checkpoint/saved_count", []int64{-1}), ErrMismatch, []string{"checkpoint/saved_count"}},
		"no summary":           {unlink("checkpoint/summary"), fs.ErrNotExist, []string{"checkpoint/summary"}},
		"a summary of texts":   {str("checkpoint/summary/attempted", "9"), record.ErrType, []string{"checkpoint/summary", "attempted"}},
		"a stepper of a text":  {str("checkpoint/stepper", "bdf"), h5.ErrKind, []string{"checkpoint/stepper"}},
		"an update of a group": {group("checkpoint/update_states/flux"), h5.ErrKind, []string{"checkpoint/update_states/flux"}},
		"a bundle of no field": {func(f *h5.File) error { return f.WriteString("checkpoint/bundles/E", "b") }, ErrMismatch, []string{"checkpoint/bundles/E"}},
		"two states":           {floats("time", []float64{2, 2.5}, 2), ErrMismatch, []string{"time", "2 times"}},
	} {
		t.Run(name, func(t *testing.T) {
			closed(t)
			dir := t.TempDir()
			path := CheckpointFile(dir, "run")
			spoil(t, path, content)
			apply(t, path, r.do)
			k, err := ReadCheckpoint(t.Context(), dir, "run", noWarnings(t))
			if err == nil {
				t.Fatalf("it is read: %+v", k)
			}
			if !errors.Is(err, r.want) {
				t.Errorf("%v is no %q", err, r.want)
			}
			for _, n := range append(r.names, path) {
				if !strings.Contains(err.Error(), n) {
					t.Errorf("%v does not name %s", err, n)
				}
			}
		})
	}
}

// A unit that others wrote in a form of theirs is no reason to refuse the file.
func TestUnitsThatAreNoneAreDropped(t *testing.T) {
	for name, do := range map[string]edit{
		"a number":             floats("layout/unknowns/E/unit", []float64{1}),
		"a list":               strs("layout/unknowns/E/unit", "V", "m"),
		"a group":              group("layout/unknowns/E/unit"),
		"not ASCII":            str("layout/unknowns/E/unit", "µV/m"),
		"a control character":  str("layout/unknowns/E/unit", "V\n/m"),
		"an array of no place": floats("layout/unknowns/E/unit", nil, 0, 2),
	} {
		t.Run(name, func(t *testing.T) {
			closed(t)
			path := filepath.Join(t.TempDir(), "run.h5")
			if err := WriteOutput(t.Context(), path, everything(t, 1), Fields(fieldValues)); err != nil {
				t.Fatal(err)
			}
			apply(t, path, do)
			var warnings []string
			s, err := ReadOutput(t.Context(), []string{path}, Warn(func(s string) { warnings = append(warnings, s) }))
			if err != nil {
				t.Fatal(err)
			}
			if _, stored := s.units["E"]; stored || s.Layout.Unknown("E").Unit != "" {
				t.Errorf("the unit is %q", s.Layout.Unknown("E").Unit)
			}
			if len(warnings) != 1 || !strings.Contains(warnings[0], path) || !strings.Contains(warnings[0], `"E"`) {
				t.Errorf("warnings: %q", warnings)
			}
		})
	}
}

// Links that lead in circles or elsewhere, and sizes that a file can't have, cost
// nothing but an error.
func TestHostileFilesAreRefused(t *testing.T) {
	for file, want := range map[string]struct {
		err   error
		names string
	}{
		"loop":          {h5.ErrLink, "settings/run/link"},
		"soft_loop":     {nil, "settings/run/link"},
		"soft_up":       {nil, "settings/run/link"},
		"dangling":      {nil, "settings/run/link"},
		"external":      {nil, "settings/run/link"},
		"deep":          {nil, "settings/deeper"},
		"many_names":    {h5.ErrLink, "settings/"},
		"compound":      {h5.ErrType, "settings/run/pair"},
		"huge_time":     {h5.ErrTooLarge, "time"},
		"huge_unknown":  {ErrMismatch, "unknowns/n"},
		"huge_record":   {h5.ErrTooLarge, "settings/run/x2"},
		"external_time": {nil, "time"},
	} {
		t.Run(file, func(t *testing.T) {
			closed(t)
			path := "testdata/hostile/" + file + ".h5"
			var before, after runtime.MemStats
			runtime.ReadMemStats(&before)
			s, err := ReadOutput(t.Context(), []string{path})
			runtime.ReadMemStats(&after)
			if err == nil {
				t.Fatalf("it is read: %+v", s)
			}
			if want.err != nil && !errors.Is(err, want.err) {
				t.Errorf("%v is no %q", err, want.err)
			}
			if !strings.Contains(err.Error(), path) || !strings.Contains(err.Error(), want.names) {
				t.Errorf("%v does not name %s and %s", err, path, want.names)
			}
			if n := after.TotalAlloc - before.TotalAlloc; n > 64<<20 {
				t.Errorf("%d bytes were allocated", n)
			}
		})
	}
	s, err := ReadOutput(t.Context(), []string{"testdata/hostile/sound.h5"}, noWarnings(t))
	if err != nil || s.States[0][0] != 1 {
		t.Errorf("the file without an evil: %+v, %v", s, err)
	}
}

func TestCutFilesAreRefused(t *testing.T) {
	closed(t)
	dir := t.TempDir()
	put(t, dir, 1)
	path := CheckpointFile(dir, "run")
	content, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	cut := filepath.Join(dir, "cut.h5")
	for n := 0; n < len(content); n += 1 + n/64 {
		spoil(t, cut, content[:n])
		if _, err := ReadState(t.Context(), cut); err == nil || !strings.Contains(err.Error(), cut) {
			t.Fatalf("cut after %d of %d bytes: %v", n, len(content), err)
		}
	}
}

// A flipped bit may go unnoticed; if it is noticed the error names the file. Nothing
// crashes, and nothing stays open.
func TestFlippedBitsDoNoHarm(t *testing.T) {
	dir := t.TempDir()
	put(t, dir, 1)
	content, err := os.ReadFile(CheckpointFile(dir, "run"))
	if err != nil {
		t.Fatal(err)
	}
	random := rand.New(rand.NewPCG(1, 2))
	flipped := filepath.Join(dir, "flipped.h5")
	refused := 0
	for range 400 {
		at, bit := random.IntN(len(content)), random.IntN(8)
		content[at] ^= 1 << bit
		spoil(t, flipped, content)
		content[at] ^= 1 << bit
		_, err := ReadState(t.Context(), flipped, Warn(func(string) {}))
		if err != nil {
			refused++
			if !strings.Contains(err.Error(), flipped) {
				t.Fatalf("bit %d of byte %d: %v does not name the file", bit, at, err)
			}
		}
		if n := h5.OpenObjects(); n != 0 {
			t.Fatalf("bit %d of byte %d: %d objects are open", bit, at, n)
		}
	}
	if refused == 0 {
		t.Error("nothing was noticed")
	}
}
