package publish

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/fieldstone-io/fieldstone/brick"
	"github.com/fieldstone-io/fieldstone/comm"
	"github.com/fieldstone-io/fieldstone/device/emulated"
	"github.com/fieldstone-io/fieldstone/field"
	"github.com/fieldstone-io/fieldstone/grid"
	"github.com/fieldstone-io/fieldstone/internal/mpi"
	"github.com/fieldstone-io/fieldstone/internal/mpitest"
	"github.com/fieldstone-io/fieldstone/internal/vfs"
	"github.com/fieldstone-io/fieldstone/pack"
)

var errBoom = errors.New("boom")

// mishap is what goes wrong on one rank while a state is published.
type mishap struct {
	name  string
	spoil func(p *part, s *State) // on the one rank
	kind  error
	texts []string
}

// brokenField fails when its cells are read, from some cell on.
type brokenField struct {
	field.Any
	from int64
	fail func() error
}

func (f brokenField) Source() (pack.Source, error) {
	s, err := f.Any.Source()
	return brokenSource{s, f}, err
}

type brokenSource struct {
	pack.Source
	f brokenField
}

func (s brokenSource) ReadCells(dst []byte, first int64) error {
	if first+int64(len(dst)/8) > s.f.from {
		return s.f.fail()
	}
	return s.Source.ReadCells(dst, first)
}

// slimmed leaves a gap beside its box.
type slimmed struct{ field.Any }

func (f slimmed) Box() grid.Box {
	b := f.Any.Box()
	b.Size[0]--
	return b
}

func fails() error  { return errBoom }
func panics() error { panic(errBoom) }
func indexes() error {
	var none []int
	return fmt.Errorf("%d", none[len(none)])
}

// A signal of the machine, which MPI might take for itself.
func dereferences() error {
	var none *[4]int
	return fmt.Errorf("%d", none[2])
}

func mishaps() []mishap {
	list := []mishap{
		{"a device that fails", func(p *part, s *State) {
			p.device.Inject(emulated.Fault{Call: emulated.CallCopyToHost, Err: errBoom})
		}, nil, []string{"boom", `field "b"`}},
		{"a boundary condition that fails", func(p *part, s *State) {
			s.Boundaries = []Boundary{&fakeBoundary{config: `{}`, stateErr: errBoom}}
		}, nil, []string{"boom", "boundary"}},
		{"a boundary condition that panics", func(p *part, s *State) {
			s.Boundaries = []Boundary{&fakeBoundary{config: `{}`, panics: "ouch"}}
		}, nil, []string{"ouch", "boundary"}},
		{"a boundary condition in another state", func(p *part, s *State) {
			s.Boundaries = []Boundary{&fakeBoundary{config: `{}`, state: `{"a": 1}`}}
		}, ErrBoundary, nil},
		{"another field", func(p *part, s *State) { s.Fields[1].ID = "c" }, ErrInput, []string{"fields"}},
		{"another time", func(p *part, s *State) { s.Time++ }, ErrInput, []string{"accepted_time"}},
		{"a box with a gap beside it", func(p *part, s *State) {
			for i, f := range s.Fields {
				s.Fields[i].Field = slimmed{f.Field}
			}
		}, brick.ErrLayout, []string{"gap"}},
	}
	for _, way := range []struct {
		name string
		fail func() error
		text string
	}{
		{"an error", fails, "boom"},
		{"a panic", panics, "panic: boom"},
		{"an index out of range", indexes, "index out of range"},
		{"a nil pointer", dereferences, "nil pointer"},
	} {
		for i, id := range []string{"a", "b"} {
			for _, from := range []int64{0, 3} {
				list = append(list, mishap{fmt.Sprintf("%s in field %s from cell %d on", way.name, id, from), func(p *part, s *State) {
					s.Fields[i].Field = brokenField{s.Fields[i].Field, from, way.fail}
				}, nil, []string{way.text, fmt.Sprintf("field %q", id)}})
			}
		}
	}
	return list
}

// TestAFaultOfOneRankIsOneErrorOnAllRanks spoils a publication on one rank, in
// every way, one after the other: all ranks return the same error that names the
// rank, nothing is left, and at the end the same ranks publish.
func TestAFaultOfOneRankIsOneErrorOnAllRanks(t *testing.T) {
	onComponents(t, func(t *testing.T, opts ...mpitest.Option) {
		mpitest.Run(t, []int{2, 4}, func(t *mpitest.T, c *comm.Comm) {
			domain := testDomain
			domain.Size = [3]int{5, 3, 8} // every rank owns cells
			box, err := cuts[1].box(domain, c)
			must(t, c, err)
			save := func(spoil func(p *part, s *State), opts ...Option) error {
				p, err := newPart(domain, box, [3]int{1, 0, 2}, host64, device32)
				must(t, c, err)
				must(t, c, p.set(5))
				s := p.state(5)
				s.Boundaries = []Boundary{&fakeBoundary{config: `{}`}}
				if spoil != nil {
					spoil(p, &s)
				}
				err = SaveBundle(context.Background(), c, filepath.Join(t.TempDir(), "b"), s, append(opts, Bricks(brick.Staging(64)))...)
				must(t, c, p.close())
				return err
			}
			for i, m := range mishaps() {
				if c.Size() > 2 && i%3 != 0 {
					continue // more ranks than cores are slow
				}
				bad := []int{0, c.Size() - 1}[i%2]
				spoil := m.spoil
				if c.Rank() != bad {
					spoil = nil
				}
				err := sameOutcome(t, c, save(spoil))
				if err == nil {
					t.Fatalf("%s: no error", m.name)
				}
				if m.kind != nil && !errors.Is(err, m.kind) {
					t.Errorf("%s: %v: want %v", m.name, err, m.kind)
				}
				texts := m.texts
				if !strings.HasPrefix(m.name, "another") && !errors.Is(err, brick.ErrLayout) && !errors.Is(err, ErrBoundary) {
					texts = append(texts, fmt.Sprintf("rank %d", bad))
				}
				for _, text := range texts {
					if !strings.Contains(err.Error(), text) {
						t.Errorf("%s: %v: does not say %q", m.name, err, text)
					}
				}
				onRankZero(t, c, func() error { return wantEntries(t.TempDir()) })
			}
			for _, rank := range []int{0, c.Size() - 1} {
				ctx, cancel := context.WithCancel(context.Background())
				p, err := newPart(domain, box, [3]int{}, host64, host64)
				must(t, c, err)
				must(t, c, p.set(5))
				err = SaveBundle(ctx, c, filepath.Join(t.TempDir(), "b"), p.state(5), OnStep(func(step Step, detail string) {
					if c.Rank() == rank && step == StepField && detail == "b" {
						cancel()
					}
				}))
				cancel()
				if err := sameOutcome(t, c, err); !errors.Is(err, context.Canceled) || !strings.Contains(err.Error(), fmt.Sprintf("rank %d", rank)) {
					t.Errorf("cancelled on rank %d: %v", rank, err)
				}
				must(t, c, p.close())
				onRankZero(t, c, func() error { return wantEntries(t.TempDir()) })
			}
			if err := sameOutcome(t, c, save(nil)); err != nil {
				t.Errorf("after all of that: %v", err)
			}
			onRankZero(t, c, func() error {
				return checkBundle(vfs.OS, filepath.Join(t.TempDir(), "b"), domain, 5, host64, device32)
			})
		}, opts...)
	})
}

// TestACallbackThatFailsOnOneRankIsOneErrorOnAllRanks lets the callback of
// Directory return an error or panic on one rank before, between, inside and
// after the fields that it writes by collective files.
func TestACallbackThatFailsOnOneRankIsOneErrorOnAllRanks(t *testing.T) {
	onComponents(t, func(t *testing.T, opts ...mpitest.Option) {
		mpitest.Run(t, []int{2, 3}, func(t *mpitest.T, c *comm.Comm) {
			dec, err := grid.Decompose(testDomain, c.Size())
			must(t, c, err)
			publish := func(before, inside func(id string) error) error {
				meta := Metadata{Domain: testDomain, Fields: []string{"a", "b"}, MethodIdentity: "m"}
				return Directory(context.Background(), c, filepath.Join(t.TempDir(), "b"), meta, func(ctx context.Context, dir string) error {
					plan, err := brick.NewPlan(ctx, c, testDomain.Size, dec.Box(c.Rank()), brick.Float64)
					if err != nil {
						return err
					}
					defer plan.Close()
					for _, id := range append(meta.Fields, "end") {
						// A rank that goes alone has to tell the others.
						if err := c.Agree(ctx, comm.Protect(func() error { return before(id) })); err != nil {
							return err
						}
						if id == "end" {
							break
						}
						_, err := plan.Write(ctx, []brick.WriteJob{{Name: "field " + id, Path: filepath.Join(dir, id+".bin"),
							Source: sourceFunc(func(dst []byte, first int64) error {
								clear(dst)
								return inside(id)
							})}})
						if err != nil {
							return err
						}
					}
					return nil
				})
			}
			none := func(string) error { return nil }
			for _, fail := range []func() error{fails, panics} {
				for _, rank := range []int{0, c.Size() - 1} {
					for _, at := range []string{"a", "b", "end"} {
						f := func(id string) error {
							if c.Rank() == rank && id == at {
								return fail()
							}
							return nil
						}
						check := func(err error) {
							err = sameOutcome(t, c, err)
							if err == nil || !strings.Contains(err.Error(), "boom") || !strings.Contains(err.Error(), fmt.Sprintf("rank %d", rank)) {
								t.Errorf("rank %d fails at %s: %v", rank, at, err)
							}
							onRankZero(t, c, func() error { return wantEntries(t.TempDir()) })
						}
						check(publish(f, none))
						if at != "end" {
							check(publish(none, f))
						}
					}
				}
			}
			// And without a word to the others, at the very end.
			meta := Metadata{Domain: testDomain, Fields: []string{"a"}}
			err = sameOutcome(t, c, Directory(context.Background(), c, filepath.Join(t.TempDir(), "b"), meta, func(context.Context, string) error {
				if c.Rank() == 1 {
					panic(errBoom)
				}
				return nil
			}))
			if err == nil || !strings.Contains(err.Error(), "rank 1: panic: boom") {
				t.Errorf("a panic on rank 1: %v", err)
			}
			if err := sameOutcome(t, c, publish(none, none)); err != nil {
				t.Errorf("after all of that: %v", err)
			}
		}, opts...)
	})
}

type sourceFunc func(dst []byte, first int64) error

func (f sourceFunc) ReadCells(dst []byte, first int64) error { return f(dst, first) }

// TestPathsOfAllKinds publishes to good and bad paths: it works, or all ranks get
// one error that says why.
func TestPathsOfAllKinds(t *testing.T) {
	long := strings.Repeat("n", 120)
	good := []string{
		"plain", "with spaces and Ümläuts é 日本", "colon: 12:30:00", "nfs:looks like a prefix", "per%cent%s", `back\slash`, "quote'\"$HOME`", "-dash", ".hidden",
		"trailing/slash/", "dots/../dots/./x", "link/to", long + "/" + long + "/" + long, "new\nline", "[a-z]*?",
	}
	bad := []struct {
		path string
		err  error
	}{
		{"missing/b", syscall.ENOENT},
		{"file/b", syscall.ENOTDIR},
		{"broken/b", syscall.ENOENT},
		{"loop/b", syscall.ELOOP},
		{"broken", ErrExists},
		{"file", ErrExists},
		{"directory", ErrExists},
		{strings.Repeat("n", 256) + "/b", syscall.ENAMETOOLONG},
		{strings.Repeat("n", 250), ErrInput},
		{"", ErrInput},
	}
	onComponents(t, func(t *testing.T, opts ...mpitest.Option) {
		mpitest.Run(t, []int{2}, func(t *mpitest.T, c *comm.Comm) {
			dir := filepath.Join(t.TempDir(), "the ür-directory: 1")
			onRankZero(t, c, func() error {
				err := errors.Join(os.Mkdir(dir, 0o777), os.WriteFile(filepath.Join(dir, "file"), nil, 0o666),
					os.Symlink("nowhere", filepath.Join(dir, "broken")), os.Symlink("loop", filepath.Join(dir, "loop")),
					os.Mkdir(filepath.Join(dir, "directory"), 0o777), os.Symlink("directory", filepath.Join(dir, "link")))
				for _, path := range good {
					if path != "link/to" {
						err = errors.Join(err, os.MkdirAll(filepath.Join(dir, filepath.Dir(filepath.Clean(path))), 0o777))
					}
				}
				return errors.Join(err, os.MkdirAll(filepath.Join(dir, "dots"), 0o777))
			})
			save := func(path string) error {
				return sameOutcome(t, c, saveSized(c, path, 3, 0, 4))
			}
			for _, path := range good {
				full := dir + "/" + path
				if err := save(full); err != nil {
					t.Errorf("%q: %v", path, err)
					continue
				}
				if err := sameOutcome(t, c, loadSized(c, full, 3, 1, 4)); err != nil {
					t.Errorf("%q: load: %v", path, err)
				}
				onRankZero(t, c, func() error { return checkBundle(vfs.OS, full, sized(3), 4, spacesOf(3)...) })
			}
			for _, tc := range bad {
				full := dir + "/" + tc.path
				if tc.path == "" {
					full = ""
				}
				if err := save(full); !errors.Is(err, tc.err) {
					t.Errorf("%q: %v: want %v", tc.path, err, tc.err)
				}
				want := tc.err
				if !errors.As(want, new(syscall.Errno)) {
					want = map[string]error{"file": syscall.ENOTDIR}[tc.path]
					want = cmp.Or(want, error(syscall.ENOENT))
				}
				if err := sameOutcome(t, c, loadSized(c, full+"/none", 3, 1, 4)); !errors.Is(err, want) {
					t.Errorf("%q: load: %v: want %v", tc.path, err, want)
				}
			}
			onRankZero(t, c, func() error {
				return filepath.WalkDir(dir, func(path string, d os.DirEntry, err error) error {
					if strings.Contains(path, suffixStaging) {
						err = errors.Join(err, fmt.Errorf("%s was left", path))
					}
					return err
				})
			})
			if !mpi.Enabled {
				return // the ranks have one working directory
			}
			// A relative path is relative to rank 0's working directory, on all ranks.
			onRankZero(t, c, func() error { return os.MkdirAll(filepath.Join(dir, "cwd"), 0o777) })
			before, err := os.Getwd()
			must(t, c, err)
			must(t, c, os.Chdir(dir))
			if err := save("relative"); err != nil {
				t.Errorf("a relative path: %v", err)
			}
			if c.Rank() == 1 {
				err = os.Chdir("cwd")
			}
			must(t, c, err)
			if err := save("other"); err != nil {
				t.Errorf("relative to different directories: %v", err)
			}
			for _, path := range []string{"relative", "other"} {
				if err := sameOutcome(t, c, loadSized(c, path, 3, 1, 4)); err != nil {
					t.Errorf("load %s relative to different directories: %v", path, err)
				}
			}
			must(t, c, os.Chdir(before))
			onRankZero(t, c, func() error {
				return errors.Join(wantEntries(filepath.Join(dir, "cwd")), checkBundle(vfs.OS, filepath.Join(dir, "other"), sized(3), 4, spacesOf(3)...))
			})
		}, opts...)
	})
}

// TestAReadOnlyDirectoryIsOneErrorOnAllRanks: nothing can be created there, but
// what is there loads.
func TestAReadOnlyDirectoryIsOneErrorOnAllRanks(t *testing.T) {
	test := func(t *mpitest.T, c *comm.Comm, fsys vfs.FS, dir string, readOnly func() error) {
		save := func(name string) error {
			return sameOutcome(t, c, saveSized(c, filepath.Join(dir, name), 0, 0, 2, Filesystem(fsys)))
		}
		must(t, c, save("b"))
		onRankZero(t, c, readOnly)
		if err := save("c"); !errors.Is(err, syscall.EROFS) {
			t.Errorf("publish: %v: want %v", err, syscall.EROFS)
		}
		if err := sameOutcome(t, c, loadSized(c, filepath.Join(dir, "b"), 0, 1, 2, Filesystem(fsys))); err != nil {
			t.Errorf("load: %v", err)
		}
		service, err := NewService(context.Background(), c, Config{Checkpoint: CheckpointConfig{Every: 1, Directory: filepath.Join(dir, "new")}}, Filesystem(fsys))
		if err := sameOutcome(t, c, err); !errors.Is(err, syscall.EROFS) || service != nil {
			t.Errorf("service: %v: want %v", err, syscall.EROFS)
		}
	}
	onComponents(t, func(t *testing.T, opts ...mpitest.Option) {
		mounted := withMount(t, func(t *testing.T, dir string, mount func(kind, options string)) {
			mount("tmpfs", "size=1m")
			mpitest.Run(t, []int{2}, func(t *mpitest.T, c *comm.Comm) {
				test(t, c, vfs.OS, dir, func() error {
					return remountReadOnly(dir)
				})
			}, opts...)
		})
		if !mounted {
			t.Log("the directory in memory has to do")
		}
	})
	t.Run("in memory", func(t *testing.T) {
		inject := vfs.NewInject(newFS(t))
		err := comm.Run(2, func(c *comm.Comm) error {
			test(&mpitest.T{TB: t}, c, inject, "/data", func() error {
				return inject.Fail(vfs.Rule{Kinds: []vfs.Kind{vfs.OpMkdir, vfs.OpLock}, Err: syscall.EROFS})
			})
			return nil
		})
		if err != nil {
			t.Error(err)
		}
	})
}
