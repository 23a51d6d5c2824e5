//go:build mpi

package mpi

/*
#cgo pkg-config: ompi
#include <errno.h>
#include <limits.h>
#include <mpi.h>
#include <sched.h>
#include <signal.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

// Ownership. Every byte that a communicator's calls move lies in C memory that
// belongs to its fs_comm: data is copied in before a call and out after it, and
// MPI never sees a Go pointer. So a request that outlives its wait still has its
// buffers: from then on the fs_comm is never used again and never freed. C
// memory also matters to networks that register it: their caches watch the C
// library's calls, and Go's heap gives pages back without these.

typedef struct {
	MPI_Comm    comm;
	int         rank, size;
	char       *buf;       // buf_len bytes: what goes out, then what comes in
	size_t      buf_len;
	int        *counts;    // of gatherv, one per rank
	int        *displs;
	MPI_Request req[2];    // 0 a collective or a send, 1 a receive
	MPI_Status  status[2];
} fs_comm;

// fs_comm_new returns NULL when memory is short. Of a communicator of our own,
// errors are returned.
static fs_comm *fs_comm_new(MPI_Comm h, int own, int *ec) {
	fs_comm *c = calloc(1, sizeof *c);
	if (c == NULL) return NULL;
	c->comm = h;
	c->req[0] = c->req[1] = MPI_REQUEST_NULL;
	*ec = own ? MPI_Comm_set_errhandler(h, MPI_ERRORS_RETURN) : MPI_SUCCESS;
	if (*ec == MPI_SUCCESS) *ec = MPI_Comm_rank(h, &c->rank);
	if (*ec == MPI_SUCCESS) *ec = MPI_Comm_size(h, &c->size);
	if (*ec != MPI_SUCCESS) return c;
	c->counts = calloc(2 * (size_t)c->size, sizeof *c->counts);
	if (c->counts == NULL) { free(c); return NULL; }
	c->displs = c->counts + c->size;
	return c;
}

static void fs_comm_delete(fs_comm *c) {
	free(c->buf);
	free(c->counts);
	free(c);
}

// fs_reserve makes room for n bytes; what the buffer held is lost.
static int fs_reserve(fs_comm *c, size_t n) {
	if (n <= c->buf_len) return 1;
	free(c->buf);
	c->buf_len = 0;
	c->buf = malloc(n);
	if (c->buf == NULL) return 0;
	c->buf_len = n;
	return 1;
}

static MPI_Op fs_op(int op) {
	switch (op) {
	case 1: return MPI_MIN;
	case 2: return MPI_MAX;
	case 3: return MPI_BXOR;
	case 4: return MPI_BOR;
	}
	return MPI_SUM;
}

// The starters. Each fills req; fs_test says when they have ended.

static int fs_start_reduce(fs_comm *c, int n, int is_float, int op) {
	return MPI_Iallreduce(c->buf, c->buf + 8 * (size_t)n, n, is_float ? MPI_DOUBLE : MPI_INT64_T,
		fs_op(op), c->comm, &c->req[0]);
}

// Every collective call begins with a message of this one type, and its reduction: so
// ranks in different calls find that out from the message itself. Its numbers are a
// digest and its complement, of which the maxima are those of one rank only where all are
// equal, the reduction of the words, and the words.

enum { fs_head = 3, fs_words = 61, fs_length = fs_head + fs_words };

static MPI_Datatype fs_message_type;
static MPI_Op       fs_message_op;

static void fs_combine(void *in, void *inout, int *messages, MPI_Datatype *type) {
	for (int m = 0; m < *messages; m++) {
		int64_t *a = (int64_t *)in + m * fs_length, *b = (int64_t *)inout + m * fs_length;
		int64_t how = b[2];
		for (int i = 0; i < 2; i++)
			if (a[i] > b[i]) b[i] = a[i];
		if (a[2] != how) continue; // the digests differ too
		for (int i = fs_head; i < fs_length; i++) {
			double x, y;
			memcpy(&x, &a[i], 8);
			memcpy(&y, &b[i], 8);
			switch (how) {
			case 0: b[i] = (int64_t)((uint64_t)a[i] + (uint64_t)b[i]); continue;
			case 1: if (a[i] < b[i]) b[i] = a[i]; continue;
			case 2: if (a[i] > b[i]) b[i] = a[i]; continue;
			case 3: b[i] ^= a[i]; continue;
			case 4: b[i] |= a[i]; continue;
			case 16: y += x; break;
			case 17: y = x < y ? x : y; break;
			case 18: y = x > y ? x : y; break;
			}
			memcpy(&b[i], &y, 8);
		}
	}
}

// Whoever finalizes MPI, at its beginning the attributes of MPI_COMM_SELF are deleted.
static int fs_free_message(MPI_Comm comm, int key, void *value, void *extra) {
	MPI_Op_free(&fs_message_op);
	return MPI_Type_free(&fs_message_type);
}

static int fs_make_message(void) {
	int key;
	int ec = MPI_Type_contiguous(fs_length, MPI_INT64_T, &fs_message_type);
	if (ec == MPI_SUCCESS) ec = MPI_Type_commit(&fs_message_type);
	if (ec == MPI_SUCCESS) ec = MPI_Op_create(fs_combine, 1, &fs_message_op);
	if (ec == MPI_SUCCESS) ec = MPI_Comm_create_keyval(MPI_COMM_NULL_COPY_FN, fs_free_message, &key, NULL);
	if (ec == MPI_SUCCESS) ec = MPI_Comm_set_attr(MPI_COMM_SELF, key, NULL);
	if (ec == MPI_SUCCESS) ec = MPI_Comm_free_keyval(&key);
	return ec;
}

static int fs_start_message(fs_comm *c) {
	return MPI_Iallreduce(c->buf, c->buf + 8 * fs_length, 1, fs_message_type, fs_message_op, c->comm, &c->req[0]);
}

static int fs_start_broadcast(fs_comm *c, int n, int root) {
	return MPI_Ibcast(c->buf, n, MPI_BYTE, root, c->comm, &c->req[0]);
}

// The first mine bytes of buf go out; what all send arrives behind skip bytes.
static int fs_start_gather(fs_comm *c, int mine, size_t skip) {
	return MPI_Iallgatherv(c->buf, mine, MPI_BYTE, c->buf + skip, c->counts, c->displs, MPI_BYTE,
		c->comm, &c->req[0]);
}

static int fs_start_send_recv(fs_comm *c, int to, int send, int from, int recv, size_t skip, int tag) {
	int ec;
	if (from >= 0) {
		ec = MPI_Irecv(c->buf + skip, recv, MPI_BYTE, from, tag, c->comm, &c->req[1]);
		if (ec != MPI_SUCCESS) return ec;
	}
	return to < 0 ? MPI_SUCCESS : MPI_Isend(c->buf, send, MPI_BYTE, to, tag, c->comm, &c->req[0]);
}

// fs_test looks at the pending requests, tries times.
static int fs_test(fs_comm *c, int tries, int *done) {
	for (;;) {
		*done = 1;
		for (int i = 0; i < 2; i++) {
			int flag = 1, ec;
			if (c->req[i] == MPI_REQUEST_NULL) continue;
			ec = MPI_Test(&c->req[i], &flag, &c->status[i]);
			if (ec != MPI_SUCCESS) return ec;
			if (!flag) *done = 0;
		}
		if (*done || --tries <= 0) return MPI_SUCCESS;
		sched_yield();
	}
}

static int fs_received(fs_comm *c) {
	int n = -1;
	if (MPI_Get_count(&c->status[1], MPI_BYTE, &n) != MPI_SUCCESS) return -1;
	return n;
}

// Macros and constants that cgo cannot see the same way in every MPI.

static MPI_Comm fs_world(void) { return MPI_COMM_WORLD; }
static MPI_Comm fs_null(void) { return MPI_COMM_NULL; }
static MPI_Comm fs_from_fortran(int f) { return MPI_Comm_f2c((MPI_Fint)f); }
static int fs_to_fortran(fs_comm *c) { return (int)MPI_Comm_c2f(c->comm); }
static int fs_thread_multiple(void) { return MPI_THREAD_MULTIPLE; }

static int fs_split_node(fs_comm *c, MPI_Comm *out) {
	return MPI_Comm_split_type(c->comm, MPI_COMM_TYPE_SHARED, c->rank, MPI_INFO_NULL, out);
}

static int fs_split(fs_comm *c, int color, int key, MPI_Comm *out) {
	return MPI_Comm_split(c->comm, color < 0 ? MPI_UNDEFINED : color, key, out);
}

// fs_check looks whether h is a communicator that can be duplicated, and returns
// errors of a bad handle, which MPI reports through the predefined ones.
static int fs_check(MPI_Comm h, int *inter) {
	MPI_Errhandler world, self;
	int ec;
	// An unused Fortran handle is a null pointer where handles are pointers.
	static const MPI_Comm unused;
	if (sizeof h == sizeof(void *) && memcmp(&h, &unused, sizeof h) == 0) return MPI_ERR_COMM;
	if (h == MPI_COMM_NULL) return MPI_ERR_COMM;
	MPI_Comm_get_errhandler(MPI_COMM_WORLD, &world);
	MPI_Comm_get_errhandler(MPI_COMM_SELF, &self);
	MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN);
	MPI_Comm_set_errhandler(MPI_COMM_SELF, MPI_ERRORS_RETURN);
	ec = MPI_Comm_test_inter(h, inter);
	MPI_Comm_set_errhandler(MPI_COMM_WORLD, world);
	MPI_Comm_set_errhandler(MPI_COMM_SELF, self);
	MPI_Errhandler_free(&world);
	MPI_Errhandler_free(&self);
	return ec;
}

static int fs_compare(fs_comm *a, MPI_Comm b, int *r) {
	int ec = MPI_Comm_compare(a->comm, b, r);
	if (ec == MPI_SUCCESS)
		*r = *r == MPI_IDENT ? 0 : *r == MPI_CONGRUENT ? 1 : *r == MPI_SIMILAR ? 2 : 3;
	return ec;
}

static const char *fs_class(int ec) {
	int class = MPI_ERR_UNKNOWN;
	MPI_Error_class(ec, &class);
	switch (class) {
#define FS_CLASS(name) case name: return #name;
	FS_CLASS(MPI_ERR_ACCESS)
	FS_CLASS(MPI_ERR_AMODE)
	FS_CLASS(MPI_ERR_ARG)
	FS_CLASS(MPI_ERR_BAD_FILE)
	FS_CLASS(MPI_ERR_BUFFER)
	FS_CLASS(MPI_ERR_COMM)
	FS_CLASS(MPI_ERR_COUNT)
	FS_CLASS(MPI_ERR_FILE)
	FS_CLASS(MPI_ERR_FILE_EXISTS)
	FS_CLASS(MPI_ERR_FILE_IN_USE)
	FS_CLASS(MPI_ERR_INFO)
	FS_CLASS(MPI_ERR_INFO_KEY)
	FS_CLASS(MPI_ERR_INFO_VALUE)
	FS_CLASS(MPI_ERR_INTERN)
	FS_CLASS(MPI_ERR_IO)
	FS_CLASS(MPI_ERR_NOT_SAME)
	FS_CLASS(MPI_ERR_NO_MEM)
	FS_CLASS(MPI_ERR_NO_SPACE)
	FS_CLASS(MPI_ERR_NO_SUCH_FILE)
	FS_CLASS(MPI_ERR_QUOTA)
	FS_CLASS(MPI_ERR_RANK)
	FS_CLASS(MPI_ERR_READ_ONLY)
	FS_CLASS(MPI_ERR_ROOT)
	FS_CLASS(MPI_ERR_TAG)
	FS_CLASS(MPI_ERR_TRUNCATE)
	FS_CLASS(MPI_ERR_TYPE)
	FS_CLASS(MPI_ERR_UNSUPPORTED_OPERATION)
#undef FS_CLASS
	}
	return "MPI_ERR_OTHER";
}

// Signals belong to Go: it notes them for os/signal, and makes panics of those
// that faults raise. MPICH puts a handler of its own on SIGUSR1, without
// SA_ONSTACK, which makes Go end the process when the signal comes. So the
// handlers of before MPI was initialised are put back, and those that are not
// Go's, as in a host program, run on the stack that Go has for them.

static struct sigaction fs_handlers[NSIG];

static int fs_is_handler(const struct sigaction *a) {
	return a->sa_handler != SIG_DFL && a->sa_handler != SIG_IGN;
}

static void fs_save_handlers(void) {
	for (int s = 1; s < NSIG; s++)
		if (sigaction(s, NULL, &fs_handlers[s]) != 0) memset(&fs_handlers[s], 0, sizeof fs_handlers[s]);
}

static void fs_restore_handlers(void) {
	for (int s = 1; s < NSIG; s++) {
		struct sigaction *before = &fs_handlers[s], now;
		if (sigaction(s, NULL, &now) != 0 || !fs_is_handler(&now) || now.sa_flags & SA_ONSTACK) continue;
		if (fs_is_handler(before) && before->sa_flags & SA_ONSTACK) {
			sigaction(s, before, NULL);
			continue;
		}
		now.sa_flags |= SA_ONSTACK;
		sigaction(s, &now, NULL);
	}
}

// empi keeps its world in the C variable World. Weak, as cgo links this file
// alone once to learn its types.
extern MPI_Comm World __attribute__((weak));
static int fs_has_empi_world(void) { return &World != NULL; }
static MPI_Comm fs_swap_empi_world(MPI_Comm h) {
	MPI_Comm old = World;
	World = h;
	return old;
}
*/
import "C"

import (
	"encoding/binary"
	"errors"
	"fmt"
	"math"
	"os"
	"runtime"
	"slices"
	"sync"
	"sync/atomic"
	"syscall"
	"time"
	"unsafe"

	empi "github.com/emer/empi/mpi"

	"github.com/fieldstone-io/fieldstone/internal/waiting"
)

// Enabled says whether the program was built with MPI.
const Enabled = true

// chunk is the most bytes that a communicator's buffer holds of one direction;
// longer data goes in pieces. A variable for tests.
var chunk = 4 << 20

// library is the state of the MPI library in this process.
var library struct {
	mu       sync.Mutex
	ready    bool
	ours     bool // we initialised it, so we finalize it
	multiple bool // any number of threads may call it at once
	dead     atomic.Bool

	calls sync.Mutex // one call at a time where not multiple
	empi  sync.Mutex // guards empi's World
}

// Comm is a communicator of this package's own. One goroutine at a time may use
// it.
type Comm struct {
	c    *C.fs_comm // nil after Free
	empi *empi.Comm
	dead error
	hang time.Duration // how long a blocking call on a file may take; 0 is no limit
}

// Implementation names the library and its version, such as "openmpi 4.1.4".
func Implementation() string {
	var text [C.MPI_MAX_LIBRARY_VERSION_STRING]C.char
	var n C.int
	if C.MPI_Get_library_version(&text[0], &n) != C.MPI_SUCCESS {
		return "unknown"
	}
	return implementation(C.GoStringN(&text[0], n))
}

// enter serialises calls where the library needs it; leave ends that. A host
// program that initialised MPI with less than MPI_THREAD_SERIALIZED makes all
// calls from one thread, and so must the goroutine that calls this package.
func enter() {
	if !library.multiple {
		library.calls.Lock()
	}
}

func leave() {
	if !library.multiple {
		library.calls.Unlock()
	}
}

func start() error {
	library.mu.Lock()
	defer library.mu.Unlock()
	var finalized C.int
	if C.MPI_Finalized(&finalized); finalized != 0 {
		return fmt.Errorf("%w: it was finalized", ErrUnavailable)
	}
	if library.ready {
		return nil
	}
	if !empi.IsOn() {
		C.fs_save_handlers()
		// The main thread in MPI's sense is the one that initialises it.
		runtime.LockOSThread()
		defer runtime.UnlockOSThread()
		// The only error is a lower thread level, which is asked for below.
		_ = empi.InitThreadSafe()
		library.ours = true
	}
	C.fs_restore_handlers()
	var level C.int
	if ec := C.MPI_Query_thread(&level); ec != C.MPI_SUCCESS {
		return failure("MPI_Query_thread", ec)
	}
	library.multiple = level >= C.fs_thread_multiple()
	if ec := C.fs_make_message(); ec != C.MPI_SUCCESS {
		return failure("MPI_Op_create", ec)
	}
	withoutSharedPointers()
	library.ready = true
	return nil
}

// Finalize ends the library if World initialised it. Collective. After a wait
// that ran out it returns ErrDead, for it would never return.
func Finalize() error {
	library.mu.Lock()
	defer library.mu.Unlock()
	if !library.ours {
		return nil
	}
	if library.dead.Load() {
		return ErrDead
	}
	library.ours = false
	enter()
	defer leave()
	empi.Finalize()
	return nil
}

// World duplicates MPI_COMM_WORLD and initialises MPI if need be. Collective.
func World(limit time.Duration) (*Comm, error) {
	if err := start(); err != nil {
		return nil, err
	}
	return duplicate(C.fs_world(), limit)
}

// FromFortran duplicates the communicator with a Fortran handle; the one given
// carries no message of this package. Collective over it.
func FromFortran(handle int, limit time.Duration) (*Comm, error) {
	if !empi.IsOn() {
		return nil, fmt.Errorf("%w: it is not initialised", ErrUnavailable)
	}
	if err := start(); err != nil {
		return nil, err
	}
	if handle < math.MinInt32 || handle > math.MaxInt32 {
		return nil, newError("MPI_Comm_f2c", "MPI_ERR_COMM", "not a handle")
	}
	return duplicate(C.fs_from_fortran(C.int(handle)), limit)
}

// duplicate waits for the other ranks first, since MPI_Comm_dup cannot be left.
func duplicate(h C.MPI_Comm, limit time.Duration) (*Comm, error) {
	enter()
	defer leave()
	var inter C.int
	if ec := C.fs_check(h, &inter); ec != C.MPI_SUCCESS {
		return nil, failure("check the communicator", ec)
	}
	if inter != 0 {
		return nil, errors.New("it is an inter-communicator")
	}
	parent, err := wrap(h, false)
	if err != nil {
		return nil, err
	}
	release, err := parent.meet(limit)
	if err != nil {
		return nil, err // the request may still be pending, so parent.c stays
	}
	defer release()
	C.fs_comm_delete(parent.c)
	var dup C.MPI_Comm
	if ec := C.MPI_Comm_dup(h, &dup); ec != C.MPI_SUCCESS {
		return nil, failure("MPI_Comm_dup", ec)
	}
	return wrap(dup, true)
}

// wrap makes a Comm around a handle. If it is to own the handle, errors are
// returned from now on and Free frees it.
func wrap(h C.MPI_Comm, own bool) (*Comm, error) {
	var ec, owned C.int
	if own {
		owned = 1
	}
	c := C.fs_comm_new(h, owned, &ec)
	if c == nil {
		return nil, syscall.ENOMEM
	}
	if ec != C.MPI_SUCCESS {
		return nil, failure("set up a communicator", ec)
	}
	if !own {
		return &Comm{c: c}, nil
	}
	view, err := empiView(h)
	if err != nil {
		return nil, err
	}
	if view.Rank() != int(c.rank) || view.Size() != int(c.size) {
		return nil, errors.New("empi sees another communicator")
	}
	return &Comm{c: c, empi: view}, nil
}

// empiView makes empi's communicator of a handle. Its type is private to empi,
// but its NewComm takes the communicator from the C variable World.
func empiView(h C.MPI_Comm) (*empi.Comm, error) {
	if C.fs_has_empi_world() == 0 {
		return nil, errors.New("empi's C variable World is not there")
	}
	library.empi.Lock()
	defer library.empi.Unlock()
	old := C.fs_swap_empi_world(h)
	defer C.fs_swap_empi_world(old)
	view, err := empi.NewComm(nil)
	if err != nil {
		return nil, fmt.Errorf("empi's view of a communicator: %w", err)
	}
	return view, nil
}

// failure is the error of an MPI call that did not succeed.
func failure(op string, ec C.int) error {
	var text [C.MPI_MAX_ERROR_STRING]C.char
	var n C.int
	if C.MPI_Error_string(ec, &text[0], &n) != C.MPI_SUCCESS {
		n = 0
	}
	return newError(op, C.GoString(C.fs_class(ec)), C.GoStringN(&text[0], n))
}

// Rank is this process's number in the communicator.
func (c *Comm) Rank() int { return int(c.c.rank) }

// Size is the number of its ranks.
func (c *Comm) Size() int { return int(c.c.size) }

// Empi is empi's view of the same communicator, for its typed calls. They
// cannot be watched, and a slice of length zero panics in them.
func (c *Comm) Empi() *empi.Comm { return c.empi }

// Fortran is the communicator's Fortran handle.
func (c *Comm) Fortran() int {
	enter()
	defer leave()
	return int(C.fs_to_fortran(c.c))
}

// A Relation says how two communicators compare.
type Relation int

// The relations of MPI_Comm_compare.
const (
	Identical Relation = iota // the same communicator
	Congruent                 // another one with the same ranks in the same order
	Similar                   // the same ranks in another order
	Unequal
)

// CompareFortran compares the communicator with that of a Fortran handle.
func (c *Comm) CompareFortran(handle int) (Relation, error) {
	enter()
	defer leave()
	var r C.int
	if ec := C.fs_compare(c.c, C.fs_from_fortran(C.int(handle)), &r); ec != C.MPI_SUCCESS {
		return Unequal, failure("MPI_Comm_compare", ec)
	}
	return Relation(r), nil
}

// SetHangLimit makes a call on a file of this communicator that takes longer than d end
// the job. 0 is no limit.
func (c *Comm) SetHangLimit(d time.Duration) { c.hang = d }

// Abort ends the job with the exit status code. It does not return.
func (c *Comm) Abort(code int) { abort(code) }

func abort(code int) {
	// The library may be busy in a call that hangs. A rank that ends ends the job too.
	time.AfterFunc(abortLimit, func() { os.Exit(code) })
	C.MPI_Abort(C.fs_world(), C.int(code))
	os.Exit(code)
}

// Free releases the communicator, but for a dead one, which is still in use by
// what is pending in it. Collective.
func (c *Comm) Free() error {
	if c.c == nil || c.dead != nil {
		return nil
	}
	enter()
	defer leave()
	if ec := C.MPI_Comm_free(&c.c.comm); ec != C.MPI_SUCCESS {
		return failure("MPI_Comm_free", ec)
	}
	C.fs_comm_delete(c.c)
	c.c, c.empi = nil, nil
	return nil
}

// Split makes a communicator of the ranks with the same color, in the order of
// key and rank; nil for a negative color. Collective.
func (c *Comm) Split(color, key int, limit time.Duration) (*Comm, error) {
	if color > math.MaxInt32 || key != int(int32(key)) {
		return nil, fmt.Errorf("color %d, key %d: beyond 32 bits", color, key)
	}
	return c.split("MPI_Comm_split", limit, func(h *C.MPI_Comm) C.int {
		return C.fs_split(c.c, C.int(max(color, -1)), C.int(key), h)
	})
}

// SplitNode makes a communicator of the ranks on this node. Collective.
func (c *Comm) SplitNode(limit time.Duration) (*Comm, error) {
	return c.split("MPI_Comm_split_type", limit, func(h *C.MPI_Comm) C.int {
		return C.fs_split_node(c.c, h)
	})
}

// split waits for the other ranks first, since the call itself cannot be left.
func (c *Comm) split(op string, limit time.Duration, call func(h *C.MPI_Comm) C.int) (*Comm, error) {
	enter()
	defer leave()
	release, err := c.meet(limit)
	if err != nil {
		return nil, err
	}
	defer release()
	var h C.MPI_Comm
	if ec := call(&h); ec != C.MPI_SUCCESS {
		return nil, failure(op, ec)
	}
	if h == C.fs_null() {
		return nil, nil
	}
	return wrap(h, true)
}

// abortLimit is how long the library may take to end the job.
const abortLimit = 10 * time.Second

// The rhythm of a wait: some tests in a row, then sleeps that are a share of what
// was waited already. So they lengthen a wait by little, and a long one costs little.
const (
	testsInRow = 64
	sleepShare = 16
	maxSleep   = time.Millisecond
)

// do starts a call and waits for its end. Enter is in force, and other calls get
// their turn during the sleeps.
func (c *Comm) do(op string, limit time.Duration, begin func() C.int) error {
	if c.dead != nil {
		return c.dead
	}
	if ec := begin(); ec != C.MPI_SUCCESS {
		return c.die(failure(op, ec))
	}
	var done C.int
	tries := C.int(testsInRow)
	wait := waiting.NewMeter(limit)
	for {
		if ec := C.fs_test(c.c, tries, &done); ec != C.MPI_SUCCESS {
			return c.die(failure(op, ec))
		}
		if done != 0 {
			return nil
		}
		waited := wait.Waited(time.Now())
		if waited > limit {
			return c.die(fmt.Errorf("rank %d of %d waited %v in %s", c.c.rank, c.c.size, limit, op))
		}
		sleep := max(time.Microsecond, min(waited/sleepShare, maxSleep))
		leave()
		C.usleep(C.useconds_t(sleep.Microseconds())) // in C: the runtime's timers are coarser
		enter()
		tries = 1
	}
}

// die ends the communicator's use: after an error, too, requests may be pending.
func (c *Comm) die(why error) error {
	c.dead = fmt.Errorf("%w: %w", ErrDead, why)
	library.dead.Store(true)
	return c.dead
}

// room is the buffer's first n bytes. What it held before is lost.
func (c *Comm) room(n int) ([]byte, error) {
	if c.dead != nil {
		return nil, c.dead
	}
	if C.fs_reserve(c.c, C.size_t(n)) == 0 {
		return nil, fmt.Errorf("buffer of %d bytes: %w", n, syscall.ENOMEM)
	}
	return unsafe.Slice((*byte)(unsafe.Pointer(c.c.buf)), n), nil
}

// AllReduceInt64 reduces v in place. Collective.
func (c *Comm) AllReduceInt64(op Op, v []int64, limit time.Duration) error {
	return reduce(c, op, v, 0, limit)
}

// AllReduceFloat64 reduces v in place. Collective.
func (c *Comm) AllReduceFloat64(op Op, v []float64, limit time.Duration) error {
	return reduce(c, op, v, 1, limit)
}

func reduce[T int64 | float64](c *Comm, op Op, v []T, isFloat C.int, limit time.Duration) error {
	enter()
	defer leave()
	bytes := unsafe.Slice((*byte)(unsafe.Pointer(unsafe.SliceData(v))), 8*len(v))
	for first := true; first || len(bytes) > 0; first = false {
		n := min(len(bytes), chunk/8*8)
		buf, err := c.room(max(2*n, 16))
		if err != nil {
			return err
		}
		copy(buf, bytes[:n])
		err = c.do("MPI_Iallreduce", limit, func() C.int {
			return C.fs_start_reduce(c.c, C.int(n/8), isFloat, C.int(op))
		})
		if err != nil {
			return err
		}
		copy(bytes[:n], buf[n:])
		bytes = bytes[n:]
	}
	return nil
}

// Exchange reduces words, at most MessageWords of them, in place; those of floats are their
// bits. The message has one length, whatever is in it, and the result is true where all
// ranks gave the same digest. Otherwise words are undefined on return: the ranks are in
// different calls. Collective.
func (c *Comm) Exchange(digest uint64, op Op, floats bool, words []int64, limit time.Duration) (same bool, err error) {
	enter()
	defer leave()
	const length = 8 * C.fs_length
	buf, err := c.room(2 * length)
	if err != nil {
		return false, err
	}
	message := unsafe.Slice((*int64)(unsafe.Pointer(unsafe.SliceData(buf))), 2*C.fs_length)
	clear(message)
	message[0], message[1], message[2] = int64(digest), ^int64(digest), int64(op)
	if floats {
		message[2] += 16
	}
	copy(message[C.fs_head:C.fs_length], words)
	err = c.do("MPI_Iallreduce", limit, func() C.int { return C.fs_start_message(c.c) })
	if err != nil {
		return false, err
	}
	message = message[C.fs_length:]
	copy(words, message[C.fs_head:])
	return message[0] == ^message[1], nil
}

// Stop ends the communicator's use, with the error that later calls return. Nothing is
// pending on it.
func (c *Comm) Stop(why error) {
	if c.dead == nil {
		c.dead = why
	}
}

// Broadcast gives root's data to all ranks. Collective.
func (c *Comm) Broadcast(root int, data []byte, limit time.Duration) ([]byte, error) {
	enter()
	defer leave()
	isRoot := root == c.Rank()
	// The first message has a length that all ranks know, and short data with it.
	var first [headLen]byte
	if isRoot {
		binary.NativeEndian.PutUint64(first[:], uint64(len(data)))
		copy(first[8:], data)
	}
	head, err := c.broadcast(root, first[:], headLen, limit)
	if err != nil {
		return nil, err
	}
	length := int(binary.NativeEndian.Uint64(head))
	at := min(length, headLen-8)
	if !isRoot {
		data = make([]byte, length)
		copy(data, head[8:])
	}
	for ; at < length; at += chunk {
		n := min(length-at, chunk)
		piece, err := c.broadcast(root, data[at:at+n], n, limit)
		if err != nil {
			return nil, err
		}
		if !isRoot {
			copy(data[at:], piece)
		}
	}
	return data, nil
}

// headLen is the size of the first message of a broadcast.
const headLen = 1 << 10

// broadcast moves n bytes; the result is valid until the next call.
func (c *Comm) broadcast(root int, data []byte, n int, limit time.Duration) ([]byte, error) {
	buf, err := c.room(n)
	if err != nil {
		return nil, err
	}
	copy(buf, data)
	return buf, c.do("MPI_Ibcast", limit, func() C.int {
		return C.fs_start_broadcast(c.c, C.int(n), C.int(root))
	})
}

// AllGather gives all ranks' data to all ranks. Collective.
func (c *Comm) AllGather(data []byte, limit time.Duration) ([][]byte, error) {
	enter()
	defer leave()
	size := c.Size()
	lengths := slices.Repeat([]int{8}, size)
	heads := make([][]byte, size)
	for i := range heads {
		heads[i] = make([]byte, 8)
	}
	head := binary.NativeEndian.AppendUint64(nil, uint64(len(data)))
	if err := c.gather(head, lengths, heads, limit); err != nil {
		return nil, err
	}
	all, longest := make([][]byte, size), 0
	for i := range all {
		all[i] = make([]byte, binary.NativeEndian.Uint64(heads[i]))
		longest = max(longest, len(all[i]))
	}
	// The pieces of all ranks together fit the buffer.
	step := max(chunk/size, 1)
	pieces := make([][]byte, size)
	for at := 0; at < longest; at += step {
		for i := range all {
			pieces[i] = all[i][min(at, len(all[i])):min(at+step, len(all[i]))]
			lengths[i] = len(pieces[i])
		}
		mine := data[min(at, len(data)):min(at+step, len(data))]
		if err := c.gather(mine, lengths, pieces, limit); err != nil {
			return nil, err
		}
	}
	return all, nil
}

// GatherShort is AllGather of data that are known to have at most longest bytes on all
// ranks: one message, where they are short enough for the buffer.
func (c *Comm) GatherShort(data []byte, longest int, limit time.Duration) ([][]byte, error) {
	size := c.Size()
	if 8+longest > chunk/size {
		return c.AllGather(data, limit)
	}
	enter()
	defer leave()
	mine := make([]byte, 8+longest)
	binary.NativeEndian.PutUint64(mine, uint64(len(data)))
	copy(mine[8:], data)
	all := make([][]byte, size)
	for i := range all {
		all[i] = make([]byte, len(mine))
	}
	if err := c.gather(mine, slices.Repeat([]int{len(mine)}, size), all, limit); err != nil {
		return nil, err
	}
	for i, piece := range all {
		all[i] = piece[8:][:binary.NativeEndian.Uint64(piece)]
	}
	return all, nil
}

// gather fills all, whose lengths are given, from each rank's mine.
func (c *Comm) gather(mine []byte, lengths []int, all [][]byte, limit time.Duration) error {
	total := 0
	counts := unsafe.Slice(c.c.counts, len(all))
	displs := unsafe.Slice(c.c.displs, len(all))
	for i, n := range lengths {
		counts[i], displs[i] = C.int(n), C.int(total)
		total += n
	}
	buf, err := c.room(max(len(mine)+total, 1))
	if err != nil {
		return err
	}
	copy(buf, mine)
	err = c.do("MPI_Iallgatherv", limit, func() C.int {
		return C.fs_start_gather(c.c, C.int(len(mine)), C.size_t(len(mine)))
	})
	if err != nil {
		return err
	}
	buf = buf[len(mine):]
	for i, n := range lengths {
		copy(all[i], buf[:n])
		buf = buf[n:]
	}
	return nil
}

// SendRecv sends to one rank while it receives from one; -1 is none.
func (c *Comm) SendRecv(to int, send []byte, from int, recv []byte, tag int, limit time.Duration) error {
	enter()
	defer leave()
	if to < 0 {
		send = nil
	}
	if from < 0 {
		recv = nil
	}
	// Pieces pair up one by one, as both sides cut alike. An empty message is
	// one piece.
	for to >= 0 || from >= 0 {
		out, in := min(len(send), chunk), min(len(recv), chunk)
		buf, err := c.room(max(out+in, 1))
		if err != nil {
			return err
		}
		copy(buf, send[:out])
		err = c.do("MPI_Isend and MPI_Irecv", limit, func() C.int {
			return C.fs_start_send_recv(c.c, C.int(to), C.int(out), C.int(from), C.int(in), C.size_t(out), C.int(tag))
		})
		if err != nil {
			return err
		}
		if from >= 0 {
			if got := int(C.fs_received(c.c)); got != in {
				return c.die(fmt.Errorf("message of %d bytes for a buffer of %d", got, in))
			}
			copy(recv, buf[out:])
		}
		send, recv = send[out:], recv[in:]
		if len(send) == 0 {
			to = -1
		}
		if len(recv) == 0 {
			from = -1
		}
	}
	return nil
}
