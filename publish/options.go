package publish

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"sync"

	"github.com/fieldstone-io/fieldstone/brick"
	"github.com/fieldstone-io/fieldstone/comm"
	"github.com/fieldstone-io/fieldstone/internal/nonfinite"
	"github.com/fieldstone-io/fieldstone/internal/onedir"
	"github.com/fieldstone-io/fieldstone/internal/vfs"
	"github.com/fieldstone-io/fieldstone/internal/waiting"
)

// Durability says what has reached stable storage when a publication returns.
type Durability int

const (
	// Full: every byte and every name of the bundle. On Windows, which has no sync of
	// directories, the names as far as its renames write through.
	Full Durability = iota
	// None: nothing in particular. For benchmarks and scratch space.
	None
)

// Step names a point of a publication, in the order in which they are reached.
type Step string

// The steps of a publication. Each is reported to [OnStep] when it is done.
const (
	StepLocked    Step = "locked"    // rank 0 owns the path
	StepStaged    Step = "staged"    // the staging directory stands, all nodes see it
	StepField     Step = "field"     // a field is being written (SaveBundle; before its first cells, with its id)
	StepWritten   Step = "written"   // all ranks agreed that all fields are written
	StepMetadata  Step = "metadata"  // metadata.json and sidecar.json are written
	StepChecksums Step = "checksums" // checksums.txt is written
	StepSynced    Step = "synced"    // everything in staging is durable
	StepRenamed   Step = "renamed"   // the final name exists
	StepPublished Step = "published" // and is durable; the other ranks learn it next
)

type options struct {
	durability Durability
	fs         vfs.FS
	log        *slog.Logger
	onStep     func(step Step, detail string)
	brick      []brick.Option
	inPlace    bool
	sidecar    any
	plans      *Plans
	stepping   *sync.Mutex // held while onStep runs
	look       onedir.Look // for what rank 0 has
	nonFinite  nonFinitePolicies
	counted    func(map[string]int64)  // takes the counts in place of a warning
	summed     func(map[string]uint64) // takes the checksums of the fields, as they were written or loaded; nil: not known
	after      func(context.Context)   // what rank 0 does when the bundle is published, while the others wait
	err        error
}

// Option adjusts a publication or a load. All ranks give the same options.
type Option func(*options)

// silent is the default logger, the same one for all calls.
var silent = slog.New(slog.DiscardHandler)

func newOptions(opts []Option) (options, error) {
	o := options{
		fs:        vfs.OS,
		log:       silent,
		stepping:  new(sync.Mutex),
		nonFinite: fieldPolicies("", nil, nonfinite.Keys{}),
	}
	for _, f := range opts {
		if f == nil {
			o.err = errors.New("an option is nil")
			continue
		}
		f(&o)
	}
	return o, o.err
}

// WithDurability sets what a publication waits for. The default is [Full].
func WithDurability(d Durability) Option {
	return func(o *options) {
		if d != Full && d != None {
			o.err = fmt.Errorf("unknown durability %d", int(d))
		}
		o.durability = d
	}
}

// InPlace makes a load read straight into the fields, without the copy of the
// owned cells that the default keeps until everything has been read and
// verified. When such a load fails its error has [ErrFieldsUndefined] in its
// chain if cells may have changed.
func InPlace() Option { return func(o *options) { o.inPlace = true } }

// Bricks passes options to the brick plan: driver, hints, staging memory.
func Bricks(opts ...brick.Option) Option {
	return func(o *options) { o.brick = append(o.brick, opts...) }
}

// OnStep calls f on this rank when a step of a publication is done: on all ranks
// for [StepStaged], [StepField] (on those that have cells) and [StepWritten], on
// rank 0 for the others. f is called by one goroutine at a time; fields may come in
// any order. The other ranks wait while f runs, without a limit. A panic in f is that
// rank's error, until the rename. For progress displays and tests.
func OnStep(f func(step Step, detail string)) Option {
	return func(o *options) { o.onStep = f }
}

// Logger receives warnings and notes. The default discards them. Give it on all ranks:
// where a step takes long, as on a slow disk, the rank whose step it is warns after a
// minute, then after two, four and so on, and so does rank 0 while it waits for others.
func Logger(l *slog.Logger) Option {
	return func(o *options) {
		if l == nil {
			o.err = fmt.Errorf("the logger is nil")
			return
		}
		o.log = l
	}
}

// WithSidecar publishes v, as JSON, as sidecar.json. [SaveBundle] has it in its
// [State] instead, which says how numbers are written that JSON doesn't have.
func WithSidecar(v any) Option { return func(o *options) { o.sidecar = v } }

func (o *options) step(s Step, detail string) {
	if o.onStep == nil {
		return
	}
	o.stepping.Lock()
	defer o.stepping.Unlock()
	o.onStep(s, detail)
}

// atWork returns the context of a call to which all ranks have come, and what ends the
// call: however long one of them takes with the files, the others wait, and it is told.
func (o *options) atWork(ctx context.Context, c *comm.Comm, call, path string) (work context.Context, end func()) {
	return waiting.Begin(c.AtWork(ctx), o.log, c.Rank(), call+" "+path)
}

// afterwards lets rank 0 do something when the bundle is published, before the others
// know that: they wait for it as for the rest of the publication.
func afterwards(f func(context.Context)) Option { return func(o *options) { o.after = f } }

func (o *options) bricks() []brick.Option {
	opts := []brick.Option{brick.Filesystem(o.fs), brick.Logger(o.log)}
	if o.durability == Full {
		opts = append(opts, brick.Sync())
	}
	return append(opts, o.brick...)
}
