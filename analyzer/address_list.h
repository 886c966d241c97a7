/* address_list.h - allocations by address, none overlapping another.
 *
 * In blocks of a few hundred pointers: with a million allocations alive, one array would be moved by megabytes for each
 * that comes or goes. Zero-initialised is empty. What is alive where, and when, is model_live.c's.
 */
#ifndef ANALYZER_ADDRESS_LIST_H
#define ANALYZER_ADDRESS_LIST_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct model_allocation;

struct address_block;
struct address_list {
    struct address_block **blocks; /* owned; none is empty */
    size_t block_count, block_capacity;
    size_t count; /* of allocations */
};
/* A place between two allocations; all zero is before the first one. */
struct address_place {
    size_t block, index;
};

void address_list_free(struct address_list *list);
/* The allocation that holds `address`, or NULL. */
struct model_allocation *address_list_find(const struct address_list *list, uint64_t address);
/* Takes out what overlaps it and puts it in. False: no memory, it is not there. */
bool address_list_insert(struct address_list *list, struct model_allocation *allocation);
void address_list_clear(struct address_list *list, uint64_t address, uint64_t bytes); /* what overlaps the range */
void address_list_remove(struct address_list *list, const struct model_allocation *allocation);

/* Before the first one whose end lies above `address`. */
struct address_place address_list_from(const struct address_list *list, uint64_t address);
/* The one behind the place, which moves on behind it; NULL: none. The list must not change meanwhile. */
struct model_allocation *address_list_next(const struct address_list *list, struct address_place *place);
/* The one before the place; NULL: none. */
struct model_allocation *address_list_before(const struct address_list *list, struct address_place place);

#endif
