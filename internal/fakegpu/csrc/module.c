// Modules, functions and launches.
#include "code_object.h"
#include "core.h"
#include "host_kernels.h"
#include "ptx.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

// More no device takes.
enum { MAX_ARGUMENTS = 4096 };

// A word at a time: there are many launches.
static uint64_t sum_of(const void *p, size_t bytes)
{
	const char *at = p;
	uint64_t sum = bytes, word = 0;
	for (; bytes >= sizeof word; at += sizeof word, bytes -= sizeof word) {
		memcpy(&word, at, sizeof word);
		sum = (sum ^ word) * 0x9e3779b97f4a7c15u;
		sum ^= sum >> 29;
	}
	word = 0;
	memcpy(&word, at, bytes);
	return (sum ^ word) * 0x9e3779b97f4a7c15u;
}

static void keep_image(struct fg_module *m, const void *image)
{
	m->image = image;
	m->image_bytes = fg_code_object_bytes(image);
	m->image_sum = sum_of(image, m->image_bytes);
}

// Whether the image is there as it was, where it must be. The runtime would read nonsense.
static int check_image(const struct fg_module *m)
{
	if (!m->image || sum_of(m->image, m->image_bytes) == m->image_sum)
		return FG_OK;
	fg_misuse("the image %p of a module that is loaded has changed, or isn't there any more", m->image);
	return FG_INVALID_IMAGE;
}

static struct fg_module *new_module(struct fg_context *c)
{
	struct fg_module *m = calloc(1, sizeof *m);
	m->references = 1;
	fg_object_add(&m->object, FG_MODULE, c);
	return m;
}

int fg_module_load_ptx(struct fg_context *c, const char *text, char *log, size_t size, struct fg_module **out)
{
	char error[200];
	struct fg_ptx *ptx;
	if (!text)
		return FG_INVALID_VALUE;
	if (memcmp(text, "\177ELF", 4) == 0 || memcmp(text, "\x50\xed\x55\xba", 4) == 0)
		return FG_NO_BINARY; // device code, or a bundle of it: there is none for a fake device
	int status = fg_ptx_parse(text, fg_settings.ptx, fg_settings.cc, error, sizeof error, &ptx);
	if (status != FG_OK) {
		fg_note("PTX, %s", error);
		if (log && size)
			snprintf(log, size, "fakegpu: PTX, %s", error);
		return status;
	}
	*out = new_module(c);
	(*out)->ptx = ptx;
	return FG_OK;
}

int fg_module_load_code_object(struct fg_context *c, const void *image, unsigned newest, struct fg_module **out)
{
	struct fg_code_object *code;
	int status = fg_code_object_read(image, fg_settings.arch, newest, &code);
	if (status != FG_OK)
		return status;
	*out = new_module(c);
	(*out)->code = code;
	keep_image(*out, image);
	return FG_OK;
}

static void drop(struct fg_module *m)
{
	if (--m->references > 0)
		return;
	if (m->ptx)
		fg_ptx_free(m->ptx);
	if (m->code)
		fg_code_object_free(m->code);
	free(m);
}

void fg_module_release(struct fg_module *m)
{
	fg_object_remove(&m->object);
	while (m->functions) {
		struct fg_function *f = m->functions;
		m->functions = f->next;
		fg_object_remove(&f->object);
		free(f);
	}
	drop(m);
}

int fg_module_unload(const void *handle)
{
	struct fg_module *m = fg_object_find(handle, FG_MODULE);
	if (!m)
		return FG_INVALID_HANDLE;
	fg_module_release(m);
	return FG_OK;
}

// ---- functions ----

static bool from_ptx(struct fg_function *f, const char *name)
{
	const struct fg_ptx_kernel *k = fg_ptx_find(f->module->ptx, name);
	if (!k)
		return false;
	f->ptx = k;
	f->name = k->name;
	f->max_threads = k->max_threads;
	f->parameters = (unsigned)k->parameters;
	f->bytes = k->bytes;
	for (int i = 0; i < k->parameters; i++) {
		f->offsets[i] = k->parameter[i].offset;
		f->sizes[i] = k->parameter[i].size;
	}
	return true;
}

// The code object and the kernel that was compiled for the host must agree, or tests
// show something else than what runs on a device.
static bool same_parameters(const struct fg_code_kernel *k, const struct fieldstone_kernel *host)
{
	if (host->parameters != k->parameters || host->threads != k->max_threads || k->bytes > MAX_ARGUMENTS)
		return false;
	for (unsigned i = 0; i < k->parameters; i++)
		if (host->sizes[i] != k->size[i])
			return false;
	return true;
}

static bool from_code_object(struct fg_function *f, const char *name)
{
	const struct fg_code_kernel *k = fg_code_object_find(f->module->code, name);
	const struct fieldstone_kernel *host = fg_host_kernel(name, &f->library);
	if (!k)
		return false;
	if (!host || !same_parameters(k, host)) {
		fg_note("%s: %s", name, host ? "the code object isn't that of the host's kernel" : "no kernel for the host was loaded");
		return false;
	}
	f->host = host;
	f->name = k->name;
	f->max_threads = k->max_threads;
	f->parameters = k->parameters;
	f->bytes = k->bytes;
	memcpy(f->offsets, k->offset, sizeof f->offsets);
	memcpy(f->sizes, k->size, sizeof f->sizes);
	return true;
}

int fg_module_function(const void *module, const char *name, struct fg_function **out)
{
	struct fg_module *m = fg_object_find(module, FG_MODULE);
	if (!m)
		return FG_INVALID_HANDLE;
	if (!name)
		return FG_INVALID_VALUE;
	int status = check_image(m);
	if (status != FG_OK)
		return status;
	struct fg_function *f = calloc(1, sizeof *f);
	f->module = m;
	if (!(m->ptx ? from_ptx(f, name) : from_code_object(f, name))) {
		free(f);
		return FG_NOT_FOUND;
	}
	fg_object_add(&f->object, FG_FUNCTION, m->object.context);
	f->next = m->functions;
	m->functions = f;
	*out = f;
	return FG_OK;
}

// ---- launches ----

struct launch {
	struct fg_operation operation;
	struct fg_module *module; // may be unloaded while the kernel is queued
	struct fg_function function;
	struct fg_dim grid, block;
	struct fg_access access;
	char *arguments;
};


// The arguments go to the stack, which a kernel may read.
static void run_host_kernel(void *arg)
{
	const struct launch *l = arg;
	const struct fg_function *f = &l->function;
	const uint32_t grid[3] = {l->grid.x, l->grid.y, l->grid.z}, block[3] = {l->block.x, l->block.y, l->block.z};
	char arguments[MAX_ARGUMENTS];
	void *pointers[FG_MAX_PARAMETERS];
	memcpy(arguments, l->arguments, f->bytes);
	for (unsigned i = 0; i < f->parameters; i++)
		pointers[i] = arguments + f->offsets[i];
	f->library->check_with(fg_access_check);
	f->host->run(f->host, grid, block, pointers);
}

static int run_launch(struct fg_operation *o)
{
	struct launch *l = (struct launch *)o;
	int status;
	if (l->function.ptx)
		status = fg_ptx_run(l->function.ptx, l->grid, l->block, l->arguments, &l->access);
	else
		status = fg_access_run(&l->access, run_host_kernel, l) ? FG_OK : l->access.status;
	if (status != FG_OK)
		fg_note("kernel %s: %s", l->function.name, l->access.why);
	return status;
}

static void free_launch(struct fg_operation *o, bool ran)
{
	struct launch *l = (struct launch *)o;
	free(l->arguments);
	drop(l->module);
	(void)ran;
}

// What a parameter of the size of an address points to is used by the kernel. Compiled
// kernels get the address of the bytes.
static void find_memory(struct launch *l)
{
	for (unsigned i = 0; i < l->function.parameters; i++) {
		char *at = l->arguments + l->function.offsets[i];
		void *p;
		if (l->function.sizes[i] != sizeof p)
			continue;
		memcpy(&p, at, sizeof p);
		struct fg_allocation *a = fg_find(p);
		if (a)
			fg_operation_uses(&l->operation, a->base, a->bytes, true);
		if (l->function.host) {
			p = fg_bytes(p);
			memcpy(at, &p, sizeof p);
		}
	}
}

static void gather(struct launch *l, void **pointers, const void *buffer)
{
	const struct fg_function *f = &l->function;
	l->arguments = calloc(1, f->bytes + 1);
	if (buffer)
		memcpy(l->arguments, buffer, f->bytes);
	else
		for (unsigned i = 0; i < f->parameters; i++)
			memcpy(l->arguments + f->offsets[i], pointers[i], f->sizes[i]);
}

static bool has_arguments(const struct fg_function *f, void **pointers, const void *buffer, size_t bytes)
{
	if (buffer)
		return bytes >= f->bytes;
	if (f->parameters && !pointers)
		return false;
	for (unsigned i = 0; i < f->parameters; i++)
		if (!pointers[i])
			return false;
	return true;
}

static int check_size(const struct fg_function *f, struct fg_dim grid, struct fg_dim block)
{
	if (!grid.x || !grid.y || !grid.z || !block.x || !block.y || !block.z)
		return FG_INVALID_VALUE;
	uint64_t threads = (uint64_t)block.x * block.y * block.z;
	if (grid.x > INT32_MAX || grid.y > 65535 || grid.z > 65535 || block.x > 1024 || block.y > 1024 || block.z > 64 || threads > 1024)
		return FG_INVALID_VALUE;
	return threads > f->max_threads ? FG_OUT_OF_RESOURCES : FG_OK;
}

static int launch_fault(const struct fg_function *f)
{
	char name[100];
	snprintf(name, sizeof name, "@%s", f->name);
	int any = fg_fault("@kernel"), named = fg_fault(name);
	return any != FG_OK ? any : named;
}

int fg_launch(const void *function, struct fg_dim grid, struct fg_dim block, struct fg_stream *s, void **pointers, const void *buffer, size_t bytes)
{
	struct fg_function *f = fg_object_find(function, FG_FUNCTION);
	if (!f || f->object.context != s->object.context)
		return FG_INVALID_HANDLE;
	int status = check_size(f, grid, block);
	if (status == FG_OK)
		status = check_image(f->module);
	if (status != FG_OK)
		return status;
	if (!has_arguments(f, pointers, buffer, bytes))
		return FG_INVALID_VALUE;
	struct launch *l = fg_operation_new(s->object.context, sizeof *l, run_launch);
	l->operation.done = free_launch;
	l->module = f->module;
	l->module->references++;
	l->function = *f;
	l->grid = grid;
	l->block = block;
	l->access.context = s->object.context;
	l->access.steps = fg_settings.steps;
	if (f->host) {
		l->access.own_low = f->library->low;
		l->access.own_high = f->library->high;
	}
	gather(l, pointers, buffer);
	find_memory(l);
	l->operation.fault = launch_fault(f);
	fg_count_launch(f->name);
	fg_push(s, &l->operation);
	return FG_OK;
}
