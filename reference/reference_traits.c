/* reference_traits.c - which freedoms a kernel's PTX leaves to the device. */
#include <string.h>

#include "reference/reference_module.h"

static bool has(const char *word, const char *part)
{
    return strstr(word, part) != NULL;
}

static bool starts(const char *word, const char *part)
{
    return strncmp(word, part, strlen(part)) == 0;
}

static bool floating(const char *op)
{
    return has(op, ".f32") || has(op, ".f16") || has(op, ".bf16") || has(op, ".f64");
}

static bool rounded(const char *op)
{
    return has(op, ".rn") || has(op, ".rz") || has(op, ".rm") || has(op, ".rp");
}

/* PTX ISA 9.0, 9.7.3: mul and add without a rounding modifier may be fused; with one, never. */
static unsigned traits_of(const char *op)
{
    unsigned t = 0;
    if (starts(op, "atom") || starts(op, "red.") || starts(op, "nanosleep"))
        t |= REFERENCE_ORDER;
    if ((starts(op, "mul.") || starts(op, "mad.")) && floating(op) && !rounded(op))
        t |= REFERENCE_CONTRACTION;
    if (has(op, ".approx") || has(op, ".full"))
        t |= REFERENCE_APPROXIMATE;
    if (starts(op, "wmma.mma") || starts(op, "mma.") || starts(op, "wgmma.") || starts(op, "tcgen05."))
        t |= REFERENCE_MATRIX;
    if (floating(op) &&
        (starts(op, "setp") || starts(op, "set.") || starts(op, "min") || starts(op, "max") || starts(op, "slct")))
        t |= REFERENCE_DECISION;
    bool elsewhere = has(op, ".param") || has(op, ".shared") || has(op, ".local");
    if ((starts(op, "ld.") || starts(op, "ldu.")) && !elsewhere &&
        (has(op, ".u64") || has(op, ".b64") || has(op, ".s64")))
        t |= REFERENCE_POINTERS;
    if (starts(op, "cvt.") && floating(op) &&
        (has(op, ".s32.f") || has(op, ".u32.f") || has(op, ".s64.f") || has(op, ".u64.f") || has(op, ".s8.f") ||
         has(op, ".u8.f") || has(op, ".s16.f") || has(op, ".u16.f")))
        t |= REFERENCE_DECISION;
    return t;
}

static bool names_identity(const char *line)
{
    static const char *const names[] = {"%clock", "%globaltimer", "%smid", "%nsmid", "%warpid", "%gridid"};
    for (size_t i = 0; i < sizeof names / sizeof *names; i++)
        if (has(line, names[i]))
            return true;
    return false;
}

static unsigned line_traits(const char *line, size_t bytes, bool *calls)
{
    char copy[512];
    if (bytes >= sizeof copy)
        bytes = sizeof copy - 1;
    memcpy(copy, line, bytes);
    copy[bytes] = '\0';
    char *op = copy + strspn(copy, " \t{");
    if (op[0] == '@') { /* a guard */
        op += strcspn(op, " \t");
        op += strspn(op, " \t");
    }
    unsigned t = names_identity(op) ? REFERENCE_IDENTITY : 0;
    op[strcspn(op, " \t;")] = '\0';
    *calls = *calls || starts(op, "call");
    return t | traits_of(op);
}

static unsigned scan(const struct reference_module *m, uint32_t first, uint32_t last, bool *calls)
{
    unsigned t = 0;
    uint32_t number = 1;
    const char *end = m->text + m->bytes;
    for (const char *line = m->text; line < end; number++) {
        const char *stop = memchr(line, '\n', (size_t)(end - line));
        size_t bytes = stop ? (size_t)(stop - line) : (size_t)(end - line);
        if (number >= first && number <= last)
            t |= line_traits(line, bytes, calls);
        line += bytes + 1;
    }
    return t;
}

unsigned reference_traits(const struct reference_module *m, const struct ptx_kernel *kernel)
{
    bool calls = false;
    unsigned t = scan(m, kernel->first_line, kernel->last_line, &calls);
    /* It may call any function of the module. */
    return calls ? t | scan(m, 1, UINT32_MAX, &calls) : t;
}
