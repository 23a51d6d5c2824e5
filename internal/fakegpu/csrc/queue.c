// Streams. Each is a thread with a queue.
//
// Operations have numbers that count up from 1 in each stream, so that a place in a
// queue is a stream and a number. In lazy mode a thread runs an operation only once
// somebody waits for it: what a program reads without having waited is then what was
// there before, every time.
#include "core.h"

#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

void *fg_operation_new(struct fg_context *c, size_t size, int (*run)(struct fg_operation *))
{
	struct fg_operation *o = calloc(1, size);
	o->context = c;
	o->run = run;
	return o;
}

void fg_operation_uses(struct fg_operation *o, const void *p, size_t bytes, bool write)
{
	o->ranges = realloc(o->ranges, (o->ranges_count + 1) * sizeof *o->ranges);
	o->ranges[o->ranges_count++] = (struct fg_range){(char *)p, (char *)p + bytes, write};
}

void fg_operation_after(struct fg_operation *o, struct fg_stream *s, uint64_t number)
{
	if (fg_passed(s, number))
		return;
	o->waits = realloc(o->waits, (o->waits_count + 1) * sizeof *o->waits);
	o->waits[o->waits_count++] = (struct fg_wait){s, number};
	fg_stream_hold(s);
}

static void operation_free(struct fg_operation *o, bool ran)
{
	if (o->done)
		o->done(o, ran);
	for (int i = 0; i < o->waits_count; i++)
		fg_stream_drop(o->waits[i].stream);
	free(o->waits);
	free(o->ranges);
	free(o);
}

void fg_stream_hold(struct fg_stream *s)
{
	s->references++;
}

void fg_stream_drop(struct fg_stream *s)
{
	if (--s->references == 0)
		free(s);
}

bool fg_passed(struct fg_stream *s, uint64_t number)
{
	return s->done >= number;
}

static void want(struct fg_stream *s, uint64_t number)
{
	if (number > s->wanted) {
		s->wanted = number;
		fg_changed();
	}
}

// Whether what the operation waits for has run. If not, it is wanted now.
static bool ready(struct fg_operation *o)
{
	bool all = true;
	for (int i = 0; i < o->waits_count; i++) {
		struct fg_wait *w = &o->waits[i];
		if (!fg_passed(w->stream, w->number)) {
			want(w->stream, w->number);
			all = false;
		}
	}
	return all;
}

static bool due(struct fg_stream *s, struct fg_operation *o)
{
	if (o->context->error)
		return true;
	if (fg_settings.mode == FG_LAZY && !s->closed && s->wanted < o->number)
		return false;
	return ready(o);
}

static void delay(unsigned *random)
{
	if (fg_settings.mode != FG_DELAYED || fg_settings.delay_us == 0)
		return;
	unsigned us = rand_r(random) % (unsigned)(fg_settings.delay_us + 1);
	fg_unlock();
	usleep(us);
	fg_lock();
}

// After an asynchronous error nothing of the context runs any more.
static bool run(struct fg_operation *o)
{
	struct fg_context *c = o->context;
	if (c->error)
		return false;
	int status = o->fault;
	if (status == FG_OK && o->run) {
		fg_unlock();
		status = o->run(o);
		fg_lock();
	}
	if (status != FG_OK)
		fg_context_fail(c, status);
	return status == FG_OK;
}

static void step(struct fg_stream *s, struct fg_operation *o, unsigned *random)
{
	delay(random);
	bool ran = run(o);
	s->head = o->next;
	if (!s->head)
		s->tail = &s->head;
	s->done = o->number;
	operation_free(o, ran);
	fg_changed();
}

static void leave(struct fg_stream *s)
{
	struct fg_stream **at = &s->object.context->streams;
	while (*at != s)
		at = &(*at)->next;
	*at = s->next;
	fg_stream_drop(s);
	fg_changed();
}

static void *work(void *arg)
{
	struct fg_stream *s = arg;
	fg_lock();
	unsigned random = (unsigned)fg_settings.seed * 2654435761u + s->salt;
	while (s->head || !s->closed) {
		if (s->head && due(s, s->head))
			step(s, s->head, &random);
		else
			fg_wait_for_change();
	}
	leave(s);
	fg_unlock();
	return NULL;
}

// The threads take no signals, which are for the threads of the program, but for those
// that they cause.
static int start(struct fg_stream *s)
{
	static const int own[] = {SIGSEGV, SIGBUS, SIGFPE, SIGILL, SIGABRT, SIGTRAP};
	sigset_t others, before;
	pthread_t thread;
	sigfillset(&others);
	for (size_t i = 0; i < sizeof own / sizeof *own; i++)
		sigdelset(&others, own[i]);
	pthread_sigmask(SIG_SETMASK, &others, &before);
	int failed = pthread_create(&thread, NULL, work, s);
	pthread_sigmask(SIG_SETMASK, &before, NULL);
	if (failed)
		return FG_OUT_OF_MEMORY;
	pthread_detach(thread);
	return FG_OK;
}

int fg_stream_new_hidden(struct fg_context *c, bool blocking, struct fg_stream **out)
{
	static unsigned salt;
	struct fg_stream *s = calloc(1, sizeof *s);
	s->object.context = c;
	s->references = 2; // of its owner and of its thread
	s->blocking = blocking;
	s->salt = salt++;
	s->tail = &s->head;
	int status = start(s);
	if (status != FG_OK) {
		free(s);
		return status;
	}
	s->next = c->streams;
	c->streams = s;
	*out = s;
	return FG_OK;
}

int fg_stream_new(struct fg_context *c, bool blocking, struct fg_stream **out)
{
	int status = fg_stream_new_hidden(c, blocking, out);
	if (status == FG_OK)
		fg_object_add(&(*out)->object, FG_STREAM, c);
	return status;
}

void fg_stream_close_hidden(struct fg_stream *s)
{
	s->closed = true;
	fg_stream_drop(s);
	fg_changed();
}

void fg_stream_close(struct fg_stream *s)
{
	fg_object_remove(&s->object);
	fg_stream_close_hidden(s);
}

static struct fg_stream *of_thread(struct fg_context *c)
{
	uint64_t me = (uint64_t)pthread_self();
	for (struct fg_stream *s = c->streams; s; s = s->next)
		if (s->thread == me)
			return s;
	struct fg_stream *s;
	if (fg_stream_new_hidden(c, true, &s) != FG_OK)
		return NULL;
	s->thread = me;
	return s;
}

struct fg_stream *fg_stream_find(struct fg_context *c, const void *handle)
{
	switch ((uintptr_t)handle) {
	case 0:
	case 1:
		return c->legacy;
	case 2:
		return of_thread(c);
	}
	struct fg_stream *s = fg_object_find(handle, FG_STREAM);
	return s && s->object.context == c ? s : NULL;
}

static void after_all(struct fg_operation *o, struct fg_stream *except, bool only_blocking)
{
	for (struct fg_stream *s = o->context->streams; s; s = s->next)
		if (s != except && (s->blocking || !only_blocking))
			fg_operation_after(o, s, s->queued);
}

// The default stream runs after what is queued on all blocking streams, and they
// after it.
void fg_push(struct fg_stream *s, struct fg_operation *o)
{
	struct fg_stream *legacy = o->context->legacy;
	if (s == legacy)
		after_all(o, legacy, true);
	else if (s->blocking)
		fg_operation_after(o, legacy, legacy->queued);
	o->number = ++s->queued;
	*s->tail = o;
	s->tail = &o->next;
	fg_changed();
}

int fg_wait(struct fg_stream *s, uint64_t number)
{
	struct fg_context *c = s->object.context;
	fg_stream_hold(s);
	want(s, number);
	while (!fg_passed(s, number))
		fg_wait_for_change();
	fg_stream_drop(s);
	return c->error;
}

static void push_marker(struct fg_context *c, bool only_blocking)
{
	struct fg_operation *marker = fg_operation_new(c, sizeof *marker, NULL);
	after_all(marker, c->legacy, only_blocking);
	fg_push(c->legacy, marker);
}

int fg_stream_synchronize(struct fg_stream *s)
{
	struct fg_context *c = s->object.context;
	if (s == c->legacy)
		push_marker(c, true);
	return fg_wait(s, s->queued);
}

int fg_context_synchronize(struct fg_context *c)
{
	push_marker(c, false);
	return fg_wait(c->legacy, c->legacy->queued);
}

// Who asks wants an answer some day, so each time one operation more may run.
static bool idle(struct fg_stream *s)
{
	if (fg_passed(s, s->queued))
		return true;
	want(s, s->done + 1);
	return false;
}

int fg_stream_query(struct fg_stream *s)
{
	struct fg_context *c = s->object.context;
	bool all = idle(s);
	if (s == c->legacy)
		for (struct fg_stream *t = c->streams; t; t = t->next)
			if (t->blocking)
				all = idle(t) && all;
	return all ? FG_OK : FG_NOT_READY;
}

int fg_passed_or_wanted(struct fg_stream *s, uint64_t number)
{
	if (fg_passed(s, number))
		return FG_OK;
	want(s, s->done + 1);
	return FG_NOT_READY;
}

static bool touches(const struct fg_operation *o, const char *low, const char *high, bool only_writes)
{
	for (int i = 0; i < o->ranges_count; i++) {
		const struct fg_range *r = &o->ranges[i];
		if (low < r->high && r->low < high && (r->write || !only_writes))
			return true;
	}
	return false;
}

static bool busy_in(struct fg_context *c, const char *low, const char *high, bool only_writes)
{
	for (struct fg_stream *s = c->streams; s; s = s->next)
		for (struct fg_operation *o = s->head; o; o = o->next)
			if (touches(o, low, high, only_writes))
				return true;
	return false;
}

struct range {
	const char *low, *high;
	bool only_writes, busy;
};

static void look(struct fg_object *o, void *arg)
{
	struct range *r = arg;
	if (busy_in((struct fg_context *)o, r->low, r->high, r->only_writes))
		r->busy = true;
}

bool fg_busy(const void *p, size_t bytes, bool only_writes)
{
	struct range r = {p, (const char *)p + bytes, only_writes, false};
	fg_object_each(FG_CONTEXT, look, &r);
	return r.busy;
}
