/* Every form of every row of ptx/opcodes.def against an oracle: all modifiers of the row in all combinations, with all
 * of its types, as far as the executor admits them; 16-bit operands exhaustively where there is one, else all
 * combinations of edge values and 100,000 random ones (fewer for what differs from such a form by one more step, as a
 * boolean operator or .sat of cvt). A form that is admitted and has no oracle fails. Run it with names of instructions
 * to see only those: test_ptx_rows fma cvt */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include "tests/unit/ptx_forms.h"

enum { MANY = 100000, FEW = 4000, LEAST = 500, WRONG_SHOWN = 3 };

enum second { NONE, INTEGER, SLCT, ANY };

/* ---- every row has a test ---- */

enum covered {
#define ROW(name, second, operands) COVERED_##name,
#define ELSEWHERE(name, file)       COVERED_##name,
#include "tests/unit/ptx_coverage.def"
};

static const struct {
    const char *name;
    enum second second;
    const char *operands; /* NULL: tested elsewhere */
    const char *file;
} coverage[] = {
#define ROW(name, second, operands) [COVERED_##name] = {#name, second, operands, NULL},
#define ELSEWHERE(name, file)       [COVERED_##name] = {#name, NONE, NULL, file},
#include "tests/unit/ptx_coverage.def"
};

/* Does not compile for a row of opcodes.def that ptx_coverage.def lacks. */
static const enum covered row_coverage[] = {
#define OPCODE(name, modifiers, types, operands, function, effect) COVERED_##name,
#include "ptx/opcodes.def"
};

static void test_rows_tested_elsewhere_are(void **state)
{
    for (size_t i = 0; i < sizeof coverage / sizeof *coverage; i++) {
        if (!coverage[i].file)
            continue;
        char path[300];
        const char *root = getenv("OPSDEBUG_SOURCE");
        snprintf(path, sizeof path, "%s/tests/unit/%s", root ? root : ".", coverage[i].file);
        FILE *f = fopen(path, "r");
        if (!f)
            fail_msg("%s: no test file %s", coverage[i].name, path);
        fclose(f);
    }
}

/* ---- operands ---- */

static const uint64_t edges_int[] = {0,
                                     1,
                                     2,
                                     3,
                                     7,
                                     8,
                                     15,
                                     16,
                                     17,
                                     31,
                                     32,
                                     33,
                                     63,
                                     64,
                                     65,
                                     127,
                                     128,
                                     255,
                                     256,
                                     0x7fff,
                                     0x8000,
                                     0xffff,
                                     0x7fffff,
                                     0x800000,
                                     0x7fffffff,
                                     0x80000000,
                                     0xffffffff,
                                     0x100000000,
                                     0x7fffffffffffffff,
                                     0x8000000000000000,
                                     0xffffffffffffffff,
                                     0xfffffffffffffffe,
                                     0xffffff80,
                                     0xffff8000,
                                     0x00ff00ff00ff00ff,
                                     0x123456789abcdef0};
static const uint64_t edges_f32[] = {0,          0x80000000, 1,          0x80000001, 0x007fffff, 0x807fffff, 0x00800000,
                                     0x80800000, 0x00800001, 0x7f7fffff, 0xff7fffff, 0x7f800000, 0xff800000, 0x7fc00000,
                                     0x7f800001, 0xffc12345, 0x3f800000, 0xbf800000, 0x3f7fffff, 0x3f800001, 0x3f000000,
                                     0x40200000, 0xc0200000, 0x40600000, 0x4b000001, 0x4f000000, 0x4f7fffff, 0x5f000000,
                                     0x7e800000, 0x7e800001, 0x34000000, 0x33800000, 0x477fe000, 0x477fefff, 0x477ff000,
                                     0x38800000, 0x387fc000, 0x33000001, 0x0c000000, 0xbf000000};
static const uint64_t edges_f64[] = {0,
                                     UINT64_C(1) << 63,
                                     1,
                                     0x8000000000000001,
                                     0x000fffffffffffff,
                                     0x0010000000000000,
                                     0x7fefffffffffffff,
                                     0x7ff0000000000000,
                                     0xfff0000000000000,
                                     0x7ff8000000000000,
                                     0x7ff0000000000001,
                                     0x3ff0000000000000,
                                     0xbff0000000000000,
                                     0x3fefffffffffffff,
                                     0x3ff0000000000001,
                                     0x3fe0000000000000,
                                     0x4004000000000000,
                                     0xc004000000000000,
                                     0x43e0000000000000,
                                     0x43f0000000000000,
                                     0x41e0000000000000,
                                     0x41dfffffffc00000,
                                     0x41efffffffe00000,
                                     0x36a0000000000000,
                                     0x3690000000000000,
                                     0x3690000000000001,
                                     0x380fffffe0000000,
                                     0x380fffffffffffff,
                                     0x47efffffe0000000,
                                     0x47efffffefffffff,
                                     0x47effffff0000000,
                                     0x40effc0000000000,
                                     0x40effe0000000000,
                                     0x3e60000000000000,
                                     0x3e60000000000001,
                                     0x3cb0000000000000,
                                     0xc3e0000000000000,
                                     0xbfe0000000000000,
                                     0x3fdfffffffffffff};
static const uint64_t edges_f16[] = {0,      0x8000, 1,      0x8001, 0x03ff, 0x83ff, 0x0400, 0x8400,
                                     0x0401, 0x7bff, 0xfbff, 0x7c00, 0xfc00, 0x7e00, 0x7c01, 0xfe01,
                                     0x3c00, 0xbc00, 0x3bff, 0x3c01, 0x3800, 0x4100, 0xc100, 0x4300,
                                     0x6400, 0x7800, 0x1400, 0x1000, 0x13ff, 0x6bff, 0x6c00, 0x0200};
static const uint64_t edges_bf16[] = {0,      0x8000, 1,      0x8001, 0x007f, 0x807f, 0x0080, 0x8080,
                                      0x0081, 0x7f7f, 0xff7f, 0x7f80, 0xff80, 0x7fc0, 0x7f81, 0xffc1,
                                      0x3f80, 0xbf80, 0x3f7f, 0x3f81, 0x3f00, 0x4020, 0xc020, 0x4060,
                                      0x4b00, 0x5f00, 0x2000, 0x1fff, 0x3b80, 0x3c00, 0x0040, 0x8040};
static const uint64_t edges_count[] = {0,  1,  2,  7,  8,   15,  16,  17,  30,  31,         32,        33,
                                       62, 63, 64, 65, 127, 128, 255, 256, 257, 0x80000000, 0xffffffff};
static const uint64_t edges_pred[] = {0, 1};

static const uint64_t *edges_of(enum type t, size_t *count)
{
#define EDGES(table) (*count = sizeof table / sizeof *table, table)
    switch (t) {
    case TYPE_PRED:
        return EDGES(edges_pred);
    case TYPE_U8:
        return EDGES(edges_count);
    case TYPE_F16:
    case TYPE_F16X2:
        return EDGES(edges_f16);
    case TYPE_BF16:
    case TYPE_BF16X2:
        return EDGES(edges_bf16);
    case TYPE_F32:
        return EDGES(edges_f32);
    case TYPE_F64:
        return EDGES(edges_f64);
    default:
        return EDGES(edges_int);
    }
#undef EDGES
}

static uint64_t random_float(uint64_t *state, unsigned exponent_bits, unsigned mantissa_bits)
{
    uint64_t v = kit_random(state), bias = (UINT64_C(1) << (exponent_bits - 1)) - 1, top = 2 * bias + 1;
    uint64_t sign = (v >> 63) << (exponent_bits + mantissa_bits), mantissa = v & ((UINT64_C(1) << mantissa_bits) - 1);
    uint64_t near = bias > 12 ? 12 : bias, r = kit_random(state);
    /* Most with exponents near each other, so that operands meet; some mantissas short, so that results are exact or
     * ties. */
    uint64_t exponent = r % 3 ? bias - near + (r >> 8) % (2 * near + 1) : (r >> 8) % (top + 1);
    if ((r >> 4 & 7) == 0)
        mantissa &= ~UINT64_C(0) << mantissa_bits / 2;
    return sign | exponent << mantissa_bits | mantissa;
}

static uint64_t random_operand(enum type t, uint64_t *state)
{
    switch (t) {
    case TYPE_PRED:
        return kit_random(state) & 1;
    case TYPE_U8:
        return kit_random(state) % 5 ? kit_random(state) % 70 : kit_random(state) & UINT32_MAX;
    case TYPE_F16:
        return random_float(state, 5, 10);
    case TYPE_BF16:
        return random_float(state, 8, 7);
    case TYPE_F16X2:
        return random_float(state, 5, 10) << 16 | random_float(state, 5, 10);
    case TYPE_BF16X2:
        return random_float(state, 8, 7) << 16 | random_float(state, 8, 7);
    case TYPE_F32:
        return random_float(state, 8, 23);
    case TYPE_F64:
        return random_float(state, 11, 52);
    default: {
        unsigned bits = form_bits(t);
        uint64_t v = kit_random(state) >> (kit_random(state) % bits),
                 wanted = bits == 64 ? UINT64_MAX : (UINT64_C(1) << bits) - 1;
        return (kit_random(state) & 1 ? v : ~v) & wanted;
    }
    }
}

static uint64_t edge(enum type t, size_t i)
{
    size_t n;
    const uint64_t *edges = edges_of(t, &n);
    uint64_t v = edges[i % n];
    return form_packed(t) ? edges[(i * 7 + 3) % n] << 16 | v : v;
}

/* Operand triples for the types: kept from form to form, since most share them. */
static uint64_t *operands(const enum type from[3], uint32_t random, uint32_t *count)
{
    static enum type made_for[3];
    static uint32_t made_random, made_count;
    static uint64_t *made;
    uint32_t wanted_random = random;
    if (made && memcmp(made_for, from, sizeof made_for) == 0 && made_random == random) {
        *count = made_count;
        return made;
    }
    size_t n[3] = {1, 1, 1}, total = 1;
    for (int k = 0; k < 3; k++) {
        if (from[k])
            edges_of(from[k], &n[k]);
        total *= n[k];
    }
    bool exhaustive = !from[1] && form_bits(from[0]) == 16;
    if (exhaustive) {
        total = 65536;
        random = 0;
    }
    free(made);
    made = calloc((total + random) * 3, sizeof *made);
    assert_non_null(made);
    uint64_t state = 42;
    for (size_t i = 0; i < total + random; i++) {
        size_t rest = i;
        for (int k = 0; k < 3; k++) {
            if (!from[k])
                continue;
            made[3 * i + (size_t)k] = exhaustive   ? i
                                      : i >= total ? random_operand(from[k], &state)
                                                   : edge(from[k], rest % n[k]);
            rest /= n[k];
        }
    }
    memcpy(made_for, from, sizeof made_for);
    made_random = wanted_random;
    *count = made_count = (uint32_t)(total + random);
    return made;
}

/* ---- forms ---- */

static bool is(const struct form *f, const char *name)
{
    return strcmp(f->row->name, name) == 0;
}

static enum type bits_type(unsigned bits)
{
    return bits == 1 ? TYPE_PRED : bits == 16 ? TYPE_B16 : bits == 32 ? TYPE_B32 : TYPE_B64;
}

/* Where widths and kinds of operands are not those of the first type. */
static void shape_form(struct form *f, const char *operands)
{
    enum type t = f->types[0], s = f->type_count > 1 ? f->types[1] : t;
    unsigned wide = f->value[CLASS_HALF] == HALF_WIDE ? 2 : 1;
    enum type d = t, from[3] = {t, t, t};
    unsigned widened = 0;
    if (is(f, "mul") || is(f, "mad")) {
        widened = wide == 2 ? form_bits(t) * 2 : 0;
        if (wide == 2)
            from[2] = bits_type(widened > 64 ? 64 : widened);
    } else if (is(f, "addc") || is(f, "subc")) {
        from[2] = t; /* its highest bit is the carry */
    } else if (is(f, "popc") || is(f, "clz") || is(f, "bfind")) {
        d = TYPE_B32;
    } else if (is(f, "bfe")) {
        from[1] = from[2] = TYPE_U8;
    } else if (is(f, "bfi")) {
        from[2] = TYPE_U8;
    } else if (is(f, "fns")) {
        from[1] = from[2] = TYPE_U8;
    } else if (is(f, "shl") || is(f, "shr") || is(f, "szext")) {
        from[1] = TYPE_U8;
    } else if (is(f, "bmsk")) {
        from[0] = from[1] = TYPE_U8;
    } else if (is(f, "shf")) {
        from[2] = TYPE_U8;
    } else if (is(f, "setp") || is(f, "testp")) {
        d = TYPE_PRED;
        from[2] = TYPE_PRED;
    } else if (is(f, "selp")) {
        from[2] = TYPE_PRED;
    } else if (is(f, "slct")) {
        from[2] = s;
    } else if (is(f, "set")) {
        from[0] = from[1] = s;
        from[2] = TYPE_PRED;
    } else if (is(f, "cvt")) {
        from[0] = from[1] = s;
        if (form_has(f, M(TF32)))
            d = TYPE_B32;
    }
    f->shape.d = (uint8_t)(widened ? widened : form_bits(d) == 8 ? 16 : form_bits(d));
    bool third = strstr(operands, "%c") || form_has(f, M(OPER)) || is(f, "addc") || is(f, "subc");
    bool second = strstr(operands, "%b") || (is(f, "cvt") && form_packed(t));
    f->from[0] = from[0];
    f->from[1] = second ? from[1] : TYPE_NONE;
    f->from[2] = third ? from[2] : TYPE_NONE;
    uint8_t *widths[] = {&f->shape.a, &f->shape.b, &f->shape.c};
    for (int k = 0; k < 3; k++) {
        unsigned bits = f->from[k] == TYPE_U8 && !is(f, "cvt") ? 32 : f->from[k] ? form_bits(f->from[k]) : 0;
        *widths[k] = (uint8_t)(bits == 8 ? 16 : bits);
        if (is(f, "cvt") && f->from[k] && form_bits(f->from[k]) == 8)
            f->from[k] = TYPE_U16; /* not a count */
    }
}

static const struct {
    const char *word;
    enum modifier_class class;
    int value;
} words[] = {
#define MODIFIER(word, class, value) {word, CLASS_##class, value},
#include "ptx/modifiers.def"
};
enum { WORDS = sizeof words / sizeof *words };

/* The text of the form, or false when it has no such variant. */
static bool write_form(struct form *f, const char *operands, const char *const chosen[CLASS_COUNT])
{
    char name[120];
    size_t n = (size_t)snprintf(name, sizeof name, "%s", f->row->name);
    for (int c = 0; c < CLASS_COUNT; c++)
        if (chosen[c] && c != CLASS_TF32)
            n += (size_t)snprintf(name + n, sizeof name - n, ".%s", chosen[c]);
    if (chosen[CLASS_TF32])
        n += (size_t)snprintf(name + n, sizeof name - n, ".tf32");
    for (uint32_t i = 0; i < f->type_count; i++)
        n += (size_t)snprintf(name + n, sizeof name - n, ".%s", type_info[f->types[i]].name);
    char list[80] = "";
    size_t used = 0;
    for (const char *p = operands; *p; p++) {
        char one[16] = {*p};
        if (p[0] == '%' && p[1] == 'u') {
            snprintf(one, sizeof one, "%u", f->immediate);
            p++;
        }
        used += (size_t)snprintf(list + used, sizeof list - used, "%s", one);
    }
    if (is(f, "cvt") && form_packed(f->types[0]))
        used += (size_t)snprintf(list + used, sizeof list - used, ", %%b");
    if (form_has(f, M(OPER)) && (is(f, "setp") || is(f, "set")))
        snprintf(list + used, sizeof list - used, "%s", f->variant == 2 ? ", !%c" : ", %c");
    bool packed = form_packed(f->types[0]), carry_in = is(f, "addc") || is(f, "subc") || is(f, "madc");
    if (is(f, "setp")) {
        if (f->variant > 2 || (f->variant == 2 && (packed || !form_has(f, M(OPER)))))
            return false;
        const char *d = f->variant == 1 ? "%x|%d" : packed ? "%d|%x" : "%d";
        snprintf(f->text, sizeof f->text, "{.reg .pred %%x; %s %s%s;}", name, d, list + 2);
        return true;
    }
    if (carry_in || form_has(f, M(CC))) {
        unsigned bits = form_bits(f->types[0]);
        if (f->variant > (form_has(f, M(CC)) ? 1u : 0u))
            return false;
        char before[80] = "";
        if (carry_in)
            snprintf(before, sizeof before, "add.cc.u%u %%z, %%c, %%c; ", bits);
        if (f->variant) /* the carry that it leaves */
            snprintf(f->text, sizeof f->text, "{.reg .b%u %%z; %s%s %%z%s; addc.u32 %%d, 0, 0;}", bits, before, name,
                     list + 2);
        else
            snprintf(f->text, sizeof f->text, "{.reg .b%u %%z; %s%s %s;}", bits, before, name, list);
        if (f->variant)
            f->shape.d = 32;
        return true;
    }
    snprintf(f->text, sizeof f->text, "%s %s;", name, list);
    return f->variant == 0;
}

static bool admitted(const struct form *f)
{
    struct kit k;
    return kit_try_instruction(&k, f->text, f->shape);
}

static struct {
    unsigned forms, rows;
    uint64_t values;
    unsigned failed;
} total;

static void run_form(struct form *f)
{
    oracle *judge = integer_oracle(f);
    if (!judge)
        judge = float_oracle(f);
    total.forms++;
    if (!judge) {
        print_error("%s: admitted, and no oracle\n", f->text);
        total.failed++;
        return;
    }
    /* Forms that differ from one with many operands by a step of their own behind or before it. */
    bool secondary = form_has(f, M(OPER)) || f->immediate || f->variant || (is(f, "set") && f->types[0] != TYPE_U32) ||
                     (is(f, "cvt") && form_has(f, M(SAT) | M(FTZ) | M(RELU) | M(SATFINITE)));
    uint32_t random = is(f, "set") && form_has(f, M(OPER)) ? LEAST : secondary ? FEW : MANY;
    uint32_t count, wrong = 0;
    uint64_t *in = operands(f->from, random, &count), *out = malloc(count * sizeof *out);
    assert_non_null(out);
    kit_instruction(f->text, f->shape, in, out, count);
    for (uint32_t i = 0; i < count; i++) {
        uint64_t expected;
        if (!judge(f, in + 3 * i, out[i], &expected) && wrong++ < WRONG_SHOWN)
            print_error("%s a=%llx b=%llx c=%llx: %llx, expected %llx\n", f->text, (unsigned long long)in[3 * i],
                        (unsigned long long)in[3 * i + 1], (unsigned long long)in[3 * i + 2],
                        (unsigned long long)out[i], (unsigned long long)expected);
    }
    total.values += count;
    total.failed += wrong != 0;
    free(out);
}

static void try_variants(struct form f, const char *operands, const char *const chosen[CLASS_COUNT])
{
    if (is(&f, "lop3") && form_has(&f, M(OPER))) /* with predicates: test_ptx_memory.c */
        return;
    shape_form(&f, operands);
    unsigned immediates = is(&f, "lop3") ? 256 : is(&f, "bfi") ? 70 : 1;
    for (unsigned i = 0; i < immediates; i++) {
        for (unsigned v = 0; v < 3; v++) {
            struct form g = f;
            g.variant = v;
            g.immediate = is(&f, "bfi") && i > 65 ? 64 * i - 4000 : i;
            if (!write_form(&g, operands, chosen) || (i == 0 && !admitted(&g)))
                break;
            run_form(&g);
        }
    }
}

/* Second types that are worth trying. */
static bool tries_type(enum second second, enum type first, enum type t)
{
    char kind = type_info[t].kind;
    switch (second) {
    case INTEGER:
        return t == TYPE_U32 || t == TYPE_S32;
    case SLCT:
        return t == TYPE_S32 || t == TYPE_F32;
    default:
        return (kind == 'u' || kind == 's' || kind == 'b' || kind == 'f') && form_bits(t) <= 64;
    }
}

static void try_types(struct form *f, enum second second, const char *operands, const char *const chosen[CLASS_COUNT])
{
    for (int t = 1; t < TYPE_COUNT; t++) {
        if (!(f->row->types >> t & 1) || type_info[t].kind == 'x') /* test_ptx_packed.c */
            continue;
        f->types[0] = (enum type)t;
        f->type_count = 1;
        if (second == NONE || chosen[CLASS_TF32]) {
            try_variants(*f, operands, chosen);
            continue;
        }
        for (int s = 1; s < TYPE_COUNT; s++) {
            f->types[1] = (enum type)s;
            f->type_count = 2;
            if (!tries_type(second, f->types[0], f->types[1]))
                continue;
            try_variants(*f, operands, chosen);
        }
    }
}

/* Words that never go together; refused by the executor too, but trying costs time. */
static bool hopeless(const struct form *f)
{
    if (form_has(f, M(ROUND)) && form_has(f, M(ROUND_INT)))
        return true;
    bool compares = is(f, "set") || is(f, "setp");
    if (compares && form_has(f, M(COMPARE)) == form_has(f, M(HALF)))
        return true;
    int op = f->value[CLASS_OPER];
    return compares && form_has(f, M(OPER)) && op != ATOM_AND && op != ATOM_OR && op != ATOM_XOR;
}

static void try_modifiers(struct form *f, int class, enum second second, const char *operands,
                          const char *chosen[CLASS_COUNT])
{
    while (class < CLASS_COUNT && !(f->row->modifiers >> class & 1))
        class ++;
    if (class == CLASS_COUNT) {
        if (!hopeless(f))
            try_types(f, second, operands, chosen);
        return;
    }
    chosen[class] = NULL;
    try_modifiers(f, class + 1, second, operands, chosen);
    for (int w = 0; w < WORDS; w++) {
        if ((int)words[w].class != class)
            continue;
        chosen[class] = words[w].word;
        f->set |= UINT64_C(1) << class;
        f->value[class] = words[w].value;
        try_modifiers(f, class + 1, second, operands, chosen);
        f->set &= ~(UINT64_C(1) << class);
        f->value[class] = 0;
    }
    chosen[class] = NULL;
}

static void test_row(void **state)
{
    const struct opcode *row = *state;
    enum covered covered = row_coverage[row - opcodes];
    const char *chosen[CLASS_COUNT] = {NULL};
    struct form f = {.row = row};
    total.failed = 0;
    unsigned before = total.forms;
    try_modifiers(&f, 0, coverage[covered].second, coverage[covered].operands, chosen);
    if (total.forms == before)
        fail_msg("%s: not one form of it is admitted", row->name);
    assert_int_equal(total.failed, 0);
}

static bool wanted(int argc, char **argv, const char *name)
{
    for (int i = 1; i < argc; i++)
        if (strcmp(argv[i], name) == 0)
            return true;
    return argc < 2;
}

int main(int argc, char **argv)
{
    enum { ROWS = sizeof row_coverage / sizeof *row_coverage };
    static struct CMUnitTest tests[ROWS + 1];
    static char names[ROWS][40];
    size_t n = 0;
    for (size_t i = 0; i < ROWS; i++) {
        if (!coverage[row_coverage[i]].operands || !wanted(argc, argv, opcodes[i].name))
            continue;
        snprintf(names[i], sizeof names[i], "test_row_%s", opcodes[i].name);
        tests[n++] = (struct CMUnitTest){
            .name = names[i], .test_func = test_row, .initial_state = (void *)(uintptr_t)&opcodes[i]};
    }
    tests[n++] = (struct CMUnitTest)cmocka_unit_test(test_rows_tested_elsewhere_are);
    int failed = _cmocka_run_group_tests("rows", tests, n, NULL, NULL);
    printf("%u forms, %llu results, %.1f s\n", total.forms, (unsigned long long)total.values,
           (double)clock() / CLOCKS_PER_SEC);
    return failed;
}
