package brick

import (
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"strconv"
	"strings"

	"github.com/fieldstone-io/fieldstone/internal/vfs"
)

const (
	// maxChunk is what is packed before it is written: large enough to amortise the
	// call, small enough to stay in the cache.
	maxChunk = 2 << 20

	minChunk       = 512 << 10 // of a worker: below, one does as well as two
	defaultStaging = 2 * maxChunk
	maxRound       = 1 << 30 // MPI-IO implementations fail above 2 GiB per rank and call
	pageSize       = 4096    // of files: pieces that begin at a multiple of it are cheap
)

type options struct {
	driver   Driver
	hints    map[string]string
	staging  int64 // 0: by driver
	round    int64
	sync     bool
	readBack bool
	planes   int // of a section, 0: there are none
	fs       vfs.FS
	log      *slog.Logger
	err      error // the first
}

// Option adjusts a plan. All ranks give the same options, but for [Logger].
type Option func(*options)

func newOptions(opts []Option) (options, error) {
	o := options{round: maxRound, fs: vfs.OS, log: slog.New(slog.DiscardHandler)}
	for _, f := range opts {
		if f == nil {
			o.fail(errors.New("an option is nil"))
			continue
		}
		f(&o)
	}
	if o.driver == MPIIO && o.fs != vfs.OS {
		o.fail(fmt.Errorf("driver %s works on the operating system's files only", o.driver))
	}
	return o, o.err
}

func (o *options) fail(err error) {
	if o.err == nil {
		o.err = err
	}
}

// settings lists what must be the same on all ranks.
func (o *options) settings() []setting {
	hints, _ := json.Marshal(o.hints) // sorted by key; strings always marshal
	return []setting{
		{"the driver", o.driver.String()},
		{"the staging limit", limitText(o.staging)},
		{"the round limit", strconv.FormatInt(o.round, 10)},
		{"sync", strconv.FormatBool(o.sync)},
		{"the planes of a section", strconv.Itoa(o.planes)},
		{"reading back", strconv.FormatBool(o.readBack)},
		{"the set of hints", string(hints)},
		{"the filesystem", fmt.Sprintf("%T", o.fs)},
	}
}

func limitText(n int64) string {
	if n == 0 {
		return "the default"
	}
	return strconv.FormatInt(n, 10)
}

// Using forces a driver. The default is [Auto].
func Using(d Driver) Option {
	return func(o *options) {
		if d < Auto || d > Node {
			o.fail(fmt.Errorf("unknown driver %d", int(d)))
		}
		o.driver = d
	}
}

// Hints passes hints to MPI-IO (MPI_Info keys and values). There are none by default, and
// those about collective calls, which are not made, have no effect. Implementations
// ignore hints that they don't know; those given and those in force are logged at debug
// level, once for each plan.
func Hints(hints map[string]string) Option {
	hints = maps.Clone(hints)
	return func(o *options) {
		for k, v := range hints {
			if k == "" || len(k) > 255 || v == "" || len(v) > 1023 || strings.ContainsRune(k+v, 0) {
				o.fail(fmt.Errorf("hint %q=%q: a key has 1 to 255 bytes, a value 1 to 1023, none of them NUL", k, v))
			}
		}
		o.hints = hints
	}
}

// Staging limits the memory that a rank packs into, in bytes, at least 16. The
// default is two chunks of 2 MiB, and 16 MiB where [MPIIO] puts rows together, of which
// 12 MiB are taken. It also limits a rank's slot in the window that the ranks of a node
// share, to a half each.
func Staging(bytes int64) Option {
	return func(o *options) {
		if bytes < 16 {
			o.fail(fmt.Errorf("staging of %d bytes: at least 16, one element", bytes))
		}
		o.staging = bytes
	}
}

// Round limits what a rank moves in one call of MPI-IO, and has of one step of messages, in
// bytes, at least 16. The default and the maximum is 1 GiB. A round is also limited by
// [Staging].
func Round(bytes int64) Option {
	return func(o *options) {
		if bytes < 16 || bytes > maxRound {
			o.fail(fmt.Errorf("round of %d bytes: from 16 to %d", bytes, int64(maxRound)))
		}
		o.round = bytes
	}
}

// Sync makes Write return only when the data of all files is on stable storage.
func Sync() Option { return func(o *options) { o.sync = true } }

// ReadBack makes Write read every file again and compare checksums. Without it
// that is done only where it must be: with MPI-IO, or with several nodes, in a part of a
// file or on a filesystem whose space can't be promised beforehand. MPI-IO
// implementations may call a write to a full disk a success, and caches of several nodes
// that know nothing of each other lose bytes. A file that looks wrong is read
// again, after a moment and three times at most, as a node's cache may be behind.
func ReadBack() Option { return func(o *options) { o.readBack = true } }

// Sections makes the plan keep a checksum of each so many z planes of an array, the last
// of which may be fewer: see [Plan.Sections].
func Sections(planes int) Option {
	return func(o *options) {
		if planes < 1 {
			o.fail(fmt.Errorf("sections of %d planes", planes))
		}
		o.planes = planes
	}
}

// Logger receives, at debug level, the choice of driver, the hints in force and
// a line per call, and warnings: where ranks can't share memory, and on the rank whose
// disk is slow, or on rank 0 while it waits for others, after a minute, then after two,
// four and so on. The default discards them. Ranks may have different loggers.
func Logger(l *slog.Logger) Option {
	return func(o *options) {
		if l == nil {
			o.fail(errors.New("the logger is nil"))
			return
		}
		o.log = l
	}
}

// Filesystem replaces the operating system's files, for tests within this module.
func Filesystem(fs vfs.FS) Option {
	return func(o *options) {
		if fs == nil {
			o.fail(errors.New("the filesystem is nil"))
			return
		}
		o.fs = fs
	}
}
