// The front of HIP's runtime API: streams, events, modules, launches.
#include "hip_front.h"

// ---- streams ----

static int enter_stream(const char *api, hipStream_t stream, struct fg_stream **out)
{
	struct fg_context *c;
	int status = fg_hip_enter_device(api, &c);
	*out = status == FG_OK ? fg_hip_stream(c, stream) : NULL;
	if (status != FG_OK)
		return status;
	return *out ? (*out)->object.context->error : FG_CONTEXT_DESTROYED;
}

static hipError_t create(const char *api, hipStream_t *stream, unsigned flags)
{
	struct fg_context *c;
	struct fg_stream *s;
	int status = fg_hip_enter_device(api, &c);
	if (status == FG_OK)
		status = flags > hipStreamNonBlocking ? FG_INVALID_VALUE : fg_stream_new(c, flags == hipStreamDefault, &s);
	if (status == FG_OK)
		*stream = (hipStream_t)s;
	return fg_hip_leave(api, status);
}

hipError_t hipStreamCreate(hipStream_t *stream)
{
	return create(__func__, stream, hipStreamDefault);
}

hipError_t hipStreamCreateWithFlags(hipStream_t *stream, unsigned flags)
{
	return create(__func__, stream, flags);
}

hipError_t hipStreamDestroy(hipStream_t stream)
{
	struct fg_context *c;
	int status = fg_hip_enter_device(__func__, &c);
	struct fg_stream *s = fg_object_find(stream, FG_STREAM);
	if (status == FG_OK && !s)
		status = stream ? FG_CONTEXT_DESTROYED : FG_INVALID_HANDLE;
	if (status == FG_OK)
		fg_stream_close(s);
	return fg_hip_leave(__func__, status);
}

hipError_t hipStreamSynchronize(hipStream_t stream)
{
	struct fg_stream *s;
	int status = enter_stream(__func__, stream, &s);
	if (status == FG_OK)
		status = fg_stream_synchronize(s);
	return fg_hip_leave(__func__, status);
}

hipError_t hipStreamQuery(hipStream_t stream)
{
	struct fg_stream *s;
	int status = enter_stream(__func__, stream, &s);
	if (status == FG_OK)
		status = fg_stream_query(s);
	return fg_hip_leave(__func__, status);
}

hipError_t hipStreamWaitEvent(hipStream_t stream, hipEvent_t event, unsigned flags)
{
	struct fg_stream *s;
	int status = enter_stream(__func__, stream, &s);
	if (status == FG_OK)
		status = flags ? FG_INVALID_VALUE : fg_stream_wait_event(s, event);
	return fg_hip_leave(__func__, status);
}

hipError_t hipStreamGetDevice(hipStream_t stream, hipDevice_t *device)
{
	struct fg_stream *s;
	int status = enter_stream(__func__, stream, &s);
	if (status == FG_OK)
		*device = s->object.context->device;
	return fg_hip_leave(__func__, status);
}

// ---- events ----

static hipError_t create_event(const char *api, hipEvent_t *event, unsigned flags)
{
	struct fg_context *c;
	struct fg_event *e;
	int status = fg_hip_enter_device(api, &c);
	if (status == FG_OK)
		status = fg_event_new(c, !(flags & hipEventDisableTiming), &e);
	if (status == FG_OK)
		*event = (hipEvent_t)e;
	return fg_hip_leave(api, status);
}

hipError_t hipEventCreate(hipEvent_t *event)
{
	return create_event(__func__, event, hipEventDefault);
}

hipError_t hipEventCreateWithFlags(hipEvent_t *event, unsigned flags)
{
	return create_event(__func__, event, flags);
}

hipError_t hipEventDestroy(hipEvent_t event)
{
	struct fg_context *c;
	int status = fg_hip_enter_device(__func__, &c);
	if (status == FG_OK)
		status = fg_event_close(event);
	return fg_hip_leave(__func__, status);
}

hipError_t hipEventRecord(hipEvent_t event, hipStream_t stream)
{
	struct fg_stream *s;
	int status = enter_stream(__func__, stream, &s);
	if (status == FG_OK)
		status = fg_event_record(event, s);
	return fg_hip_leave(__func__, status);
}

hipError_t hipEventQuery(hipEvent_t event)
{
	struct fg_context *c;
	int status = fg_hip_enter_device(__func__, &c);
	if (status == FG_OK)
		status = fg_event_query(event);
	return fg_hip_leave(__func__, status);
}

hipError_t hipEventSynchronize(hipEvent_t event)
{
	struct fg_context *c;
	int status = fg_hip_enter_device(__func__, &c);
	if (status == FG_OK)
		status = fg_event_synchronize(event);
	return fg_hip_leave(__func__, status);
}

hipError_t hipEventElapsedTime(float *ms, hipEvent_t from, hipEvent_t to)
{
	struct fg_context *c;
	int status = fg_hip_enter_device(__func__, &c);
	if (status == FG_OK)
		status = fg_event_elapsed(from, to, ms);
	return fg_hip_leave(__func__, status);
}

// ---- modules ----

// ROCm 5 knows code objects of version 5, and ROCm 6 of version 6 (since 6.4).
static unsigned newest_object(void)
{
	if (fg_settings.object)
		return (unsigned)fg_settings.object;
	return fg_hip_version < 6 ? 5 : 6;
}

static hipError_t load(const char *api, hipModule_t *module, const void *image)
{
	struct fg_context *c;
	struct fg_module *m;
	int status = fg_hip_enter_device(api, &c);
	if (status == FG_OK)
		status = fg_module_load_code_object(c, image, newest_object(), &m);
	if (status == FG_OK)
		*module = (hipModule_t)m;
	return fg_hip_leave(api, status);
}

hipError_t hipModuleLoadData(hipModule_t *module, const void *image)
{
	return load(__func__, module, image);
}

// There is nothing to compile in a code object, so the options have no meaning.
hipError_t hipModuleLoadDataEx(hipModule_t *module, const void *image, unsigned count, int *options, void **values)
{
	(void)count;
	(void)options;
	(void)values;
	return load(__func__, module, image);
}

hipError_t hipModuleUnload(hipModule_t module)
{
	struct fg_context *c;
	int status = fg_hip_enter_device(__func__, &c);
	if (status == FG_OK)
		status = fg_module_unload(module);
	return fg_hip_leave(__func__, status);
}

hipError_t hipModuleGetFunction(hipFunction_t *function, hipModule_t module, const char *name)
{
	struct fg_context *c;
	struct fg_function *f;
	int status = fg_hip_enter_device(__func__, &c);
	if (status == FG_OK)
		status = fg_module_function(module, name, &f);
	if (status == FG_OK)
		*function = (hipFunction_t)f;
	return fg_hip_leave(__func__, status);
}

// Attribute 0 is the largest number of threads of a block.
hipError_t hipFuncGetAttribute(int *value, int attribute, hipFunction_t function)
{
	int status = fg_hip_enter(__func__);
	struct fg_function *f = fg_object_find(function, FG_FUNCTION);
	if (status == FG_OK && !f)
		status = FG_INVALID_HANDLE;
	if (status == FG_OK)
		*value = attribute == 0 ? (int)f->max_threads : 0;
	return fg_hip_leave(__func__, status);
}

// ---- launches ----

struct arguments {
	void **pointers;
	const void *buffer;
	size_t bytes;
};

// The runtime wants the buffer, its size and the end in this order.
static bool gather(void **pointers, void **extra, struct arguments *a)
{
	*a = (struct arguments){pointers, NULL, 0};
	if (!extra)
		return true;
	if (pointers || extra[0] != HIP_LAUNCH_PARAM_BUFFER_POINTER || extra[2] != HIP_LAUNCH_PARAM_BUFFER_SIZE || extra[4] != HIP_LAUNCH_PARAM_END)
		return false;
	a->buffer = extra[1];
	a->bytes = *(const size_t *)extra[3];
	return a->buffer;
}

// The runtime counts the threads along an axis in 32 bits.
static bool too_many(unsigned blocks, unsigned threads)
{
	return (uint64_t)blocks * threads > UINT32_MAX;
}

hipError_t hipModuleLaunchKernel(hipFunction_t function, unsigned gx, unsigned gy, unsigned gz, unsigned bx, unsigned by,
	unsigned bz, unsigned shared, hipStream_t stream, void **pointers, void **extra)
{
	struct fg_stream *s;
	struct arguments a;
	int status = enter_stream(__func__, stream, &s);
	if (status == FG_OK && s->object.context->device != fg_hip_device())
		status = FG_INVALID_HANDLE;
	if (status == FG_OK && (too_many(gx, bx) || too_many(gy, by) || too_many(gz, bz)))
		status = FG_RAW + hipErrorInvalidConfiguration;
	if (status == FG_OK && (shared > 64 * 1024 || !gather(pointers, extra, &a)))
		status = FG_INVALID_VALUE;
	if (status == FG_OK)
		status = fg_launch(function, (struct fg_dim){gx, gy, gz}, (struct fg_dim){bx, by, bz}, s, a.pointers, a.buffer, a.bytes);
	return fg_hip_leave(__func__, status);
}
