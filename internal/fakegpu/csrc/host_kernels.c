#include "host_kernels.h"

#include <dlfcn.h>
#include <stdlib.h>
#include <string.h>

struct library {
	char *path;
	const struct fieldstone_kernel *kernels;
	struct library *next;
};

static struct library *libraries;

bool fg_host_kernels_load(const char *path)
{
	for (struct library *l = libraries; l; l = l->next)
		if (strcmp(l->path, path) == 0)
			return true;
	void *handle = dlopen(path, RTLD_NOW | RTLD_LOCAL);
	if (!handle) {
		fg_note("%s", dlerror());
		return false;
	}
	const struct fieldstone_kernel *(*kernels)(void) = (const struct fieldstone_kernel *(*)(void))dlsym(handle, "fieldstone_kernels");
	void (**check)(const void *, size_t, const char *) = dlsym(handle, "fakegpu_check");
	if (!kernels || !check) {
		fg_note("%s isn't a library of kernels", path);
		dlclose(handle);
		return false;
	}
	*check = fg_access_check;
	struct library *l = calloc(1, sizeof *l);
	l->path = strdup(path);
	l->kernels = kernels();
	l->next = libraries;
	libraries = l;
	return true;
}

// The library that was loaded last goes first.
const struct fieldstone_kernel *fg_host_kernel(const char *name)
{
	for (struct library *l = libraries; l; l = l->next)
		for (const struct fieldstone_kernel *k = l->kernels; k; k = k->next)
			if (strcmp(k->name, name) == 0)
				return k;
	return NULL;
}
