// Pinned host memory.
#include "core.h"

#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#define PAGE ((size_t)4096)

enum { CANARY = 0xC5, NAN_BYTE = 0xFF };

static struct fg_pinned *all;

struct fg_pinned *fg_pinned_find(const void *p, size_t bytes)
{
	const char *at = p;
	for (struct fg_pinned *m = all; m; m = m->next)
		if (at >= m->base && at + bytes <= m->base + m->bytes)
			return m;
	return NULL;
}

int fg_range_of(const void *p, char **base, size_t *bytes)
{
	struct fg_allocation *a = fg_find(p);
	struct fg_pinned *m = a ? NULL : fg_pinned_find(p, 1);
	if (!a && !m)
		return FG_NOT_FOUND;
	*base = a ? a->base : m->base;
	*bytes = a ? a->bytes : m->bytes;
	return FG_OK;
}

static struct fg_pinned *overlapping(const char *p, size_t bytes)
{
	for (struct fg_pinned *m = all; m; m = m->next)
		if (p < m->base + m->bytes && m->base < p + bytes)
			return m;
	return NULL;
}

static struct fg_pinned *at_base(const void *p)
{
	struct fg_pinned *m = all;
	while (m && m->base != p)
		m = m->next;
	return m;
}

static void add(struct fg_context *c, void *p, size_t bytes, size_t mapped)
{
	struct fg_pinned *m = calloc(1, sizeof *m);
	m->base = p;
	m->bytes = bytes;
	m->mapped = mapped;
	m->next = all;
	all = m;
	fg_object_add(&m->object, FG_PINNED, c);
}

// Followed by canaries up to the end of its page, and by a page without access.
int fg_pin(struct fg_context *c, size_t bytes, void **out)
{
	if (bytes == 0)
		return FG_INVALID_VALUE;
	if (bytes > (size_t)1 << 46)
		return FG_OUT_OF_MEMORY;
	size_t pages = (bytes + PAGE - 1) / PAGE * PAGE, mapped = pages + PAGE;
	char *p = mmap(NULL, mapped, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
	if (p == MAP_FAILED)
		return FG_OUT_OF_MEMORY;
	mprotect(p + pages, PAGE, PROT_NONE);
	memset(p, NAN_BYTE, bytes);
	memset(p + bytes, CANARY, pages - bytes);
	add(c, p, bytes, mapped);
	*out = p;
	return FG_OK;
}

int fg_register(struct fg_context *c, void *p, size_t bytes)
{
	if (!p || bytes == 0 || fg_is_device(p))
		return FG_INVALID_VALUE;
	if (overlapping(p, bytes))
		return FG_REGISTERED;
	add(c, p, bytes, 0);
	return FG_OK;
}

static void check_end(const struct fg_pinned *m)
{
	const char *end = m->base + m->mapped - PAGE;
	for (const char *p = m->base + m->bytes; p < end; p++)
		if ((unsigned char)*p != CANARY) {
			fg_misuse("write past pinned memory %p of %zu bytes", (void *)m->base, m->bytes);
			return;
		}
}

void fg_pinned_release(struct fg_pinned *m)
{
	struct fg_pinned **at = &all;
	while (*at != m)
		at = &(*at)->next;
	*at = m->next;
	if (m->mapped) {
		check_end(m);
		munmap(m->base, m->mapped);
	}
	fg_object_remove(&m->object);
	free(m);
}

static int unpin(struct fg_pinned *m)
{
	void *p = m->base;
	if (fg_busy(m->base, m->bytes, false))
		fg_misuse("pinned memory %p of %zu bytes is given back while a queued copy uses it", p, m->bytes);
	int status = fg_context_synchronize(m->object.context);
	if (status != FG_OK)
		return status;
	m = at_base(p); // somebody else may have freed it meanwhile
	if (!m)
		return FG_INVALID_VALUE;
	fg_pinned_release(m);
	return FG_OK;
}

int fg_unpin(void *p)
{
	struct fg_pinned *m = at_base(p);
	return m && m->mapped ? unpin(m) : FG_INVALID_VALUE;
}

int fg_unregister(void *p)
{
	struct fg_pinned *m = at_base(p);
	return m && !m->mapped ? unpin(m) : FG_NOT_REGISTERED;
}

int64_t fg_pinned_count(bool registered)
{
	int64_t n = 0;
	for (struct fg_pinned *m = all; m; m = m->next)
		n += (m->mapped == 0) == registered;
	return n;
}

int64_t fg_pinned_bytes(void)
{
	int64_t n = 0;
	for (struct fg_pinned *m = all; m; m = m->next)
		n += m->mapped ? (int64_t)m->bytes : 0;
	return n;
}
