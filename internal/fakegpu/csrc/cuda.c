// The front of CUDA's driver API: errors, devices, contexts.
#include "cuda_front.h"

#include <stdio.h>
#include <string.h>

#define ERROR(name) {CUDA_ERROR_##name, "CUDA_ERROR_" #name}

static const struct error {
	CUresult code;
	const char *name;
} statuses[] = {
	[FG_OK] = {CUDA_SUCCESS, "CUDA_SUCCESS"},
	[FG_INVALID_VALUE] = ERROR(INVALID_VALUE),
	[FG_OUT_OF_MEMORY] = ERROR(OUT_OF_MEMORY),
	[FG_NOT_INITIALIZED] = ERROR(NOT_INITIALIZED),
	[FG_NO_DEVICE] = ERROR(NO_DEVICE),
	[FG_INVALID_DEVICE] = ERROR(INVALID_DEVICE),
	[FG_INVALID_IMAGE] = ERROR(INVALID_IMAGE),
	[FG_INVALID_CONTEXT] = ERROR(INVALID_CONTEXT),
	[FG_NO_BINARY] = ERROR(NO_BINARY_FOR_GPU),
	[FG_INVALID_PTX] = ERROR(INVALID_PTX),
	[FG_UNSUPPORTED_PTX] = ERROR(UNSUPPORTED_PTX_VERSION),
	[FG_FILE_NOT_FOUND] = ERROR(FILE_NOT_FOUND),
	[FG_INVALID_HANDLE] = ERROR(INVALID_HANDLE),
	[FG_NOT_FOUND] = ERROR(NOT_FOUND),
	[FG_NOT_READY] = ERROR(NOT_READY),
	[FG_ILLEGAL_ADDRESS] = ERROR(ILLEGAL_ADDRESS),
	[FG_OUT_OF_RESOURCES] = ERROR(LAUNCH_OUT_OF_RESOURCES),
	[FG_PEER_ON] = ERROR(PEER_ACCESS_ALREADY_ENABLED),
	[FG_PEER_OFF] = ERROR(PEER_ACCESS_NOT_ENABLED),
	[FG_CONTEXT_DESTROYED] = ERROR(CONTEXT_IS_DESTROYED),
	[FG_MISALIGNED] = ERROR(MISALIGNED_ADDRESS),
	[FG_LAUNCH_FAILED] = ERROR(LAUNCH_FAILED),
	[FG_LAUNCH_TIMEOUT] = ERROR(LAUNCH_TIMEOUT),
	[FG_REGISTERED] = ERROR(HOST_MEMORY_ALREADY_REGISTERED),
	[FG_NOT_REGISTERED] = ERROR(HOST_MEMORY_NOT_REGISTERED),
	[FG_NOT_SUPPORTED] = ERROR(NOT_SUPPORTED),
	[FG_UNKNOWN] = ERROR(UNKNOWN),
};

// Those that only a test can ask for.
static const struct error others[] = {
	ERROR(DEINITIALIZED), ERROR(ECC_UNCORRECTABLE), ERROR(JIT_COMPILER_NOT_FOUND), ERROR(OPERATING_SYSTEM),
	ERROR(ILLEGAL_STATE), ERROR(ASSERT), ERROR(HARDWARE_STACK_ERROR), ERROR(ILLEGAL_INSTRUCTION),
	ERROR(INVALID_ADDRESS_SPACE), ERROR(INVALID_PC), ERROR(NOT_PERMITTED), ERROR(SYSTEM_NOT_READY),
	ERROR(MPS_CONNECTION_FAILED), ERROR(MPS_RPC_FAILURE), ERROR(MPS_SERVER_NOT_READY), ERROR(MPS_MAX_CLIENTS_REACHED),
	ERROR(MPS_MAX_CONNECTIONS_REACHED), ERROR(MPS_CLIENT_TERMINATED),
	ERROR(SHARED_OBJECT_INIT_FAILED), ERROR(PEER_ACCESS_UNSUPPORTED), ERROR(TOO_MANY_PEERS), ERROR(INVALID_SOURCE),
};

static CUresult code_of(int status)
{
	return status >= FG_RAW ? (CUresult)(status - FG_RAW) : statuses[status].code;
}

static const char *name_of(CUresult code)
{
	for (size_t i = 0; i < sizeof statuses / sizeof *statuses; i++)
		if (statuses[i].code == code)
			return statuses[i].name;
	for (size_t i = 0; i < sizeof others / sizeof *others; i++)
		if (others[i].code == code)
			return others[i].name;
	return NULL;
}

// ---- calls ----

static bool initialized;

// The contexts of a thread; the last one is current.
enum { DEPTH = 32 };
static __thread struct {
	int64_t epoch;
	int depth;
	struct fg_context *contexts[DEPTH];
} stack __attribute__((tls_model("initial-exec")));

static struct fg_context *current(void)
{
	if (stack.epoch != fg_epoch()) {
		stack.epoch = fg_epoch();
		stack.depth = 0;
	}
	return stack.depth ? stack.contexts[stack.depth - 1] : NULL;
}

static bool alive(const void *context)
{
	return fg_object_find(context, FG_CONTEXT);
}

int fg_cuda_enter(const char *api)
{
	fg_start();
	fg_lock();
	fg_count_call(api);
	current();
	return initialized ? fg_fault(api) : FG_NOT_INITIALIZED;
}

int fg_cuda_enter_context(const char *api, struct fg_context **out)
{
	int status = fg_cuda_enter(api);
	struct fg_context *c = *out = current();
	if (status == FG_NOT_INITIALIZED)
		return status;
	if (!c)
		return FG_INVALID_CONTEXT;
	if (!alive(c))
		return FG_CONTEXT_DESTROYED;
	if (fg_is_sticky(status))
		fg_context_fail(c, status);
	return status;
}

int fg_cuda_enter_device(const char *api, struct fg_context **out)
{
	int status = fg_cuda_enter_context(api, out);
	return status == FG_OK ? (*out)->error : status;
}

CUresult fg_cuda_leave(const char *api, int status)
{
	CUresult code = code_of(status);
	if (fg_settings.trace)
		fg_note("%s: %d", api, (int)code);
	fg_unlock();
	return code;
}

// ---- the library ----

CUresult cuInit(unsigned flags)
{
	fg_start();
	fg_lock();
	fg_count_call(__func__);
	int status = fg_fault(__func__);
	if (status == FG_OK && flags)
		status = FG_INVALID_VALUE;
	if (status == FG_OK && fg_settings.devices == 0)
		status = FG_NO_DEVICE;
	if (status == FG_OK)
		initialized = true;
	return fg_cuda_leave(__func__, status);
}

CUresult cuDriverGetVersion(int *version)
{
	if (!version)
		return CUDA_ERROR_INVALID_VALUE;
	*version = CUDA_VERSION;
	return CUDA_SUCCESS;
}

CUresult cuGetErrorName(CUresult error, const char **name)
{
	*name = name_of(error);
	return *name ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
}

CUresult cuGetErrorString(CUresult error, const char **text)
{
	static const char *const texts[] = {
		[0] = "no error", [1] = "invalid argument", [2] = "out of memory", [3] = "initialization error",
		[100] = "no CUDA-capable device is detected", [101] = "invalid device ordinal",
		[201] = "invalid device context", [209] = "no kernel image is available for execution on the device",
		[218] = "a PTX JIT compilation failed", [400] = "invalid resource handle", [500] = "named symbol not found",
		[600] = "device not ready", [700] = "an illegal memory access was encountered",
		[701] = "too many resources requested for launch", [719] = "unspecified launch failure",
	};
	*text = (size_t)error < sizeof texts / sizeof *texts ? texts[error] : NULL;
	if (!*text)
		*text = name_of(error);
	return *text ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
}

// ---- devices ----

static int check_device(int status, CUdevice device)
{
	if (status == FG_OK && (device < 0 || device >= fg_settings.devices))
		return FG_INVALID_DEVICE;
	return status;
}

CUresult cuDeviceGetCount(int *count)
{
	int status = fg_cuda_enter(__func__);
	if (status == FG_OK)
		*count = (int)fg_settings.devices;
	return fg_cuda_leave(__func__, status);
}

CUresult cuDeviceGet(CUdevice *device, int ordinal)
{
	int status = check_device(fg_cuda_enter(__func__), ordinal);
	if (status == FG_OK)
		*device = ordinal;
	return fg_cuda_leave(__func__, status);
}

CUresult cuDeviceGetName(char *name, int size, CUdevice device)
{
	int status = check_device(fg_cuda_enter(__func__), device);
	if (status == FG_OK)
		snprintf(name, (size_t)size, "Fake GPU %d", device);
	return fg_cuda_leave(__func__, status);
}

CUresult cuDeviceGetPCIBusId(char *id, int size, CUdevice device)
{
	int status = check_device(fg_cuda_enter(__func__), device);
	if (status == FG_OK)
		snprintf(id, (size_t)size, "0000:%02x:00.0", device + 1);
	return fg_cuda_leave(__func__, status);
}

CUresult cuDeviceTotalMem(size_t *bytes, CUdevice device)
{
	int status = check_device(fg_cuda_enter(__func__), device);
	if (status == FG_OK)
		*bytes = (size_t)fg_settings.memory;
	return fg_cuda_leave(__func__, status);
}

static int attribute(CUdevice_attribute a, CUdevice device)
{
	switch (a) {
	case CU_DEVICE_ATTRIBUTE_MAX_THREADS_PER_BLOCK:
	case CU_DEVICE_ATTRIBUTE_MAX_BLOCK_DIM_X:
	case CU_DEVICE_ATTRIBUTE_MAX_BLOCK_DIM_Y: return 1024;
	case CU_DEVICE_ATTRIBUTE_MAX_BLOCK_DIM_Z: return 64;
	case CU_DEVICE_ATTRIBUTE_MAX_GRID_DIM_X: return INT32_MAX;
	case CU_DEVICE_ATTRIBUTE_MAX_GRID_DIM_Y:
	case CU_DEVICE_ATTRIBUTE_MAX_GRID_DIM_Z: return 65535;
	case CU_DEVICE_ATTRIBUTE_WARP_SIZE: return 32;
	case CU_DEVICE_ATTRIBUTE_MAX_PITCH: return INT32_MAX;
	case CU_DEVICE_ATTRIBUTE_CAN_MAP_HOST_MEMORY:
	case CU_DEVICE_ATTRIBUTE_CONCURRENT_KERNELS:
	case CU_DEVICE_ATTRIBUTE_UNIFIED_ADDRESSING:
	case CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT: return 1;
	case CU_DEVICE_ATTRIBUTE_ASYNC_ENGINE_COUNT: return 2;
	case CU_DEVICE_ATTRIBUTE_PCI_BUS_ID: return device + 1;
	case CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR: return (int)fg_settings.cc / 10;
	case CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MINOR: return (int)fg_settings.cc % 10;
	default: return 0;
	}
}

CUresult cuDeviceGetAttribute(int *value, CUdevice_attribute a, CUdevice device)
{
	int status = check_device(fg_cuda_enter(__func__), device);
	if (status == FG_OK)
		*value = attribute(a, device);
	return fg_cuda_leave(__func__, status);
}

CUresult cuDeviceCanAccessPeer(int *can, CUdevice device, CUdevice peer)
{
	int status = check_device(check_device(fg_cuda_enter(__func__), device), peer);
	if (status == FG_OK)
		*can = device != peer;
	return fg_cuda_leave(__func__, status);
}

// ---- primary contexts ----

static struct {
	struct fg_context *context;
	int retained;
} primary[FG_MAX_DEVICES];

static bool primary_active(CUdevice device)
{
	return primary[device].context && alive(primary[device].context);
}

static int retain(CUdevice device)
{
	if (!primary_active(device)) {
		primary[device].retained = 0;
		primary[device].context = fg_context_new(device);
	}
	if (!primary[device].context)
		return FG_OUT_OF_MEMORY;
	primary[device].retained++;
	return FG_OK;
}

CUresult cuDevicePrimaryCtxRetain(CUcontext *context, CUdevice device)
{
	int status = check_device(fg_cuda_enter(__func__), device);
	if (status == FG_OK)
		status = retain(device);
	if (status == FG_OK)
		*context = (CUcontext)primary[device].context;
	return fg_cuda_leave(__func__, status);
}

CUresult cuDevicePrimaryCtxRelease(CUdevice device)
{
	int status = check_device(fg_cuda_enter(__func__), device);
	if (status == FG_OK && !primary_active(device))
		status = FG_INVALID_CONTEXT;
	if (status == FG_OK && --primary[device].retained == 0)
		fg_context_destroy(primary[device].context);
	return fg_cuda_leave(__func__, status);
}

CUresult cuDevicePrimaryCtxReset(CUdevice device)
{
	int status = check_device(fg_cuda_enter(__func__), device);
	if (status == FG_OK && primary_active(device))
		fg_context_destroy(primary[device].context);
	return fg_cuda_leave(__func__, status);
}

CUresult cuDevicePrimaryCtxGetState(CUdevice device, unsigned *flags, int *active)
{
	int status = check_device(fg_cuda_enter(__func__), device);
	if (status == FG_OK) {
		*flags = 0;
		*active = primary_active(device);
	}
	return fg_cuda_leave(__func__, status);
}

// ---- contexts ----

static int push(struct fg_context *c)
{
	if (!alive(c))
		return FG_INVALID_CONTEXT;
	if (stack.depth == DEPTH)
		return FG_OUT_OF_MEMORY;
	stack.contexts[stack.depth++] = c;
	return FG_OK;
}

CUresult cuCtxCreate(CUcontext *context, unsigned flags, CUdevice device)
{
	int status = check_device(fg_cuda_enter(__func__), device);
	(void)flags;
	struct fg_context *c = status == FG_OK ? fg_context_new(device) : NULL;
	if (status == FG_OK)
		status = c ? push(c) : FG_OUT_OF_MEMORY;
	if (status == FG_OK)
		*context = (CUcontext)c;
	return fg_cuda_leave(__func__, status);
}

static bool is_primary(const void *context)
{
	for (int i = 0; i < FG_MAX_DEVICES; i++)
		if (context && primary[i].context == context)
			return true;
	return false;
}

CUresult cuCtxDestroy(CUcontext context)
{
	int status = fg_cuda_enter(__func__);
	if (status == FG_OK && (!alive(context) || is_primary(context)))
		status = FG_INVALID_CONTEXT;
	if (status == FG_OK) {
		fg_context_destroy((struct fg_context *)context);
		if (current() == (struct fg_context *)context)
			stack.depth--;
	}
	return fg_cuda_leave(__func__, status);
}

CUresult cuCtxPushCurrent(CUcontext context)
{
	int status = fg_cuda_enter(__func__);
	if (status == FG_OK)
		status = push((struct fg_context *)context);
	return fg_cuda_leave(__func__, status);
}

CUresult cuCtxPopCurrent(CUcontext *context)
{
	int status = fg_cuda_enter(__func__);
	if (status == FG_OK && !current())
		status = FG_INVALID_CONTEXT;
	if (status == FG_OK) {
		if (context)
			*context = (CUcontext)current();
		stack.depth--;
	}
	return fg_cuda_leave(__func__, status);
}

CUresult cuCtxSetCurrent(CUcontext context)
{
	int status = fg_cuda_enter(__func__);
	if (status == FG_OK && context && !alive(context))
		status = FG_INVALID_CONTEXT;
	if (status == FG_OK && stack.depth)
		stack.depth--;
	if (status == FG_OK && context)
		status = push((struct fg_context *)context);
	return fg_cuda_leave(__func__, status);
}

CUresult cuCtxGetCurrent(CUcontext *context)
{
	int status = fg_cuda_enter(__func__);
	if (status == FG_OK)
		*context = (CUcontext)current();
	return fg_cuda_leave(__func__, status);
}

CUresult cuCtxGetDevice(CUdevice *device)
{
	struct fg_context *c;
	int status = fg_cuda_enter_context(__func__, &c);
	if (status == FG_OK)
		*device = c->device;
	return fg_cuda_leave(__func__, status);
}

CUresult cuCtxGetApiVersion(CUcontext context, unsigned *version)
{
	int status = fg_cuda_enter(__func__);
	if (status == FG_OK && context && !alive(context))
		status = FG_INVALID_CONTEXT;
	if (status == FG_OK)
		*version = 3020;
	return fg_cuda_leave(__func__, status);
}

CUresult cuCtxSynchronize(void)
{
	struct fg_context *c;
	int status = fg_cuda_enter_device(__func__, &c);
	if (status == FG_OK)
		status = fg_context_synchronize(c);
	return fg_cuda_leave(__func__, status);
}

CUresult cuCtxEnablePeerAccess(CUcontext peer, unsigned flags)
{
	struct fg_context *c;
	int status = fg_cuda_enter_device(__func__, &c);
	if (status == FG_OK)
		status = flags ? FG_INVALID_VALUE : fg_context_peer(c, (struct fg_context *)peer, true);
	return fg_cuda_leave(__func__, status);
}

CUresult cuCtxDisablePeerAccess(CUcontext peer)
{
	struct fg_context *c;
	int status = fg_cuda_enter_device(__func__, &c);
	if (status == FG_OK)
		status = fg_context_peer(c, (struct fg_context *)peer, false);
	return fg_cuda_leave(__func__, status);
}
