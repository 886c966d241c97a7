#include "analyzer/address_list.h"

#include <stdlib.h>
#include <string.h>

#include "analyzer/model.h"

enum { BLOCK_ITEMS = 256 };
struct address_block {
    size_t count;
    struct model_allocation *items[BLOCK_ITEMS];
};

static uint64_t end_of(const struct model_allocation *a)
{
    return a->address + a->bytes;
}

void address_list_free(struct address_list *list)
{
    for (size_t i = 0; i < list->block_count; i++)
        free(list->blocks[i]);
    free(list->blocks);
    *list = (struct address_list){0};
}

/* Nothing overlaps, so ends are in order as starts are. */
struct address_place address_list_from(const struct address_list *list, uint64_t address)
{
    size_t low = 0, high = list->block_count;
    while (low < high) {
        size_t middle = low + (high - low) / 2;
        const struct address_block *b = list->blocks[middle];
        if (end_of(b->items[b->count - 1]) <= address)
            low = middle + 1;
        else
            high = middle;
    }
    struct address_place place = {.block = low};
    const struct address_block *b = low < list->block_count ? list->blocks[low] : NULL;
    for (high = b ? b->count : 0; place.index < high;) {
        size_t middle = place.index + (high - place.index) / 2;
        if (end_of(b->items[middle]) <= address)
            place.index = middle + 1;
        else
            high = middle;
    }
    return place;
}

struct model_allocation *address_list_next(const struct address_list *list, struct address_place *place)
{
    if (place->block < list->block_count && place->index == list->blocks[place->block]->count)
        *place = (struct address_place){.block = place->block + 1};
    return place->block < list->block_count ? list->blocks[place->block]->items[place->index++] : NULL;
}

struct model_allocation *address_list_before(const struct address_list *list, struct address_place place)
{
    if (place.index)
        return list->blocks[place.block]->items[place.index - 1];
    const struct address_block *b = place.block ? list->blocks[place.block - 1] : NULL;
    return b ? b->items[b->count - 1] : NULL;
}

struct model_allocation *address_list_find(const struct address_list *list, uint64_t address)
{
    struct address_place place = address_list_from(list, address);
    struct model_allocation *a = address_list_next(list, &place);
    return a && a->address <= address ? a : NULL;
}

static void remove_at(struct address_list *list, struct address_place place)
{
    struct address_block *b = list->blocks[place.block];
    list->count--;
    if (--b->count) {
        memmove(b->items + place.index, b->items + place.index + 1, (b->count - place.index) * sizeof(void *));
        return;
    }
    free(b);
    list->block_count--;
    memmove(list->blocks + place.block, list->blocks + place.block + 1,
            (list->block_count - place.block) * sizeof(void *));
}

void address_list_clear(struct address_list *list, uint64_t address, uint64_t bytes)
{
    struct address_place place = address_list_from(list, address);
    while (place.block < list->block_count &&
           list->blocks[place.block]->items[place.index]->address < address + bytes) {
        remove_at(list, place);
        place = address_list_from(list, address);
    }
}

void address_list_remove(struct address_list *list, const struct model_allocation *a)
{
    struct address_place place = address_list_from(list, a->address);
    if (place.block < list->block_count && list->blocks[place.block]->items[place.index] == a)
        remove_at(list, place);
}

/* Puts an empty block before block `at`. */
static struct address_block *add_block(struct address_list *list, size_t at)
{
    if (list->block_count == list->block_capacity) {
        size_t capacity = list->block_capacity ? list->block_capacity * 2 : 16;
        struct address_block **more = realloc(list->blocks, capacity * sizeof(void *));
        if (!more)
            return NULL;
        list->blocks = more;
        list->block_capacity = capacity;
    }
    struct address_block *b = malloc(sizeof *b);
    if (!b)
        return NULL;
    b->count = 0;
    memmove(list->blocks + at + 1, list->blocks + at, (list->block_count - at) * sizeof(void *));
    list->blocks[at] = b;
    list->block_count++;
    return b;
}

/* Moves the second half of a full block into a new one; the place is where it was. */
static bool split(struct address_list *list, struct address_place *place)
{
    struct address_block *b = list->blocks[place->block], *other = add_block(list, place->block + 1);
    if (!other)
        return false;
    /* Behind the last one: addresses mostly rise, so blocks are left full. */
    size_t keep = place->index == BLOCK_ITEMS ? BLOCK_ITEMS - 1 : BLOCK_ITEMS / 2;
    other->count = BLOCK_ITEMS - keep;
    b->count = keep;
    memcpy(other->items, b->items + keep, other->count * sizeof(void *));
    if (place->index > keep)
        *place = (struct address_place){place->block + 1, place->index - keep};
    return true;
}

bool address_list_insert(struct address_list *list, struct model_allocation *a)
{
    address_list_clear(list, a->address, a->bytes);
    struct address_place place = address_list_from(list, a->address);
    if (!list->block_count && !add_block(list, 0))
        return false;
    if (place.block == list->block_count) /* behind all */
        place = (struct address_place){list->block_count - 1, list->blocks[list->block_count - 1]->count};
    if (list->blocks[place.block]->count == BLOCK_ITEMS && !split(list, &place))
        return false;
    struct address_block *b = list->blocks[place.block];
    memmove(b->items + place.index + 1, b->items + place.index, (b->count - place.index) * sizeof(void *));
    b->items[place.index] = a;
    b->count++;
    list->count++;
    return true;
}
