// Handles. A handle of a program may be anything, so it is looked up, not followed.
#include "core.h"

enum { BUCKETS = 1024 };
static struct fg_object *buckets[BUCKETS];
static int64_t counts[FG_KINDS];

static struct fg_object **bucket(const void *handle)
{
	return &buckets[((uintptr_t)handle >> 4) * 2654435761u % BUCKETS];
}

void fg_object_add(struct fg_object *o, enum fg_kind kind, struct fg_context *context)
{
	struct fg_object **head = bucket(o);
	o->kind = kind;
	o->context = context;
	o->next = *head;
	*head = o;
	counts[kind]++;
}

void fg_object_remove(struct fg_object *o)
{
	struct fg_object **at = bucket(o);
	while (*at != o)
		at = &(*at)->next;
	*at = o->next;
	counts[o->kind]--;
}

void *fg_object_find(const void *handle, enum fg_kind kind)
{
	struct fg_object *o = *bucket(handle);
	while (o && (o != handle || o->kind != kind))
		o = o->next;
	return o;
}

void *fg_object_any(enum fg_kind kind, const struct fg_context *context)
{
	for (int i = 0; i < BUCKETS; i++)
		for (struct fg_object *o = buckets[i]; o; o = o->next)
			if (o->kind == kind && (!context || o->context == context))
				return o;
	return NULL;
}

void fg_object_each(enum fg_kind kind, void (*fn)(struct fg_object *, void *), void *arg)
{
	for (int i = 0; i < BUCKETS; i++)
		for (struct fg_object *o = buckets[i]; o; o = o->next)
			if (o->kind == kind)
				fn(o, arg);
}

int64_t fg_object_count(enum fg_kind kind)
{
	return counts[kind];
}
