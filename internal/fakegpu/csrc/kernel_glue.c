// Linked into each library of host kernels. Those are compiled with
// -fsanitize=kernel-address, so that they call the functions below before each load
// and store; no other part of a sanitizer is there.
#include <stddef.h>

__attribute__((visibility("default"))) void (*fakegpu_check)(const void *, size_t, const char *);

#define CHECK(bytes) \
	void __asan_load##bytes##_noabort(const void *p); \
	void __asan_store##bytes##_noabort(const void *p); \
	void __asan_load##bytes##_noabort(const void *p) { fakegpu_check(p, bytes, "load"); } \
	void __asan_store##bytes##_noabort(const void *p) { fakegpu_check(p, bytes, "store"); }

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
	fakegpu_check(p, n, "load");
}

void __asan_storeN_noabort(const void *p, size_t n)
{
	fakegpu_check(p, n, "store");
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
