package bricktest_test

import (
	"flag"
	"fmt"
	"io/fs"
	"os"
	"path"
	"strings"
	"sync"
	"testing"
	"testing/synctest"

	"github.com/fieldstone-io/fieldstone/brick"
	"github.com/fieldstone-io/fieldstone/brick/bricktest"
	"github.com/fieldstone-io/fieldstone/comm"
	"github.com/fieldstone-io/fieldstone/internal/vfs"
)

// bent is a filesystem that makes one mistake, as a bad driver would.
type bent struct {
	vfs.FS
	flag  func(name string, flag int) int
	write func(f vfs.File, src []byte, offset int64) (int, error)
	read  func(f vfs.File, dst []byte, offset int64) (int, error)
}

type bentFile struct {
	vfs.File
	fs *bent
}

func (b *bent) OpenFile(name string, flag int, perm fs.FileMode) (vfs.File, error) {
	if b.flag != nil {
		flag = b.flag(name, flag)
	}
	f, err := b.FS.OpenFile(name, flag, perm)
	if err != nil {
		return nil, err
	}
	return bentFile{f, b}, nil
}

func (f bentFile) WriteAt(src []byte, offset int64) (int, error) {
	if f.fs.write != nil {
		return f.fs.write(f.File, src, offset)
	}
	return f.File.WriteAt(src, offset)
}

func (f bentFile) ReadAt(dst []byte, offset int64) (int, error) {
	if f.fs.read != nil {
		return f.fs.read(f.File, dst, offset)
	}
	return f.File.ReadAt(dst, offset)
}

// recorder is a test that may fail.
type recorder struct {
	testing.TB
	mu     sync.Mutex
	errors []string
}

func (r *recorder) Errorf(format string, args ...any) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.errors = append(r.errors, fmt.Sprintf(format, args...))
}

func (r *recorder) Logf(format string, args ...any) {}
func (r *recorder) Fail()                           {}
func (r *recorder) Helper()                         {}

// run gives the errors of the suite over a filesystem.
func run(t *testing.T, fsys *bent) []string {
	t.Helper()
	m := vfs.NewMem()
	if err := m.Mkdir("/d", 0o777); err != nil {
		t.Fatal(err)
	}
	fsys.FS = m
	rec := &recorder{TB: t}
	err := comm.Run(3, func(c *comm.Comm) error {
		bricktest.Run(rec, c, bricktest.Config{
			Options: []brick.Option{brick.Filesystem(fsys)}, FS: fsys, Dir: "/d", Layouts: 50})
		return nil
	})
	if err != nil {
		t.Error(err)
	}
	return rec.errors
}

func TestTheSuiteFindsMistakes(t *testing.T) {
	for name, value := range map[string]string{"rapid.nofailfile": "true", "rapid.shrinktime": "0s"} {
		old := flag.Lookup(name).Value.String()
		if err := flag.Set(name, value); err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { flag.Set(name, old) })
	}
	cases := []struct {
		name string
		fs   bent
		want string // in one of the errors; "" is none
	}{
		{"a good driver", bent{}, ""},
		{"a byte is written wrong", bent{write: func(f vfs.File, src []byte, offset int64) (int, error) {
			bad := append([]byte(nil), src...)
			bad[len(bad)-1] ^= 1
			return f.WriteAt(bad, offset)
		}}, "want 0x"},
		{"a row is one cell off", bent{write: func(f vfs.File, src []byte, offset int64) (int, error) {
			if offset >= 8 {
				offset -= 8
			}
			return f.WriteAt(src, offset)
		}}, "want 0x"},
		{"a write is lost", bent{write: func(f vfs.File, src []byte, offset int64) (int, error) {
			return len(src), nil
		}}, "want 0x"},
		{"a longer file keeps its end", bent{flag: func(_ string, flag int) int { return flag &^ os.O_TRUNC }}, "want 0"},
		{"the file of a part is created", bent{flag: func(name string, flag int) int { return flag | os.O_CREATE }}, "missing.bin"},
		{"the file of a part loses its content", bent{flag: func(name string, flag int) int {
			if path.Base(name) == "parts.bin" && flag&os.O_WRONLY != 0 {
				flag |= os.O_TRUNC
			}
			return flag
		}}, "a directory: rank 0: parts.bin: "},
		{"a byte outside of a part is written", bent{write: func(f vfs.File, src []byte, offset int64) (int, error) {
			if path.Base(f.Name()) == "parts.bin" {
				_, _ = f.WriteAt([]byte{0x5A}, 0)
			}
			return f.WriteAt(src, offset)
		}}, "parts.bin: byte 0 is 0x5a, want 0x1"},
		{"a byte is read wrong", bent{read: func(f vfs.File, dst []byte, offset int64) (int, error) {
			n, err := f.ReadAt(dst, offset)
			dst[0] ^= 0x80
			return n, err
		}}, "want"},
		{"a read beyond the end gives zeros", bent{read: func(f vfs.File, dst []byte, offset int64) (int, error) {
			_, _ = f.ReadAt(dst, offset)
			return len(dst), nil
		}}, "a file that gets shorter"},
	}
	for _, tc := range cases {
		t.Run(tc.name, func(t *testing.T) {
			var errs []string
			// In the time of package synctest the pauses before wrong files are read again
			// cost none.
			synctest.Test(t, func(t *testing.T) { errs = run(t, &tc.fs) })
			if tc.want == "" && len(errs) > 0 || tc.want != "" && !strings.Contains(strings.Join(errs, "\n"), tc.want) {
				t.Errorf("the suite says: %q", errs)
			}
		})
	}
}
