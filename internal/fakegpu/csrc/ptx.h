// PTX: a parser, and an interpreter that runs one thread after the other.
#pragma once

#include "core.h"

enum fg_ptx_op {
	PTX_ABS, PTX_ADD, PTX_AND, PTX_BFE, PTX_BFI, PTX_BRA, PTX_BREV, PTX_CLZ, PTX_CNOT, PTX_COPYSIGN, PTX_CVT,
	PTX_CVTA, PTX_DIV, PTX_EXIT, PTX_FMA, PTX_LD, PTX_MAD, PTX_MAX, PTX_MIN, PTX_MOV, PTX_MUL, PTX_NEG, PTX_NOT,
	PTX_OR, PTX_POPC, PTX_PRMT, PTX_RCP, PTX_REM, PTX_RSQRT, PTX_SELP, PTX_SETP, PTX_SHF, PTX_SHL, PTX_SHR,
	PTX_SQRT, PTX_ST, PTX_SUB, PTX_TESTP, PTX_XOR,
};

enum fg_ptx_class { PTX_BITS, PTX_UNSIGNED, PTX_SIGNED, PTX_FLOAT, PTX_PRED };

struct fg_ptx_type {
	uint8_t class, width; // bytes
};

// Modifiers, one bit each.
enum {
	// Rounding.
	PTX_RN = 1 << 0, PTX_RZ = 1 << 1, PTX_RM = 1 << 2, PTX_RP = 1 << 3,
	PTX_RNI = 1 << 4, PTX_RZI = 1 << 5, PTX_RMI = 1 << 6, PTX_RPI = 1 << 7,
	PTX_FTZ = 1 << 8, PTX_SAT = 1 << 9, PTX_NAN = 1 << 10,
	// Which half of a product.
	PTX_LOW = 1 << 11, PTX_HIGH = 1 << 12, PTX_WIDE = 1 << 13,
	// State spaces.
	PTX_GLOBAL = 1 << 14, PTX_PARAM = 1 << 15, PTX_LOCAL = 1 << 28, PTX_TO = 1 << 16,
	PTX_V2 = 1 << 17, PTX_V4 = 1 << 18,
	// How predicates combine.
	PTX_WITH_AND = 1 << 19, PTX_WITH_OR = 1 << 20, PTX_WITH_XOR = 1 << 21,
	// Funnel shifts.
	PTX_LEFT = 1 << 22, PTX_RIGHT = 1 << 23, PTX_WRAP = 1 << 24, PTX_CLAMP = 1 << 25,
	// Hints, and precision that is better than asked for.
	PTX_HINT = 1 << 26, PTX_APPROX = 1 << 27,
};

enum fg_ptx_compare {
	PTX_NONE,
	PTX_EQ, PTX_NE, PTX_LT, PTX_LE, PTX_GT, PTX_GE, // ordered, for floats
	PTX_EQU, PTX_NEU, PTX_LTU, PTX_LEU, PTX_GTU, PTX_GEU,
	PTX_NUM, PTX_ISNAN,
	PTX_FINITE, PTX_INFINITE, PTX_NUMBER, PTX_NOTANUMBER, PTX_NORMAL, PTX_SUBNORMAL, // of testp
};

enum fg_ptx_operand_kind { PTX_NOTHING, PTX_REGISTER, PTX_CONSTANT, PTX_SPECIAL, PTX_LABEL, PTX_PARAMETER };

struct fg_ptx_operand {
	uint64_t value;
	int32_t index; // of a register, special register, label, parameter
	uint8_t kind;
	bool negated; // a predicate
};

enum { PTX_MAX_OPERANDS = 5 };

// What each step needs comes first.
struct fg_ptx_instruction {
	uint8_t op, compare;
	bool guard_negated;
	uint8_t outs, ins;
	struct fg_ptx_type type, from; // from: of cvt
	unsigned modifiers;
	int guard;       // register, or -1
	int target;      // of a branch
	uint64_t offset; // of an address
	struct fg_ptx_operand in[PTX_MAX_OPERANDS], out[4];
	int line;
	char text[44];
};

// A parameter, or a variable in the memory of a thread.
struct fg_ptx_parameter {
	char name[96];
	unsigned offset, size;
};

struct fg_ptx_registers {
	char prefix[24];
	int count, first; // count is -1 for a single register
	struct fg_ptx_type type;
};

struct fg_ptx_label {
	char name[64];
	int target; // -1 until defined
	int line;
};

enum { FG_PTX_MAX_LOCALS = 8 };

// The memory of a thread begins here, in the addresses that kernels see.
#define FG_PTX_LOCAL ((uint64_t)1 << 62)

struct fg_ptx_kernel {
	char name[96];
	int parameters;
	struct fg_ptx_parameter parameter[FG_MAX_PARAMETERS];
	unsigned bytes; // of all parameters
	unsigned max_threads;
	unsigned local_bytes; // memory of each thread
	int locals;
	struct fg_ptx_parameter local[FG_PTX_MAX_LOCALS];
	int instructions, registers, families, labels;
	struct fg_ptx_instruction *instruction;
	struct fg_ptx_registers *family;
	struct fg_ptx_label *label;
	struct fg_ptx_kernel *next;
};

struct fg_ptx {
	struct fg_ptx_kernel *kernels;
};

// Parses a text. The status says what kind of mistake it has, error gets its line and
// text. Takes no lock.
int fg_ptx_parse(const char *text, long version, long cc, char *error, size_t size, struct fg_ptx **out);
void fg_ptx_free(struct fg_ptx *);
const struct fg_ptx_kernel *fg_ptx_find(const struct fg_ptx *, const char *name);

// Runs all threads of all blocks; arguments is laid out as the parameters are. Takes no
// lock. The status is that of the device.
int fg_ptx_run(const struct fg_ptx_kernel *, struct fg_dim grid, struct fg_dim block, const void *arguments, struct fg_access *);
