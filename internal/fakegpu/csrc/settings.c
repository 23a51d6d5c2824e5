// Settings: FAKEGPU_* in the environment, or the same names by fakegpu_set.
#include "core.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

static const struct fg_settings defaults = {
	.mode = FG_LAZY, .delay_us = 200, .seed = 1, .devices = 2, .memory = 256 << 20,
	.cc = 90, .ptx = 82, .steps = 100 * 1000 * 1000, .arch = "gfx942:sramecc+:xnack-",
};

struct fg_settings fg_settings;

static const struct {
	const char *name;
	long *value;
} numbers[] = {
	{"DELAY", &fg_settings.delay_us},
	{"SEED", &fg_settings.seed},
	{"DEVICES", &fg_settings.devices},
	{"MEM", &fg_settings.memory},
	{"STRICT", &fg_settings.strict},
	{"HMM", &fg_settings.hmm},
	{"TRACE", &fg_settings.trace},
	{"CC", &fg_settings.cc},
	{"PTX", &fg_settings.ptx},
	{"STEPS", &fg_settings.steps},
	{"OBJECT", &fg_settings.object},
};

enum { NUMBERS = sizeof numbers / sizeof *numbers };

static bool set_mode(const char *value)
{
	static const char *const modes[] = {"lazy", "delayed", "eager"};
	for (int i = 0; i < 3; i++)
		if (strcmp(value, modes[i]) == 0) {
			fg_settings.mode = i;
			return true;
		}
	return false;
}

static bool set_number(long *number, const char *value)
{
	char *end;
	long n = strtol(value, &end, 0);
	if (end == value || *end || n < 0 || (number == &fg_settings.devices && n > FG_MAX_DEVICES))
		return false;
	*number = n;
	return true;
}

bool fg_settings_set(const char *name, const char *value)
{
	if (strcmp(name, "MODE") == 0)
		return set_mode(value);
	if (strcmp(name, "FAIL") == 0)
		return fg_fail_text(value);
	if (strcmp(name, "ARCH") == 0) {
		snprintf(fg_settings.arch, sizeof fg_settings.arch, "%s", value);
		return true;
	}
	for (int i = 0; i < NUMBERS; i++)
		if (strcmp(name, numbers[i].name) == 0)
			return set_number(numbers[i].value, value);
	return false;
}

static void from_environment(const char *name)
{
	char variable[32];
	snprintf(variable, sizeof variable, "FAKEGPU_%s", name);
	const char *value = getenv(variable);
	if (value && *value && !fg_settings_set(name, value)) {
		fprintf(stderr, "fakegpu: %s=%s makes no sense\n", variable, value);
		abort();
	}
}

void fg_settings_from_environment(void)
{
	fg_settings = defaults;
	for (int i = 0; i < NUMBERS; i++)
		from_environment(numbers[i].name);
	from_environment("MODE");
	from_environment("ARCH");
	from_environment("FAIL");
}
