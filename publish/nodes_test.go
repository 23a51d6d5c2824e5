package publish

import (
	"context"
	"fmt"
	"os"
	"strings"
	"testing"

	"github.com/fieldstone-io/fieldstone/comm"
	"github.com/fieldstone-io/fieldstone/internal/onedir/onedirtest"
	"github.com/fieldstone-io/fieldstone/internal/vfs"
)

// onNodes makes the ranks believe that they are spread over nodes: rank r is on
// node nodes[r].
func onNodes(nodes ...int) Option {
	return func(o *options) { o.look = onedirtest.Nodes(nodes...) }
}

// TestAPathThatIsLocalToANodeIsFoundBeforeAnythingIsWritten: node 1 has another
// filesystem at the path than rank 0. No rank writes a field, and both
// filesystems stay as they were.
func TestAPathThatIsLocalToANodeIsFoundBeforeAnythingIsWritten(t *testing.T) {
	host, err := os.Hostname()
	if err != nil {
		t.Fatal(err)
	}
	for _, tc := range []struct {
		name  string
		nodes []int // by rank
		rank  int   // the lowest on the node that sees nothing
		put   func(fsys vfs.FS) error
	}{
		{"a directory without staging", []int{0, 1}, 1, func(vfs.FS) error { return nil }},
		{"the last node of three ranks", []int{0, 0, 1}, 2, func(vfs.FS) error { return nil }},
		{"no directory at all", []int{0, 1, 1, 0}, 1, func(fsys vfs.FS) error { return fsys.Remove("/data") }},
		{"staging without a nonce", []int{0, 1}, 1, func(fsys vfs.FS) error { return fsys.Mkdir("/data/b.publishing", 0o777) }},
		{"staging of a dead job", []int{0, 1}, 1, func(fsys vfs.FS) error {
			if err := fsys.Mkdir("/data/b.publishing", 0o777); err != nil {
				return err
			}
			return vfs.WriteFile(fsys, "/data/b.publishing/"+ownerName, []byte(strings.Repeat("0", 32)), 0o666, true)
		}},
	} {
		t.Run(tc.name, func(t *testing.T) {
			ours, other := newFS(t), newFS(t)
			if err := tc.put(other); err != nil {
				t.Fatal(err)
			}
			before, otherBefore := ours.Dump(), other.Dump()
			err := onRanks(t, len(tc.nodes), func(c *comm.Comm) error {
				s, err := newTestSolver(c, 1, "phi", "T")
				if err == nil {
					err = s.advance(1)
				}
				if err := c.Agree(context.Background(), err); err != nil {
					return err
				}
				fsys := vfs.FS(ours)
				if tc.nodes[c.Rank()] == 1 {
					fsys = other
				}
				return SaveBundle(context.Background(), c, "/data/b", s.state(), onNodes(tc.nodes...), Filesystem(fsys),
					OnStep(func(step Step, _ string) {
						if step != StepLocked {
							t.Errorf("rank %d got as far as %s", c.Rank(), step)
						}
					}))
			})
			wantError(t, err, nil, fmt.Sprintf("rank %d: ", tc.rank), "node "+host+" does not see", "/data/b.publishing", "local to a node")
			sameFiles(t, ours, before)
			sameFiles(t, other, otherBefore)
		})
	}
}

func TestNodesThatShareAPathPublish(t *testing.T) {
	for _, nodes := range [][]int{{0, 1}, {0, 1, 0, 2}, {2, 1, 1, 0}} {
		t.Run(fmt.Sprint(nodes), func(t *testing.T) {
			fsys := vfs.NewInject(newFS(t))
			if err := saveStep(t, fsys, len(nodes), "/data", 1, onNodes(nodes...)); err != nil {
				t.Fatal(err)
			}
			if err := loadStep(t, fsys, 1, "/data/step_1", 1); err != nil {
				t.Error(err)
			}
		})
	}
}

// TestANodeThatSeesStagingLatePublishes: a network filesystem may take a moment.
func TestANodeThatSeesStagingLatePublishes(t *testing.T) {
	base := newFS(t)
	first, late := vfs.NewInject(base), vfs.NewInject(base)
	if err := late.Fail(vfs.Rule{Pattern: ownerName, Err: os.ErrNotExist, Times: 1}); err != nil {
		t.Fatal(err)
	}
	err := onRanks(t, 2, func(c *comm.Comm) error {
		s, err := newTestSolver(c, 1, "phi", "T")
		if err == nil {
			err = s.advance(1)
		}
		if err := c.Agree(context.Background(), err); err != nil {
			return err
		}
		fsys := []vfs.FS{first, late}[c.Rank()]
		return SaveBundle(context.Background(), c, "/data/step_1", s.state(), onNodes(0, 1), Filesystem(fsys))
	})
	if err != nil {
		t.Fatal(err)
	}
	if err := loadStep(t, base, 2, "/data/step_1", 1); err != nil {
		t.Error(err)
	}
	seen := 0
	for _, line := range late.Trace() {
		if strings.Contains(line, ownerName) && !strings.HasSuffix(line, "file does not exist") {
			seen++
		}
	}
	if seen == 0 {
		t.Errorf("the node looked only in vain:\n\t%s", strings.Join(late.Trace(), "\n\t"))
	}
}
