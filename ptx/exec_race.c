/* exec_race.c - two threads touch the same bytes, one of them writes, and nothing puts them in order.
 *
 * Each 4-byte word of shared memory, and of global memory that was touched, remembers its last write and two reads by
 * different threads. An earlier access is in order with the present one when
 *     - it was by the same thread, or either is atomic, volatile, relaxed, acquire or release;
 *     - same block: a barrier of the block, or (same warp) a *.sync instruction of the earlier thread, came between;
 *     - a fence or a release by any thread of the earlier block came between: data handed over through a flag. Whether
 * the present thread has seen the flag is not asked: in doubt nothing is reported. A store of the value that is there
 * already
 * ("silent") changes nothing for a reader: such a race is told as one of the same value. Blocks run one after the other
 * here, so a race between blocks is found although the accesses did not meet in time. */
#include <stdlib.h>
#include <string.h>
#include "ptx/exec_check.h"

void check_fence(struct block *b, struct thread *t)
{
    struct check *c = b->worker->launch->check;
    b->fences++;
    if (c->fences)
        c->fences[b->linear] = b->fences;
}

void check_barrier(struct block *b)
{
    b->epoch++;
}

void check_warp_sync(struct block *b, struct thread *const lanes[WARP])
{
    bool around = false;
    for (uint32_t i = 0; i < WARP; i++)
        around |= lanes[i] && ++lanes[i]->warp_clock == 0;
    if (around) /* what has an old time, which is to come again, is in order with everything */
        b->epoch++;
}

static struct race_cell *global_cells(struct check *c, uint64_t address)
{
    uint64_t page = address / RACE_PAGE_BYTES, found;
    if (page == c->last_page)
        return c->last_cells;
    if (!map_get(&c->pages, page, &found)) {
        if (c->page_count == RACE_MAX_PAGES)
            return NULL;
        struct race_cell *cells = calloc(RACE_PAGE_BYTES / 4, sizeof *cells);
        if (!cells)
            return NULL;
        found = (uint64_t)(uintptr_t)cells;
        if (!map_put(&c->pages, page, found)) {
            free(cells);
            return NULL;
        }
        c->page_count++;
    }
    c->last_page = page;
    c->last_cells = (struct race_cell *)(uintptr_t)found;
    return c->last_cells;
}

static bool unordered(const struct block *b, const struct thread *t, const struct race_record *r, uint16_t mask,
                      bool shared)
{
    if (!(r->thread & RACE_SEEN) || !(r->thread & mask))
        return false;
    uint32_t other = r->thread & (MAX_BLOCK_THREADS - 1);
    if (shared || r->block == (uint32_t)b->linear) {
        if (other == t->index || r->epoch != b->epoch || r->fence != b->fences)
            return false;
        return other / WARP != t->warp || r->warp_clock == b->threads[other].warp_clock;
    }
    const struct check *c = b->worker->launch->check;
    return c->fences && r->fence == c->fences[r->block];
}

static void report(struct worker *w, struct block *b, struct thread *t, const struct insn *in, enum mem_space space,
                   uint64_t address, uint32_t bytes, bool write, const struct race_record *r, bool same)
{
    struct launch *l = w->launch;
    struct ptx_fault f = {
        .kind = space == MEM_SHARED ? PTX_FAULT_SHARED_RACE : PTX_FAULT_GLOBAL_RACE,
        .space = space == MEM_SHARED ? PTX_SPACE_SHARED : PTX_SPACE_GLOBAL,
        .address = address,
        .bytes = bytes,
        .offset = (int64_t)address,
        .same_value = same,
    };
    f.access.write = write;
    f.other.ptx_line = r->line & ~RACE_SILENT;
    f.other.write = r->thread & RACE_WRITE;
    uint64_t block = space == MEM_SHARED ? b->linear : r->block;
    const uint32_t *grid = l->config->grid, *dim = l->config->block;
    uint32_t thread = r->thread & (MAX_BLOCK_THREADS - 1);
    f.other.block[0] = (uint32_t)(block % grid[0]);
    f.other.block[1] = (uint32_t)(block / grid[0] % grid[1]);
    f.other.block[2] = (uint32_t)(block / grid[0] / grid[1]);
    f.other.thread[0] = thread % dim[0];
    f.other.thread[1] = thread / dim[0] % dim[1];
    f.other.thread[2] = thread / dim[0] / dim[1];
    if (w->at && space == MEM_GLOBAL) {
        f.has_range = true;
        f.range_id = w->at->id;
        f.offset = (int64_t)(address - w->at->address);
    }
    fault_report(w, b, t, in, &f);
}

static bool is_ordered_access(const struct insn *in)
{
    return in->op == OP_ATOM || in->op == OP_ATOM128 || (in->mod & MOD_STRONG && in->op != OP_CP_ASYNC);
}

void race_access(struct worker *w, struct block *b, struct thread *t, const struct insn *in, enum mem_space space,
                 uint64_t address, uint32_t bytes, bool write, const uint8_t *old, uint64_t value)
{
    bool shared = space == MEM_SHARED;
    if ((!shared && (space != MEM_GLOBAL || !w->at)) || w->launch->block_count > UINT32_MAX)
        return;
    const struct ptx_launch *config = w->launch->config;
    if (!shared && address - config->heap_address < config->heap_bytes)
        return; /* a block of the heap goes from thread to thread by free() and malloc() */
    if (is_ordered_access(in)) {
        if (write && in->op != OP_ATOM && in->op != OP_ATOM128) /* a flag: what was written before it is handed over */
            check_fence(b, t);
        return;
    }
    struct race_record now = {
        .block = (uint32_t)b->linear,
        .line = thread_line(t, in),
        .warp_clock = t->warp_clock,
        .epoch = b->epoch,
        .fence = b->fences,
    };
    bool same = write && old && memcmp(old, &value, bytes) == 0;
    bool told = false;
    for (uint32_t done = 0; done < bytes;) {
        uint64_t at = address + done;
        uint32_t first = at % 4, n = 4 - first < bytes - done ? 4 - first : bytes - done;
        uint16_t mask = (uint16_t)(((1u << n) - 1) << first << RACE_MASK_SHIFT);
        struct race_cell *cells = shared ? b->shared_cells : global_cells(w->launch->check, at);
        done += n;
        if (!cells)
            continue;
        struct race_cell *c = &cells[shared ? at / 4 : at % RACE_PAGE_BYTES / 4];
        now.thread = (uint16_t)(t->index | mask | RACE_SEEN | (write ? RACE_WRITE : 0));
        const struct race_record *against = NULL;
        if (unordered(b, t, &c->write, mask, shared))
            against = &c->write;
        else if (write && unordered(b, t, &c->read, mask, shared))
            against = &c->read;
        else if (write && unordered(b, t, &c->other_read, mask, shared))
            against = &c->other_read;
        if (against && !told) {
            bool harmless = write ? same : (against->line & RACE_SILENT) != 0;
            report(w, b, t, in, space, address, bytes, write, against, harmless);
            told = true;
        }
        if (write && same && c->write.thread & RACE_SEEN && !(c->write.line & RACE_SILENT)) {
            /* The store that made the value is the one that others may race with. */
        } else if (write) {
            c->write = now;
            c->write.line |= same ? RACE_SILENT : 0;
        } else if ((c->read.thread & (MAX_BLOCK_THREADS - 1)) == t->index && c->read.block == now.block) {
            c->read = now;
        } else {
            c->other_read = c->read;
            c->read = now;
        }
    }
}
