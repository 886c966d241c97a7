/* operands.c - see operands.h. */
#include <stdlib.h>
#include <string.h>
#include "ptx/operands.h"
#include "ptx/matrix.h"
#include "ptx/texture.h"

static bool put(uint32_t *list, uint32_t *count, uint32_t slot)
{
    if (*count == MAX_OPERANDS)
        return false;
    list[(*count)++] = slot;
    return true;
}

static bool read_slot(struct operands *o, uint32_t slot)
{
    return put(o->reads, &o->read_count, slot);
}

static bool write_slot(struct operands *o, uint32_t slot)
{
    return put(o->writes, &o->write_count, slot);
}

static bool used_slot(struct operands *o, enum slot_use use, uint32_t slot)
{
    return (use != USE_READ && use != USE_BOTH) || read_slot(o, slot)
               ? (use != USE_WRITE && use != USE_BOTH) || write_slot(o, slot)
               : false;
}

static bool matrix_slots(const struct ptx_module *m, const uint32_t *extra, const struct insn *in, struct operands *o)
{
    const struct matrix *x = &m->matrices[in->mod];
    uint32_t sources = x->a.registers + x->b.registers + x->c.registers;
    bool ok = true;
    for (uint32_t i = 0; i < in->d && ok; i++)
        ok = write_slot(o, extra[i]);
    for (uint32_t i = 0; i < sources && ok; i++)
        ok = read_slot(o, extra[in->d + i]);
    return ok;
}

static bool call_slots(const struct call_site *site, struct operands *o)
{
    bool ok = true;
    for (uint32_t i = 0; i < site->arg_count && ok; i++)
        ok = !site->args[i].slot || read_slot(o, site->args[i].at);
    for (uint32_t i = 0; i < site->return_count && ok; i++)
        ok = !site->returns[i].slot || write_slot(o, site->returns[i].at);
    return ok;
}

bool insn_operands(const struct ptx_module *m, const struct code *k, const struct insn *in, struct operands *out)
{
    const struct microop_info *info = &microop_info[in->op];
    const uint32_t *extra = k->extra;
    uint32_t vector = in->mod >> MOD_VECTOR_SHIFT & 0xf;
    bool ok = true;
    out->read_count = out->write_count = 0;
    if (!used_slot(out, (enum slot_use)info->d, in->d) || !used_slot(out, (enum slot_use)info->a, in->a) ||
        !used_slot(out, (enum slot_use)info->b, in->b) || !used_slot(out, (enum slot_use)info->c, in->c))
        return false;
    switch (in->op) {
    case OP_CALL:
        return call_slots(&k->calls[in->aux], out);
    case OP_BFI_32:
    case OP_BFI_64:
        return read_slot(out, extra[in->imm]);
    case OP_ADDC_32:
    case OP_ADDC_64:
    case OP_SUBC_32:
    case OP_SUBC_64:
        return read_slot(out, extra[in->imm]) && write_slot(out, extra[in->imm]);
    case OP_LDV:
        for (uint32_t i = 0; i < vector && ok; i++)
            ok = write_slot(out, extra[in->b + i]);
        return ok;
    case OP_STV:
        for (uint32_t i = 0; i < vector && ok; i++)
            ok = read_slot(out, extra[in->b + i]);
        return ok;
    case OP_SHFL:
        return write_slot(out, extra[in->imm]) && read_slot(out, extra[in->imm + 1]);
    case OP_MATCH:
        return !(in->mod & 1) || write_slot(out, extra[in->imm]);
    case OP_ELECT:
        return write_slot(out, extra[in->imm]);
    case OP_MATRIX:
        return matrix_slots(m, extra + in->b, in, out);
    case OP_TEXTURE:
        for (uint32_t i = 0; i < in->d && ok; i++)
            ok = write_slot(out, extra[in->b + i]);
        for (uint32_t i = 0; i < m->texture_ops[in->mod].inputs && ok; i++)
            ok = read_slot(out, extra[in->b + in->d + i]);
        return ok;
    case OP_ATOM128: /* upper halves */
        return write_slot(out, extra[in->imm]) && read_slot(out, extra[in->imm + 1]) &&
               read_slot(out, extra[in->imm + 2]);
    default:
        return info->extra == USE_NONE;
    }
}

/* ---- what is read before it is written ---- */

/* By stretch of code without jumps, sets of slots: read before they are written in it, written in it, and to be read
 * from its start on. */
struct life {
    const struct code *k;
    uint32_t *stretch; /* by instruction */
    uint32_t *end;     /* by stretch: its last instruction */
    uint32_t count, words;
    uint64_t *read, *written, *live;
};
enum { MAX_LIFE_WORDS = 1 << 22 };

static bool leads_elsewhere(uint16_t op)
{
    return op == OP_BRA || op == OP_BRA_IF || op == OP_BRA_UNLESS || op == OP_SKIP_IF || op == OP_SKIP_UNLESS;
}

static bool stretches(struct life *x)
{
    const struct code *k = x->k;
    bool *starts = calloc(k->count + 1u, sizeof *starts);
    if (!starts)
        return false;
    for (uint32_t i = 0; i < k->count; i++) {
        uint16_t op = k->insns[i].op;
        if (leads_elsewhere(op))
            starts[k->insns[i].imm] = true;
        starts[i + 1] |= leads_elsewhere(op) || op == OP_BRX || op == OP_EXIT || op == OP_RET;
    }
    for (uint32_t t = 0; t < k->table_count; t++)
        for (uint32_t i = 0; i < k->tables[t].count; i++)
            starts[k->tables[t].targets[i]] = true;
    for (uint32_t i = 0; i < k->count; i++) {
        x->count += i == 0 || starts[i];
        x->stretch[i] = x->count - 1;
        x->end[x->count - 1] = i;
    }
    free(starts);
    return true;
}

static bool reads_and_writes(struct life *x, const struct ptx_module *m)
{
    struct operands *o = malloc(sizeof *o);
    bool known = o != NULL;
    for (uint32_t i = 0; known && i < x->k->count; i++) {
        uint64_t *read = x->read + (size_t)x->stretch[i] * x->words, *written = x->written + (read - x->read);
        known = insn_operands(m, x->k, &x->k->insns[i], o);
        for (uint32_t j = 0; known && j < o->read_count; j++)
            read[o->reads[j] / 64] |= UINT64_C(1) << o->reads[j] % 64 & ~written[o->reads[j] / 64];
        for (uint32_t j = 0; known && j < o->write_count; j++)
            written[o->writes[j] / 64] |= UINT64_C(1) << o->writes[j] % 64;
    }
    free(o);
    return known;
}

/* What is live at the start of where `to` leads to is live at the end of `from`, unless that writes it. */
static bool flow(struct life *x, uint32_t from, uint32_t to_pc)
{
    if (to_pc >= x->k->count)
        return false;
    const uint64_t *next = x->live + (size_t)x->stretch[to_pc] * x->words;
    uint64_t *live = x->live + (size_t)from * x->words, changed = 0;
    const uint64_t *written = x->written + (size_t)from * x->words;
    for (uint32_t w = 0; w < x->words; w++) {
        uint64_t more = next[w] & ~written[w] & ~live[w];
        changed |= more;
        live[w] |= more;
    }
    return changed != 0;
}

static void find_live(struct life *x)
{
    const struct code *k = x->k;
    memcpy(x->live, x->read, (size_t)x->count * x->words * sizeof *x->live);
    for (bool changed = true; changed;) {
        changed = false;
        for (uint32_t s = x->count; s-- > 0;) {
            const struct insn *in = &k->insns[x->end[s]];
            if (leads_elsewhere(in->op))
                changed |= flow(x, s, (uint32_t)in->imm);
            for (uint32_t t = 0; in->op == OP_BRX && t < k->tables[in->aux].count; t++)
                changed |= flow(x, s, k->tables[in->aux].targets[t]);
            if (in->op != OP_BRA && in->op != OP_BRX && in->op != OP_EXIT && in->op != OP_RET)
                changed |= flow(x, s, x->end[s] + 1);
        }
    }
}

bool *slots_read_first(const struct ptx_module *m, const struct code *k)
{
    struct life x = {.k = k, .words = k->slot_count / 64 + 1};
    bool *first = malloc(k->slot_count + 1u);
    x.stretch = calloc(k->count + 1u, sizeof *x.stretch);
    x.end = calloc(k->count + 1u, sizeof *x.end);
    bool ok = first && x.stretch && x.end && stretches(&x);
    uint64_t words = (uint64_t)x.count * x.words;
    if (ok)
        memset(first, 1, k->slot_count + 1u);
    if (ok && words <= MAX_LIFE_WORDS) {
        x.read = calloc(3 * words + 1, sizeof *x.read);
        x.written = x.read + words;
        x.live = x.written + words;
        if (x.read && k->count && reads_and_writes(&x, m)) {
            find_live(&x);
            for (uint32_t i = 0; i < k->slot_count; i++)
                first[i] = x.live[i / 64] >> i % 64 & 1;
        }
        ok = x.read != NULL;
    }
    free(x.read);
    free(x.stretch);
    free(x.end);
    if (ok)
        return first;
    free(first);
    return NULL;
}
