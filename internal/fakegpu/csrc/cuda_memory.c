// The front of CUDA's driver API: memory, copies, fills.
#include "cuda_front.h"

CUresult cuMemAlloc(CUdeviceptr *address, size_t bytes)
{
	struct fg_context *c;
	void *p;
	int status = fg_cuda_enter_device(__func__, &c);
	if (status == FG_OK)
		status = fg_allocate(c, bytes, &p);
	if (status == FG_OK)
		*address = (CUdeviceptr)(uintptr_t)p;
	return fg_cuda_leave(__func__, status);
}

CUresult cuMemFree(CUdeviceptr address)
{
	struct fg_context *c;
	int status = fg_cuda_enter_device(__func__, &c);
	if (status == FG_OK && address)
		status = fg_free(POINTER(address));
	return fg_cuda_leave(__func__, status);
}

CUresult cuMemGetInfo(size_t *free, size_t *total)
{
	struct fg_context *c;
	int status = fg_cuda_enter_device(__func__, &c);
	if (status == FG_OK) {
		*total = (size_t)fg_settings.memory;
		*free = *total - fg_used(c->device);
	}
	return fg_cuda_leave(__func__, status);
}

CUresult cuMemGetAddressRange(CUdeviceptr *base, size_t *bytes, CUdeviceptr address)
{
	struct fg_context *c;
	int status = fg_cuda_enter_device(__func__, &c);
	char *first;
	size_t size;
	if (status == FG_OK)
		status = fg_range_of(POINTER(address), &first, &size);
	if (status == FG_OK && base)
		*base = (CUdeviceptr)(uintptr_t)first;
	if (status == FG_OK && bytes)
		*bytes = size;
	return fg_cuda_leave(__func__, status);
}

CUresult cuMemAllocHost(void **memory, size_t bytes)
{
	struct fg_context *c;
	int status = fg_cuda_enter_device(__func__, &c);
	if (status == FG_OK)
		status = fg_pin(c, bytes, memory);
	return fg_cuda_leave(__func__, status);
}

CUresult cuMemHostAlloc(void **memory, size_t bytes, unsigned flags)
{
	struct fg_context *c;
	int status = fg_cuda_enter_device(__func__, &c);
	if (status == FG_OK)
		status = flags > 7 ? FG_INVALID_VALUE : fg_pin(c, bytes, memory);
	return fg_cuda_leave(__func__, status);
}

CUresult cuMemFreeHost(void *memory)
{
	struct fg_context *c;
	int status = fg_cuda_enter_device(__func__, &c);
	if (status == FG_OK)
		status = fg_unpin(memory);
	return fg_cuda_leave(__func__, status);
}

CUresult cuMemHostRegister(void *memory, size_t bytes, unsigned flags)
{
	struct fg_context *c;
	int status = fg_cuda_enter_device(__func__, &c);
	if (status == FG_OK)
		status = flags > 15 ? FG_INVALID_VALUE : fg_register(c, memory, bytes);
	return fg_cuda_leave(__func__, status);
}

CUresult cuMemHostUnregister(void *memory)
{
	struct fg_context *c;
	int status = fg_cuda_enter_device(__func__, &c);
	if (status == FG_OK)
		status = fg_unregister(memory);
	return fg_cuda_leave(__func__, status);
}

// With unified addressing, the device sees pinned memory at the host's address.
CUresult cuMemHostGetDevicePointer(CUdeviceptr *address, void *memory, unsigned flags)
{
	struct fg_context *c;
	int status = fg_cuda_enter_device(__func__, &c);
	if (status == FG_OK && (flags || !fg_pinned_find(memory, 1)))
		status = FG_INVALID_VALUE;
	if (status == FG_OK)
		*address = (CUdeviceptr)(uintptr_t)memory;
	return fg_cuda_leave(__func__, status);
}

// What a device address, or pinned memory, is.
struct pointer {
	struct fg_context *context;
	bool device;
	char *base;
	size_t bytes;
};

static bool look(const void *p, struct pointer *out)
{
	struct fg_allocation *a = fg_find(p);
	struct fg_pinned *m = a ? NULL : fg_pinned_find(p, 1);
	if (a)
		*out = (struct pointer){a->object.context, true, a->base, a->bytes};
	else if (m)
		*out = (struct pointer){m->object.context, false, m->base, m->bytes};
	else
		*out = (struct pointer){0};
	return a || m || (fg_settings.hmm && p && !fg_is_device(p));
}

static int attribute(void *value, CUpointer_attribute a, void *p, const struct pointer *is)
{
	// Where the device reaches all memory of the host, that has a type and addresses,
	// though nobody has allocated or registered it in a context.
	bool own = is->context;
	if (!own && (a == CU_POINTER_ATTRIBUTE_DEVICE_ORDINAL || a == CU_POINTER_ATTRIBUTE_RANGE_START_ADDR || a == CU_POINTER_ATTRIBUTE_RANGE_SIZE))
		return FG_INVALID_VALUE;
	switch (a) {
	case CU_POINTER_ATTRIBUTE_CONTEXT: *(void **)value = is->context; return FG_OK;
	case CU_POINTER_ATTRIBUTE_MEMORY_TYPE: *(unsigned *)value = is->device ? CU_MEMORYTYPE_DEVICE : CU_MEMORYTYPE_HOST; return FG_OK;
	case CU_POINTER_ATTRIBUTE_DEVICE_POINTER: *(void **)value = p; return FG_OK;
	case CU_POINTER_ATTRIBUTE_HOST_POINTER: *(void **)value = p; return is->device ? FG_INVALID_VALUE : FG_OK;
	case CU_POINTER_ATTRIBUTE_IS_MANAGED: *(unsigned *)value = 0; return FG_OK;
	case CU_POINTER_ATTRIBUTE_DEVICE_ORDINAL: *(int *)value = is->context->device; return FG_OK;
	case CU_POINTER_ATTRIBUTE_RANGE_START_ADDR: *(void **)value = is->base; return FG_OK;
	case CU_POINTER_ATTRIBUTE_RANGE_SIZE: *(size_t *)value = is->bytes; return FG_OK;
	default: return FG_NOT_SUPPORTED;
	}
}

CUresult cuPointerGetAttribute(void *value, CUpointer_attribute a, CUdeviceptr address)
{
	struct fg_context *c;
	struct pointer is;
	int status = fg_cuda_enter_device(__func__, &c);
	if (status == FG_OK && !look(POINTER(address), &is))
		status = FG_INVALID_VALUE;
	if (status == FG_OK)
		status = attribute(value, a, POINTER(address), &is);
	return fg_cuda_leave(__func__, status);
}

// ---- copies ----

enum side { HOST, DEVICE, ANY };

static bool is(enum side side, const void *p)
{
	return side == ANY || (side == DEVICE) == fg_is_device(p);
}

static CUresult copy(const char *api, enum side dst_side, void *dst, enum side src_side, const void *src, size_t bytes, const CUstream *stream)
{
	struct fg_context *c;
	int status = fg_cuda_enter_device(api, &c);
	struct fg_stream *s = status == FG_OK ? fg_stream_find(c, stream ? *stream : NULL) : NULL;
	if (status == FG_OK && !s)
		status = FG_INVALID_HANDLE;
	if (status == FG_OK && bytes && (!is(dst_side, dst) || !is(src_side, src)))
		status = FG_INVALID_VALUE;
	if (status == FG_OK)
		status = fg_copy(s, dst, src, bytes, stream != NULL);
	return fg_cuda_leave(api, status);
}

CUresult cuMemcpyHtoD(CUdeviceptr dst, const void *src, size_t bytes)
{
	return copy(__func__, DEVICE, POINTER(dst), HOST, src, bytes, NULL);
}

CUresult cuMemcpyHtoDAsync(CUdeviceptr dst, const void *src, size_t bytes, CUstream stream)
{
	return copy(__func__, DEVICE, POINTER(dst), HOST, src, bytes, &stream);
}

CUresult cuMemcpyDtoH(void *dst, CUdeviceptr src, size_t bytes)
{
	return copy(__func__, HOST, dst, DEVICE, POINTER(src), bytes, NULL);
}

CUresult cuMemcpyDtoHAsync(void *dst, CUdeviceptr src, size_t bytes, CUstream stream)
{
	return copy(__func__, HOST, dst, DEVICE, POINTER(src), bytes, &stream);
}

CUresult cuMemcpyDtoD(CUdeviceptr dst, CUdeviceptr src, size_t bytes)
{
	return copy(__func__, DEVICE, POINTER(dst), DEVICE, POINTER(src), bytes, NULL);
}

CUresult cuMemcpyDtoDAsync(CUdeviceptr dst, CUdeviceptr src, size_t bytes, CUstream stream)
{
	return copy(__func__, DEVICE, POINTER(dst), DEVICE, POINTER(src), bytes, &stream);
}

CUresult cuMemcpy(CUdeviceptr dst, CUdeviceptr src, size_t bytes)
{
	return copy(__func__, ANY, POINTER(dst), ANY, POINTER(src), bytes, NULL);
}

CUresult cuMemcpyAsync(CUdeviceptr dst, CUdeviceptr src, size_t bytes, CUstream stream)
{
	return copy(__func__, ANY, POINTER(dst), ANY, POINTER(src), bytes, &stream);
}

// With unified addressing, the addresses tell the contexts.
CUresult cuMemcpyPeer(CUdeviceptr dst, CUcontext dst_context, CUdeviceptr src, CUcontext src_context, size_t bytes)
{
	(void)dst_context;
	(void)src_context;
	return copy(__func__, DEVICE, POINTER(dst), DEVICE, POINTER(src), bytes, NULL);
}

CUresult cuMemcpyPeerAsync(CUdeviceptr dst, CUcontext dst_context, CUdeviceptr src, CUcontext src_context, size_t bytes, CUstream stream)
{
	(void)dst_context;
	(void)src_context;
	return copy(__func__, DEVICE, POINTER(dst), DEVICE, POINTER(src), bytes, &stream);
}

// ---- boxes ----

static int base(CUmemorytype type, const void *host, CUdeviceptr device, char **out)
{
	switch (type) {
	case CU_MEMORYTYPE_HOST: *out = (char *)host; return is(HOST, host) ? FG_OK : FG_INVALID_VALUE;
	case CU_MEMORYTYPE_DEVICE: *out = POINTER(device); return is(DEVICE, POINTER(device)) ? FG_OK : FG_INVALID_VALUE;
	case CU_MEMORYTYPE_UNIFIED: *out = POINTER(device); return FG_OK;
	case CU_MEMORYTYPE_ARRAY: return FG_NOT_SUPPORTED;
	}
	return FG_INVALID_VALUE;
}

static int copy_box(struct fg_context *c, const CUDA_MEMCPY3D *m, const CUstream *stream)
{
	struct fg_side dst = {NULL, m->dstPitch, m->dstHeight, m->dstXInBytes, m->dstY, m->dstZ};
	struct fg_side src = {NULL, m->srcPitch, m->srcHeight, m->srcXInBytes, m->srcY, m->srcZ};
	struct fg_stream *s = fg_stream_find(c, stream ? *stream : NULL);
	if (!s)
		return FG_INVALID_HANDLE;
	int status = base(m->dstMemoryType, m->dstHost, m->dstDevice, &dst.base);
	if (status == FG_OK)
		status = base(m->srcMemoryType, m->srcHost, m->srcDevice, &src.base);
	if (status != FG_OK)
		return status;
	return fg_copy_box(s, dst, src, (struct fg_extent){m->WidthInBytes, m->Height, m->Depth}, stream != NULL);
}

static CUresult copy3d(const char *api, const CUDA_MEMCPY3D *m, const CUstream *stream)
{
	struct fg_context *c;
	int status = fg_cuda_enter_device(api, &c);
	if (status == FG_OK)
		status = m ? copy_box(c, m, stream) : FG_INVALID_VALUE;
	return fg_cuda_leave(api, status);
}

static CUresult copy2d(const char *api, const CUDA_MEMCPY2D *m, const CUstream *stream)
{
	if (!m)
		return copy3d(api, NULL, stream);
	CUDA_MEMCPY3D box = {
		.srcXInBytes = m->srcXInBytes, .srcY = m->srcY, .srcMemoryType = m->srcMemoryType, .srcHost = m->srcHost,
		.srcDevice = m->srcDevice, .srcPitch = m->srcPitch, .srcHeight = m->srcY + m->Height,
		.dstXInBytes = m->dstXInBytes, .dstY = m->dstY, .dstMemoryType = m->dstMemoryType, .dstHost = m->dstHost,
		.dstDevice = m->dstDevice, .dstPitch = m->dstPitch, .dstHeight = m->dstY + m->Height,
		.WidthInBytes = m->WidthInBytes, .Height = m->Height, .Depth = 1,
	};
	return copy3d(api, &box, stream);
}

CUresult cuMemcpy2D(const CUDA_MEMCPY2D *m)
{
	return copy2d(__func__, m, NULL);
}

CUresult cuMemcpy2DAsync(const CUDA_MEMCPY2D *m, CUstream stream)
{
	return copy2d(__func__, m, &stream);
}

CUresult cuMemcpy3D(const CUDA_MEMCPY3D *m)
{
	return copy3d(__func__, m, NULL);
}

CUresult cuMemcpy3DAsync(const CUDA_MEMCPY3D *m, CUstream stream)
{
	return copy3d(__func__, m, &stream);
}

// ---- fills ----

// Without a stream they only go to the default one: the host doesn't wait.
static CUresult fill(const char *api, CUdeviceptr dst, unsigned value, unsigned width, size_t count, CUstream stream)
{
	struct fg_context *c;
	int status = fg_cuda_enter_device(api, &c);
	struct fg_stream *s = status == FG_OK ? fg_stream_find(c, stream) : NULL;
	if (status == FG_OK)
		status = s ? fg_fill(s, POINTER(dst), value, width, count) : FG_INVALID_HANDLE;
	return fg_cuda_leave(api, status);
}

CUresult cuMemsetD8(CUdeviceptr dst, unsigned char value, size_t count)
{
	return fill(__func__, dst, value, 1, count, NULL);
}

CUresult cuMemsetD16(CUdeviceptr dst, unsigned short value, size_t count)
{
	return fill(__func__, dst, value, 2, count, NULL);
}

CUresult cuMemsetD32(CUdeviceptr dst, unsigned value, size_t count)
{
	return fill(__func__, dst, value, 4, count, NULL);
}

CUresult cuMemsetD8Async(CUdeviceptr dst, unsigned char value, size_t count, CUstream stream)
{
	return fill(__func__, dst, value, 1, count, stream);
}

CUresult cuMemsetD16Async(CUdeviceptr dst, unsigned short value, size_t count, CUstream stream)
{
	return fill(__func__, dst, value, 2, count, stream);
}

CUresult cuMemsetD32Async(CUdeviceptr dst, unsigned value, size_t count, CUstream stream)
{
	return fill(__func__, dst, value, 4, count, stream);
}
