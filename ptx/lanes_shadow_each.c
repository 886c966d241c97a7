/* lanes_shadow_each.c - arithmetic in shadow mode on one lane: each pure micro-operation as a function, of the handlers
 * that the shadow loop is made of. */
#include "ptx/arith.h"
#include "ptx/exec_rounding.h"
#include "ptx/lanes_shadow.h"
#include "ptx/lower.h"
#define TYPE_u64  uint64_t
#define TYPE_s64  int64_t
#define TYPE_u32  uint32_t
#define TYPE_s32  int32_t
#define TYPE_u16  uint16_t
#define TYPE_s16  int16_t
#define TYPE_f32  float
#define TYPE_f64  double
#define likely(x) __builtin_expect(!!(x), 1)
#pragma GCC diagnostic ignored "-Woverride-init"
#pragma GCC diagnostic ignored "-Wunused-function" /* what the loop does beside */
#include "ptx/exec_meaning.inc"
#include "ptx/exec_shadow_ops.inc"

typedef void number_handler(struct worker *w, struct block *b, struct thread *t, const struct insn *in, union slot *R,
                            struct ptx_shadow_value *S, struct number_pair *P);

/* What shadow.def does not name. */
#define OTHER_ROW(id, tags, count)                                                                                     \
    static void other_##id(struct worker *w, struct block *b, struct thread *t, const struct insn *in, union slot *R,  \
                           struct ptx_shadow_value *S, struct number_pair *P)                                          \
    {                                                                                                                  \
        const union slot result = actual_##id(R[in->a], R[in->b], R[in->c], in->mod);                                  \
        (void)w, (void)b, (void)t;                                                                                     \
        if (!(tags))                                                                                                   \
            S[in->d] = NUMBER_PLAIN;                                                                                   \
        else                                                                                                           \
            shadow_other(in, R, S, P, result, count, actual_##id);                                                     \
        R[in->d] = result;                                                                                             \
    }
#define ALU1(id, ...) OTHER_ROW(id, number_tag(&S[in->a]), 1)
#define ALU2(id, ...) OTHER_ROW(id, number_tag(&S[in->a]) | number_tag(&S[in->b]), 2)
#define ALU3(id, ...) OTHER_ROW(id, number_tag(&S[in->a]) | number_tag(&S[in->b]) | number_tag(&S[in->c]), 3)
#include "ptx/microops.def"

static number_handler *const handlers[OP_COUNT] = {
#define ALU1(id, ...) [OP_##id] = other_##id,
#define ALU2(id, ...) [OP_##id] = other_##id,
#define ALU3(id, ...) [OP_##id] = other_##id,
#include "ptx/microops.def"
#define NAMED(id)                                         [OP_##id] = do_##id,
#define FLOAT1(id, how, D, A, expression)                 NAMED(id)
#define FLOAT2(id, how, T, expression)                    NAMED(id)
#define FLOAT3(id, how, T, expression)                    NAMED(id)
#define WIDE1(id, D, expression)                          NAMED(id)
#define WIDE2(id, how, expression)                        NAMED(id)
#define WIDE3(id, how, expression)                        NAMED(id)
#define WHOLE(id, expression)                             NAMED(id)
#define NARROW(id, T, value)                              NAMED(id)
#define PICK1(id, T, expression)                          NAMED(id)
#define PICK2(id, T, first, expression)                   NAMED(id)
#define COMPARE(id, T)                                    NAMED(id)
#define TO_INTEGER(id, T)                                 NAMED(id)
#define ROUND(id, T)                                      NAMED(id)
#define HALF(id, id_x2, operands, how, expression)        NAMED(id) NAMED(id_x2)
#define HALF_PICK(id, id_x2, operands, first, expression) NAMED(id) NAMED(id_x2)
#define MOVE(id, ...)                                     NAMED(id)
#include "ptx/shadow.def"
};

const uint8_t lane_number_sources[OP_COUNT] = {
#define ALU1(id, ...) [OP_##id] = 1,
#define ALU2(id, ...) [OP_##id] = 2,
#define ALU3(id, ...) [OP_##id] = 3,
#include "ptx/microops.def"
};

void lane_number_each(struct lanes *L, const struct insn *in, uint32_t lane)
{
    struct lane_numbers *n = L->numbers;
    const struct insn *original = &L->code->insns[in - L->insns];
    const uint32_t units[3] = {in->a, in->b, in->c}, slots[3] = {original->a, original->b, original->c};
    struct thread *t = &L->block->threads[L->first + lane];
    t->code = L->code;
    for (unsigned i = 0; i < 3 && i < lane_number_sources[original->op]; i++) {
        n->R[slots[i]].u64 = lane_value(L, units[i], lane);
        lane_number_get(n, units[i], lane, &n->S[slots[i]], &n->P[slots[i]]);
    }
    handlers[original->op](L->worker, L->block, t, original, n->R, n->S, n->P);
}

const struct insn *lane_numbers_each(struct lanes *L, const struct insn *in)
{
    struct lane_numbers *n = L->numbers;
    uint32_t slot = L->code->insns[in - L->insns].d;
    L->worker->lane_steps += (uint32_t)__builtin_popcount(L->mask);
    for (uint32_t m = L->mask; m; m &= m - 1) {
        uint32_t lane = (uint32_t)__builtin_ctz(m);
        lane_number_each(L, in, lane);
        lane_set(L, in->d, lane, n->R[slot].u64);
        lane_number_set(n, in->d, lane, &n->S[slot], &n->P[slot]);
    }
    lane_number_tighten(L, in->d);
    return in + 1;
}
