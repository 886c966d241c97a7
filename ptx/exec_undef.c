/* exec_undef.c - bytes that were never written.
 *
 * A load of such bytes is no fault yet: structures have padding, vector loads fetch more than is used. The undefined
 * bytes travel with the value through moves, packing, shifts, logic, stores and shuffles; the load is reported when a
 * value made from them is computed with, compared, used as an address or given to an atomic. */
#include <stdlib.h>
#include <string.h>
#include "ptx/exec_check.h"

enum { MAX_LATENTS = 1 << 20 };

static bool bit(const uint8_t *map, uint64_t i)
{
    return map[i / 8] >> (i % 8) & 1;
}

uint32_t undef_at(struct worker *w, struct block *b, struct thread *t, enum mem_space space, uint64_t address,
                  uint32_t bytes)
{
    uint32_t undef = 0;
    if (space == MEM_SHARED || space == MEM_LOCAL) {
        const uint8_t *defined = space == MEM_SHARED ? b->shared_defined : t->local_valid;
        for (uint32_t i = 0; i < bytes; i++)
            undef |= (uint32_t)!defined[address + i] << i;
        return undef;
    }
    if (space != MEM_GLOBAL || !w->at || !w->at->valid)
        return 0;
    const uint8_t *map = w->launch->check->defined[w->at_number];
    uint64_t offset = address - w->at->address;
    if (!map)
        map = w->at->valid;
    for (uint32_t i = 0; i < bytes; i++)
        undef |= (uint32_t)!bit(map, offset + i) << i;
    return undef;
}

void undef_store(struct worker *w, struct block *b, struct thread *t, enum mem_space space, uint64_t address,
                 uint32_t bytes, uint32_t undef)
{
    if (space == MEM_SHARED || space == MEM_LOCAL) {
        uint8_t *defined = space == MEM_SHARED ? b->shared_defined : t->local_valid;
        for (uint32_t i = 0; i < bytes; i++)
            defined[address + i] = !(undef >> i & 1);
        return;
    }
    if (space != MEM_GLOBAL || !w->at || !w->at->valid)
        return;
    uint8_t **map = &w->launch->check->defined[w->at_number];
    if (!*map) {
        size_t size = (size_t)((w->at->bytes + 7) / 8);
        *map = malloc(size ? size : 1);
        if (!*map) {
            launch_stop(w->launch, STATUS_NO_MEMORY);
            return;
        }
        memcpy(*map, w->at->valid, size);
    }
    uint64_t offset = address - w->at->address;
    for (uint32_t i = 0; i < bytes; i++) {
        uint8_t mask = (uint8_t)(1u << ((offset + i) % 8));
        if (undef >> i & 1)
            (*map)[(offset + i) / 8] &= (uint8_t)~mask;
        else
            (*map)[(offset + i) / 8] |= mask;
    }
}

uint32_t undef_record(struct worker *w, struct block *b, struct thread *t, const struct insn *in, enum mem_space space,
                      uint64_t address, uint32_t bytes, uint32_t undef)
{
    struct check *c = w->launch->check;
    uint64_t key = (uint64_t)(uintptr_t)in ^ (uint64_t)w->at_number << 48, index;
    if (!map_get(&c->latent_index, key, &index)) {
        if (c->latent_count == c->latent_capacity) {
            uint32_t want = c->latent_capacity ? c->latent_capacity * 2 : 64;
            struct latent *fresh = want > MAX_LATENTS ? NULL : realloc(c->latents, want * sizeof *fresh);
            if (!fresh)
                return 0;
            c->latents = fresh;
            c->latent_capacity = want;
        }
        index = c->latent_count++;
        memset(&c->latents[index], 0, sizeof c->latents[index]);
        if (!map_put(&c->latent_index, key, index))
            return 0;
    }
    struct latent *l = &c->latents[index];
    l->in = in;
    l->fault = (struct ptx_fault){
        .kind = PTX_FAULT_UNINITIALISED,
        .space = space == MEM_SHARED  ? PTX_SPACE_SHARED
                 : space == MEM_LOCAL ? PTX_SPACE_LOCAL
                                      : PTX_SPACE_GLOBAL,
        .address = address,
        .bytes = bytes,
        .offset = (int64_t)address,
    };
    if (w->at && space == MEM_GLOBAL) {
        l->fault.has_range = true;
        l->fault.range_id = w->at->id;
        l->fault.offset = (int64_t)(address - w->at->address);
    }
    l->fault.access.ptx_line = thread_line(t, in);
    return (uint32_t)(index + 1) << 8 | undef;
}

void undef_used(struct worker *w, struct block *b, struct thread *t, struct shadow *s)
{
    const struct latent *l = &w->launch->check->latents[(s->undef >> 8) - 1];
    struct ptx_fault f = l->fault;
    s->undef = 0;
    fault_report(w, b, t, l->in, &f);
}

/* ---- bytes through shifts and logic ---- */

static uint32_t shifted_left(uint32_t u, uint32_t bits)
{
    return bits % 8 ? u << bits / 8 | u << (bits / 8 + 1) : u << bits / 8;
}

static uint32_t shifted_right(uint32_t u, uint32_t bits)
{
    return bits % 8 ? u >> bits / 8 | u >> (bits / 8 + 1) : u >> bits / 8;
}

/* Bytes where the defined side alone decides: zero for and, ones for or. */
static uint32_t deciding(uint64_t value, uint32_t undef, uint8_t byte)
{
    uint32_t r = 0;
    for (uint32_t i = 0; i < 8; i++)
        if (!(undef >> i & 1) && (uint8_t)(value >> 8 * i) == byte)
            r |= 1u << i;
    return r;
}

static uint32_t permuted(uint64_t both, uint32_t undef, uint32_t selector)
{
    uint32_t r = 0;
    (void)both;
    for (uint32_t i = 0; i < 4; i++)
        r |= (undef >> (selector >> 4 * i & 7) & 1) << i;
    return r;
}

uint32_t undef_part(const struct insn *in, const union slot *R, const struct shadow *S, uint32_t operands)
{
    uint32_t a = S[in->a].undef & 0xff, b = operands > 1 ? S[in->b].undef & 0xff : 0,
             c = operands > 2 ? S[in->c].undef & 0xff : 0;
    uint32_t record = (S[in->a].undef                   ? S[in->a].undef
                       : operands > 1 && S[in->b].undef ? S[in->b].undef
                                                        : S[in->c].undef) &
                      ~0xffu;
    uint32_t shift = operands > 1 ? R[in->b].u32 : 0, u;
    if (shift > 64)
        shift = 64;
    switch (in->op) {
    case OP_EXT_U8:
        u = a & 1;
        break;
    case OP_EXT_U16:
        u = a & 3;
        break;
    case OP_EXT_U32:
        u = a & 15;
        break;
    case OP_EXT_S8_16:
    case OP_EXT_S8_32:
    case OP_EXT_S8_64:
        u = a & 1 ? 0xff : 0;
        break;
    case OP_EXT_S16_32:
    case OP_EXT_S16_64:
        u = (a & 3) | (a & 2 ? 0xfc : 0);
        break;
    case OP_EXT_S32_64:
        u = (a & 15) | (a & 8 ? 0xf0 : 0);
        break;
    case OP_PACK_8:
    case OP_PACK_16:
    case OP_PACK_32:
    case OP_MERGE: {
        uint32_t at = in->op == OP_PACK_32 ? 32 : in->mod;
        u = a | b << at / 8;
        break;
    }
    case OP_PART_8:
        u = a >> in->mod / 8 & 1;
        break;
    case OP_PART_16:
        u = a >> in->mod / 8 & 3;
        break;
    case OP_PART_32:
        u = a >> in->mod / 8 & 15;
        break;
    case OP_NOT_16:
    case OP_NOT_32:
    case OP_NOT_64:
        u = a;
        break;
    case OP_AND:
        u = (a | b) & ~deciding(R[in->a].u64, a, 0) & ~deciding(R[in->b].u64, b, 0);
        break;
    case OP_OR:
        u = (a | b) & ~deciding(R[in->a].u64, a, 0xff) & ~deciding(R[in->b].u64, b, 0xff);
        break;
    case OP_XOR:
        u = a | b;
        break;
    case OP_SHL_16:
    case OP_SHL_32:
    case OP_SHL_64:
        u = b ? 0xff : shift == 64 ? 0 : shifted_left(a, shift);
        break;
    case OP_SHR_U16:
    case OP_SHR_U32:
    case OP_SHR_U64:
        u = b ? 0xff : shift == 64 ? 0 : shifted_right(a, shift);
        break;
    case OP_PRMT:
        u = c ? 0xff : permuted(0, a | b << 4, R[in->c].u32);
        break;
    case OP_BFE_U32:
    case OP_BFE_U64: {
        uint32_t pos = R[in->b].u32 & 0xff, len = R[in->c].u32 & 0xff;
        uint64_t keep = len >= 64 ? UINT64_MAX : (UINT64_C(1) << len) - 1;
        u = b || c ? 0xff : pos > 63 ? 0 : shifted_right(a, pos);
        for (uint32_t i = 0; i < 8; i++)
            if (!(keep >> 8 * i & 0xff))
                u &= ~(1u << i);
        break;
    }
    default:
        u = 0xff;
    }
    u &= 0xff;
    return u ? record | u : 0;
}
