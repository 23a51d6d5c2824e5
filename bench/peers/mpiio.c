// Schemes over MPI-IO.

#include "peer.h"

#include <mpi.h>

static int check(job *j, const char *what, int code) {
	if (code == MPI_SUCCESS) return 0;
	char text[MPI_MAX_ERROR_STRING];
	int n = 0;
	MPI_Error_string(code, text, &n);
	return fail(j, "%s: %.*s", what, n, text);
}

static int open_view(job *j, const char *path, int mode, MPI_File *file, MPI_Datatype *view) {
	int size[3], own[3], low[3];
	for (int i = 0; i < 3; i++) // C order: z first
		size[i] = (int)j->size[2 - i], own[i] = (int)j->own[2 - i], low[i] = (int)j->low[2 - i];
	MPI_Comm comm = MPI_Comm_f2c((MPI_Fint)j->comm);
	int bad = check(j, "MPI_Type_create_subarray",
		MPI_Type_create_subarray(3, size, own, low, MPI_ORDER_C, MPI_DOUBLE, view));
	if (!bad) bad = check(j, "MPI_Type_commit", MPI_Type_commit(view));
	if (!bad) bad = check(j, "MPI_File_open", MPI_File_open(comm, path, mode, MPI_INFO_NULL, file));
	if (!bad)
		bad = check(j, "MPI_File_set_view",
			MPI_File_set_view(*file, 0, MPI_DOUBLE, *view, "native", MPI_INFO_NULL));
	return bad;
}

static int write_field(job *j, int64_t f, const double *cells) {
	MPI_File file;
	MPI_Datatype view;
	int bad = open_view(j, j->paths[f], MPI_MODE_CREATE | MPI_MODE_WRONLY, &file, &view);
	j->offsets[f] = 0;
	if (!bad)
		bad = check(j, "MPI_File_write_all",
			MPI_File_write_all(file, cells, (int)owned(j), MPI_DOUBLE, MPI_STATUS_IGNORE));
	if (!bad && j->sync) bad = check(j, "MPI_File_sync", MPI_File_sync(file));
	if (!bad) bad = check(j, "MPI_File_close", MPI_File_close(&file));
	if (!bad) MPI_Type_free(&view);
	return bad;
}

static int read_field(job *j, int64_t f, double *cells) {
	MPI_File file;
	MPI_Datatype view;
	int bad = open_view(j, j->paths[f], MPI_MODE_RDONLY, &file, &view);
	if (!bad)
		bad = check(j, "MPI_File_read_all",
			MPI_File_read_all(file, cells, (int)owned(j), MPI_DOUBLE, MPI_STATUS_IGNORE));
	if (!bad) bad = check(j, "MPI_File_close", MPI_File_close(&file));
	if (!bad) MPI_Type_free(&view);
	return bad;
}

// common_save is what programs without a library do: a fresh vector per field, a
// triple loop, one collective write.
int common_save(job *j) {
	for (int64_t f = 0; f < j->fields; f++) {
		double *cells = malloc((size_t)owned(j) * 8);
		if (cells == NULL) return fail(j, "out of memory");
		gather_loop(j, cells, j->padded[f]);
		int bad = write_field(j, f, cells);
		free(cells);
		if (bad) return bad;
	}
	return 0;
}

int common_load(job *j) {
	for (int64_t f = 0; f < j->fields; f++) {
		double *cells = malloc((size_t)owned(j) * 8);
		if (cells == NULL) return fail(j, "out of memory");
		int bad = read_field(j, f, cells);
		if (!bad) scatter_loop(j, j->padded[f], cells);
		free(cells);
		if (bad) return bad;
	}
	return 0;
}

// rows_save is the same with what costs nothing to do better: a buffer that is
// kept, and memcpy per row.
int rows_save(job *j) {
	double *cells = keep(owned(j));
	if (cells == NULL) return fail(j, "out of memory");
	for (int64_t f = 0; f < j->fields; f++) {
		gather_rows(j, cells, j->padded[f]);
		if (write_field(j, f, cells)) return 1;
	}
	return 0;
}

int rows_load(job *j) {
	double *cells = keep(owned(j));
	if (cells == NULL) return fail(j, "out of memory");
	for (int64_t f = 0; f < j->fields; f++) {
		if (read_field(j, f, cells)) return 1;
		scatter_rows(j, j->padded[f], cells);
	}
	return 0;
}

void release(void) { forget(); }
