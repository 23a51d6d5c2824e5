package brick_test

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/fieldstone-io/fieldstone/brick"
	"github.com/fieldstone-io/fieldstone/comm"
	"github.com/fieldstone-io/fieldstone/grid"
	"github.com/fieldstone-io/fieldstone/internal/mpitest"
	"github.com/fieldstone-io/fieldstone/internal/vfs"
)

// Two parts of a file that is sparse, with one byte between them, so large that each
// driver moves them in the way of large arrays: whole planes, and rows that are split.
// The file takes the space of the parts, not that of what lies before.
func farParts(t *mpitest.T, c *comm.Comm, d brick.Driver, dir string) {
	const start = 4<<30 + 2<<10 + 377
	for axis := range 3 {
		size := [3]int{96, 64, 100}
		pg := [3]int{1, 1, 1}
		pg[axis] = c.Size()
		dec, err := grid.Decompose(grid.Domain{Size: size, Spacing: [3]float64{1, 1, 1}}, c.Size(), grid.ProcessGrid(pg[0], pg[1], pg[2]))
		if err != nil {
			t.Fatal(err)
		}
		cells := pattern{size: size, box: dec.Box(c.Rank())}
		p, err := brick.NewPlan(t.Context(), c, size, cells.box, brick.Float64, brick.Using(d), brick.Sync())
		if err != nil {
			t.Fatal(err)
		}
		path := filepath.Join(dir, fmt.Sprintf("%d.bin", axis))
		end := start + 2*p.FileSize() + 1
		between := []int64{start - 1, start + p.FileSize(), end}
		if c.Rank() == 0 {
			err = sparse(path, end+5, between)
		}
		if err := c.Agree(t.Context(), err); err != nil {
			t.Fatal(err)
		}
		jobs := []brick.WriteJob{
			{Name: "first", Path: path, Source: cells, Within: true, Offset: start},
			{Name: "second", Path: path, Source: cells, Within: true, Offset: start + p.FileSize() + 1},
		}
		sums, err := p.Write(t.Context(), jobs)
		if err != nil {
			t.Fatal(err)
		}
		var reads []brick.ReadJob
		for _, j := range jobs {
			reads = append(reads, brick.ReadJob{Name: j.Name, Path: path, Sink: brick.SinkFunc(cells.check), Within: true, Offset: j.Offset})
		}
		again, err := p.Read(t.Context(), reads)
		if err != nil {
			t.Fatal(err)
		}
		want := cells.sum()
		if !slices.Equal(sums, []brick.Sum{want, want}) || !slices.Equal(again, []uint64{want.CRC, want.CRC}) {
			t.Errorf("axis %d: sums %x and %x, want %x", axis, sums, again, want)
		}
		if c.Rank() == 0 {
			if err := looks(path, p.FileSize(), end+5, between, jobs); err != nil {
				t.Errorf("axis %d: %v", axis, err)
			}
		}
		p.Close()
	}
}

// sparse makes a file of a size, with one byte at each of the given places.
func sparse(path string, size int64, at []int64) error {
	f, err := os.Create(path)
	if err != nil {
		return err
	}
	for _, offset := range at {
		if _, err := f.WriteAt([]byte{0xA5}, offset); err != nil {
			return errors.Join(err, f.Close())
		}
	}
	return errors.Join(f.Truncate(size), f.Close())
}

// looks reads the parts of the file by itself, and what is around them.
func looks(path string, part, size int64, between []int64, jobs []brick.WriteJob) error {
	f, err := os.Open(path)
	if err != nil {
		return err
	}
	defer f.Close()
	var st unix.Stat_t
	if err := unix.Fstat(int(f.Fd()), &st); err != nil {
		return err
	}
	if st.Size != size {
		return fmt.Errorf("%d bytes, want %d", st.Size, size)
	}
	if used := st.Blocks * 512; used > 1<<30 {
		return fmt.Errorf("the file takes %d bytes of space for parts of %d", used, part)
	}
	for _, offset := range between {
		b := make([]byte, 1)
		if _, err := f.ReadAt(b, offset); err != nil || b[0] != 0xA5 {
			return fmt.Errorf("byte %d is %#x, %v", offset, b[0], err)
		}
	}
	// The checksums are those of the cells: what is left is where they are.
	for _, j := range jobs {
		b, want := make([]byte, part), make([]byte, part)
		if _, err := f.ReadAt(b, j.Offset); err != nil {
			return err
		}
		fillPattern(want, 0)
		if !bytes.Equal(b, want) {
			return fmt.Errorf("%s: other bytes", j.Name)
		}
	}
	tail := make([]byte, 10)
	if n, err := f.ReadAt(tail, between[2]+1); n != 4 || err != io.EOF || !bytes.Equal(tail[:n], make([]byte, 4)) {
		return fmt.Errorf("the end is %x, %v", tail[:n], err)
	}
	return nil
}

// Each file is synced once, by one rank, and opened for its parts without being
// created or emptied.
func TestAFileWithPartsIsSyncedOnce(t *testing.T) {
	for _, d := range []brick.Driver{brick.POSIX, brick.Node} {
		t.Run(d.String(), func(t *testing.T) {
			in := newInjected()
			in.parts = true
			write, read := in.run(t, brick.Using(d), brick.Sync())
			if write[0] != nil || read[0] != nil {
				t.Fatal(write, read)
			}
			synced := make(map[string]int)
			for _, fsys := range in.fs {
				for _, op := range fsys.Ops() {
					switch op.Kind {
					case vfs.OpSync:
						synced[op.Name]++
					case vfs.OpCreate, vfs.OpTruncate:
						t.Errorf("%s", op)
					}
				}
			}
			if len(synced) != 1 || synced["/parts.h5"] != 1 {
				t.Errorf("synced: %v", synced)
			}
		})
	}
}

// The array is a part of a file with a name of its own: errors name both.
func TestErrorsAboutPartsNameTheFile(t *testing.T) {
	cases := []struct {
		name string
		rule vfs.Rule
		want string
	}{
		{"open", vfs.Rule{Kinds: []vfs.Kind{vfs.OpOpen}, Err: syscall.EACCES}, `rank 0: write field "a": open /parts.h5: permission denied`},
		{"allocate: the disk is full", vfs.Rule{Kinds: []vfs.Kind{vfs.OpAllocate}, Err: syscall.ENOSPC}, `rank 0: write field "a": allocate /parts.h5: no space left on device`},
		{"write", vfs.Rule{Kinds: []vfs.Kind{vfs.OpWriteAt}, Err: syscall.EDQUOT}, `: writeat /parts.h5: disk quota exceeded`},
		{"sync", vfs.Rule{Kinds: []vfs.Kind{vfs.OpSync}, Err: syscall.EIO}, `rank 0: sync field "a": sync /parts.h5: input/output error`},
	}
	for _, tc := range cases {
		t.Run(tc.name, func(t *testing.T) {
			in := newInjected()
			in.parts = true
			for _, fsys := range in.fs {
				if err := fsys.Fail(tc.rule); err != nil {
					t.Fatal(err)
				}
			}
			write, _ := in.run(t, brick.Using(brick.Node), brick.Sync())
			err, differ := same(write)
			if differ != nil {
				t.Fatal(differ)
			}
			if !errors.Is(err, tc.rule.Err) || !strings.Contains(fmt.Sprint(err), tc.want) {
				t.Errorf("error is %v, want %s", err, tc.want)
			}
			if tc.rule.Kinds[0] != vfs.OpAllocate {
				return
			}
			// No rank has written yet.
			for r, fsys := range in.fs {
				for _, op := range fsys.Ops() {
					if op.Kind == vfs.OpWriteAt {
						t.Errorf("rank %d: %s", r, op)
					}
				}
			}
			if got, err := vfs.ReadFile(in.mem, "/parts.h5", 1<<20); err != nil || !bytes.Equal(got, injectedFile()) {
				t.Errorf("the file has changed: %x, %v", got, err)
			}
		})
	}
}

func TestAPartOfSomethingElseIsAnError(t *testing.T) {
	dir := t.TempDir()
	fifo := filepath.Join(dir, "fifo")
	if err := unix.Mkfifo(fifo, 0o666); err != nil {
		t.Fatal(err)
	}
	link := filepath.Join(dir, "link")
	if err := os.Symlink(filepath.Join(dir, "nothing"), link); err != nil {
		t.Fatal(err)
	}
	p, err := brick.NewPlan(t.Context(), comm.Self(), [3]int{1, 1, 1}, grid.Box{Size: [3]int{1, 1, 1}}, brick.Float64)
	if err != nil {
		t.Fatal(err)
	}
	defer p.Close()
	for _, tc := range []struct {
		path        string
		write, read error
	}{
		{fifo, syscall.ENXIO, nil},
		{"/dev/null", nil, nil}, // not regular
		{link, fs.ErrNotExist, fs.ErrNotExist},
	} {
		_, werr := p.Write(t.Context(), []brick.WriteJob{{Name: "it", Path: tc.path, Source: make(cells, 1), Within: true, Offset: 8}})
		_, rerr := p.Read(t.Context(), []brick.ReadJob{{Name: "it", Path: tc.path, Sink: brick.SinkFunc(func([]byte, int64) error { return nil }), Within: true, Offset: 8}})
		for _, e := range []struct{ got, want error }{{werr, tc.write}, {rerr, tc.read}} {
			text := fmt.Sprint(e.got)
			if !strings.Contains(text, tc.path) || e.want != nil && !errors.Is(e.got, e.want) ||
				e.want == nil && !strings.HasSuffix(text, vfs.ErrNotRegular.Error()) {
				t.Errorf("%s: error is %s", tc.path, text)
			}
		}
	}
	if _, err := os.Lstat(filepath.Join(dir, "nothing")); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("a file was made: %v", err)
	}
}
