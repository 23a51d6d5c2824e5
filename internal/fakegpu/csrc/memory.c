// Device memory. Device addresses lie in a window that is mapped without any access,
// so that whoever uses one on the host faults. The bytes lie in a second window, the
// store, at a fixed distance that only the fake and the kernels it runs know.
#include "core.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#define WINDOW ((size_t)1 << 38)
#define PAGE ((size_t)4096)

enum {
	CANARY = 0xC5,
	NAN_BYTE = 0xFF, // all elements of new memory are NaN
	ALIGNMENT = 256,
};

static char *window, *store;
static size_t next = PAGE; // free part of the window
static struct fg_allocation *allocations;
static size_t used[FG_MAX_DEVICES];

static char *reserve(void)
{
	void *p = mmap(NULL, WINDOW, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
	if (p == MAP_FAILED) {
		fg_note("no address space for device memory");
		abort();
	}
	return p;
}

static void reserve_windows(void)
{
	if (!window) {
		window = reserve();
		store = reserve();
	}
}

static bool in(const char *base, const void *p)
{
	return base && (const char *)p >= base && (const char *)p < base + WINDOW;
}

bool fg_is_device(const void *p)
{
	return in(window, p);
}

void *fg_bytes(const void *p)
{
	return in(window, p) ? (char *)p + (store - window) : (void *)p;
}

void *fg_address(const void *p)
{
	return in(store, p) ? (char *)p - (store - window) : (void *)p;
}

struct fg_allocation *fg_find(const void *p)
{
	const char *at = p;
	for (struct fg_allocation *a = allocations; a; a = a->next)
		if (at >= a->base && at < a->base + a->bytes)
			return a;
	return NULL;
}

size_t fg_used(int device)
{
	return used[device];
}

void fg_memory_reset(void)
{
	next = PAGE;
}

// The pages that hold an allocation, in the store.
static char *pages_of(const struct fg_allocation *a)
{
	size_t offset = (size_t)(a->base - window) / PAGE * PAGE;
	return store + offset;
}

// Allocations end at a page without access, to within the alignment, and no address is
// given out twice: use after free faults.
int fg_allocate(struct fg_context *c, size_t bytes, void **out)
{
	if (bytes == 0)
		return FG_INVALID_VALUE;
	reserve_windows();
	if (bytes > (size_t)fg_settings.memory || used[c->device] > (size_t)fg_settings.memory - bytes)
		return FG_OUT_OF_MEMORY;
	size_t rounded = (bytes + ALIGNMENT - 1) / ALIGNMENT * ALIGNMENT;
	size_t pages = (rounded + PAGE - 1) / PAGE;
	if (next + (pages + 1) * PAGE > WINDOW || mprotect(store + next, pages * PAGE, PROT_READ | PROT_WRITE) != 0)
		return FG_OUT_OF_MEMORY;

	struct fg_allocation *a = calloc(1, sizeof *a);
	a->base = window + next + pages * PAGE - rounded;
	a->bytes = bytes;
	a->pages = pages;
	a->next = allocations;
	allocations = a;
	fg_object_add(&a->object, FG_ALLOCATION, c);
	used[c->device] += bytes;
	memset(store + next, CANARY, pages * PAGE);
	memset(fg_bytes(a->base), NAN_BYTE, bytes);
	next += (pages + 1) * PAGE;
	*out = a->base;
	return FG_OK;
}

static bool canaries(const char *from, const char *to)
{
	while (from < to)
		if ((unsigned char)*from++ != CANARY)
			return false;
	return true;
}

// Gives the memory back, and says if something wrote beside it.
void fg_release(struct fg_allocation *a)
{
	char *pages = pages_of(a), *bytes = fg_bytes(a->base);
	if (!canaries(pages, bytes))
		fg_misuse("write before device memory %p of %zu bytes", (void *)a->base, a->bytes);
	if (!canaries(bytes + a->bytes, pages + a->pages * PAGE))
		fg_misuse("write past device memory %p of %zu bytes", (void *)a->base, a->bytes);
	madvise(pages, a->pages * PAGE, MADV_DONTNEED);
	mprotect(pages, a->pages * PAGE, PROT_NONE);
	used[a->object.context->device] -= a->bytes;

	struct fg_allocation **at = &allocations;
	while (*at != a)
		at = &(*at)->next;
	*at = a->next;
	fg_object_remove(&a->object);
	free(a);
}

// Like real drivers, waits for what is queued; a program that counts on it is reported.
int fg_free(void *p)
{
	struct fg_allocation *a = fg_find(p);
	if (!a || a->base != p)
		return FG_INVALID_VALUE;
	if (fg_busy(p, a->bytes, false))
		fg_misuse("device memory %p of %zu bytes is freed while queued work uses it", p, a->bytes);
	int status = fg_context_synchronize(a->object.context);
	if (status != FG_OK)
		return status;
	a = fg_find(p); // somebody else may have freed it meanwhile
	if (!a || a->base != p)
		return FG_INVALID_VALUE;
	fg_release(a);
	return FG_OK;
}
