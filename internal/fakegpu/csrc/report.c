// Counters, and what the program did wrong.
#include "core.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

int64_t fg_counters[FG_COUNTERS];

static char first[256]; // misuse

struct launches {
	char kernel[96];
	int64_t count;
	struct launches *next;
};
static struct launches *launches;

void fg_misuse(const char *format, ...)
{
	char text[256];
	va_list args;
	va_start(args, format);
	vsnprintf(text, sizeof text, format, args);
	va_end(args);
	fprintf(stderr, "fakegpu: misuse: %s\n", text);
	if (fg_counters[FG_MISUSES]++ == 0)
		memcpy(first, text, sizeof first);
}

void fg_note(const char *format, ...)
{
	char text[256];
	va_list args;
	va_start(args, format);
	vsnprintf(text, sizeof text, format, args);
	va_end(args);
	fprintf(stderr, "fakegpu: %s\n", text);
}

int64_t fg_misuse_take(char *text, size_t size)
{
	int64_t n = fg_counters[FG_MISUSES];
	snprintf(text, size, "%s", n ? first : "");
	fg_counters[FG_MISUSES] = 0;
	return n;
}

static struct launches *find(const char *kernel)
{
	struct launches *l = launches;
	while (l && strcmp(l->kernel, kernel) != 0)
		l = l->next;
	return l;
}

void fg_count_launch(const char *kernel)
{
	fg_counters[FG_LAUNCHES]++;
	struct launches *l = find(kernel);
	if (!l) {
		l = calloc(1, sizeof *l);
		snprintf(l->kernel, sizeof l->kernel, "%s", kernel);
		l->next = launches;
		launches = l;
	}
	l->count++;
}

int64_t fg_launches(const char *kernel)
{
	struct launches *l = find(kernel);
	return l ? l->count : 0;
}

// Of each function, by where its name is.
enum { FUNCTIONS = 512 };
static struct {
	const char *api;
	int64_t count;
} calls[FUNCTIONS];

void fg_count_call(const char *api)
{
	size_t at = ((uintptr_t)api >> 2) % FUNCTIONS;
	while (calls[at].api && calls[at].api != api)
		at = (at + 1) % FUNCTIONS;
	calls[at].api = api;
	calls[at].count++;
}

int64_t fg_calls(const char *api)
{
	int64_t n = 0;
	for (size_t i = 0; i < FUNCTIONS; i++)
		if (calls[i].api && (!*api || fg_same_api(calls[i].api, api)))
			n += calls[i].count;
	return n;
}

void fg_report_reset(void)
{
	memset(calls, 0, sizeof calls);
	memset(fg_counters, 0, sizeof fg_counters);
	while (launches) {
		struct launches *l = launches;
		launches = l->next;
		free(l);
	}
}
