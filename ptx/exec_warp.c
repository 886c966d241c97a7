/* exec_warp.c - what the lanes of a warp do together: *.sync instructions, activemask.
 *
 * Lanes run one after the other, so a *.sync instruction is a meeting: a lane waits until every lane its mask names
 * (that has not ended) stands at an instruction of the same kind with the same mask; the last to come does it for all.
 * As on devices of compute capability 7 and later it need not be the very same instruction. */
#include "ptx/exec_matrix.h"
#include "ptx/exec_shadow.h"
#include "ptx/lower.h"

struct meeting {
    struct block *block;
    struct thread *lanes[WARP]; /* NULL: not a member */
    uint32_t mask;              /* members */
    const struct insn *in;
};

static union slot *slots(const struct thread *t)
{
    return t->stack + t->base;
}

static const struct insn *instruction(const struct thread *t)
{
    return &t->code->insns[t->pc];
}

static void set(struct thread *t, uint32_t slot, uint64_t value)
{
    thread_set(t, slot, value);
}

/* Shadow mode: the results of all come from the operands of all, so what these depend on, and whether a lane is here in
 * time, goes to each. */
static unsigned taint_of(const struct meeting *m)
{
    unsigned flags = 0;
    for (uint32_t i = 0; i < WARP; i++)
        if (m->lanes[i] && m->lanes[i]->numbers)
            flags |= m->lanes[i]->taint |
                     shadow_plain_of(&m->lanes[i]->numbers[m->lanes[i]->base + instruction(m->lanes[i])->a]).flags;
    return flags;
}

static void set_tainted(struct thread *t, uint32_t slot, uint64_t value, unsigned flags)
{
    set(t, slot, value);
    if (t->numbers)
        t->numbers[t->base + slot].flags = flags & FLAGS_SPREADING;
}

/* shfl.sync d|p, a, b, c: the PTX ISA's pseudocode, with c = segment mask << 8 | clamp. */
static void do_shfl(struct meeting *m)
{
    uint64_t values[WARP] = {0};
    struct shadow shadows[WARP] = {{0}};
    struct ptx_shadow_value numbers[WARP];
    struct number_pair pairs[WARP];
    for (uint32_t i = 0; i < WARP; i++) {
        if (!m->lanes[i])
            continue;
        const struct insn *in = instruction(m->lanes[i]);
        values[i] = slots(m->lanes[i])[in->a].u32;
        if (m->lanes[i]->shadow)
            shadows[i] = m->lanes[i]->shadow[m->lanes[i]->base + in->a];
        if (m->lanes[i]->numbers) {
            numbers[i] = m->lanes[i]->numbers[m->lanes[i]->base + in->a];
            pairs[i] = m->lanes[i]->pairs[m->lanes[i]->base + in->a];
            numbers[i].flags |= m->lanes[i]->taint;
        }
    }
    for (uint32_t lane = 0; lane < WARP; lane++) {
        struct thread *t = m->lanes[lane];
        if (!t)
            continue;
        const struct insn *in = instruction(t);
        uint32_t b = slots(t)[in->b].u32 & 31, c = slots(t)[in->c].u32;
        uint32_t clamp = c & 31, segment = c >> 8 & 31;
        int32_t top = (int32_t)((lane & segment) | (clamp & ~segment)), bottom = (int32_t)(lane & segment), from;
        bool valid;
        switch (in->mod) {
        case SHFL_UP:
            from = (int32_t)lane - (int32_t)b;
            valid = from >= top;
            break;
        case SHFL_DOWN:
            from = (int32_t)(lane + b);
            valid = from <= top;
            break;
        case SHFL_BFLY:
            from = (int32_t)(lane ^ b);
            valid = from <= top;
            break;
        default:
            from = bottom | (int32_t)(b & ~segment);
            valid = from <= top;
        }
        if (!valid)
            from = (int32_t)lane;
        /* Reading from a lane that takes no part is undefined; a device gives some value, here the lane's own. */
        if (!m->lanes[from])
            from = (int32_t)lane;
        uint32_t extra = t->code->extra[in->imm];
        set(t, in->d, values[from]);
        if (t->shadow)
            t->shadow[t->base + in->d] = shadows[from];
        if (t->numbers) {
            unsigned taint = t->numbers[t->base + in->b].flags & FLAGS_CONTROL; /* of the lane's number */
            t->numbers[t->base + in->d] = numbers[from];
            t->numbers[t->base + in->d].flags |= taint;
            t->pairs[t->base + in->d] = pairs[from];
        }
        set(t, extra, valid);
    }
}

static void do_vote(struct meeting *m)
{
    uint32_t ballot = 0;
    unsigned taint = taint_of(m) & FLAGS_CONTROL;
    for (uint32_t i = 0; i < WARP; i++)
        if (m->lanes[i] && slots(m->lanes[i])[instruction(m->lanes[i])->a].u32)
            ballot |= 1u << i;
    for (uint32_t i = 0; i < WARP; i++) {
        if (!m->lanes[i])
            continue;
        const struct insn *in = instruction(m->lanes[i]);
        uint32_t result = in->mod == VOTE_ALL   ? ballot == m->mask
                          : in->mod == VOTE_ANY ? ballot != 0
                          : in->mod == VOTE_UNI ? ballot == 0 || ballot == m->mask
                                                : ballot;
        set_tainted(m->lanes[i], in->d, result, taint);
    }
}

static void do_match(struct meeting *m)
{
    uint64_t values[WARP] = {0};
    unsigned taint = taint_of(m);
    for (uint32_t i = 0; i < WARP; i++)
        if (m->lanes[i]) {
            const struct insn *in = instruction(m->lanes[i]);
            values[i] = in->mod & 2 ? slots(m->lanes[i])[in->a].u64 : slots(m->lanes[i])[in->a].u32;
        }
    for (uint32_t i = 0; i < WARP; i++) {
        if (!m->lanes[i])
            continue;
        uint32_t same = 0;
        for (uint32_t k = 0; k < WARP; k++)
            if (m->lanes[k] && values[k] == values[i])
                same |= 1u << k;
        const struct insn *in = instruction(m->lanes[i]);
        if (in->mod & 1) {
            set_tainted(m->lanes[i], in->d, same == m->mask ? m->mask : 0, taint);
            set_tainted(m->lanes[i], m->lanes[i]->code->extra[in->imm], same == m->mask, taint);
        } else {
            set_tainted(m->lanes[i], in->d, same, taint);
        }
    }
}

static void do_redux(struct meeting *m)
{
    unsigned op = m->in->mod & 0xf, taint = taint_of(m);
    bool is_signed = m->in->mod & 16, first = true;
    uint32_t r = 0;
    for (uint32_t i = 0; i < WARP; i++) {
        if (!m->lanes[i])
            continue;
        uint32_t v = slots(m->lanes[i])[instruction(m->lanes[i])->a].u32;
        if (first) {
            r = v;
            first = false;
            continue;
        }
        switch (op) {
        case ATOM_ADD:
            r += v;
            break;
        case ATOM_AND:
            r &= v;
            break;
        case ATOM_OR:
            r |= v;
            break;
        case ATOM_XOR:
            r ^= v;
            break;
        case ATOM_MIN:
            r = is_signed ? ((int32_t)v < (int32_t)r ? v : r) : (v < r ? v : r);
            break;
        default:
            r = is_signed ? ((int32_t)v > (int32_t)r ? v : r) : (v > r ? v : r);
        }
    }
    for (uint32_t i = 0; i < WARP; i++)
        if (m->lanes[i])
            set_tainted(m->lanes[i], instruction(m->lanes[i])->d, r, taint);
}

static void do_elect(struct meeting *m)
{
    uint32_t leader = (uint32_t)__builtin_ctz(m->mask);
    for (uint32_t i = 0; i < WARP; i++) {
        if (!m->lanes[i])
            continue;
        const struct insn *in = instruction(m->lanes[i]);
        set(m->lanes[i], in->d, leader);
        set(m->lanes[i], m->lanes[i]->code->extra[in->imm], i == leader);
    }
}

static void perform(struct meeting *m)
{
    switch (m->in->op) {
    case OP_SHFL:
        do_shfl(m);
        break;
    case OP_VOTE:
        do_vote(m);
        break;
    case OP_MATCH:
        do_match(m);
        break;
    case OP_REDUX:
        do_redux(m);
        break;
    case OP_ELECT:
        do_elect(m);
        break;
    case OP_MATRIX:
        matrix_perform(m->block, m->lanes, m->in);
        break;
    default:
        break;
    }
    for (uint32_t i = 0; i < WARP; i++) {
        struct thread *t = m->lanes[i];
        if (!t)
            continue;
        thread_pass(t);
        t->state = THREAD_READY;
        m->block->meeting--;
    }
    if (m->block->worker->launch->checked)
        check_warp_sync(m->block, m->lanes);
}

/* Whether every lane of `wanted` that has not ended has come to the same meeting as `t`. Lanes run in ascending order,
 * so the one that is missing is found soonest from above. */
static bool all_there(const struct block *b, const struct thread *t, uint32_t wanted)
{
    uint32_t first = t->warp * WARP;
    for (uint32_t lane = WARP; lane-- > 0;) {
        if (!(wanted >> lane & 1) || first + lane >= b->thread_count)
            continue;
        const struct thread *other = &b->threads[first + lane];
        if (other->state == THREAD_DONE)
            continue;
        if (other->state != THREAD_WARP || other->wait_mask != t->wait_mask ||
            instruction(other)->op != instruction(t)->op)
            return false;
        /* Matrix instructions are .aligned: all lanes must come to the very same one. */
        if (instruction(t)->op == OP_MATRIX && instruction(other) != instruction(t))
            return false;
    }
    return true;
}

bool warp_arrive(struct block *b, struct thread *t)
{
    uint32_t first = t->warp * WARP;
    uint32_t wanted = t->wait_mask | 1u << t->lane; /* a lane outside its own mask is undefined: it meets alone */
    if (!all_there(b, t, wanted))
        return false;
    struct meeting m = {.block = b, .in = instruction(t)};
    for (uint32_t lane = 0; lane < WARP && first + lane < b->thread_count; lane++) {
        struct thread *member = &b->threads[first + lane];
        if ((wanted >> lane & 1) && member->state != THREAD_DONE) {
            m.lanes[lane] = member;
            m.mask |= 1u << lane;
        }
    }
    perform(&m);
    return true;
}

/* A lane that ended may have been the last one others waited for. */
bool warp_thread_ended(struct block *b, struct thread *ended)
{
    bool any = false;
    uint32_t first = ended->warp * WARP;
    for (uint32_t lane = 0; b->meeting && lane < WARP && first + lane < b->thread_count; lane++)
        if (b->threads[first + lane].state == THREAD_WARP)
            any |= warp_arrive(b, &b->threads[first + lane]);
    return any;
}

/* No lane of the warp can run: those that stand at the same activemask run together from there. */
void warp_release_active(struct block *b, uint32_t warp)
{
    uint32_t first = warp * WARP, mask = 0;
    const struct insn *in = NULL;
    for (uint32_t lane = 0; lane < WARP && first + lane < b->thread_count; lane++) {
        struct thread *t = &b->threads[first + lane];
        if (t->state != THREAD_ACTIVE)
            continue;
        if (!in)
            in = instruction(t);
        if (instruction(t) == in)
            mask |= 1u << lane;
    }
    for (uint32_t lane = 0; in && lane < WARP && first + lane < b->thread_count; lane++) {
        struct thread *t = &b->threads[first + lane];
        if (!(mask >> lane & 1))
            continue;
        set(t, in->d, mask);
        thread_pass(t);
        t->state = THREAD_READY;
    }
}
