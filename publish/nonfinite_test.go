package publish

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"math"
	"path"
	"path/filepath"
	"strings"
	"testing"

	"github.com/fieldstone-io/fieldstone/comm"
	"github.com/fieldstone-io/fieldstone/internal/vfs"
	"github.com/fieldstone-io/fieldstone/pack"
)

// spoil makes the given numbers of cells of fields NaN or infinite, the first ones in
// the order of the file; all other cells are finite.
func (s *testSolver) spoil(counts map[string]int) error {
	return s.each(func(i int, cell [3]int) (float64, bool) {
		if cell[0] < 0 {
			return math.NaN(), true // ghost cells never count
		}
		n := cell[0] + testDomain.Size[0]*(cell[1]+testDomain.Size[1]*cell[2])
		if n >= counts[s.ids[i]] {
			return float64(n) / 8, true
		}
		return []float64{math.NaN(), math.Inf(1), math.Inf(-1)}[n%3], true
	})
}

const testCells = 5 * 7 * 3

// blowUp makes a step of a solver with so many cells that aren't finite.
func blowUp(n int64, counts map[string]int) func(s session) error {
	return func(s session) error {
		ctx := context.Background()
		err := s.solver.advance(n)
		if err == nil {
			err = s.solver.spoil(counts)
		}
		if err := s.c.Agree(ctx, err); err != nil {
			return err
		}
		_, err = s.service.MaybeSave(ctx, s.solver.solver())
		return err
	}
}

func sequence(list ...func(s session) error) func(s session) error {
	return func(s session) error {
		for _, f := range list {
			if err := f(s); err != nil {
				return err
			}
		}
		return nil
	}
}

func withNonFinite(cfg Config, p NonFinitePolicy, fields map[string]NonFinitePolicy) Config {
	cfg.Checkpoint.NonFinite, cfg.Checkpoint.NonFiniteFields = p, fields
	return cfg
}

func savedCounts(t testing.TB, fsys vfs.FS, dir string) map[string]int64 {
	t.Helper()
	m, _, err := readMetadata(fsys, dir)
	if err != nil {
		t.Fatal(err)
	}
	if m.Writer == nil || m.Writer.NonFinite == nil {
		t.Fatalf("%s says nothing of cells that aren't finite", dir)
	}
	return m.Writer.NonFinite
}

// Fields that the library writes and fields that a callback writes, on any number of
// ranks.
func TestABundleTellsHowManyCellsAreNotFinite(t *testing.T) {
	for _, c := range []struct{ phi, T int }{{0, 0}, {1, 0}, {testCells, 7}, {testCells - 1, testCells}} {
		for _, ranks := range []int{1, 2, 4, 7} {
			fsys := vfs.NewMem()
			want := map[string]int64{}
			for id, n := range map[string]int{"phi": c.phi, "T": c.T} {
				if n > 0 {
					want[id] = int64(n)
				}
			}
			err := onRanks(t, ranks, func(k *comm.Comm) error {
				s, err := newTestSolver(k, 2, "phi", "T")
				if err == nil {
					err = errors.Join(s.advance(5), s.spoil(map[string]int{"phi": c.phi, "T": c.T}))
				}
				if err := k.Agree(t.Context(), err); err != nil {
					return err
				}
				if err := SaveBundle(t.Context(), k, "/saved", s.state(), Filesystem(fsys)); err != nil {
					return err
				}
				meta, _, err := s.state().metadata()
				if err := k.Agree(t.Context(), err); err != nil {
					return err
				}
				return Directory(t.Context(), k, "/written", meta, func(_ context.Context, dir string) error {
					if k.Rank() > 0 {
						return nil
					}
					for _, id := range meta.Fields {
						b, err := vfs.ReadFile(fsys, "/saved/fields/"+id+".bin", 1<<20)
						if err == nil {
							err = vfs.WriteFile(fsys, filepath.Join(dir, id+".bin"), b, 0o666, true)
						}
						if err != nil {
							return err
						}
					}
					return nil
				}, Filesystem(fsys))
			})
			if err != nil {
				t.Fatal(err)
			}
			for _, dir := range []string{"/saved", "/written"} {
				if got := savedCounts(t, fsys, dir); !maps.Equal(got, want) {
					t.Errorf("%s, %d ranks: %v, want %v", dir, ranks, got, want)
				}
			}
		}
	}
}

// saveSpoilt publishes a state with cells that aren't finite, without a service.
func saveSpoilt(t testing.TB, fsys vfs.FS, log *logs, counts map[string]int, opts ...Option) error {
	return onRanks(t, 3, func(c *comm.Comm) error {
		s, err := newTestSolver(c, 1, "phi", "T")
		if err == nil {
			err = errors.Join(s.advance(5), s.spoil(counts))
		}
		if err := c.Agree(context.Background(), err); err != nil {
			return err
		}
		opts := append([]Option{Filesystem(fsys), Logger(slog.New(slog.NewTextHandler(log, nil)))}, opts...)
		err = SaveBundle(context.Background(), c, "/b", s.state(), opts...)
		if errors.Is(err, ErrNonFinite) != strings.Contains(fmt.Sprint(err), "refused") {
			err = errors.Join(err, fmt.Errorf("rank %d: the error doesn't match ErrNonFinite", c.Rank()))
		}
		return err
	})
}

func TestPoliciesForCellsThatAreNotFinite(t *testing.T) {
	both := map[string]int{"phi": 4, "T": 1}
	for _, c := range []struct {
		name   string
		counts map[string]int
		opts   []Option
		err    string // of the save
		warn   string // in the log
	}{
		{"the default", both, nil, "", `4 cells of field \"phi\", 1 cell of field \"T\"`},
		{"the default, a finite state", nil, nil, "", ""},
		{"warn", both, []Option{NonFinite(WarnNonFinite, nil)}, "", `4 cells of field \"phi\", 1 cell of field \"T\"`},
		{"ignore", both, []Option{NonFinite(IgnoreNonFinite, nil)}, "", ""},
		{"ignore one field", both, []Option{NonFinite("", map[string]NonFinitePolicy{"phi": IgnoreNonFinite})}, "", `non_finite="1 cell of field \"T\""`},
		{"ignore all but one", both, []Option{NonFinite(IgnoreNonFinite, map[string]NonFinitePolicy{"phi": WarnNonFinite})}, "", `non_finite="4 cells of field \"phi\""`},
		{"refuse", both, []Option{NonFinite(RefuseNonFinite, nil)},
			`publish /b: NaN or infinite cells are refused: 4 cells of field "phi", 1 cell of field "T"`, ""},
		{"refuse one field", both, []Option{NonFinite(WarnNonFinite, map[string]NonFinitePolicy{"T": RefuseNonFinite})},
			`publish /b: NaN or infinite cells are refused: 1 cell of field "T"`, ""},
		{"refuse a field that is finite", map[string]int{"phi": 2}, []Option{NonFinite(WarnNonFinite, map[string]NonFinitePolicy{"T": RefuseNonFinite})},
			"", `non_finite="2 cells of field \"phi\""`},
		{"refuse all but one", map[string]int{"phi": 2}, []Option{NonFinite(RefuseNonFinite, map[string]NonFinitePolicy{"phi": IgnoreNonFinite})}, "", ""},
		{"an unknown policy", nil, []Option{NonFinite("wran", nil)}, `publish /b: rank 0: invalid input: NonFinite: "wran": want "warn", "refuse" or "ignore"`, ""},
		{"an unknown policy of a field", nil, []Option{NonFinite("", map[string]NonFinitePolicy{"phi": ""})},
			`publish /b: rank 0: invalid input: NonFinite: field "phi": "": want "warn", "refuse" or "ignore"`, ""},
		{"a field that there isn't", nil, []Option{NonFinite("", map[string]NonFinitePolicy{"psi": WarnNonFinite})},
			`publish /b: rank 0: invalid input: NonFinite: field "psi" is not one of ["phi" "T"]`, ""},
	} {
		t.Run(c.name, func(t *testing.T) {
			fsys := vfs.NewMem()
			before := fsys.Dump()
			var log logs
			err := saveSpoilt(t, fsys, &log, c.counts, c.opts...)
			if c.err != "" {
				if fmt.Sprint(err) != c.err {
					t.Errorf("error is %v, want %s", err, c.err)
				}
				sameFiles(t, fsys, before)
				return
			}
			if err != nil {
				t.Fatal(err)
			}
			got := savedCounts(t, fsys, "/b")
			for id, n := range c.counts {
				if got[id] != int64(n) {
					t.Errorf("%d cells of field %q, want %d", got[id], id, n)
				}
			}
			if n := strings.Count(log.String(), "level=WARN"); c.warn == "" && n > 0 || c.warn != "" && n != 1 || !strings.Contains(log.String(), c.warn) {
				t.Errorf("the log lacks %q, or has more:\n%s", c.warn, log.String())
			}
		})
	}
}

func TestRanksWithDifferentPoliciesAreRefused(t *testing.T) {
	fsys := vfs.NewMem()
	err := onRanks(t, 2, func(c *comm.Comm) error {
		s, err := newTestSolver(c, 1, "phi", "T")
		if err := c.Agree(t.Context(), err); err != nil {
			return err
		}
		policy := []NonFinitePolicy{WarnNonFinite, RefuseNonFinite}[c.Rank()]
		return SaveBundle(t.Context(), c, "/b", s.state(), Filesystem(fsys), NonFinite(policy, nil))
	})
	wantError(t, err, ErrInput, "cells that aren't finite", "warn", "refuse")
}

func TestConfigurationsOfCellsThatAreNotFinite(t *testing.T) {
	got, err := ParseConfig([]byte(`{"checkpoint": {"non_finite": "refuse", "non_finite_fields": {"mask": "ignore"}}}`))
	if err != nil || got.Checkpoint.NonFinite != RefuseNonFinite || !maps.Equal(got.Checkpoint.NonFiniteFields, map[string]NonFinitePolicy{"mask": IgnoreNonFinite}) {
		t.Errorf("got %+v, %v", got, err)
	}
	for text, want := range map[string]string{
		`{"checkpoint": {"non_finite": "refsue"}}`:                    `checkpoint.non_finite: "refsue": want "warn", "refuse" or "ignore"`,
		`{"checkpoint": {"non_finite": true}}`:                        "checkpoint.non_finite: is a JSON bool, want a string",
		`{"checkpoint": {"non_finite_fields": "ignore"}}`:             "checkpoint.non_finite_fields: is a JSON string, want an object",
		`{"checkpoint": {"non_finite_fields": {"mask": "ingore"}}}`:   `checkpoint.non_finite_fields: field "mask": "ingore": want`,
		`{"checkpoint": {"non_finite_fields": {"a/b": "ignore"}}}`:    "checkpoint.non_finite_fields: field id",
		`{"checkpoint": {"non_finite_fields": {"mask": ["ignore"]}}}`: "checkpoint.non_finite_fields",
	} {
		if _, err := ParseConfig([]byte(text)); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v: want an error with %q", text, err, want)
		}
	}
}

// A solution that blew up: what was good stays, and a restart finds it.
func TestTheNewestFiniteBundleOutlivesThoseThatAreNot(t *testing.T) {
	fsys := newFS(t)
	cfg := serviceConfig("")
	cfg.Checkpoint.Keep = 2
	nans := map[string]int{"phi": testCells, "T": testCells}
	var log logs
	err := withService(t, fsys, 2, cfg, &log, sequence(blowUp(10, nil), blowUp(20, nil), blowUp(30, nans), blowUp(40, nans), blowUp(50, nans)))
	if err != nil {
		t.Fatal(err)
	}
	wantNames(t, fsys, "step_20", "step_40", "step_50")
	if n := strings.Count(log.String(), "not finite"); n != 1 || !strings.Contains(log.String(), "step_30") {
		t.Errorf("%d warnings, want the one of step_30:\n%s", n, log.String())
	}
	log = logs{}
	cfg.RestartFrom = Latest
	err = withService(t, fsys, 3, cfg, &log, func(s session) error {
		if n := s.loaded.Metadata.AcceptedIncrement; n != 20 {
			return fmt.Errorf("increment %d", n)
		}
		return sequence(blowUp(30, nil), blowUp(40, nil))(s)
	})
	if err != nil {
		t.Fatal(err)
	}
	wantNames(t, fsys, "step_30", "step_40", "step_40.superseded", "step_50.superseded")
	for _, step := range []string{"step_40", "step_50"} {
		if !strings.Contains(log.String(), `msg="passed over a bundle that is not finite" bundle=/data/ckpt/`+step) {
			t.Errorf("no warning about %s:\n%s", step, log.String())
		}
	}
}

func TestAWarningWhenMoreCellsAreNotFiniteNotAtEachSave(t *testing.T) {
	fsys := newFS(t)
	saves := []struct {
		phi, T int
		warn   string
	}{
		{0, 0, ""},
		{3, 0, `3 cells of field \"phi\"`},
		{3, 0, ""},
		{2, 0, ""},
		{3, 1, `3 cells of field \"phi\", 1 cell of field \"T\"`},
		{3, 2, `non_finite="2 cells of field \"T\""`},
		{0, 0, ""},
		{0, 2, `2 cells of field \"T\"`},
	}
	var log logs
	cfg := serviceConfig("")
	cfg.Checkpoint.ConstantFields = []string{"phi", "T"} // the solver blows up and stays as it is
	err := withService(t, fsys, 1, cfg, &log, func(s session) error {
		for i, save := range saves {
			log.Reset()
			n := int64(10 * (i + 1))
			if err := blowUp(n, map[string]int{"phi": save.phi, "T": save.T})(s); err != nil {
				return err
			}
			if got := log.String(); save.warn == "" && got != "" || !strings.Contains(got, save.warn) {
				t.Errorf("save %d: the log is %q, want %q", i, got, save.warn)
			}
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	// The next job knows what it started from.
	log.Reset()
	cfg = serviceConfig("/data/ckpt/step_80")
	if err := withService(t, fsys, 1, cfg, &log, blowUp(90, map[string]int{"T": 2})); err != nil {
		t.Fatal(err)
	}
	if n := strings.Count(log.String(), "not finite"); n != 1 || !strings.Contains(log.String(), "restarting from a state that is not finite") {
		t.Errorf("want one warning, at the restart:\n%s", log.String())
	}
}

func TestRefusedStatesOfAService(t *testing.T) {
	fsys := newFS(t)
	cfg := withNonFinite(serviceConfig(""), RefuseNonFinite, nil)
	cfg.Checkpoint.Keep = 1
	err := withService(t, fsys, 3, cfg, nil, sequence(blowUp(10, nil), blowUp(20, map[string]int{"phi": 2})))
	wantError(t, err, ErrNonFinite, "step_20", `2 cells of field "phi"`)
	wantNames(t, fsys, "step_10")
}

func TestIgnoredFieldsAreFinite(t *testing.T) {
	fsys := newFS(t)
	mask := map[string]int{"T": 9}
	fields := map[string]NonFinitePolicy{"T": IgnoreNonFinite}
	cfg := withNonFinite(serviceConfig(""), "", fields)
	cfg.Checkpoint.Keep = 1
	var log logs
	if err := withService(t, fsys, 2, cfg, &log, sequence(blowUp(10, mask), blowUp(20, mask))); err != nil {
		t.Fatal(err)
	}
	wantNames(t, fsys, "step_20")
	cfg.RestartFrom = Latest
	err := withService(t, fsys, 2, cfg, &log, func(s session) error {
		if s.loaded.Metadata.AcceptedIncrement != 20 {
			return fmt.Errorf("%+v", s.loaded)
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	if strings.Contains(log.String(), "finite") {
		t.Errorf("a word about cells that are to be ignored:\n%s", log.String())
	}
	if got := savedCounts(t, fsys, "/data/ckpt/step_20"); !maps.Equal(got, map[string]int64{"T": 9}) {
		t.Errorf("recorded are %v", got)
	}
}

func TestAPolicyForAFieldThatTheSolverDoesNotHave(t *testing.T) {
	fields := map[string]NonFinitePolicy{"phj": RefuseNonFinite}
	fsys := newFS(t)
	if err := withService(t, fsys, 2, serviceConfig(""), nil, steps(10)); err != nil {
		t.Fatal(err)
	}
	before := fsys.Dump()
	err := withService(t, fsys, 2, withNonFinite(serviceConfig(Latest), "", fields), nil, nil)
	wantError(t, err, ErrInput, `checkpoint.non_finite_fields: field "phj" is not one of ["phi" "T"]`)
	sameFiles(t, fsys, before)
}

// Bundles are passed over as long as there is a good one that is finite.
func TestWhatLatestTakesWhenBundlesAreNotFinite(t *testing.T) {
	some := map[string]int{"phi": 1}
	forget := func(t testing.TB, fsys vfs.FS, bundle string) { // as older writers do
		var text []byte
		damage(t, fsys, bundle+"/metadata.json", func(d []byte) []byte {
			head, rest, _ := strings.Cut(string(d), `"non_finite"`)
			_, rest, _ = strings.Cut(rest, "}")
			text = []byte(strings.TrimRight(head, " \n,") + rest)
			return text
		})
		damage(t, fsys, bundle+"/checksums.txt", func(d []byte) []byte {
			return append(formatChecksums([]fileChecksum{{metadataFile, pack.Sum(text)}}), d[bytes.IndexByte(d, '\n')+1:]...)
		})
	}
	for _, c := range []struct {
		name    string
		saves   func(s session) error
		change  func(t testing.TB, fsys vfs.FS)
		cfg     Config
		want    int64
		warn    string
		entries []string
	}{
		{"all of them: the newest good one", sequence(blowUp(10, some), blowUp(20, some), blowUp(30, some)),
			func(t testing.TB, fsys vfs.FS) {
				damages["a bit of a field flipped"](t, fsys, "/data/ckpt/step_30")
			}, serviceConfig(Latest), 20, "restarting from a state that is not finite", []string{"step_10", "step_20", "step_30.damaged"}},
		{"the finite one is damaged", sequence(blowUp(10, nil), blowUp(20, some)),
			func(t testing.TB, fsys vfs.FS) {
				damages["a bit of a field flipped"](t, fsys, "/data/ckpt/step_10")
			}, serviceConfig(Latest), 20, "restarting from a state that is not finite", []string{"step_10", "step_20"}},
		{"one that nobody has counted in is finite", sequence(blowUp(10, nil), blowUp(20, some), blowUp(30, some)),
			func(t testing.TB, fsys vfs.FS) { forget(t, fsys, "/data/ckpt/step_20") }, serviceConfig(Latest), 20,
			`step_30 non_finite="1 cell of field \"phi\"" now=/data/ckpt/step_30.superseded`, []string{"step_10", "step_20", "step_30.superseded"}},
		{"metadata that aren't as published", sequence(blowUp(10, nil), blowUp(20, nil)),
			func(t testing.TB, fsys vfs.FS) {
				damage(t, fsys, "/data/ckpt/step_20/metadata.json", func(d []byte) []byte {
					return []byte(strings.Replace(string(d), `"non_finite": {}`, `"non_finite": {"T": 1}`, 1))
				})
			}, serviceConfig(Latest), 10, "checksum", []string{"step_10", "step_20.damaged"}},
		{"ignore: the newest one", sequence(blowUp(10, nil), blowUp(20, some)), nil,
			withNonFinite(serviceConfig(Latest), IgnoreNonFinite, nil), 20, "", []string{"step_10", "step_20"}},
		{"by path", sequence(blowUp(10, nil), blowUp(20, some)), nil,
			serviceConfig("/data/ckpt/step_20"), 20, "restarting from a state that is not finite", []string{"step_10", "step_20"}},
	} {
		t.Run(c.name, func(t *testing.T) {
			fsys := newFS(t)
			if err := withService(t, fsys, 2, serviceConfig(""), nil, c.saves); err != nil {
				t.Fatal(err)
			}
			if c.change != nil {
				c.change(t, fsys)
			}
			for _, opts := range [][]Option{nil, {InPlace()}} {
				var log logs
				err := withService(t, fsys, 3, c.cfg, &log, func(s session) error {
					if n := s.loaded.Metadata.AcceptedIncrement; n != c.want || path.Base(s.loaded.Path) != StepName(c.want) {
						return fmt.Errorf("restarted from %s, increment %d, want %d", s.loaded.Path, n, c.want)
					}
					return nil
				}, opts...)
				if err != nil {
					t.Fatal(err)
				}
				wantNames(t, fsys, c.entries...)
				if opts == nil && !strings.Contains(log.String(), c.warn) || c.warn == "" && strings.Contains(log.String(), "finite") {
					t.Errorf("the log lacks %q, or has more:\n%s", c.warn, log.String())
				}
			}
		})
	}
}

// A service that is off only names what it passes over. Once it saves, the bundle would be
// in its way.
func TestAServiceThatIsOffLeavesBundlesThatAreNotFinite(t *testing.T) {
	fsys := newFS(t)
	some := map[string]int{"phi": 1}
	if err := withService(t, fsys, 2, unwaiting(""), nil, sequence(blowUp(10, nil), blowUp(20, some), blowUp(30, some))); err != nil {
		t.Fatal(err)
	}
	before := fsys.Dump()
	cfg := unwaiting(Latest)
	cfg.Checkpoint.Every = 0
	var log logs
	err := withService(t, fsys, 3, cfg, &log, func(s session) error {
		if n := s.loaded.Metadata.AcceptedIncrement; n != 10 {
			return fmt.Errorf("restarted from %d, want 10", n)
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	sameFiles(t, fsys, before)
	for _, name := range []string{"step_20", "step_30"} {
		want := fmt.Sprintf(`keeps its name since this service doesn't save" bundle=/data/ckpt/%s non_finite="1 cell of field \"phi\""`, name)
		if !strings.Contains(log.String(), want) {
			t.Errorf("the log lacks %q:\n%s", want, log.String())
		}
	}
	err = withService(t, fsys, 3, cfg, nil, func(s session) error {
		if err := s.c.Agree(context.Background(), s.solver.advance(20)); err != nil {
			return err
		}
		_, err := s.service.Save(context.Background(), s.solver.solver())
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	wantNames(t, fsys, "step_10", "step_20", "step_20.superseded", "step_30.superseded")
}
