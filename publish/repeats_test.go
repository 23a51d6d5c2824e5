package publish

import (
	"context"
	"errors"
	"fmt"
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/fieldstone-io/fieldstone/internal/vfs"
)

// saveValues saves bundles, of increments 10, 20, ... after the one that the solver has: in
// each, all cells of "phi" have the one number, and those of "T" the other.
func saveValues(values ...[2]float64) func(s session) error {
	return func(s session) error {
		for _, v := range values {
			if err := saveValue(s, s.solver.clock.increment+10, v); err != nil {
				return err
			}
		}
		return nil
	}
}

func saveValue(s session, increment int64, v [2]float64) error {
	s.solver.clock = testClock{increment, testTime(increment)}
	err := s.solver.each(func(i int, cell [3]int) (float64, bool) { return v[i], cell[0] >= 0 })
	if err := s.c.Agree(context.Background(), err); err != nil {
		return err
	}
	_, err = s.service.Save(context.Background(), s.solver.solver())
	return err
}

// repeatsIn are the bundles that a log warns of, with the fields, for not having changed.
func repeatsIn(log *logs) (list []string) {
	for _, line := range warnings(log) {
		if !strings.Contains(line, "fields equal those of the bundle before") {
			list = append(list, line)
			continue
		}
		_, fields, _ := strings.Cut(line, "fields=")
		fields, rest, _ := strings.Cut(fields, " bundle=/data/ckpt/")
		bundle, before, _ := strings.Cut(rest, " before=/data/ckpt/")
		list = append(list, fmt.Sprintf("%s: %s as in %s", bundle, strings.Trim(fields, `"`), strings.TrimSpace(before)))
	}
	return list
}

// A field that has changed from bundle to bundle, and then doesn't, is warned of, once.
func TestAServiceWarnsOfFieldsThatHaveStoppedChanging(t *testing.T) {
	const a, b, c, d = 1, 2, 3, 4
	type run struct {
		values   [][2]float64 // of phi and T
		constant []string
		again    bool // saves the last state once more, whose bundle was lost
		want     []string
	}
	for _, tt := range []struct {
		name string
		runs []run // each restarts from the last bundle
	}{
		{"fields that change", []run{{values: [][2]float64{{a, b}, {b, c}, {c, d}}}}},
		{"a field that stops", []run{{values: [][2]float64{{a, a}, {b, b}, {b, c}}, want: []string{"step_30: [phi] as in step_20"}}}},
		{"once only", []run{{values: [][2]float64{{a, a}, {b, b}, {b, c}, {b, d}, {c, a}, {c, b}}, want: []string{"step_30: [phi] as in step_20"}}}},
		{"each field", []run{{values: [][2]float64{{a, a}, {b, b}, {b, c}, {c, c}}, want: []string{"step_30: [phi] as in step_20", "step_40: [T] as in step_30"}}}},
		{"both at once", []run{{values: [][2]float64{{a, a}, {b, b}, {b, b}}, want: []string{"step_30: [phi T] as in step_20"}}}},
		{"a field that is the same from the first save on", []run{{values: [][2]float64{{a, a}, {a, b}, {a, c}}}}},
		{"that begins to change later", []run{{values: [][2]float64{{a, a}, {a, b}, {b, c}, {b, d}}, want: []string{"step_40: [phi] as in step_30"}}}},
		{"as it was two bundles ago", []run{{values: [][2]float64{{a, a}, {b, b}, {a, a}, {b, b}}}}},
		{"a field that is declared constant", []run{{values: [][2]float64{{a, a}, {b, b}, {b, b}}, constant: []string{"phi"}, want: []string{"step_30: [T] as in step_20"}}}},
		{"both are declared", []run{{values: [][2]float64{{a, a}, {b, b}, {b, b}}, constant: []string{"T", "phi"}}}},
		{"the last state, saved once more", []run{{values: [][2]float64{{a, a}, {b, b}}, again: true}}},
		{"the first save after a restart", []run{
			{values: [][2]float64{{a, a}, {b, b}}},
			{values: [][2]float64{{b, c}, {b, d}}},
		}},
		{"after a restart it changes, and stops", []run{
			{values: [][2]float64{{a, a}, {b, b}}},
			{values: [][2]float64{{c, c}, {c, d}}, want: []string{"step_40: [phi] as in step_30"}},
		}},
		{"once in each run", []run{
			{values: [][2]float64{{a, a}, {b, b}, {b, c}}, want: []string{"step_30: [phi] as in step_20"}},
			{values: [][2]float64{{c, d}, {c, a}, {c, b}}, want: []string{"step_50: [phi] as in step_40"}},
		}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			for _, ranks := range []int{1, 3} {
				fsys := newFS(t)
				for i, r := range tt.runs {
					var log logs
					cfg := unwaiting(Latest)
					cfg.Checkpoint.ConstantFields = r.constant
					err := withService(t, fsys, ranks, cfg, &log, func(s session) error {
						if err := saveValues(r.values...)(s); err != nil || !r.again {
							return err
						}
						n, last := s.solver.clock.increment, r.values[len(r.values)-1]
						err := s.c.OnRoot(context.Background(), nil, func() error {
							return vfs.RemoveAll(fsys, fmt.Sprintf("/data/ckpt/step_%d", n))
						})
						if err != nil {
							return err
						}
						return saveValue(s, n, last)
					})
					if err != nil {
						t.Fatal(err)
					}
					if got := repeatsIn(&log); !reflect.DeepEqual(got, r.want) {
						t.Errorf("%d ranks, run %d: warnings %q, want %q", ranks, i, got, r.want)
					}
				}
			}
		})
	}
}

// A bundle without checksums says nothing about its fields.
func TestARestartFromABundleWithoutChecksumsBeginsAnew(t *testing.T) {
	fsys := newFS(t)
	if err := withService(t, fsys, 1, unwaiting(""), nil, saveValues([2]float64{1, 1}, [2]float64{2, 2})); err != nil {
		t.Fatal(err)
	}
	const bundle = "/data/ckpt/step_20/"
	meta := must1(ParseMetadata(must1(vfs.ReadFile(fsys, bundle+metadataFile, maxMetadataBytes))))
	meta.Writer = nil // another program's
	err := errors.Join(fsys.Remove(bundle+metadataFile), fsys.Remove(bundle+checksumsFile),
		vfs.WriteFile(fsys, bundle+metadataFile, must1(EncodeMetadata(meta)), 0o666, false))
	if err != nil {
		t.Fatal(err)
	}
	var log logs
	err = withService(t, fsys, 2, unwaiting("/data/ckpt/step_20"), &log, saveValues([2]float64{2, 2}, [2]float64{3, 3}, [2]float64{3, 4}))
	if err != nil {
		t.Fatal(err)
	}
	got := slices.DeleteFunc(repeatsIn(&log), func(line string) bool { return strings.Contains(line, "no checksums") })
	if want := []string{"step_50: [phi] as in step_40"}; !slices.Equal(got, want) {
		t.Errorf("warnings %q, want %q", got, want)
	}
}

func TestConstantFieldsOfAConfiguration(t *testing.T) {
	got, err := ParseConfig([]byte(`{"checkpoint": {"constant_fields": ["mobility", "T"]}}`))
	if err != nil || !reflect.DeepEqual(got.Checkpoint.ConstantFields, []string{"mobility", "T"}) {
		t.Errorf("%+v, %v", got, err)
	}
	for text, want := range map[string]string{
		`{"checkpoint": {"constant_fields": "T"}}`:        "checkpoint.constant_fields: is a JSON string, want an array of strings",
		`{"checkpoint": {"constant_fields": ["a/b"]}}`:    `checkpoint.constant_fields: field 0: field id "a/b"`,
		`{"checkpoint": {"constant_fields": ["T", "T"]}}`: `checkpoint.constant_fields: field 1: field id "T": given twice`,
		`{"checkpoint": {"constant_field": ["T"]}}`:       "constant_fields",
	} {
		if _, err := ParseConfig([]byte(text)); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: error %v, want one with %q", text, err, want)
		}
	}
	// One that the solver doesn't have is found out at the restart, or at the first save.
	cfg := unwaiting("")
	cfg.Checkpoint.ConstantFields = []string{"phj"}
	const text = `checkpoint.constant_fields: field "phj" is not one of ["phi" "T"]`
	wantError(t, withService(t, newFS(t), 2, cfg, nil, nil), ErrInput, text)
	err = withService(t, newFS(t), 2, unwaiting(""), nil, func(s session) error {
		s.service.cfg = cfg
		return saveValues([2]float64{1, 1})(s)
	})
	wantError(t, err, ErrInput, text)
}
