package brick_test

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"log/slog"
	"os"
	"strings"
	"sync"
	"testing"

	"github.com/fieldstone-io/fieldstone/brick"
	"github.com/fieldstone-io/fieldstone/comm"
	"github.com/fieldstone-io/fieldstone/grid"
	"github.com/fieldstone-io/fieldstone/internal/onedir"
	"github.com/fieldstone-io/fieldstone/internal/onedir/onedirtest"
	"github.com/fieldstone-io/fieldstone/internal/vfs"
)

// client is a node's view of a server, with a cache of whole files that no other node
// knows of: what it has read or written it takes from there.
type client struct {
	vfs.FS
	back   bool // what is written stays in the cache until the file is closed
	opens  int  // for reading, for which what was cached counts; then the server is asked again
	pages  bool // what was cached is pages of the system, which can be told to let go of them
	mu     sync.Mutex
	cached map[string][]byte
	asked  map[string]int
}

func newClient(server vfs.FS, back bool, opens int) *client {
	return &client{FS: server, back: back, opens: opens, cached: map[string][]byte{}, asked: map[string]int{}}
}

func (c *client) Usage(name string) (vfs.Usage, error) {
	u, err := c.FS.Usage(name)
	u.Allocates, u.Type = false, "network"
	return u, err
}

func (c *client) OpenFile(name string, flag int, perm fs.FileMode) (vfs.File, error) {
	f, err := c.FS.OpenFile(name, flag, perm)
	if err != nil {
		return nil, err
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if flag&os.O_TRUNC != 0 {
		delete(c.cached, name)
	}
	if flag&(os.O_WRONLY|os.O_RDWR) == 0 && c.cached[name] != nil {
		if c.asked[name]++; c.asked[name] > c.opens {
			delete(c.cached, name)
		}
	}
	return &clientFile{File: f, c: c, name: name}, nil
}

type clientFile struct {
	vfs.File
	c     *client
	name  string
	dirty bool
}

// content is what this node knows of the file. The client is locked.
func (f *clientFile) content() ([]byte, error) {
	if data := f.c.cached[f.name]; data != nil {
		return data, nil
	}
	data, err := vfs.ReadFile(f.c.FS, f.name, 1<<20)
	f.c.cached[f.name] = data
	return data, err
}

func (f *clientFile) ReadAt(p []byte, off int64) (int, error) {
	f.c.mu.Lock()
	defer f.c.mu.Unlock()
	data, err := f.content()
	if err != nil {
		return 0, err
	}
	n := copy(p, data[min(off, int64(len(data))):])
	if n < len(p) {
		return n, io.EOF
	}
	return n, nil
}

func (f *clientFile) Forget() {
	f.c.mu.Lock()
	defer f.c.mu.Unlock()
	if f.c.pages {
		delete(f.c.cached, f.name)
	}
}

func (f *clientFile) WriteAt(p []byte, off int64) (int, error) {
	if !f.c.back {
		return f.File.WriteAt(p, off)
	}
	f.c.mu.Lock()
	defer f.c.mu.Unlock()
	data, err := f.content()
	if err != nil {
		return 0, err
	}
	f.dirty = true
	return copy(data[off:], p), nil
}

func (f *clientFile) Close() error {
	f.c.mu.Lock()
	defer f.c.mu.Unlock()
	var err error
	if f.dirty {
		_, err = f.File.WriteAt(f.c.cached[f.name], 0)
	}
	return errors.Join(err, f.File.Close())
}

// written is what came of a write of two arrays by two ranks, one on each node.
func written(t *testing.T, clients [2]*client, logs *strings.Builder, opts ...brick.Option) error {
	t.Helper()
	errs := make([]error, 2)
	err := comm.Run(2, func(c *comm.Comm) error {
		r := c.Rank()
		ctx := onedir.With(t.Context(), onedirtest.Nodes(0, 1))
		own := append([]brick.Option{brick.Filesystem(clients[r]), brick.Using(brick.POSIX)}, opts...)
		if r == 0 {
			own = append(own, brick.Logger(slog.New(slog.NewTextHandler(logs, nil))))
		}
		p, err := brick.NewPlan(ctx, c, [3]int{8, 1, 2}, grid.Box{Low: [3]int{0, 0, r}, Size: [3]int{8, 1, 1}}, brick.Float64, own...)
		if err != nil {
			return err
		}
		defer p.Close()
		_, errs[r] = p.Write(ctx, []brick.WriteJob{
			{Name: `field "a"`, Path: "/data/a.bin", Source: nodesCells(r)},
			{Name: `field "b"`, Path: "/data/b.bin", Source: nodesCells(r)},
		})
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	if fmt.Sprint(errs[0]) != fmt.Sprint(errs[1]) {
		t.Fatalf("rank 0 has %v, rank 1 has %v", errs[0], errs[1])
	}
	return errs[0]
}

// Two nodes write into one file through caches that don't know of each other, and the last
// one to hand its cache over takes the other's cells away: no driver calls that a success.
func TestCachesThatLoseBytesAreFound(t *testing.T) {
	server := newNodesFS(t, 2, 'o')
	never := 1 << 20
	err := written(t, [2]*client{newClient(server, true, never), newClient(server, true, never)}, new(strings.Builder))
	if !errors.Is(err, brick.ErrReadBack) || !strings.Contains(fmt.Sprint(err), `read back field "a": `) || !strings.Contains(fmt.Sprint(err), "a node's cache") {
		t.Errorf("error is %v", err)
	}
}

// A node's cache that is behind for a while makes no write fail: the file is read again.
func TestACacheThatIsBehindIsWaitedFor(t *testing.T) {
	for _, opens := range []int{1, 2} {
		server := newNodesFS(t, 2, 'o')
		var logs strings.Builder
		err := written(t, [2]*client{newClient(server, false, 0), newClient(server, false, opens)}, &logs, brick.ReadBack())
		if err != nil {
			t.Errorf("behind for %d looks: %v", opens, err)
		}
		if n := strings.Count(logs.String(), "it is read again"); n != opens {
			t.Errorf("behind for %d looks: it was read again %d times\n%s", opens, n, logs.String())
		}
	}
}

// Pages of an old content that the system would keep for ever are let go of.
func TestPagesThatStayBehindAreReadAfresh(t *testing.T) {
	server := newNodesFS(t, 2, 'o')
	behind := newClient(server, false, 1<<20)
	behind.pages = true
	var logs strings.Builder
	err := written(t, [2]*client{newClient(server, false, 0), behind}, &logs, brick.ReadBack())
	if n := strings.Count(logs.String(), "it is read again"); err != nil || n != 1 {
		t.Errorf("read again %d times: %v\n%s", n, err, logs.String())
	}
}

// A cache that is behind with the size is waited for too.
func TestASizeThatIsBehindIsWaitedFor(t *testing.T) {
	server := newNodesFS(t, 2, 'o')
	behind := &shortSize{FS: server, old: 2}
	var logs strings.Builder
	err := written(t, [2]*client{newClient(server, false, 0), newClient(behind, false, 0)}, &logs, brick.ReadBack())
	if err != nil || !strings.Contains(logs.String(), "it is read again") {
		t.Errorf("after %d looks: %v\n%s", behind.looks, err, logs.String())
	}
}

// shortSize shows an old size of a file that is read, as often as given, once it has been
// looked at after it was made.
type shortSize struct {
	vfs.FS
	looks, old int
}

func (s *shortSize) OpenFile(name string, flag int, perm fs.FileMode) (vfs.File, error) {
	f, err := s.FS.OpenFile(name, flag, perm)
	if err != nil || flag&(os.O_WRONLY|os.O_RDWR) != 0 || !strings.HasSuffix(name, "b.bin") {
		return f, err
	}
	if s.looks++; s.looks > 1 && s.looks <= 1+s.old {
		return shortFile{f}, nil
	}
	return f, nil
}

type shortFile struct{ vfs.File }

func (f shortFile) Stat() (fs.FileInfo, error) {
	info, err := f.File.Stat()
	if err != nil {
		return nil, err
	}
	return shortInfo{info}, nil
}

type shortInfo struct{ fs.FileInfo }

func (i shortInfo) Size() int64 { return i.FileInfo.Size() / 2 }

// staleRoom shows a file that is opened to be written as it was before rank 0 made room in
// it, as often as given.
type staleRoom struct {
	vfs.FS
	opens, old int
}

func (s *staleRoom) OpenFile(name string, flag int, perm fs.FileMode) (vfs.File, error) {
	f, err := s.FS.OpenFile(name, flag, perm)
	if err != nil || flag&os.O_WRONLY == 0 {
		return f, err
	}
	if s.opens++; s.opens <= s.old {
		return shortFile{f}, nil
	}
	return f, nil
}

// A node that sees the size of a run's file late waits for the room that rank 0 made there,
// and a file that never has it is an error.
func TestRoomThatIsSeenLateIsWaitedFor(t *testing.T) {
	for _, tc := range []struct {
		old int
		err error
	}{{1, nil}, {3, nil}, {4, brick.ErrSize}} {
		server := newNodesFS(t, 2, 'o')
		if err := vfs.WriteFile(server, "/data/run.h5", make([]byte, 10), 0o666, false); err != nil {
			t.Fatal(err)
		}
		errs := make([]error, 2)
		err := comm.Run(2, func(c *comm.Comm) error {
			r := c.Rank()
			ctx := onedir.Checked(onedir.With(t.Context(), onedirtest.Nodes(0, 1)))
			fsys := &staleRoom{FS: server, old: tc.old * r}
			p, err := brick.NewPlan(ctx, c, [3]int{8, 1, 2}, grid.Box{Low: [3]int{0, 0, r}, Size: [3]int{8, 1, 1}}, brick.Float64,
				brick.Filesystem(fsys), brick.Using(brick.POSIX))
			if err != nil {
				return err
			}
			defer p.Close()
			_, errs[r] = p.Write(ctx, []brick.WriteJob{{Name: `field "a"`, Path: "/data/run.h5", Source: nodesCells(r), Within: true, Offset: 16}})
			return nil
		})
		if err != nil {
			t.Fatal(err)
		}
		if (errs[0] == nil) != (tc.err == nil) || !errors.Is(errs[0], tc.err) || fmt.Sprint(errs[0]) != fmt.Sprint(errs[1]) {
			t.Errorf("seen late %d times: rank 0 has %v, rank 1 has %v; want %v", tc.old, errs[0], errs[1], tc.err)
		}
	}
}
