//go:build mumax

package mumax

/*
#include <stdlib.h>
#include <string.h>

// Not calloc, which takes memory from elsewhere. The empty assembler keeps compilers
// from making one of it, and from leaving out what nobody reads.
static void clear_next(size_t bytes) {
	void *a = malloc(bytes), *b = malloc(bytes);
	__asm__ volatile("" : "+r"(a), "+r"(b));
	if (a)
		memset(a, 0, bytes);
	if (b)
		memset(b, 0, bytes);
	__asm__ volatile("" : : "r"(a), "r"(b) : "memory");
	free(a);
	free(b);
}
*/
import "C"

import (
	"unsafe"

	"github.com/mumax/3/cuda/cu"

	"github.com/fieldstone-io/fieldstone/device"
	"github.com/fieldstone-io/fieldstone/device/internal/gpu"
)

// Launch gives cu a pointer to each argument.
//
// cu.LaunchKernel stores pointers in two pieces of C's memory that nobody has
// cleared. If the garbage collector is marking, it takes what was there before for a
// Go pointer; and if that is one, left over from a call that was given Go memory,
// the program ends with "found bad pointer in Go heap". So the two pieces that the
// thread gets next are cleared first. The thread is locked.
func (*bindings) Launch(kernel uintptr, l gpu.Launch, stream uintptr, args *device.Args) gpu.Code {
	// cu reads 8 bytes of every argument, however short it is.
	var values [][8]byte
	for v := range args.Values() {
		var value [8]byte
		copy(value[:], v)
		values = append(values, value)
	}
	params := make([]unsafe.Pointer, len(values))
	for i := range values {
		params[i] = unsafe.Pointer(&values[i])
	}
	g, b := l.Grid, l.Block
	if len(params) > 0 {
		C.clear_next(C.size_t(len(params) * int(unsafe.Sizeof(params[0]))))
	}
	return try(func() {
		cu.LaunchKernel(cu.Function(kernel), int(g[0]), int(g[1]), int(g[2]), int(b[0]), int(b[1]), int(b[2]),
			int(l.SharedBytes), cu.Stream(stream), params)
	})
}
