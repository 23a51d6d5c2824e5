//go:build !hdf5

package h5_test

import (
	"errors"
	"path/filepath"
	"testing"

	"github.com/fieldstone-io/fieldstone/internal/h5"
)

func TestWithoutTheLibraryNothingOpens(t *testing.T) {
	name := filepath.Join(t.TempDir(), "file.h5")
	for call, open := range map[string]func(string) (*h5.File, error){
		"Create": h5.Create, "CreateNew": h5.CreateNew, "Open": h5.Open, "OpenReadWrite": h5.OpenReadWrite,
	} {
		f, err := open(name)
		if f != nil || !errors.Is(err, h5.ErrUnsupported) || !errors.Is(err, errors.ErrUnsupported) {
			t.Errorf("%s: %v, %v", call, f, err)
		}
	}
	if h5.Enabled || h5.Version() != "none" || h5.OpenObjects() != 0 {
		t.Error("a library is claimed")
	}
}
