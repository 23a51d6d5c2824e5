// PnetCDF: one CDF-5 file, one variable per field, all written by one aggregated
// call. CDF files are big-endian.

#include "peer.h"

#include <mpi.h>
#include <pnetcdf.h>

static int check(job *j, const char *what, int code) {
	return code == NC_NOERR ? 0 : fail(j, "%s: %s", what, ncmpi_strerror(code));
}

static void box(const job *j, MPI_Offset low[3], MPI_Offset own[3]) {
	for (int i = 0; i < 3; i++) low[i] = j->low[2 - i], own[i] = j->own[2 - i];
}

int pnetcdf_save(job *j) {
	double *cells = keep(owned(j));
	if (cells == NULL) return fail(j, "out of memory");
	MPI_Comm comm = MPI_Comm_f2c((MPI_Fint)j->comm);
	MPI_Offset low[3], own[3];
	box(j, low, own);
	int file, dims[3], bad;
	bad = check(j, "ncmpi_create", ncmpi_create(comm, j->paths[0], NC_CLOBBER | NC_64BIT_DATA, MPI_INFO_NULL, &file));
	if (bad) return bad;
	int *variables = malloc((size_t)j->fields * sizeof *variables);
	ncmpi_def_dim(file, "z", j->size[2], &dims[0]);
	ncmpi_def_dim(file, "y", j->size[1], &dims[1]);
	ncmpi_def_dim(file, "x", j->size[0], &dims[2]);
	for (int64_t f = 0; f < j->fields && !bad; f++) {
		char name[32];
		snprintf(name, sizeof name, "f%d", (int)f);
		bad = check(j, "ncmpi_def_var", ncmpi_def_var(file, name, NC_DOUBLE, 3, dims, &variables[f]));
	}
	if (!bad) bad = check(j, "ncmpi_enddef", ncmpi_enddef(file));
	for (int64_t f = 0; f < j->fields && !bad; f++) {
		MPI_Offset offset = 0;
		ncmpi_inq_varoffset(file, variables[f], &offset);
		j->offsets[f] = offset;
		gather_rows(j, cells, j->padded[f]);
		bad = check(j, "ncmpi_put_vara_double_all", ncmpi_put_vara_double_all(file, variables[f], low, own, cells));
	}
	if (j->sync && !bad) bad = check(j, "ncmpi_sync", ncmpi_sync(file));
	int closed = ncmpi_close(file);
	free(variables);
	return bad ? bad : check(j, "ncmpi_close", closed);
}

int pnetcdf_load(job *j) {
	double *cells = keep(owned(j));
	if (cells == NULL) return fail(j, "out of memory");
	MPI_Offset low[3], own[3];
	box(j, low, own);
	int file;
	int bad = check(j, "ncmpi_open",
		ncmpi_open(MPI_Comm_f2c((MPI_Fint)j->comm), j->paths[0], NC_NOWRITE, MPI_INFO_NULL, &file));
	if (bad) return bad;
	for (int64_t f = 0; f < j->fields && !bad; f++) {
		char name[32];
		int variable;
		snprintf(name, sizeof name, "f%d", (int)f);
		bad = check(j, "ncmpi_inq_varid", ncmpi_inq_varid(file, name, &variable));
		if (!bad) bad = check(j, "ncmpi_get_vara_double_all", ncmpi_get_vara_double_all(file, variable, low, own, cells));
		if (!bad) scatter_rows(j, j->padded[f], cells);
	}
	int closed = ncmpi_close(file);
	return bad ? bad : check(j, "ncmpi_close", closed);
}

void release(void) { forget(); }
