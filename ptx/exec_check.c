/* exec_check.c - checked mode: every access judged. */
#include <stdlib.h>
#include <string.h>
#include "ptx/exec_check.h"

static enum mem_space real_space(enum mem_space space, uint64_t *address)
{
    if (space == MEM_CONST)
        return MEM_GLOBAL;
    if (space != MEM_GENERIC)
        return space;
    uint64_t window = *address >> 32;
    space = window == PTX_SHARED_WINDOW >> 32  ? MEM_SHARED
            : window == PTX_LOCAL_WINDOW >> 32 ? MEM_LOCAL
            : window == PTX_PARAM_WINDOW >> 32 ? MEM_PARAM
                                               : MEM_GLOBAL;
    if (space != MEM_GLOBAL)
        *address &= UINT32_MAX;
    return space;
}

uint8_t *check_access(struct worker *w, struct block *b, struct thread *t, const struct insn *in, const struct shadow *base,
                      enum mem_space space, uint64_t address, uint32_t bytes, bool write)
{
    space = real_space(space, &address);
    if (space == MEM_GLOBAL)
        return global_find(w, b, t, in, address, bytes, write, false);
    return space_find(w, b, t, in, space, address, bytes, write, false);
}

uint8_t *check_atomic(struct worker *w, struct block *b, struct thread *t, const struct insn *in, struct shadow *S,
                      enum mem_space space, uint64_t address, uint32_t bytes)
{
    return check_access(w, b, t, in, S, space, address, bytes, true);
}

void check_loaded(struct worker *w, struct block *b, struct thread *t, const struct insn *in, struct shadow *d,
                  enum mem_space space, uint64_t address, uint32_t bytes, const uint8_t *p, uint64_t value)
{
}

void check_stored(struct worker *w, struct block *b, struct thread *t, const struct insn *in, const struct shadow *s,
                  enum mem_space space, uint64_t address, uint32_t bytes, const uint8_t *p, uint64_t value)
{
}

void check_copied(struct worker *w, struct block *b, struct thread *t, const struct insn *in, uint64_t to, uint64_t from,
                  uint32_t bytes, uint32_t given, const uint8_t *p)
{
}

void check_fence(struct block *b, struct thread *t)
{
}

bool check_launch_start(struct launch *l)
{
    return true;
}

void check_launch_end(struct launch *l)
{
}

void check_block_start(struct block *b)
{
}

void check_barrier(struct block *b)
{
}

void check_warp_sync(struct block *b, struct thread *const lanes[WARP])
{
}
