/* verify_operators.c - what calls of libraries do to memory, as far as it matters for judging launches.
 *
 * Their own kernels are machine code, or (on softgpu) no kernels at all: what they write is known from their arguments
 * only.
 */
#include "analyzer/verify.h"

static void mark_run(struct verify *v, uint64_t address, uint64_t bytes)
{
    const struct model_allocation *a = model_live_find(&v->live, address);
    if (a)
        valid_bytes_mark(&v->valid, a, address - a->address, bytes);
}

static void mark_columns(struct verify *v, const struct operand *o)
{
    if (!o->rows || !o->columns) /* of which there may be any number */
        return;
    bool dense = o->ld == o->rows; /* the columns touch: they are one */
    uint64_t columns = dense ? 1 : o->columns, run = (dense ? o->rows * o->columns : o->rows) * o->element_bytes;
    for (uint64_t b = 0; b < o->batch; b++)
        for (uint64_t c = 0; c < columns; c++)
            mark_run(v, o->address + (b * (uint64_t)o->stride + c * o->ld) * o->element_bytes, run);
}

/* More columns than this are marked as all of the allocation. */
enum { COLUMNS_LIMIT = 1 << 20 };

static bool countable(const struct operand *o)
{
    uint64_t columns;
    return o->shaped && !__builtin_mul_overflow(o->columns, o->batch, &columns) && columns <= COLUMNS_LIMIT &&
           o->rows < UINT64_C(1) << 40;
}

static void mark_everything(struct verify *v)
{
    const struct model_allocation *a;
    for (struct address_place at = {0}; (a = address_list_next(&v->live.live, &at));)
        valid_bytes_mark_all(&v->valid, a);
}

void verify_operator(struct verify *v, const struct model_operator *op)
{
    struct operand operands[OPERANDS_MAX];
    if (!op || operator_is_setup(op))
        return;
    size_t count = operator_operands(v->model->capture, op, operands);
    for (size_t i = 0; i < count; i++) {
        const struct operand *o = &operands[i];
        const struct model_allocation *a = model_live_find(&v->live, o->address);
        if (!o->written)
            continue;
        if (o->list)
            mark_everything(v); /* where its pointers lead is not known */
        else if (countable(o))
            mark_columns(v, o);
        else if (a)
            valid_bytes_mark_all(&v->valid, a);
    }
}

bool verify_operator_beside(const struct model *m, uint64_t first_seq, uint64_t last_seq, uint32_t stream,
                            const struct model_allocation *a)
{
    for (size_t i = 0; i < m->operator_count; i++) {
        const struct model_operator *op = &m->operators[i];
        struct operand operands[OPERANDS_MAX];
        if (op->seq < first_seq || op->seq > last_seq || operator_is_setup(op) ||
            (op->record->stream == stream && op->record->stream))
            continue;
        size_t count = operator_operands(m->capture, op, operands);
        for (size_t k = 0; k < count; k++)
            if (operands[k].written && (operands[k].list || (operands[k].address >= a->address &&
                                                             operands[k].address - a->address < a->bytes)))
                return true;
    }
    return false;
}
