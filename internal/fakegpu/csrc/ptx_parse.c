// The parser of PTX. What it doesn't know is an error, so that no kernel runs
// differently from what it says.
#include "ptx.h"

#include <ctype.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct parser {
	const char *at;
	int line;
	char *error;
	size_t size;
	int status;
	struct fg_ptx *ptx;
	struct fg_ptx_kernel *kernel;
	jmp_buf failed;
};

__attribute__((format(printf, 3, 4), noreturn))
static void fail(struct parser *p, int status, const char *format, ...)
{
	int n = snprintf(p->error, p->size, "line %d: ", p->line);
	va_list args;
	va_start(args, format);
	if (n >= 0 && (size_t)n < p->size)
		vsnprintf(p->error + n, p->size - (size_t)n, format, args);
	va_end(args);
	p->status = status;
	longjmp(p->failed, 1);
}

#define INVALID(p, ...) fail(p, FG_INVALID_PTX, __VA_ARGS__)

// ---- tokens ----

static void skip_comment(struct parser *p)
{
	if (p->at[1] == '/') {
		while (*p->at && *p->at != '\n')
			p->at++;
		return;
	}
	p->at += 2;
	while (*p->at && !(p->at[0] == '*' && p->at[1] == '/')) {
		if (*p->at == '\n')
			p->line++;
		p->at++;
	}
	if (*p->at)
		p->at += 2;
}

static void skip_space(struct parser *p)
{
	for (;;) {
		if (*p->at == '\n')
			p->line++;
		if (isspace((unsigned char)*p->at))
			p->at++;
		else if (p->at[0] == '/' && (p->at[1] == '/' || p->at[1] == '*'))
			skip_comment(p);
		else
			return;
	}
}

static bool in_word(char c)
{
	return isalnum((unsigned char)c) || c == '_' || c == '$' || c == '%' || c == '.' || c == ':';
}

enum { WORD = 128 };

// A word is a name, a number, a directive or an instruction with its modifiers. The
// colon that ends a label isn't part of it, those of modifiers such as L2::128B are.
static bool word(struct parser *p, char out[WORD])
{
	skip_space(p);
	size_t n = 0;
	const char *s = p->at;
	while (in_word(s[n]) && !(s[n] == ':' && s[n + 1] != ':' && (n == 0 || s[n - 1] != ':')))
		n++;
	if (n == 0)
		return false;
	if (n >= WORD)
		INVALID(p, "%.40s... is too long", s);
	memcpy(out, s, n);
	out[n] = 0;
	p->at += n;
	return true;
}

static bool accept(struct parser *p, char c)
{
	skip_space(p);
	if (*p->at != c)
		return false;
	p->at++;
	return true;
}

static void expect(struct parser *p, char c)
{
	if (!accept(p, c)) {
		if (*p->at == 0)
			INVALID(p, "the text ends where '%c' should be", c);
		INVALID(p, "'%c' instead of '%c'", isprint((unsigned char)*p->at) ? *p->at : '?', c);
	}
}

static void expect_word(struct parser *p, char out[WORD])
{
	if (!word(p, out))
		INVALID(p, "a name is missing");
}

static long expect_integer(struct parser *p, long most)
{
	char w[WORD], *end;
	expect_word(p, w);
	long n = strtol(w, &end, 0);
	if (*end || n < 0 || n > most)
		INVALID(p, "%s isn't a number that fits", w);
	return n;
}

// ---- types and modifiers ----

static bool type_named(const char *name, struct fg_ptx_type *type)
{
	static const struct {
		const char *name;
		struct fg_ptx_type type;
	} types[] = {
		{"b8", {PTX_BITS, 1}}, {"b16", {PTX_BITS, 2}}, {"b32", {PTX_BITS, 4}}, {"b64", {PTX_BITS, 8}},
		{"u8", {PTX_UNSIGNED, 1}}, {"u16", {PTX_UNSIGNED, 2}}, {"u32", {PTX_UNSIGNED, 4}}, {"u64", {PTX_UNSIGNED, 8}},
		{"s8", {PTX_SIGNED, 1}}, {"s16", {PTX_SIGNED, 2}}, {"s32", {PTX_SIGNED, 4}}, {"s64", {PTX_SIGNED, 8}},
		{"f32", {PTX_FLOAT, 4}}, {"f64", {PTX_FLOAT, 8}}, {"pred", {PTX_PRED, 1}},
	};
	for (size_t i = 0; i < sizeof types / sizeof *types; i++)
		if (strcmp(name, types[i].name) == 0) {
			*type = types[i].type;
			return true;
		}
	return false;
}

static const struct {
	const char *name;
	unsigned bit;
} modifiers[] = {
	{"rn", PTX_RN}, {"rz", PTX_RZ}, {"rm", PTX_RM}, {"rp", PTX_RP},
	{"rni", PTX_RNI}, {"rzi", PTX_RZI}, {"rmi", PTX_RMI}, {"rpi", PTX_RPI},
	{"ftz", PTX_FTZ}, {"sat", PTX_SAT}, {"NaN", PTX_NAN},
	{"lo", PTX_LOW}, {"hi", PTX_HIGH}, {"wide", PTX_WIDE},
	{"global", PTX_GLOBAL}, {"param", PTX_PARAM}, {"local", PTX_LOCAL}, {"to", PTX_TO}, {"v2", PTX_V2}, {"v4", PTX_V4},
	{"and", PTX_WITH_AND}, {"or", PTX_WITH_OR}, {"xor", PTX_WITH_XOR},
	{"l", PTX_LEFT}, {"r", PTX_RIGHT}, {"wrap", PTX_WRAP}, {"clamp", PTX_CLAMP},
	{"nc", PTX_HINT}, {"ca", PTX_HINT}, {"cg", PTX_HINT}, {"cs", PTX_HINT}, {"lu", PTX_HINT}, {"cv", PTX_HINT},
	{"wb", PTX_HINT}, {"wt", PTX_HINT}, {"weak", PTX_HINT}, {"volatile", PTX_HINT}, {"uni", PTX_HINT},
	{"approx", PTX_APPROX}, {"full", PTX_APPROX},
};

static const struct {
	const char *name;
	enum fg_ptx_compare compare;
} compares[] = {
	{"eq", PTX_EQ}, {"ne", PTX_NE}, {"lt", PTX_LT}, {"le", PTX_LE}, {"gt", PTX_GT}, {"ge", PTX_GE},
	{"lo", PTX_LT}, {"ls", PTX_LE}, {"hi", PTX_GT}, {"hs", PTX_GE},
	{"equ", PTX_EQU}, {"neu", PTX_NEU}, {"ltu", PTX_LTU}, {"leu", PTX_LEU}, {"gtu", PTX_GTU}, {"geu", PTX_GEU},
	{"num", PTX_NUM}, {"nan", PTX_ISNAN},
	{"finite", PTX_FINITE}, {"infinite", PTX_INFINITE}, {"number", PTX_NUMBER}, {"notanumber", PTX_NOTANUMBER},
	{"normal", PTX_NORMAL}, {"subnormal", PTX_SUBNORMAL},
};

enum {
	ROUND = PTX_RN | PTX_RZ | PTX_RM | PTX_RP,
	ROUND_INTEGER = PTX_RNI | PTX_RZI | PTX_RMI | PTX_RPI,
	HALF = PTX_LOW | PTX_HIGH | PTX_WIDE,
	VECTOR = PTX_V2 | PTX_V4,
	COMBINE = PTX_WITH_AND | PTX_WITH_OR | PTX_WITH_XOR,
};

// How many operands an instruction reads, what modifiers it takes, and what classes of
// types.
enum { I = 1, F = 2, B = 4, P = 8 };

static const struct instruction {
	const char *name;
	enum fg_ptx_op op;
	int ins;
	unsigned modifiers, classes;
} instructions[] = {
	{"abs", PTX_ABS, 1, PTX_FTZ, I | F},
	{"add", PTX_ADD, 2, ROUND | PTX_FTZ | PTX_SAT, I | F},
	{"and", PTX_AND, 2, 0, B | P},
	{"bfe", PTX_BFE, 3, 0, I},
	{"bfi", PTX_BFI, 4, 0, B},
	{"bra", PTX_BRA, 1, PTX_HINT, 0},
	{"brev", PTX_BREV, 1, 0, B},
	{"clz", PTX_CLZ, 1, 0, B},
	{"cnot", PTX_CNOT, 1, 0, B},
	{"copysign", PTX_COPYSIGN, 2, 0, F},
	{"cvt", PTX_CVT, 1, ROUND | ROUND_INTEGER | PTX_FTZ | PTX_SAT, I | F},
	{"cvta", PTX_CVTA, 1, PTX_TO | PTX_GLOBAL | PTX_LOCAL, I},
	{"div", PTX_DIV, 2, ROUND | PTX_FTZ | PTX_APPROX, I | F},
	{"exit", PTX_EXIT, 0, 0, 0},
	{"fma", PTX_FMA, 3, ROUND | PTX_FTZ | PTX_SAT, F},
	{"ld", PTX_LD, 1, PTX_GLOBAL | PTX_PARAM | PTX_LOCAL | VECTOR | PTX_HINT, I | F | B},
	{"mad", PTX_MAD, 3, HALF | ROUND | PTX_FTZ | PTX_SAT, I | F},
	{"max", PTX_MAX, 2, PTX_FTZ | PTX_NAN, I | F},
	{"min", PTX_MIN, 2, PTX_FTZ | PTX_NAN, I | F},
	{"mov", PTX_MOV, 1, 0, I | F | B | P},
	{"mul", PTX_MUL, 2, HALF | ROUND | PTX_FTZ | PTX_SAT, I | F},
	{"neg", PTX_NEG, 1, PTX_FTZ, I | F},
	{"not", PTX_NOT, 1, 0, B | P},
	{"or", PTX_OR, 2, 0, B | P},
	{"popc", PTX_POPC, 1, 0, B},
	{"prmt", PTX_PRMT, 3, 0, B},
	{"rcp", PTX_RCP, 1, ROUND | PTX_FTZ | PTX_APPROX, F},
	{"rem", PTX_REM, 2, 0, I},
	{"ret", PTX_EXIT, 0, PTX_HINT, 0},
	{"rsqrt", PTX_RSQRT, 1, PTX_FTZ | PTX_APPROX, F},
	{"selp", PTX_SELP, 3, 0, I | F | B},
	{"setp", PTX_SETP, 2, COMBINE | PTX_FTZ, I | F | B},
	{"shf", PTX_SHF, 3, PTX_LEFT | PTX_RIGHT | PTX_WRAP | PTX_CLAMP, B},
	{"shl", PTX_SHL, 2, 0, B},
	{"shr", PTX_SHR, 2, 0, I | B},
	{"sqrt", PTX_SQRT, 1, ROUND | PTX_FTZ | PTX_APPROX, F},
	{"st", PTX_ST, 2, PTX_GLOBAL | PTX_LOCAL | VECTOR | PTX_HINT, I | F | B},
	{"sub", PTX_SUB, 2, ROUND | PTX_FTZ | PTX_SAT, I | F},
	{"testp", PTX_TESTP, 1, 0, F},
	{"xor", PTX_XOR, 2, 0, B | P},
};

static bool takes(const struct instruction *i, struct fg_ptx_type t)
{
	static const unsigned bits[] = {[PTX_BITS] = B, [PTX_UNSIGNED] = I, [PTX_SIGNED] = I, [PTX_FLOAT] = F, [PTX_PRED] = P};
	return i->classes & bits[t.class];
}

static const struct instruction *instruction_named(const char *name)
{
	for (size_t i = 0; i < sizeof instructions / sizeof *instructions; i++)
		if (strcmp(name, instructions[i].name) == 0)
			return &instructions[i];
	return NULL;
}

static bool compares_by(struct fg_ptx_instruction *in, const char *name)
{
	if ((in->op != PTX_SETP && in->op != PTX_TESTP) || in->compare != PTX_NONE)
		return false;
	for (size_t i = 0; i < sizeof compares / sizeof *compares; i++)
		if (strcmp(name, compares[i].name) == 0 && (in->op == PTX_TESTP) == (compares[i].compare >= PTX_FINITE)) {
			in->compare = compares[i].compare;
			return true;
		}
	return false;
}

static unsigned modifier_named(const char *name)
{
	for (size_t i = 0; i < sizeof modifiers / sizeof *modifiers; i++)
		if (strcmp(name, modifiers[i].name) == 0)
			return modifiers[i].bit;
	return 0;
}

// Splits "setp.lt.f64" and the like.
static const struct instruction *opcode(struct parser *p, const char *text, struct fg_ptx_instruction *in)
{
	char parts[WORD], *rest = NULL;
	snprintf(parts, sizeof parts, "%s", text);
	char *name = strtok_r(parts, ".", &rest);
	const struct instruction *i = name ? instruction_named(name) : NULL;
	if (!i)
		INVALID(p, "instruction %s is not supported", text);
	in->op = i->op;
	int types = 0;
	for (char *part; (part = strtok_r(NULL, ".", &rest));) {
		struct fg_ptx_type type;
		unsigned bit = modifier_named(part);
		if (type_named(part, &type) && takes(i, type) && types < 2)
			*(types++ == 0 ? &in->type : &in->from) = type;
		else if (compares_by(in, part))
			continue;
		else if (bit & i->modifiers)
			in->modifiers |= bit;
		else
			INVALID(p, "instruction %s is not supported: .%s", text, part);
	}
	int want = i->op == PTX_CVT ? 2 : i->classes ? 1 : 0;
	if (types != want)
		INVALID(p, "instruction %s is not supported: %d types", text, types);
	return i;
}

// ---- operands ----

static const char *const specials[] = {
	"%tid.x", "%tid.y", "%tid.z", "%ntid.x", "%ntid.y", "%ntid.z",
	"%ctaid.x", "%ctaid.y", "%ctaid.z", "%nctaid.x", "%nctaid.y", "%nctaid.z",
};

static int register_named(const struct fg_ptx_kernel *k, const char *name)
{
	for (int i = 0; i < k->families; i++) {
		const struct fg_ptx_registers *f = &k->family[i];
		size_t n = strlen(f->prefix);
		if (strncmp(name, f->prefix, n) != 0)
			continue;
		if (f->count < 0) {
			if (name[n] == 0)
				return f->first;
			continue;
		}
		char *end;
		long index = strtol(name + n, &end, 10);
		if (isdigit((unsigned char)name[n]) && *end == 0 && index < f->count)
			return f->first + (int)index;
	}
	return -1;
}

static int label_named(struct fg_ptx_kernel *k, const char *name, int line)
{
	for (int i = 0; i < k->labels; i++)
		if (strcmp(k->label[i].name, name) == 0)
			return i;
	k->label = realloc(k->label, (size_t)(k->labels + 1) * sizeof *k->label);
	struct fg_ptx_label *l = &k->label[k->labels];
	snprintf(l->name, sizeof l->name, "%s", name);
	l->target = -1;
	l->line = line;
	return k->labels++;
}

static bool number(const char *w, struct fg_ptx_type type, bool negative, uint64_t *value)
{
	char *end;
	if (w[0] == '0' && strchr("fFdD", w[1]) && w[1]) {
		*value = strtoull(w + 2, &end, 16);
		return *end == 0 && strlen(w) == (strchr("fF", w[1]) ? 10 : 18) && !negative;
	}
	if (type.class == PTX_FLOAT)
		return false;
	*value = strtoull(w, &end, 0);
	if (*end == 'U')
		end++;
	if (negative)
		*value = -*value;
	return *end == 0;
}

static bool special(const char *w, struct fg_ptx_operand *o)
{
	for (size_t i = 0; i < sizeof specials / sizeof *specials; i++)
		if (strcmp(w, specials[i]) == 0) {
			o->kind = PTX_SPECIAL;
			o->index = (int)i;
			return true;
		}
	return false;
}

static struct fg_ptx_operand operand(struct parser *p, struct fg_ptx_type type)
{
	struct fg_ptx_kernel *k = p->kernel;
	struct fg_ptx_operand o = {0};
	char w[WORD];
	o.negated = accept(p, '!');
	bool negative = accept(p, '-');
	expect_word(p, w);
	if (isdigit((unsigned char)w[0])) {
		o.kind = PTX_CONSTANT;
		if (!number(w, type, negative, &o.value))
			INVALID(p, "%s isn't a number that is known here", w);
		return o;
	}
	if (negative)
		INVALID(p, "-%s is not supported", w);
	if (special(w, &o))
		return o;
	o.kind = PTX_REGISTER;
	o.index = register_named(k, w);
	if (o.index >= 0)
		return o;
	for (int i = 0; i < k->parameters; i++)
		if (strcmp(k->parameter[i].name, w) == 0) {
			o.kind = PTX_PARAMETER;
			o.index = i;
			return o;
		}
	for (int i = 0; i < k->locals; i++)
		if (strcmp(k->local[i].name, w) == 0) {
			o.kind = PTX_CONSTANT;
			o.value = FG_PTX_LOCAL + k->local[i].offset;
			return o;
		}
	INVALID(p, "%s isn't known", w);
}

static struct fg_ptx_operand *next_in(struct parser *p, struct fg_ptx_instruction *in)
{
	if (in->ins == PTX_MAX_OPERANDS)
		INVALID(p, "too many operands");
	return &in->in[in->ins++];
}

static struct fg_ptx_operand *next_out(struct parser *p, struct fg_ptx_instruction *in)
{
	if (in->outs == 4)
		INVALID(p, "too many results");
	return &in->out[in->outs++];
}

static void address(struct parser *p, struct fg_ptx_instruction *in)
{
	static const struct fg_ptx_type plain = {PTX_UNSIGNED, 8};
	expect(p, '[');
	*next_in(p, in) = operand(p, plain);
	if (accept(p, '+')) {
		bool negative = accept(p, '-');
		char w[WORD];
		expect_word(p, w);
		if (!isdigit((unsigned char)w[0]) || !number(w, plain, negative, &in->offset))
			INVALID(p, "offset %s", w);
	}
	expect(p, ']');
}

// One operand, or a vector of them in braces; returns how many.
static int group(struct parser *p, struct fg_ptx_instruction *in, bool results)
{
	bool braces = accept(p, '{');
	int n = 0;
	do {
		struct fg_ptx_operand *o = results ? next_out(p, in) : next_in(p, in);
		*o = operand(p, in->type);
		if (results && o->kind != PTX_REGISTER)
			INVALID(p, "the result isn't a register");
		n++;
	} while (braces && accept(p, ','));
	if (braces)
		expect(p, '}');
	return n;
}

static int vector_length(const struct fg_ptx_instruction *in)
{
	return in->modifiers & PTX_V2 ? 2 : in->modifiers & PTX_V4 ? 4 : 1;
}

static void check_lengths(struct parser *p, const struct fg_ptx_instruction *in, int outs, int ins, int want)
{
	int n = vector_length(in);
	bool fits = outs == 1 && ins == want;
	if (in->op == PTX_LD)
		fits = outs == n && ins == 1;
	else if (in->op == PTX_ST)
		fits = outs == 0 && ins == 1 + n;
	else if (in->op == PTX_MOV)
		fits = outs * ins == (outs > ins ? outs : ins) && in->type.width % (outs > ins ? outs : ins) == 0;
	else if (in->op == PTX_SETP)
		fits = outs <= 2 && ins == want + (in->modifiers & COMBINE ? 1 : 0);
	if (!fits)
		INVALID(p, "%s has %d results and %d operands", in->text, outs, ins);
}

static void operands(struct parser *p, struct fg_ptx_instruction *in, int want)
{
	if (in->op == PTX_ST) {
		address(p, in);
	} else {
		group(p, in, true);
		if (in->op == PTX_SETP && accept(p, '|'))
			*next_out(p, in) = operand(p, in->type);
	}
	while (accept(p, ',')) {
		if (in->op == PTX_LD)
			address(p, in);
		else
			group(p, in, false);
	}
	check_lengths(p, in, in->outs, in->ins, want);
}

// ---- statements ----

static struct fg_ptx_instruction *new_instruction(struct parser *p)
{
	struct fg_ptx_kernel *k = p->kernel;
	if (k->instructions % 64 == 0)
		k->instruction = realloc(k->instruction, (size_t)(k->instructions + 64) * sizeof *k->instruction);
	struct fg_ptx_instruction *in = &k->instruction[k->instructions++];
	memset(in, 0, sizeof *in);
	in->line = p->line;
	in->guard = -1;
	return in;
}

static void check_space(struct parser *p, const struct fg_ptx_instruction *in)
{
	const struct fg_ptx_operand *a = &in->in[0];
	if (in->op != PTX_LD && in->op != PTX_ST)
		return;
	bool parameter = in->modifiers & PTX_PARAM;
	if (parameter != (a->kind == PTX_PARAMETER))
		INVALID(p, "%s of that address is not supported", in->text);
	if (!parameter)
		return;
	uint64_t size = p->kernel->parameter[a->index].size, bytes = (uint64_t)in->type.width * (uint64_t)vector_length(in);
	if (in->offset > size || bytes > size - in->offset)
		INVALID(p, "%s past the end of %s", in->text, p->kernel->parameter[a->index].name);
}

static void instruction(struct parser *p, const char *text, int guard, bool negated)
{
	struct fg_ptx_instruction *in = new_instruction(p);
	const struct instruction *i = opcode(p, text, in);
	snprintf(in->text, sizeof in->text, "%s", text);
	in->guard = guard;
	in->guard_negated = negated;
	if (in->op == PTX_BRA) {
		char w[WORD];
		expect_word(p, w);
		in->in[0].index = label_named(p->kernel, w, p->line);
	} else if (in->op != PTX_EXIT) {
		operands(p, in, i->ins);
		check_space(p, in);
	}
	expect(p, ';');
}

static void guarded(struct parser *p)
{
	static const struct fg_ptx_type predicate = {PTX_PRED, 1};
	bool negated = accept(p, '!');
	struct fg_ptx_operand o = operand(p, predicate);
	if (o.kind != PTX_REGISTER)
		INVALID(p, "the guard isn't a register");
	char w[WORD];
	expect_word(p, w);
	instruction(p, w, o.index, negated);
}

enum { MAX_REGISTERS = 1 << 16 };

static unsigned align_up(unsigned n, unsigned to)
{
	return (n + to - 1) / to * to;
}

static void copy_name(struct parser *p, char *to, size_t size, const char *name)
{
	if (snprintf(to, size, "%s", name) >= (int)size)
		INVALID(p, "%s is too long", name);
}

static void declare_registers(struct parser *p)
{
	struct fg_ptx_kernel *k = p->kernel;
	char w[WORD];
	struct fg_ptx_type type;
	expect_word(p, w);
	if (w[0] != '.' || !type_named(w + 1, &type))
		INVALID(p, "registers of type %s are not supported", w);
	do {
		expect_word(p, w);
		k->family = realloc(k->family, (size_t)(k->families + 1) * sizeof *k->family);
		struct fg_ptx_registers *f = &k->family[k->families];
		copy_name(p, f->prefix, sizeof f->prefix, w);
		f->type = type;
		f->first = k->registers;
		f->count = -1;
		if (accept(p, '<')) {
			f->count = (int)expect_integer(p, MAX_REGISTERS);
			expect(p, '>');
		}
		k->registers += f->count < 0 ? 1 : f->count;
		if (k->registers > MAX_REGISTERS)
			INVALID(p, "too many registers");
		k->families++;
	} while (accept(p, ','));
	expect(p, ';');
}

// ".local .align 8 .b8 name[32];"
static void declare_local(struct parser *p)
{
	struct fg_ptx_kernel *k = p->kernel;
	char w[WORD];
	struct fg_ptx_type type = {0};
	unsigned align = 1;
	for (expect_word(p, w); w[0] == '.'; expect_word(p, w)) {
		if (strcmp(w, ".align") == 0)
			align = (unsigned)expect_integer(p, 128);
		else if (!type_named(w + 1, &type) || type.class == PTX_PRED)
			INVALID(p, "variable of type %s is not supported", w);
	}
	if (k->locals == FG_PTX_MAX_LOCALS || type.width == 0 || align == 0)
		INVALID(p, "variable %s is not supported", w);
	struct fg_ptx_parameter *v = &k->local[k->locals++];
	copy_name(p, v->name, sizeof v->name, w);
	v->size = type.width;
	if (accept(p, '[')) {
		v->size *= (unsigned)expect_integer(p, 1 << 16);
		expect(p, ']');
	}
	v->offset = align_up(k->local_bytes, align > type.width ? align : type.width);
	k->local_bytes = v->offset + v->size;
	expect(p, ';');
}

static void skip_statement(struct parser *p)
{
	while (*p->at && *p->at != ';') {
		if (*p->at == '\n')
			p->line++;
		p->at++;
	}
	expect(p, ';');
}

static void skip_line(struct parser *p)
{
	while (*p->at && *p->at != '\n')
		p->at++;
}

static void define_label(struct parser *p, const char *name)
{
	struct fg_ptx_kernel *k = p->kernel;
	int at = label_named(k, name, p->line); // moves the labels
	struct fg_ptx_label *l = &k->label[at];
	if (l->target >= 0)
		INVALID(p, "label %s is there twice", name);
	l->target = k->instructions;
}

static void statement(struct parser *p)
{
	char w[WORD];
	if (accept(p, '@')) {
		guarded(p);
		return;
	}
	expect_word(p, w);
	if (strcmp(w, ".reg") == 0)
		declare_registers(p);
	else if (strcmp(w, ".local") == 0)
		declare_local(p);
	else if (strcmp(w, ".pragma") == 0)
		skip_statement(p);
	else if (strcmp(w, ".loc") == 0)
		skip_line(p);
	else if (w[0] == '.')
		INVALID(p, "directive %s is not supported", w);
	else if (accept(p, ':'))
		define_label(p, w);
	else
		instruction(p, w, -1, false);
}

static void resolve_labels(struct parser *p)
{
	struct fg_ptx_kernel *k = p->kernel;
	for (int i = 0; i < k->instructions; i++) {
		struct fg_ptx_instruction *in = &k->instruction[i];
		if (in->op != PTX_BRA)
			continue;
		const struct fg_ptx_label *l = &k->label[in->in[0].index];
		p->line = in->line;
		if (l->target < 0)
			INVALID(p, "there is no label %s", l->name);
		in->target = l->target;
	}
}

// Braces inside a body only limit the scope of names.
static void body(struct parser *p)
{
	int depth = 1;
	while (depth > 0) {
		if (accept(p, '{'))
			depth++;
		else if (accept(p, '}'))
			depth--;
		else
			statement(p);
	}
	resolve_labels(p);
}

// ---- kernels ----

// ".param .u64 name", ".param .u64 .ptr .global .align 8 name" or
// ".param .align 8 .b8 name[24]".
static void parameter(struct parser *p)
{
	struct fg_ptx_kernel *k = p->kernel;
	char w[WORD];
	struct fg_ptx_type type = {0};
	unsigned align = 0;
	bool pointer = false;
	expect_word(p, w);
	if (strcmp(w, ".param") != 0)
		INVALID(p, "%s instead of .param", w);
	for (expect_word(p, w); w[0] == '.'; expect_word(p, w)) {
		if (strcmp(w, ".align") == 0) {
			unsigned n = (unsigned)expect_integer(p, 128);
			if (!pointer)
				align = n;
		} else if (strcmp(w, ".ptr") == 0) {
			pointer = true;
		} else if (pointer && strcmp(w, ".global") == 0) {
			continue;
		} else if (!type_named(w + 1, &type) || type.class == PTX_PRED) {
			INVALID(p, "parameter of type %s is not supported", w);
		}
	}
	if (k->parameters == FG_MAX_PARAMETERS || type.width == 0)
		INVALID(p, "parameter %s is not supported", w);
	struct fg_ptx_parameter *q = &k->parameter[k->parameters];
	copy_name(p, q->name, sizeof q->name, w);
	q->size = type.width;
	if (accept(p, '[')) {
		q->size *= (unsigned)expect_integer(p, 4096);
		expect(p, ']');
	}
	q->offset = align_up(k->bytes, align ? align : type.width);
	k->bytes = q->offset + q->size;
	k->parameters++;
}

static void limits(struct parser *p)
{
	char w[WORD];
	while (word(p, w)) {
		unsigned long n = 1;
		do
			n *= (unsigned long)expect_integer(p, 1024 * 64);
		while (n <= 1024 && accept(p, ','));
		if (strcmp(w, ".maxntid") == 0 || strcmp(w, ".reqntid") == 0)
			p->kernel->max_threads = n < 1024 ? (unsigned)n : 1024;
		else if (strcmp(w, ".minnctapersm") != 0 && strcmp(w, ".maxnreg") != 0)
			INVALID(p, "directive %s is not supported", w);
	}
}

static void kernel(struct parser *p)
{
	struct fg_ptx_kernel *k = calloc(1, sizeof *k);
	k->next = p->ptx->kernels;
	p->ptx->kernels = k;
	p->kernel = k;
	k->max_threads = 1024;
	char w[WORD];
	expect_word(p, w);
	copy_name(p, k->name, sizeof k->name, w);
	if (accept(p, '(')) {
		while (!accept(p, ')')) {
			if (k->parameters)
				expect(p, ',');
			parameter(p);
		}
	}
	limits(p);
	expect(p, '{');
	body(p);
}

static void version(struct parser *p, long newest)
{
	char w[WORD];
	int major, minor, n = 0;
	expect_word(p, w);
	if (sscanf(w, "%d.%d%n", &major, &minor, &n) != 2 || w[n] || major > 99 || minor > 9)
		INVALID(p, ".version %s", w);
	if (major * 10 + minor > newest)
		fail(p, FG_UNSUPPORTED_PTX, ".version %s is newer than %ld.%ld of this driver", w, newest / 10, newest % 10);
}

static void target(struct parser *p, long cc)
{
	char w[WORD];
	int sm, n = 0;
	expect_word(p, w);
	if (sscanf(w, "sm_%d%n", &sm, &n) != 1 || w[n])
		INVALID(p, ".target %s", w);
	if (sm > cc)
		fail(p, FG_NO_BINARY, ".target %s, and the device is sm_%ld", w, cc);
	while (accept(p, ','))
		expect_word(p, w);
}

static void module(struct parser *p, long newest, long cc)
{
	char w[WORD];
	bool has_version = false, has_target = false;
	while (word(p, w)) {
		if (strcmp(w, ".version") == 0) {
			version(p, newest);
			has_version = true;
		} else if (!has_version) {
			INVALID(p, "%s where .version should be", w);
		} else if (strcmp(w, ".target") == 0) {
			target(p, cc);
			has_target = true;
		} else if (strcmp(w, ".address_size") == 0) {
			if (expect_integer(p, 64) != 64)
				INVALID(p, "only addresses of 64 bits are supported");
		} else if (strcmp(w, ".entry") == 0 && has_target) {
			kernel(p);
		} else if (strcmp(w, ".visible") != 0) {
			INVALID(p, "%s is not supported", w);
		}
	}
	if (*p->at)
		INVALID(p, "'%c' is not supported", isprint((unsigned char)*p->at) ? *p->at : '?');
	if (!has_target)
		INVALID(p, "no .version or no .target");
}

int fg_ptx_parse(const char *text, long newest, long cc, char *error, size_t size, struct fg_ptx **out)
{
	struct parser p = {.at = text, .line = 1, .error = error, .size = size};
	struct fg_ptx *ptx = p.ptx = calloc(1, sizeof *ptx);
	if (setjmp(p.failed)) {
		fg_ptx_free(ptx);
		return p.status;
	}
	module(&p, newest, cc);
	*out = ptx;
	return FG_OK;
}

void fg_ptx_free(struct fg_ptx *ptx)
{
	while (ptx->kernels) {
		struct fg_ptx_kernel *k = ptx->kernels;
		ptx->kernels = k->next;
		free(k->instruction);
		free(k->family);
		free(k->label);
		free(k);
	}
	free(ptx);
}

const struct fg_ptx_kernel *fg_ptx_find(const struct fg_ptx *ptx, const char *name)
{
	for (const struct fg_ptx_kernel *k = ptx->kernels; k; k = k->next)
		if (strcmp(k->name, name) == 0)
			return k;
	return NULL;
}
