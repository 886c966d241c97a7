/* exec_heap.c - malloc and free of kernels. Everything is kept inside the heap itself, so that blocks live on from
 * launch to launch: a header, then blocks without gaps, each with a header of its own. Free neighbours are joined when
 * they are met. Kernels can overwrite all of it, as on a device; nothing here trusts a number that it reads there. */
#include <sched.h>
#include <string.h>
#include "ptx/exec.h"

enum { HEAP_ALIGN = 16 };
#define HEAP_MAGIC UINT64_C(0x6f70736465627567)
#define TAG_FREE   UINT64_C(0x66726565626c6f63)
#define TAG_USED   UINT64_C(0x75736564626c6f63)

struct heap_header {
    uint64_t magic;
    uint32_t lock; /* 1: taken */
    uint32_t unused;
    uint64_t rover;   /* offset of the block where the next search starts */
    uint64_t too_big; /* a search for this many bytes found nothing since the last free(); 0: none failed */
};
struct heap_block {
    uint64_t bytes; /* with this header, a multiple of HEAP_ALIGN */
    uint64_t tag;   /* one of the above, xor the block's offset */
};
_Static_assert(sizeof(struct heap_header) % HEAP_ALIGN == 0 && sizeof(struct heap_block) == HEAP_ALIGN,
               "blocks are aligned");

static uint64_t heap_bytes(const struct launch *l)
{
    const struct ptx_launch *c = l->config;
    bool usable = c->heap_host && c->heap_address && c->heap_address % HEAP_ALIGN == 0 &&
                  (uintptr_t)c->heap_host % HEAP_ALIGN == 0 &&
                  c->heap_bytes > sizeof(struct heap_header) + sizeof(struct heap_block) + HEAP_ALIGN;
    return usable ? c->heap_bytes / HEAP_ALIGN * HEAP_ALIGN : 0;
}

static struct heap_block *block_at(struct heap_header *h, uint64_t offset)
{
    return (struct heap_block *)(void *)((uint8_t *)h + offset);
}

static uint64_t block_kind(struct heap_header *h, uint64_t offset, uint64_t size)
{
    if (offset < sizeof *h || offset % HEAP_ALIGN || offset > size - sizeof(struct heap_block))
        return 0;
    const struct heap_block *b = block_at(h, offset);
    uint64_t tag = b->tag ^ offset;
    bool sound = (tag == TAG_FREE || tag == TAG_USED) && b->bytes >= sizeof *b && b->bytes % HEAP_ALIGN == 0 &&
                 b->bytes <= size - offset;
    return sound ? tag : 0;
}

/* False: the launch is ending. */
static bool lock_heap(struct launch *l, struct heap_header *h)
{
    for (unsigned tries = 1;; tries++) {
        uint32_t seen = __atomic_load_n(&h->lock, __ATOMIC_RELAXED);
        if (seen != 1 && __atomic_compare_exchange_n(&h->lock, &seen, 1, false, __ATOMIC_ACQUIRE, __ATOMIC_RELAXED))
            return true;
        if (launch_overdue(l))
            return false;
        if (tries % 64 == 0)
            sched_yield();
    }
}

static void unlock_heap(struct heap_header *h)
{
    __atomic_store_n(&h->lock, 0, __ATOMIC_RELEASE);
}

static void start_heap(struct heap_header *h, uint64_t size)
{
    if (h->magic == HEAP_MAGIC)
        return;
    h->magic = HEAP_MAGIC;
    h->rover = sizeof *h;
    h->too_big = 0;
    *block_at(h, sizeof *h) = (struct heap_block){size - sizeof *h, TAG_FREE ^ sizeof *h};
}

/* The free block at `offset` takes in all free ones behind it. */
static void join_free(struct heap_header *h, uint64_t offset, uint64_t size)
{
    struct heap_block *b = block_at(h, offset);
    while (b->bytes < size - offset && block_kind(h, offset + b->bytes, size) == TAG_FREE) {
        if (h->rover == offset + b->bytes)
            h->rover = offset;
        struct heap_block *next = block_at(h, offset + b->bytes);
        b->bytes += next->bytes;
        next->tag = 0;
    }
}

static uint64_t take(struct heap_header *h, uint64_t offset, uint64_t bytes, uint64_t size)
{
    struct heap_block *b = block_at(h, offset);
    if (b->bytes - bytes >= 2 * sizeof *b) {
        uint64_t rest = offset + bytes;
        *block_at(h, rest) = (struct heap_block){b->bytes - bytes, TAG_FREE ^ rest};
        b->bytes = bytes;
    }
    b->tag = TAG_USED ^ offset;
    h->rover = b->bytes < size - offset ? offset + b->bytes : sizeof *h;
    return offset + sizeof *b;
}

/* Next fit: from the rover to the end, then from the start. */
static uint64_t search(struct heap_header *h, uint64_t bytes, uint64_t size)
{
    uint64_t from = block_kind(h, h->rover, size) ? h->rover : sizeof *h;
    for (int round = 0; round < 2; round++) {
        uint64_t end = round ? from : size;
        for (uint64_t at = round ? sizeof *h : from; at < end;) {
            uint64_t kind = block_kind(h, at, size);
            if (!kind)
                break; /* overwritten: what lies behind is lost */
            if (kind == TAG_FREE)
                join_free(h, at, size);
            if (kind == TAG_FREE && block_at(h, at)->bytes >= bytes)
                return take(h, at, bytes, size);
            at += block_at(h, at)->bytes;
        }
    }
    return 0;
}

uint64_t device_malloc(struct worker *w, uint64_t bytes)
{
    struct launch *l = w->launch;
    uint64_t size = heap_bytes(l), found = 0;
    struct heap_header *h = l->config->heap_host;
    if (!size || !bytes || bytes > size || !lock_heap(l, h))
        return 0;
    start_heap(h, size);
    uint64_t whole = (bytes + HEAP_ALIGN - 1) / HEAP_ALIGN * HEAP_ALIGN + sizeof(struct heap_block);
    if (!h->too_big || whole < h->too_big) {
        found = search(h, whole, size);
        if (!found)
            h->too_big = whole;
    }
    unlock_heap(h);
    return found ? l->config->heap_address + found : 0;
}

enum ptx_fault_kind device_free(struct worker *w, uint64_t address)
{
    struct launch *l = w->launch;
    uint64_t size = heap_bytes(l), offset = address - l->config->heap_address - sizeof(struct heap_block);
    struct heap_header *h = l->config->heap_host;
    enum ptx_fault_kind kind = PTX_FAULT_NONE;
    if (!address)
        return kind;
    if (!size || address < l->config->heap_address || offset >= size)
        return PTX_FAULT_OUT_OF_BOUNDS;
    if (!lock_heap(l, h))
        return kind;
    start_heap(h, size);
    uint64_t tag = block_kind(h, offset, size);
    if (tag == TAG_USED) {
        block_at(h, offset)->tag = TAG_FREE ^ offset;
        join_free(h, offset, size);
        h->too_big = 0;
    } else {
        kind = tag == TAG_FREE ? PTX_FAULT_FREED : PTX_FAULT_OUT_OF_BOUNDS;
    }
    unlock_heap(h);
    return kind;
}
