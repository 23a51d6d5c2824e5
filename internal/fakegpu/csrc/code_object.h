// Code objects: the ELF files that hold kernels of AMD devices. Only what describes the
// kernels is read.
#pragma once

#include "core.h"

struct fg_code_kernel {
	char name[96];
	unsigned parameters; // those that the program gives
	unsigned offset[FG_MAX_PARAMETERS], size[FG_MAX_PARAMETERS];
	unsigned bytes;       // of all parameters
	unsigned max_threads; // of a block
	struct fg_code_kernel *next;
};

struct fg_code_object {
	struct fg_code_kernel *kernels;
};

// Reads an image for a device of the given architecture, such as "gfx942:xnack-". The
// image says itself how long it is. FG_NO_BINARY if it is for another one, or of a later
// version than the newest that the runtime knows.
int fg_code_object_read(const void *image, const char *arch, unsigned newest, struct fg_code_object **out);
void fg_code_object_free(struct fg_code_object *);
const struct fg_code_kernel *fg_code_object_find(const struct fg_code_object *, const char *name);

// How long an image is that could be read.
size_t fg_code_object_bytes(const void *image);
