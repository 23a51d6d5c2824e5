// Contexts, and the one lock.
#include "core.h"
#include "host_kernels.h"

#include <pthread.h>
#include <stdlib.h>

static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t changed = PTHREAD_COND_INITIALIZER;
static pthread_once_t started = PTHREAD_ONCE_INIT;
static int64_t epoch;

// Contexts stay allocated, so that no new one gets the handle of one that is gone:
// threads still have it as their current one.
static struct fg_context *buried;

void fg_lock(void)
{
	pthread_mutex_lock(&mutex);
}

void fg_unlock(void)
{
	pthread_mutex_unlock(&mutex);
}

void fg_changed(void)
{
	pthread_cond_broadcast(&changed);
}

void fg_wait_for_change(void)
{
	pthread_cond_wait(&changed, &mutex);
}

static void start(void)
{
	fg_settings_from_environment();
	fg_host_kernels_beside();
}

void fg_start(void)
{
	pthread_once(&started, start);
}

int64_t fg_epoch(void)
{
	return epoch;
}

struct fg_context *fg_context_new(int device)
{
	struct fg_context *c = calloc(1, sizeof *c);
	c->device = device;
	if (fg_stream_new_hidden(c, true, &c->legacy) != FG_OK) {
		free(c);
		return NULL;
	}
	fg_object_add(&c->object, FG_CONTEXT, c);
	if (fg_settings.trace)
		fg_note("a context is made");
	return c;
}

void fg_context_fail(struct fg_context *c, int status)
{
	if (c->error == FG_OK)
		c->error = status;
	fg_changed();
}

int fg_context_peer(struct fg_context *c, struct fg_context *peer, bool enable)
{
	if (!fg_object_find(peer, FG_CONTEXT) || peer->device == c->device)
		return FG_INVALID_VALUE;
	if (c->peers[peer->device] == enable)
		return enable ? FG_PEER_ON : FG_PEER_OFF;
	c->peers[peer->device] = enable;
	return FG_OK;
}

static void close_streams(struct fg_context *c)
{
	struct fg_stream *s;
	while ((s = fg_object_any(FG_STREAM, c)))
		fg_stream_close(s);
	for (s = c->streams; s; s = s->next)
		if (s->thread)
			fg_stream_close_hidden(s);
	fg_stream_close_hidden(c->legacy);
	while (c->streams)
		fg_wait_for_change();
}

static void release_all(struct fg_context *c)
{
	void *o;
	while ((o = fg_object_any(FG_EVENT, c)))
		fg_event_release(o);
	while ((o = fg_object_any(FG_MODULE, c)))
		fg_module_release(o);
	while ((o = fg_object_any(FG_ALLOCATION, c)))
		fg_release(o);
	while ((o = fg_object_any(FG_PINNED, c)))
		fg_pinned_release(o);
}

// Work in the queues runs to its end, unless the context has an error, with which
// nothing runs any more.
void fg_context_destroy(struct fg_context *c)
{
	fg_object_remove(&c->object); // nobody gets at it any more
	close_streams(c);
	release_all(c);
	c->buried = buried;
	buried = c;
	fg_changed();
}

void fg_reset(void)
{
	struct fg_context *c;
	while ((c = fg_object_any(FG_CONTEXT, NULL))) {
		fg_context_fail(c, FG_CONTEXT_DESTROYED);
		fg_context_destroy(c);
	}
	epoch++;
	fg_memory_reset();
	fg_report_reset();
	fg_fail_reset();
	fg_settings_from_environment();
}
