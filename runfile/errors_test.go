package runfile

import (
	"errors"
	"fmt"
	"io/fs"
	"testing"

	"github.com/fieldstone-io/fieldstone/internal/h5"
)

// Whoever made an error about a file, the file and the object are found in it, the text is
// as it was, and so are the errors in it.
func TestErrorsNameFileAndObject(t *testing.T) {
	library := func(object, attribute string) error {
		return &h5.Error{Op: "read", File: "a.h5", Object: object, Attribute: attribute, Err: fs.ErrNotExist}
	}
	const lost = "file does not exist"
	for name, c := range map[string]struct {
		err                 error
		is                  error
		text, object, cause string
	}{
		"content":               {in("a.h5", "time", ErrMismatch, "%d axes", 2), ErrMismatch, "a.h5: time: does not match: 2 axes", "time", "does not match: 2 axes"},
		"the file as a whole":   {in("a.h5", "", ErrTorn, "no mark"), ErrTorn, "a.h5: the file was not finished: no mark", "", "the file was not finished: no mark"},
		"a call":                {library("unknowns/n", ""), fs.ErrNotExist, "read a.h5: unknowns/n: " + lost, "unknowns/n", lost},
		"an attribute":          {library("time", "unit"), fs.ErrNotExist, `read a.h5: time: attribute "unit": ` + lost, "time", `attribute "unit": ` + lost},
		"one of the root":       {library("/", "writer"), fs.ErrNotExist, `read a.h5: /: attribute "writer": ` + lost, "", `/: attribute "writer": ` + lost},
		"a call in other words": {fmt.Errorf("%w: no sums: %w", ErrChecksum, library("time", "")), ErrChecksum, "the checksum does not match: no sums: read a.h5: time: " + lost, "time", lost},
		"with one of closing":   {errors.Join(library("time", ""), fs.ErrClosed), fs.ErrClosed, "read a.h5: time: " + lost + "\nfile already closed", "time", lost},
	} {
		err := fmt.Errorf("verify: %w", located(c.err))
		var f *FileError
		if !errors.As(err, &f) || f.File != "a.h5" || f.Object != c.object || f.Err.Error() != c.cause {
			t.Errorf("%s: found %+v", name, f)
		}
		if err.Error() != "verify: "+c.text || !errors.Is(err, c.is) {
			t.Errorf("%s: error is %v", name, err)
		}
	}
	for _, err := range []error{nil, fs.ErrClosed} {
		if got := located(err); got != err {
			t.Errorf("%v became %v", err, got)
		}
	}
}
