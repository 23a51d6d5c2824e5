package runfile

import (
	"errors"
	"strings"
	"testing"

	"github.com/fieldstone-io/fieldstone/internal/vfs"
)

// Where case isn't told apart, the segments of the run Cell are those of the run cell too:
// one that begins anew would replace them.
func TestSegmentsOfARunOfAnotherSpelling(t *testing.T) {
	m := vfs.NewMem()
	for _, name := range []string{"/Cell.segment0002.h5", "/cell.notes", "/other.segment0001.h5"} {
		if err := vfs.WriteFile(m, name, nil, 0o666, true); err != nil {
			t.Fatal(err)
		}
	}
	folding := vfs.Folding(m, strings.ToLower)
	for _, tc := range []struct {
		fsys vfs.FS
		name string
		n    int
		is   error
	}{
		{m, "cell", 0, nil},
		{m, "Cell", 1, nil},
		{folding, "Cell", 1, nil},
		{folding, "cell", 0, vfs.ErrOneFile},
		{folding, "other", 1, nil},
	} {
		list, err := segmentFiles(tc.fsys, "/", tc.name)
		if len(list) != tc.n || !errors.Is(err, tc.is) {
			t.Errorf("%s: %v, %v", tc.name, list, err)
		}
		if tc.is != nil && !strings.Contains(err.Error(), `"Cell.segment0002.h5", of another run, and "cell.segment0002.h5"`) {
			t.Errorf("error is %v", err)
		}
	}
}
