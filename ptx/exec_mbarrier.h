/* exec_mbarrier.h - mbarrier objects and bulk copies, as the loops and the lowering see them. */
#ifndef PTX_EXEC_MBARRIER_H
#define PTX_EXEC_MBARRIER_H

#include "ptx/exec.h"

/* mod of MBARRIER: what is done, and the address space. Operands: address a; b a count, a state, or a parity; c the
 * transactions that arriving expects before. */
enum {
    MBARRIER_INIT,
    MBARRIER_INVALIDATE,
    MBARRIER_ARRIVE,
    MBARRIER_DROP,
    MBARRIER_EXPECT,
    MBARRIER_COMPLETE,
    MBARRIER_TEST,
    MBARRIER_TEST_PARITY,
    MBARRIER_OP = 15,
    MBARRIER_SPACE_SHIFT = 8,
    MBARRIER_PENDING_MASK = 0xfffff, /* pending arrivals, in an object or a state */
};
enum { BULK_TO_GLOBAL = 1, BULK_PIECE = 16 }; /* mod of CP_BULK; its unit */

static inline bool mbarrier_tests(unsigned mod)
{
    return (mod & MBARRIER_OP) >= MBARRIER_TEST;
}

/* Does it to the object and returns the former object, or whether the phase is complete. */
uint64_t mbarrier_apply(uint8_t *at, unsigned op, uint64_t b, uint64_t c);
uint8_t *mbarrier_find(struct worker *w, struct block *b, struct thread *t, const struct insn *in, uint64_t address);
struct shadow;
uint8_t *check_mbarrier(struct worker *w, struct block *b, struct thread *t, const struct insn *in, struct shadow *S,
                        uint64_t address);
/* c bytes between shared a and global b, at once; false: a fault ended the thread. */
bool bulk_copy(struct worker *w, struct block *b, struct thread *t, const struct insn *in);

#endif
