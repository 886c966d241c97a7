/* exec_mbarrier.c - mbarrier objects in shared memory, and the bulk copies that report to them.
 *
 * PTX leaves the object's 64 bits open. Here: pending arrivals in bits 0 to 19, expected arrivals in 20 to 39, the
 * transaction count, a signed number, in 40 to 62, the parity of the phase in 63. The state that arriving gives is the
 * object as it was before. A block runs on one worker, so that nothing need be atomic. */
#include <string.h>
#include "ptx/exec_check.h"
#include "ptx/exec_mbarrier.h"
#include "ptx/exec_shadow.h"

enum { COUNT_BITS = 20, TX_SHIFT = 40, TX_BITS = 23 };
#define COUNT_MASK ((uint64_t)MBARRIER_PENDING_MASK)
#define TX_MASK    ((UINT64_C(1) << TX_BITS) - 1)
#define PHASE      (UINT64_C(1) << 63)

static uint64_t with_tx(uint64_t object, uint64_t added)
{
    uint64_t tx = (object >> TX_SHIFT) + added;
    return (object & ~(TX_MASK << TX_SHIFT)) | (tx & TX_MASK) << TX_SHIFT;
}

/* When nothing is pending any more the phase ends, and the next one begins. */
static uint64_t completed(uint64_t object)
{
    if (object & (COUNT_MASK | TX_MASK << TX_SHIFT))
        return object;
    return (object ^ PHASE) | (object >> COUNT_BITS & COUNT_MASK);
}

static uint64_t arrived(uint64_t object, uint64_t count)
{
    uint64_t pending = ((object & COUNT_MASK) - count) & COUNT_MASK;
    return completed((object & ~COUNT_MASK) | pending);
}

uint64_t mbarrier_apply(uint8_t *at, unsigned op, uint64_t b, uint64_t c)
{
    uint64_t object, old;
    memcpy(&object, at, sizeof object);
    old = object;
    switch (op & MBARRIER_OP) {
    case MBARRIER_INIT:
        object = (b & COUNT_MASK) << COUNT_BITS | (b & COUNT_MASK);
        break;
    case MBARRIER_INVALIDATE:
        object = 0;
        break;
    case MBARRIER_ARRIVE:
        object = arrived(with_tx(object, c), (uint32_t)b);
        break;
    case MBARRIER_DROP: {
        uint64_t expected = ((object >> COUNT_BITS) - (uint32_t)b) & COUNT_MASK;
        object = (object & ~(COUNT_MASK << COUNT_BITS)) | expected << COUNT_BITS;
        object = arrived(with_tx(object, c), (uint32_t)b);
        break;
    }
    case MBARRIER_EXPECT:
        object = with_tx(object, (uint32_t)b);
        break;
    case MBARRIER_COMPLETE:
        object = completed(with_tx(object, 0 - (uint64_t)(uint32_t)b));
        break;
    case MBARRIER_TEST: /* b: a state */
        return (object ^ b) >> 63;
    default: /* b: a parity */
        return object >> 63 != (b & 1);
    }
    memcpy(at, &object, sizeof object);
    return old;
}

uint8_t *mbarrier_find(struct worker *w, struct block *b, struct thread *t, const struct insn *in, uint64_t address)
{
    if ((in->mod >> MBARRIER_SPACE_SHIFT & 0xf) == MEM_GENERIC && address >> 32 == PTX_SHARED_WINDOW >> 32)
        address &= UINT32_MAX;
    return space_find(w, b, t, in, MEM_SHARED, address, 8, true, true);
}

uint8_t *check_mbarrier(struct worker *w, struct block *b, struct thread *t, const struct insn *in, struct shadow *S,
                        uint64_t address)
{
    const uint32_t operands[] = {in->a, in->b, in->c};
    unsigned op = in->mod & MBARRIER_OP;
    for (int i = 0; i < 3; i++)
        if (S[operands[i]].undef)
            undef_used(w, b, t, &S[operands[i]]);
    uint8_t *p = mbarrier_find(w, b, t, in, address);
    if (!p)
        return NULL;
    uint64_t offset = (uint64_t)(p - b->shared);
    uint32_t undef = op == MBARRIER_INIT ? 0 : undef_at(w, b, t, MEM_SHARED, offset, 8);
    if (undef) { /* never initialised, or no longer valid */
        struct shadow read = {.undef = undef_record(w, b, t, in, MEM_SHARED, offset, 8, undef)};
        undef_used(w, b, t, &read);
    }
    undef_store(w, b, t, MEM_SHARED, offset, 8, op == MBARRIER_INVALIDATE ? 0xff : 0);
    if (!mbarrier_tests(op))
        check_fence(b, t); /* what came before is handed over to those who see the phase end */
    return p;
}

/* ---- bulk copies ---- */

static bool is_aligned(struct worker *w, struct block *b, struct thread *t, const struct insn *in, uint64_t shared,
                       uint64_t global, uint32_t bytes)
{
    if (!((shared | global | bytes) & (BULK_PIECE - 1)))
        return true;
    struct ptx_fault f = {.kind = PTX_FAULT_MISALIGNED, .bytes = bytes};
    bool is_shared = shared & (BULK_PIECE - 1);
    f.space = is_shared ? PTX_SPACE_SHARED : PTX_SPACE_GLOBAL;
    f.address = is_shared ? shared : global;
    f.offset = (int64_t)f.address;
    f.access.write = is_shared != (in->mod == BULK_TO_GLOBAL);
    fault_report(w, b, t, in, &f);
    return false;
}

static bool check_piece(struct worker *w, struct block *b, struct thread *t, const struct insn *in, uint64_t shared,
                        uint64_t global)
{
    struct shadow *S = t->shadow + t->base;
    bool out = in->mod == BULK_TO_GLOBAL;
    uint8_t *p = out ? NULL : check_access(w, b, t, in, &S[in->b], MEM_GLOBAL, global, BULK_PIECE, false);
    uint8_t *q = check_access(w, b, t, in, &S[in->a], MEM_SHARED, shared, BULK_PIECE, !out);
    if (out)
        p = check_access(w, b, t, in, &S[in->b], MEM_GLOBAL, global, BULK_PIECE, true);
    if (!p || !q)
        return false;
    if (!out) {
        check_copied(w, b, t, in, shared, global, BULK_PIECE, BULK_PIECE, p);
        memcpy(q, p, BULK_PIECE);
        return true;
    }
    for (uint32_t i = 0; i < BULK_PIECE; i += 8) {
        uint64_t value;
        struct shadow s;
        memcpy(&value, q + i, sizeof value);
        check_loaded(w, b, t, in, &s, MEM_SHARED, shared + i, 8, q + i, value);
        check_stored(w, b, t, in, &s, MEM_GLOBAL, global + i, 8, p + i, value);
        memcpy(p + i, &value, sizeof value);
    }
    return true;
}

static bool copy_piece(struct worker *w, struct block *b, struct thread *t, const struct insn *in, uint64_t shared,
                       uint64_t global)
{
    bool out = in->mod == BULK_TO_GLOBAL;
    uint8_t *p = global_find(w, b, t, in, global, BULK_PIECE, out, false);
    uint8_t *q = space_find(w, b, t, in, MEM_SHARED, shared, BULK_PIECE, !out, false);
    if (!p || !q)
        return false;
    memcpy(out ? p : q, out ? q : p, BULK_PIECE);
    if (!w->launch->shadow)
        return true;
    if (!out)
        shadow_copy(w, b, t, in, shared, global, BULK_PIECE, BULK_PIECE);
    for (uint32_t i = 0; out && i < BULK_PIECE; i += 8) {
        shadow_loaded(w, b, t, in, MEM_SHARED, shared + i, 8, in->d, true);
        shadow_stored(w, b, t, in, MEM_GLOBAL, global + i, 8, in->d);
    }
    return true;
}

bool bulk_copy(struct worker *w, struct block *b, struct thread *t, const struct insn *in)
{
    const union slot *R = t->stack + t->base;
    uint64_t shared = narrow_address(MEM_SHARED, R[in->a].u64), global = R[in->b].u64;
    uint32_t bytes = R[in->c].u32;
    bool checked = w->launch->checked, goes_on = checked || w->launch->shadow;
    if (!is_aligned(w, b, t, in, shared, global, bytes))
        return goes_on;
    for (uint32_t i = 0; i < bytes; i += BULK_PIECE)
        if (!(checked ? check_piece : copy_piece)(w, b, t, in, shared + i, global + i))
            return goes_on;
    return true;
}
