// Packs a box of an array into contiguous memory, and unpacks it; see BoxKernel in
// device/box.go. A block moves 1024 cells: each thread four, 256 apart, so that
// neighbouring threads touch neighbouring cells and each has four loads under way.
//
// Cells are moved as bits. Between float32 and float64 the conversion of the hardware
// is right for all numbers, subnormal ones too, but what becomes of the bits of a NaN
// depends on the device; here they are kept, as they are where the host converts.
#include "fieldstone.h"

namespace {

constexpr u32 threads = 256, each = 4, together = threads * each;

FIELDSTONE_DEVICE void convert(u64 &to, u64 from) { to = from; }

FIELDSTONE_DEVICE void convert(u64 &to, u32 from)
{
	float narrow;
	__builtin_memcpy(&narrow, &from, 4);
	double wide = narrow;
	u64 number;
	__builtin_memcpy(&number, &wide, 8);
	u64 sign = from >> 31, payload = from & 0x7fffff;
	u64 nan = sign << 63 | 0x7ffULL << 52 | payload << 29;
	to = (from & 0x7fffffff) > 0x7f800000 ? nan : number;
}

// To nearest. A NaN with no bits but those that float32 lacks becomes a quiet one.
FIELDSTONE_DEVICE void convert(u32 &to, u64 from)
{
	double wide;
	__builtin_memcpy(&wide, &from, 8);
	float narrow = (float)wide;
	u32 number;
	__builtin_memcpy(&number, &narrow, 4);
	u32 payload = (u32)(from >> 29) & 0x7fffff, quiet = 0x400000;
	u32 nan = ((i64)from < 0 ? 0xff800000 : 0x7f800000) | (payload == 0 ? quiet : payload);
	to = (from & ~0ULL >> 1) > 0x7ffULL << 52 ? nan : number;
}

// Moves a thread's cells of a block that is whole. at is the first of them, counted
// from the first of the launch. Index is the type of the coordinates: the division
// of 32-bit numbers takes a fraction of the time, and is done once for four cells.
template <class Index, bool pack, class To, class From>
FIELDSTONE_DEVICE void moveWhole(To *__restrict__ dst, const From *__restrict__ src,
    u64 first, u64 at, Index nx, Index ny, u64 sy, u64 sz)
{
	Index row = (Index)(first + at) / nx, z = row / ny;
	Index x = (Index)(first + at) - row * nx, y = row - z * ny;
	u64 place = x + y * sy + z * sz;

	// 256 cells on: so many along x, y and z, and what it adds to leave a
	// row, or a slice.
	Index rows = threads / nx, dz = rows / ny;
	Index dx = threads - rows * nx, dy = rows - dz * ny;
	u64 step = dx + dy * sy + dz * sz, nextRow = sy - nx, nextSlice = sz - ny * sy;

	u64 array[each];
	for (u32 i = 0; i < each; i++) {
		array[i] = place;
		x += dx;
		y += dy;
		place += step;
		if (x >= nx) {
			x -= nx;
			y++;
			place += nextRow;
		}
		if (y >= ny) {
			y -= ny;
			place += nextSlice;
		}
	}

	From value[each];
	for (u32 i = 0; i < each; i++)
		value[i] = src[pack ? array[i] : at + i * threads];
	for (u32 i = 0; i < each; i++)
		convert(dst[pack ? at + i * threads : array[i]], value[i]);
}

template <bool pack, class To, class From>
FIELDSTONE_DEVICE void move(To *__restrict__ dst, const From *__restrict__ src,
    u64 first, u64 count, u64 nx, u64 ny, u64 sy, u64 sz)
{
	u64 block = (u64)BLOCK_X * together, next = block + together, at = block + THREAD_X;
	if (next > count) {
		for (; at < count; at += threads) {
			u64 row = (first + at) / nx, x = (first + at) % nx;
			u64 place = x + row % ny * sy + row / ny * sz;
			convert(dst[pack ? at : place], src[pack ? place : at]);
		}
		return;
	}
	if (((first + next) | nx | ny) >> 31 == 0)
		moveWhole<u32, pack>(dst, src, first, at, (u32)nx, (u32)ny, sy, sz);
	else
		moveWhole<u64, pack>(dst, src, first, at, nx, ny, sy, sz);
}

} // namespace

FIELDSTONE_KERNEL(256, fieldstone_pack_f64,
    (u64 *dst, const u64 *src, i64 first, i64 count, i64 nx, i64 ny, i64 sy, i64 sz))
{
	move<true>(dst, src, first, count, nx, ny, sy, sz);
}

FIELDSTONE_KERNEL(256, fieldstone_pack_f32,
    (u64 *dst, const u32 *src, i64 first, i64 count, i64 nx, i64 ny, i64 sy, i64 sz))
{
	move<true>(dst, src, first, count, nx, ny, sy, sz);
}

FIELDSTONE_KERNEL(256, fieldstone_unpack_f64,
    (u64 *dst, const u64 *src, i64 first, i64 count, i64 nx, i64 ny, i64 sy, i64 sz))
{
	move<false>(dst, src, first, count, nx, ny, sy, sz);
}

FIELDSTONE_KERNEL(256, fieldstone_unpack_f32,
    (u32 *dst, const u64 *src, i64 first, i64 count, i64 nx, i64 ny, i64 sy, i64 sz))
{
	move<false>(dst, src, first, count, nx, ny, sy, sz);
}
