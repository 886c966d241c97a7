#include "softgpu/heap.h"

#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "softgpu/pages.h"

enum { UNITS = PAGE_BYTES / HEAP_UNIT };

struct block {
    uint64_t address;
    unsigned device;
    uint32_t free_units;
    uint8_t used[UNITS]; /* one byte per unit */
};

static struct block **blocks; /* sorted by address */
static size_t block_count, block_capacity;

static bool insert_block(struct block *b)
{
    if (block_count == block_capacity) {
        size_t capacity = block_capacity ? block_capacity * 2 : 16;
        struct block **more = realloc(blocks, capacity * sizeof(struct block *));
        if (!more)
            return false;
        blocks = more;
        block_capacity = capacity;
    }
    size_t at = block_count;
    while (at > 0 && blocks[at - 1]->address > b->address)
        at--;
    memmove(blocks + at + 1, blocks + at, (block_count - at) * sizeof(struct block *));
    blocks[at] = b;
    block_count++;
    return true;
}

static struct block *new_block(unsigned device)
{
    struct block *b = calloc(1, sizeof *b);
    void *page = NULL;
    if (b)
        b->address = pages_reserve(1, PAGE_BYTES, false, 0);
    if (b && b->address && pages_take(device, 1, &page)) {
        b->free_units = UNITS;
        b->device = device;
        if (insert_block(b)) {
            pages_map(b->address, page, PAGE_READ_WRITE, 1u << device);
            return b;
        }
        pages_give(1, &page);
    }
    if (b && b->address)
        pages_unreserve(b->address, 1);
    free(b);
    return NULL;
}

static uint64_t take_units(struct block *b, uint32_t units)
{
    if (b->free_units < units)
        return 0;
    for (uint32_t at = 0; at + units <= UNITS;) {
        const uint8_t *used = memchr(b->used + at, 1, units);
        if (!used) {
            memset(b->used + at, 1, units);
            b->free_units -= units;
            return b->address + (uint64_t)at * HEAP_UNIT;
        }
        at = (uint32_t)(used - b->used) + 1;
    }
    return 0;
}

uint64_t heap_alloc(unsigned device, uint64_t bytes)
{
    uint32_t units = (uint32_t)((bytes + HEAP_UNIT - 1) / HEAP_UNIT);
    for (size_t i = 0; i < block_count; i++) {
        uint64_t address = blocks[i]->device == device ? take_units(blocks[i], units) : 0;
        if (address)
            return address;
    }
    struct block *b = new_block(device);
    return b ? take_units(b, units) : 0;
}

static void drop_block(size_t i)
{
    struct block *b = blocks[i];
    void *page = pages_unmap(b->address);
    pages_give(1, &page);
    pages_unreserve(b->address, 1);
    memmove(blocks + i, blocks + i + 1, (block_count - i - 1) * sizeof(struct block *));
    block_count--;
    free(b);
}

void heap_free(uint64_t address, uint64_t bytes)
{
    uint64_t page = address / PAGE_BYTES * PAGE_BYTES;
    uint32_t units = (uint32_t)((bytes + HEAP_UNIT - 1) / HEAP_UNIT);
    for (size_t i = 0; i < block_count; i++)
        if (blocks[i]->address == page) {
            memset(blocks[i]->used + (address - page) / HEAP_UNIT, 0, units);
            blocks[i]->free_units += units;
        }
    /* Keep each device's first empty page, drop the others. */
    unsigned kept = 0;
    for (size_t i = 0; i < block_count;) {
        unsigned device = 1u << blocks[i]->device;
        if (blocks[i]->free_units == UNITS && kept & device) {
            drop_block(i);
            continue;
        }
        if (blocks[i]->free_units == UNITS)
            kept |= device;
        i++;
    }
}
