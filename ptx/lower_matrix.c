/* lower_matrix.c - wmma, mma, ldmatrix, stmatrix, movmatrix: which forms exist, and where their elements lie.
 *
 * Registers of mma, ldmatrix, stmatrix and movmatrix hold the elements that the PTX ISA's tables say. Those of wmma are
 * left open by PTX; accumulators of 16 columns lie as two of m16n8 side by side, as devices have it, the others in
 * memory order, repeated where there are more registers than elements. */
#include <string.h>
#include "ptx/lower.h"
#include "ptx/matrix_fast.h"

static const struct {
    const char *word;
    uint8_t bits;
    enum type reg;
} types[MATRIX_TYPE_COUNT] = {
    [MATRIX_F16] = {"f16", 16, TYPE_B32},   [MATRIX_BF16] = {"bf16", 16, TYPE_B32},
    [MATRIX_TF32] = {"tf32", 32, TYPE_B32}, [MATRIX_F32] = {"f32", 32, TYPE_F32},
    [MATRIX_F64] = {"f64", 64, TYPE_F64},   [MATRIX_S8] = {"s8", 8, TYPE_B32},
    [MATRIX_U8] = {"u8", 8, TYPE_B32},      [MATRIX_S4] = {"s4", 4, TYPE_B32},
    [MATRIX_U4] = {"u4", 4, TYPE_B32},      [MATRIX_B1] = {"b1", 32, TYPE_B32},
    [MATRIX_E4M3] = {"e4m3", 8, TYPE_B32},  [MATRIX_E5M2] = {"e5m2", 8, TYPE_B32},
    [MATRIX_S32] = {"s32", 32, TYPE_B32},   [MATRIX_B16] = {"b16", 16, TYPE_B32},
    [MATRIX_B32] = {"b32", 32, TYPE_B32},
};

#define T(name)           (1u << MATRIX_##name)
#define HALF_ACCUMULATORS (T(F16) | T(F32))
struct form {
    const char *shape;
    uint8_t m, n, k;
    uint32_t in, out; /* types of a and b; of c and d */
    bool any_layout;
};
static const struct form wmma_forms[] = {
    {"m16n16k16", 16, 16, 16, T(F16), HALF_ACCUMULATORS, true},
    {"m8n32k16", 8, 32, 16, T(F16), HALF_ACCUMULATORS, true},
    {"m32n8k16", 32, 8, 16, T(F16), HALF_ACCUMULATORS, true},
    {"m16n16k16", 16, 16, 16, T(BF16), T(F32), true},
    {"m8n32k16", 8, 32, 16, T(BF16), T(F32), true},
    {"m32n8k16", 32, 8, 16, T(BF16), T(F32), true},
    {"m16n16k16", 16, 16, 16, T(S8) | T(U8), T(S32), true},
    {"m8n32k16", 8, 32, 16, T(S8) | T(U8), T(S32), true},
    {"m32n8k16", 32, 8, 16, T(S8) | T(U8), T(S32), true},
    {"m16n16k8", 16, 16, 8, T(TF32), T(F32), true},
    {"m8n8k4", 8, 8, 4, T(F64), T(F64), true},
    {"m8n8k32", 8, 8, 32, T(S4) | T(U4), T(S32), false},
    {"m8n8k128", 8, 8, 4, T(B1), T(S32), false}, /* of b1, k is in words */
};
static const struct form mma_forms[] = {
    {"m8n8k4", 8, 8, 4, T(F16), HALF_ACCUMULATORS, true},
    {"m16n8k8", 16, 8, 8, T(F16), HALF_ACCUMULATORS, false},
    {"m16n8k16", 16, 8, 16, T(F16), HALF_ACCUMULATORS, false},
    {"m16n8k8", 16, 8, 8, T(BF16), T(F32), false},
    {"m16n8k16", 16, 8, 16, T(BF16), T(F32), false},
    {"m16n8k4", 16, 8, 4, T(TF32), T(F32), false},
    {"m16n8k8", 16, 8, 8, T(TF32), T(F32), false},
    {"m8n8k4", 8, 8, 4, T(F64), T(F64), false},
    {"m16n8k4", 16, 8, 4, T(F64), T(F64), false},
    {"m16n8k8", 16, 8, 8, T(F64), T(F64), false},
    {"m16n8k16", 16, 8, 16, T(F64), T(F64), false},
    {"m8n8k16", 8, 8, 16, T(S8) | T(U8), T(S32), false},
    {"m16n8k16", 16, 8, 16, T(S8) | T(U8), T(S32), false},
    {"m16n8k32", 16, 8, 32, T(S8) | T(U8), T(S32), false},
    {"m8n8k32", 8, 8, 32, T(S4) | T(U4), T(S32), false},
    {"m16n8k32", 16, 8, 32, T(S4) | T(U4), T(S32), false},
    {"m16n8k64", 16, 8, 64, T(S4) | T(U4), T(S32), false},
    {"m8n8k128", 8, 8, 4, T(B1), T(S32), false},
    {"m16n8k128", 16, 8, 4, T(B1), T(S32), false},
    {"m16n8k256", 16, 8, 8, T(B1), T(S32), false},
    {"m16n8k16", 16, 8, 16, T(E4M3) | T(E5M2), HALF_ACCUMULATORS, false},
    {"m16n8k32", 16, 8, 32, T(E4M3) | T(E5M2), HALF_ACCUMULATORS, false},
};
#undef T

/* ---- words behind the opcode ---- */

static const char *word(const struct lower *l, uint32_t at)
{
    return at < l->s->mod_count ? l->s->mods[at]->text : "";
}

static bool accept(const struct lower *l, uint32_t *at, const char *text)
{
    if (strcmp(word(l, *at), text) != 0)
        return false;
    ++*at;
    return true;
}

static void expect(struct lower *l, uint32_t *at, const char *text)
{
    if (!accept(l, at, text))
        lower_refuse(l, "its words are not those of a form known here");
}

static void expect_end(struct lower *l, uint32_t at)
{
    if (at != l->s->mod_count)
        lower_refuse(l, "its words are not those of a form known here");
}

static bool layout_is_column(struct lower *l, uint32_t *at)
{
    if (accept(l, at, "col"))
        return true;
    expect(l, at, "row");
    return false;
}

static enum space space_word(const struct lower *l, uint32_t *at)
{
    if (accept(l, at, "shared") || accept(l, at, "shared::cta"))
        return SPACE_SHARED;
    return accept(l, at, "global") ? SPACE_GLOBAL : SPACE_NONE;
}

static enum matrix_type type_word(struct lower *l, uint32_t *at)
{
    for (int t = 0; t < MATRIX_B16; t++)
        if (accept(l, at, types[t].word))
            return (enum matrix_type)t;
    lower_refuse(l, "its element type is not known here");
}

/* .xor.popc and .and.popc, of b1. */
static uint8_t bits_words(struct lower *l, uint32_t *at)
{
    bool is_xor = accept(l, at, "xor");
    if (!is_xor && !accept(l, at, "and"))
        return 0;
    expect(l, at, "popc");
    return is_xor ? MATRIX_BITS_XOR : MATRIX_BITS_AND;
}

static bool is_one(uint32_t set, enum matrix_type t)
{
    return set >> t & 1;
}

/* ---- where elements lie ---- */

static struct fragment fragment_make(struct lower *l, enum matrix_type type, unsigned rows, unsigned columns,
                                     unsigned batches, unsigned registers)
{
    struct fragment f = {.type = type, .bits = types[type].bits, .rows = (uint16_t)rows, .columns = (uint16_t)columns};
    f.batches = (uint16_t)batches;
    f.per_register = (uint8_t)(f.bits == 64 ? 1 : 32 / f.bits);
    f.registers = (uint8_t)(registers ? registers : rows * columns * batches / 32 / f.per_register);
    f.place = reader_alloc(l->reader, 32u * f.registers * f.per_register, sizeof *f.place);
    return f;
}

enum role { ROLE_A, ROLE_B, ROLE_C };

/* The architectural fragments of mma: groups of four lanes hold a row of a and c, a column of b. */
static void place_mma(struct fragment *f, enum role role)
{
    unsigned per = f->per_register;
    for (unsigned lane = 0, i = 0; lane < 32; lane++)
        for (unsigned r = 0; r < f->registers; r++)
            for (unsigned s = 0; s < per; s++, i++) {
                unsigned group = lane / 4, in_group = lane % 4, row, column;
                if (role == ROLE_C) {
                    unsigned e = r * per + s;
                    row = group + 8 * (e / 2);
                    column = in_group * 2 + e % 2;
                } else if (role == ROLE_B) {
                    row = (r * 4 + in_group) * per + s;
                    column = group;
                } else {
                    unsigned tall = f->rows == 16;
                    row = group + (tall ? 8 * (r & 1) : 0);
                    column = ((tall ? r / 2 : r) * 4 + in_group) * per + s;
                }
                f->place[i] = (uint16_t)(row * f->columns + column);
            }
}

/* mma.m8n8k4 of f16: lanes 4q ... 4q + 3 and 16 + 4q ... 16 + 4q + 3 do product q. */
static void place_volta(struct fragment *f, enum role role, bool by_column)
{
    unsigned elements = f->registers * f->per_register;
    for (unsigned lane = 0; lane < 32; lane++)
        for (unsigned e = 0; e < elements; e++) {
            unsigned high = lane >= 16 ? 4 : 0, low = lane % 4, row, column;
            if (role == ROLE_A) {
                row = (by_column ? e : low) + high;
                column = by_column ? low : e;
            } else if (role == ROLE_B) {
                row = by_column ? e : low;
                column = (by_column ? low : e) + high;
            } else if (f->type == MATRIX_F16) {
                row = low + high;
                column = e;
            } else {
                row = (lane & 1) + (e & 2) + high;
                column = (e & 4) + (lane & 2) + (e & 1);
            }
            f->place[lane * elements + e] = (uint16_t)((lane % 16 / 4 * f->rows + row) * f->columns + column);
        }
}

static void place_wmma(struct fragment *f, enum role role)
{
    unsigned elements = f->registers * f->per_register, total = (unsigned)f->rows * f->columns;
    for (unsigned lane = 0; lane < 32; lane++)
        for (unsigned e = 0; e < elements; e++) {
            unsigned at = (lane * elements + e) % total;
            if (role == ROLE_C && f->rows == 16 && f->columns == 16)
                at = (lane / 4 + e % 4 / 2 * 8) * 16 + lane % 4 * 2 + e % 2 + e / 4 * 8;
            f->place[lane * elements + e] = (uint16_t)at;
        }
}

static struct fragment fragment_wmma(struct lower *l, const struct form *form, enum role role, enum matrix_type type)
{
    unsigned rows = role == ROLE_B ? form->k : form->m, columns = role == ROLE_A ? form->k : form->n;
    /* PTX fixes eight registers for a and b of f16: more than their elements need. */
    struct fragment f = fragment_make(l, type, rows, columns, 1, role != ROLE_C && type == MATRIX_F16 ? 8 : 0);
    place_wmma(&f, role);
    return f;
}

static struct fragment fragment_mma(struct lower *l, const struct form *form, enum role role, enum matrix_type type,
                                    bool by_column)
{
    unsigned rows = role == ROLE_B ? form->k : form->m, columns = role == ROLE_A ? form->k : form->n;
    struct fragment f = fragment_make(l, type, rows, columns, form->any_layout ? 4 : 1, 0);
    if (form->any_layout)
        place_volta(&f, role, by_column);
    else
        place_mma(&f, role);
    return f;
}

/* `count` matrices of 8 x 8 halves, one register each. Without .trans the two halves of a register are neighbours in
 * memory too, and move as one. */
static struct fragment fragment_small(struct lower *l, unsigned count, bool transposed)
{
    struct fragment f = fragment_make(l, transposed ? MATRIX_B16 : MATRIX_B32, 8 * count, transposed ? 8 : 4, 1, count);
    for (unsigned lane = 0, i = 0; lane < 32; lane++)
        for (unsigned r = 0; r < count; r++) {
            if (!transposed)
                f.place[i++] = (uint16_t)((r * 8 + lane / 4) * 4 + lane % 4);
            for (unsigned s = 0; transposed && s < 2; s++)
                f.place[i++] = (uint16_t)((r * 8 + lane % 4 * 2 + s) * 8 + lane / 4);
        }
    return f;
}

/* ---- code ---- */

static bool same_fragment(const struct fragment *x, const struct fragment *y)
{
    if (x->type != y->type || x->registers != y->registers || x->rows != y->rows || x->columns != y->columns ||
        x->batches != y->batches)
        return false;
    return x->registers == 0 ||
           memcmp(x->place, y->place, 32u * x->registers * x->per_register * sizeof *x->place) == 0;
}

static unsigned description(struct lower *l, const struct matrix *m)
{
    struct ptx_module *module = l->module;
    for (uint32_t i = 0; i < module->matrix_count; i++) {
        const struct matrix *o = &module->matrices[i];
        if (o->kind == m->kind && same_fragment(&o->d, &m->d) && same_fragment(&o->a, &m->a) &&
            same_fragment(&o->b, &m->b) && same_fragment(&o->c, &m->c) && o->satfinite == m->satfinite &&
            o->bits == m->bits && o->space == m->space && o->addressed == m->addressed && o->columns == m->columns &&
            o->lines == m->lines && o->line_elements == m->line_elements)
            return i;
    }
    if (module->matrix_count == MAX_MATRICES)
        lower_refuse(l, "the module has too many forms of matrix instructions");
    struct matrix *fresh = reader_push(l->reader, (void **)&module->matrices, &module->matrix_count,
                                       &module->matrix_capacity, sizeof *fresh);
    *fresh = *m;
    struct fragment *fragments[] = {&fresh->d, &fresh->a, &fresh->b, &fresh->c};
    for (uint32_t i = 0; i < 4; i++)
        if (fragments[i]->registers) {
            struct matrix_order *order = reader_alloc(l->reader, 1, sizeof *order);
            matrix_order(fresh, fragments[i], order);
            fragments[i]->order = order;
        }
    return module->matrix_count - 1;
}

/* The registers of a fragment as extra slots; one register may stand without braces. */
static void registers(struct lower *l, uint32_t i, const struct fragment *f, bool written)
{
    const struct operand *o = operand_at(l, i), *items = o;
    uint32_t count = 1;
    if (o && o->kind == OPERAND_VECTOR) {
        items = o->items;
        count = o->item_count;
    }
    if (!o || count != f->registers)
        lower_bad_operand(l, i, "as many registers as the form has");
    for (uint32_t k = 0; k < count; k++) {
        if (items[k].negated || items[k].pair)
            lower_bad_operand(l, i, "registers");
        emit_extra(l, written ? destination_operand(l, &items[k], types[f->type].reg)
                              : source_operand(l, &items[k], types[f->type].reg));
    }
}

static void emit_matrix(struct lower *l, struct matrix *m, const struct address *address, uint32_t stride)
{
    uint32_t first = l->code->extra_count, written = m->d.registers;
    if (written)
        registers(l, 0, &m->d, true);
    if (address) {
        emit_extra(l, temporary(l));
        written++;
        m->space = (uint8_t)address->space;
    }
    const struct fragment *sources[] = {&m->a, &m->b, &m->c};
    for (uint32_t i = 0; i < 3; i++)
        if (sources[i]->registers)
            registers(l, i + 1, sources[i], false);
    unsigned number = description(l, m);
    struct insn *in = emit(l, OP_MATRIX, number, written, address ? address->base : 0, first, stride);
    if (address) {
        in->imm = (uint64_t)address->offset;
        in->aux = l->module->access_count++;
    }
}

static struct address memory_address(struct lower *l, uint32_t operand, enum space space)
{
    struct address a = lower_address(l, operand_at(l, operand), space);
    if (a.space != MEM_GLOBAL && a.space != MEM_SHARED && a.space != MEM_GENERIC)
        lower_refuse(l, "it works on .global and .shared");
    return a;
}

static const struct form *find_form(struct lower *l, const struct form *forms, size_t count, uint32_t shape,
                                    enum matrix_type in, enum matrix_type out)
{
    for (size_t i = 0; i < count; i++)
        if (strcmp(forms[i].shape, word(l, shape)) == 0 && (in == MATRIX_TYPE_COUNT || is_one(forms[i].in, in)) &&
            (out == MATRIX_TYPE_COUNT || is_one(forms[i].out, out)))
            return &forms[i];
    lower_refuse(l, "this shape does not go with its types here");
}
#define FORMS(list) list, sizeof(list) / sizeof *(list)

static void need_operands(struct lower *l, uint32_t least, uint32_t most)
{
    if (l->s->operand_count < least || l->s->operand_count > most)
        lower_bad_operand(l, most, "no more and no fewer operands than the form has");
}

static void wmma_memory(struct lower *l, uint32_t at, bool store)
{
    const char *letter = word(l, at++);
    if (strlen(letter) != 1 || !strchr(store ? "d" : "abc", *letter))
        lower_refuse(l, "its words are not those of a form known here");
    enum role role = *letter == 'a' ? ROLE_A : *letter == 'b' ? ROLE_B : ROLE_C;
    expect(l, &at, "sync");
    expect(l, &at, "aligned");
    struct matrix m = {.kind = store ? MATRIX_STORE : MATRIX_LOAD, .columns = layout_is_column(l, &at)};
    uint32_t shape = at++;
    enum space space = space_word(l, &at);
    enum matrix_type type = type_word(l, &at);
    expect_end(l, at);
    need_operands(l, 2, 3);
    bool out = role == ROLE_C;
    const struct form *form =
        find_form(l, FORMS(wmma_forms), shape, out ? MATRIX_TYPE_COUNT : type, out ? type : MATRIX_TYPE_COUNT);
    struct fragment f = fragment_wmma(l, form, role, type);
    if (!form->any_layout && role != ROLE_C && m.columns != (role == ROLE_B))
        lower_refuse(l, "this layout does not go with its type");
    m.lines = m.columns ? f.columns : f.rows;
    m.line_elements = m.columns ? f.rows : f.columns;
    struct address address = memory_address(l, store ? 0 : 1, space);
    if (store)
        m.a = f;
    else
        m.d = f;
    uint32_t stride = operand_at(l, 2) ? source(l, 2, TYPE_B32) : constant(l, (uint64_t)m.line_elements);
    if (type == MATRIX_B1 && operand_at(l, 2)) { /* in words, as the elements */
        uint32_t words = temporary(l);
        emit(l, OP_SHR_U32, 0, words, stride, constant(l, 5), 0);
        stride = words;
    }
    emit_matrix(l, &m, &address, stride);
}

static void wmma_multiply(struct lower *l, uint32_t at)
{
    struct matrix m = {.kind = MATRIX_MULTIPLY, .bits = bits_words(l, &at)};
    expect(l, &at, "sync");
    expect(l, &at, "aligned");
    bool a_columns = layout_is_column(l, &at), b_columns = layout_is_column(l, &at);
    uint32_t shape = at++;
    (void)accept(l, &at, "rn");
    enum matrix_type d = type_word(l, &at), a = MATRIX_F16, b = MATRIX_F16, c = type_word(l, &at);
    if (at + 1 < l->s->mod_count) { /* f16 is not written: .d.c */
        a = c;
        b = type_word(l, &at);
        c = type_word(l, &at);
    }
    bool rounded = accept(l, &at, "rn");
    m.satfinite = accept(l, &at, "satfinite");
    expect_end(l, at);
    need_operands(l, 4, 4);
    const struct form *form = find_form(l, FORMS(wmma_forms), shape, a, d);
    if (a != b || !is_one(form->out, c) || (m.bits != 0) != (a == MATRIX_B1) || (rounded && d != MATRIX_F64) ||
        (m.satfinite && d != MATRIX_S32) || (!form->any_layout && (a_columns || !b_columns)))
        lower_refuse(l, "this combination of types is not known here");
    m.d = fragment_wmma(l, form, ROLE_C, d);
    m.a = fragment_wmma(l, form, ROLE_A, a);
    m.b = fragment_wmma(l, form, ROLE_B, b);
    m.c = fragment_wmma(l, form, ROLE_C, c);
    emit_matrix(l, &m, NULL, 0);
}

void lower_wmma(struct lower *l)
{
    uint32_t at = 0;
    if (accept(l, &at, "load"))
        wmma_memory(l, at, false);
    else if (accept(l, &at, "store"))
        wmma_memory(l, at, true);
    else if (accept(l, &at, "mma"))
        wmma_multiply(l, at);
    else
        lower_refuse(l, "expected wmma.load, wmma.store or wmma.mma");
}

void lower_mma(struct lower *l)
{
    struct matrix m = {.kind = MATRIX_MULTIPLY};
    uint32_t at = 0;
    expect(l, &at, "sync");
    expect(l, &at, "aligned");
    uint32_t shape = at++;
    bool a_columns = layout_is_column(l, &at), b_columns = layout_is_column(l, &at);
    m.satfinite = accept(l, &at, "satfinite");
    enum matrix_type d = type_word(l, &at), a = type_word(l, &at), b = type_word(l, &at), c = type_word(l, &at);
    m.bits = bits_words(l, &at);
    expect_end(l, at);
    need_operands(l, 4, 4);
    const struct form *form = find_form(l, FORMS(mma_forms), shape, a, d);
    bool volta_mix = form->any_layout && d == MATRIX_F32 && c == MATRIX_F16;
    if (!is_one(form->in, b) || (d != c && !volta_mix) || (m.bits != 0) != (a == MATRIX_B1) ||
        (m.satfinite && d != MATRIX_S32) || (!form->any_layout && (a_columns || !b_columns)))
        lower_refuse(l, "this combination of types and layouts is not known here");
    m.d = fragment_mma(l, form, ROLE_C, d, false);
    m.a = fragment_mma(l, form, ROLE_A, a, a_columns);
    m.b = fragment_mma(l, form, ROLE_B, b, b_columns);
    m.c = fragment_mma(l, form, ROLE_C, c, false);
    emit_matrix(l, &m, NULL, 0);
}

static void lower_small(struct lower *l, bool store)
{
    struct matrix m = {.kind = store ? MATRIX_STORE : MATRIX_LOAD, .addressed = true};
    uint32_t at = 0;
    expect(l, &at, "sync");
    expect(l, &at, "aligned");
    expect(l, &at, "m8n8");
    unsigned count = accept(l, &at, "x1") ? 1 : accept(l, &at, "x2") ? 2 : accept(l, &at, "x4") ? 4 : 0;
    if (!count)
        lower_refuse(l, "expected .x1, .x2 or .x4");
    bool transposed = accept(l, &at, "trans");
    enum space space = space_word(l, &at);
    if (space == SPACE_GLOBAL)
        lower_refuse(l, "it works on .shared");
    expect(l, &at, "b16");
    expect_end(l, at);
    need_operands(l, 2, 2);
    struct fragment f = fragment_small(l, count, transposed);
    m.lines = f.rows;
    m.line_elements = f.columns;
    struct address address = memory_address(l, store ? 0 : 1, space);
    if (store)
        m.a = f;
    else
        m.d = f;
    emit_matrix(l, &m, &address, 0);
}

void lower_ldmatrix(struct lower *l)
{
    lower_small(l, false);
}

void lower_stmatrix(struct lower *l)
{
    lower_small(l, true);
}

void lower_movmatrix(struct lower *l)
{
    struct matrix m = {.kind = MATRIX_TRANSPOSE};
    uint32_t at = 0;
    expect(l, &at, "sync");
    expect(l, &at, "aligned");
    expect(l, &at, "m8n8");
    expect(l, &at, "trans");
    expect(l, &at, "b16");
    expect_end(l, at);
    need_operands(l, 2, 2);
    m.d = fragment_small(l, 1, true);
    m.a = fragment_make(l, MATRIX_B16, 8, 8, 1, 1);
    for (unsigned i = 0; i < 64; i++)
        m.a.place[i] = (uint16_t)i;
    emit_matrix(l, &m, NULL, 0);
}
