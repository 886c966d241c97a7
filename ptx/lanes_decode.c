/* lanes_decode.c - decoded code a second time, for the lock-step engine: where each slot lives and how wide it is,
 * which instructions have handlers for that, which go another way.
 *
 * A slot is zero above the width of what is written to it, so its class follows from its writers: a slot that only ever
 * gets truth values is one bit per lane, one that only gets 32 bits is a word. Slots that are never written (constants,
 * launch facts) exist in every class in which something reads them. */
#include <stdlib.h>
#include <string.h>
#include "ptx/lanes.h"
#include "ptx/lower.h"
#include "ptx/matrix.h"
#include "ptx/texture.h"

/* ---- what the rows say of their types ---- */

#define TYPE_CLASS_u64 CLASS_WIDE
#define TYPE_CLASS_s64 CLASS_WIDE
#define TYPE_CLASS_f64 CLASS_WIDE
#define TYPE_CLASS_u32 CLASS_WORD
#define TYPE_CLASS_s32 CLASS_WORD
#define TYPE_CLASS_f32 CLASS_WORD
#define TYPE_CLASS_u16 CLASS_WORD
#define TYPE_CLASS_s16 CLASS_WORD

struct row {
    uint8_t sources, d, a, b, c; /* classes */
};
static const struct row rows[OP_COUNT] = {
#define ALU1(id, shadow, D, A, expression)    [OP_##id] = {1, TYPE_CLASS_##D, TYPE_CLASS_##A, 0, 0},
#define ALU2(id, shadow, D, A, B, expression) [OP_##id] = {2, TYPE_CLASS_##D, TYPE_CLASS_##A, TYPE_CLASS_##B, 0},
#define ALU3(id, shadow, D, A, B, C, expression)                                                                       \
    [OP_##id] = {3, TYPE_CLASS_##D, TYPE_CLASS_##A, TYPE_CLASS_##B, TYPE_CLASS_##C},
#include "ptx/microops.def"
};

static bool is_comparison(unsigned op)
{
    return (op >= OP_EQ_16 && op <= OP_NAN_F64) || op == OP_TESTP_F32 || op == OP_TESTP_F64;
}

static bool is_predicate_logic(unsigned op)
{
    return op == OP_NOT_PRED || op == OP_AND_PRED || op == OP_OR_PRED || op == OP_XOR_PRED;
}

/* ---- classes of slots ---- */

struct decode {
    const struct ptx_module *module;
    const struct code *k;
    struct lane_code *lc;
    bool *written;     /* lc's */
    uint32_t *twin[3]; /* by class, by slot that is never written: its unit in that class */
    uint32_t unit_capacity;
};

static enum lane_class element_class(unsigned e)
{
    return e == ELEMENT_B64 || e == ELEMENT_S8 || e == ELEMENT_S16 || e == ELEMENT_S32 ? CLASS_WIDE : CLASS_WORD;
}

static enum lane_class wider(enum lane_class a, enum lane_class b)
{
    enum lane_class c = a > b ? a : b;
    return c == CLASS_BIT ? CLASS_WORD : c;
}

/* The class that an instruction needs at its i-th written slot, given the present classes of what it reads. */
static enum lane_class written_class(const struct decode *x, const struct insn *in, uint32_t i)
{
    const uint8_t *cls = x->lc->class_;
    unsigned op = in->op;
    if (is_comparison(op))
        return CLASS_BIT;
    switch (op) {
    case OP_MOV:
        return (enum lane_class)cls[in->a];
    case OP_NOT_PRED:
        return cls[in->a] == CLASS_BIT ? CLASS_BIT : CLASS_WORD;
    case OP_AND_PRED:
    case OP_OR_PRED:
    case OP_XOR_PRED:
        return cls[in->a] == CLASS_BIT && cls[in->b] == CLASS_BIT ? CLASS_BIT : CLASS_WORD;
    case OP_AND:
    case OP_OR:
    case OP_XOR:
    case OP_SELP:
    case OP_SLCT_S32:
    case OP_SLCT_F32:
        return wider((enum lane_class)cls[in->a], (enum lane_class)cls[in->b]);
    case OP_EXT_U8:
    case OP_EXT_U16:
    case OP_EXT_U32:
    case OP_PART_8:
    case OP_PART_16:
    case OP_PART_32:
        return CLASS_WORD;
    case OP_PACK_8:
    case OP_PACK_16:
        return in->mod + (op == OP_PACK_8 ? 8 : 16) <= 32 ? CLASS_WORD : CLASS_WIDE;
    case OP_LDV:
        return element_class(in->mod & MOD_ELEMENT);
    case OP_ATOM:
        return atom_bytes(in->mod) == 8 ? CLASS_WIDE : CLASS_WORD;
    case OP_BFI_32:
    case OP_ADDC_32:
    case OP_SUBC_32:
    case OP_REDUX:
        return CLASS_WORD;
    case OP_ADDC_64: /* the sum, and the carry */
    case OP_SUBC_64:
        return i == 0 ? CLASS_WIDE : CLASS_WORD;
    case OP_CLOCK:
        return in->mod == 2 || in->mod == 3 ? CLASS_WIDE : CLASS_WORD;
    case OP_SHFL:
    case OP_MATCH:
    case OP_ELECT:
        return i == 0 ? CLASS_WORD : CLASS_BIT;
    case OP_ISSPACEP:
        return CLASS_BIT;
    case OP_VOTE:
        return in->mod == VOTE_BALLOT ? CLASS_WORD : CLASS_BIT;
    case OP_BAR_RED:
        return (in->mod >> 2 & 3) == 2 ? CLASS_WORD : CLASS_BIT;
    case OP_ACTIVEMASK:
        return CLASS_WORD;
    case OP_MATRIX: { /* behind the registers, a slot to work in */
        const struct fragment *d = &x->module->matrices[in->mod].d;
        return i < d->registers && d->bits < 64 ? CLASS_WORD : CLASS_WIDE;
    }
    case OP_TEXTURE: {
        const struct texture_op *form = &x->module->texture_ops[in->mod];
        if (form->kind != TEXTURE_FETCH && form->kind != TEXTURE_GATHER)
            return CLASS_WIDE;
        return form->resident && i + 1u == form->outputs ? CLASS_BIT : CLASS_WORD;
    }
    default:
        break;
    }
#define ALU1(id, ...) case OP_##id:
#define ALU2(id, ...) case OP_##id:
#define ALU3(id, ...) case OP_##id:
    switch (op) {
#include "ptx/microops.def"
        return (enum lane_class)rows[op].d;
    default:
        break;
    }
#define LOAD(id, space, type)                                                                                          \
    case OP_##id:                                                                                                      \
        return element_class(ELEMENT_##type);
    switch (op) {
#include "ptx/microops.def"
    default:
        return CLASS_WIDE;
    }
}

/* Whether an instruction takes its operand (0 d, 1 a, 2 b, 3 c) in 64 bits and no other way. */
static bool takes_wide(const struct decode *x, const struct insn *in, unsigned operand)
{
    const struct row *row = &rows[in->op];
    const uint8_t classes[4] = {CLASS_BIT, row->a, row->b, row->c};
    switch (in->op) {
#define LOAD(id, space, type)                                                                                          \
    case OP_##id:                                                                                                      \
        return operand == 1 && (MEM_##space == MEM_GLOBAL || MEM_##space == MEM_GENERIC);
#define STORE(id, space, type)                                                                                         \
    case OP_##id:                                                                                                      \
        return operand == 0 ? ELEMENT_##type == ELEMENT_B64                                                            \
                            : operand == 1 && (MEM_##space == MEM_GLOBAL || MEM_##space == MEM_GENERIC);
#include "ptx/microops.def"
    case OP_AND:
    case OP_OR:
    case OP_XOR:
    case OP_SELP:
        return (operand == 1 || operand == 2) && x->lc->class_[in->d] == CLASS_WIDE;
    case OP_MOV:
    case OP_EXT_U8:
    case OP_EXT_S8_16:
    case OP_EXT_S8_32:
    case OP_EXT_S8_64:
    case OP_EXT_U16:
    case OP_EXT_S16_32:
    case OP_EXT_S16_64:
    case OP_EXT_U32:
    case OP_EXT_S32_64:
        return false;
    default:
        return operand <= row->sources && classes[operand] == CLASS_WIDE;
    }
}

/* cvt.u64.u32 is a copy, so that its result looks like a word. Where it is used as 64 bits it had better be that: what
 * it is used for would go lane by lane otherwise. True when there was one. */
static bool widen_copies(const struct decode *x, const bool *only_copied)
{
    const struct code *k = x->k;
    bool any = false;
    for (uint32_t pc = 0; pc < k->count; pc++) {
        const struct insn *in = &k->insns[pc];
        const struct microop_info *info = &microop_info[in->op];
        const uint8_t uses[4] = {info->d, info->a, info->b, info->c};
        const uint32_t slots[4] = {in->d, in->a, in->b, in->c};
        for (unsigned i = 0; i < 4; i++) {
            if (uses[i] != USE_READ || !only_copied[slots[i]] || x->lc->class_[slots[i]] != CLASS_WORD ||
                !takes_wide(x, in, i))
                continue;
            x->lc->class_[slots[i]] = CLASS_WIDE;
            any = true;
        }
    }
    return any;
}

static bool find_classes(struct decode *x)
{
    const struct code *k = x->k;
    uint8_t *cls = x->lc->class_;
    struct operands *o = malloc(sizeof *o);
    if (!o)
        return false;
    for (uint32_t i = 0; i < k->slot_count; i++)
        cls[i] = k->frame[i].u64 > 1 ? k->frame[i].u64 > UINT32_MAX ? CLASS_WIDE : CLASS_WORD : CLASS_BIT;
    for (uint32_t i = 0; i < k->fill_count; i++) {
        const struct fill *f = &k->fills[i];
        bool wide = f->kind == FILL_VARIABLE || f->kind == FILL_FUNCTION || f->kind == FILL_GRIDID ||
                    ((f->kind == FILL_SHARED || f->kind == FILL_LOCAL) && f->addend >> 31) ||
                    (f->kind == FILL_PARAM && (f->bytes > 4 || f->sign));
        cls[f->slot] = wide ? CLASS_WIDE : CLASS_WORD;
    }
    /* Truth values until something else is written; classes only grow. A register that only gets copies of 0 and 1 is a
     * number all the same: nothing says that it is a predicate. */
    bool *truth = calloc(k->slot_count + 1u, sizeof *truth), changed = true;
    bool *only_copied = calloc(k->slot_count + 1u, sizeof *only_copied), fits = truth && only_copied;
    const bool memory = fits;
    for (uint32_t i = 0; fits && i < k->slot_count; i++)
        only_copied[i] = true;
    while (changed && fits) {
        changed = false;
        for (uint32_t pc = 0; pc < k->count && fits; pc++) {
            const struct insn *in = &k->insns[pc];
            fits = insn_operands(x->module, k, in, o);
            for (uint32_t i = 0; i < o->write_count; i++) {
                uint32_t slot = o->writes[i];
                enum lane_class c = written_class(x, in, i);
                bool is_truth = in->op != OP_MOV || truth[in->a];
                x->written[slot] = true;
                only_copied[slot] &= in->op == OP_MOV || in->op == OP_EXT_U32;
                changed |= c > cls[slot] || (is_truth && !truth[slot]);
                truth[slot] |= is_truth;
                if (c > cls[slot])
                    cls[slot] = (uint8_t)c;
            }
        }
        for (uint32_t i = 0; !changed && i < k->slot_count; i++)
            if (x->written[i] && cls[i] == CLASS_BIT && !truth[i]) {
                cls[i] = CLASS_WORD;
                changed = true;
            }
        for (uint32_t i = 0; i < k->slot_count; i++)
            only_copied[i] &= x->written[i];
        if (!changed && fits)
            changed = widen_copies(x, only_copied);
    }
    for (uint32_t i = 0; i < k->slot_count; i++) /* constants 0 and 1 are bits only for who wants bits */
        if (!x->written[i] && cls[i] == CLASS_BIT)
            cls[i] = CLASS_WORD;
    x->lc->refused |= memory && !fits;
    free(truth);
    free(only_copied);
    free(o);
    return memory;
}

/* ---- units ---- */

static uint32_t new_unit(struct decode *x, uint32_t slot, enum lane_class c)
{
    struct lane_code *lc = x->lc;
    uint32_t n = c == CLASS_WIDE ? 2 : 1, unit = lc->units;
    if (unit + n > x->unit_capacity) {
        uint32_t want = x->unit_capacity ? 2 * x->unit_capacity : 64;
        uint8_t *classes = realloc(lc->unit_class, want);
        if (classes)
            lc->unit_class = classes;
        uint32_t *slots = realloc(lc->unit_slot, want * sizeof *slots);
        if (slots)
            lc->unit_slot = slots;
        if (!classes || !slots)
            return NO_UNIT;
        x->unit_capacity = want;
    }
    for (uint32_t i = 0; i < n; i++) {
        lc->unit_class[unit + i] = (uint8_t)c;
        lc->unit_slot[unit + i] = slot;
    }
    lc->units += n;
    return unit;
}

/* Where `slot` is found as class `want`, or as what it is. */
static uint32_t unit_of(struct decode *x, uint32_t slot, enum lane_class want, enum lane_class *is)
{
    if (x->written[slot]) {
        *is = (enum lane_class)x->lc->class_[slot];
        if (x->lc->unit[slot] == NO_UNIT)
            x->lc->unit[slot] = new_unit(x, slot, *is);
        return x->lc->unit[slot];
    }
    *is = want;
    if (x->twin[want][slot] == NO_UNIT) {
        x->twin[want][slot] = new_unit(x, slot, want);
        /* The other engine is lent the slot from here: as wide as it is, not as its first reader wanted it. */
        if (x->lc->unit[slot] == NO_UNIT || want == x->lc->class_[slot])
            x->lc->unit[slot] = x->twin[want][slot];
    }
    return x->twin[want][slot];
}

static uint32_t unit_as_is(struct decode *x, uint32_t slot)
{
    enum lane_class is;
    return unit_of(x, slot, (enum lane_class)x->lc->class_[slot], &is);
}

/* ---- instructions ---- */

static unsigned flexible(unsigned op, enum lane_class d, enum lane_class a, enum lane_class b)
{
    bool words = d == CLASS_WORD && a == CLASS_WORD && b == CLASS_WORD;
    switch (op) {
    case OP_AND:
        return words ? (unsigned)LANE_AND_WORD : op;
    case OP_OR:
        return words ? (unsigned)LANE_OR_WORD : op;
    case OP_XOR:
        return words ? (unsigned)LANE_XOR_WORD : op;
    default:
        return op;
    }
}

/* The classes in which a pure instruction wants its operands; those that take any are asked for what they have. */
static void decode_pure(struct decode *x, const struct insn *in, struct insn *out)
{
    const struct row *row = &rows[in->op];
    const uint8_t *cls = x->lc->class_;
    enum lane_class want[4] = {(enum lane_class)row->d, (enum lane_class)row->a, (enum lane_class)row->b,
                               (enum lane_class)row->c};
    enum lane_class is[4] = {0};
    unsigned op = in->op;
    bool wide_d = cls[in->d] == CLASS_WIDE;
    if (is_comparison(op)) {
        want[0] = CLASS_BIT;
    } else if (is_predicate_logic(op)) {
        want[0] = want[1] = want[2] = CLASS_BIT;
    } else if (op == OP_AND || op == OP_OR || op == OP_XOR) {
        want[1] = want[2] = want[0] = wide_d ? CLASS_WIDE : CLASS_WORD;
    } else if (op == OP_SELP) {
        want[0] = want[1] = want[2] = wide_d ? CLASS_WIDE : CLASS_WORD;
        want[3] = CLASS_BIT;
    } else if (op == OP_MOV) {
        want[0] = (enum lane_class)cls[in->d];
        want[1] = x->written[in->a] ? (enum lane_class)cls[in->a] : want[0];
    } else if (op == OP_EXT_U8 || op == OP_EXT_U16 || op == OP_EXT_U32 || op == OP_EXT_S8_32 || op == OP_EXT_S16_32) {
        want[0] = CLASS_WORD;
        want[1] = op == OP_EXT_U32 && x->written[in->a] && cls[in->a] == CLASS_WIDE ? CLASS_WIDE : CLASS_WORD;
    } else if (op == OP_EXT_S32_64) {
        want[1] = CLASS_WORD;
    } else if (op == OP_PART_32) {
        want[0] = CLASS_WORD;
        want[1] = CLASS_WIDE;
    }
    const uint32_t slots[4] = {in->d, in->a, in->b, in->c};
    uint32_t units[4] = {0};
    bool fits = true;
    for (uint32_t i = 0; i <= row->sources; i++) {
        units[i] = unit_of(x, slots[i], want[i], &is[i]);
        fits &= is[i] == want[i];
    }
    out->d = units[0], out->a = units[1], out->b = units[2], out->c = units[3];
    switch (op) {
    case OP_MOV:
        op = is[0] == is[1]                               ? is[0] == CLASS_BIT    ? LANE_MOV_BIT
                                                            : is[0] == CLASS_WORD ? LANE_MOV_WORD
                                                                                  : LANE_MOV_WIDE
             : is[0] == CLASS_WIDE && is[1] == CLASS_WORD ? (unsigned)LANE_MOV_EXTEND
             : is[0] == CLASS_WORD && is[1] == CLASS_WIDE ? (unsigned)LANE_MOV_LOW
                                                          : (unsigned)LANE_ANY;
        break;
    case OP_EXT_U32:
        op = is[0] == CLASS_WORD && is[1] == CLASS_WORD   ? (unsigned)LANE_MOV_WORD
             : is[0] == CLASS_WORD && is[1] == CLASS_WIDE ? (unsigned)LANE_MOV_LOW
             : is[0] == CLASS_WIDE && is[1] == CLASS_WORD ? (unsigned)LANE_MOV_EXTEND
                                                          : (unsigned)LANE_ANY;
        break;
    case OP_EXT_U8:
        op = fits ? LANE_EXT_U8_WORD : LANE_ANY;
        break;
    case OP_EXT_S8_32:
        op = fits ? LANE_EXT_S8_32_WORD : LANE_ANY;
        break;
    case OP_EXT_U16:
        op = fits ? LANE_EXT_U16_WORD : LANE_ANY;
        break;
    case OP_EXT_S16_32:
        op = fits ? LANE_EXT_S16_32_WORD : LANE_ANY;
        break;
    case OP_EXT_S32_64:
        op = fits ? LANE_EXT_S32_64_WORD : LANE_ANY;
        break;
    case OP_PART_32:
        op = fits && in->mod == 32 ? LANE_PART_32_WIDE : LANE_ANY;
        break;
    case OP_SELP:
        op = !fits ? (unsigned)LANE_ANY : wide_d ? (unsigned)LANE_SELP_WIDE : (unsigned)LANE_SELP_WORD;
        break;
    default:
        op = fits ? flexible(op, is[0], is[1], is[2]) : (unsigned)LANE_ANY;
    }
    out->op = (uint16_t)op;
    if (op == LANE_ANY)
        out->imm = (uint64_t)is[0] | (uint64_t)is[1] << 2 | (uint64_t)is[2] << 4 | (uint64_t)is[3] << 6;
}

/* Address and value of an access; unused fields say in which class they are: b the value's, c the address's. */
static void decode_access(struct decode *x, const struct insn *in, struct insn *out, bool load, enum element e)
{
    enum lane_class address, value, wanted = load ? element_class(e) : e == ELEMENT_B64 ? CLASS_WIDE : CLASS_WORD;
    out->a = unit_of(x, in->a, CLASS_WIDE, &address);
    out->d = unit_of(x, in->d, wanted, &value);
    out->c = address;
    out->b = value;
    if (address == CLASS_BIT || value != wanted) {
        out->op = LANE_STEP;
        x->lc->frames = true;
    }
}

static void decode_step(struct decode *x, const struct insn *in, struct insn *out, enum lane_op op)
{
    struct operands o;
    (void)insn_operands(x->module, x->k, in, &o);
    for (uint32_t i = 0; i < o.read_count; i++)
        (void)unit_as_is(x, o.reads[i]);
    for (uint32_t i = 0; i < o.write_count; i++)
        (void)unit_as_is(x, o.writes[i]);
    out->op = (uint16_t)op;
    x->lc->frames = true;
}

/* Vector accesses: extra units are found through lc->unit; only registers of the fitting class. */
static void decode_vector(struct decode *x, const struct insn *in, struct insn *out)
{
    struct operands o;
    enum lane_class address;
    unsigned space = in->mod >> MOD_SPACE_SHIFT & 0xf;
    enum element e = (enum element)(in->mod & MOD_ELEMENT);
    enum lane_class wanted = in->op == OP_LDV ? element_class(e) : e == ELEMENT_B64 ? CLASS_WIDE : CLASS_WORD;
    (void)insn_operands(x->module, x->k, in, &o);
    bool fits = (space == MEM_GLOBAL || space == MEM_SHARED || space == MEM_GENERIC) &&
                (e == ELEMENT_B32 || e == ELEMENT_B64) && !(in->mod & MOD_STRONG);
    const uint32_t *slots = x->k->extra + in->b;
    for (uint32_t i = 0; i < (in->mod >> MOD_VECTOR_SHIFT & 0xfu); i++) {
        (void)unit_as_is(x, slots[i]);
        fits &= x->lc->class_[slots[i]] == wanted;
    }
    out->a = unit_of(x, in->a, CLASS_WIDE, &address);
    out->c = address;
    if (!fits || address == CLASS_BIT)
        decode_step(x, in, out, LANE_STEP);
}

static void decode_atom(struct decode *x, const struct insn *in, struct insn *out)
{
    enum lane_class wanted = atom_bytes(in->mod) == 8 ? CLASS_WIDE : CLASS_WORD, is[4];
    out->d = unit_of(x, in->d, wanted, &is[0]);
    out->a = unit_of(x, in->a, CLASS_WIDE, &is[1]);
    out->b = unit_of(x, in->b, wanted, &is[2]);
    out->c = unit_of(x, in->c, wanted, &is[3]);
    out->imm = (uint64_t)is[0] | (uint64_t)is[1] << 2 | (uint64_t)is[2] << 4 | (uint64_t)is[3] << 6;
}

/* One more operand, a carry or a length: it is found through lc->unit. */
static void decode_extra(struct decode *x, const struct insn *in, struct insn *out)
{
    bool wide = in->op == OP_BFI_64 || in->op == OP_ADDC_64 || in->op == OP_SUBC_64;
    enum lane_class wanted = wide ? CLASS_WIDE : CLASS_WORD, is[4] = {CLASS_BIT};
    out->d = unit_of(x, in->d, wanted, &is[0]);
    out->a = unit_of(x, in->a, wanted, &is[1]);
    out->b = unit_of(x, in->b, wanted, &is[2]);
    if (in->op == OP_BFI_32 || in->op == OP_BFI_64)
        out->c = unit_of(x, in->c, CLASS_WORD, &is[3]);
    (void)unit_as_is(x, x->k->extra[in->imm]);
    out->imm = (uint64_t)is[0] | (uint64_t)is[1] << 2 | (uint64_t)is[2] << 4 | (uint64_t)is[3] << 6;
}

static void decode_other(struct decode *x, const struct insn *in, struct insn *out)
{
    enum lane_class is;
    switch (in->op) {
    case OP_CLUSTER_ARRIVE:
    case OP_CLUSTER_WAIT:
    case OP_RET: /* of a function: never of a kernel */
        x->lc->refused = true;
        break;
    case OP_BRA:
    case OP_EXIT:
    case OP_FENCE:
        break;
    case OP_NANOSLEEP:
        break;
    case OP_BRA_IF:
    case OP_BRA_UNLESS:
    case OP_SKIP_IF:
    case OP_SKIP_UNLESS:
        out->a = unit_of(x, in->a, CLASS_BIT, &is);
        out->mod = (uint16_t)is;
        break;
    case OP_BRX:
        out->a = unit_of(x, in->a, CLASS_WORD, &is);
        break;
    case OP_LDV:
    case OP_STV:
        decode_vector(x, in, out);
        break;
    case OP_ATOM:
        decode_atom(x, in, out);
        break;
    case OP_BFI_32:
    case OP_BFI_64:
    case OP_ADDC_32:
    case OP_ADDC_64:
    case OP_SUBC_32:
    case OP_SUBC_64:
        decode_extra(x, in, out);
        break;
    case OP_BAR_SYNC:
    case OP_BAR_ARRIVE:
    case OP_BAR_RED:
        (void)unit_as_is(x, in->a);
        if (!(in->mod & 1))
            (void)unit_as_is(x, in->b);
        if (in->op == OP_BAR_RED)
            decode_step(x, in, out, (enum lane_op)in->op);
        x->lc->barriers = true;
        break;
    case OP_WARP_SYNC:
        out->a = unit_of(x, in->a, CLASS_WORD, &is);
        break;
    case OP_VOTE:
        out->d = unit_as_is(x, in->d);
        out->a = unit_of(x, in->a, CLASS_BIT, &is);
        out->aux = is; /* class of the predicate */
        out->b = unit_of(x, in->b, CLASS_WORD, &is);
        out->c = x->lc->class_[in->d];
        break;
    case OP_SHFL:
        out->d = unit_of(x, in->d, CLASS_WORD, &is);
        out->aux = is == CLASS_WORD;
        out->a = unit_of(x, in->a, CLASS_WORD, &is);
        out->aux &= is == CLASS_WORD;
        out->b = unit_of(x, in->b, CLASS_WORD, &is);
        out->aux &= is == CLASS_WORD;
        out->c = unit_of(x, in->c, CLASS_WORD, &is);
        out->aux &= is == CLASS_WORD;
        (void)unit_as_is(x, x->k->extra[in->imm]);
        (void)unit_of(x, x->k->extra[in->imm + 1], CLASS_WORD, &is);
        if (!out->aux)
            decode_step(x, in, out, LANE_MEET);
        break;
    case OP_ACTIVEMASK:
        out->d = unit_as_is(x, in->d);
        break;
    case OP_MATCH:
    case OP_REDUX:
    case OP_ELECT:
    case OP_MATRIX:
        decode_step(x, in, out, LANE_MEET);
        break;
    case OP_CALL:
        x->lc->refused |= x->k->calls[in->aux].builtin == BUILTIN_NONE;
        decode_step(x, in, out, LANE_STEP);
        break;
    default:
        decode_step(x, in, out, LANE_STEP);
    }
}

static void decode_insn(struct decode *x, const struct insn *in, struct insn *out)
{
    *out = *in;
    switch (in->op) {
#define ALU1(id, ...) case OP_##id:
#define ALU2(id, ...) case OP_##id:
#define ALU3(id, ...) case OP_##id:
#include "ptx/microops.def"
        decode_pure(x, in, out);
        break;
#define LOAD(id, space, type)                                                                                          \
    case OP_##id:                                                                                                      \
        decode_access(x, in, out, true, ELEMENT_##type);                                                               \
        break;
#define STORE(id, space, type)                                                                                         \
    case OP_##id:                                                                                                      \
        decode_access(x, in, out, false, ELEMENT_##type);                                                              \
        break;
#include "ptx/microops.def"
    default:
        decode_other(x, in, out);
    }
}

void lane_code_free(struct lane_code *lc)
{
    if (!lc)
        return;
    free(lc->insns);
    free(lc->unit);
    free(lc->written);
    free(lc->class_);
    free(lc->unit_class);
    free(lc->unit_slot);
    free(lc->fill_units);
    free(lc->block_units);
    free(lc->zero_units);
    free(lc);
}

static bool find_fills(struct decode *x)
{
    const struct code *k = x->k;
    struct lane_code *lc = x->lc;
    lc->fill_units = calloc(k->fill_count * 3u + 1u, sizeof *lc->fill_units);
    lc->block_units = calloc(k->fill_count * 3u + 1u, sizeof *lc->block_units);
    for (uint32_t i = 0; lc->fill_units && lc->block_units && i < k->fill_count; i++) {
        enum fill_kind kind = k->fills[i].kind;
        uint32_t slot = k->fills[i].slot;
        lc->refused |= x->written[slot];
        for (int c = 0; c < 3; c++) {
            if (x->twin[c][slot] == NO_UNIT)
                continue;
            if (kind == FILL_CTAID || kind == FILL_SMID)
                lc->block_units[lc->block_unit_count++] = x->twin[c][slot];
            else if (kind >= FILL_TID)
                lc->fill_units[lc->fill_unit_count++] = (struct fill_unit){i, x->twin[c][slot]};
        }
    }
    return lc->fill_units && lc->block_units;
}

static bool find_zeros(struct decode *x)
{
    struct lane_code *lc = x->lc;
    bool *first = slots_read_first(x->module, x->k);
    lc->zero_units = calloc(x->k->slot_count + 1u, sizeof *lc->zero_units);
    for (uint32_t i = 0; first && lc->zero_units && i < x->k->slot_count; i++)
        if (x->written[i] && first[i])
            lc->zero_units[lc->zero_unit_count++] = lc->unit[i];
    free(first);
    return first && lc->zero_units;
}

/* Whether the instruction and the two behind it are loads of one kind and the product of what both bring. */
static bool goes_with_fma(const struct insn *in)
{
    const struct insn *second = in + 1, *fma = in + 2;
    return (in->op == OP_LD_GLOBAL_B32 || in->op == OP_LD_SHARED_B32) && second->op == in->op &&
           fma->op == OP_FMA_F32 && (in->op == OP_LD_SHARED_B32 || (in->c == CLASS_WIDE && second->c == CLASS_WIDE)) &&
           in->d != second->d &&
           ((fma->a == in->d && fma->b == second->d) || (fma->a == second->d && fma->b == in->d)) &&
           second->a != in->d && fma->c != in->d && fma->c != second->d && fma->d != in->d && fma->d != second->d;
}

static struct lane_code *decode(const struct ptx_module *m, const struct code *k)
{
    struct lane_code *lc = calloc(1, sizeof *lc);
    if (!lc)
        return NULL;
    struct decode x = {.module = m, .k = k, .lc = lc};
    uint32_t slots = k->slot_count + 1u;
    lc->insns = calloc(k->count + 1u, sizeof *lc->insns);
    lc->unit = malloc(slots * sizeof *lc->unit);
    lc->class_ = calloc(slots, 1);
    x.written = lc->written = calloc(slots, sizeof *x.written);
    bool ok = lc->insns && lc->unit && lc->class_ && x.written;
    for (int c = 0; c < 3; c++) {
        x.twin[c] = malloc(slots * sizeof *x.twin[c]);
        ok = ok && x.twin[c];
        for (uint32_t i = 0; ok && i < slots; i++)
            x.twin[c][i] = NO_UNIT;
    }
    for (uint32_t i = 0; ok && i < slots; i++)
        lc->unit[i] = NO_UNIT;
    ok = ok && find_classes(&x);
    for (uint32_t pc = 0; ok && !lc->refused && pc < k->count; pc++)
        decode_insn(&x, &k->insns[pc], &lc->insns[pc]);
    for (uint32_t pc = 0; ok && !lc->refused && pc + 2 < k->count; pc++)
        if (goes_with_fma(&lc->insns[pc]))
            lc->insns[pc].mod = LANE_JOINED_32 | LANE_JOINED_16;
    /* Every slot that is written has a place, also one that only the other engine's frames name. */
    for (uint32_t i = 0; ok && i < k->slot_count; i++)
        if (x.written[i])
            (void)unit_as_is(&x, i);
    ok = ok && find_fills(&x) && find_zeros(&x);
    ok = ok && (lc->units == 0 || (lc->unit_class && lc->unit_slot));
    for (int c = 0; c < 3; c++)
        free(x.twin[c]);
    if (!ok) {
        lane_code_free(lc);
        return NULL;
    }
    return lc;
}

const struct lane_code *lane_code_get(const struct ptx_module *m, struct code *k)
{
    struct lane_code *lc = atomic_load_explicit(&k->lanes, memory_order_acquire);
    if (lc)
        return lc;
    struct lane_code *fresh = decode(m, k);
    if (fresh && !atomic_compare_exchange_strong(&k->lanes, &lc, fresh)) {
        lane_code_free(fresh);
        return lc;
    }
    return fresh;
}
