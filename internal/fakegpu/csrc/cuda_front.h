// What the files of the CUDA front share.
#pragma once

#include "core.h"

#include <cuda.h>

// Every call begins with one of these, which take the lock, and returns what leave,
// which lets go of it, makes of the status. A test may have asked for the call to fail.

// For calls that need no context.
int fg_cuda_enter(const char *api);

// For calls that need a current context, whatever state it is in.
int fg_cuda_enter_context(const char *api, struct fg_context **out);

// For calls that do something on the device: after an asynchronous error they all
// return it.
int fg_cuda_enter_device(const char *api, struct fg_context **out);

CUresult fg_cuda_leave(const char *api, int status);

#define POINTER(address) ((void *)(uintptr_t)(address))
