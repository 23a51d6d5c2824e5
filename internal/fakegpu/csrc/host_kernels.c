#define _GNU_SOURCE
#include "host_kernels.h"

#include <dlfcn.h>
#include <link.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static struct fg_host_library *libraries;

static int find_bounds(struct dl_phdr_info *info, size_t size, void *arg)
{
	struct fg_host_library *l = arg;
	const char *inside = (const char *)l->kernels, *low = NULL, *high = NULL;
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
	if (inside < low || inside >= high)
		return 0;
	l->low = low;
	l->high = high;
	return 1;
}

static struct fg_host_library *open_library(const char *path)
{
	void *handle = dlopen(path, RTLD_NOW | RTLD_LOCAL);
	if (!handle) {
		fg_note("%s", dlerror());
		return NULL;
	}
	const struct fieldstone_kernel *(*kernels)(void) = (const struct fieldstone_kernel *(*)(void))dlsym(handle, "fieldstone_kernels");
	void (*check_with)(fg_check) = (void (*)(fg_check))dlsym(handle, "fakegpu_check_with");
	if (!kernels || !check_with) {
		fg_note("%s isn't a library of kernels", path);
		dlclose(handle);
		return NULL;
	}
	struct fg_host_library *l = calloc(1, sizeof *l);
	l->path = strdup(path);
	l->kernels = kernels();
	l->check_with = check_with;
	dl_iterate_phdr(find_bounds, l);
	return l;
}

bool fg_host_kernels_load(const char *path)
{
	for (struct fg_host_library *l = libraries; l; l = l->next)
		if (strcmp(l->path, path) == 0)
			return true;
	struct fg_host_library *l = open_library(path);
	if (!l)
		return false;
	l->next = libraries;
	libraries = l;
	return true;
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

// The library that was loaded last goes first.
const struct fieldstone_kernel *fg_host_kernel(const char *name, const struct fg_host_library **library)
{
	for (struct fg_host_library *l = libraries; l; l = l->next)
		for (const struct fieldstone_kernel *k = l->kernels; k; k = k->next)
			if (strcmp(k->name, name) == 0) {
				*library = l;
				return k;
			}
	return NULL;
}
