//go:build hdf5

#ifdef __linux__
#define _GNU_SOURCE // memfd_create
#endif
#include "library.h"
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#ifdef __linux__
#include <sys/mman.h>
#endif
#include <sys/stat.h>
#include <unistd.h>

// The library's cleaning up at the end of the process crashes on a file that it could
// not write, and Go programs end without it anyway. This comes before gonum's package
// starts the library.
__attribute__((constructor)) static void no_cleaning_up(void) { H5dont_atexit(); }

// The words of the first call that failed, one line per level, the call first.
static _Thread_local char words[8192];
static _Thread_local size_t word_count;
static _Thread_local int external_refused;
static _Thread_local H5E_auto2_t before;
static _Thread_local void *before_data;

static herr_t note(unsigned n, const H5E_error2_t *e, void *data) {
	const char *parts[2] = {n == 0 ? e->func_name : NULL, e->desc};
	(void)data;
	for (int i = 0; i < 2; i++) {
		if (parts[i] == NULL) continue;
		for (const char *p = parts[i]; *p && word_count < sizeof words - 2; p++)
			words[word_count++] = (unsigned char)*p < ' ' ? ' ' : *p;
		if (word_count < sizeof words - 1) words[word_count++] = '\n';
	}
	words[word_count] = 0;
	return 0;
}

// The library calls this when one of its calls fails, before the next one can
// clear what it has to say.
static herr_t failed(hid_t stack, void *data) {
	(void)stack;
	(void)data;
	if (word_count > 0) return 0;
	H5Ewalk2(H5E_DEFAULT, H5E_WALK_DOWNWARD, note, NULL);
	return 0;
}

void fs_reset(void) {
	words[0] = 0;
	word_count = 0;
	external_refused = 0;
}

void fs_begin(void) {
	unsigned second = 0;
	fs_reset();
	before = NULL;
	before_data = NULL;
	if (H5Eauto_is_v2(H5E_DEFAULT, &second) >= 0 && second) H5Eget_auto2(H5E_DEFAULT, &before, &before_data);
	H5Eset_auto2(H5E_DEFAULT, failed, NULL);
}

void fs_end(void) { H5Eset_auto2(H5E_DEFAULT, before, before_data); }
const char *fs_errors(void) { return words; }
int fs_refused_external(void) { return external_refused; }

// Files are locked by those who know when several processes may have them; the
// library's own locks fail on network filesystems that have none.
// The format of 1.8 is the oldest whose object headers carry checksums.
// Newer ones can be read.
static hid_t access_properties(H5F_libver_t newest) {
	hid_t p = H5Pcreate(H5P_FILE_ACCESS);
	if (p < 0) return p;
	if (H5Pset_libver_bounds(p, H5F_LIBVER_V18, newest) < 0 || H5Pset_fclose_degree(p, H5F_CLOSE_STRONG) < 0
#if H5_VERSION_GE(1, 10, 7)
	    || H5Pset_file_locking(p, 0, 1) < 0
#endif
	) {
		H5Pclose(p);
		return -1;
	}
	return p;
}

// keep_order lets a group know in which order its members came.
static herr_t keep_order(hid_t create) {
	return H5Pset_link_creation_order(create, H5P_CRT_ORDER_TRACKED);
}

hid_t fs_create(const char *name, int truncate) {
	hid_t access = access_properties(H5F_LIBVER_V18), create = H5Pcreate(H5P_FILE_CREATE), f = -1;
	if (access >= 0 && create >= 0 && H5Pset_obj_track_times(create, 0) >= 0 && keep_order(create) >= 0)
		f = H5Fcreate(name, truncate ? H5F_ACC_TRUNC : H5F_ACC_EXCL, create, access);
	if (create >= 0) H5Pclose(create);
	if (access >= 0) H5Pclose(access);
	return f;
}

hid_t fs_open(const char *name, int writable) {
	hid_t access = access_properties(H5F_LIBVER_LATEST), f;
	if (access < 0) return access;
	f = H5Fopen(name, writable ? H5F_ACC_RDWR : H5F_ACC_RDONLY, access);
	H5Pclose(access);
	return f;
}

// fs_descriptor is the file as the system knows it, or negative.
int fs_descriptor(hid_t file) {
	void *fd = NULL;
	if (H5Fget_vfd_handle(file, H5P_DEFAULT, &fd) < 0 || fd == NULL) return -1;
	return *(int *)fd;
}

// fs_end_of_file gives what the library allocated and what the file really has.
int fs_end_of_file(hid_t file, unsigned long long *allocated, unsigned long long *size) {
	hsize_t n;
	struct stat st;
	int fd = fs_descriptor(file);
	if (fd < 0 || H5Fget_filesize(file, &n) < 0) return -1;
	*allocated = n;
	if (fstat(fd, &st) < 0) return -1;
	*size = st.st_size;
	return 0;
}

int fs_sync(hid_t file, int *err) {
	int fd;
	*err = 0;
	if (H5Fflush(file, H5F_SCOPE_GLOBAL) < 0 || (fd = fs_descriptor(file)) < 0) return -1;
	if (fsync(fd) == 0) return 0;
	*err = errno;
	return -1;
}

// fs_abandon closes a file that can't be written. The library does not let go of a
// file that it can't flush, and its descriptor would keep the space of a full disk:
// what is left to write goes into memory.
int fs_abandon(hid_t file) {
#ifdef __linux__
	int fd = fs_descriptor(file), memory = memfd_create("abandoned", MFD_CLOEXEC);
	if (fd >= 0 && memory >= 0) dup2(memory, fd);
	if (memory >= 0) close(memory);
#endif
	return H5Fclose(file);
}

long fs_objects(hid_t file) { return (long)H5Fget_obj_count(file, H5F_OBJ_ALL | H5F_OBJ_LOCAL); }

// A link to another file would open whatever its author wished.
static herr_t refuse_external(const char *file, const char *group, const char *other, const char *object,
		unsigned *flags, hid_t access, void *data) {
	(void)file; (void)group; (void)other; (void)object; (void)flags; (void)access; (void)data;
	external_refused = 1;
	return -1;
}

// link_access belongs to this file and stays: to make it takes longer than to follow a link.
static hid_t link_access(void) {
	static hid_t kept = -1;
	hid_t p;
	if (kept >= 0) return kept;
	p = H5Pcreate(H5P_DATASET_ACCESS); // a kind of H5P_LINK_ACCESS, and good for datasets too
	if (p >= 0 && (H5Pset_elink_cb(p, refuse_external, NULL) < 0 || H5Pset_nlinks(p, 16) < 0)) {
		H5Pclose(p);
		return -1;
	}
	return kept = p;
}

// fs_missing says how long the first part of the path is that isn't there, 0 if
// all of it is.
int fs_missing(hid_t file, const char *path) {
	size_t n = strlen(path);
	char *part = malloc(n + 1);
	hid_t access = link_access();
	int result = part == NULL || access < 0 ? -1 : 0;
	for (size_t i = 1; result == 0 && i <= n; i++) {
		htri_t there;
		if (i < n && path[i] != '/') continue;
		memcpy(part, path, i);
		part[i] = 0;
		there = H5Lexists(file, part, access);
		if (there > 0) there = H5Oexists_by_name(file, part, access);
		if (there < 0) result = -1;
		if (there == 0) result = (int)i;
	}
	free(part);
	return result;
}

// fs_exists says whether the last link of a path whose groups exist is there.
int fs_exists(hid_t file, const char *path) {
	hid_t access = link_access();
	return access < 0 ? -1 : H5Lexists(file, path, access);
}

hid_t fs_object(hid_t file, const char *path, int *type) {
	hid_t access = link_access(), id = access < 0 ? access : H5Oopen(file, path, access);
	if (id < 0) return id;
	switch (H5Iget_type(id)) {
	case H5I_GROUP: *type = H5O_TYPE_GROUP; break;
	case H5I_DATASET: *type = H5O_TYPE_DATASET; break;
	case H5I_DATATYPE: *type = H5O_TYPE_NAMED_DATATYPE; break;
	default: *type = H5O_TYPE_UNKNOWN;
	}
	return id;
}

// fs_address says where an object is in its file.
int fs_address(hid_t id, unsigned long long *address) {
	H5O_info_t info;
	if (H5Oget_info2(id, &info, H5O_INFO_BASIC) < 0) return -1;
	*address = info.addr;
	return 0;
}

static hid_t link_properties(void) {
	hid_t p = H5Pcreate(H5P_LINK_CREATE);
	if (p >= 0 && (H5Pset_create_intermediate_group(p, 1) < 0 || H5Pset_char_encoding(p, H5T_CSET_UTF8) < 0)) {
		H5Pclose(p);
		return -1;
	}
	return p;
}

int fs_make_group(hid_t file, const char *path) {
	hid_t links = link_properties(), create = H5Pcreate(H5P_GROUP_CREATE), g = -1;
	if (links >= 0 && create >= 0 && H5Pset_obj_track_times(create, 0) >= 0 && keep_order(create) >= 0)
		g = H5Gcreate2(file, path, links, create, H5P_DEFAULT);
	if (links >= 0) H5Pclose(links);
	if (create >= 0) H5Pclose(create);
	return g < 0 ? -1 : H5Gclose(g);
}

static int add_name(fs_names *names, const char *name, int kind, unsigned long long address, long long order) {
	size_t n = strlen(name) + 1;
	if (names->count >= names->most) return -1;
	if (names->used + n > names->room) {
		size_t room = 2 * (names->used + n) + 1024;
		char *text = realloc(names->text, room);
		if (text == NULL) return -1;
		names->text = text;
		names->room = room;
	}
	if (names->count == names->slots) {
		size_t slots = 2 * names->slots + 64;
		int *kinds = realloc(names->kinds, slots * sizeof *kinds);
		unsigned long long *addresses;
		long long *orders;
		if (kinds == NULL) return -1;
		names->kinds = kinds;
		addresses = realloc(names->addresses, slots * sizeof *addresses);
		if (addresses == NULL) return -1;
		names->addresses = addresses;
		orders = realloc(names->orders, slots * sizeof *orders);
		if (orders == NULL) return -1;
		names->orders = orders;
		names->slots = slots;
	}
	memcpy(names->text + names->used, name, n);
	names->used += n;
	names->addresses[names->count] = address;
	names->orders[names->count] = order;
	names->kinds[names->count++] = kind;
	return 0;
}

static herr_t add_link(hid_t group, const char *name, const H5L_info_t *link, void *data) {
	H5O_info_t info;
	long long order = link->corder_valid ? (long long)link->corder : -1;
	if (link->type != H5L_TYPE_HARD) return add_name(data, name, -1 - (int)link->type, 0, order);
	if (H5Oget_info_by_name2(group, name, &info, H5O_INFO_BASIC, H5P_DEFAULT) < 0) return -1;
	return add_name(data, name, (int)info.type, info.addr, order);
}

// The order of the file is the only one for which the library makes no table of all links
// or attributes: of a damaged group it frees entries of that which it has not filled.
int fs_list(hid_t group, fs_names *names) {
	return H5Literate(group, H5_INDEX_NAME, H5_ITER_NATIVE, NULL, add_link, names) < 0 ? -1 : 0;
}

static herr_t add_attribute(hid_t object, const char *name, const H5A_info_t *info, void *data) {
	(void)object;
	(void)info;
	return add_name(data, name, 0, 0, -1);
}

int fs_attribute_names(hid_t object, fs_names *names) {
	return H5Aiterate2(object, H5_INDEX_NAME, H5_ITER_NATIVE, NULL, add_attribute, names) < 0 ? -1 : 0;
}

void fs_free_names(fs_names *names) {
	free(names->text);
	free(names->kinds);
	free(names->addresses);
	free(names->orders);
}

static hid_t text_type(size_t length, int variable, int utf8) {
	hid_t t = H5Tcopy(H5T_C_S1);
	if (t < 0) return t;
	if (H5Tset_size(t, variable ? H5T_VARIABLE : length) < 0 || H5Tset_strpad(t, variable ? H5T_STR_NULLTERM : H5T_STR_NULLPAD) < 0 ||
	    H5Tset_cset(t, utf8 ? H5T_CSET_UTF8 : H5T_CSET_ASCII) < 0) {
		H5Tclose(t);
		return -1;
	}
	return t;
}

// fs_disk_type gives a type that the caller closes.
hid_t fs_disk_type(int type, size_t length, int variable) {
	switch (type) {
	case FS_INT8: return H5Tcopy(H5T_STD_I8LE);
	case FS_INT16: return H5Tcopy(H5T_STD_I16LE);
	case FS_INT32: return H5Tcopy(H5T_STD_I32LE);
	case FS_INT64: return H5Tcopy(H5T_STD_I64LE);
	case FS_BOOL:
	case FS_UINT8: return H5Tcopy(H5T_STD_U8LE);
	case FS_UINT16: return H5Tcopy(H5T_STD_U16LE);
	case FS_UINT32: return H5Tcopy(H5T_STD_U32LE);
	case FS_UINT64: return H5Tcopy(H5T_STD_U64LE);
	case FS_FLOAT32: return H5Tcopy(H5T_IEEE_F32LE);
	case FS_FLOAT64: return H5Tcopy(H5T_IEEE_F64LE);
	case FS_STRING: return text_type(length, variable, 1);
	}
	return -1;
}

// fs_memory_type gives a type that belongs to the library.
hid_t fs_memory_type(int type) {
	switch (type) {
	case FS_INT8: return H5T_NATIVE_INT8;
	case FS_INT16: return H5T_NATIVE_INT16;
	case FS_INT32: return H5T_NATIVE_INT32;
	case FS_INT64: return H5T_NATIVE_INT64;
	case FS_BOOL:
	case FS_UINT8: return H5T_NATIVE_UINT8;
	case FS_UINT16: return H5T_NATIVE_UINT16;
	case FS_UINT32: return H5T_NATIVE_UINT32;
	case FS_UINT64: return H5T_NATIVE_UINT64;
	case FS_FLOAT32: return H5T_NATIVE_FLOAT;
	case FS_FLOAT64: return H5T_NATIVE_DOUBLE;
	}
	return -1;
}

// fs_boolean_type is that of h5py, for attributes, which can't be marked as booleans
// by attributes of theirs.
hid_t fs_boolean_type(void) {
	hid_t t = H5Tenum_create(H5T_NATIVE_INT8);
	const char no = 0, yes = 1;
	if (t >= 0 && (H5Tenum_insert(t, "FALSE", &no) < 0 || H5Tenum_insert(t, "TRUE", &yes) < 0)) {
		H5Tclose(t);
		return -1;
	}
	return t;
}

// fs_bits_type is that of a byte of bits. It belongs to the library.
hid_t fs_bits_type(void) { return H5T_NATIVE_B8; }

int fs_dataset_properties(hid_t p, int early, int deflate) {
	if (H5Pset_obj_track_times(p, 0) < 0) return -1;
	if (early && (H5Pset_alloc_time(p, H5D_ALLOC_TIME_EARLY) < 0 || H5Pset_fill_time(p, H5D_FILL_TIME_NEVER) < 0)) return -1;
	if (deflate && (H5Pset_shuffle(p) < 0 || H5Pset_deflate(p, (unsigned)deflate) < 0)) return -1;
	return 0;
}

hid_t fs_make_dataset(hid_t file, const char *path, hid_t type, hid_t space, hid_t plist) {
	hid_t links = link_properties(), d;
	if (links < 0) return links;
	d = H5Dcreate2(file, path, type, space, links, plist, H5P_DEFAULT);
	H5Pclose(links);
	return d;
}

// fs_make_attribute replaces an attribute of that name.
hid_t fs_make_attribute(hid_t object, const char *name, hid_t type, hid_t space) {
	hid_t p = H5Pcreate(H5P_ATTRIBUTE_CREATE), a = -1;
	htri_t there = H5Aexists(object, name);
	if (p >= 0 && there >= 0 && H5Pset_char_encoding(p, H5T_CSET_UTF8) >= 0 && (!there || H5Adelete(object, name) >= 0))
		a = H5Acreate2(object, name, type, space, p, H5P_DEFAULT);
	if (p >= 0) H5Pclose(p);
	return a;
}

// Dimension scales, in the form that the library's high-level part (H5DS) has them. That
// one reads and writes the whole list of a scale's references for each axis that is attached.

int fs_reference(hid_t object, unsigned long long *reference) {
	hobj_ref_t r;
	if (H5Rcreate(&r, object, ".", H5R_OBJECT, -1) < 0) return -1;
	*reference = r;
	return 0;
}

// replace_attribute writes a whole attribute. The type and the space are closed.
static int replace_attribute(hid_t object, const char *name, hid_t type, hid_t space, const void *data) {
	hid_t a = -1;
	int result = -1;
	if (type >= 0 && space >= 0) {
		htri_t there = H5Aexists(object, name);
		if (there >= 0 && (!there || H5Adelete(object, name) >= 0)) a = H5Acreate2(object, name, type, space, H5P_DEFAULT, H5P_DEFAULT);
	}
	if (a >= 0) {
		result = H5Awrite(a, type, data);
		if (H5Aclose(a) < 0) result = -1;
	}
	if (space >= 0) H5Sclose(space);
	if (type >= 0) H5Tclose(type);
	return result;
}

// Readers look for strings that end with a NUL, which is part of their length.
static hid_t terminated_type(const char *text) {
	hid_t t = H5Tcopy(H5T_C_S1);
	if (t >= 0 && H5Tset_size(t, strlen(text) + 1) < 0) {
		H5Tclose(t);
		return -1;
	}
	return t;
}

int fs_make_scale(hid_t dataset, const char *name) {
	static const char class[] = "DIMENSION_SCALE";
	if (replace_attribute(dataset, "CLASS", terminated_type(class), H5Screate(H5S_SCALAR), class) < 0) return -1;
	return replace_attribute(dataset, "NAME", terminated_type(name), H5Screate(H5S_SCALAR), name);
}

// fs_dimension_list attaches one scale to each axis of a dataset.
int fs_dimension_list(hid_t dataset, size_t rank, const unsigned long long *scales) {
	hsize_t n = rank;
	hvl_t *lists = calloc(rank, sizeof *lists);
	hobj_ref_t *refs = calloc(rank, sizeof *refs);
	int result = -1;
	if (lists != NULL && refs != NULL) {
		for (size_t i = 0; i < rank; i++) {
			refs[i] = scales[i];
			lists[i].len = 1;
			lists[i].p = &refs[i];
		}
		result = replace_attribute(dataset, "DIMENSION_LIST", H5Tvlen_create(H5T_STD_REF_OBJ), H5Screate_simple(1, &n, NULL), lists);
	}
	free(refs);
	free(lists);
	return result;
}

typedef struct {
	hobj_ref_t dataset;
	int axis;
} scale_user;

// fs_reference_list tells a scale of which axes of which datasets it is.
int fs_reference_list(hid_t scale, size_t n, const unsigned long long *datasets, const int *axes) {
	hsize_t size = n;
	scale_user *users = calloc(n, sizeof *users);
	hid_t t;
	int result;
	if (users == NULL) return -1;
	for (size_t i = 0; i < n; i++) {
		users[i].dataset = datasets[i];
		users[i].axis = axes[i];
	}
	t = H5Tcreate(H5T_COMPOUND, sizeof *users);
	if (t >= 0 && (H5Tinsert(t, "dataset", offsetof(scale_user, dataset), H5T_STD_REF_OBJ) < 0 ||
	    H5Tinsert(t, "dimension", offsetof(scale_user, axis), H5T_NATIVE_INT) < 0)) {
		H5Tclose(t);
		t = -1;
	}
	result = replace_attribute(scale, "REFERENCE_LIST", t, H5Screate_simple(1, &size, NULL), users);
	free(users);
	return result;
}

// The booleans of h5py: an enumeration of one byte, FALSE = 0 and TRUE = 1.
static int is_boolean(hid_t type) {
	static const char *const names[2] = {"FALSE", "TRUE"};
	if (H5Tget_size(type) != 1 || H5Tget_nmembers(type) != 2) return 0;
	for (unsigned i = 0; i < 2; i++) {
		char value = -1, *name = H5Tget_member_name(type, i);
		int same = name != NULL && H5Tget_member_value(type, i, &value) >= 0 && (value == 0 || value == 1) && strcmp(name, names[(int)value]) == 0;
		if (name != NULL) H5free_memory(name);
		if (!same) return 0;
	}
	return 1;
}

static int integer_type(hid_t type) {
	size_t size = H5Tget_size(type);
	int is_signed = H5Tget_sign(type) == H5T_SGN_2;
	if (H5Tget_precision(type) != 8 * size || H5Tget_offset(type) != 0) return FS_UNKNOWN;
	if (H5Tget_order(type) != H5T_ORDER_LE && H5Tget_order(type) != H5T_ORDER_BE) return FS_UNKNOWN;
	switch (size) {
	case 1: return is_signed ? FS_INT8 : FS_UINT8;
	case 2: return is_signed ? FS_INT16 : FS_UINT16;
	case 4: return is_signed ? FS_INT32 : FS_UINT32;
	case 8: return is_signed ? FS_INT64 : FS_UINT64;
	}
	return FS_UNKNOWN;
}

static int describe(hid_t type, hid_t space, fs_info *info) {
	H5S_class_t kind = H5Sget_simple_extent_type(space);
	info->class = H5Tget_class(type);
	info->size = H5Tget_size(type);
	if (info->class < 0 || info->size == 0 || kind < 0) return -1;
	switch (info->class) {
	case H5T_INTEGER: info->type = integer_type(type); break;
	case H5T_FLOAT:
		if (H5Tequal(type, H5T_IEEE_F32LE) > 0 || H5Tequal(type, H5T_IEEE_F32BE) > 0) info->type = FS_FLOAT32;
		if (H5Tequal(type, H5T_IEEE_F64LE) > 0 || H5Tequal(type, H5T_IEEE_F64BE) > 0) info->type = FS_FLOAT64;
		break;
	case H5T_BITFIELD: // the booleans of Julia
		if (info->size == 1) info->type = FS_BOOL;
		break;
	case H5T_ENUM:
		if (is_boolean(type)) info->type = FS_BOOL;
		break;
	case H5T_STRING: {
		htri_t variable = H5Tis_variable_str(type);
		H5T_cset_t set = H5Tget_cset(type);
		if (variable < 0 || set < 0) return -1;
		info->type = FS_STRING;
		info->variable = variable > 0;
		info->utf8 = set == H5T_CSET_UTF8;
		info->padding = H5Tget_strpad(type);
		break;
	}
	}
	if (info->type > FS_BOOL && info->type < FS_STRING) info->native = H5Tequal(type, fs_memory_type(info->type)) > 0;
	info->space = kind == H5S_SCALAR ? FS_SCALAR : kind == H5S_NULL ? FS_NULL : FS_SIMPLE;
	if (info->space == FS_SIMPLE) {
		info->rank = H5Sget_simple_extent_ndims(space);
		if (info->rank < 0 || info->rank > H5S_MAX_RANK || H5Sget_simple_extent_dims(space, info->dims, info->max) < 0) return -1;
	}
	return 0;
}

static int describe_layout(hid_t plist, fs_info *info) {
	H5D_layout_t layout = H5Pget_layout(plist);
	int outside = H5Pget_external_count(plist);
	if (layout < 0 || outside < 0) return -1;
	info->layout = outside > 0 ? FS_ELSEWHERE : layout == H5D_COMPACT ? FS_COMPACT : layout == H5D_CONTIGUOUS ? FS_CONTIGUOUS : layout == H5D_CHUNKED ? FS_CHUNKED : FS_ELSEWHERE;
	if (layout == H5D_CHUNKED && H5Pget_chunk(plist, H5S_MAX_RANK, info->chunk) < 0) return -1;
	info->filters = H5Pget_nfilters(plist);
	if (info->filters < 0) return -1;
	for (int i = 0; i < info->filters; i++) {
		unsigned flags, config;
		size_t values = 0;
		H5Z_filter_t filter = H5Pget_filter2(plist, (unsigned)i, &flags, &values, NULL, 0, NULL, &config);
		if (filter < 0) return -1;
		if (filter != H5Z_FILTER_DEFLATE && filter != H5Z_FILTER_SHUFFLE && filter != H5Z_FILTER_FLETCHER32) info->foreign = 1;
	}
	return 0;
}

int fs_dataset_info(hid_t dataset, fs_info *info) {
	hid_t type = H5Dget_type(dataset), space = H5Dget_space(dataset), plist = H5Dget_create_plist(dataset);
	htri_t marked = 0;
	int result = -1;
	memset(info, 0, sizeof *info);
	if (type >= 0 && space >= 0 && plist >= 0 && describe(type, space, info) >= 0 && describe_layout(plist, info) >= 0) {
		if (info->size == 1) marked = H5Aexists(dataset, "bool");
		info->marked = marked > 0;
		info->storage = H5Dget_storage_size(dataset);
		info->placed = info->layout == FS_COMPACT || (info->layout == FS_CONTIGUOUS && H5Dget_offset(dataset) != HADDR_UNDEF);
		if (marked >= 0) result = 0;
	}
	if (plist >= 0) H5Pclose(plist);
	if (space >= 0) H5Sclose(space);
	if (type >= 0) H5Tclose(type);
	return result;
}

int fs_attribute_info(hid_t attribute, fs_info *info) {
	hid_t type = H5Aget_type(attribute), space = H5Aget_space(attribute);
	int result = -1;
	memset(info, 0, sizeof *info);
	if (type >= 0 && space >= 0 && describe(type, space, info) >= 0) {
		info->storage = H5Aget_storage_size(attribute);
		result = 0;
	}
	if (space >= 0) H5Sclose(space);
	if (type >= 0) H5Tclose(type);
	return result;
}

static hid_t stored_type(hid_t id, int attribute) { return attribute ? H5Aget_type(id) : H5Dget_type(id); }

// fs_read and fs_write move elements of the given type, or as they are stored.
int fs_read(hid_t id, int attribute, int as_stored, hid_t type, hid_t memory, hid_t file, void *to) {
	hid_t t = as_stored ? stored_type(id, attribute) : type;
	int result;
	if (t < 0) return -1;
	result = attribute ? H5Aread(id, t, to) : H5Dread(id, t, memory, file, H5P_DEFAULT, to);
	if (as_stored) H5Tclose(t);
	return result;
}

int fs_write(hid_t id, int attribute, int as_stored, hid_t type, hid_t memory, hid_t file, const void *from) {
	hid_t t = as_stored ? stored_type(id, attribute) : type;
	int result;
	if (t < 0) return -1;
	result = attribute ? H5Awrite(id, t, from) : H5Dwrite(id, t, memory, file, H5P_DEFAULT, from);
	if (as_stored) H5Tclose(t);
	return result;
}

// fs_append adds rows to a dataset that has so many rows, of the shape that the dims after
// the first say, in the form that memory has. It returns 1 where that can't be opened, or is
// another one.
int fs_append(hid_t file, const char *path, hid_t type, int rank, const hsize_t *have, const hsize_t *add, const void *from) {
	hsize_t dims[H5S_MAX_RANK], most[H5S_MAX_RANK], start[H5S_MAX_RANK] = {0};
	hid_t access = link_access(), d = access < 0 ? access : H5Dopen2(file, path, access), t = -1, space = -1, memory = -1;
	int result = -1;
	if (d < 0) {
		fs_reset();
		return 1;
	}
	t = H5Dget_type(d);
	space = H5Dget_space(d);
	if (t < 0 || space < 0) goto end;
	result = 1;
	if (H5Sget_simple_extent_ndims(space) != rank || H5Tequal(t, type) <= 0 || H5Sget_simple_extent_dims(space, dims, most) < 0) goto end;
	if (most[0] != H5S_UNLIMITED && add[0] > most[0] - dims[0]) goto end;
	for (int i = 0; i < rank; i++)
		if (dims[i] != have[i]) goto end;
	result = -1;
	start[0] = dims[0];
	dims[0] += add[0];
	H5Sclose(space);
	space = -1;
	if (H5Dset_extent(d, dims) < 0) goto end;
	space = H5Dget_space(d);
	memory = H5Screate_simple(rank, add, NULL);
	if (space >= 0 && memory >= 0 && H5Sselect_hyperslab(space, H5S_SELECT_SET, start, NULL, add, NULL) >= 0 &&
	    H5Dwrite(d, type, memory, space, H5P_DEFAULT, from) >= 0)
		result = 0;
end:
	if (memory >= 0) H5Sclose(memory);
	if (space >= 0) H5Sclose(space);
	if (t >= 0) H5Tclose(t);
	if (H5Dclose(d) < 0) result = -1;
	return result;
}

#define REFERENCE 16 // bytes in the file for a string of variable length

// The library converts no strings of variable length into opaque bytes. This is how
// they are had as they are in the file: it does nothing.
static herr_t keep_reference(hid_t from, hid_t to, H5T_cdata_t *cdata, size_t n, size_t stride,
		size_t background, void *buffer, void *background_buffer, hid_t transfer) {
	(void)n; (void)stride; (void)background; (void)buffer; (void)background_buffer; (void)transfer;
	if (cdata->command != H5T_CONV_INIT) return 0;
	cdata->need_bkg = H5T_BKG_NO;
	return H5Tis_variable_str(from) > 0 && H5Tget_size(to) == REFERENCE ? 0 : -1;
}

// fs_read_references reads where strings of variable length are. Following the
// references is left to others: the library trusts them.
int fs_read_references(hid_t file, hid_t id, int attribute, void *to) {
	static int registered;
	size_t address = 0, length = 0;
	hid_t plist = H5Fget_create_plist(file);
	hid_t opaque = H5Tcreate(H5T_OPAQUE, REFERENCE), text = text_type(0, 1, 1);
	int result = -1;
	if (plist >= 0) {
		H5Pget_sizes(plist, &address, &length);
		H5Pclose(plist);
	}
	if (opaque >= 0 && text >= 0 && address == 8 && length == 8) {
		if (!registered) registered = H5Tregister(H5T_PERS_SOFT, "references", text, opaque, keep_reference) >= 0;
		if (registered) result = fs_read(id, attribute, 0, opaque, H5S_ALL, H5S_ALL, to);
	}
	if (text >= 0) H5Tclose(text);
	if (opaque >= 0) H5Tclose(opaque);
	return result;
}

// fs_read_at reads bytes of the file as the library counts them.
int fs_read_at(hid_t file, unsigned long long at, void *to, size_t n) {
	hsize_t skip = 0;
	hid_t p = H5Fget_create_plist(file);
	int fd = fs_descriptor(file), bad = p < 0 || H5Pget_userblock(p, &skip) < 0;
	if (p >= 0) H5Pclose(p);
	if (fd < 0 || bad) return -1;
	for (size_t done = 0; done < n;) {
		ssize_t k = pread(fd, (char *)to + done, n - done, (off_t)(skip + at + done));
		if (k < 0 && errno == EINTR) continue;
		if (k <= 0) return -1;
		done += (size_t)k;
	}
	return 0;
}

static int no_user_block(hid_t file) {
	hsize_t n = 1;
	hid_t p = H5Fget_create_plist(file);
	if (p < 0) return -1;
	if (H5Pget_userblock(p, &n) < 0) n = 1;
	H5Pclose(p);
	return n == 0 ? 0 : -1;
}

int fs_contiguous(hid_t file, hid_t dataset, unsigned long long *offset) {
	haddr_t at = H5Dget_offset(dataset);
	if (at == HADDR_UNDEF || no_user_block(file) < 0) return -1;
	*offset = at;
	return 0;
}

int fs_chunk(hid_t file, hid_t dataset, const hsize_t *start, unsigned long long *offset, unsigned long long *size) {
	unsigned mask = 0;
	haddr_t at = HADDR_UNDEF;
	hsize_t n = 0;
	if (H5Dget_chunk_info_by_coord(dataset, start, &mask, &at, &n) < 0) return -1;
	if (at == HADDR_UNDEF || no_user_block(file) < 0) return -1;
	*offset = at;
	*size = n;
	return 0;
}
