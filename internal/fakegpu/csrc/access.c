// Checks what kernels touch. The interpreter asks before each load and store; kernels
// that a compiler made for the host are instrumented, see kernel_glue.c.
#define _GNU_SOURCE
#include "core.h"

#include <pthread.h>
#include <setjmp.h>
#include <stdio.h>

static bool reaches(const struct fg_access *a, const struct fg_allocation *m)
{
	int owner = m->object.context->device;
	return owner == a->context->device || a->context->peers[owner];
}

static bool recent(const struct fg_access *a, const char *p, unsigned n)
{
	for (int i = 0; i < 2; i++)
		if (p >= a->low[i] && p + n <= a->high[i])
			return true;
	return false;
}

static void remember(struct fg_access *a, const struct fg_allocation *m)
{
	a->low[1] = a->low[0];
	a->high[1] = a->high[0];
	a->low[0] = m->base;
	a->high[0] = m->base + m->bytes;
}

static bool allowed(struct fg_access *a, const char *p, unsigned n)
{
	struct fg_allocation *m = fg_find(p);
	if (m && p + n <= m->base + m->bytes && reaches(a, m)) {
		remember(a, m);
		return true;
	}
	return fg_pinned_find(p, n);
}

void *fg_access(struct fg_access *a, uint64_t address, unsigned n)
{
	const char *p = (const char *)(uintptr_t)address;
	if (recent(a, p, n))
		return fg_bytes(p);
	fg_lock();
	bool ok = allowed(a, p, n);
	fg_unlock();
	return ok ? fg_bytes(p) : NULL;
}

// ---- compiled kernels ----

struct running {
	struct fg_access *access; // NULL when no kernel runs
	const char *stack_low, *stack_high;
	sigjmp_buf stray;
};

static __thread struct running running __attribute__((tls_model("initial-exec")));

static void find_stack(struct running *r)
{
	pthread_attr_t attributes;
	void *low;
	size_t bytes;
	if (r->stack_high || pthread_getattr_np(pthread_self(), &attributes) != 0)
		return;
	pthread_attr_getstack(&attributes, &low, &bytes);
	pthread_attr_destroy(&attributes);
	r->stack_low = low;
	r->stack_high = (char *)low + bytes;
}

bool fg_access_run(struct fg_access *a, void (*run)(void *), void *arg)
{
	find_stack(&running);
	running.access = a;
	bool whole = sigsetjmp(running.stray, 0) == 0;
	if (whole)
		run(arg);
	running.access = NULL;
	return whole;
}

void fg_access_check(const void *at, size_t n, const char *what)
{
	struct running *r = &running;
	const char *p = at;
	if (!r->access || (p >= r->stack_low && p + n <= r->stack_high) || (p >= r->access->own_low && p + n <= r->access->own_high))
		return;
	// A kernel only knows addresses of the store; what it has of the window it
	// can't have been given.
	const char *address = fg_address(p);
	if (n <= 8 && (n & (n - 1)) == 0 && (uintptr_t)address % n != 0) {
		r->access->status = FG_MISALIGNED;
		snprintf(r->access->why, sizeof r->access->why, "%s of %zu bytes: %p isn't aligned", what, n, (void *)address);
		siglongjmp(r->stray, 1);
	}
	if (!fg_is_device(p) && fg_access(r->access, (uint64_t)(uintptr_t)address, (unsigned)n))
		return;
	r->access->status = FG_ILLEGAL_ADDRESS;
	snprintf(r->access->why, sizeof r->access->why, "%s of %zu bytes: there is no memory of the device at %p", what, n, (void *)address);
	siglongjmp(r->stray, 1);
}
