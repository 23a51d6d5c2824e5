// The core of the fake GPU, which the CUDA driver (cuda.c) and the HIP runtime (hip.c)
// are fronts of.
//
// There is one lock. A front takes it when a call comes in and lets go of it when the
// call returns, so that all functions declared here are called with the lock held,
// unless they say otherwise. Those that wait let go of it meanwhile.
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

// What calls return. Each front has its vendor's number and name for it.
enum fg_status {
	FG_OK,
	FG_INVALID_VALUE,
	FG_OUT_OF_MEMORY,
	FG_NOT_INITIALIZED,
	FG_NO_DEVICE,
	FG_INVALID_DEVICE,
	FG_INVALID_IMAGE,
	FG_INVALID_CONTEXT,
	FG_NO_BINARY,
	FG_INVALID_PTX,
	FG_UNSUPPORTED_PTX,
	FG_FILE_NOT_FOUND,
	FG_INVALID_HANDLE,
	FG_NOT_FOUND,
	FG_NOT_READY,
	FG_ILLEGAL_ADDRESS,
	FG_OUT_OF_RESOURCES,
	FG_PEER_ON,
	FG_PEER_OFF,
	FG_CONTEXT_DESTROYED,
	FG_MISALIGNED,
	FG_LAUNCH_FAILED,
	FG_LAUNCH_TIMEOUT,
	FG_REGISTERED,
	FG_NOT_REGISTERED,
	FG_NOT_SUPPORTED,
	FG_UNKNOWN,
	// FG_RAW plus the vendor's number: what a test asked for.
	FG_RAW = 1 << 20,
};

enum { FG_MAX_DEVICES = 16 };

// ---- settings.c: what the environment and the test ask for ----

enum fg_mode { FG_LAZY, FG_DELAYED, FG_EAGER };

struct fg_settings {
	long mode;
	long delay_us; // longest delay of a queued operation
	long seed;     // of the delays
	long devices;
	long memory;   // bytes of each device
	long strict;   // what is only slow, or wrong by luck, fails
	long hmm;      // the device reaches all memory of the host, and says so
	long trace;    // a line for each call
	long cc;       // compute capability, 90 for 9.0
	long ptx;      // newest version of PTX, 82 for 8.2
	long steps;    // most instructions that a thread may run
	long object;   // newest version of code objects, 0 for what the runtime's version has
	char arch[64]; // of AMD devices
};
extern struct fg_settings fg_settings;

void fg_settings_from_environment(void);

// Sets what FAKEGPU_NAME in the environment sets. False if there is no such setting.
bool fg_settings_set(const char *name, const char *value);

// ---- fault.c ----

// From now on the nth call of api (each one for nth 0) fails with the vendor's code.
// api is the name of a function, with or without the suffix of its version, or
// "@kernel", "@copy", "@fill" for work on the device, or "@" and a kernel's name.
void fg_fail(const char *api, long nth, int code);

// The same from a text: "api:nth=code,...". False if it can't be read.
bool fg_fail_text(const char *text);
void fg_fail_reset(void);

// The code of a call that is to fail, as a status, or FG_OK.
int fg_fault(const char *api);

// Whether two names are of one function, whatever their versions.
bool fg_same_api(const char *a, const char *b);

// Whether a status is one that a context doesn't recover from.
bool fg_is_sticky(int status);

// ---- report.c: what the fake noticed ----

enum fg_counter {
	FG_TO_DEVICE_CALLS,
	FG_TO_DEVICE_BYTES,
	FG_TO_HOST_CALLS,
	FG_TO_HOST_BYTES,
	FG_ON_DEVICE_CALLS,
	FG_ON_DEVICE_BYTES,
	FG_ON_HOST_CALLS,
	FG_ON_HOST_BYTES,
	FG_FILL_CALLS,
	FG_FILL_BYTES,
	FG_LAUNCHES,
	FG_PAGEABLE_COPIES, // asynchronous calls that had to stage or to wait
	FG_MISUSES,
	FG_COUNTERS,
};
extern int64_t fg_counters[FG_COUNTERS];

// Says on standard error what the program did wrong, counts it, and keeps the text.
void fg_misuse(const char *format, ...) __attribute__((format(printf, 1, 2)));

// Says on standard error why the device failed.
void fg_note(const char *format, ...) __attribute__((format(printf, 1, 2)));

// How many misuses there were since the last call, and what the first was.
int64_t fg_misuse_take(char *text, size_t size);
void fg_count_launch(const char *kernel);
int64_t fg_launches(const char *kernel);

// A call of the driver. api is the name of its function, always at the same address.
void fg_count_call(const char *api);

// Those of a function, or all for an empty name.
int64_t fg_calls(const char *api);
void fg_report_reset(void);

// ---- object.c: handles that a program can hold ----

enum fg_kind { FG_CONTEXT, FG_STREAM, FG_EVENT, FG_MODULE, FG_FUNCTION, FG_ALLOCATION, FG_PINNED, FG_KINDS };

struct fg_context;

struct fg_object {
	enum fg_kind kind;
	struct fg_context *context;
	struct fg_object *next; // of its bucket
};

// The object is the first member of what it is part of.
void fg_object_add(struct fg_object *, enum fg_kind, struct fg_context *);
void fg_object_remove(struct fg_object *);

// The object that a handle stands for, or NULL. The handle may be anything.
void *fg_object_find(const void *handle, enum fg_kind);

// Some object of a kind that belongs to a context (any context for NULL), or NULL.
void *fg_object_any(enum fg_kind, const struct fg_context *);
void fg_object_each(enum fg_kind, void (*fn)(struct fg_object *, void *), void *arg);
int64_t fg_object_count(enum fg_kind);

// ---- context.c ----

struct fg_stream;

struct fg_context {
	struct fg_object object;
	int device;
	int error; // sticky
	// Events are of use as long as the stream that they were recorded on: ROCm follows a
	// pointer to the stream's queue, which is gone with the stream. CUDA doesn't.
	bool events_need_stream;
	bool peers[FG_MAX_DEVICES];
	struct fg_stream *legacy;  // the default stream
	struct fg_stream *streams; // all whose thread still runs
	struct fg_context *buried;
};

// The lock, and the condition that anything has changed.
void fg_lock(void);
void fg_unlock(void);
void fg_changed(void);
void fg_wait_for_change(void);

// Reads the environment at the first call of the process. Takes no lock.
void fg_start(void);

struct fg_context *fg_context_new(int device);

// Waits for its queued work, then takes with it all that belongs to it.
void fg_context_destroy(struct fg_context *);

// The first asynchronous error of a context is the one it keeps.
void fg_context_fail(struct fg_context *, int status);
int fg_context_synchronize(struct fg_context *);
int fg_context_peer(struct fg_context *, struct fg_context *peer, bool enable);

// Destroys all contexts, and makes everything as it was at the start of the process.
void fg_reset(void);

// How often fg_reset was called: what a thread keeps of its own is of no use after it.
int64_t fg_epoch(void);

// ---- memory.c: device memory ----

struct fg_allocation {
	struct fg_object object;
	char *base;
	size_t bytes, pages;
	struct fg_allocation *next;
};

int fg_allocate(struct fg_context *, size_t bytes, void **out);
int fg_free(void *);
void fg_release(struct fg_allocation *);
bool fg_is_device(const void *);

// The allocation that an address lies in, or NULL.
struct fg_allocation *fg_find(const void *);
size_t fg_used(int device);
void fg_memory_reset(void);

// Where the bytes of a device address are. Other addresses stay what they are.
void *fg_bytes(const void *);

// The inverse for an address in the store; others stay what they are.
void *fg_address(const void *);

// ---- access.c: what kernels touch ----

// What the kernel of this thread may touch, and what it touched wrongly.
struct fg_access {
	struct fg_context *context;
	long steps; // most instructions of a thread
	char *low[2], *high[2];            // device memory it touched last
	const char *own_low, *own_high; // the library that it is part of
	int status; // what that was
	char why[256];
};

// Where n bytes at a device address are, or NULL. Called without the lock.
void *fg_access(struct fg_access *, uint64_t address, unsigned n);

// The same for compiled kernels, which know the store's addresses. If the kernel may
// not touch it, or what it touches isn't aligned to its size, doesn't return, but makes
// fg_access_run return false.
bool fg_access_run(struct fg_access *, void (*run)(void *), void *arg);
void fg_access_check(const void *, size_t bytes, const char *what);

// ---- host.c: pinned host memory ----

struct fg_pinned {
	struct fg_object object;
	char *base;
	size_t bytes, mapped; // mapped is 0 for memory that is only registered
	struct fg_pinned *next;
};

int fg_pin(struct fg_context *, size_t bytes, void **out);
int fg_unpin(void *);
int fg_register(struct fg_context *, void *, size_t bytes);
int fg_unregister(void *);
void fg_pinned_release(struct fg_pinned *);
struct fg_pinned *fg_pinned_find(const void *, size_t bytes);

// What an address lies in, of device memory or of pinned memory; FG_NOT_FOUND for none.
int fg_range_of(const void *, char **base, size_t *bytes);
int64_t fg_pinned_count(bool registered);
int64_t fg_pinned_bytes(void);

// ---- queue.c: streams and what is queued on them ----

struct fg_range {
	char *low, *high; // addresses as the program knows them
	bool write;
};

struct fg_wait {
	struct fg_stream *stream;
	uint64_t number;
};

// One operation. A run function works without the lock and returns a status, which
// the context keeps if it isn't FG_OK.
struct fg_operation {
	struct fg_operation *next;
	uint64_t number;
	struct fg_context *context;
	int waits_count;
	struct fg_wait *waits;
	int (*run)(struct fg_operation *);
	void (*done)(struct fg_operation *, bool ran); // frees what the operation has; with the lock
	int fault;                                     // to fail with instead
	int ranges_count;
	struct fg_range *ranges; // what it reads and writes
};

struct fg_stream {
	struct fg_object object;
	int references;
	bool blocking; // orders itself with the default stream
	bool closed;
	uint64_t thread; // of a per-thread default stream
	struct fg_operation *head, **tail;
	uint64_t queued, done, wanted; // numbers of operations
	unsigned salt;                 // of its delays
	struct fg_stream *next;        // of the context's streams
};

int fg_stream_new(struct fg_context *, bool blocking, struct fg_stream **out);

// What is queued still runs, and as soon as it can.
void fg_stream_close(struct fg_stream *);

// The same for streams that programs have no handle of.
int fg_stream_new_hidden(struct fg_context *, bool blocking, struct fg_stream **out);
void fg_stream_close_hidden(struct fg_stream *);

// The stream of a handle: 0 and 1 are the default stream, 2 is that of the thread.
// NULL if there is none in the context.
struct fg_stream *fg_stream_find(struct fg_context *, const void *handle);
int fg_stream_synchronize(struct fg_stream *);
int fg_stream_query(struct fg_stream *);
void fg_stream_hold(struct fg_stream *);
void fg_stream_drop(struct fg_stream *);

// Queues an operation that fg_operation_new made, or a larger one that begins with it.
void *fg_operation_new(struct fg_context *, size_t size, int (*run)(struct fg_operation *));
void fg_operation_uses(struct fg_operation *, const void *, size_t bytes, bool write);
void fg_operation_after(struct fg_operation *, struct fg_stream *, uint64_t number);
void fg_push(struct fg_stream *, struct fg_operation *);

// Waits until the stream has passed an operation; the error of the context.
int fg_wait(struct fg_stream *, uint64_t number);
bool fg_passed(struct fg_stream *, uint64_t number);

// The same as a status. Who asks wants an answer some day, so each time one operation
// more may run.
int fg_passed_or_wanted(struct fg_stream *, uint64_t number);

// Whether queued work, or work that runs, uses a range (writes it, if only_writes).
bool fg_busy(const void *, size_t bytes, bool only_writes);

// ---- event.c ----

struct fg_event {
	struct fg_object object;
	int references;
	bool timing;
	struct fg_stream *stream; // where it was recorded, NULL before
	uint64_t number;
	double time;
};

int fg_event_new(struct fg_context *, bool timing, struct fg_event **out);
int fg_event_close(const void *handle);
void fg_event_release(struct fg_event *);
int fg_event_record(const void *handle, struct fg_stream *);
int fg_event_query(const void *handle);
int fg_event_synchronize(const void *handle);
int fg_event_elapsed(const void *from, const void *to, float *ms);
int fg_stream_wait_event(struct fg_stream *, const void *event);

// ---- copy.c ----

// One end of a copy of w bytes by h rows by d slices.
struct fg_side {
	char *base;
	size_t pitch, height; // bytes from row to row, rows from slice to slice
	size_t x, y, z;       // where the box begins
};

struct fg_extent {
	size_t w, h, d;
};

int fg_copy_box(struct fg_stream *, struct fg_side dst, struct fg_side src, struct fg_extent, bool async);
int fg_copy(struct fg_stream *, void *dst, const void *src, size_t bytes, bool async);

// Fills n elements of 1, 2 or 4 bytes.
int fg_fill(struct fg_stream *, void *dst, unsigned value, unsigned width, size_t n);

// ---- module.c ----

struct fg_ptx;
struct fg_ptx_kernel;
struct fg_code_object;
struct fieldstone_kernel;
struct fg_host_library;

enum { FG_MAX_PARAMETERS = 64 };

struct fg_module {
	struct fg_object object;
	struct fg_ptx *ptx;          // CUDA
	struct fg_code_object *code; // HIP
	// HIP keeps a pointer to the image, and reads it as long as the module is loaded.
	const void *image;
	size_t image_bytes;
	uint64_t image_sum;
	int references;
	struct fg_function *functions;
};

struct fg_function {
	struct fg_object object;
	struct fg_module *module;
	const char *name;
	const struct fg_ptx_kernel *ptx;
	const struct fieldstone_kernel *host;
	const struct fg_host_library *library; // of host
	unsigned max_threads;
	unsigned parameters;
	unsigned offsets[FG_MAX_PARAMETERS], sizes[FG_MAX_PARAMETERS];
	unsigned bytes; // of all parameters
	struct fg_function *next; // of the module
};

struct fg_dim {
	unsigned x, y, z;
};

// log, if not NULL, gets what is wrong with the image.
int fg_module_load_ptx(struct fg_context *, const char *text, char *log, size_t size, struct fg_module **out);
int fg_module_load_code_object(struct fg_context *, const void *image, unsigned newest, struct fg_module **out);
int fg_module_unload(const void *handle);
void fg_module_release(struct fg_module *);
int fg_module_function(const void *module, const char *name, struct fg_function **out);

// Arguments are either an array of pointers to the values, or all values in one buffer,
// laid out as the kernel has them.
int fg_launch(const void *function, struct fg_dim grid, struct fg_dim block, struct fg_stream *, void **pointers, const void *buffer, size_t bytes);
