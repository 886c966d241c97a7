/* Flaws of arithmetic, made by writing the kernel's PTX anew: the executor runs what it is given and knows nothing of
 * them. Lines stay lines. Only plain instructions on .f32 as the compiler writes them are changed, one to a line. */
#include <stdlib.h>
#include <string.h>

#include "common/buf.h"
#include "softgpu/fault.h"

enum { OPERANDS = 4 };

/* An instruction cut into its parts, which are not NUL-terminated. */
struct piece {
    const char *at;
    size_t bytes;
};
struct line {
    struct piece guard, opcode, operand[OPERANDS];
    size_t operands;
};

static bool is_space(char c)
{
    return c == ' ' || c == '\t';
}

static struct piece trim(const char *from, const char *to)
{
    while (from < to && is_space(*from))
        from++;
    while (to > from && is_space(to[-1]))
        to--;
    return (struct piece){from, (size_t)(to - from)};
}

/* "\t@%p1 fma.rn.f32 \t%f1, %f2, %f3, %f4;" */
static bool parse(const char *text, size_t bytes, struct line *out)
{
    struct piece all = trim(text, text + bytes);
    const char *p = all.at, *end = all.at + all.bytes;
    *out = (struct line){0};
    if (p == end || end[-1] != ';' || memchr(p, '{', all.bytes) || memchr(p, '"', all.bytes))
        return false;
    end--;
    if (*p == '@') {
        const char *start = p;
        while (p < end && !is_space(*p))
            p++;
        out->guard = trim(start, p);
        while (p < end && is_space(*p))
            p++;
    }
    const char *start = p;
    while (p < end && !is_space(*p))
        p++;
    out->opcode = trim(start, p);
    while (p < end && out->operands < OPERANDS) {
        const char *comma = memchr(p, ',', (size_t)(end - p));
        const char *stop = comma ? comma : end;
        out->operand[out->operands++] = trim(p, stop);
        p = comma ? comma + 1 : end;
    }
    return p >= end && out->operands >= 2;
}

static bool starts(struct piece p, const char *with)
{
    size_t n = strlen(with);
    return p.bytes >= n && !memcmp(p.at, with, n);
}

static bool ends(struct piece p, const char *with)
{
    size_t n = strlen(with);
    return p.bytes >= n && !memcmp(p.at + p.bytes - n, with, n);
}

static void put(struct buf *b, struct piece p)
{
    buf_append(b, p.at, p.bytes);
}

static void put_guard(struct buf *b, const struct line *l)
{
    put(b, l->guard);
    buf_text(b, l->guard.bytes ? " " : "");
}

/* The opcode, with .ftz at its place before .sat and the type. */
static void put_opcode(struct buf *b, const struct line *l, bool flush)
{
    static const char *const can[] = {"add.", "sub.",   "mul.", "fma.", "div.", "sqrt.",
                                      "rcp.", "rsqrt.", "ex2.", "lg2.", "min.", "max."};
    struct piece op = l->opcode;
    bool fits = false;
    for (size_t i = 0; i < sizeof can / sizeof *can; i++)
        fits = fits || starts(op, can[i]);
    if (!flush || !fits || memmem(op.at, op.bytes, ".ftz", 4)) {
        put(b, op);
        return;
    }
    size_t tail = ends(op, ".sat.f32") ? 8 : 4;
    buf_append(b, op.at, op.bytes - tail);
    buf_text(b, ".ftz");
    buf_append(b, op.at + op.bytes - tail, tail);
}

/* An operand rounded to 10 bits of mantissa, ties away from zero, in register softgpu_<name>. */
static void put_rounded(struct buf *b, const char *name, struct piece operand)
{
    buf_printf(b, ".reg .b32 softgpu_b%s; .reg .f32 softgpu_%s; mov.b32 softgpu_b%s, ", name, name, name);
    put(b, operand);
    buf_printf(b,
               "; add.u32 softgpu_b%s, softgpu_b%s, 4096; and.b32 softgpu_b%s, softgpu_b%s, -8192; mov.b32 softgpu_%s, "
               "softgpu_b%s; ",
               name, name, name, name, name, name);
}

static void rewrite(struct buf *b, const struct line *l, uint32_t kinds)
{
    bool product = (starts(l->opcode, "mul.") || starts(l->opcode, "fma.")) && l->operands >= 3;
    bool sum = starts(l->opcode, "add.") || starts(l->opcode, "fma.");
    bool round = product && kinds >> FAULT_TF32 & 1, narrow = sum && kinds >> FAULT_FP16ACC & 1;
    buf_text(b, "\t{ ");
    if (round) {
        put_rounded(b, "x", l->operand[1]);
        put_rounded(b, "y", l->operand[2]);
    }
    put_guard(b, l);
    put_opcode(b, l, kinds >> FAULT_FTZ & 1);
    buf_text(b, " ");
    put(b, l->operand[0]);
    for (size_t i = 1; i < l->operands; i++) {
        buf_text(b, ", ");
        if (round && i < 3)
            buf_text(b, i == 1 ? "softgpu_x" : "softgpu_y");
        else
            put(b, l->operand[i]);
    }
    buf_text(b, "; ");
    if (narrow) {
        buf_text(b, ".reg .b16 softgpu_h; ");
        put_guard(b, l);
        buf_text(b, "cvt.rn.f16.f32 softgpu_h, ");
        put(b, l->operand[0]);
        buf_text(b, "; ");
        put_guard(b, l);
        buf_text(b, "cvt.f32.f16 ");
        put(b, l->operand[0]);
        buf_text(b, ", softgpu_h; ");
    }
    buf_text(b, "}");
}

char *fault_rewrite(const char *text, size_t bytes, uint32_t kinds, size_t *out_bytes)
{
    struct buf b = {0};
    const char *end = text + bytes;
    for (const char *p = text; p < end;) {
        const char *newline = memchr(p, '\n', (size_t)(end - p));
        const char *stop = newline ? newline : end;
        struct line l;
        if (parse(p, (size_t)(stop - p), &l) && ends(l.opcode, ".f32") &&
            !memmem(l.opcode.at, l.opcode.bytes, "cvt", 3) && !starts(l.opcode, "ld.") && !starts(l.opcode, "st.") &&
            !starts(l.opcode, "mov."))
            rewrite(&b, &l, kinds);
        else
            buf_append(&b, p, (size_t)(stop - p));
        if (newline)
            buf_text(&b, "\n");
        p = newline ? newline + 1 : end;
    }
    if (b.failed) {
        buf_free(&b);
        return NULL;
    }
    *out_bytes = b.size;
    return b.data;
}
