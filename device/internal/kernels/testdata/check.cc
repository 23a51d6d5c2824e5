// Runs the kernels that the host's compiler makes of box.cu and compares each with
// index arithmetic: cells that must move, cells that must not change, ranges that
// begin where 32-bit coordinates end.
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <vector>

#include "../box.cu"

static int bad;

static void run(const char *name, void *dst, const void *src, i64 first, i64 count, i64 nx, i64 ny, i64 sy, i64 sz)
{
	void *arguments[] = {&dst, &src, &first, &count, &nx, &ny, &sy, &sz};
	const u32 grid[] = {u32((count + 1023) / 1024), 1, 1}, block[] = {256, 1, 1};
	for (const fieldstone_kernel *k = fieldstone_kernels(); k; k = k->next)
		if (!std::strcmp(k->name, name)) {
			bool fits = k->threads == 256 && k->parameters == 8;
			for (u32 i = 0; i < k->parameters; i++)
				fits = fits && k->sizes[i] == 8;
			if (!fits) {
				std::printf("%s: %u threads, %u parameters, not all of 8 bytes\n", name, k->threads, k->parameters);
				bad++;
			}
			k->run(k, grid, block, arguments);
			return;
		}
	std::printf("there is no kernel %s\n", name);
	bad++;
}

// Bits that look like no number in particular, the same for the same n.
static u64 bits(u64 n)
{
	n = (n ^ n >> 31) * 0x7fb5d329728ea185;
	n = (n ^ n >> 27) * 0x81dadef4bc2dd44d;
	return n ^ n >> 33;
}

// A float64 that float32 has, without conversion by the hardware.
static u64 widened(u32 b)
{
	u64 sign = u64(b >> 31) << 63, fraction = b & 0x7fffff;
	int exponent = b >> 23 & 0xff;
	if (exponent == 0xff)
		return sign | 0x7ffULL << 52 | fraction << 29;
	if (exponent == 0 && fraction == 0)
		return sign;
	if (exponent == 0)
		for (exponent = 1; !(fraction & 0x800000); exponent--)
			fraction <<= 1;
	return sign | u64(exponent + 1023 - 127) << 52 | (fraction & 0x7fffff) << 29;
}

// To nearest, ties to even, in integers.
static u32 narrowed(u64 b)
{
	u32 sign = u32(b >> 32) & 0x80000000;
	i64 exponent = b >> 52 & 0x7ff;
	u64 fraction = b & ((1ULL << 52) - 1);
	if (exponent == 0x7ff && fraction) {
		u32 payload = u32(fraction >> 29);
		return sign | 0x7f800000 | (payload ? payload : 0x400000);
	}
	if (exponent == 0x7ff)
		return sign | 0x7f800000;
	if (exponent < 1023 - 150)
		return sign;
	fraction |= 1ULL << 52;
	// The last bit that stays has weight 2^-149, or is the 24th.
	i64 drop = exponent >= 1023 - 126 ? 29 : 29 + (1023 - 126 - exponent);
	u64 kept = fraction >> drop, rest = fraction & ((1ULL << drop) - 1), half = 1ULL << (drop - 1);
	if (rest > half || (rest == half && (kept & 1)))
		kept++;
	u64 result = exponent >= 1023 - 126 ? u64(exponent - (1023 - 127) - 1) << 23 : 0;
	result += kept;
	return result >= 0x7f800000 ? sign | 0x7f800000 : sign | u32(result);
}

static u64 convert1(u64 b, u64) { return b; }
static u64 convert1(u32 b, u64) { return widened(b); }
static u32 convert1(u64 b, u32) { return narrowed(b); }

struct Case {
	const char *what;
	i64 first, count, nx, ny, sy, sz;
};

static i64 place(const Case &c, i64 cell) { return cell % c.nx + cell / c.nx % c.ny * c.sy + cell / c.nx / c.ny * c.sz; }

// Both arrays end where the launch's cells do, so that an access before or after
// them is one to memory that isn't there, or to a cell that must stay. Addresses are
// counted from a cell that may lie far before them.
template <class To, class From> static void check(const char *name, bool pack, const Case &c)
{
	i64 low = place(c, c.first), high = low;
	for (i64 i = 0; i < c.count; i++) {
		i64 p = place(c, c.first + i);
		low = p < low ? p : low;
		high = p > high ? p : high;
	}
	const i64 margin = 3;
	std::vector<From> src((pack ? high - low + 1 : c.count) + 2 * margin);
	std::vector<To> dst((pack ? c.count : high - low + 1) + 2 * margin);
	for (size_t i = 0; i < src.size(); i++)
		src[i] = (From)bits(i);
	for (size_t i = 0; i < dst.size(); i++)
		dst[i] = (To)bits(~i);
	std::vector<To> want = dst;
	for (i64 i = 0; i < c.count; i++) {
		i64 packed = i + margin, array = place(c, c.first + i) - low + margin;
		want[pack ? packed : array] = convert1(src[pack ? array : packed], To());
	}
	u64 from = (u64)(src.data() + margin), to = (u64)(dst.data() + margin);
	(pack ? from : to) -= u64(low) * (pack ? sizeof(From) : sizeof(To));
	run(name, (void *)to, (const void *)from, c.first, c.count, c.nx, c.ny, c.sy, c.sz);
	for (size_t i = 0; i < dst.size(); i++)
		if (dst[i] != want[i]) {
			std::printf("%s, %s (first %lld, count %lld, nx %lld, ny %lld, sy %lld, sz %lld): element %zu is %llx, want %llx\n", name,
			    c.what, c.first, c.count, c.nx, c.ny, c.sy, c.sz, i, (u64)dst[i], (u64)want[i]);
			bad++;
			return;
		}
}

static void checkAll(const Case &c)
{
	check<u64, u64>("fieldstone_pack_f64", true, c);
	check<u64, u32>("fieldstone_pack_f32", true, c);
	check<u64, u64>("fieldstone_unpack_f64", false, c);
	check<u32, u64>("fieldstone_unpack_f32", false, c);
}

// Numbers near all powers of two and near what float32 rounds to, NaNs.
static void checkNumbers()
{
	std::vector<u64> wide;
	for (u64 exponent = 0; exponent < 0x800; exponent++)
		for (u64 sign = 0; sign < 2; sign++) {
			u64 b = sign << 63 | exponent << 52;
			for (i64 d : {0LL, 1LL, -1LL, 1LL << 28, (1LL << 28) - 1, (1LL << 28) + 1, 1LL << 29, 3LL << 28, (3LL << 28) + 1, (3LL << 28) - 1,
			         (1LL << 51) + (1LL << 28), (1LL << 51) + (3LL << 28), (1LL << 52) - 1, (1LL << 52) - (1LL << 28), (1LL << 51) + 5})
				wide.push_back(b + d);
			for (u64 i = 0; i < 8; i++)
				wide.push_back(b | bits(exponent * 16 + sign * 8 + i) >> 12);
		}
	std::vector<u32> narrow(wide.size());
	run("fieldstone_unpack_f32", narrow.data(), wide.data(), 0, wide.size(), wide.size(), 1, 0, 0);
	for (size_t i = 0; i < wide.size(); i++)
		if (narrow[i] != narrowed(wide[i])) {
			std::printf("fieldstone_unpack_f32 of %llx: %x, want %x\n", wide[i], narrow[i], narrowed(wide[i]));
			bad++;
			break;
		}

	narrow.clear();
	for (u32 exponent = 0; exponent < 0x200; exponent++)
		for (u32 bit = 0; bit <= 23; bit++) {
			narrow.push_back(exponent << 23 | (1u << bit >> 1));
			narrow.push_back(exponent << 23 | ((1u << bit) - 1));
			narrow.push_back(exponent << 23 | (bits(exponent * 32 + bit) & 0x7fffff));
		}
	wide.resize(narrow.size());
	run("fieldstone_pack_f32", wide.data(), narrow.data(), 0, narrow.size(), narrow.size(), 1, 0, 0);
	for (size_t i = 0; i < narrow.size(); i++)
		if (wide[i] != widened(narrow[i])) {
			std::printf("fieldstone_pack_f32 of %x: %llx, want %llx\n", narrow[i], wide[i], widened(narrow[i]));
			bad++;
			break;
		}
}

int main()
{
	const i64 big = 1LL << 31;
	for (const Case &c : {
	         Case{"one cell", 0, 1, 1, 1, 1, 1},
	         Case{"the last cell of a slice", 29, 1, 5, 6, 9, 90},
	         Case{"a block", 0, 1024, 10, 6, 14, 140},
	         Case{"a block and a cell", 0, 1025, 10, 6, 14, 140},
	         Case{"a block less a cell", 7, 1023, 10, 6, 14, 140},
	         Case{"blocks that begin within a row", 333, 5000, 100, 7, 104, 1144},
	         Case{"rows of a cell", 3, 4096, 1, 13, 5, 85},
	         Case{"slices of a cell", 3, 4096, 1, 1, 1, 5},
	         Case{"slices of a row", 100, 4096, 257, 1, 260, 780},
	         Case{"rows of as many cells as threads", 1, 4096, 256, 4, 258, 1548},
	         Case{"rows of a cell more", 1, 4096, 257, 4, 260, 1560},
	         Case{"rows of a cell less", 1, 4096, 255, 4, 258, 1548},
	         Case{"rows of two cells", 5, 3000, 2, 3, 6, 42},
	         Case{"rows of half as many cells as threads", 5, 3000, 128, 2, 132, 792},
	         Case{"a line", 12345, 3000, 1000000, 1, 0, 0},
	         Case{"no ghosts", 77, 3000, 16, 16, 16, 256},
	         Case{"one row, over and over", 77, 2048, 2048, 1, 0, 0},
	         Case{"the last whole block of 32-bit coordinates", big - 1025, 2048, 1000, 1000, 1004, 1004 * 1004},
	         Case{"across the end of 32-bit coordinates", big - 2500, 5000, 1000, 1000, 1004, 1004 * 1004},
	         Case{"past the end of 32-bit coordinates", big + 12345, 5000, 1000, 1000, 1004, 1004 * 1004},
	         Case{"past 2^32", 2 * big - 2500, 5000, 1000, 1000, 1004, 1004 * 1004},
	         Case{"past 2^40", (1LL << 40) + 333, 5000, 1000, 1000, 1004, 1004 * 1004},
	         Case{"past 2^40, short rows", (1LL << 40) + 333, 5000, 3, 5, 7, 63},
	         Case{"rows of more than 2^31 cells", 5 * big - 2000, 4096, 5 * big - 100, 3, 5 * big, 25 * big},
	         Case{"a line of more than 2^32 cells", 3 * big, 4096, 4 * big, 1, 0, 0},
	         Case{"slices of more than 2^31 rows", 3 * big - 2000, 4096, 1, 3 * big - 100, 3, 9 * big},
	         Case{"rows and slices of just 2^31", 2 * big, 4096, big, 1, big + 4, big + 4},
	     })
		checkAll(c);

	for (u64 seed = 1; seed <= 400; seed++) {
		auto at = [&](u64 i, i64 n) { return i64(bits(seed * 16 + i) % u64(n)); };
		i64 nx = 1 + at(0, 1LL << at(1, 11)), ny = 1 + at(2, 1LL << at(3, 7));
		i64 sy = nx + at(4, 5), sz = sy * (ny + at(5, 4)) + at(6, 3);
		checkAll(Case{"chosen by chance", at(7, 1LL << at(8, 41)), 1 + at(9, 4000), nx, ny, sy, sz});
	}
	checkNumbers();
	return bad != 0;
}
