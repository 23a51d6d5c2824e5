package publish

import (
	"context"
	"errors"
	"fmt"
	"math"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"

	"github.com/fieldstone-io/fieldstone/brick"
	"github.com/fieldstone-io/fieldstone/comm"
	"github.com/fieldstone-io/fieldstone/field"
	"github.com/fieldstone-io/fieldstone/grid"
	"github.com/fieldstone-io/fieldstone/internal/vfs"
)

// newFS returns an empty filesystem with the directory /data.
func newFS(t testing.TB, opts ...vfs.MemOption) *vfs.Mem {
	t.Helper()
	fsys := vfs.NewMem(opts...)
	if err := fsys.Mkdir("/data", 0o777); err != nil {
		t.Fatal(err)
	}
	return fsys
}

// wantError checks kind and text of an error that all ranks returned.
func wantError(t testing.TB, err, kind error, texts ...string) {
	t.Helper()
	if err == nil {
		t.Fatalf("no error: want one with %q", texts)
	}
	if kind != nil && !errors.Is(err, kind) {
		t.Errorf("%v: is not %q", err, kind)
	}
	for _, text := range texts {
		if !strings.Contains(err.Error(), text) {
			t.Errorf("%v: does not say %q", err, text)
		}
	}
}

func sameFiles(t testing.TB, fsys *vfs.Mem, before []string) {
	t.Helper()
	if after := fsys.Dump(); strings.Join(after, "\n") != strings.Join(before, "\n") {
		t.Errorf("the files changed from\n\t%s\nto\n\t%s", strings.Join(before, "\n\t"), strings.Join(after, "\n\t"))
	}
}

// saveWith saves a state that change may spoil on some ranks.
func saveWith(t testing.TB, fsys vfs.FS, ranks int, path string, change func(c *comm.Comm, s *State) (string, error), opts ...Option) error {
	t.Helper()
	return onRanks(t, ranks, func(c *comm.Comm) error {
		solver, err := newTestSolver(c, 1, "phi", "T")
		if err == nil {
			err = solver.advance(4)
		}
		state := solver.state()
		p := path
		if err == nil && change != nil {
			p, err = change(c, &state)
		}
		if err := c.Agree(context.Background(), err); err != nil {
			return fmt.Errorf("test: %w", err)
		}
		return SaveBundle(context.Background(), c, p, state, append([]Option{Filesystem(fsys)}, opts...)...)
	})
}

func TestAPathThatIsTakenStaysAsItIs(t *testing.T) {
	taken := map[string]func(m *vfs.Mem) error{
		"a directory": func(m *vfs.Mem) error {
			return errors.Join(m.Mkdir("/data/b", 0o777), vfs.WriteFile(m, "/data/b/precious", []byte("x"), 0o666, true))
		},
		"an empty directory": func(m *vfs.Mem) error { return m.Mkdir("/data/b", 0o777) },
		"a file":             func(m *vfs.Mem) error { return vfs.WriteFile(m, "/data/b", []byte("x"), 0o666, true) },
		"a dangling link":    func(m *vfs.Mem) error { return m.Symlink("/nowhere", "/data/b") },
	}
	for name, put := range taken {
		t.Run(name+" from the start", func(t *testing.T) {
			fsys := newFS(t)
			if err := put(fsys); err != nil {
				t.Fatal(err)
			}
			before := fsys.Dump()
			err := saveWith(t, fsys, 3, "/data/b", nil)
			wantError(t, err, ErrExists, "/data/b")
			sameFiles(t, fsys, before)
		})
		for _, step := range []Step{StepLocked, StepStaged, StepField, StepWritten, StepMetadata, StepChecksums, StepSynced} {
			t.Run(fmt.Sprintf("%s that appears when %s", name, step), func(t *testing.T) {
				fsys := newFS(t)
				var before []string
				hook := func(s Step, detail string) {
					if s == step && before == nil {
						if err := put(fsys); err != nil {
							panic(err)
						}
						for _, line := range fsys.Dump() {
							if !strings.Contains(line, ".publishing") {
								before = append(before, line)
							}
						}
					}
				}
				err := onRanks(t, 3, func(c *comm.Comm) error {
					solver, err := newTestSolver(c, 1, "phi")
					if err == nil {
						err = solver.advance(4)
					}
					if err := c.Agree(context.Background(), err); err != nil {
						return err
					}
					opts := []Option{Filesystem(fsys)}
					if c.Rank() == 0 {
						opts = append(opts, OnStep(hook))
					}
					return SaveBundle(context.Background(), c, "/data/b", solver.state(), opts...)
				})
				wantError(t, err, ErrExists, "/data/b")
				sameFiles(t, fsys, before)
			})
		}
	}
}

func TestInputsAreRefusedBeforeAnythingIsCreated(t *testing.T) {
	onRank := func(r int, f func(s *State)) func(c *comm.Comm, s *State) (string, error) {
		return func(c *comm.Comm, s *State) (string, error) {
			if c.Rank() == r || r < 0 {
				f(s)
			}
			return "/data/b", nil
		}
	}
	// box gives all fields of one rank another box.
	box := func(r int, change func(b *grid.Box)) func(c *comm.Comm, s *State) (string, error) {
		return func(c *comm.Comm, s *State) (string, error) {
			if c.Rank() != r {
				return "/data/b", nil
			}
			b := s.Fields[0].Field.Box()
			change(&b)
			for i := range s.Fields {
				f, err := field.New[float64](testDomain, b)
				if err != nil {
					return "", err
				}
				s.Fields[i].Field = f
			}
			return "/data/b", nil
		}
	}
	ids := func(list ...string) func(c *comm.Comm, s *State) (string, error) {
		return onRank(-1, func(s *State) {
			f := s.Fields[0].Field
			s.Fields = nil
			for _, id := range list {
				s.Fields = append(s.Fields, field.Named{ID: id, Field: f})
			}
		})
	}
	domain := func(change func(d *grid.Domain)) func(c *comm.Comm, s *State) (string, error) {
		return onRank(1, func(s *State) {
			for i := range s.Fields {
				s.Fields[i].Field = oddField{s.Fields[i].Field, change}
			}
		})
	}
	cases := []struct {
		name   string
		change func(c *comm.Comm, s *State) (string, error)
		kind   error
		texts  []string
	}{
		{"ranks disagree about the path", func(c *comm.Comm, s *State) (string, error) {
			return fmt.Sprintf("/data/b%d", c.Rank()/2), nil
		}, ErrInput, []string{"the path", `"/data/b0"`, `rank 2 has "/data/b1"`}},
		{"ranks disagree about the time", onRank(2, func(s *State) { s.Time = 1.25 }), ErrInput, []string{"accepted_time", "rank 2 has 1.25"}},
		{"ranks disagree about the increment", onRank(1, func(s *State) { s.Increment = 77 }), ErrInput, []string{"accepted_increment", "rank 1 has 77"}},
		{"ranks disagree about the method", onRank(1, func(s *State) { s.Method = "rk4" }), ErrInput, []string{"method_identity", "rk4"}},
		{"ranks disagree about the fields' order", onRank(1, func(s *State) { s.Fields[0], s.Fields[1] = s.Fields[1], s.Fields[0] }), ErrInput, []string{"fields", "rank 1"}},
		{"one rank has a field less", onRank(2, func(s *State) { s.Fields = s.Fields[:1] }), ErrInput, []string{"fields", "rank 2"}},
		{"one rank has no field", onRank(1, func(s *State) { s.Fields = nil }), ErrInput, []string{"rank 1", "at least one field"}},
		{"ranks disagree about the sidecar", onRank(1, func(s *State) { s.Sidecar = map[string]int{"a": 1} }), ErrInput, []string{"sidecar"}},
		{"a sidecar that is no JSON", onRank(-1, func(s *State) { s.Sidecar = func() {} }), ErrInput, []string{"sidecar"}},
		{"a field that panics", onRank(1, func(s *State) { s.Fields[1].Field = (*field.Field[float64])(nil) }), ErrInput, []string{"rank 1", "panic"}},
		{"a nil field", onRank(1, func(s *State) { s.Fields[1].Field = nil }), ErrInput, []string{"rank 1", `"T"`}},

		{"boxes with a gap", box(1, func(b *grid.Box) { b.Size[1]-- }), brick.ErrLayout, []string{"gap", "[0:5"}},
		{"boxes that overlap", box(1, func(b *grid.Box) { b.Low[1]--; b.Size[1]++ }), brick.ErrLayout, []string{"overlap"}},

		{"empty id", ids(""), ErrInput, []string{`field id ""`}},
		{"id .", ids("."), ErrInput, []string{`field id "."`}},
		{"id ..", ids("psi", ".."), ErrInput, []string{`field id ".."`}},
		{"id with a slash", ids("../psi"), ErrInput, []string{`field id "../psi"`}},
		{"id with NUL", ids("a\x00b"), ErrInput, []string{`field id "a\x00b"`}},
		{"id with a control character", ids("a\nb"), ErrInput, []string{`field id "a\nb"`}},
		{"id that is too long", ids(strings.Repeat("y", 252)), ErrInput, []string{"252 bytes"}},
		{"id given twice", ids("psi", "phi", "psi"), ErrInput, []string{`"psi"`, "twice"}},

		{"NaN time", onRank(-1, func(s *State) { s.Time = math.NaN() }), ErrInput, []string{"accepted_time"}},
		{"infinite time", onRank(-1, func(s *State) { s.Time = math.Inf(-1) }), ErrInput, []string{"accepted_time"}},
		{"negative increment", onRank(-1, func(s *State) { s.Increment = -1 }), ErrInput, []string{"accepted_increment", "-1"}},
		{"negative counter", onRank(2, func(s *State) { s.ResultCounter = -5 }), ErrInput, []string{"result_counter", "-5", "rank 2"}},
		{"zero dimension", domain(func(d *grid.Domain) { d.Size[1] = 0 }), ErrInput, []string{"global_dimensions[1]", "rank 1"}},
		{"negative dimension", domain(func(d *grid.Domain) { d.Size[2] = -3 }), ErrInput, []string{"global_dimensions[2]", "-3"}},
		{"spacing 0", domain(func(d *grid.Domain) { d.Spacing[0] = 0 }), ErrInput, []string{"grid_spacing[0]"}},
		{"spacing NaN", domain(func(d *grid.Domain) { d.Spacing[2] = math.NaN() }), ErrInput, []string{"grid_spacing[2]"}},
		{"infinite origin", domain(func(d *grid.Domain) { d.Origin[2] = math.Inf(1) }), ErrInput, []string{"physical_origin[2]"}},
		{"another origin on one rank", domain(func(d *grid.Domain) { d.Origin[0] = 9 }), ErrInput, []string{"domain", "rank 1"}},

		{"complex field", onRank(-1, func(s *State) {
			f, err := field.New[complex128](testDomain, s.Fields[0].Field.Box())
			if err != nil {
				panic(err)
			}
			s.Fields[1].Field = f
		}), ErrInput, []string{`"T"`, "complex128"}},
		{"empty path", func(*comm.Comm, *State) (string, error) { return "", nil }, ErrInput, []string{"path is empty"}},
		{"path with NUL", func(*comm.Comm, *State) (string, error) { return "/data/a\x00", nil }, ErrInput, []string{"NUL"}},
		{"path that is the root", func(*comm.Comm, *State) (string, error) { return "/", nil }, ErrInput, []string{"root"}},
		{"name without room for the lock", func(*comm.Comm, *State) (string, error) { return "/data/" + strings.Repeat("n", 250), nil }, ErrInput, []string{"250 bytes"}},
		{"parent missing", func(*comm.Comm, *State) (string, error) { return "/data/missing/b", nil }, syscall.ENOENT, []string{"/data/missing"}},
		{"parent is a file", func(*comm.Comm, *State) (string, error) { return "/file/b", nil }, syscall.ENOTDIR, []string{"/file/b"}},
	}
	for _, tc := range cases {
		t.Run(tc.name, func(t *testing.T) {
			fsys := newFS(t)
			if err := vfs.WriteFile(fsys, "/file", nil, 0o666, true); err != nil {
				t.Fatal(err)
			}
			before := fsys.Dump()
			err := saveWith(t, fsys, 3, "/data/b", tc.change)
			wantError(t, err, tc.kind, tc.texts...)
			sameFiles(t, fsys, before)
		})
	}
}

// oddField claims another domain than it has.
type oddField struct {
	field.Any
	change func(d *grid.Domain)
}

func (f oddField) Domain() grid.Domain {
	d := f.Any.Domain()
	f.change(&d)
	return d
}

func TestABoxOutsideTheDomainIsNamed(t *testing.T) {
	fsys := newFS(t)
	before := fsys.Dump()
	err := saveWith(t, fsys, 2, "/data/b", func(c *comm.Comm, s *State) (string, error) {
		if c.Rank() == 1 {
			for i := range s.Fields {
				s.Fields[i].Field = shifted{s.Fields[i].Field}
			}
		}
		return "/data/b", nil
	})
	var outside *grid.OutsideError
	if !errors.As(err, &outside) {
		t.Errorf("%v is not an OutsideError", err)
	}
	wantError(t, err, brick.ErrLayout)
	sameFiles(t, fsys, before)
}

type shifted struct{ field.Any }

func (f shifted) Box() grid.Box {
	b := f.Any.Box()
	b.Low[2] += 2
	return b
}

// TestAFailingCallbackLeavesNothing: one rank's callback returns an error or
// panics, before, between or after the fields; all ranks return the same error.
func TestAFailingCallbackLeavesNothing(t *testing.T) {
	boom := errors.New("boom")
	for _, panics := range []bool{false, true} {
		for _, after := range []int{0, 1, 2} {
			for _, rank := range []int{0, 2} {
				t.Run(fmt.Sprintf("rank %d fails after %d fields, panics=%t", rank, after, panics), func(t *testing.T) {
					fsys := newFS(t)
					before := fsys.Dump()
					err := onRanks(t, 3, func(c *comm.Comm) error {
						meta := Metadata{Domain: testDomain, Fields: []string{"a", "b"}, MethodIdentity: "m"}
						dec, err := grid.Decompose(testDomain, c.Size())
						if err := c.Agree(context.Background(), err); err != nil {
							return err
						}
						return Directory(context.Background(), c, "/data/b", meta, func(ctx context.Context, dir string) error {
							plan, err := brick.NewPlan(ctx, c, testDomain.Size, dec.Box(c.Rank()), brick.Float64, brick.Filesystem(fsys))
							if err != nil {
								return err
							}
							defer plan.Close()
							for i, id := range meta.Fields {
								var source failingSource
								if c.Rank() == rank && i == after {
									source = failingSource{boom, panics}
								}
								_, err := plan.Write(ctx, []brick.WriteJob{{Name: "field " + id, Path: filepath.Join(dir, id+".bin"), Source: source}})
								if err != nil {
									return err
								}
							}
							if c.Rank() == rank && after == len(meta.Fields) {
								if panics {
									panic(boom)
								}
								return boom
							}
							return nil
						}, Filesystem(fsys))
					})
					wantError(t, err, nil, fmt.Sprintf("rank %d", rank), "boom", "/data/b")
					sameFiles(t, fsys, before)
				})
			}
		}
	}
}

// failingSource yields zeros, or fails.
type failingSource struct {
	err    error
	panics bool
}

func (s failingSource) ReadCells(dst []byte, first int64) error {
	if s.panics {
		panic(s.err)
	}
	clear(dst)
	return s.err
}

func TestDirectoryRefusesBadInputsBeforeAnythingIsCreated(t *testing.T) {
	for name, tc := range map[string]struct {
		spoil func(rank int, dir *string, m *Metadata)
		texts []string
	}{
		"ranks disagree about the path": {func(r int, dir *string, _ *Metadata) { *dir += fmt.Sprint(r / 2) }, []string{"the path", `rank 2 has "/data/b1"`}},
		"ranks disagree about the time": {func(r int, _ *string, m *Metadata) { m.AcceptedTime = float64(r / 2) }, []string{"accepted_time", "rank 2 has 1"}},
		"one rank has another field":    {func(r int, _ *string, m *Metadata) { m.Fields = []string{fmt.Sprint("a", r/2)} }, []string{"fields", "rank 2"}},
		"one rank has NaN for its time": {func(r int, _ *string, m *Metadata) {
			if r == 1 {
				m.AcceptedTime = math.NaN()
			}
		}, []string{"rank 1", "accepted_time"}},
		"an id with a slash": {func(_ int, _ *string, m *Metadata) { m.Fields = []string{"a/b"} }, []string{`"a/b"`}},
		"an empty path":      {func(_ int, dir *string, _ *Metadata) { *dir = "" }, []string{"path is empty"}},
	} {
		t.Run(name, func(t *testing.T) {
			fsys := newFS(t)
			before := fsys.Dump()
			var wrote atomic.Bool
			err := onRanks(t, 3, func(c *comm.Comm) error {
				dir, meta := "/data/b", Metadata{Domain: testDomain, Fields: []string{"a"}}
				tc.spoil(c.Rank(), &dir, &meta)
				return Directory(context.Background(), c, dir, meta, func(context.Context, string) error {
					wrote.Store(true)
					return nil
				}, Filesystem(fsys))
			})
			wantError(t, err, ErrInput, tc.texts...)
			sameFiles(t, fsys, before)
			if wrote.Load() {
				t.Error("the fields were asked for")
			}
		})
	}
}

func TestWhatWouldNotLoadIsNotPublished(t *testing.T) {
	cases := []struct {
		name  string
		write func(fsys vfs.FS, dir string) error
		texts []string
	}{
		{"a field is missing", func(fsys vfs.FS, dir string) error { return nil }, []string{`"a"`, "was not written"}},
		{"a field is too short", func(fsys vfs.FS, dir string) error {
			return vfs.WriteFile(fsys, dir+"/a.bin", make([]byte, 800), 0o666, false)
		}, []string{`"a"`, "800", "840"}},
		{"a field is too long", func(fsys vfs.FS, dir string) error {
			return vfs.WriteFile(fsys, dir+"/a.bin", make([]byte, 848), 0o666, false)
		}, []string{`"a"`, "848", "840"}},
		{"a field is a directory", func(fsys vfs.FS, dir string) error { return fsys.Mkdir(dir+"/a.bin", 0o777) }, []string{`"a"`, "regular"}},
		{"a file that isn't listed", func(fsys vfs.FS, dir string) error {
			return errors.Join(vfs.WriteFile(fsys, dir+"/a.bin", make([]byte, 840), 0o666, false),
				vfs.WriteFile(fsys, dir+"/psi.bin", make([]byte, 840), 0o666, false))
		}, []string{"psi.bin"}},
	}
	for _, tc := range cases {
		t.Run(tc.name, func(t *testing.T) {
			fsys := newFS(t)
			before := fsys.Dump()
			err := onRanks(t, 2, func(c *comm.Comm) error {
				meta := Metadata{Domain: testDomain, Fields: []string{"a"}}
				return Directory(context.Background(), c, "/data/b", meta, func(ctx context.Context, dir string) error {
					if c.Rank() != 0 {
						return nil
					}
					return tc.write(fsys, dir)
				}, Filesystem(fsys))
			})
			wantError(t, err, nil, tc.texts...)
			sameFiles(t, fsys, before)
		})
	}
}

func TestAFullDiskIsAnErrorWithItsErrnoAndTheNextPublicationSucceeds(t *testing.T) {
	fieldBytes := testDomain.Cells() * 8
	for _, tc := range []struct {
		name  string
		space int64
	}{
		{"at the start", 0},
		{"in the first field", fieldBytes / 2},
		{"in the second field", fieldBytes + fieldBytes/2},
		{"in the metadata", 2*fieldBytes + 100},
	} {
		t.Run(tc.name, func(t *testing.T) {
			probe := newFS(t)
			if err := saveStep(t, probe, 2, "/data", 1); err != nil {
				t.Fatal(err)
			}
			u, err := probe.Usage("/")
			if err != nil {
				t.Fatal(err)
			}
			one := u.Total - u.Free
			fsys := newFS(t, vfs.Capacity(2*one+tc.space+8192))
			if err := saveStep(t, fsys, 2, "/data", 1); err != nil {
				t.Fatal(err)
			}
			u, err = fsys.Usage("/")
			if err != nil {
				t.Fatal(err)
			}
			ballast := u.Free - tc.space
			if err := vfs.WriteFile(fsys, "/ballast", make([]byte, ballast), 0o666, true); err != nil {
				t.Fatal(err)
			}
			before := fsys.Dump()
			err = saveStep(t, fsys, 2, "/data", 2)
			wantError(t, err, syscall.ENOSPC, "/data/step_2", "no space left")
			sameFiles(t, fsys, before)
			if err := loadStep(t, fsys, 3, "/data/step_1", 1); err != nil {
				t.Errorf("the previous bundle: %v", err)
			}
			if err := fsys.Remove("/ballast"); err != nil {
				t.Fatal(err)
			}
			if u, err = fsys.Usage("/"); err != nil {
				t.Fatal(err)
			}
			if u.Free < one {
				t.Fatalf("the test leaves no room for a second bundle: %d, %d", u.Free, one)
			}
			if err := saveStep(t, fsys, 2, "/data", 2); err != nil {
				t.Errorf("the next publication: %v", err)
			}
		})
	}
}

func TestAStagingDirectoryOfADeadJobIsCleared(t *testing.T) {
	fsys := newFS(t)
	for _, dir := range []string{"/data/step_1.publishing", "/data/step_1.publishing/fields"} {
		if err := fsys.Mkdir(dir, 0o777); err != nil {
			t.Fatal(err)
		}
	}
	for _, file := range []string{".owner", "fields/other.bin", "fields/phi.bin", "metadata.json"} {
		if err := vfs.WriteFile(fsys, "/data/step_1.publishing/"+file, make([]byte, 5000), 0o666, true); err != nil {
			t.Fatal(err)
		}
	}
	if err := vfs.WriteFile(fsys, "/data/step_1.publishing.lock", nil, 0o666, true); err != nil {
		t.Fatal(err)
	}
	if err := saveStep(t, fsys, 2, "/data", 1); err != nil {
		t.Fatal(err)
	}
	if err := loadStep(t, fsys, 1, "/data/step_1", 1); err != nil {
		t.Error(err)
	}
	names, err := fsys.ReadDir("/data")
	if err != nil || len(names) != 1 {
		t.Errorf("the directory has %v, %v: want step_1 alone", names, err)
	}
}

func TestAPathThatIsBeingPublishedIsRefused(t *testing.T) {
	fsys := newFS(t)
	lock, err := fsys.Lock("/data/step_1.publishing.lock")
	if err != nil {
		t.Fatal(err)
	}
	before := fsys.Dump()
	wantError(t, saveStep(t, fsys, 2, "/data", 1), ErrBeingPublished, "/data/step_1")
	sameFiles(t, fsys, before)
	if err := lock.Release(); err != nil {
		t.Fatal(err)
	}
	if err := saveStep(t, fsys, 2, "/data", 1); err != nil {
		t.Error(err)
	}
}

func TestTwoJobsOnOnePathGiveOneBundle(t *testing.T) {
	for round := range 20 {
		dir := t.TempDir()
		errs := make(chan error, 2)
		for range 2 {
			go func() {
				errs <- comm.Run(2, func(c *comm.Comm) error {
					s, err := newTestSolver(c, 1, "phi", "T")
					if err == nil {
						err = s.advance(1)
					}
					if err := c.Agree(context.Background(), err); err != nil {
						return err
					}
					return SaveBundle(context.Background(), c, filepath.Join(dir, "step_1"), s.state())
				})
			}()
		}
		a, b := <-errs, <-errs
		if (a == nil) == (b == nil) {
			t.Fatalf("round %d: the outcomes are %v and %v: want one winner", round, a, b)
		}
		if err := errors.Join(a, b); !errors.Is(err, ErrExists) && !errors.Is(err, ErrBeingPublished) {
			t.Errorf("the loser got %v", err)
		}
		if err := loadStep(t, vfs.OS, 2, filepath.Join(dir, "step_1"), 1); err != nil {
			t.Errorf("the winner's bundle: %v", err)
		}
		entries, err := os.ReadDir(dir)
		if err != nil || len(entries) != 1 {
			t.Errorf("the directory has %v, %v", entries, err)
		}
	}
}

func TestAStagingDirectoryThatWasTakenOverIsLeftAlone(t *testing.T) {
	fsys := newFS(t)
	hook := func(s Step, _ string) {
		if s != StepSynced {
			return
		}
		if err := fsys.Remove("/data/step_1.publishing/.owner"); err != nil {
			panic(err)
		}
		if err := vfs.WriteFile(fsys, "/data/step_1.publishing/.owner", []byte("someone else"), 0o666, true); err != nil {
			panic(err)
		}
	}
	wantError(t, saveStep(t, fsys, 2, "/data", 1, OnStep(hook)), ErrTakenOver, "/data/step_1")
	if ok, err := vfs.Exists(fsys, "/data/step_1.publishing/fields/phi.bin"); !ok || err != nil {
		t.Errorf("the other job's staging directory is gone: %v", err)
	}
	if ok, _ := vfs.Exists(fsys, "/data/step_1"); ok {
		t.Error("the final path exists")
	}
}

func TestACancelledContextOnOneRankFailsAllRanks(t *testing.T) {
	for _, step := range []Step{"", StepStaged, StepField, StepWritten} {
		t.Run("when "+string(step), func(t *testing.T) {
			fsys := newFS(t)
			before := fsys.Dump()
			err := onRanks(t, 3, func(c *comm.Comm) error {
				ctx, cancel := context.WithCancel(context.Background())
				defer cancel()
				s, err := newTestSolver(c, 1, "phi", "T")
				if err == nil {
					err = s.advance(1)
				}
				if err := c.Agree(ctx, err); err != nil {
					return err
				}
				opts := []Option{Filesystem(fsys)}
				if c.Rank() == 1 {
					if step == "" {
						cancel()
					}
					opts = append(opts, OnStep(func(s Step, _ string) {
						if s == step {
							cancel()
						}
					}))
				}
				return SaveBundle(ctx, c, "/data/step_1", s.state(), opts...)
			})
			wantError(t, err, context.Canceled, "rank 1")
			sameFiles(t, fsys, before)
		})
	}
}

func TestAParentThatCannotBeSyncedIsPublishedWithDurabilityUnknown(t *testing.T) {
	base := newFS(t)
	inject := vfs.NewInject(base)
	if err := inject.Fail(vfs.Rule{Kinds: []vfs.Kind{vfs.OpSyncDir}, Pattern: "/data", Err: syscall.EIO}); err != nil {
		t.Fatal(err)
	}
	wantError(t, saveStep(t, inject, 2, "/data", 1), ErrDurabilityUnknown, "/data/step_1", "input/output error")
	if err := loadStep(t, base, 3, "/data/step_1", 1); err != nil {
		t.Errorf("the bundle: %v", err)
	}
	entries, err := base.ReadDir("/data")
	if err != nil || len(entries) != 1 {
		t.Errorf("the directory has %v, %v: want step_1 alone", entries, err)
	}
}

func TestWithoutRenameNoReplaceTheCheckIsMadeUnderTheLock(t *testing.T) {
	base := newFS(t)
	inject := vfs.NewInject(base)
	if err := inject.Fail(vfs.Rule{Kinds: []vfs.Kind{vfs.OpRenameNoReplace}, Err: vfs.ErrUnsupported}); err != nil {
		t.Fatal(err)
	}
	if err := saveStep(t, inject, 2, "/data", 1); err != nil {
		t.Fatal(err)
	}
	if err := loadStep(t, base, 2, "/data/step_1", 1); err != nil {
		t.Error(err)
	}
	hook := func(s Step, _ string) {
		if s == StepSynced {
			if err := base.Mkdir("/data/step_2", 0o777); err != nil {
				panic(err)
			}
		}
	}
	wantError(t, saveStep(t, inject, 2, "/data", 2, OnStep(hook)), ErrExists)
	entries, err := base.ReadDir("/data/step_2")
	if err != nil || len(entries) != 0 {
		t.Errorf("the empty directory holds %v, %v", entries, err)
	}
}

func TestWithoutLocksTheNonceGuards(t *testing.T) {
	base := newFS(t)
	inject := vfs.NewInject(base)
	if err := inject.Fail(vfs.Rule{Kinds: []vfs.Kind{vfs.OpLock}, Err: vfs.ErrNoLocks}); err != nil {
		t.Fatal(err)
	}
	if err := saveStep(t, inject, 2, "/data", 1); err != nil {
		t.Fatal(err)
	}
	if err := loadStep(t, base, 2, "/data/step_1", 1); err != nil {
		t.Error(err)
	}
}

func TestACallbackOfAStepThatPanicsFailsItsRankUntilTheRename(t *testing.T) {
	for _, rank := range []int{0, 1} {
		for _, step := range []Step{StepLocked, StepStaged, StepField, StepWritten, StepMetadata, StepChecksums, StepSynced, StepRenamed, StepPublished} {
			if rank != 0 && step != StepStaged && step != StepField && step != StepWritten {
				continue // the other steps are those of rank 0
			}
			t.Run(fmt.Sprintf("rank %d when %s", rank, step), func(t *testing.T) {
				fsys := newFS(t)
				before := fsys.Dump()
				err := onRanks(t, 2, func(c *comm.Comm) error {
					s, err := newTestSolver(c, 1, "phi", "T")
					if err == nil {
						err = s.advance(1)
					}
					if err := c.Agree(context.Background(), err); err != nil {
						return err
					}
					return SaveBundle(context.Background(), c, "/data/step_1", s.state(), Filesystem(fsys), OnStep(func(s Step, _ string) {
						if s == step && c.Rank() == rank {
							panic("no more paper")
						}
					}))
				})
				if step == StepRenamed || step == StepPublished {
					if err != nil {
						t.Errorf("after the rename: %v", err)
					}
					if err := loadStep(t, fsys, 1, "/data/step_1", 1); err != nil {
						t.Error(err)
					}
					return
				}
				wantError(t, err, nil, fmt.Sprintf("rank %d", rank), "no more paper")
				sameFiles(t, fsys, before)
			})
		}
	}
}
