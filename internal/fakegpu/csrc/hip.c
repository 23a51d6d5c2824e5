// The front of HIP's runtime API: errors, devices. Compiled once for each version.
#include "hip_front.h"

#include <stdio.h>
#include <string.h>

const int fg_hip_version = HIP_VERSION;

static const int numbers[] = {[5] = 50221153, [6] = 60443482, [7] = 70051831};

#define ERROR(name) {hipError##name, "hipError" #name}

static const struct error {
	hipError_t code;
	const char *name;
} statuses[] = {
	[FG_OK] = {hipSuccess, "hipSuccess"},
	[FG_INVALID_VALUE] = ERROR(InvalidValue),
	[FG_OUT_OF_MEMORY] = ERROR(OutOfMemory),
	[FG_NOT_INITIALIZED] = ERROR(NotInitialized),
	[FG_NO_DEVICE] = ERROR(NoDevice),
	[FG_INVALID_DEVICE] = ERROR(InvalidDevice),
	[FG_INVALID_IMAGE] = ERROR(InvalidImage),
	[FG_INVALID_CONTEXT] = ERROR(InvalidContext),
	[FG_NO_BINARY] = ERROR(NoBinaryForGpu),
	[FG_INVALID_PTX] = ERROR(InvalidImage),
	[FG_UNSUPPORTED_PTX] = ERROR(InvalidImage),
	[FG_FILE_NOT_FOUND] = ERROR(FileNotFound),
	[FG_INVALID_HANDLE] = ERROR(InvalidHandle),
	[FG_NOT_FOUND] = ERROR(NotFound),
	[FG_NOT_READY] = ERROR(NotReady),
	[FG_ILLEGAL_ADDRESS] = ERROR(IllegalAddress),
	// The runtime says so of a block that is larger than the kernel's bounds.
	[FG_OUT_OF_RESOURCES] = ERROR(LaunchFailure),
	[FG_PEER_ON] = ERROR(PeerAccessAlreadyEnabled),
	[FG_PEER_OFF] = ERROR(PeerAccessNotEnabled),
	[FG_CONTEXT_DESTROYED] = ERROR(ContextIsDestroyed),
	[FG_MISALIGNED] = ERROR(IllegalAddress),
	[FG_LAUNCH_FAILED] = ERROR(LaunchFailure),
	[FG_LAUNCH_TIMEOUT] = ERROR(LaunchTimeOut),
	[FG_REGISTERED] = ERROR(HostMemoryAlreadyRegistered),
	[FG_NOT_REGISTERED] = ERROR(HostMemoryNotRegistered),
	[FG_NOT_SUPPORTED] = ERROR(NotSupported),
	[FG_UNKNOWN] = ERROR(Unknown),
};

// Those that only a test can ask for.
static const struct error others[] = {
	ERROR(Deinitialized), ERROR(InvalidConfiguration), ERROR(InvalidMemcpyDirection), ERROR(ECCNotCorrectable), ERROR(InvalidSource),
	ERROR(SharedObjectInitFailed), ERROR(OperatingSystem), ERROR(IllegalState), ERROR(LaunchOutOfResources),
	ERROR(Assert), ERROR(RuntimeMemory), ERROR(RuntimeOther),
};

static hipError_t code_of(int status)
{
	return status >= FG_RAW ? (hipError_t)(status - FG_RAW) : statuses[status].code;
}

const char *hipGetErrorName(hipError_t error)
{
	for (size_t i = 0; i < sizeof statuses / sizeof *statuses; i++)
		if (statuses[i].code == error)
			return statuses[i].name;
	for (size_t i = 0; i < sizeof others / sizeof *others; i++)
		if (others[i].code == error)
			return others[i].name;
	return "hipErrorUnknown";
}

const char *hipGetErrorString(hipError_t error)
{
	return hipGetErrorName(error);
}

// ---- calls ----

// What a thread has of its own.
static __thread struct {
	int64_t epoch;
	int device;
	hipError_t last, last_error;
} mine __attribute__((tls_model("initial-exec")));

static struct fg_context *contexts[FG_MAX_DEVICES];

int fg_hip_enter(const char *api)
{
	fg_start();
	fg_lock();
	fg_count_call(api);
	if (mine.epoch != fg_epoch()) {
		memset(&mine, 0, sizeof mine);
		mine.epoch = fg_epoch();
	}
	if (fg_settings.devices == 0)
		return FG_NO_DEVICE;
	return fg_fault(api);
}

int fg_hip_device(void)
{
	return mine.device;
}

static struct fg_context *new_context(int device)
{
	struct fg_context *c = fg_context_new(device);
	if (c)
		c->events_need_stream = true;
	return c;
}

struct fg_context *fg_hip_context(int device)
{
	if (!contexts[device] || !fg_object_find(contexts[device], FG_CONTEXT))
		contexts[device] = new_context(device);
	return contexts[device];
}

int fg_hip_enter_device(const char *api, struct fg_context **out)
{
	int status = fg_hip_enter(api);
	if (status == FG_NO_DEVICE)
		return status;
	struct fg_context *c = *out = fg_hip_context(mine.device);
	if (!c)
		return FG_OUT_OF_MEMORY;
	if (fg_is_sticky(status))
		fg_context_fail(c, status);
	return status == FG_OK ? c->error : status;
}

hipError_t fg_hip_leave(const char *api, int status)
{
	hipError_t code = code_of(status);
	mine.last = code;
	if (code != hipSuccess && code != hipErrorNotReady)
		mine.last_error = code;
	if (fg_settings.trace)
		fg_note("%s: %d", api, (int)code);
	fg_unlock();
	return code;
}

struct fg_stream *fg_hip_stream(struct fg_context *current, hipStream_t handle)
{
	if ((uintptr_t)handle <= 2)
		return fg_stream_find(current, handle);
	return fg_object_find(handle, FG_STREAM);
}

// ---- the library ----

hipError_t hipInit(unsigned flags)
{
	int status = fg_hip_enter(__func__);
	if (status == FG_OK && flags)
		status = FG_INVALID_VALUE;
	return fg_hip_leave(__func__, status);
}

hipError_t hipDriverGetVersion(int *version)
{
	return hipRuntimeGetVersion(version);
}

hipError_t hipRuntimeGetVersion(int *version)
{
	int status = version ? fg_hip_enter(__func__) : (fg_hip_enter(__func__), FG_INVALID_VALUE);
	if (status == FG_OK)
		*version = numbers[fg_hip_version];
	return fg_hip_leave(__func__, status);
}

// Up to version 6, a call that works takes away the error of an earlier one.
static hipError_t last(bool take, bool of_last_call)
{
	hipError_t code = of_last_call ? mine.last : mine.last_error;
	if (take)
		mine.last = mine.last_error = hipSuccess;
	return code;
}

hipError_t hipGetLastError(void)
{
	return last(true, fg_hip_version < 7);
}

hipError_t hipPeekAtLastError(void)
{
	return last(false, fg_hip_version < 7);
}

#if HIP_VERSION >= 7
hipError_t hipExtGetLastError(void)
{
	return last(true, true);
}
#endif

// ---- devices ----

static int check_device(int status, int device)
{
	if (status == FG_OK && (device < 0 || device >= fg_settings.devices))
		return FG_INVALID_DEVICE;
	return status;
}

hipError_t hipGetDeviceCount(int *count)
{
	int status = fg_hip_enter(__func__);
	if (count)
		*count = status == FG_OK ? (int)fg_settings.devices : 0;
	return fg_hip_leave(__func__, status);
}

hipError_t hipGetDevice(int *device)
{
	int status = fg_hip_enter(__func__);
	if (status == FG_OK)
		*device = mine.device;
	return fg_hip_leave(__func__, status);
}

hipError_t hipSetDevice(int device)
{
	int status = check_device(fg_hip_enter(__func__), device);
	if (status == FG_OK)
		mine.device = device;
	return fg_hip_leave(__func__, status);
}

hipError_t hipDeviceGet(hipDevice_t *device, int ordinal)
{
	int status = check_device(fg_hip_enter(__func__), ordinal);
	if (status == FG_OK)
		*device = ordinal;
	return fg_hip_leave(__func__, status);
}

hipError_t hipDeviceGetName(char *name, int size, hipDevice_t device)
{
	int status = check_device(fg_hip_enter(__func__), device);
	if (status == FG_OK)
		snprintf(name, (size_t)size, "Fake GPU %d", device);
	return fg_hip_leave(__func__, status);
}

hipError_t hipDeviceGetPCIBusId(char *id, int size, int device)
{
	int status = check_device(fg_hip_enter(__func__), device);
	if (status == FG_OK)
		snprintf(id, (size_t)size, "0000:%02x:00.0", device + 1);
	return fg_hip_leave(__func__, status);
}

hipError_t hipDeviceTotalMem(size_t *bytes, hipDevice_t device)
{
	int status = check_device(fg_hip_enter(__func__), device);
	if (status == FG_OK)
		*bytes = (size_t)fg_settings.memory;
	return fg_hip_leave(__func__, status);
}

static int attribute(hipDeviceAttribute_t a, int device)
{
	switch (a) {
	case hipDeviceAttributeMaxThreadsPerBlock:
	case hipDeviceAttributeMaxBlockDimX:
	case hipDeviceAttributeMaxBlockDimY:
	case hipDeviceAttributeMaxBlockDimZ: return 1024;
	case hipDeviceAttributeMaxGridDimX:
	case hipDeviceAttributeMaxPitch: return INT32_MAX;
	case hipDeviceAttributeMaxGridDimY:
	case hipDeviceAttributeMaxGridDimZ: return 65536;
	case hipDeviceAttributeWarpSize: return 64;
	case hipDeviceAttributeComputeCapabilityMajor: return 9;
	case hipDeviceAttributeComputeCapabilityMinor: return 4;
	case hipDeviceAttributePciBusId: return device + 1;
	case hipDeviceAttributeAsyncEngineCount:
	case hipDeviceAttributeCanMapHostMemory:
	case hipDeviceAttributeConcurrentKernels:
	case hipDeviceAttributeMultiprocessorCount:
	case hipDeviceAttributeUnifiedAddressing:
	case hipDeviceAttributeHostRegisterSupported: return 1;
	}
	return 0;
}

hipError_t hipDeviceGetAttribute(int *value, hipDeviceAttribute_t a, int device)
{
	int status = check_device(fg_hip_enter(__func__), device);
	if (status == FG_OK)
		*value = attribute(a, device);
	return fg_hip_leave(__func__, status);
}

// The two layouts have these fields.
#define FILL(p, device) do { \
	memset((p), 0, sizeof *(p)); \
	snprintf((p)->name, sizeof (p)->name, "Fake GPU %d", (device)); \
	snprintf((p)->gcnArchName, sizeof (p)->gcnArchName, "%s", fg_settings.arch); \
	(p)->totalGlobalMem = (size_t)fg_settings.memory; \
	(p)->sharedMemPerBlock = 64 * 1024; \
	(p)->warpSize = 64; \
	(p)->maxThreadsPerBlock = 1024; \
	for (int i = 0; i < 3; i++) { \
		(p)->maxThreadsDim[i] = 1024; \
		(p)->maxGridSize[i] = i == 0 ? INT32_MAX : 65536; \
	} \
} while (0)

hipError_t hipGetDeviceProperties(hipDeviceProp_tR0000 *properties, int device)
{
	int status = check_device(fg_hip_enter(__func__), device);
	if (status == FG_OK)
		FILL(properties, device);
	return fg_hip_leave(__func__, status);
}

#if HIP_VERSION >= 6
hipError_t hipGetDevicePropertiesR0600(hipDeviceProp_tR0600 *properties, int device)
{
	int status = check_device(fg_hip_enter(__func__), device);
	if (status == FG_OK)
		FILL(properties, device);
	return fg_hip_leave(__func__, status);
}
#endif

hipError_t hipDeviceSynchronize(void)
{
	struct fg_context *c;
	int status = fg_hip_enter_device(__func__, &c);
	if (status == FG_OK)
		status = fg_context_synchronize(c);
	return fg_hip_leave(__func__, status);
}

hipError_t hipDeviceReset(void)
{
	int status = fg_hip_enter(__func__);
	struct fg_context *c = contexts[mine.device];
	if (status == FG_OK && fg_object_find(c, FG_CONTEXT))
		fg_context_destroy(c);
	return fg_hip_leave(__func__, status);
}

hipError_t hipDeviceCanAccessPeer(int *can, int device, int peer)
{
	int status = check_device(check_device(fg_hip_enter(__func__), device), peer);
	if (status == FG_OK)
		*can = device != peer;
	return fg_hip_leave(__func__, status);
}

static hipError_t set_peer(const char *api, int peer, bool enable)
{
	struct fg_context *c;
	int status = check_device(fg_hip_enter_device(api, &c), peer);
	struct fg_context *other = status == FG_OK ? fg_hip_context(peer) : NULL;
	if (status == FG_OK)
		status = other ? fg_context_peer(c, other, enable) : FG_OUT_OF_MEMORY;
	return fg_hip_leave(api, status);
}

hipError_t hipDeviceEnablePeerAccess(int peer, unsigned flags)
{
	(void)flags;
	return set_peer(__func__, peer, true);
}

hipError_t hipDeviceDisablePeerAccess(int peer)
{
	return set_peer(__func__, peer, false);
}
