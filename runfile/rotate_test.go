package runfile

import (
	"errors"
	"fmt"
	"strings"
	"syscall"
	"testing"

	"github.com/fieldstone-io/fieldstone/internal/vfs"
)

// rotation is a directory with checkpoints of the given contents, and a new one.
func rotation(t *testing.T, files map[string]string) *vfs.Mem {
	t.Helper()
	m := vfs.NewMem()
	for name, text := range files {
		if err := vfs.WriteFile(m, name, []byte(text), 0o666, true); err != nil {
			t.Fatal(err)
		}
	}
	return m
}

func contentOf(m *vfs.Mem, name string) string {
	text, err := vfs.ReadFile(m, name, 1<<10)
	if err != nil {
		return ""
	}
	return string(text)
}

// Each call of the rotation fails, or is carried out and then denied; and from then on no
// other call can tell, or all can. The newest checkpoint that there was, or the new one, is
// where it is looked for, and a rename that was carried out is none that failed.
func TestTheLastCheckpointSurvivesWhateverARenameAnswers(t *testing.T) {
	worth := func() (bool, error) { return true, nil }
	for _, files := range []map[string]string{
		{"/tmp": "the new one", "/last": "the last", "/previous": "previous"},
		{"/tmp": "the new one", "/last": "the last"},
		{"/tmp": "the new one"},
		{"/tmp": "the new one", "/last": "the last", "/previous": "previous", temporary("/previous"): "leftover"},
	} {
		for _, errno := range []syscall.Errno{syscall.EIO, syscall.ENOENT, syscall.EEXIST} {
			for _, late := range []bool{true, false} {
				for _, blind := range []bool{false, true} {
					for i := 1; ; i++ {
						m := rotation(t, files)
						in := vfs.NewInject(m)
						rules := []vfs.Rule{{At: i, Err: errno, Late: late, Match: func(op vfs.Op) bool { return !op.Kind.Reads() }}}
						if blind {
							rules = append(rules, vfs.Rule{From: i + 1, Kinds: []vfs.Kind{vfs.OpLstat}})
						}
						for _, r := range rules {
							if err := in.Fail(r); err != nil {
								t.Fatal(err)
							}
						}
						err := rotate(in, "/tmp", "/last", "/previous", worth)
						if in.Count() < i {
							break
						}
						last, previous := contentOf(m, "/last"), contentOf(m, "/previous")
						what := fmt.Sprintf("%v of %q, late=%t, blind=%t: error %v, last %q, previous %q\n%s",
							errno, in.Ops()[i-1], late, blind, err, last, previous, strings.Join(in.Trace(), "\n"))
						isRename := in.Ops()[i-1].To != ""
						switch {
						case err == nil && (last != "the new one" || previous != files["/last"]):
							t.Fatalf("success: %s", what)
						case files["/last"] != "" && last != "the new one" && last != "the last" && previous != "the last":
							t.Fatalf("the last checkpoint is lost: %s", what)
						case late && isRename && !blind && err != nil:
							t.Fatalf("it was carried out: %s", what)
						case !late && isRename && !blind && (err == nil || last != files["/last"] || previous != files["/previous"]):
							t.Fatalf("it isn't as before: %s", what)
						case late && isRename && blind && err != nil && !errors.Is(err, vfs.ErrUnclear):
							t.Fatalf("it doesn't say that nothing is clear: %s", what)
						}
					}
				}
			}
		}
	}
}
