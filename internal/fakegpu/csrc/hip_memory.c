// The front of HIP's runtime API: memory, copies, fills.
#include "hip_front.h"

#include <string.h>

hipError_t hipMalloc(void **memory, size_t bytes)
{
	struct fg_context *c;
	int status = fg_hip_enter_device(__func__, &c);
	if (status == FG_OK && !memory)
		status = FG_INVALID_VALUE;
	else if (status == FG_OK && bytes == 0)
		*memory = NULL;
	else if (status == FG_OK)
		status = fg_allocate(c, bytes, memory);
	return fg_hip_leave(__func__, status);
}

hipError_t hipFree(void *memory)
{
	struct fg_context *c;
	int status = fg_hip_enter_device(__func__, &c);
	if (status == FG_OK && memory)
		status = fg_free(memory);
	return fg_hip_leave(__func__, status);
}

hipError_t hipMemGetInfo(size_t *free, size_t *total)
{
	struct fg_context *c;
	int status = fg_hip_enter_device(__func__, &c);
	if (status == FG_OK) {
		*total = (size_t)fg_settings.memory;
		*free = *total - fg_used(c->device);
	}
	return fg_hip_leave(__func__, status);
}

hipError_t hipMemGetAddressRange(void **base, size_t *bytes, void *address)
{
	struct fg_context *c;
	int status = fg_hip_enter_device(__func__, &c);
	char *first;
	size_t size;
	if (status == FG_OK)
		status = fg_range_of(address, &first, &size);
	if (status == FG_OK && base)
		*base = first;
	if (status == FG_OK && bytes)
		*bytes = size;
	return fg_hip_leave(__func__, status);
}

hipError_t hipHostMalloc(void **memory, size_t bytes, unsigned flags)
{
	struct fg_context *c;
	int status = fg_hip_enter_device(__func__, &c);
	(void)flags;
	if (status == FG_OK && bytes == 0)
		*memory = NULL;
	else if (status == FG_OK)
		status = fg_pin(c, bytes, memory);
	return fg_hip_leave(__func__, status);
}

hipError_t hipHostFree(void *memory)
{
	struct fg_context *c;
	int status = fg_hip_enter_device(__func__, &c);
	if (status == FG_OK && memory)
		status = fg_unpin(memory);
	return fg_hip_leave(__func__, status);
}

hipError_t hipHostRegister(void *memory, size_t bytes, unsigned flags)
{
	struct fg_context *c;
	int status = fg_hip_enter_device(__func__, &c);
	if (status == FG_OK)
		status = flags > 15 ? FG_INVALID_VALUE : fg_register(c, memory, bytes);
	return fg_hip_leave(__func__, status);
}

hipError_t hipHostUnregister(void *memory)
{
	struct fg_context *c;
	int status = fg_hip_enter_device(__func__, &c);
	if (status == FG_OK)
		status = fg_unregister(memory);
	return fg_hip_leave(__func__, status);
}

// The device sees pinned memory at the host's address.
hipError_t hipHostGetDevicePointer(void **address, void *memory, unsigned flags)
{
	struct fg_context *c;
	int status = fg_hip_enter_device(__func__, &c);
	if (status == FG_OK && (flags || !fg_pinned_find(memory, 1)))
		status = FG_INVALID_VALUE;
	if (status == FG_OK)
		*address = memory;
	return fg_hip_leave(__func__, status);
}

static int memory_type(bool device)
{
	if (fg_hip_version < 6)
		return device ? hipMemoryTypeDeviceR0000 : hipMemoryTypeHostR0000;
	return device ? hipMemoryTypeDevice : hipMemoryTypeHost;
}

static int look(hipPointerAttribute_t *out, const void *p)
{
	struct fg_allocation *a = fg_find(p);
	struct fg_pinned *m = fg_pinned_find(p, 1);
	memset(out, 0, sizeof *out);
	if (!a && !m && fg_settings.hmm && p && !fg_is_device(p)) {
		// The device reaches all memory of the host, and says so.
		out->memoryType = memory_type(false);
		out->device = fg_hip_device();
		out->devicePointer = out->hostPointer = (void *)p;
		return FG_OK;
	}
	if (!a && !m) {
		// Version 6 knows memory that it doesn't know.
		out->memoryType = hipMemoryTypeUnregistered;
		return fg_hip_version < 6 || !p || fg_is_device(p) ? FG_INVALID_VALUE : FG_OK;
	}
	out->memoryType = memory_type(a != NULL);
	out->device = (a ? a->object.context : m->object.context)->device;
	out->devicePointer = (void *)p;
	out->hostPointer = a ? NULL : (void *)p;
	return FG_OK;
}

hipError_t hipPointerGetAttributes(hipPointerAttribute_t *attributes, const void *address)
{
	struct fg_context *c;
	int status = fg_hip_enter_device(__func__, &c);
	if (status == FG_OK)
		status = attributes ? look(attributes, address) : FG_INVALID_VALUE;
	return fg_hip_leave(__func__, status);
}

// ---- copies ----

static int check_kind(const void *dst, const void *src, hipMemcpyKind kind)
{
	bool to = fg_is_device(dst), from = fg_is_device(src);
	switch (kind) {
	case hipMemcpyDefault: return FG_OK;
	case hipMemcpyHostToHost: return !to && !from ? FG_OK : FG_INVALID_VALUE;
	case hipMemcpyHostToDevice: return to && !from ? FG_OK : FG_INVALID_VALUE;
	case hipMemcpyDeviceToHost: return !to && from ? FG_OK : FG_INVALID_VALUE;
	case hipMemcpyDeviceToDevice:
	case hipMemcpyDeviceToDeviceNoCU: return to && from ? FG_OK : FG_INVALID_VALUE;
	}
	return FG_RAW + hipErrorInvalidMemcpyDirection;
}

// What a handle that is no stream is.
static int find_stream(struct fg_context *c, const hipStream_t *handle, struct fg_stream **out)
{
	*out = fg_hip_stream(c, handle ? *handle : NULL);
	return *out ? FG_OK : FG_CONTEXT_DESTROYED;
}

static hipError_t copy(const char *api, void *dst, const void *src, size_t bytes, hipMemcpyKind kind, const hipStream_t *stream)
{
	struct fg_context *c;
	struct fg_stream *s;
	int status = fg_hip_enter_device(api, &c);
	if (status == FG_OK)
		status = find_stream(c, stream, &s);
	if (status == FG_OK && bytes)
		status = check_kind(dst, src, kind);
	if (status == FG_OK)
		status = fg_copy(s, dst, src, bytes, stream != NULL);
	return fg_hip_leave(api, status);
}

hipError_t hipMemcpy(void *dst, const void *src, size_t bytes, hipMemcpyKind kind)
{
	return copy(__func__, dst, src, bytes, kind, NULL);
}

hipError_t hipMemcpyAsync(void *dst, const void *src, size_t bytes, hipMemcpyKind kind, hipStream_t stream)
{
	return copy(__func__, dst, src, bytes, kind, &stream);
}

hipError_t hipMemcpyHtoD(void *dst, void *src, size_t bytes)
{
	return copy(__func__, dst, src, bytes, hipMemcpyHostToDevice, NULL);
}

hipError_t hipMemcpyHtoDAsync(void *dst, void *src, size_t bytes, hipStream_t stream)
{
	return copy(__func__, dst, src, bytes, hipMemcpyHostToDevice, &stream);
}

hipError_t hipMemcpyDtoH(void *dst, void *src, size_t bytes)
{
	return copy(__func__, dst, src, bytes, hipMemcpyDeviceToHost, NULL);
}

hipError_t hipMemcpyDtoHAsync(void *dst, void *src, size_t bytes, hipStream_t stream)
{
	return copy(__func__, dst, src, bytes, hipMemcpyDeviceToHost, &stream);
}

hipError_t hipMemcpyDtoD(void *dst, void *src, size_t bytes)
{
	return copy(__func__, dst, src, bytes, hipMemcpyDeviceToDevice, NULL);
}

hipError_t hipMemcpyDtoDAsync(void *dst, void *src, size_t bytes, hipStream_t stream)
{
	return copy(__func__, dst, src, bytes, hipMemcpyDeviceToDevice, &stream);
}

static struct fg_side side(hipPitchedPtr p, hipPos pos)
{
	return (struct fg_side){p.ptr, p.pitch, p.ysize, pos.x, pos.y, pos.z};
}

static int copy_box(struct fg_context *c, const hipMemcpy3DParms *m, const hipStream_t *stream)
{
	struct fg_stream *s;
	struct fg_extent extent = {m->extent.width, m->extent.height, m->extent.depth};
	int status = find_stream(c, stream, &s);
	if (status == FG_OK && (m->srcArray || m->dstArray))
		status = FG_NOT_SUPPORTED;
	if (status == FG_OK)
		status = check_kind(m->dstPtr.ptr, m->srcPtr.ptr, m->kind);
	if (status == FG_OK)
		status = fg_copy_box(s, side(m->dstPtr, m->dstPos), side(m->srcPtr, m->srcPos), extent, stream != NULL);
	return status;
}

static hipError_t copy3d(const char *api, const hipMemcpy3DParms *m, const hipStream_t *stream)
{
	struct fg_context *c;
	int status = fg_hip_enter_device(api, &c);
	if (status == FG_OK)
		status = m ? copy_box(c, m, stream) : FG_INVALID_VALUE;
	return fg_hip_leave(api, status);
}

hipError_t hipMemcpy3D(const hipMemcpy3DParms *m)
{
	return copy3d(__func__, m, NULL);
}

hipError_t hipMemcpy3DAsync(const hipMemcpy3DParms *m, hipStream_t stream)
{
	return copy3d(__func__, m, &stream);
}

// ---- fills ----

static hipError_t fill(const char *api, void *dst, int value, size_t bytes, hipStream_t stream)
{
	struct fg_context *c;
	struct fg_stream *s;
	int status = fg_hip_enter_device(api, &c);
	if (status == FG_OK)
		status = find_stream(c, &stream, &s);
	if (status == FG_OK)
		status = fg_fill(s, dst, (unsigned)value & 255, 1, bytes);
	return fg_hip_leave(api, status);
}

hipError_t hipMemset(void *dst, int value, size_t bytes)
{
	return fill(__func__, dst, value, bytes, NULL);
}

hipError_t hipMemsetAsync(void *dst, int value, size_t bytes, hipStream_t stream)
{
	return fill(__func__, dst, value, bytes, stream);
}
