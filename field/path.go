package field

import (
	"errors"
	"fmt"
	"log/slog"
)

// Path is the way that owned cells take between a device and a file.
type Path int

const (
	// Automatic is the path that is right for any field: Direct.
	Automatic Path = iota
	// Direct packs and unpacks on the device, past the mirror, even when that
	// is valid. While the mirror is newer it has the truth, and is what cells
	// are read from and written to.
	Direct
	// Mirror copies the whole padded array, once after each change that is
	// known: by [Field.NoteDeviceWrite], or a load. Kernels whose writes
	// aren't noted leave the field as it was, for all who read it.
	Mirror
)

// String returns "automatic", "direct" or "mirror".
func (p Path) String() string {
	switch p {
	case Automatic:
		return "automatic"
	case Direct:
		return "direct"
	case Mirror:
		return "mirror"
	}
	return fmt.Sprintf("Path(%d)", int(p))
}

// Transfer sets the way of a field's cells from and to its device, [Automatic] by
// default. It means nothing for a field in host memory.
func Transfer(p Path) Option {
	return func(o *options) error {
		if p < Automatic || p > Mirror {
			return fmt.Errorf("path %v is not known", p)
		}
		o.path = p
		return nil
	}
}

// Logger receives a warning, once for each space and reason, when a device can't do
// something that is slow otherwise; see the package documentation. It is called without a
// lock, so it may use fields. The default discards them.
func Logger(l *slog.Logger) Option {
	return func(o *options) error {
		if l == nil {
			return errors.New("logger is nil")
		}
		o.log = l
		return nil
	}
}
