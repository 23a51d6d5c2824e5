// What the worker gives to a peer, and what it gets back. The worker has the
// same struct (job in ../worker/peers_linux.go): keep them alike.
//
// A peer is a function int peer(job *), called on all ranks at the same time, that
// writes or reads all fields. It returns 0, or not 0 with a text in job->message.
// It is timed from call to return. Each library has void release(void), which frees
// what its functions keep between calls.

#ifndef FIELDSTONE_BENCH_PEER_H
#define FIELDSTONE_BENCH_PEER_H

#include <errno.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

typedef struct {
	int64_t size[3];        // cells of the domain; x, y, z, x fastest
	int64_t low[3], own[3]; // this rank's box: first cell, extent
	int64_t halo;           // ghost cells on each side of all axes
	int64_t first, share;   // this rank's contiguous share of the file, in cells
	int64_t rank, ranks;
	int64_t comm;           // MPI_Fint
	int64_t fields;
	double *const *padded;    // per field: this rank's padded storage
	double *const *packed;    // per field: its contiguous share, packed; may repeat
	const char *const *paths; // per field; peers with one file for all take the first
	int64_t *offsets;         // out, per field: where the cells begin in their file
	int64_t sync;             // 1: durable on return
	char message[256];
} job;

static inline int fail(job *j, const char *format, ...) {
	va_list args;
	va_start(args, format);
	vsnprintf(j->message, sizeof j->message, format, args);
	va_end(args);
	return 1;
}

// The padded storage at the owned cell (0, y, z).
static inline double *row_at(const job *j, double *padded, int64_t y, int64_t z) {
	int64_t nx = j->own[0] + 2 * j->halo, ny = j->own[1] + 2 * j->halo;
	return padded + ((z + j->halo) * ny + y + j->halo) * nx + j->halo;
}

static inline int64_t owned(const job *j) { return j->own[0] * j->own[1] * j->own[2]; }

// The plain loops that a program without a library writes.
static inline void gather_loop(const job *j, double *dst, double *padded) {
	int64_t n = 0;
	for (int64_t z = 0; z < j->own[2]; z++)
		for (int64_t y = 0; y < j->own[1]; y++)
			for (int64_t x = 0; x < j->own[0]; x++)
				dst[n++] = row_at(j, padded, y, z)[x];
}

static inline void scatter_loop(const job *j, double *padded, const double *src) {
	int64_t n = 0;
	for (int64_t z = 0; z < j->own[2]; z++)
		for (int64_t y = 0; y < j->own[1]; y++)
			for (int64_t x = 0; x < j->own[0]; x++)
				row_at(j, padded, y, z)[x] = src[n++];
}

static inline void gather_rows(const job *j, double *dst, double *padded) {
	for (int64_t z = 0; z < j->own[2]; z++)
		for (int64_t y = 0; y < j->own[1]; y++, dst += j->own[0])
			memcpy(dst, row_at(j, padded, y, z), (size_t)j->own[0] * 8);
}

static inline void scatter_rows(const job *j, double *padded, const double *src) {
	for (int64_t z = 0; z < j->own[2]; z++)
		for (int64_t y = 0; y < j->own[1]; y++, src += j->own[0])
			memcpy(row_at(j, padded, y, z), src, (size_t)j->own[0] * 8);
}

// One buffer per library, grown as needed, its pages touched when it grows.
static double *kept;
static int64_t kept_cells;

static inline double *keep(int64_t cells) {
	if (cells > kept_cells) {
		free(kept);
		kept_cells = 0;
		kept = malloc((size_t)cells * 8);
		if (kept == NULL) return NULL;
		memset(kept, 1, (size_t)cells * 8);
		kept_cells = cells;
	}
	return kept;
}

static inline void forget(void) {
	free(kept);
	kept = NULL;
	kept_cells = 0;
}

#endif
