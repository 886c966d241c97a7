/* guard_wait.c - whether a block that has run long waits for another one. Guarded blocks run one after the other, so
 * what it waits for would never come; the checked loop makes later blocks resident beside it.
 *
 * Who waits comes back to where he was: the same groups at the same instructions with the same registers. That a block
 * which does so may have changed memory meanwhile does no harm: what is taken for waiting is a doubt, no more. A loop
 * that counts its rounds, or reads a clock, is not found so. */
#include <string.h>
#include "ptx/guard.h"

enum { ROUNDS = 128 }; /* more than a short loop has instructions: each round stops somewhere in it */

static uint64_t mix(uint64_t digest, uint64_t v)
{
    digest = (digest ^ v) * UINT64_C(0x9fb21c651e98df25);
    return digest ^ digest >> 32;
}

static uint64_t mix_vector(uint64_t digest, const uint8_t *v, size_t bytes)
{
    for (size_t i = 0; i < bytes; i += 8) {
        uint64_t word;
        memcpy(&word, v + i, 8);
        digest = mix(digest, word);
    }
    return digest;
}

static uint64_t mix_register(uint64_t digest, const struct lanes *L, uint32_t unit)
{
    const unsigned class = L->lc->unit_class[unit];
    if (class == CLASS_BIT)
        return mix(digest, L->base[unit]);
    if (L->state[unit] & LANE_VECTOR)
        return mix_vector(digest, L->file + (size_t)unit * LANE_UNIT, class == CLASS_WIDE ? 2 * LANE_UNIT : LANE_UNIT);
    digest = mix(digest, L->base[unit]);
    if (L->state[unit] & LANE_AFFINE)
        digest = mix(mix(digest, (uint64_t)L->stride[unit]), (uint64_t)L->rise[unit]);
    return digest;
}

static uint64_t digest_of(const struct lanes *L)
{
    uint64_t digest = mix(L->started, L->done);
    if (!L->started || L->done)
        return digest;
    for (uint32_t i = 0; i < L->group_count; i++)
        digest = mix(mix(digest, L->groups[i].pc), (uint64_t)L->groups[i].mask << 32 | L->groups[i].wait);
    for (uint32_t slot = 0; slot < L->code->slot_count; slot++)
        if (L->lc->unit[slot] != NO_UNIT && L->lc->written[slot])
            digest = mix_register(digest, L, L->lc->unit[slot]);
    return digest;
}

bool guard_waits(struct block *b)
{
    uint64_t first[MAX_BLOCK_THREADS / WARP] = {0};
    for (uint32_t w = 0; w < b->warp_count; w++)
        first[w] = digest_of(&b->lanes[w]);
    for (int round = 0; round < ROUNDS; round++) {
        uint32_t same = 0;
        block_run(b, 1);
        if (b->finished || launch_stopped(b->worker->launch))
            return false;
        while (same < b->warp_count && digest_of(&b->lanes[same]) == first[same])
            same++;
        if (same == b->warp_count)
            return true;
    }
    return false;
}
