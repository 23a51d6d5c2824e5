// What the files of the HIP front share.
#pragma once

#include "core.h"

#include <hip.h>

// 5, 6 or 7.
extern const int fg_hip_version;

// Every call begins with one of these, which take the lock, and returns what leave,
// which lets go of it, makes of the status. A test may have asked for the call to fail.

// For calls that touch no device.
int fg_hip_enter(const char *api);

// For calls that do something on the current device: after an asynchronous error they
// all return it.
int fg_hip_enter_device(const char *api, struct fg_context **out);

hipError_t fg_hip_leave(const char *api, int status);

int fg_hip_device(void);

// The context of a device, which is made when it is first used; NULL if it can't be.
struct fg_context *fg_hip_context(int device);

// The stream of a handle, whatever its device; NULL if there is none.
struct fg_stream *fg_hip_stream(struct fg_context *current, hipStream_t handle);
