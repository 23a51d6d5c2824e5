// Faults that a test asks for.
#include "core.h"

#include <stdio.h>
#include <string.h>

struct fault {
	char api[64];
	long nth, seen;
	int code;
};

enum { FAULTS = 64 };
static struct fault faults[FAULTS];
static int count;

// Programs are linked with the newest version of a function, tests name the function.
static size_t without_version(const char *api)
{
	size_t n = strlen(api);
	if (n > 3 && api[n - 3] == '_' && api[n - 2] == 'v' && api[n - 1] >= '2' && api[n - 1] <= '9')
		return n - 3;
	return n;
}

bool fg_same_api(const char *a, const char *b)
{
	size_t n = without_version(a);
	return n == without_version(b) && memcmp(a, b, n) == 0;
}

void fg_fail(const char *api, long nth, int code)
{
	if (count == FAULTS) {
		fg_note("too many faults at once");
		return;
	}
	struct fault *f = &faults[count++];
	snprintf(f->api, sizeof f->api, "%s", api);
	f->nth = nth;
	f->seen = 0;
	f->code = code;
}

bool fg_fail_text(const char *text)
{
	while (*text) {
		char api[64];
		long nth;
		int code, n = 0;
		if (sscanf(text, "%63[^:]:%ld=%d%n", api, &nth, &code, &n) != 3)
			return false;
		fg_fail(api, nth, code);
		text += n;
		if (*text == ',')
			text++;
		else if (*text)
			return false;
	}
	return true;
}

void fg_fail_reset(void)
{
	count = 0;
}

int fg_fault(const char *api)
{
	int status = FG_OK;
	for (int i = 0; i < count; i++) {
		struct fault *f = &faults[i];
		if (!fg_same_api(f->api, api))
			continue;
		f->seen++;
		if (f->nth == 0 || f->seen == f->nth)
			status = FG_RAW + f->code;
	}
	return status;
}

// The numbers are the same for both vendors.
bool fg_is_sticky(int status)
{
	if (status < FG_RAW)
		return status == FG_ILLEGAL_ADDRESS || status == FG_MISALIGNED || status == FG_LAUNCH_FAILED || status == FG_LAUNCH_TIMEOUT;
	int code = status - FG_RAW;
	return code == 214 || code == 700 || code == 702 || code == 710 || (code >= 714 && code <= 719) || (code >= 805 && code <= 810);
}
