/* lower.c - the frame of the lowering: opcode rows, modifiers, operands, constants, branch targets. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "ptx/lower.h"

const struct microop_info microop_info[OP_COUNT] = {
#define ALU1(id, shadow, D, A, expression)       [OP_##id] = {#id, USE_WRITE, USE_READ, USE_NONE, USE_NONE, USE_NONE},
#define ALU2(id, shadow, D, A, B, expression)    [OP_##id] = {#id, USE_WRITE, USE_READ, USE_READ, USE_NONE, USE_NONE},
#define ALU3(id, shadow, D, A, B, C, expression) [OP_##id] = {#id, USE_WRITE, USE_READ, USE_READ, USE_READ, USE_NONE},
#define LOAD(id, space, type)                    [OP_##id] = {#id, USE_WRITE, USE_READ, USE_NONE, USE_NONE, USE_NONE},
#define STORE(id, space, type)                   [OP_##id] = {#id, USE_READ, USE_READ, USE_NONE, USE_NONE, USE_NONE},
#define OTHER(id, d, a, b, c, extra)             [OP_##id] = {#id, d, a, b, c, extra},
#include "ptx/microops.def"
};

const struct opcode opcodes[] = {
#define OPCODE(name, modifiers, types, operands, function, effect)                                                     \
    {#name, modifiers, types, operands, function, effect},
#include "ptx/opcodes.def"
};
const uint32_t opcode_count = sizeof opcodes / sizeof *opcodes;

static const struct {
    const char *word;
    enum modifier_class class;
    int value;
} modifiers[] = {
#define MODIFIER(word, class, value) {word, CLASS_##class, value},
#include "ptx/modifiers.def"
#undef MODIFIER
};

#define PUSH(l, type, items, count, capacity)                                                                          \
    ((type *)reader_push((l)->reader, (void **)&(items), &(count), &(capacity), sizeof(type)))

/* ---- messages ---- */

static void instruction_text(const struct lower *l, char *out, size_t bytes)
{
    size_t n = (size_t)snprintf(out, bytes, "%s", l->s->opcode->text);
    for (uint32_t i = 0; i < l->s->mod_count && n < bytes; i++)
        n += (size_t)snprintf(out + n, bytes - n, ".%s", l->s->mods[i]->text);
}

__attribute__((noreturn)) void lower_refuse(struct lower *l, const char *why)
{
    char text[200];
    instruction_text(l, text, sizeof text);
    reader_fail(l->reader, STATUS_NOT_SUPPORTED, l->s->at, "instruction `%s` is not supported: %s", text, why);
}

__attribute__((noreturn)) void lower_bad_operand(struct lower *l, uint32_t i, const char *expected)
{
    char text[200];
    instruction_text(l, text, sizeof text);
    const struct operand *o = operand_at(l, i);
    if (!o)
        reader_fail(l->reader, STATUS_BAD_INPUT, l->s->at, "`%s` lacks operand %u: expected %s", text, i + 1, expected);
    reader_fail(l->reader, STATUS_BAD_INPUT, o->at, "operand %u of `%s`: expected %s", i + 1, text, expected);
}

/* ---- code ---- */

struct insn *emit(struct lower *l, enum microop op, unsigned mod, uint32_t d, uint32_t a, uint32_t b, uint32_t c)
{
    struct code *k = l->code;
    struct insn *in = PUSH(l, struct insn, k->insns, k->count, l->insn_capacity);
    *in = (struct insn){.op = (uint16_t)op, .mod = (uint16_t)mod, .d = d, .a = a, .b = b, .c = c};
    *PUSH(l, uint32_t, k->lines, l->line_count, l->line_capacity) = l->s ? l->s->at.line : l->function->last_line;
    *PUSH(l, uint32_t, l->weights, l->weight_count, l->weight_capacity) = 0;
    return in;
}

uint32_t emit_extra(struct lower *l, uint32_t slot)
{
    *PUSH(l, uint32_t, l->code->extra, l->code->extra_count, l->extra_capacity) = slot;
    return l->code->extra_count - 1;
}

/* ---- slots ---- */

static void no_memory(struct lower *l)
{
    reader_fail(l->reader, STATUS_NO_MEMORY, (struct place){0, 0}, "out of memory while lowering PTX");
}

uint32_t temporary(struct lower *l)
{
    (void)PUSH(l, union slot, l->code->frame, l->code->slot_count, l->frame_capacity);
    return l->code->slot_count - 1;
}

uint32_t constant(struct lower *l, uint64_t value)
{
    uint64_t slot;
    if (map_get(&l->constants, value, &slot))
        return (uint32_t)slot;
    slot = temporary(l);
    l->code->frame[slot].u64 = value;
    if (!map_put(&l->constants, value, slot))
        no_memory(l);
    return (uint32_t)slot;
}

uint32_t fill_slot(struct lower *l, struct fill fill)
{
    struct code *k = l->code;
    uint64_t key = ((uint64_t)fill.kind << 56) ^ ((uint64_t)fill.value << 8) ^ fill.bytes ^ ((uint64_t)fill.sign << 7) ^
                   (uint64_t)fill.addend * UINT64_C(0x9e3779b97f4a7c15);
    uint64_t index;
    if (map_get(&l->fills, key, &index)) {
        const struct fill *f = &k->fills[index];
        if (f->kind == fill.kind && f->value == fill.value && f->bytes == fill.bytes && f->sign == fill.sign &&
            f->addend == fill.addend)
            return f->slot;
    }
    fill.slot = temporary(l);
    *PUSH(l, struct fill, k->fills, k->fill_count, l->fill_capacity) = fill;
    if (!map_put(&l->fills, key, k->fill_count - 1))
        no_memory(l);
    return fill.slot;
}

static uint32_t register_slot(struct lower *l, const struct symbol *s, uint32_t index, unsigned component)
{
    uint64_t key = ((uint64_t)s->id << 34) ^ ((uint64_t)index << 2) ^ component, slot;
    if (map_get(&l->slots, key, &slot))
        return (uint32_t)slot;
    slot = temporary(l);
    if (!map_put(&l->slots, key, slot))
        no_memory(l);
    return (uint32_t)slot;
}

/* ---- special registers ---- */

enum special_clock { CLOCK_LOW, CLOCK_HIGH, CLOCK_ALL, CLOCK_GLOBAL, CLOCK_GLOBAL_LOW, CLOCK_GLOBAL_HIGH };

static const struct special {
    const char *name;
    int kind;           /* enum fill_kind; -1 a constant; -2 a clock; -3 a constant: place in reserved shared memory */
    uint8_t bits, axes; /* axes: .x .y .z follow */
    uint32_t value;
} specials[] = {
    {"%tid", FILL_TID, 32, 1, 0},
    {"%ntid", FILL_NTID, 32, 1, 0},
    {"%ctaid", FILL_CTAID, 32, 1, 0},
    {"%nctaid", FILL_NCTAID, 32, 1, 0},
    {"%laneid", FILL_LANEID, 32, 0, 0},
    {"%warpid", FILL_WARPID, 32, 0, 0},
    {"%nwarpid", FILL_NWARPID, 32, 0, 0},
    {"%smid", FILL_SMID, 32, 0, 0},
    {"%nsmid", FILL_NSMID, 32, 0, 0},
    {"%gridid", FILL_GRIDID, 64, 0, 0},
    {"%lanemask_eq", FILL_LANEMASK, 32, 0, 0},
    {"%lanemask_lt", FILL_LANEMASK, 32, 0, 1},
    {"%lanemask_le", FILL_LANEMASK, 32, 0, 2},
    {"%lanemask_gt", FILL_LANEMASK, 32, 0, 3},
    {"%lanemask_ge", FILL_LANEMASK, 32, 0, 4},
    {"%dynamic_smem_size", FILL_DYNAMIC_SMEM, 32, 0, 0},
    {"%total_smem_size", FILL_TOTAL_SMEM, 32, 0, 0},
    {"%aggr_smem_size", FILL_TOTAL_SMEM, 32, 0, 1},
    {"%reserved_smem_offset_begin", -3, 32, 0, 0},
    {"%reserved_smem_offset_end", -3, 32, 0, RESERVED_SHARED},
    {"%reserved_smem_offset_cap", -3, 32, 0, RESERVED_SHARED},
    {"%reserved_smem_offset_0", -3, 32, 0, 0},
    {"%reserved_smem_offset_1", -3, 32, 0, RESERVED_SHARED_GROUPS},
    /* No performance monitors. */
    {"%pm0", -1, 32, 0, 0},
    {"%pm1", -1, 32, 0, 0},
    {"%pm2", -1, 32, 0, 0},
    {"%pm3", -1, 32, 0, 0},
    {"%pm4", -1, 32, 0, 0},
    {"%pm5", -1, 32, 0, 0},
    {"%pm6", -1, 32, 0, 0},
    {"%pm7", -1, 32, 0, 0},
    {"%pm0_64", -1, 64, 0, 0},
    {"%pm1_64", -1, 64, 0, 0},
    {"%pm2_64", -1, 64, 0, 0},
    {"%pm3_64", -1, 64, 0, 0},
    {"%pm4_64", -1, 64, 0, 0},
    {"%pm5_64", -1, 64, 0, 0},
    {"%pm6_64", -1, 64, 0, 0},
    {"%pm7_64", -1, 64, 0, 0},
    {"%envreg1", FILL_GRID_SYNC, 32, 0, 1},
    {"%envreg2", FILL_GRID_SYNC, 32, 0, 0},
    /* Without clusters every block is a cluster of one. */
    {"%is_explicit_cluster", -1, 1, 0, 0},
    {"%cluster_ctaid", -1, 32, 1, 0},
    {"%cluster_nctaid", -1, 32, 1, 1},
    {"%cluster_ctarank", -1, 32, 0, 0},
    {"%cluster_nctarank", -1, 32, 0, 1},
    {"%clusterid", FILL_CTAID, 32, 1, 0},
    {"%nclusterid", FILL_NCTAID, 32, 1, 0},
    {"%current_graph_exec", -1, 64, 0, 0}, /* no graph launches from a kernel here */
    {"WARP_SZ", -1, 32, 0, 32},
    {"%clock", -2, 32, 0, CLOCK_LOW},
    {"%clock_hi", -2, 32, 0, CLOCK_HIGH},
    {"%clock64", -2, 64, 0, CLOCK_ALL},
    {"%globaltimer", -2, 64, 0, CLOCK_GLOBAL},
    {"%globaltimer_lo", -2, 32, 0, CLOCK_GLOBAL_LOW},
    {"%globaltimer_hi", -2, 32, 0, CLOCK_GLOBAL_HIGH},
};

static const struct special *find_special(const struct name *name)
{
    for (size_t i = 0; i < sizeof specials / sizeof *specials; i++)
        if (strcmp(specials[i].name, name->text) == 0)
            return &specials[i];
    static const struct special zero = {"%envreg", -1, 32, 0, 0}; /* nobody sets the others */
    unsigned n;
    char rest;
    if (sscanf(name->text, "%%envreg%2u%c", &n, &rest) == 1 && n < 32)
        return &zero;
    return NULL;
}

static uint32_t special_slot(struct lower *l, const struct special *s, const struct operand *o)
{
    uint32_t axis = 0;
    if (s->axes) {
        if (!o->component || !strchr("xyzw", o->component))
            reader_fail(l->reader, STATUS_BAD_INPUT, o->at, "expected `%s.x`, `.y` or `.z`", s->name);
        axis = (uint32_t)(strchr("xyzw", o->component) - "xyzw");
        if (axis == 3)
            return constant(l, 0);
    }
    if (s->kind == -3)
        l->code->reserved = true;
    if (s->kind == -1 || s->kind == -3)
        return constant(l, s->value);
    if (s->kind == -2) {
        uint32_t t = temporary(l);
        emit(l, OP_CLOCK, s->value, t, 0, 0, 0);
        return t;
    }
    return fill_slot(l, (struct fill){.kind = (enum fill_kind)s->kind, .value = s->axes ? axis : s->value});
}

/* ---- operands ---- */

bool has(const struct lower *l, uint64_t mods)
{
    return (l->m.set & mods) != 0;
}

const struct operand *operand_at(const struct lower *l, uint32_t i)
{
    return i < l->s->operand_count ? &l->s->operands[i] : NULL;
}

bool is_sink(const struct operand *o)
{
    return o->kind == OPERAND_SINK;
}

static struct symbol *find_symbol(struct lower *l, const struct operand *o, uint32_t *index)
{
    return symbols_find_register(l->ast, l->s->scope, o->name, index);
}

static unsigned component_of(struct lower *l, const struct operand *o, const struct symbol *s)
{
    if (!s->vector) {
        if (o->component)
            reader_fail(l->reader, STATUS_BAD_INPUT, o->at, "`%s` is no vector", o->name->text);
        return 0;
    }
    const char *all = "xyzw", *at = o->component ? strchr(all, o->component) : NULL;
    if (!at || at - all >= s->vector)
        reader_fail(l->reader, STATUS_BAD_INPUT, o->at, "expected a component of vector `%s`", o->name->text);
    return (unsigned)(at - all);
}

unsigned register_bits(struct lower *l, const struct operand *o)
{
    uint32_t index;
    if (o->kind != OPERAND_NAME)
        return 0;
    const struct symbol *s = find_symbol(l, o, &index);
    return s && s->kind == SYMBOL_REGISTER ? type_info[s->type].bits : 0;
}

static void check_whole(struct lower *l, const struct operand *o)
{
    if (o->selector || o->minus)
        reader_fail(l->reader, STATUS_BAD_INPUT, o->at,
                    "expected a whole register: `%s%s%s%s` is for video instructions", o->minus ? "-" : "",
                    o->name->text, o->selector ? "." : "", o->selector ? o->selector->text : "");
}

/* A register must have the width of the instruction's type; kinds (b, u, s, f) mix freely, as nvcc's output does. */
static void check_width(struct lower *l, const struct operand *o, const struct symbol *s, enum type type)
{
    unsigned want = type_info[type].bits, have = type_info[s->type].bits;
    bool predicate = type == TYPE_PRED;
    if (want == 8)
        want = have == 8 || have == 16 || have == 32 ? have : 16;
    if (want != have || predicate != (s->type == TYPE_PRED))
        reader_fail(l->reader, STATUS_BAD_INPUT, o->at, "`%s` is a .%s register: expected one for .%s", o->name->text,
                    type_info[s->type].name, type_info[type].name);
}

static void note_shared(struct lower *l, const struct symbol *s)
{
    struct code *k = l->code;
    for (uint32_t i = 0; i < k->shared_count; i++)
        if (k->shared[i] == s->id)
            return;
    *PUSH(l, uint32_t, k->shared, k->shared_count, k->shared_capacity) = s->id;
}

static void note_start(struct reader *r, struct code *k, uint32_t entry)
{
    for (uint32_t i = 0; i < k->start_count; i++)
        if (k->starts[i] == entry)
            return;
    *(uint32_t *)reader_push(r, (void **)&k->starts, &k->start_count, &k->start_capacity, sizeof entry) = entry;
}

/* The address of a variable or function as a slot. */
static uint32_t address_slot(struct lower *l, const struct operand *o, const struct symbol *s, int64_t addend)
{
    struct fill f = {.value = s->id, .addend = addend};
    if (s->kind == SYMBOL_FUNCTION) {
        if (!s->function->defined)
            lower_lacks(l, "it takes the address of a function that is not defined in this module");
        f.kind = FILL_FUNCTION;
        f.value = s->function->index;
        if (s->function->entry)
            note_start(l->reader, l->code, f.value);
        return fill_slot(l, f);
    }
    switch (s->space) {
    case SPACE_GLOBAL:
    case SPACE_CONST:
        f.kind = FILL_VARIABLE;
        break;
    case SPACE_SHARED:
        f.kind = FILL_SHARED;
        note_shared(l, s);
        break;
    case SPACE_LOCAL:
        f = (struct fill){.kind = FILL_LOCAL, .addend = addend + (int64_t)s->offset};
        break;
    case SPACE_PARAM:
        if (l->function->entry)
            return constant(l, s->offset + (uint64_t)addend);
        f = (struct fill){.kind = FILL_LOCAL, .addend = addend + (int64_t)s->offset};
        break;
    default:
        reader_fail(l->reader, STATUS_BAD_INPUT, o->at, "`%s` has no address", o->name->text);
    }
    return fill_slot(l, f);
}

static uint64_t literal(struct lower *l, const struct operand *o, enum type type)
{
    uint64_t v = o->value;
    if (o->kind == OPERAND_F64 && type == TYPE_F32) {
        double d;
        memcpy(&d, &v, sizeof d);
        return bits32((float)d);
    }
    if (o->kind == OPERAND_F32 && (type == TYPE_F64 || type_info[type].bits < 32))
        reader_fail(l->reader, STATUS_BAD_INPUT, o->at, "a 32-bit floating-point literal does not fit .%s",
                    type_info[type].name);
    if (o->kind == OPERAND_F64 && type_info[type].bits < 64)
        reader_fail(l->reader, STATUS_BAD_INPUT, o->at, "a 64-bit floating-point literal does not fit .%s",
                    type_info[type].name);
    if (o->kind == OPERAND_INT && type == TYPE_F32)
        return bits32((float)(int64_t)v);
    if (o->kind == OPERAND_INT && type == TYPE_F64)
        return bits64((double)(int64_t)v);
    if (o->kind == OPERAND_INT && (type == TYPE_F16 || type == TYPE_BF16) && v != 0)
        reader_fail(l->reader, STATUS_BAD_INPUT, o->at, "an integer literal does not fit .%s", type_info[type].name);
    if (type == TYPE_PRED)
        return v != 0;
    unsigned bits = type_info[type].bits;
    return bits < 64 ? v & ((UINT64_C(1) << bits) - 1) : v;
}

uint32_t source_operand(struct lower *l, const struct operand *o, enum type type)
{
    switch (o->kind) {
    case OPERAND_INT:
    case OPERAND_F32:
    case OPERAND_F64:
        return constant(l, literal(l, o, type));
    case OPERAND_NAME:
        break;
    default:
        reader_fail(l->reader, STATUS_BAD_INPUT, o->at, "expected a register or a literal");
    }
    uint32_t index;
    const struct symbol *s = find_symbol(l, o, &index);
    check_whole(l, o);
    if (!s) {
        const struct special *special = find_special(o->name);
        if (!special)
            reader_fail(l->reader, o->name->text[0] == '%' ? STATUS_NOT_SUPPORTED : STATUS_BAD_INPUT, o->at,
                        "`%s` is neither declared nor a special register known here", o->name->text);
        if (special->bits == 64 && type_info[type].bits < 32)
            reader_fail(l->reader, STATUS_BAD_INPUT, o->at, "`%s` does not fit .%s", o->name->text,
                        type_info[type].name);
        uint32_t slot = special_slot(l, special, o);
        if (type_info[type].bits < special->bits) {
            uint32_t t = temporary(l);
            emit(l, type_info[type].bits == 16 ? OP_EXT_U16 : OP_EXT_U32, 0, t, slot, 0, 0);
            return t;
        }
        return slot;
    }
    if (s->kind == SYMBOL_REGISTER) {
        check_width(l, o, s, type);
        if (o->value)
            reader_fail(l->reader, STATUS_BAD_INPUT, o->at, "an offset behind a register needs [ ]");
        return register_slot(l, s, index, component_of(l, o, s));
    }
    if (s->kind == SYMBOL_VARIABLE || s->kind == SYMBOL_FUNCTION) {
        unsigned bits = type_info[type].bits;
        if (bits != 64 && !(bits == 32 && s->space == SPACE_SHARED) && !(bits == 32 && s->space == SPACE_LOCAL))
            reader_fail(l->reader, STATUS_BAD_INPUT, o->at, "the address of `%s` does not fit .%s", o->name->text,
                        type_info[type].name);
        return address_slot(l, o, s, (int64_t)o->value);
    }
    reader_fail(l->reader, STATUS_BAD_INPUT, o->at, "`%s` is a label: expected a register or a literal", o->name->text);
}

uint32_t destination_operand(struct lower *l, const struct operand *o, enum type type)
{
    if (o->kind == OPERAND_SINK)
        return temporary(l);
    uint32_t index;
    const struct symbol *s = o->kind == OPERAND_NAME ? find_symbol(l, o, &index) : NULL;
    if (!s || s->kind != SYMBOL_REGISTER)
        reader_fail(l->reader, STATUS_BAD_INPUT, o->at, "expected a destination register");
    check_whole(l, o);
    check_width(l, o, s, type);
    return register_slot(l, s, index, component_of(l, o, s));
}

/* ---- 128-bit registers ---- */

static void wide_slots(struct lower *l, const struct operand *o, uint32_t slots[2])
{
    uint32_t index;
    const struct symbol *s = o->kind == OPERAND_NAME ? find_symbol(l, o, &index) : NULL;
    if (!s || s->kind != SYMBOL_REGISTER || s->type != TYPE_B128 || s->vector || o->negated || o->pair)
        reader_fail(l->reader, STATUS_BAD_INPUT, o->at, "expected a .b128 register");
    check_whole(l, o);
    for (unsigned i = 0; i < 2; i++)
        slots[i] = register_slot(l, s, index, i);
}

void destination_wide(struct lower *l, const struct operand *o, uint32_t slots[2])
{
    if (!is_sink(o)) {
        wide_slots(l, o, slots);
        return;
    }
    slots[0] = temporary(l);
    slots[1] = temporary(l);
}

void source_wide(struct lower *l, const struct operand *o, uint32_t slots[2])
{
    wide_slots(l, o, slots);
}

uint32_t source(struct lower *l, uint32_t i, enum type type)
{
    const struct operand *o = operand_at(l, i);
    if (!o || o->pair || (o->negated && type != TYPE_PRED))
        lower_bad_operand(l, i, "a register or a literal");
    if (type == TYPE_PRED)
        return predicate(l, o);
    return source_operand(l, o, type);
}

uint32_t destination(struct lower *l, uint32_t i, enum type type)
{
    const struct operand *o = operand_at(l, i);
    if (!o || o->negated)
        lower_bad_operand(l, i, "a destination register");
    return destination_operand(l, o, type);
}

uint32_t predicate(struct lower *l, const struct operand *o)
{
    uint32_t p = source_operand(l, o, TYPE_PRED);
    if (!o->negated)
        return p;
    uint32_t t = temporary(l);
    emit(l, OP_NOT_PRED, 0, t, p, 0, 0);
    return t;
}

/* ---- addresses ---- */

static enum mem_space mem_space_of(struct lower *l, enum space space, const struct symbol *s)
{
    if (space == SPACE_NONE && s && s->kind == SYMBOL_VARIABLE)
        space = s->space; /* `ld.u32 r, [variable]` without a space: the variable's own */
    switch (space) {
    case SPACE_GLOBAL:
        return MEM_GLOBAL;
    case SPACE_CONST:
        return MEM_CONST;
    case SPACE_SHARED:
        return MEM_SHARED;
    case SPACE_LOCAL:
        return MEM_LOCAL;
    case SPACE_PARAM:
        return l->function->entry && !(s && s->function_param) ? MEM_PARAM : MEM_LOCAL;
    default:
        return MEM_GENERIC;
    }
}

struct address lower_address(struct lower *l, const struct operand *o, enum space space)
{
    struct address a = {0};
    if (!o || o->kind != OPERAND_ADDRESS)
        reader_fail(l->reader, STATUS_BAD_INPUT, o ? o->at : l->s->at, "expected an address in [ ]");
    a.offset = (int64_t)o->value;
    if (!o->name) {
        a.base = constant(l, 0);
        a.space = mem_space_of(l, space, NULL);
        return a;
    }
    uint32_t index;
    struct symbol *s = find_symbol(l, o, &index);
    if (!s)
        reader_fail(l->reader, STATUS_BAD_INPUT, o->at, "`%s` is not declared", o->name->text);
    a.space = mem_space_of(l, space, s);
    if (s->kind == SYMBOL_REGISTER) {
        unsigned bits = type_info[s->type].bits;
        if (bits != 64 && !(bits == 32 && (a.space == MEM_SHARED || a.space == MEM_LOCAL || a.space == MEM_PARAM ||
                                           a.space == MEM_CONST)))
            reader_fail(l->reader, STATUS_BAD_INPUT, o->at, "`%s` is a .%s register: expected a 64-bit address",
                        o->name->text, type_info[s->type].name);
        a.base = register_slot(l, s, index, component_of(l, o, s));
        return a;
    }
    if (s->kind != SYMBOL_VARIABLE)
        reader_fail(l->reader, STATUS_BAD_INPUT, o->at, "`%s` is no variable", o->name->text);
    if (space != SPACE_NONE && s->space != space)
        reader_fail(l->reader, STATUS_BAD_INPUT, o->at, "`%s` does not lie in the instruction's space", o->name->text);
    a.symbol = s;
    a.base = address_slot(l, o, s, 0);
    return a;
}

/* ---- statements ---- */

static const struct opcode *find_opcode(const struct name *name)
{
    for (uint32_t i = 0; i < opcode_count; i++)
        if (strcmp(opcodes[i].name, name->text) == 0)
            return &opcodes[i];
    return NULL;
}

static void read_modifiers(struct lower *l)
{
    struct mods *m = &l->m;
    memset(m, 0, sizeof *m);
    for (uint32_t i = 0; i < l->s->mod_count; i++) {
        const char *word = l->s->mods[i]->text;
        enum type type = type_find(word);
        if (type != TYPE_NONE) {
            if (m->type_count == 4)
                lower_refuse(l, "it has more types than are known here");
            m->types[m->type_count++] = type;
            continue;
        }
        size_t k = 0;
        while (k < sizeof modifiers / sizeof *modifiers && strcmp(modifiers[k].word, word) != 0)
            k++;
        char why[120];
        if (k == sizeof modifiers / sizeof *modifiers || !(l->row->modifiers >> modifiers[k].class & 1)) {
            snprintf(why, sizeof why, "modifier `.%.40s` of `%s` is not known here", word, l->row->name);
            lower_refuse(l, why);
        }
        uint64_t bit = UINT64_C(1) << modifiers[k].class;
        /* cp.async.ca.shared.global names two spaces; caches and scopes may repeat. */
        bool repeats = bit & (M(CACHE) | M(SPACE) | M(SCOPE) | M(MATRIX) | M(TF32) | M(TEXTURE) | M(SUBBYTE) |
                              M(MBARRIER) | M(FENCE) | M(CREATE));
        repeats |= bit == M(OPER) && l->row->modifiers & M(MATRIX); /* .xor.popc */
        if ((m->set & bit) && !repeats) {
            snprintf(why, sizeof why, "modifier `.%.40s` does not go with another of its kind", word);
            lower_refuse(l, why);
        }
        if (!(m->set & bit))
            m->value[modifiers[k].class] = modifiers[k].value;
        m->set |= bit;
    }
    l->type = m->types[0];
    if (l->row->types == 0 ? m->type_count > 0 : m->type_count == 0 ? false : !(l->row->types >> l->type & 1))
        lower_refuse(l, "it does not take this type");
}

/* .L2::cache_hint: the policy, a last operand, is only a hint. */
static void drop_policy(struct lower *l)
{
    uint32_t n = l->s->operand_count;
    if (!has(l, M(POLICY)))
        return;
    if (n == 0)
        lower_bad_operand(l, 0, "a cache policy");
    (void)source(l, n - 1, TYPE_B64);
    l->s->operand_count = n - 1;
}

static void check_operand_count(struct lower *l)
{
    uint32_t most = 0, optional = 0;
    for (const char *c = l->row->operands; *c; c++) {
        most += c == l->row->operands || *c == ',';
        optional += *c == '[';
    }
    if (l->s->operand_count > most || l->s->operand_count + optional < most) {
        char text[200];
        instruction_text(l, text, sizeof text);
        reader_fail(l->reader, STATUS_BAD_INPUT, l->s->at, "`%s` has %u operands: expected %s", text,
                    l->s->operand_count, *l->row->operands ? l->row->operands : "none");
    }
}

static void lower_statement(struct lower *l, struct statement *s)
{
    l->s = s;
    l->row = find_opcode(s->opcode);
    if (!l->row) {
        static const struct opcode unknown = {.name = "?"};
        l->row = &unknown;
        lower_refuse(l, "this executor does not know it");
    }
    for (uint32_t i = 0; i < s->operand_count; i++)
        if (l->row->name[0] != 'v')
            check_whole(l, &s->operands[i]);
    read_modifiers(l);
    drop_policy(l);
    check_operand_count(l);
    uint32_t first = l->code->count;
    bool guarded = s->guard != NULL;
    if (guarded) {
        uint32_t p = source_operand(l, s->guard, TYPE_PRED);
        emit(l, s->guard->negated ? OP_SKIP_IF : OP_SKIP_UNLESS, 0, 0, p, 0, 0);
    }
    l->row->lower(l);
    if (guarded) {
        struct insn *in = &l->code->insns[first];
        uint32_t end = l->code->count;
        struct insn *only = &l->code->insns[first + 1];
        if (end == first + 1) {
            l->code->count--; /* nothing to guard */
            l->line_count--;
            l->weight_count--;
        } else if (end == first + 2 && only->op == OP_BRA) { /* the usual conditional branch */
            in->op = in->op == OP_SKIP_IF ? OP_BRA_UNLESS : OP_BRA_IF;
            in->imm = only->imm;
            l->code->count--;
            l->line_count--;
            l->weight_count--;
        } else {
            in->imm = end;
        }
    }
    if (l->code->count > first) {
        l->weights[l->code->count - 1] += 1 + l->pending_weight;
        l->pending_weight = 0;
    } else {
        l->pending_weight++;
    }
}

/* Branch targets are statement indices until every statement has its place. */
static void fix_branches(struct lower *l)
{
    struct code *k = l->code;
    for (uint32_t i = 0; i < k->count; i++) {
        struct insn *in = &k->insns[i];
        if (in->op == OP_BRA || in->op == OP_BRA_IF || in->op == OP_BRA_UNLESS)
            in->imm = l->statement_pc[in->imm];
    }
    for (uint32_t t = 0; t < k->table_count; t++)
        for (uint32_t i = 0; i < k->tables[t].count; i++)
            k->tables[t].targets[i] = l->statement_pc[k->tables[t].targets[i]];
}

static void lower_formals(struct lower *l, const struct symbol *list, struct call_arg **out, uint32_t *count)
{
    uint32_t n = 0;
    for (const struct symbol *s = list; s; s = s->next)
        n++;
    struct call_arg *args = reader_alloc(l->reader, n, sizeof *args);
    n = 0;
    for (const struct symbol *s = list; s; s = s->next, n++) {
        if (s->kind == SYMBOL_REGISTER)
            args[n] = (struct call_arg){true, register_slot(l, s, 0, 0), 8};
        else
            args[n] = (struct call_arg){false, (uint32_t)s->offset, (uint32_t)s->bytes};
    }
    *out = args;
    *count = n;
}

/* One statement after the other. What is not supported ends the statement only: the function gets no code then, and the
 * rest is read for what else is missing, and for errors. */
static void lower_statements(struct lower *l, const struct function *f)
{
    struct reader *r = l->reader;
    jmp_buf here, *outer = r->fail;
    volatile uint32_t next = 0;
    volatile bool directive = f->unknown != NULL;
    r->fail = &here;
    if (setjmp(here) && (r->status != STATUS_NOT_SUPPORTED || !refusal_note(l))) {
        r->fail = outer;
        if (r->status != STATUS_NOT_SUPPORTED)
            longjmp(*outer, 1);
        return;
    }
    if (directive) {
        directive = false;
        reader_fail(r, STATUS_NOT_SUPPORTED, f->unknown_at, "thread block clusters (.%s) are not supported",
                    f->unknown->text);
    }
    while (next < f->statement_count) {
        uint32_t i = next;
        next = i + 1;
        l->statement_pc[i] = l->code->count;
        lower_statement(l, &f->statements[i]);
    }
    r->fail = outer;
}

static void lower_function(struct lower *l, struct function *f)
{
    struct code *k = l->code = l->module->code[f->index];
    l->function = f;
    l->insn_capacity = l->line_capacity = l->line_count = l->weight_capacity = l->weight_count = l->extra_capacity = 0;
    l->fill_capacity = l->call_capacity = l->table_capacity = l->frame_capacity = 0;
    l->pending_weight = 0;
    l->weights = NULL;
    l->carry_slot = UINT32_MAX;
    map_free(&l->slots);
    map_free(&l->constants);
    map_free(&l->fills);
    if (!f->entry) {
        lower_formals(l, f->params, &k->params, &k->param_count);
        lower_formals(l, f->returns, &k->returns, &k->return_count);
    }
    l->statement_pc = reader_alloc(l->reader, f->statement_count + 1, sizeof *l->statement_pc);
    lower_statements(l, f);
    if (k->refusal_count) {
        k->count = 0;
        return;
    }
    l->statement_pc[f->statement_count] = k->count;
    l->s = NULL;
    emit(l, f->entry ? OP_EXIT : OP_RET, 0, 0, 0, 0, 0); /* falling off the end */
    fix_branches(l);
    k->statement_pc = l->statement_pc;
    fold_code(l);
}

void lower_module(struct ptx_module *m)
{
    struct lower *l = m->lower;
    l->module = m;
    l->reader = m->ast.reader;
    l->ast = &m->ast;
    m->code_count = m->ast.function_count;
    m->code = reader_alloc(l->reader, m->code_count, sizeof(struct code *));
    for (uint32_t i = 0; i < m->code_count; i++) {
        struct function *f = m->ast.functions[i];
        struct code *k = m->code[i] = reader_alloc(l->reader, 1, sizeof *k);
        k->name = f->name;
        k->function = f;
        k->entry = f->entry;
        k->defined = f->defined;
        k->local_bytes = f->local_bytes;
    }
    for (uint32_t i = 0; i < m->code_count; i++)
        if (m->ast.functions[i]->defined)
            lower_function(l, m->ast.functions[i]);
}
