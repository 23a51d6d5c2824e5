// Copies and fills.
//
// As with the real drivers, pinned host memory belongs to the device until the copy
// has run. Pageable memory is staged: when the call that copies from it returns, it may
// be changed at once, and a call that copies to it returns when all is there.
#include "core.h"

#include <stdlib.h>
#include <string.h>

enum { NAN_BYTE = 0xFF };

struct copy {
	struct fg_operation operation;
	struct fg_side dst, src; // addresses of the bytes
	struct fg_extent extent;
	char *staged;  // rows of a pageable source, contiguous
	char *before;  // what a pinned source held when the copy was queued
	bool poisoned; // a pinned destination was filled when the copy was queued
	bool strict;
};

static char *row(const struct fg_side *s, size_t y, size_t z)
{
	return s->base + s->x + (s->y + y) * s->pitch + (s->z + z) * s->pitch * s->height;
}

static char *packed_row(const struct copy *c, char *packed, size_t y, size_t z)
{
	return packed + (z * c->extent.h + y) * c->extent.w;
}

static char *pack(const struct copy *c)
{
	char *packed = malloc(c->extent.w * c->extent.h * c->extent.d);
	for (size_t z = 0; z < c->extent.d; z++)
		for (size_t y = 0; y < c->extent.h; y++)
			memcpy(packed_row(c, packed, y, z), row(&c->src, y, z), c->extent.w);
	return packed;
}

// Whoever reads the destination too early finds NaN.
static void poison(const struct copy *c)
{
	for (size_t z = 0; z < c->extent.d; z++)
		for (size_t y = 0; y < c->extent.h; y++)
			memset(row(&c->dst, y, z), NAN_BYTE, c->extent.w);
}

static bool filled(const char *p, size_t bytes)
{
	for (size_t i = 0; i < bytes; i++)
		if ((unsigned char)p[i] != NAN_BYTE)
			return false;
	return true;
}

static bool source_changed(const struct copy *c)
{
	for (size_t z = 0; z < c->extent.d; z++)
		for (size_t y = 0; y < c->extent.h; y++)
			if (memcmp(row(&c->src, y, z), packed_row(c, c->before, y, z), c->extent.w) != 0)
				return true;
	return false;
}

static bool destination_changed(const struct copy *c)
{
	for (size_t z = 0; z < c->extent.d; z++)
		for (size_t y = 0; y < c->extent.h; y++)
			if (!filled(row(&c->dst, y, z), c->extent.w))
				return true;
	return false;
}

static void report(const char *what, const struct fg_side *s)
{
	fg_lock();
	fg_misuse("%s %p was written while a copy was queued", what, (void *)row(s, 0, 0));
	fg_unlock();
}

static bool raced(const struct copy *c)
{
	bool source = c->before && source_changed(c), destination = c->poisoned && destination_changed(c);
	if (source)
		report("pinned source", &c->src);
	if (destination)
		report("pinned destination", &c->dst);
	return source || destination;
}

static int run_copy(struct fg_operation *o)
{
	struct copy *c = (struct copy *)o;
	if (raced(c) && c->strict)
		return FG_LAUNCH_FAILED;
	for (size_t z = 0; z < c->extent.d; z++)
		for (size_t y = 0; y < c->extent.h; y++) {
			const char *from = c->staged ? packed_row(c, c->staged, y, z) : row(&c->src, y, z);
			memmove(row(&c->dst, y, z), from, c->extent.w);
		}
	return FG_OK;
}

static void free_copy(struct fg_operation *o, bool ran)
{
	struct copy *c = (struct copy *)o;
	free(c->staged);
	free(c->before);
	(void)ran;
}

// Offset of the first byte, and of the end, of the box; false if that is more than any
// memory has.
static bool span(const struct fg_side *s, struct fg_extent e, size_t *first, size_t *end)
{
	size_t slice, a, b, last;
	if (e.h > 1 && s->pitch < s->x + e.w)
		return false;
	if (e.d > 1 && s->height < s->y + e.h)
		return false;
	if (__builtin_mul_overflow(s->pitch, s->height, &slice) ||
	    __builtin_mul_overflow(s->z, slice, &a) || __builtin_mul_overflow(s->y, s->pitch, &b) ||
	    __builtin_add_overflow(a, b, &a) || __builtin_add_overflow(a, s->x, first))
		return false;
	if (__builtin_mul_overflow(e.d - 1, slice, &a) || __builtin_mul_overflow(e.h - 1, s->pitch, &b) ||
	    __builtin_add_overflow(a, b, &a) || __builtin_add_overflow(a, e.w, &last))
		return false;
	return !__builtin_add_overflow(*first, last, end) && *end < (size_t)1 << 46;
}

// What one side of a copy is.
struct place {
	char *low;
	size_t bytes;
	bool device, pinned;
};

static bool look(const struct fg_side *s, struct fg_extent e, struct place *p)
{
	size_t first, end;
	if (!s->base || !span(s, e, &first, &end))
		return false;
	p->low = s->base + first;
	p->bytes = end - first;
	p->device = fg_is_device(s->base);
	// What the device reaches by itself needs no staging, nor does anybody wait for it.
	p->pinned = !p->device && (fg_settings.hmm || fg_pinned_find(p->low, p->bytes));
	if (!p->device)
		return true;
	struct fg_allocation *a = fg_find(p->low);
	return a && p->low + p->bytes <= a->base + a->bytes;
}

static void count(const struct place *dst, const struct place *src, struct fg_extent e)
{
	static const enum fg_counter calls[2][2] = {
		{FG_ON_HOST_CALLS, FG_TO_HOST_CALLS},
		{FG_TO_DEVICE_CALLS, FG_ON_DEVICE_CALLS},
	};
	enum fg_counter n = calls[dst->device][src->device];
	fg_counters[n]++;
	fg_counters[n + 1] += (int64_t)(e.w * e.h * e.d);
}

// Other queued work that uses the memory may rightly change it before this copy.
static void watch(struct copy *c, const struct place *dst, const struct place *src)
{
	if (src->pinned && !fg_busy(src->low, src->bytes, true))
		c->before = pack(c);
	if (dst->pinned && !fg_busy(dst->low, dst->bytes, false)) {
		poison(c);
		c->poisoned = true;
	}
}

static int refuse_pageable(const struct place *dst, const struct place *src)
{
	if ((dst->device || dst->pinned) && (src->device || src->pinned))
		return FG_OK;
	fg_counters[FG_PAGEABLE_COPIES]++;
	if (!fg_settings.strict)
		return FG_OK;
	fg_misuse("asynchronous copy of pageable host memory %p", (void *)(dst->device ? src->low : dst->low));
	return FG_INVALID_VALUE;
}

static int push_copy(struct fg_stream *s, struct copy *c, const struct place *dst, const struct place *src, bool async)
{
	bool stage = !src->device && !src->pinned && dst->device;
	if (stage)
		c->staged = pack(c);
	else if (async)
		watch(c, dst, src);
	if (!stage)
		fg_operation_uses(&c->operation, src->low, src->bytes, false);
	fg_operation_uses(&c->operation, dst->low, dst->bytes, true);
	c->operation.fault = fg_fault("@copy");
	fg_push(s, &c->operation);
	bool between_devices = dst->device && src->device;
	bool returns_early = stage || between_devices || (async && (dst->device || dst->pinned));
	return returns_early ? FG_OK : fg_wait(s, s->queued);
}

int fg_copy_box(struct fg_stream *s, struct fg_side dst, struct fg_side src, struct fg_extent e, bool async)
{
	struct place to, from;
	if (e.w == 0 || e.h == 0 || e.d == 0)
		return FG_OK;
	if (!look(&dst, e, &to) || !look(&src, e, &from))
		return FG_INVALID_VALUE;
	int status = async ? refuse_pageable(&to, &from) : FG_OK;
	if (status != FG_OK)
		return status;
	struct copy *c = fg_operation_new(s->object.context, sizeof *c, run_copy);
	c->operation.done = free_copy;
	c->dst = dst;
	c->src = src;
	c->dst.base = fg_bytes(dst.base);
	c->src.base = fg_bytes(src.base);
	c->extent = e;
	c->strict = fg_settings.strict;
	count(&to, &from, e);
	return push_copy(s, c, &to, &from, async);
}

int fg_copy(struct fg_stream *s, void *dst, const void *src, size_t bytes, bool async)
{
	struct fg_side to = {.base = dst, .pitch = bytes, .height = 1};
	struct fg_side from = {.base = (char *)src, .pitch = bytes, .height = 1};
	return fg_copy_box(s, to, from, (struct fg_extent){bytes, 1, 1}, async);
}

struct fill {
	struct fg_operation operation;
	char *dst;
	unsigned value, width;
	size_t n;
};

static int run_fill(struct fg_operation *o)
{
	struct fill *f = (struct fill *)o;
	for (size_t i = 0; i < f->n; i++)
		memcpy(f->dst + i * f->width, &f->value, f->width);
	return FG_OK;
}

int fg_fill(struct fg_stream *s, void *dst, unsigned value, unsigned width, size_t n)
{
	struct fg_allocation *a = fg_find(dst);
	size_t bytes;
	if (__builtin_mul_overflow(n, (size_t)width, &bytes) || (uintptr_t)dst % width)
		return FG_INVALID_VALUE;
	if (n == 0)
		return FG_OK;
	if (!a || bytes > (size_t)(a->base + a->bytes - (char *)dst))
		return FG_INVALID_VALUE;
	struct fill *f = fg_operation_new(s->object.context, sizeof *f, run_fill);
	f->dst = fg_bytes(dst);
	f->value = value;
	f->width = width;
	f->n = n;
	f->operation.fault = fg_fault("@fill");
	fg_operation_uses(&f->operation, dst, bytes, true);
	fg_counters[FG_FILL_CALLS]++;
	fg_counters[FG_FILL_BYTES] += (int64_t)bytes;
	fg_push(s, &f->operation);
	return FG_OK;
}
