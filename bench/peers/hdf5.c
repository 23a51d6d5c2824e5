// Parallel HDF5: one file, one contiguous dataset per field, collective transfers.
//
// The library can pick the cells out of the padded storage itself. For writing that is
// faster where the rank has whole rows of the file (slabs in shared memory: 1.5 times as
// fast), and slower where x is split (0.85); for reading it is much slower. There the
// cells go through a buffer that is kept.

#include "peer.h"

#include <hdf5.h>
#include <mpi.h>

static int wrong(job *j, const char *what) { return fail(j, "HDF5: %s failed", what); }

static hid_t file_access(job *j) {
	hid_t access = H5Pcreate(H5P_FILE_ACCESS);
	H5Pset_fapl_mpio(access, MPI_Comm_f2c((MPI_Fint)j->comm), MPI_INFO_NULL);
	H5Pset_libver_bounds(access, H5F_LIBVER_LATEST, H5F_LIBVER_LATEST);
	H5Pset_all_coll_metadata_ops(access, 1);
	H5Pset_coll_metadata_write(access, 1);
	return access;
}

// select_box selects the box in the file's space and returns the space of the memory:
// the padded storage or the buffer.
static hid_t select_box(job *j, hid_t space, int direct) {
	hsize_t own[3], low[3], padded[3], halo[3];
	for (int i = 0; i < 3; i++) {
		own[i] = (hsize_t)j->own[2 - i], low[i] = (hsize_t)j->low[2 - i];
		padded[i] = (hsize_t)(j->own[2 - i] + 2 * j->halo), halo[i] = (hsize_t)j->halo;
	}
	H5Sselect_hyperslab(space, H5S_SELECT_SET, low, NULL, own, NULL);
	if (direct) {
		hid_t memory = H5Screate_simple(3, padded, NULL);
		H5Sselect_hyperslab(memory, H5S_SELECT_SET, halo, NULL, own, NULL);
		return memory;
	}
	hsize_t cells = (hsize_t)owned(j);
	return H5Screate_simple(1, &cells, NULL);
}

static void name_of(char name[32], int64_t f) { snprintf(name, 32, "f%d", (int)f); }

int hdf5_save(job *j) {
	int direct = j->own[0] == j->size[0];
	double *cells = keep(direct ? 1 : owned(j));
	if (cells == NULL) return fail(j, "out of memory");
	hid_t access = file_access(j);
	hid_t file = H5Fcreate(j->paths[0], H5F_ACC_TRUNC, H5P_DEFAULT, access);
	H5Pclose(access);
	if (file < 0) return wrong(j, "H5Fcreate");
	hsize_t size[3] = {(hsize_t)j->size[2], (hsize_t)j->size[1], (hsize_t)j->size[0]};
	hid_t transfer = H5Pcreate(H5P_DATASET_XFER), make = H5Pcreate(H5P_DATASET_CREATE);
	H5Pset_dxpl_mpio(transfer, H5FD_MPIO_COLLECTIVE);
	H5Pset_fill_time(make, H5D_FILL_TIME_NEVER);
	int bad = 0;
	for (int64_t f = 0; f < j->fields && !bad; f++) {
		char name[32];
		name_of(name, f);
		hid_t space = H5Screate_simple(3, size, NULL);
		hid_t set = H5Dcreate2(file, name, H5T_IEEE_F64LE, space, H5P_DEFAULT, make, H5P_DEFAULT);
		if (set < 0) {
			bad = wrong(j, "H5Dcreate2");
		} else {
			hid_t memory = select_box(j, space, direct);
			const double *from = direct ? j->padded[f] : cells;
			if (!direct) gather_rows(j, cells, j->padded[f]);
			if (H5Dwrite(set, H5T_NATIVE_DOUBLE, memory, space, transfer, from) < 0) bad = wrong(j, "H5Dwrite");
			j->offsets[f] = (int64_t)H5Dget_offset(set);
			H5Sclose(memory);
			H5Dclose(set);
		}
		H5Sclose(space);
	}
	H5Pclose(transfer);
	H5Pclose(make);
	// A flush of this driver ends in MPI_File_sync.
	if (j->sync && !bad && H5Fflush(file, H5F_SCOPE_GLOBAL) < 0) bad = wrong(j, "H5Fflush");
	if (H5Fclose(file) < 0 && !bad) bad = wrong(j, "H5Fclose");
	return bad;
}

int hdf5_load(job *j) {
	double *cells = keep(owned(j));
	if (cells == NULL) return fail(j, "out of memory");
	hid_t access = file_access(j);
	hid_t file = H5Fopen(j->paths[0], H5F_ACC_RDONLY, access);
	H5Pclose(access);
	if (file < 0) return wrong(j, "H5Fopen");
	hid_t transfer = H5Pcreate(H5P_DATASET_XFER);
	H5Pset_dxpl_mpio(transfer, H5FD_MPIO_COLLECTIVE);
	int bad = 0;
	for (int64_t f = 0; f < j->fields && !bad; f++) {
		char name[32];
		name_of(name, f);
		hid_t set = H5Dopen2(file, name, H5P_DEFAULT);
		if (set < 0) {
			bad = wrong(j, "H5Dopen2");
			break;
		}
		hid_t space = H5Dget_space(set), memory = select_box(j, space, 0);
		if (H5Dread(set, H5T_NATIVE_DOUBLE, memory, space, transfer, cells) < 0) bad = wrong(j, "H5Dread");
		if (!bad) scatter_rows(j, j->padded[f], cells);
		H5Sclose(memory);
		H5Sclose(space);
		H5Dclose(set);
	}
	H5Pclose(transfer);
	if (H5Fclose(file) < 0 && !bad) bad = wrong(j, "H5Fclose");
	return bad;
}

void release(void) { forget(); }
