// Events. One stands for a place in a queue, or for none before it is recorded.
#include "core.h"

#include <stdlib.h>
#include <time.h>

struct record {
	struct fg_operation operation;
	struct fg_event *event;
};

static double milliseconds(void)
{
	struct timespec t;
	clock_gettime(CLOCK_MONOTONIC, &t);
	return (double)t.tv_sec * 1e3 + (double)t.tv_nsec * 1e-6;
}

static struct fg_event *find(const void *handle)
{
	return fg_object_find(handle, FG_EVENT);
}

// Every use of an event but to record it again, or to destroy it, comes by here.
static struct fg_event *use(const void *handle, const char *what)
{
	struct fg_event *e = find(handle);
	if (e && e->object.context->events_need_stream && e->stream && e->stream->closed)
		fg_misuse("%s event %p, which was recorded on a stream that is destroyed", what, handle);
	return e;
}

static void drop(struct fg_event *e)
{
	if (--e->references == 0)
		free(e);
}

int fg_event_new(struct fg_context *c, bool timing, struct fg_event **out)
{
	struct fg_event *e = calloc(1, sizeof *e);
	e->references = 1;
	e->timing = timing;
	fg_object_add(&e->object, FG_EVENT, c);
	*out = e;
	return FG_OK;
}

void fg_event_release(struct fg_event *e)
{
	fg_object_remove(&e->object);
	if (e->stream)
		fg_stream_drop(e->stream);
	drop(e);
}

int fg_event_close(const void *handle)
{
	struct fg_event *e = find(handle);
	if (!e)
		return FG_INVALID_HANDLE;
	fg_event_release(e);
	return FG_OK;
}

// It may have been recorded again meanwhile.
static void recorded(struct fg_operation *o, bool ran)
{
	struct fg_event *e = ((struct record *)o)->event;
	if (ran && e->number == o->number)
		e->time = milliseconds();
	drop(e);
}

int fg_event_record(const void *handle, struct fg_stream *s)
{
	struct fg_event *e = find(handle);
	if (!e || e->object.context != s->object.context)
		return FG_INVALID_HANDLE;
	struct record *r = fg_operation_new(s->object.context, sizeof *r, NULL);
	r->operation.done = recorded;
	r->event = e;
	e->references++;
	fg_push(s, &r->operation);
	fg_stream_hold(s);
	if (e->stream)
		fg_stream_drop(e->stream);
	e->stream = s;
	e->number = r->operation.number;
	return FG_OK;
}

int fg_event_query(const void *handle)
{
	struct fg_event *e = use(handle, "query");
	if (!e)
		return FG_INVALID_HANDLE;
	return e->stream ? fg_passed_or_wanted(e->stream, e->number) : FG_OK;
}

int fg_event_synchronize(const void *handle)
{
	struct fg_event *e = use(handle, "synchronise");
	if (!e)
		return FG_INVALID_HANDLE;
	return e->stream ? fg_wait(e->stream, e->number) : FG_OK;
}

int fg_event_elapsed(const void *from, const void *to, float *ms)
{
	struct fg_event *a = use(from, "take the time of"), *b = use(to, "take the time of");
	if (!a || !b || !a->timing || !b->timing || !a->stream || !b->stream)
		return FG_INVALID_HANDLE;
	if (!fg_passed(a->stream, a->number) || !fg_passed(b->stream, b->number))
		return FG_NOT_READY;
	*ms = (float)(b->time - a->time);
	return FG_OK;
}

int fg_stream_wait_event(struct fg_stream *s, const void *handle)
{
	struct fg_event *e = use(handle, "wait for");
	if (!e)
		return FG_INVALID_HANDLE;
	if (!e->stream)
		return FG_OK;
	struct fg_operation *marker = fg_operation_new(s->object.context, sizeof *marker, NULL);
	fg_operation_after(marker, e->stream, e->number);
	fg_push(s, marker);
	return FG_OK;
}
