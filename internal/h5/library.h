// What of the HDF5 library the package needs beyond gonum's calls. Every function
// that can fail returns a negative number then; what the library said is in
// fs_errors. Nothing here keeps a pointer that it was given.
#include <hdf5.h>
#include <stddef.h>
#include <stdint.h>

// Kinds of elements, in the order of h5.Type.
enum {
	FS_UNKNOWN, FS_BOOL, FS_INT8, FS_INT16, FS_INT32, FS_INT64, FS_UINT8, FS_UINT16, FS_UINT32, FS_UINT64,
	FS_FLOAT32, FS_FLOAT64, FS_STRING
};

enum { FS_SCALAR, FS_SIMPLE, FS_NULL };
enum { FS_COMPACT, FS_CONTIGUOUS, FS_CHUNKED, FS_ELSEWHERE };

typedef struct {
	int type;       // FS_UNKNOWN ... FS_STRING
	int class;      // H5T_class_t
	int native;     // memory and file have the same bytes
	size_t size;    // of an element in the file
	int variable;   // strings of any length
	int padding;    // H5T_str_t of fixed strings
	int utf8;
	int space;      // FS_SCALAR, FS_SIMPLE or FS_NULL
	int rank;
	hsize_t dims[H5S_MAX_RANK], max[H5S_MAX_RANK], chunk[H5S_MAX_RANK];
	int layout;     // FS_COMPACT ... FS_ELSEWHERE; attributes have none
	int placed;     // in one place of the file, not yet reserved if 0
	int filters;
	int foreign;    // some filter is none of deflate, shuffle and Fletcher32
	int marked;     // has the attribute "bool"
	unsigned long long storage; // bytes in the file
} fs_info;

typedef struct {
	char *text;     // names, each with its NUL
	size_t used, room;
	int *kinds;     // H5O_type_t, or -1 - H5L_type_t for what is no hard link
	unsigned long long *addresses; // of objects
	long long *orders; // in which they came, -1 where that isn't kept
	size_t count, slots;
	size_t most;
} fs_names;

void fs_begin(void);
void fs_reset(void);
const char *fs_errors(void);
int fs_refused_external(void);
void fs_end(void);

hid_t fs_create(const char *name, int truncate);
hid_t fs_open(const char *name, int writable);
int fs_descriptor(hid_t file);
int fs_end_of_file(hid_t file, unsigned long long *allocated, unsigned long long *size);
int fs_sync(hid_t file, int *err);
int fs_abandon(hid_t file);
long fs_objects(hid_t file);

int fs_missing(hid_t file, const char *path);
int fs_exists(hid_t file, const char *path);
hid_t fs_object(hid_t file, const char *path, int *type);
int fs_address(hid_t id, unsigned long long *address);
int fs_make_group(hid_t file, const char *path);
int fs_list(hid_t group, fs_names *names);
int fs_attribute_names(hid_t object, fs_names *names);
void fs_free_names(fs_names *names);

hid_t fs_disk_type(int type, size_t length, int variable);
hid_t fs_memory_type(int type);
hid_t fs_boolean_type(void);
hid_t fs_bits_type(void);
int fs_dataset_properties(hid_t plist, int early, int deflate);
hid_t fs_make_dataset(hid_t file, const char *path, hid_t type, hid_t space, hid_t plist);
hid_t fs_make_attribute(hid_t object, const char *name, hid_t type, hid_t space);

int fs_reference(hid_t object, unsigned long long *reference);
int fs_make_scale(hid_t dataset, const char *name);
int fs_dimension_list(hid_t dataset, size_t rank, const unsigned long long *scales);
int fs_reference_list(hid_t scale, size_t n, const unsigned long long *datasets, const int *axes);

int fs_dataset_info(hid_t dataset, fs_info *info);
int fs_attribute_info(hid_t attribute, fs_info *info);
int fs_read(hid_t id, int attribute, int as_stored, hid_t type, hid_t memory, hid_t file, void *to);
int fs_write(hid_t id, int attribute, int as_stored, hid_t type, hid_t memory, hid_t file, const void *from);
int fs_append(hid_t file, const char *path, hid_t type, int rank, const hsize_t *have, const hsize_t *add, const void *from);
int fs_read_references(hid_t file, hid_t id, int attribute, void *to);
int fs_read_at(hid_t file, unsigned long long at, void *to, size_t n);

int fs_contiguous(hid_t file, hid_t dataset, unsigned long long *offset);
int fs_chunk(hid_t file, hid_t dataset, const hsize_t *start, unsigned long long *offset, unsigned long long *size);
