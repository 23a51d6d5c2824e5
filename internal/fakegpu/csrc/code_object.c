#include "code_object.h"

#include <elf.h>
#include <setjmp.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum {
	MACHINE_AMDGPU = 224,
	OS_HSA = 64,
	NOTE_METADATA = 32,
	MACH_MASK = 0xff,
	FAMILY_VERSION = 24, // first bit in the flags
};

// ---- MessagePack, as far as metadata uses it ----

struct reader {
	const unsigned char *at, *end;
	jmp_buf bad;
};

enum kind { NOTHING, INTEGER, TEXT, ARRAY, MAP };

struct value {
	enum kind kind;
	uint64_t number; // or length
	const char *text;
};

static uint64_t take(struct reader *r, unsigned bytes)
{
	uint64_t n = 0;
	if ((size_t)(r->end - r->at) < bytes)
		longjmp(r->bad, 1);
	while (bytes-- > 0)
		n = n << 8 | *r->at++;
	return n;
}

static struct value text(struct reader *r, uint64_t length)
{
	struct value v = {TEXT, length, (const char *)r->at};
	if ((uint64_t)(r->end - r->at) < length)
		longjmp(r->bad, 1);
	r->at += length;
	return v;
}

static struct value next(struct reader *r)
{
	unsigned tag = (unsigned)take(r, 1);
	if (tag < 0x80)
		return (struct value){INTEGER, tag, NULL};
	if (tag < 0x90)
		return (struct value){MAP, tag & 15, NULL};
	if (tag < 0xa0)
		return (struct value){ARRAY, tag & 15, NULL};
	if (tag < 0xc0)
		return text(r, tag & 31);
	switch (tag) {
	case 0xc0: case 0xc2: case 0xc3: return (struct value){NOTHING, 0, NULL};
	case 0xcc: case 0xd0: return (struct value){INTEGER, take(r, 1), NULL};
	case 0xcd: case 0xd1: return (struct value){INTEGER, take(r, 2), NULL};
	case 0xce: case 0xd2: return (struct value){INTEGER, take(r, 4), NULL};
	case 0xcf: case 0xd3: return (struct value){INTEGER, take(r, 8), NULL};
	case 0xd9: return text(r, take(r, 1));
	case 0xda: return text(r, take(r, 2));
	case 0xdb: return text(r, take(r, 4));
	case 0xdc: return (struct value){ARRAY, take(r, 2), NULL};
	case 0xdd: return (struct value){ARRAY, take(r, 4), NULL};
	case 0xde: return (struct value){MAP, take(r, 2), NULL};
	case 0xdf: return (struct value){MAP, take(r, 4), NULL};
	}
	if (tag >= 0xe0)
		return (struct value){INTEGER, 0, NULL};
	longjmp(r->bad, 1);
}

static void skip(struct reader *r, int depth)
{
	struct value v = next(r);
	if (depth == 0)
		longjmp(r->bad, 1);
	uint64_t n = v.kind == MAP ? 2 * v.number : v.kind == ARRAY ? v.number : 0;
	while (n-- > 0)
		skip(r, depth - 1);
}

enum { DEPTH = 16 };

static bool is(const struct value *v, const char *text)
{
	return v->kind == TEXT && v->number == strlen(text) && memcmp(v->text, text, v->number) == 0;
}

static struct value expect(struct reader *r, enum kind kind)
{
	struct value v = next(r);
	if (v.kind != kind)
		longjmp(r->bad, 1);
	return v;
}

// ---- metadata ----

static void read_argument(struct reader *r, struct fg_code_kernel *k)
{
	struct value map = expect(r, MAP), kind = {0};
	uint64_t offset = 0, size = 0;
	for (uint64_t i = 0; i < map.number; i++) {
		struct value key = expect(r, TEXT);
		if (is(&key, ".offset"))
			offset = expect(r, INTEGER).number;
		else if (is(&key, ".size"))
			size = expect(r, INTEGER).number;
		else if (is(&key, ".value_kind"))
			kind = expect(r, TEXT);
		else
			skip(r, DEPTH);
	}
	bool hidden = kind.number >= 7 && memcmp(kind.text, "hidden_", 7) == 0;
	if (hidden)
		return;
	if (k->parameters == FG_MAX_PARAMETERS || offset > 1 << 16 || size > 1 << 16)
		longjmp(r->bad, 1);
	k->offset[k->parameters] = (unsigned)offset;
	k->size[k->parameters++] = (unsigned)size;
	if (k->bytes < offset + size)
		k->bytes = (unsigned)(offset + size);
}

static void read_kernel(struct reader *r, struct fg_code_object *object)
{
	struct fg_code_kernel *k = calloc(1, sizeof *k);
	k->next = object->kernels;
	object->kernels = k;
	k->max_threads = 1024;
	struct value map = expect(r, MAP);
	for (uint64_t i = 0; i < map.number; i++) {
		struct value key = expect(r, TEXT);
		if (is(&key, ".name")) {
			struct value name = expect(r, TEXT);
			snprintf(k->name, sizeof k->name, "%.*s", (int)(name.number < 95 ? name.number : 95), name.text);
		} else if (is(&key, ".max_flat_workgroup_size")) {
			k->max_threads = (unsigned)expect(r, INTEGER).number;
		} else if (is(&key, ".args")) {
			struct value args = expect(r, ARRAY);
			for (uint64_t j = 0; j < args.number; j++)
				read_argument(r, k);
		} else {
			skip(r, DEPTH);
		}
	}
}

static bool read_metadata(const void *p, size_t bytes, struct fg_code_object *object)
{
	struct reader r = {.at = p, .end = (const unsigned char *)p + bytes};
	if (setjmp(r.bad))
		return false;
	struct value map = expect(&r, MAP);
	for (uint64_t i = 0; i < map.number; i++) {
		struct value key = expect(&r, TEXT);
		if (!is(&key, "amdhsa.kernels")) {
			skip(&r, DEPTH);
			continue;
		}
		struct value kernels = expect(&r, ARRAY);
		for (uint64_t j = 0; j < kernels.number; j++)
			read_kernel(&r, object);
	}
	return true;
}

// ---- ELF ----

// Architectures that a machine in the flags of a code object stands for, with a space on
// both sides of each.
static const struct {
	unsigned mach;
	const char *archs;
} machines[] = {
	{0x2f, " gfx906 "}, {0x30, " gfx908 "}, {0x3f, " gfx90a "}, {0x4c, " gfx942 "}, {0x36, " gfx1030 "}, {0x41, " gfx1100 "},
};

// The same for families.
static const struct {
	unsigned mach;
	const char *archs;
} families[] = {
	{0x51, " gfx900 gfx902 gfx904 gfx906 gfx909 gfx90c "},
	{0x52, " gfx1010 gfx1011 gfx1012 gfx1013 "},
	{0x53, " gfx1030 gfx1031 gfx1032 gfx1033 gfx1034 gfx1035 gfx1036 "},
	{0x54, " gfx1100 gfx1101 gfx1102 gfx1103 gfx1150 gfx1151 gfx1152 gfx1153 "},
	{0x59, " gfx1200 gfx1201 "},
};

static bool among(const char *archs, const char *arch)
{
	char word[32];
	snprintf(word, sizeof word, " %.*s ", (int)strcspn(arch, ":"), arch);
	return strstr(archs, word) != NULL;
}

// version is that of the format.
static bool is_for(unsigned flags, unsigned version, const char *arch)
{
	for (size_t i = 0; i < sizeof machines / sizeof *machines; i++)
		if (machines[i].mach == (flags & MACH_MASK))
			return among(machines[i].archs, arch);
	for (size_t i = 0; i < sizeof families / sizeof *families; i++)
		if (families[i].mach == (flags & MACH_MASK))
			return version >= 6 && flags >> FAMILY_VERSION >= 1 && among(families[i].archs, arch);
	return false;
}

static size_t padded(size_t n)
{
	return (n + 3) & ~(size_t)3;
}

static bool read_notes(const char *p, size_t bytes, struct fg_code_object *object)
{
	while (bytes >= sizeof(Elf64_Nhdr)) {
		Elf64_Nhdr note;
		memcpy(&note, p, sizeof note);
		size_t name = padded(note.n_namesz), whole = sizeof note + name + padded(note.n_descsz);
		if (whole > bytes)
			return false;
		if (note.n_type == NOTE_METADATA && note.n_namesz == 7 && memcmp(p + sizeof note, "AMDGPU", 7) == 0)
			return read_metadata(p + sizeof note + name, note.n_descsz, object);
		p += whole;
		bytes -= whole;
	}
	return false;
}

static bool read_segments(const char *image, const Elf64_Ehdr *h, struct fg_code_object *object)
{
	for (unsigned i = 0; i < h->e_phnum; i++) {
		Elf64_Phdr p;
		memcpy(&p, image + h->e_phoff + i * sizeof p, sizeof p);
		if (p.p_type == PT_NOTE && read_notes(image + p.p_offset, p.p_filesz, object))
			return true;
	}
	return false;
}

int fg_code_object_read(const void *image, const char *arch, unsigned newest, struct fg_code_object **out)
{
	Elf64_Ehdr h;
	if (!image || memcmp(image, ELFMAG, SELFMAG) != 0)
		return FG_INVALID_IMAGE;
	memcpy(&h, image, sizeof h);
	if (h.e_ident[EI_CLASS] != ELFCLASS64 || h.e_machine != MACHINE_AMDGPU || h.e_ident[EI_OSABI] != OS_HSA || h.e_phentsize != sizeof(Elf64_Phdr))
		return FG_INVALID_IMAGE;
	unsigned version = h.e_ident[EI_ABIVERSION] + 2u;
	if (version > newest || !is_for(h.e_flags, version, arch))
		return FG_NO_BINARY;
	struct fg_code_object *object = calloc(1, sizeof *object);
	if (!read_segments(image, &h, object)) {
		fg_code_object_free(object);
		return FG_INVALID_IMAGE;
	}
	*out = object;
	return FG_OK;
}

size_t fg_code_object_bytes(const void *image)
{
	Elf64_Ehdr h;
	memcpy(&h, image, sizeof h);
	size_t end = h.e_shoff + (size_t)h.e_shnum * sizeof(Elf64_Shdr);
	for (unsigned i = 0; i < h.e_phnum; i++) {
		Elf64_Phdr p;
		memcpy(&p, (const char *)image + h.e_phoff + i * sizeof p, sizeof p);
		if (end < p.p_offset + p.p_filesz)
			end = p.p_offset + p.p_filesz;
	}
	return end;
}

void fg_code_object_free(struct fg_code_object *object)
{
	while (object->kernels) {
		struct fg_code_kernel *k = object->kernels;
		object->kernels = k->next;
		free(k);
	}
	free(object);
}

const struct fg_code_kernel *fg_code_object_find(const struct fg_code_object *object, const char *name)
{
	for (const struct fg_code_kernel *k = object->kernels; k; k = k->next)
		if (strcmp(k->name, name) == 0)
			return k;
	return NULL;
}
