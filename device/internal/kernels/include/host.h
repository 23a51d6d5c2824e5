// Kernels as functions of the host; see fieldstone.h.
#pragma once

#include <cstddef>
#include <utility>

#define __restrict__ __restrict
#define FIELDSTONE_DEVICE static inline __attribute__((always_inline))

// A kernel as the library of a source has it.
struct fieldstone_kernel {
	const char *name;
	u32 threads; // of a block
	u32 parameters;
	const unsigned short *sizes; // of the parameters, in bytes
	// Runs all threads of all blocks. Each argument is where the value of a parameter is.
	void (*run)(const fieldstone_kernel *, const u32 grid[3], const u32 block[3], void *const *arguments);
	const fieldstone_kernel *next;
	void (*function)();
};

struct fieldstone_place { u32 x, y, z; };
static thread_local fieldstone_place fieldstone_block, fieldstone_thread;
#define BLOCK_X (fieldstone_block.x)
#define BLOCK_Y (fieldstone_block.y)
#define BLOCK_Z (fieldstone_block.z)
#define THREAD_X (fieldstone_thread.x)
#define THREAD_Y (fieldstone_thread.y)
#define THREAD_Z (fieldstone_thread.z)

static const fieldstone_kernel *fieldstone_first;

// The kernels of this library, the first of a list.
extern "C" __attribute__((visibility("default"))) const fieldstone_kernel *fieldstone_kernels(void)
{
	return fieldstone_first;
}

namespace {

template <class... Parameter> struct fieldstone_signature {
	static constexpr unsigned short sizes[] = {sizeof(Parameter)..., 0};

	template <std::size_t... I>
	static void call(void (*function)(), void *const *arguments, std::index_sequence<I...>)
	{
		reinterpret_cast<void (*)(Parameter...)>(function)(*static_cast<Parameter *>(arguments[I])...);
	}

	// From the last thread to the first, so that a kernel that leans on
	// the order of its threads shows it.
	static void run(const fieldstone_kernel *kernel, const u32 grid[3], const u32 block[3], void *const *arguments)
	{
		fieldstone_place b, t;
		for (b.z = grid[2]; b.z-- > 0;)
			for (b.y = grid[1]; b.y-- > 0;)
				for (b.x = grid[0]; b.x-- > 0;)
					for (t.z = block[2]; t.z-- > 0;)
						for (t.y = block[1]; t.y-- > 0;)
							for (t.x = block[0]; t.x-- > 0;) {
								fieldstone_block = b;
								fieldstone_thread = t;
								call(kernel->function, arguments, std::index_sequence_for<Parameter...>{});
							}
	}
};

struct fieldstone_registered : fieldstone_kernel {
	template <class... Parameter>
	fieldstone_registered(u32 threads, const char *name, void (*function)(Parameter...))
	    : fieldstone_kernel{name, threads, sizeof...(Parameter), fieldstone_signature<Parameter...>::sizes,
	          fieldstone_signature<Parameter...>::run, fieldstone_first, reinterpret_cast<void (*)()>(function)}
	{
		fieldstone_first = this;
	}
};

} // namespace

#define FIELDSTONE_KERNEL(threads, name, parameters) \
	static void name parameters; \
	static const fieldstone_registered name##_registered(threads, #name, name); \
	static void name parameters
