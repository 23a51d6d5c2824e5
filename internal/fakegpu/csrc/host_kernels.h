// Kernels that were compiled for the host, which stand in for those of a code object.
#pragma once

#include "core.h"

// What device/internal/kernels/include/host.h makes of a kernel.
struct fieldstone_kernel {
	const char *name;
	uint32_t threads; // of a block
	uint32_t parameters;
	const unsigned short *sizes; // of the parameters, in bytes
	void (*run)(const struct fieldstone_kernel *, const uint32_t grid[3], const uint32_t block[3], void *const *arguments);
	const struct fieldstone_kernel *next;
	void (*function)(void);
};

typedef void (*fg_check)(const void *, size_t bytes, const char *what);

struct fg_host_library {
	char *path;
	const struct fieldstone_kernel *kernels;
	const char *low, *high;       // where it lies
	void (*check_with)(fg_check); // what kernels of this thread call for each load and store
	struct fg_host_library *next;
};

// Loads a library of kernels, unless it is loaded already. False, with a note, if it
// can't be.
bool fg_host_kernels_load(const char *path);

// Loads the libraries that a file named kernels lists, one a line, which lies in the
// folder that this library was loaded from. No such file is fine.
void fg_host_kernels_beside(void);

// The kernel of a name, and its library; NULL if there is none.
const struct fieldstone_kernel *fg_host_kernel(const char *name, const struct fg_host_library **library);
