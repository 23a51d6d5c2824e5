// The interpreter of PTX. Registers are 64 bits wide; a value of a narrower type has
// zeros above, so that bits are what a register of the device holds.
#include "ptx.h"

#include <fenv.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { SPECIALS = 12 };

struct thread {
	const struct fg_ptx_kernel *kernel;
	uint64_t *registers;
	uint32_t special[SPECIALS];
	const char *arguments;
	char *local; // memory of its own
	struct fg_access *access;
};

// ---- bits ----

static uint64_t narrow(uint64_t v, unsigned width)
{
	return width >= 8 ? v : v & (((uint64_t)1 << 8 * width) - 1);
}

static int64_t extended(uint64_t v, unsigned width)
{
	unsigned shift = 64 - 8 * width;
	return (int64_t)(v << shift) >> shift;
}

static float to_float(uint64_t v)
{
	uint32_t bits = (uint32_t)v;
	float f;
	memcpy(&f, &bits, sizeof f);
	return f;
}

static double to_double(uint64_t v)
{
	double d;
	memcpy(&d, &v, sizeof d);
	return d;
}

// NaN of single precision has one pattern on the device.
static uint64_t from_float(float f)
{
	uint32_t bits;
	memcpy(&bits, &f, sizeof bits);
	return f != f ? 0x7fffffff : bits;
}

static uint64_t from_double(double d)
{
	uint64_t bits;
	memcpy(&bits, &d, sizeof bits);
	return bits;
}

// ---- arithmetic of floats ----

static float flush(const struct fg_ptx_instruction *in, float f)
{
	return in->modifiers & PTX_FTZ && fpclassify(f) == FP_SUBNORMAL ? copysignf(0, f) : f;
}

static double saturate(double d)
{
	return d > 1 ? 1 : d > 0 ? d : 0; // NaN too becomes 0
}

static float minimum(float a, float b, bool nan)
{
	if (a != a || b != b)
		return nan || (a != a && b != b) ? NAN : a != a ? b : a;
	return a < b || (a == b && signbit(a)) ? a : b;
}

static double minimum_double(double a, double b, bool nan)
{
	if (a != a || b != b)
		return nan || (a != a && b != b) ? (double)NAN : a != a ? b : a;
	return a < b || (a == b && signbit(a)) ? a : b;
}

static float single_result(const struct fg_ptx_instruction *in, float a, float b, float c)
{
	bool nan = in->modifiers & PTX_NAN;
	switch (in->op) {
	case PTX_ADD: return a + b;
	case PTX_SUB: return a - b;
	case PTX_MUL: return a * b;
	case PTX_DIV: return a / b;
	case PTX_FMA: case PTX_MAD: return fmaf(a, b, c);
	case PTX_RCP: return 1 / a;
	case PTX_SQRT: return sqrtf(a);
	case PTX_RSQRT: return (float)(1 / sqrt((double)a));
	case PTX_MIN: return minimum(a, b, nan);
	case PTX_MAX: return -minimum(-a, -b, nan);
	default: abort();
	}
}

static double double_result(const struct fg_ptx_instruction *in, double a, double b, double c)
{
	bool nan = in->modifiers & PTX_NAN;
	switch (in->op) {
	case PTX_ADD: return a + b;
	case PTX_SUB: return a - b;
	case PTX_MUL: return a * b;
	case PTX_DIV: return a / b;
	case PTX_FMA: case PTX_MAD: return fma(a, b, c);
	case PTX_RCP: return 1 / a;
	case PTX_SQRT: return sqrt(a);
	case PTX_RSQRT: return 1 / sqrt(a);
	case PTX_MIN: return minimum_double(a, b, nan);
	case PTX_MAX: return -minimum_double(-a, -b, nan);
	default: abort();
	}
}

static uint64_t float_nearest(const struct fg_ptx_instruction *in, uint64_t a, uint64_t b, uint64_t c)
{
	if (in->type.width == 8) {
		double d = double_result(in, to_double(a), to_double(b), to_double(c));
		return from_double(in->modifiers & PTX_SAT ? saturate(d) : d);
	}
	float f = single_result(in, flush(in, to_float(a)), flush(in, to_float(b)), flush(in, to_float(c)));
	f = flush(in, f);
	return from_float(in->modifiers & PTX_SAT ? (float)saturate(f) : f);
}

static int rounding(unsigned modifiers)
{
	if (modifiers & (PTX_RZ | PTX_RZI))
		return FE_TOWARDZERO;
	if (modifiers & (PTX_RM | PTX_RMI))
		return FE_DOWNWARD;
	if (modifiers & (PTX_RP | PTX_RPI))
		return FE_UPWARD;
	return FE_TONEAREST;
}

static uint64_t float_op(const struct fg_ptx_instruction *in, uint64_t a, uint64_t b, uint64_t c)
{
	int mode = rounding(in->modifiers);
	if (mode == FE_TONEAREST)
		return float_nearest(in, a, b, c);
	fesetround(mode);
	uint64_t result = float_nearest(in, a, b, c);
	fesetround(FE_TONEAREST);
	return result;
}

// Signs are bits: also that of NaN.
static uint64_t float_sign(const struct fg_ptx_instruction *in, uint64_t a, uint64_t b)
{
	uint64_t sign = (uint64_t)1 << (8 * in->type.width - 1);
	if (in->type.width == 4 && in->modifiers & PTX_FTZ)
		a = from_float(flush(in, to_float(a)));
	switch (in->op) {
	case PTX_NEG: return a ^ sign;
	case PTX_ABS: return a & ~sign;
	default: return (b & ~sign) | (a & sign); // copysign: the sign is that of a
	}
}

static bool test_float(const struct fg_ptx_instruction *in, uint64_t a)
{
	int class = in->type.width == 4 ? fpclassify(to_float(a)) : fpclassify(to_double(a));
	switch (in->compare) {
	case PTX_FINITE: return class != FP_NAN && class != FP_INFINITE;
	case PTX_INFINITE: return class == FP_INFINITE;
	case PTX_NUMBER: return class != FP_NAN;
	case PTX_NOTANUMBER: return class == FP_NAN;
	case PTX_NORMAL: return class == FP_NORMAL;
	default: return class == FP_SUBNORMAL;
	}
}

static bool compare_float(int compare, double a, double b)
{
	bool unordered = a != a || b != b;
	switch (compare) {
	case PTX_EQ: return a == b;
	case PTX_NE: return !unordered && a != b;
	case PTX_LT: return a < b;
	case PTX_LE: return a <= b;
	case PTX_GT: return a > b;
	case PTX_GE: return a >= b;
	case PTX_EQU: return unordered || a == b;
	case PTX_NEU: return unordered || a != b;
	case PTX_LTU: return unordered || a < b;
	case PTX_LEU: return unordered || a <= b;
	case PTX_GTU: return unordered || a > b;
	case PTX_GEU: return unordered || a >= b;
	case PTX_NUM: return !unordered;
	default: return unordered;
	}
}

// ---- arithmetic of integers ----

static uint64_t high_product(struct fg_ptx_type t, uint64_t a, uint64_t b)
{
	if (t.class == PTX_SIGNED)
		return (uint64_t)(((__int128)extended(a, t.width) * extended(b, t.width)) >> 8 * t.width);
	return (uint64_t)(((unsigned __int128)a * b) >> 8 * t.width);
}

static uint64_t product(const struct fg_ptx_instruction *in, uint64_t a, uint64_t b)
{
	struct fg_ptx_type t = in->type;
	if (in->modifiers & PTX_HIGH)
		return high_product(t, a, b);
	if (in->modifiers & PTX_WIDE && t.class == PTX_SIGNED)
		return (uint64_t)extended(a, t.width) * (uint64_t)extended(b, t.width);
	return a * b;
}

// What the device gives for a division by zero is all ones, and the dividend for the
// rest.
static uint64_t quotient(const struct fg_ptx_instruction *in, uint64_t a, uint64_t b)
{
	struct fg_ptx_type t = in->type;
	bool rest = in->op == PTX_REM;
	if (b == 0)
		return rest ? a : ~(uint64_t)0;
	if (t.class != PTX_SIGNED)
		return rest ? a % b : a / b;
	int64_t x = extended(a, t.width), y = extended(b, t.width);
	if (y == -1)
		return rest ? 0 : -(uint64_t)x;
	return (uint64_t)(rest ? x % y : x / y);
}

static uint64_t shift_right(struct fg_ptx_type t, uint64_t a, uint64_t by)
{
	unsigned bits = 8 * t.width;
	if (t.class == PTX_SIGNED)
		return (uint64_t)(extended(a, t.width) >> (by >= bits ? bits - 1 : by));
	return by >= bits ? 0 : a >> by;
}

static bool less(struct fg_ptx_type t, uint64_t a, uint64_t b)
{
	return t.class == PTX_SIGNED ? extended(a, t.width) < extended(b, t.width) : a < b;
}

static uint64_t saturated_sum(const struct fg_ptx_instruction *in, uint64_t a, uint64_t b)
{
	int64_t x = extended(a, 4), y = extended(b, 4), sum = in->op == PTX_ADD ? x + y : x - y;
	return (uint64_t)(sum > INT32_MAX ? INT32_MAX : sum < INT32_MIN ? INT32_MIN : sum);
}

static uint64_t reversed(uint64_t a, unsigned bits)
{
	uint64_t r = 0;
	for (unsigned i = 0; i < bits; i++)
		r |= (a >> i & 1) << (bits - 1 - i);
	return r;
}

static uint64_t extract(struct fg_ptx_type t, uint64_t a, uint64_t position, uint64_t length)
{
	unsigned bits = 8 * t.width;
	position &= 255;
	length &= 255;
	uint64_t last = position + length < 1 ? 0 : position + length - 1;
	uint64_t sign = t.class == PTX_SIGNED && length ? a >> (last < bits ? last : bits - 1) & 1 : 0;
	uint64_t field = position < bits ? a >> position : 0;
	if (length == 0)
		return 0;
	if (position >= bits)
		return sign ? ~(uint64_t)0 : 0;
	uint64_t kept = length < bits - position ? length : bits - position;
	uint64_t mask = kept >= 64 ? ~(uint64_t)0 : ((uint64_t)1 << kept) - 1;
	return (field & mask) | (sign ? ~mask : 0);
}

static uint64_t insert(struct fg_ptx_type t, uint64_t a, uint64_t b, uint64_t position, uint64_t length)
{
	unsigned bits = 8 * t.width;
	position &= 255;
	length &= 255;
	if (position >= bits || length == 0)
		return b;
	uint64_t mask = length >= 64 ? ~(uint64_t)0 : ((uint64_t)1 << length) - 1;
	mask <<= position;
	return (b & ~mask) | (a << position & mask);
}

// Each result byte is one of the eight of a and b, or its sign.
static uint64_t permuted(uint64_t a, uint64_t b, uint64_t selector)
{
	uint64_t bytes = (a & 0xffffffff) | b << 32, r = 0;
	for (unsigned i = 0; i < 4; i++) {
		unsigned s = selector >> 4 * i & 15;
		uint64_t byte = bytes >> 8 * (s & 7) & 255;
		if (s & 8)
			byte = byte & 128 ? 255 : 0;
		r |= byte << 8 * i;
	}
	return r;
}

static uint64_t funnel(const struct fg_ptx_instruction *in, uint64_t low, uint64_t high, uint64_t by)
{
	uint64_t both = (low & 0xffffffff) | high << 32;
	by = in->modifiers & PTX_WRAP ? by & 31 : by > 32 ? 32 : by;
	return in->modifiers & PTX_LEFT ? both << by >> 32 : both >> by;
}

static uint64_t integer_op(const struct fg_ptx_instruction *in, uint64_t a, uint64_t b, uint64_t c, uint64_t d)
{
	struct fg_ptx_type t = in->type;
	unsigned bits = 8 * t.width;
	switch (in->op) {
	case PTX_ADD: return in->modifiers & PTX_SAT ? saturated_sum(in, a, b) : a + b;
	case PTX_SUB: return in->modifiers & PTX_SAT ? saturated_sum(in, a, b) : a - b;
	case PTX_MUL: return product(in, a, b);
	case PTX_MAD: return product(in, a, b) + c;
	case PTX_DIV: case PTX_REM: return quotient(in, a, b);
	case PTX_AND: return a & b;
	case PTX_OR: return a | b;
	case PTX_XOR: return a ^ b;
	case PTX_NOT: return t.class == PTX_PRED ? !a : ~a;
	case PTX_CNOT: return a == 0;
	case PTX_NEG: return -a;
	case PTX_ABS: return extended(a, t.width) < 0 ? -a : a;
	case PTX_MIN: return less(t, b, a) ? b : a;
	case PTX_MAX: return less(t, a, b) ? b : a;
	case PTX_SHL: return b >= bits ? 0 : a << b;
	case PTX_SHR: return shift_right(t, a, b);
	case PTX_SHF: return funnel(in, a, b, c);
	case PTX_CLZ: return a ? (uint64_t)__builtin_clzll(a) - (64 - bits) : bits;
	case PTX_POPC: return (uint64_t)__builtin_popcountll(a);
	case PTX_BREV: return reversed(a, bits);
	case PTX_BFE: return extract(t, a, b, c);
	case PTX_BFI: return insert(t, a, b, c, d);
	case PTX_PRMT: return permuted(a, b, c);
	default: abort();
	}
}

static bool compare_integer(const struct fg_ptx_instruction *in, uint64_t a, uint64_t b)
{
	switch (in->compare) {
	case PTX_EQ: return a == b;
	case PTX_NE: return a != b;
	case PTX_LT: return less(in->type, a, b);
	case PTX_LE: return !less(in->type, b, a);
	case PTX_GT: return less(in->type, b, a);
	default: return !less(in->type, a, b);
	}
}

static bool compare(const struct fg_ptx_instruction *in, uint64_t a, uint64_t b)
{
	if (in->type.class != PTX_FLOAT)
		return compare_integer(in, a, b);
	if (in->type.width == 8)
		return compare_float(in->compare, to_double(a), to_double(b));
	return compare_float(in->compare, flush(in, to_float(a)), flush(in, to_float(b)));
}

// ---- conversions ----

static double rounded(double d, unsigned modifiers)
{
	if (modifiers & PTX_RMI)
		return floor(d);
	if (modifiers & PTX_RPI)
		return ceil(d);
	if (modifiers & PTX_RZI)
		return trunc(d);
	return nearbyint(d);
}

static uint64_t float_to_integer(const struct fg_ptx_instruction *in, double d)
{
	struct fg_ptx_type to = in->type;
	unsigned bits = 8 * to.width;
	if (d != d)
		return in->from.width == 8 || to.width == 8 ? (uint64_t)1 << (bits - 1) : 0;
	d = rounded(d, in->modifiers);
	if (to.class == PTX_SIGNED) {
		double limit = ldexp(1, (int)bits - 1);
		if (d >= limit)
			return ((uint64_t)1 << (bits - 1)) - 1;
		return d < -limit ? (uint64_t)1 << (bits - 1) : (uint64_t)(int64_t)d;
	}
	if (d >= ldexp(1, (int)bits))
		return ~(uint64_t)0;
	return d <= 0 ? 0 : (uint64_t)d;
}

static uint64_t integer_to_float(const struct fg_ptx_instruction *in, uint64_t a)
{
	bool sign = in->from.class == PTX_SIGNED;
	int64_t s = extended(a, in->from.width);
	fesetround(rounding(in->modifiers));
	uint64_t result = in->type.width == 8 ? from_double(sign ? (double)s : (double)a) : from_float(sign ? (float)s : (float)a);
	fesetround(FE_TONEAREST);
	return result;
}

static uint64_t float_to_float(const struct fg_ptx_instruction *in, uint64_t a)
{
	bool integer = in->modifiers & (PTX_RNI | PTX_RZI | PTX_RMI | PTX_RPI);
	double d = in->from.width == 8 ? to_double(a) : (double)flush(in, to_float(a));
	if (integer)
		d = rounded(d, in->modifiers);
	if (in->modifiers & PTX_SAT)
		d = saturate(d);
	if (in->type.width == 8)
		return from_double(d);
	fesetround(rounding(in->modifiers));
	uint64_t result = from_float(flush(in, (float)d));
	fesetround(FE_TONEAREST);
	return result;
}

static uint64_t integer_to_integer(const struct fg_ptx_instruction *in, uint64_t a)
{
	struct fg_ptx_type to = in->type, from = in->from;
	if (from.class == PTX_SIGNED)
		a = (uint64_t)extended(a, from.width);
	if (!(in->modifiers & PTX_SAT))
		return a;
	unsigned bits = 8 * to.width;
	uint64_t most = to.class == PTX_SIGNED ? ((uint64_t)1 << (bits - 1)) - 1 : narrow(~(uint64_t)0, to.width);
	if (from.class != PTX_SIGNED)
		return a > most ? most : a;
	int64_t s = (int64_t)a, least = to.class == PTX_SIGNED ? -(int64_t)most - 1 : 0;
	return s < least ? (uint64_t)least : s > 0 && a > most ? most : a;
}

static uint64_t converted(const struct fg_ptx_instruction *in, uint64_t a)
{
	bool from = in->from.class == PTX_FLOAT, to = in->type.class == PTX_FLOAT;
	a = narrow(a, in->from.width);
	if (from && to)
		return float_to_float(in, a);
	if (to)
		return integer_to_float(in, a);
	if (from)
		return float_to_integer(in, in->from.width == 8 ? to_double(a) : (double)flush(in, to_float(a)));
	return integer_to_integer(in, a);
}

// ---- threads ----

static uint64_t value(const struct thread *t, const struct fg_ptx_operand *o)
{
	switch (o->kind) {
	case PTX_REGISTER: return t->registers[o->index] ^ (uint64_t)o->negated;
	case PTX_CONSTANT: return o->value;
	case PTX_SPECIAL: return t->special[o->index];
	default: return 0;
	}
}

static void set(struct thread *t, const struct fg_ptx_operand *o, uint64_t v, unsigned width)
{
	t->registers[o->index] = narrow(v, width);
}

static void explain(struct thread *t, const struct fg_ptx_instruction *in, const char *what)
{
	snprintf(t->access->why, sizeof t->access->why, "%s, line %d: %s: %s", t->kernel->name, in->line, in->text, what);
}

static void explain_address(struct thread *t, const struct fg_ptx_instruction *in, uint64_t address, const char *what)
{
	char text[80];
	snprintf(text, sizeof text, "address %#lx %s", (unsigned long)address, what);
	explain(t, in, text);
}

// Where the bytes of a load or store are. The status says why there are none.
static int locate(struct thread *t, const struct fg_ptx_instruction *in, unsigned bytes, char **out)
{
	const struct fg_ptx_operand *a = &in->in[0];
	if (in->modifiers & PTX_PARAM) {
		*out = (char *)t->arguments + t->kernel->parameter[a->index].offset + in->offset;
		return FG_OK;
	}
	uint64_t address = value(t, a) + in->offset, local = address - FG_PTX_LOCAL;
	if (address % bytes) {
		explain_address(t, in, address, "isn't aligned");
		return FG_MISALIGNED;
	}
	if (local < t->kernel->local_bytes && bytes <= t->kernel->local_bytes - local)
		*out = t->local + local;
	else
		*out = fg_access(t->access, address, bytes);
	if (*out)
		return FG_OK;
	explain_address(t, in, address, "isn't memory of the device");
	return FG_ILLEGAL_ADDRESS;
}

static int load(struct thread *t, const struct fg_ptx_instruction *in)
{
	char *p;
	unsigned width = in->type.width;
	int status = locate(t, in, width * (unsigned)in->outs, &p);
	if (status != FG_OK)
		return status;
	for (int i = 0; i < in->outs; i++) {
		uint64_t v = 0;
		memcpy(&v, p + (unsigned)i * width, width);
		// Narrow signed values fill the register they are loaded to.
		if (in->type.class == PTX_SIGNED)
			v = (uint64_t)extended(v, width);
		t->registers[in->out[i].index] = v;
	}
	return FG_OK;
}

static int store(struct thread *t, const struct fg_ptx_instruction *in)
{
	char *p;
	unsigned width = in->type.width;
	int status = locate(t, in, width * (unsigned)(in->ins - 1), &p);
	if (status != FG_OK)
		return status;
	for (int i = 1; i < in->ins; i++) {
		uint64_t v = value(t, &in->in[i]);
		memcpy(p + (unsigned)(i - 1) * width, &v, width);
	}
	return FG_OK;
}

// Also between a register and a vector of narrower ones.
static void move(struct thread *t, const struct fg_ptx_instruction *in)
{
	unsigned width = in->type.width;
	uint64_t v = value(t, &in->in[0]);
	if (in->ins > 1) {
		unsigned part = width / (unsigned)in->ins;
		v = 0;
		for (int i = 0; i < in->ins; i++)
			v |= narrow(value(t, &in->in[i]), part) << 8 * part * (unsigned)i;
	}
	unsigned part = width / (unsigned)in->outs;
	for (int i = 0; i < in->outs; i++)
		set(t, &in->out[i], in->outs > 1 ? v >> 8 * part * (unsigned)i : v, part);
}

static bool combine(unsigned modifiers, bool a, bool b)
{
	if (modifiers & PTX_WITH_AND)
		return a && b;
	if (modifiers & PTX_WITH_OR)
		return a || b;
	return modifiers & PTX_WITH_XOR ? a != b : a;
}

static void set_predicates(struct thread *t, const struct fg_ptx_instruction *in, uint64_t a, uint64_t b)
{
	bool with = in->ins > 2 ? value(t, &in->in[2]) : false;
	bool result = compare(in, a, b);
	set(t, &in->out[0], combine(in->modifiers, result, with), 1);
	if (in->outs > 1)
		set(t, &in->out[1], combine(in->modifiers, !result, with), 1);
}

static unsigned result_width(const struct fg_ptx_instruction *in)
{
	if (in->modifiers & PTX_WIDE)
		return 2u * in->type.width;
	if (in->op == PTX_CLZ || in->op == PTX_POPC)
		return 4;
	return in->type.width;
}

static uint64_t result(const struct fg_ptx_instruction *in, uint64_t a, uint64_t b, uint64_t c, uint64_t d)
{
	if (in->type.class != PTX_FLOAT)
		return integer_op(in, a, b, c, d);
	if (in->op == PTX_NEG || in->op == PTX_ABS || in->op == PTX_COPYSIGN)
		return float_sign(in, a, b);
	return float_op(in, a, b, c);
}

static void compute(struct thread *t, const struct fg_ptx_instruction *in)
{
	unsigned width = in->type.width;
	uint64_t a = value(t, &in->in[0]), b = value(t, &in->in[1]);
	uint64_t c = in->ins > 2 ? value(t, &in->in[2]) : 0, d = in->ins > 3 ? value(t, &in->in[3]) : 0;
	switch (in->op) {
	case PTX_CVTA: set(t, &in->out[0], a, 8); return;
	case PTX_CVT: set(t, &in->out[0], converted(in, a), in->type.width); return;
	case PTX_SELP: set(t, &in->out[0], c ? a : b, width); return;
	case PTX_SETP: set_predicates(t, in, narrow(a, width), narrow(b, width)); return;
	case PTX_TESTP: set(t, &in->out[0], test_float(in, a), 1); return;
	default: break;
	}
	// The distance of a shift, and the positions of bit fields, are 32 bits wide.
	bool shift = in->op == PTX_SHL || in->op == PTX_SHR;
	a = narrow(a, width);
	b = narrow(b, shift || in->op == PTX_BFE ? 4 : width);
	set(t, &in->out[0], result(in, a, b, c, d), result_width(in));
}

static bool skipped(const struct thread *t, const struct fg_ptx_instruction *in)
{
	return in->guard >= 0 && (t->registers[in->guard] != 0) == in->guard_negated;
}

static int run_thread(struct thread *t)
{
	const struct fg_ptx_kernel *k = t->kernel;
	int at = 0, status;
	for (long steps = 0; at < k->instructions; steps++) {
		const struct fg_ptx_instruction *in = &k->instruction[at++];
		if (steps == t->access->steps) {
			explain(t, in, "the thread doesn't end");
			return FG_LAUNCH_TIMEOUT;
		}
		if (skipped(t, in))
			continue;
		switch (in->op) {
		case PTX_EXIT: return FG_OK;
		case PTX_BRA: at = in->target; continue;
		case PTX_LD: status = load(t, in); break;
		case PTX_ST: status = store(t, in); break;
		case PTX_MOV: move(t, in); continue;
		default: compute(t, in); continue;
		}
		if (status != FG_OK)
			return status;
	}
	return FG_OK;
}

static void place(struct thread *t, uint64_t i, struct fg_dim block, uint64_t j, struct fg_dim grid)
{
	uint32_t where[SPECIALS] = {
		(uint32_t)(i % block.x), (uint32_t)(i / block.x % block.y), (uint32_t)(i / block.x / block.y), block.x, block.y, block.z,
		(uint32_t)(j % grid.x), (uint32_t)(j / grid.x % grid.y), (uint32_t)(j / grid.x / grid.y), grid.x, grid.y, grid.z,
	};
	memcpy(t->special, where, sizeof where);
}

// From the last thread to the first, so that a kernel that leans on the order of its
// threads shows it.
int fg_ptx_run(const struct fg_ptx_kernel *k, struct fg_dim grid, struct fg_dim block, const void *arguments, struct fg_access *access)
{
	struct thread t = {.kernel = k, .arguments = arguments, .access = access};
	uint64_t blocks = (uint64_t)grid.x * grid.y * grid.z, threads = (uint64_t)block.x * block.y * block.z;
	int status = FG_OK;
	t.registers = calloc((size_t)k->registers + 1, sizeof *t.registers);
	t.local = calloc(1, k->local_bytes + 1);
	for (uint64_t j = blocks; status == FG_OK && j-- > 0;)
		for (uint64_t i = threads; status == FG_OK && i-- > 0;) {
			place(&t, i, block, j, grid);
			status = run_thread(&t);
		}
	free(t.registers);
	free(t.local);
	return status;
}
