/* operands.c - see operands.h. */
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
