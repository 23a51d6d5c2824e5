// What this project uses of HIP's runtime API, declared by hand. Where versions of the
// ABI differ, both are here.
#pragma once

#include <stddef.h>

typedef struct ihipStream_t *hipStream_t;
typedef struct ihipEvent_t *hipEvent_t;
typedef struct ihipModule_t *hipModule_t;
typedef struct ihipModuleSymbol_t *hipFunction_t;
typedef struct hipArray *hipArray_t;
typedef int hipDevice_t;

typedef enum {
	hipSuccess = 0,
	hipErrorInvalidValue = 1,
	hipErrorOutOfMemory = 2,
	hipErrorNotInitialized = 3,
	hipErrorDeinitialized = 4,
	hipErrorInvalidConfiguration = 9,
	hipErrorInvalidMemcpyDirection = 21,
	hipErrorNoDevice = 100,
	hipErrorInvalidDevice = 101,
	hipErrorInvalidImage = 200,
	hipErrorInvalidContext = 201,
	hipErrorNoBinaryForGpu = 209,
	hipErrorECCNotCorrectable = 214,
	hipErrorInvalidSource = 300,
	hipErrorFileNotFound = 301,
	hipErrorSharedObjectInitFailed = 303,
	hipErrorOperatingSystem = 304,
	hipErrorInvalidHandle = 400,
	hipErrorIllegalState = 401,
	hipErrorNotFound = 500,
	hipErrorNotReady = 600,
	hipErrorIllegalAddress = 700,
	hipErrorLaunchOutOfResources = 701,
	hipErrorLaunchTimeOut = 702,
	hipErrorPeerAccessAlreadyEnabled = 704,
	hipErrorPeerAccessNotEnabled = 705,
	hipErrorSetOnActiveProcess = 708,
	hipErrorContextIsDestroyed = 709,
	hipErrorAssert = 710,
	hipErrorHostMemoryAlreadyRegistered = 712,
	hipErrorHostMemoryNotRegistered = 713,
	hipErrorLaunchFailure = 719,
	hipErrorNotSupported = 801,
	hipErrorUnknown = 999,
	hipErrorRuntimeMemory = 1052,
	hipErrorRuntimeOther = 1053,
} hipError_t;

typedef enum {
	hipDeviceAttributeAsyncEngineCount = 2,
	hipDeviceAttributeCanMapHostMemory = 3,
	hipDeviceAttributeConcurrentKernels = 8,
	hipDeviceAttributeComputeCapabilityMajor = 23,
	hipDeviceAttributeMaxBlockDimX = 26,
	hipDeviceAttributeMaxBlockDimY = 27,
	hipDeviceAttributeMaxBlockDimZ = 28,
	hipDeviceAttributeMaxGridDimX = 29,
	hipDeviceAttributeMaxGridDimY = 30,
	hipDeviceAttributeMaxGridDimZ = 31,
	hipDeviceAttributeMaxThreadsPerBlock = 56,
	hipDeviceAttributeMaxPitch = 58,
	hipDeviceAttributeComputeCapabilityMinor = 61,
	hipDeviceAttributeMultiprocessorCount = 63,
	hipDeviceAttributePciBusId = 67,
	hipDeviceAttributeUnifiedAddressing = 85,
	hipDeviceAttributeWarpSize = 87,
	hipDeviceAttributeHostRegisterSupported = 90,
} hipDeviceAttribute_t;

typedef enum {
	hipMemcpyHostToHost = 0,
	hipMemcpyHostToDevice = 1,
	hipMemcpyDeviceToHost = 2,
	hipMemcpyDeviceToDevice = 3,
	hipMemcpyDefault = 4,
	hipMemcpyDeviceToDeviceNoCU = 1024,
} hipMemcpyKind;

// Up to version 5, and since version 6.
enum {
	hipMemoryTypeHostR0000 = 0,
	hipMemoryTypeDeviceR0000 = 1,

	hipMemoryTypeUnregistered = 0,
	hipMemoryTypeHost = 1,
	hipMemoryTypeDevice = 2,
};

enum {
	hipStreamDefault = 0,
	hipStreamNonBlocking = 1,

	hipEventDefault = 0,
	hipEventDisableTiming = 2,
};

// What the array after the arguments of a launch holds.
#define HIP_LAUNCH_PARAM_BUFFER_POINTER ((void *)0x01)
#define HIP_LAUNCH_PARAM_BUFFER_SIZE ((void *)0x02)
#define HIP_LAUNCH_PARAM_END ((void *)0x03)

typedef struct {
	int memoryType;
	int device;
	void *devicePointer;
	void *hostPointer;
	int isManaged;
	unsigned allocationFlags;
} hipPointerAttribute_t;

typedef struct {
	size_t x, y, z;
} hipPos;

typedef struct {
	size_t width, height, depth;
} hipExtent;

typedef struct {
	void *ptr;
	size_t pitch, xsize, ysize;
} hipPitchedPtr;

typedef struct {
	hipArray_t srcArray;
	hipPos srcPos;
	hipPitchedPtr srcPtr;
	hipArray_t dstArray;
	hipPos dstPos;
	hipPitchedPtr dstPtr;
	hipExtent extent;
	hipMemcpyKind kind;
} hipMemcpy3DParms;

// The properties of a device up to version 5, and since version 6. What nobody here
// asks for is left out.
typedef struct {
	char name[256];
	size_t totalGlobalMem, sharedMemPerBlock;
	int regsPerBlock, warpSize, maxThreadsPerBlock, maxThreadsDim[3], maxGridSize[3];
	char others[88];
	char gcnArchName[256];
	char more[140];
} hipDeviceProp_tR0000;

typedef struct {
	char name[256];
	char uuid[16], luid[8];
	unsigned luidDeviceNodeMask;
	size_t totalGlobalMem, sharedMemPerBlock;
	int regsPerBlock, warpSize;
	size_t memPitch;
	int maxThreadsPerBlock, maxThreadsDim[3], maxGridSize[3];
	char others[812];
	char gcnArchName[256];
	char more[56];
} hipDeviceProp_tR0600;

_Static_assert(offsetof(hipDeviceProp_tR0000, gcnArchName) == 396 && sizeof(hipDeviceProp_tR0000) == 792, "layout of version 5");
_Static_assert(offsetof(hipDeviceProp_tR0600, gcnArchName) == 1160 && sizeof(hipDeviceProp_tR0600) == 1472, "layout of version 6");

#pragma GCC visibility push(default)

hipError_t hipInit(unsigned flags);
hipError_t hipDriverGetVersion(int *version);
hipError_t hipRuntimeGetVersion(int *version);
const char *hipGetErrorName(hipError_t error);
const char *hipGetErrorString(hipError_t error);
hipError_t hipGetLastError(void);
hipError_t hipPeekAtLastError(void);
hipError_t hipExtGetLastError(void);

hipError_t hipGetDeviceCount(int *count);
hipError_t hipGetDevice(int *device);
hipError_t hipSetDevice(int device);
hipError_t hipDeviceGet(hipDevice_t *device, int ordinal);
hipError_t hipDeviceGetName(char *name, int size, hipDevice_t device);
hipError_t hipDeviceTotalMem(size_t *bytes, hipDevice_t device);
hipError_t hipDeviceGetAttribute(int *value, hipDeviceAttribute_t attribute, int device);
hipError_t hipDeviceGetPCIBusId(char *id, int size, int device);
hipError_t hipGetDeviceProperties(hipDeviceProp_tR0000 *properties, int device);
hipError_t hipGetDevicePropertiesR0600(hipDeviceProp_tR0600 *properties, int device);
hipError_t hipDeviceSynchronize(void);
hipError_t hipDeviceReset(void);
hipError_t hipDeviceCanAccessPeer(int *can, int device, int peer);
hipError_t hipDeviceEnablePeerAccess(int peer, unsigned flags);
hipError_t hipDeviceDisablePeerAccess(int peer);

hipError_t hipMalloc(void **memory, size_t bytes);
hipError_t hipFree(void *memory);
hipError_t hipMemGetInfo(size_t *free, size_t *total);
hipError_t hipMemGetAddressRange(void **base, size_t *bytes, void *address);
hipError_t hipHostMalloc(void **memory, size_t bytes, unsigned flags);
hipError_t hipHostFree(void *memory);
hipError_t hipHostRegister(void *memory, size_t bytes, unsigned flags);
hipError_t hipHostUnregister(void *memory);
hipError_t hipHostGetDevicePointer(void **address, void *memory, unsigned flags);
hipError_t hipPointerGetAttributes(hipPointerAttribute_t *attributes, const void *address);

hipError_t hipMemcpy(void *dst, const void *src, size_t bytes, hipMemcpyKind kind);
hipError_t hipMemcpyAsync(void *dst, const void *src, size_t bytes, hipMemcpyKind kind, hipStream_t stream);
hipError_t hipMemcpyHtoD(void *dst, void *src, size_t bytes);
hipError_t hipMemcpyHtoDAsync(void *dst, void *src, size_t bytes, hipStream_t stream);
hipError_t hipMemcpyDtoH(void *dst, void *src, size_t bytes);
hipError_t hipMemcpyDtoHAsync(void *dst, void *src, size_t bytes, hipStream_t stream);
hipError_t hipMemcpyDtoD(void *dst, void *src, size_t bytes);
hipError_t hipMemcpyDtoDAsync(void *dst, void *src, size_t bytes, hipStream_t stream);
hipError_t hipMemcpy3D(const hipMemcpy3DParms *copy);
hipError_t hipMemcpy3DAsync(const hipMemcpy3DParms *copy, hipStream_t stream);
hipError_t hipMemset(void *dst, int value, size_t bytes);
hipError_t hipMemsetAsync(void *dst, int value, size_t bytes, hipStream_t stream);

hipError_t hipStreamCreate(hipStream_t *stream);
hipError_t hipStreamCreateWithFlags(hipStream_t *stream, unsigned flags);
hipError_t hipStreamDestroy(hipStream_t stream);
hipError_t hipStreamSynchronize(hipStream_t stream);
hipError_t hipStreamQuery(hipStream_t stream);
hipError_t hipStreamWaitEvent(hipStream_t stream, hipEvent_t event, unsigned flags);
hipError_t hipStreamGetDevice(hipStream_t stream, hipDevice_t *device);

hipError_t hipEventCreate(hipEvent_t *event);
hipError_t hipEventCreateWithFlags(hipEvent_t *event, unsigned flags);
hipError_t hipEventDestroy(hipEvent_t event);
hipError_t hipEventRecord(hipEvent_t event, hipStream_t stream);
hipError_t hipEventQuery(hipEvent_t event);
hipError_t hipEventSynchronize(hipEvent_t event);
hipError_t hipEventElapsedTime(float *ms, hipEvent_t from, hipEvent_t to);

hipError_t hipModuleLoadData(hipModule_t *module, const void *image);
hipError_t hipModuleLoadDataEx(hipModule_t *module, const void *image, unsigned count, int *options, void **values);
hipError_t hipModuleUnload(hipModule_t module);
hipError_t hipModuleGetFunction(hipFunction_t *function, hipModule_t module, const char *name);
hipError_t hipFuncGetAttribute(int *value, int attribute, hipFunction_t function);
hipError_t hipModuleLaunchKernel(hipFunction_t function, unsigned gx, unsigned gy, unsigned gz, unsigned bx, unsigned by,
	unsigned bz, unsigned shared, hipStream_t stream, void **arguments, void **extra);

#pragma GCC visibility pop
