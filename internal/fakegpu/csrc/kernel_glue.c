// Linked into each library of host kernels. Those are compiled with
// -fsanitize=kernel-address, so that they call the functions below before each load
// and store; no other part of a sanitizer is there.
#include <stddef.h>

typedef void (*check)(const void *, size_t bytes, const char *what);

// Several drivers of a process may share the library, so each says for the thread that
// runs a kernel who checks it. The library's own initialisation nobody checks.
static __thread check check_of_thread;

__attribute__((visibility("default"))) void fakegpu_check_with(check);

void fakegpu_check_with(check fn)
{
	check_of_thread = fn;
}

static void checked(const void *p, size_t n, const char *what)
{
	if (check_of_thread)
		check_of_thread(p, n, what);
}

#define CHECK(bytes) \
	void __asan_load##bytes##_noabort(const void *p); \
	void __asan_store##bytes##_noabort(const void *p); \
	void __asan_load##bytes##_noabort(const void *p) { checked(p, bytes, "load"); } \
	void __asan_store##bytes##_noabort(const void *p) { checked(p, bytes, "store"); }

CHECK(1)
CHECK(2)
CHECK(4)
CHECK(8)
CHECK(16)

void __asan_loadN_noabort(const void *p, size_t n);
void __asan_storeN_noabort(const void *p, size_t n);
void __asan_handle_no_return(void);
void __asan_before_dynamic_init(const void *name);
void __asan_after_dynamic_init(void);

void __asan_loadN_noabort(const void *p, size_t n)
{
	checked(p, n, "load");
}

void __asan_storeN_noabort(const void *p, size_t n)
{
	checked(p, n, "store");
}

void __asan_handle_no_return(void)
{
}

void __asan_before_dynamic_init(const void *name)
{
	(void)name;
}

void __asan_after_dynamic_init(void)
{
}
