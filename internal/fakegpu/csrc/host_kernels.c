#define _GNU_SOURCE
#include "host_kernels.h"

#include <dlfcn.h>
#include <link.h>
#include <stdio.h>
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

struct search {
	const char *inside, *low, *high;
};

static int look(struct dl_phdr_info *info, size_t size, void *arg)
{
	struct search *s = arg;
	const char *low = NULL, *high = NULL;
	for (int i = 0; i < info->dlpi_phnum; i++) {
		const ElfW(Phdr) *p = &info->dlpi_phdr[i];
		const char *from = (const char *)info->dlpi_addr + p->p_vaddr;
		if (p->p_type != PT_LOAD)
			continue;
		if (!low || from < low)
			low = from;
		if (from + p->p_memsz > high)
			high = from + p->p_memsz;
	}
	(void)size;
	if (s->inside < low || s->inside >= high)
		return 0;
	s->low = low;
	s->high = high;
	return 1;
}

void fg_host_kernel_library(const struct fieldstone_kernel *k, const char **low, const char **high)
{
	struct search s = {.inside = (const char *)k};
	dl_iterate_phdr(look, &s);
	*low = s.low;
	*high = s.high;
}

static const char here;

void fg_host_kernels_beside(void)
{
	char path[4096];
	Dl_info info;
	if (!dladdr(&here, &info) || !info.dli_fname)
		return;
	const char *slash = strrchr(info.dli_fname, '/');
	int n = slash ? (int)(slash - info.dli_fname) : 0;
	snprintf(path, sizeof path, "%.*s/kernels", n, info.dli_fname);
	FILE *list = n ? fopen(path, "r") : NULL;
	while (list && fgets(path, sizeof path, list)) {
		path[strcspn(path, "\n")] = 0;
		fg_host_kernels_load(path);
	}
	if (list)
		fclose(list);
}
