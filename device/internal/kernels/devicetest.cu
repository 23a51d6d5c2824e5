// The kernels of the suite in device/devicetest; see its Config.
#include "fieldstone.h"

namespace {

constexpr u32 threads = 256;

// Calls fn with the place of this thread's element in the packed array and in the
// padded one.
template <class Fn>
FIELDSTONE_DEVICE void each(i64 ox, i64 oy, i64 oz, i64 nx, i64 ny, i64 nz, i64 sy, i64 sz, Fn fn)
{
	i64 i = (i64)BLOCK_X * threads + THREAD_X;
	if (i >= nx * ny * nz)
		return;
	i64 x = i % nx, y = i / nx % ny, z = i / nx / ny;
	fn(i, (ox + x) + (oy + y) * sy + (oz + z) * sz);
}

} // namespace

FIELDSTONE_KERNEL(256, pack3d,
    (double *out, const double *in, i64 ox, i64 oy, i64 oz, i64 nx, i64 ny, i64 nz, i64 sy, i64 sz))
{
	each(ox, oy, oz, nx, ny, nz, sy, sz, [=](i64 packed, i64 padded) { out[packed] = in[padded]; });
}

FIELDSTONE_KERNEL(256, unpack3d,
    (double *out, const double *in, i64 ox, i64 oy, i64 oz, i64 nx, i64 ny, i64 nz, i64 sy, i64 sz))
{
	each(ox, oy, oz, nx, ny, nz, sy, sz, [=](i64 packed, i64 padded) { out[padded] = in[packed]; });
}
