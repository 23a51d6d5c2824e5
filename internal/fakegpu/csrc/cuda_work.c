// The front of CUDA's driver API: streams, events, modules, launches.
#include "cuda_front.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

// ---- streams ----

static int enter_stream(const char *api, CUstream stream, struct fg_stream **out)
{
	struct fg_context *c;
	int status = fg_cuda_enter_device(api, &c);
	*out = status == FG_OK ? fg_stream_find(c, stream) : NULL;
	return status == FG_OK && !*out ? FG_INVALID_HANDLE : status;
}

static CUresult create(const char *api, CUstream *stream, unsigned flags)
{
	struct fg_context *c;
	struct fg_stream *s;
	int status = fg_cuda_enter_device(api, &c);
	if (status == FG_OK)
		status = flags > CU_STREAM_NON_BLOCKING ? FG_INVALID_VALUE : fg_stream_new(c, flags == CU_STREAM_DEFAULT, &s);
	if (status == FG_OK)
		*stream = (CUstream)s;
	return fg_cuda_leave(api, status);
}

CUresult cuStreamCreate(CUstream *stream, unsigned flags)
{
	return create(__func__, stream, flags);
}

CUresult cuStreamCreateWithPriority(CUstream *stream, unsigned flags, int priority)
{
	(void)priority;
	return create(__func__, stream, flags);
}

CUresult cuStreamDestroy(CUstream stream)
{
	struct fg_context *c;
	int status = fg_cuda_enter_device(__func__, &c);
	struct fg_stream *s = fg_object_find(stream, FG_STREAM);
	if (status == FG_OK && !s)
		status = FG_INVALID_HANDLE;
	if (status == FG_OK)
		fg_stream_close(s);
	return fg_cuda_leave(__func__, status);
}

CUresult cuStreamSynchronize(CUstream stream)
{
	struct fg_stream *s;
	int status = enter_stream(__func__, stream, &s);
	if (status == FG_OK)
		status = fg_stream_synchronize(s);
	return fg_cuda_leave(__func__, status);
}

CUresult cuStreamQuery(CUstream stream)
{
	struct fg_stream *s;
	int status = enter_stream(__func__, stream, &s);
	if (status == FG_OK)
		status = fg_stream_query(s);
	return fg_cuda_leave(__func__, status);
}

CUresult cuStreamWaitEvent(CUstream stream, CUevent event, unsigned flags)
{
	struct fg_stream *s;
	int status = enter_stream(__func__, stream, &s);
	if (status == FG_OK)
		status = flags ? FG_INVALID_VALUE : fg_stream_wait_event(s, event);
	return fg_cuda_leave(__func__, status);
}

CUresult cuStreamGetCtx(CUstream stream, CUcontext *context)
{
	struct fg_context *c;
	int status = fg_cuda_enter_device(__func__, &c);
	struct fg_stream *s = fg_object_find(stream, FG_STREAM);
	if (status == FG_OK && !s && (uintptr_t)stream > 2)
		status = FG_INVALID_HANDLE;
	if (status == FG_OK)
		*context = (CUcontext)(s ? s->object.context : c);
	return fg_cuda_leave(__func__, status);
}

// ---- events ----

CUresult cuEventCreate(CUevent *event, unsigned flags)
{
	struct fg_context *c;
	struct fg_event *e;
	int status = fg_cuda_enter_device(__func__, &c);
	if (status == FG_OK)
		status = flags > 7 ? FG_INVALID_VALUE : fg_event_new(c, !(flags & CU_EVENT_DISABLE_TIMING), &e);
	if (status == FG_OK)
		*event = (CUevent)e;
	return fg_cuda_leave(__func__, status);
}

CUresult cuEventDestroy(CUevent event)
{
	struct fg_context *c;
	int status = fg_cuda_enter_device(__func__, &c);
	if (status == FG_OK)
		status = fg_event_close(event);
	return fg_cuda_leave(__func__, status);
}

CUresult cuEventRecord(CUevent event, CUstream stream)
{
	struct fg_stream *s;
	int status = enter_stream(__func__, stream, &s);
	if (status == FG_OK)
		status = fg_event_record(event, s);
	return fg_cuda_leave(__func__, status);
}

CUresult cuEventQuery(CUevent event)
{
	struct fg_context *c;
	int status = fg_cuda_enter_device(__func__, &c);
	if (status == FG_OK)
		status = fg_event_query(event);
	return fg_cuda_leave(__func__, status);
}

CUresult cuEventSynchronize(CUevent event)
{
	struct fg_context *c;
	int status = fg_cuda_enter_device(__func__, &c);
	if (status == FG_OK)
		status = fg_event_synchronize(event);
	return fg_cuda_leave(__func__, status);
}

CUresult cuEventElapsedTime(float *ms, CUevent from, CUevent to)
{
	struct fg_context *c;
	int status = fg_cuda_enter_device(__func__, &c);
	if (status == FG_OK)
		status = fg_event_elapsed(from, to, ms);
	return fg_cuda_leave(__func__, status);
}

// ---- modules ----

// Where the options of a load want the compiler's errors, and how long they were.
struct log {
	char *text;
	size_t size;
	void **length;
};

static struct log error_log(unsigned count, const CUjit_option *options, void **values)
{
	struct log log = {NULL, 0, NULL};
	for (unsigned i = 0; i < count; i++) {
		if (options[i] == CU_JIT_ERROR_LOG_BUFFER) {
			log.text = values[i];
		} else if (options[i] == CU_JIT_ERROR_LOG_BUFFER_SIZE_BYTES) {
			log.size = (uintptr_t)values[i];
			log.length = &values[i];
		}
	}
	return log;
}

static CUresult load(const char *api, CUmodule *module, const void *image, struct log log)
{
	struct fg_context *c;
	struct fg_module *m;
	int status = fg_cuda_enter_device(api, &c);
	if (log.text && log.size)
		log.text[0] = 0;
	if (status == FG_OK)
		status = fg_module_load_ptx(c, image, log.text, log.size, &m);
	if (status == FG_OK)
		*module = (CUmodule)m;
	if (log.text && log.size && log.length)
		*log.length = (void *)strlen(log.text);
	return fg_cuda_leave(api, status);
}

CUresult cuModuleLoadData(CUmodule *module, const void *image)
{
	return load(__func__, module, image, (struct log){NULL, 0, NULL});
}

CUresult cuModuleLoadDataEx(CUmodule *module, const void *image, unsigned count, CUjit_option *options, void **values)
{
	return load(__func__, module, image, error_log(count, options, values));
}

static char *read_file(const char *name)
{
	FILE *f = fopen(name, "rb");
	char *text = NULL;
	size_t n = 0;
	if (!f)
		return NULL;
	for (size_t got = 1; got > 0; n += got) {
		text = realloc(text, n + 4096 + 1);
		got = fread(text + n, 1, 4096, f);
	}
	fclose(f);
	text[n] = 0;
	return text;
}

CUresult cuModuleLoad(CUmodule *module, const char *file)
{
	char *text = read_file(file);
	if (!text)
		return fg_cuda_leave(__func__, fg_cuda_enter(__func__) == FG_OK ? FG_FILE_NOT_FOUND : FG_NOT_INITIALIZED);
	CUresult code = load(__func__, module, text, (struct log){NULL, 0, NULL});
	free(text);
	return code;
}

CUresult cuModuleUnload(CUmodule module)
{
	struct fg_context *c;
	int status = fg_cuda_enter_device(__func__, &c);
	if (status == FG_OK)
		status = fg_module_unload(module);
	return fg_cuda_leave(__func__, status);
}

CUresult cuModuleGetFunction(CUfunction *function, CUmodule module, const char *name)
{
	struct fg_context *c;
	struct fg_function *f;
	int status = fg_cuda_enter_device(__func__, &c);
	if (status == FG_OK)
		status = fg_module_function(module, name, &f);
	if (status == FG_OK)
		*function = (CUfunction)f;
	return fg_cuda_leave(__func__, status);
}

static int attribute(const struct fg_function *f, CUfunction_attribute a)
{
	switch (a) {
	case CU_FUNC_ATTRIBUTE_MAX_THREADS_PER_BLOCK: return (int)f->max_threads;
	case CU_FUNC_ATTRIBUTE_NUM_REGS: return 32;
	case CU_FUNC_ATTRIBUTE_PTX_VERSION:
	case CU_FUNC_ATTRIBUTE_BINARY_VERSION: return (int)fg_settings.cc;
	default: return 0;
	}
}

CUresult cuFuncGetAttribute(int *value, CUfunction_attribute a, CUfunction function)
{
	int status = fg_cuda_enter(__func__);
	struct fg_function *f = fg_object_find(function, FG_FUNCTION);
	if (status == FG_OK && !f)
		status = FG_INVALID_HANDLE;
	if (status == FG_OK)
		*value = attribute(f, a);
	return fg_cuda_leave(__func__, status);
}

// ---- launches ----

struct arguments {
	void **pointers;
	const void *buffer;
	size_t bytes;
};

// Arguments are either in the array of pointers or in the buffer that extra names.
static bool gather(void **pointers, void **extra, struct arguments *a)
{
	*a = (struct arguments){pointers, NULL, 0};
	if (!extra)
		return true;
	for (; *extra != CU_LAUNCH_PARAM_END; extra += 2) {
		if (*extra == CU_LAUNCH_PARAM_BUFFER_POINTER)
			a->buffer = extra[1];
		else if (*extra == CU_LAUNCH_PARAM_BUFFER_SIZE)
			a->bytes = *(const size_t *)extra[1];
		else
			return false;
	}
	return !pointers && a->buffer;
}

CUresult cuLaunchKernel(CUfunction function, unsigned gx, unsigned gy, unsigned gz, unsigned bx, unsigned by, unsigned bz,
	unsigned shared, CUstream stream, void **pointers, void **extra)
{
	struct fg_stream *s;
	struct arguments a;
	int status = enter_stream(__func__, stream, &s);
	if (status == FG_OK && (shared > 48 * 1024 || !gather(pointers, extra, &a)))
		status = FG_INVALID_VALUE;
	if (status == FG_OK)
		status = fg_launch(function, (struct fg_dim){gx, gy, gz}, (struct fg_dim){bx, by, bz}, s, a.pointers, a.buffer, a.bytes);
	return fg_cuda_leave(__func__, status);
}
