package publish

import (
	"context"
	"fmt"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/fieldstone-io/fieldstone/brick"
	"github.com/fieldstone-io/fieldstone/comm"
	"github.com/fieldstone-io/fieldstone/field"
	"github.com/fieldstone-io/fieldstone/internal/vfs"
)

// composed folds the two spellings of one letter, as a filesystem that stores names in one
// normal form.
func composed(name string) string { return strings.ReplaceAll(name, "e\u0301", "\u00e9") }

// Two ids that a filesystem takes for one are found before anything is published, on all
// ranks, by whichever driver and whoever writes the files; elsewhere they are two fields.
func TestIDsThatAFilesystemTakesForOneAreRefused(t *testing.T) {
	for _, tc := range []struct {
		ids  []string
		fold func(string) string
	}{
		{[]string{"psi", "phi", "Phi"}, strings.ToLower},
		{[]string{"caf\u00e9", "cafe\u0301"}, composed},
	} {
		saves := map[string]func(c *comm.Comm, fsys vfs.FS, s *testSolver) error{
			"by a callback": func(c *comm.Comm, fsys vfs.FS, s *testSolver) error {
				meta := Metadata{Domain: testDomain, Fields: tc.ids, AcceptedTime: 1, AcceptedIncrement: 4}
				return Directory(context.Background(), c, "/data/b", meta, func(_ context.Context, dir string) error {
					if c.Rank() > 0 {
						return nil
					}
					for _, id := range tc.ids {
						f, err := fsys.OpenFile(filepath.Join(dir, id+".bin"), 0o1101, 0o666)
						if err != nil {
							return err
						}
						if _, err := f.Write(make([]byte, testDomain.Cells()*8)); err != nil {
							return err
						}
						if err := f.Close(); err != nil {
							return err
						}
					}
					return nil
				}, Filesystem(fsys))
			},
		}
		for _, d := range []brick.Driver{brick.Auto, brick.POSIX, brick.Node} {
			saves["driver "+d.String()] = func(c *comm.Comm, fsys vfs.FS, s *testSolver) error {
				return SaveBundle(context.Background(), c, "/data/b", s.state(), Filesystem(fsys), Bricks(brick.Using(d)))
			}
		}
		for name, save := range saves {
			for _, folds := range []bool{true, false} {
				t.Run(fmt.Sprintf("%q %s, folds=%t", tc.ids, name, folds), func(t *testing.T) {
					base := newFS(t)
					before := base.Dump()
					var fsys vfs.FS = base
					if folds {
						fsys = vfs.Folding(base, tc.fold)
					}
					err := onRanks(t, 3, func(c *comm.Comm) error {
						s, err := newTestSolver(c, 1, tc.ids...)
						if err == nil {
							err = s.advance(4)
						}
						if err := c.Agree(context.Background(), err); err != nil {
							return err
						}
						return save(c, fsys, s)
					})
					if !folds {
						if err != nil {
							t.Error(err)
						}
						return
					}
					n := len(tc.ids)
					wantError(t, err, ErrInput, fmt.Sprintf("%s.bin\"", tc.ids[n-2]), fmt.Sprintf("%s.bin\"", tc.ids[n-1]), "takes them for one")
					wantError(t, err, vfs.ErrOneFile)
					sameFiles(t, base, before)
				})
			}
		}
	}
}

// Fields that such a filesystem tells apart are published.
func TestAFilesystemThatDoesNotTellCaseApartHoldsBundles(t *testing.T) {
	base := newFS(t)
	fsys := vfs.Folding(base, strings.ToLower)
	if err := saveStep(t, fsys, 2, "/data", 1); err != nil {
		t.Fatal(err)
	}
	if err := loadStep(t, fsys, 3, "/data/step_1", 1); err != nil {
		t.Error(err)
	}
}

// A real and a complex field are written by two plans.
func TestDumpsThatAFilesystemTakesForOneAreAnError(t *testing.T) {
	for _, complexToo := range []bool{false, true} {
		fsys := vfs.Folding(newFS(t), strings.ToLower)
		err := onRanks(t, 2, func(c *comm.Comm) error {
			s, err := newTestSolver(c, 1, "z", "Z")
			fields := s.named()
			if complexToo && err == nil {
				fields[1].Field, err = field.New[complex128](testDomain, fields[0].Field.Box())
			}
			if err := c.Agree(t.Context(), err); err != nil {
				return err
			}
			d, err := NewDumps(t.Context(), c, "/data/%s_%d.bin", fields, Filesystem(fsys))
			if err != nil {
				return err
			}
			defer d.Close()
			_, err = d.Write(t.Context(), 1, 1)
			return err
		})
		wantError(t, err, vfs.ErrOneFile, "/data/z_1.bin", "/data/Z_1.bin")
	}
}

// The ranks of a node make the files, each one: a rank that meets what another one has made
// room for in the same file says that it is one file all the same.
func TestIDsOfOneFileThatTwoRanksMakeAtOnce(t *testing.T) {
	fsys := vfs.NewInject(vfs.Folding(newFS(t), strings.ToLower))
	var creates, looks sync.WaitGroup // before one of them makes room, and the other looks at the size
	creates.Add(2)
	looks.Add(1)
	var fstats, allocates atomic.Int32
	fsys.Delay(func(op vfs.Op) {
		switch {
		case !strings.HasSuffix(op.Name, "hi.bin"):
		case op.Kind == vfs.OpAllocate:
			creates.Wait()
		case op.Kind == vfs.OpFstat && fstats.Add(1) == 2:
			looks.Wait()
		}
	})
	fsys.After(func(op vfs.Op, _ error) {
		switch {
		case !strings.HasSuffix(op.Name, "hi.bin"):
		case op.Kind == vfs.OpCreate:
			creates.Done()
		case op.Kind == vfs.OpAllocate && allocates.Add(1) == 1:
			looks.Done()
		}
	})
	err := onRanks(t, 2, func(c *comm.Comm) error {
		s, err := newTestSolver(c, 1, "phi", "Phi")
		if err == nil {
			err = s.advance(4)
		}
		if err := c.Agree(context.Background(), err); err != nil {
			return err
		}
		return SaveBundle(context.Background(), c, "/data/b", s.state(), Filesystem(fsys), Bricks(brick.Using(brick.Node)))
	})
	wantError(t, err, vfs.ErrOneFile, "phi.bin", "Phi.bin")
}
