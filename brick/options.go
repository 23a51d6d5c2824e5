package brick

import (
	"fmt"
	"log/slog"
	"os"
	"unsafe"

	"github.com/fieldstone-io/fieldstone/internal/vfs"
)

const (
	defaultStaging = 32 << 20
	maxRound       = 1 << 30 // MPI-IO implementations fail above 2 GiB per rank and call
)

type options struct {
	driver   Driver
	hints    map[string]string
	staging  int64
	round    int64
	sync     bool
	readBack bool
	fs       vfs.FS
	log      *slog.Logger
	err      error
}

// Option adjusts a plan. All ranks give the same options.
type Option func(*options)

func newOptions(opts []Option) (options, error) {
	o := options{staging: defaultStaging, round: maxRound, fs: vfs.OS, log: slog.New(slog.DiscardHandler)}
	for _, f := range opts {
		f(&o)
	}
	if o.err == nil && o.driver == MPIIO && o.fs != vfs.OS {
		o.err = fmt.Errorf("driver %s works on the operating system's files only", o.driver)
	}
	return o, o.err
}

// Using forces a driver. The default is [Auto].
func Using(d Driver) Option {
	return func(o *options) {
		if d < Auto || d > MPIIO {
			o.err = fmt.Errorf("unknown driver %d", int(d))
		}
		o.driver = d
	}
}

// Hints passes hints to MPI-IO (MPI_Info keys and values), like
// "cb_buffer_size". Implementations ignore hints that they don't know.
func Hints(hints map[string]string) Option {
	return func(o *options) {
		for k, v := range hints {
			if k == "" || len(k) > 255 || len(v) > 1023 {
				o.err = fmt.Errorf("hint %q=%q: a key has 1 to 255 bytes, a value at most 1023", k, v)
			}
		}
		o.hints = hints
	}
}

// Staging limits the memory that a rank packs into, in bytes. The default is
// 32 MiB.
func Staging(bytes int64) Option {
	return func(o *options) {
		if bytes < 16 {
			o.err = fmt.Errorf("staging of %d bytes: at least one element", bytes)
		}
		o.staging = bytes
	}
}

// Round limits what a rank moves in one collective call, in bytes. The default
// and the maximum is 1 GiB.
func Round(bytes int64) Option {
	return func(o *options) {
		if bytes < 16 || bytes > maxRound {
			o.err = fmt.Errorf("round of %d bytes: from 16 to %d", bytes, int64(maxRound))
		}
		o.round = bytes
	}
}

// Sync makes Write return only when the data of all files is on stable storage.
func Sync() Option { return func(o *options) { o.sync = true } }

// ReadBack makes Write read every file again and compare checksums. Without it
// that is done only where it must be: MPI-IO on a filesystem whose space can't be
// promised beforehand, since MPI-IO implementations may call a write to a full
// disk a success.
func ReadBack() Option { return func(o *options) { o.readBack = true } }

// Logger receives the choice of driver. The default discards it.
func Logger(l *slog.Logger) Option { return func(o *options) { o.log = l } }

// Filesystem replaces the operating system's files, for tests within this module.
func Filesystem(fs vfs.FS) Option { return func(o *options) { o.fs = fs } }

func pageAligned(n int) []byte {
	page := os.Getpagesize()
	b := make([]byte, n+page)
	skip := (page - int(uintptr(unsafe.Pointer(unsafe.SliceData(b)))%uintptr(page))) % page
	return b[skip : skip+n : skip+n]
}
