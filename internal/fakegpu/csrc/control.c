// What tests call: settings, faults, counters. All are safe from any thread.
#include "core.h"
#include "host_kernels.h"

#include <string.h>

#define EXPORT __attribute__((visibility("default")))

EXPORT int fakegpu_set(const char *name, const char *value);
EXPORT int fakegpu_kernels(const char *path);
EXPORT void fakegpu_fail(const char *api, long nth, int code);
EXPORT void fakegpu_reset(void);
EXPORT int64_t fakegpu_count(const char *what);
EXPORT int64_t fakegpu_misuse(char *text, size_t size);

// 0 if there is no such setting or value.
int fakegpu_set(const char *name, const char *value)
{
	fg_start();
	fg_lock();
	bool ok = fg_settings_set(name, value);
	fg_changed();
	fg_unlock();
	return ok;
}

int fakegpu_kernels(const char *path)
{
	fg_start();
	fg_lock();
	bool ok = fg_host_kernels_load(path);
	fg_unlock();
	return ok;
}

void fakegpu_fail(const char *api, long nth, int code)
{
	fg_start();
	fg_lock();
	fg_fail(api, nth, code);
	fg_unlock();
}

void fakegpu_reset(void)
{
	fg_start();
	fg_lock();
	fg_reset();
	fg_unlock();
}

static const struct {
	const char *name;
	enum fg_counter counter;
} counters[] = {
	{"to device calls", FG_TO_DEVICE_CALLS}, {"to device bytes", FG_TO_DEVICE_BYTES},
	{"to host calls", FG_TO_HOST_CALLS}, {"to host bytes", FG_TO_HOST_BYTES},
	{"on device calls", FG_ON_DEVICE_CALLS}, {"on device bytes", FG_ON_DEVICE_BYTES},
	{"fill calls", FG_FILL_CALLS}, {"fill bytes", FG_FILL_BYTES},
	{"launches", FG_LAUNCHES}, {"pageable copies", FG_PAGEABLE_COPIES}, {"misuses", FG_MISUSES},
};

static const struct {
	const char *name;
	enum fg_kind kind;
} objects[] = {
	{"contexts", FG_CONTEXT}, {"streams", FG_STREAM}, {"events", FG_EVENT}, {"modules", FG_MODULE}, {"allocations", FG_ALLOCATION},
};

static int64_t used(void)
{
	int64_t n = 0;
	for (int i = 0; i < FG_MAX_DEVICES; i++)
		n += (int64_t)fg_used(i);
	return n;
}

static int64_t count(const char *what)
{
	if (strncmp(what, "launches of ", 12) == 0)
		return fg_launches(what + 12);
	if (strncmp(what, "calls of ", 9) == 0)
		return fg_calls(what + 9);
	for (size_t i = 0; i < sizeof counters / sizeof *counters; i++)
		if (strcmp(what, counters[i].name) == 0)
			return fg_counters[counters[i].counter];
	for (size_t i = 0; i < sizeof objects / sizeof *objects; i++)
		if (strcmp(what, objects[i].name) == 0)
			return fg_object_count(objects[i].kind);
	if (strcmp(what, "pinned") == 0)
		return fg_pinned_count(false);
	if (strcmp(what, "registered") == 0)
		return fg_pinned_count(true);
	if (strcmp(what, "pinned bytes") == 0)
		return fg_pinned_bytes();
	return strcmp(what, "used bytes") == 0 ? used() : -1;
}

// -1 if nothing of that name is counted.
int64_t fakegpu_count(const char *what)
{
	fg_start();
	fg_lock();
	int64_t n = count(what);
	fg_unlock();
	return n;
}

// How many misuses there were since the last call, and what the first was.
int64_t fakegpu_misuse(char *text, size_t size)
{
	fg_lock();
	int64_t n = fg_misuse_take(text, size);
	fg_unlock();
	return n;
}
