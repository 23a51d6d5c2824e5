// Uses the fake drivers from C, so that sanitizers can watch them: both fronts over one
// core, linked into one program. Prints nothing and returns 0 if all is as it must be.
//
//	selftest FILE.ptx FILE.hsaco LIBRARY   the project's kernels, and for the host
#include "code_object.h"
#include "core.h"
#include "ptx.h"

#include <cuda.h>
#include <hip.h>

#include <elf.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

int fakegpu_set(const char *name, const char *value);
int fakegpu_kernels(const char *path);
void fakegpu_fail(const char *api, long nth, int code);
void fakegpu_reset(void);
int64_t fakegpu_count(const char *what);
int64_t fakegpu_misuse(char *text, size_t size);

#define CHECK(condition) do { \
	if (!(condition)) { \
		fprintf(stderr, "selftest.c:%d: %s\n", __LINE__, #condition); \
		exit(1); \
	} \
} while (0)

static const char *const modes[] = {"lazy", "delayed", "eager"};

static char *read_file(const char *name, size_t *size)
{
	FILE *f = fopen(name, "rb");
	CHECK(f);
	fseek(f, 0, SEEK_END);
	*size = (size_t)ftell(f);
	rewind(f);
	char *data = calloc(1, *size + 1);
	CHECK(fread(data, 1, *size, f) == *size);
	fclose(f);
	return data;
}

static int64_t misuses(void)
{
	char text[256];
	return fakegpu_misuse(text, sizeof text);
}

// ---- many threads ----

enum { THREADS = 4, ROUNDS = 5, CELLS = 1000 };

struct shared {
	CUcontext context;
	CUfunction pack;
	CUevent event;
	CUstream stream;
};

static void pack(CUfunction f, CUdeviceptr dst, CUdeviceptr src, CUstream s)
{
	long long zero = 0, one = 1, n = CELLS;
	void *arguments[] = {&dst, &src, &zero, &zero, &zero, &n, &one, &one, &n, &n};
	CHECK(cuLaunchKernel(f, (CELLS + 255) / 256, 1, 1, 256, 1, 1, 0, s, arguments, NULL) == CUDA_SUCCESS);
}

static void one_round(const struct shared *shared)
{
	CUdeviceptr a, b;
	CUstream s;
	double *pinned, pageable[CELLS];
	size_t bytes = sizeof pageable;
	CHECK(cuMemAlloc(&a, bytes) == CUDA_SUCCESS);
	CHECK(cuMemAlloc(&b, bytes) == CUDA_SUCCESS);
	CHECK(cuMemHostAlloc((void **)&pinned, bytes, 0) == CUDA_SUCCESS);
	CHECK(cuStreamCreate(&s, CU_STREAM_NON_BLOCKING) == CUDA_SUCCESS);
	for (int i = 0; i < CELLS; i++)
		pageable[i] = i;
	CHECK(cuMemcpyHtoDAsync(a, pageable, bytes, s) == CUDA_SUCCESS);
	memset(pageable, 0, bytes);
	CHECK(cuStreamWaitEvent(s, shared->event, 0) == CUDA_SUCCESS);
	pack(shared->pack, b, a, s);
	CHECK(cuEventRecord(shared->event, s) == CUDA_SUCCESS);
	CHECK(cuStreamWaitEvent(shared->stream, shared->event, 0) == CUDA_SUCCESS);
	CHECK(cuMemcpyDtoHAsync(pinned, b, bytes, s) == CUDA_SUCCESS);
	while (cuStreamQuery(s) == CUDA_ERROR_NOT_READY)
		;
	CHECK(cuStreamSynchronize(s) == CUDA_SUCCESS);
	for (int i = 0; i < CELLS; i++)
		CHECK(pinned[i] == i);
	CHECK(cuStreamDestroy(s) == CUDA_SUCCESS);
	CHECK(cuMemFreeHost(pinned) == CUDA_SUCCESS);
	CHECK(cuMemFree(b) == CUDA_SUCCESS);
	CHECK(cuMemFree(a) == CUDA_SUCCESS);
}

static void *rounds(void *arg)
{
	const struct shared *shared = arg;
	CHECK(cuCtxSetCurrent(shared->context) == CUDA_SUCCESS);
	for (int i = 0; i < ROUNDS; i++)
		one_round(shared);
	return NULL;
}

static void test_threads(const char *ptx)
{
	struct shared shared;
	CUmodule module;
	pthread_t threads[THREADS];
	CHECK(cuCtxCreate(&shared.context, 0, 0) == CUDA_SUCCESS);
	CHECK(cuModuleLoadData(&module, ptx) == CUDA_SUCCESS);
	CHECK(cuModuleGetFunction(&shared.pack, module, "pack3d") == CUDA_SUCCESS);
	CHECK(cuEventCreate(&shared.event, 0) == CUDA_SUCCESS);
	CHECK(cuStreamCreate(&shared.stream, 0) == CUDA_SUCCESS);
	for (int i = 0; i < THREADS; i++)
		CHECK(pthread_create(&threads[i], NULL, rounds, &shared) == 0);
	for (int i = 0; i < THREADS; i++)
		pthread_join(threads[i], NULL);
	CHECK(cuCtxSynchronize() == CUDA_SUCCESS);
	CHECK(fakegpu_count("allocations") == 0 && fakegpu_count("pinned") == 0);
	CHECK(cuCtxDestroy(shared.context) == CUDA_SUCCESS);
	CHECK(fakegpu_count("streams") == 0 && fakegpu_count("events") == 0 && fakegpu_count("modules") == 0);
	CHECK(misuses() == 0);
}

// ---- resets in the middle of work ----

static void *use_until_reset(void *arg)
{
	CUcontext c = arg;
	CUdeviceptr p;
	CHECK(cuCtxSetCurrent(c) == CUDA_SUCCESS || fakegpu_count("contexts") == 0);
	while (cuMemAlloc(&p, 64) == CUDA_SUCCESS && cuMemsetD8Async(p, 1, 64, NULL) == CUDA_SUCCESS && cuCtxSynchronize() == CUDA_SUCCESS && cuMemFree(p) == CUDA_SUCCESS)
		;
	return NULL;
}

static void test_reset(const char *ptx)
{
	CUcontext c;
	CUmodule module;
	CUfunction f;
	CUstream s;
	CUdeviceptr p;
	pthread_t thread;
	CHECK(cuCtxCreate(&c, 0, 0) == CUDA_SUCCESS);
	CHECK(cuModuleLoadData(&module, ptx) == CUDA_SUCCESS);
	CHECK(cuModuleGetFunction(&f, module, "pack3d") == CUDA_SUCCESS);
	CHECK(cuStreamCreate(&s, 0) == CUDA_SUCCESS);
	CHECK(cuMemAlloc(&p, 8 * CELLS) == CUDA_SUCCESS);
	CHECK(pthread_create(&thread, NULL, use_until_reset, c) == 0);
	pack(f, p, p, s);
	pack(f, p, p, s);
	CHECK(cuModuleUnload(module) == CUDA_SUCCESS); // the kernel is still queued
	fakegpu_reset();
	pthread_join(thread, NULL);
	CHECK(cuMemFree(p) != CUDA_SUCCESS);
	CHECK(fakegpu_count("used bytes") == 0);
	misuses(); // of the other thread, whose memory was busy
}

// ---- what is wrong with memory ----

static void test_canaries(void)
{
	CUcontext c;
	CUdeviceptr p;
	CHECK(cuCtxCreate(&c, 0, 0) == CUDA_SUCCESS);
	for (int side = 0; side < 2; side++) {
		CHECK(cuMemAlloc(&p, 100) == CUDA_SUCCESS);
		char *bytes = fg_bytes((void *)(uintptr_t)p);
		bytes[side ? 100 : -1] = 0;
		CHECK(cuMemFree(p) == CUDA_SUCCESS);
		CHECK(misuses() == 1);
	}
	CHECK(cuCtxDestroy(c) == CUDA_SUCCESS);
}

static void test_sticky(const char *ptx)
{
	CUcontext c;
	CUmodule module;
	CUfunction f;
	CUdeviceptr p;
	CHECK(cuCtxCreate(&c, 0, 0) == CUDA_SUCCESS);
	CHECK(cuModuleLoadData(&module, ptx) == CUDA_SUCCESS);
	CHECK(cuModuleGetFunction(&f, module, "pack3d") == CUDA_SUCCESS);
	CHECK(cuMemAlloc(&p, 8 * CELLS) == CUDA_SUCCESS);
	pack(f, p, p + 8, NULL); // reads past the end
	CHECK(cuCtxSynchronize() == CUDA_ERROR_ILLEGAL_ADDRESS);
	CHECK(cuMemFree(p) == CUDA_ERROR_ILLEGAL_ADDRESS);
	CHECK(cuCtxDestroy(c) == CUDA_SUCCESS);
}

// ---- HIP ----

static void test_hip(const char *image)
{
	hipModule_t module;
	hipFunction_t f;
	void *a, *b;
	double cells[CELLS];
	long long zero = 0, one = 1, n = CELLS;
	void *arguments[] = {&b, &a, &zero, &zero, &zero, &n, &one, &one, &n, &n};
	for (int i = 0; i < CELLS; i++)
		cells[i] = i;
	CHECK(hipMalloc(&a, sizeof cells) == hipSuccess && hipMalloc(&b, sizeof cells) == hipSuccess);
	CHECK(hipMemcpy(a, cells, sizeof cells, hipMemcpyHostToDevice) == hipSuccess);
	CHECK(hipModuleLoadData(&module, image) == hipSuccess);
	CHECK(hipModuleGetFunction(&f, module, "pack3d") == hipSuccess);
	CHECK(hipModuleLaunchKernel(f, 4, 1, 1, 256, 1, 1, 0, NULL, arguments, NULL) == hipSuccess);
	memset(cells, 0, sizeof cells);
	CHECK(hipMemcpy(cells, b, sizeof cells, hipMemcpyDeviceToHost) == hipSuccess);
	for (int i = 0; i < CELLS; i++)
		CHECK(cells[i] == i);
	CHECK(hipFree(b) == hipSuccess);
	CHECK(hipModuleLaunchKernel(f, 4, 1, 1, 256, 1, 1, 0, NULL, arguments, NULL) == hipSuccess);
	CHECK(hipDeviceSynchronize() == hipErrorIllegalAddress); // b is gone
	CHECK(hipFree(a) == hipErrorIllegalAddress);
	CHECK(hipDeviceReset() == hipSuccess);
}

// ---- damaged images ----

#ifndef __SANITIZE_THREAD__ // these tests have but one thread

#ifndef DAMAGES
#define DAMAGES 500
#endif

static unsigned random_state = 1;

static unsigned below(unsigned n)
{
	return (unsigned)rand_r(&random_state) % n;
}

static const char *const pieces[] = {
	"{", "}", "[", "]", "(", ")", ";", ",", "|", "!", "@", "-", "+", ":", "/*", "//", "%p1", "%r1", "%rd1", ".reg", ".local", ".param",
	".align", "0", "4294967296", "99999999999999999999", "0d", "0f3F800000", "<", ">", "$L__BB0_2", "bra", "mov.b64", "ld.param.v4.f32",
};

static void damage(char *text, size_t size)
{
	for (unsigned n = 1 + below(4); n-- > 0;) {
		size_t at = below((unsigned)size);
		const char *piece = pieces[below(sizeof pieces / sizeof *pieces)];
		size_t length = strlen(piece);
		switch (below(3)) {
		case 0: text[at] = (char)below(256); break;
		case 1: memcpy(text + at, piece, length < size - at ? length : size - at); break;
		case 2: memmove(text + at, text + at / 2, size - at); break;
		}
	}
}

// The copy is exactly as long as the text, so that reading past it shows.
static void test_damaged_ptx(const char *ptx, size_t size)
{
	char error[200];
	for (int i = 0; i < DAMAGES; i++) {
		char *copy = malloc(size + 1);
		memcpy(copy, ptx, size + 1);
		damage(copy, size);
		struct fg_ptx *parsed;
		int status = fg_ptx_parse(copy, 82, 90, error, sizeof error, &parsed);
		if (status == FG_OK)
			fg_ptx_free(parsed);
		else
			CHECK(strlen(error) > 0);
		free(copy);
	}
}

static void test_damaged_notes(const char *image, size_t size)
{
	Elf64_Ehdr header;
	memcpy(&header, image, sizeof header);
	for (int i = 0; i < DAMAGES; i++) {
		char *copy = malloc(size);
		memcpy(copy, image, size);
		for (unsigned j = 0; j < header.e_phnum; j++) {
			Elf64_Phdr p;
			memcpy(&p, image + header.e_phoff + j * sizeof p, sizeof p);
			if (p.p_type == PT_NOTE)
				copy[p.p_offset + below((unsigned)p.p_filesz)] = (char)below(256);
		}
		struct fg_code_object *object;
		if (fg_code_object_read(copy, "gfx942", 6, &object) == FG_OK)
			fg_code_object_free(object);
		free(copy);
	}
}

#endif

int main(int argc, char **argv)
{
	CHECK(argc == 4);
	size_t ptx_size, image_size;
	char *ptx = read_file(argv[1], &ptx_size), *image = read_file(argv[2], &image_size);
	CHECK(cuInit(0) == CUDA_SUCCESS);
	CHECK(fakegpu_kernels(argv[3]));
	for (int i = 0; i < 3; i++) {
		fakegpu_reset();
		CHECK(fakegpu_set("MODE", modes[i]));
		test_threads(ptx);
		test_canaries();
		test_sticky(ptx);
		test_hip(image);
		for (int j = 0; j < 5; j++)
			test_reset(ptx);
	}
#ifndef __SANITIZE_THREAD__
	test_damaged_ptx(ptx, ptx_size);
	test_damaged_notes(image, image_size);
#endif
	fakegpu_reset();
	free(ptx);
	free(image);
	return 0;
}
