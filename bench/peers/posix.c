// The yardsticks without MPI: contiguous pwrite and pread, and copies in memory.

#define _GNU_SOURCE
#include "peer.h"

#include <fcntl.h>
#include <immintrin.h>
#include <time.h>
#include <unistd.h>

static int write_all(job *j, int fd, const char *p, int64_t n, int64_t offset) {
	while (n > 0) {
		ssize_t w = pwrite(fd, p, (size_t)n, offset);
		if (w < 0 && errno == EINTR) continue;
		if (w < 0) return fail(j, "pwrite: %s", strerror(errno));
		p += w, n -= w, offset += w;
	}
	return 0;
}

static int read_all(job *j, int fd, char *p, int64_t n, int64_t offset) {
	while (n > 0) {
		ssize_t r = pread(fd, p, (size_t)n, offset);
		if (r < 0 && errno == EINTR) continue;
		if (r < 0) return fail(j, "pread: %s", strerror(errno));
		if (r == 0) return fail(j, "pread: the file is too short");
		p += r, n -= r, offset += r;
	}
	return 0;
}

// save writes the packed shares at the given offset of path(f). All files are
// written before the first is synced: the disk is never waited for while there is
// something to write.
static int save(job *j, int own_file) {
	int *fds = malloc((size_t)j->fields * sizeof *fds);
	int64_t f, opened = 0;
	int bad = fds == NULL;
	for (f = 0; f < j->fields && !bad; f++) {
		char path[4096];
		snprintf(path, sizeof path, own_file ? "%s.%d" : "%s", j->paths[f], (int)j->rank);
		fds[f] = open(path, O_CREAT | O_WRONLY | O_CLOEXEC, 0666);
		if (fds[f] < 0) {
			bad = fail(j, "open %s: %s", path, strerror(errno));
			break;
		}
		opened++;
		j->offsets[f] = 0;
		bad = write_all(j, fds[f], (const char *)j->packed[f], j->share * 8, own_file ? 0 : j->first * 8);
	}
	for (f = 0; f < opened; f++) {
		if (j->sync && !bad && fsync(fds[f]) != 0) bad = fail(j, "fsync: %s", strerror(errno));
		if (close(fds[f]) != 0 && !bad) bad = fail(j, "close: %s", strerror(errno));
	}
	free(fds);
	return bad;
}

// floor_save: every rank writes its contiguous share of one file per field.
int floor_save(job *j) { return save(j, 0); }

// separate_save: every rank writes a file of its own per field.
int separate_save(job *j) { return save(j, 1); }

// floor_load: every rank reads its contiguous share of each file into the packed
// buffer.
int floor_load(job *j) {
	for (int64_t f = 0; f < j->fields; f++) {
		int fd = open(j->paths[f], O_RDONLY | O_CLOEXEC);
		if (fd < 0) return fail(j, "open %s: %s", j->paths[f], strerror(errno));
		int bad = read_all(j, fd, (char *)j->packed[f], j->share * 8, j->first * 8);
		close(fd);
		if (bad) return bad;
	}
	return 0;
}

// Copies in memory. They take field 0: padded[0] is the source, packed[0] the
// destination (share cells).

int copy_large(job *j) {
	memcpy(j->packed[0], j->padded[0], (size_t)j->share * 8);
	return 0;
}

// Streaming stores from aligned blocks; the ends are copied plainly.
int copy_stream(job *j) {
	const char *src = (const char *)j->padded[0];
	char *dst = (char *)j->packed[0];
	int64_t n = j->share * 8, head = -(intptr_t)dst & 63;
	if (head > n) head = n;
	memcpy(dst, src, (size_t)head);
	dst += head, src += head, n -= head;
	for (; n >= 64; n -= 64, dst += 64, src += 64) {
#if defined(__AVX512F__)
		_mm512_stream_si512((void *)dst, _mm512_loadu_si512(src));
#elif defined(__AVX__)
		_mm256_stream_si256((void *)dst, _mm256_loadu_si256((const void *)src));
		_mm256_stream_si256((void *)(dst + 32), _mm256_loadu_si256((const void *)(src + 32)));
#else
		for (int i = 0; i < 64; i += 16)
			_mm_stream_si128((void *)(dst + i), _mm_loadu_si128((const void *)(src + i)));
#endif
	}
	_mm_sfence();
	memcpy(dst, src, (size_t)n);
	return 0;
}

int pack_naive(job *j) {
	gather_loop(j, j->packed[0], j->padded[0]);
	return 0;
}

int pack_rows(job *j) {
	gather_rows(j, j->packed[0], j->padded[0]);
	return 0;
}

// chunks_write: pwrite of chunks of 1 MiB from a large buffer into a file whose
// pages exist already.
int chunks_write(job *j) {
	int fd = open(j->paths[0], O_WRONLY | O_CLOEXEC);
	if (fd < 0) return fail(j, "open %s: %s", j->paths[0], strerror(errno));
	int bad = 0;
	j->offsets[0] = 0;
	for (int64_t at = 0, total = j->share * 8; at < total && !bad; at += 1 << 20)
		bad = write_all(j, fd, (const char *)j->packed[0] + at, total - at < 1 << 20 ? total - at : 1 << 20, at);
	close(fd);
	return bad;
}

void release(void) { forget(); }
