/* alloc_table.h - every piece of memory that the program can give to a kernel, found by any address inside it.
 *
 * Ranges are those the program sees: redzones are not part of them. Addresses of devices are unique in a process
 * (unified addressing). Entries are copied in and out, so nobody holds a pointer into the table. Thread-safe; a treap,
 * so that millions of short-lived allocations cost O(log n) each and leave nothing behind.
 */
#ifndef SHIM_ALLOC_TABLE_H
#define SHIM_ALLOC_TABLE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define ALLOC_FOR_HOST UINT32_MAX

struct allocation {
    uint64_t address, bytes; /* as the program sees them */
    uint64_t base;           /* what the driver returned, and wants back */
    uint64_t host_address;   /* of host memory, when it differs from address */
    uint32_t id, kind;       /* kind: enum cap_alloc_kind */
    uint32_t context, stream, module;
    uint32_t head, tail; /* bytes of the redzones */
    bool constant;
    bool guarded;       /* a mapping of its own, with nothing around it: guard.h */
    bool registers;     /* of other hardware: reading is an action. For this and the next two see touch.h */
    bool elsewhere;     /* of a pool that does not lie on the device of the stream it was made in */
    uint32_t reserved;  /* managed: for the stream of this id, for the host (ALLOC_FOR_HOST), 0 for nobody */
    uint64_t clean_seq; /* the redzones were intact for all work before this */
};

bool alloc_table_insert(const struct allocation *a); /* replaces what starts at the same address; false: no memory */
bool alloc_table_remove(uint64_t address, struct allocation *out); /* exact start */
bool alloc_table_exact(uint64_t address, struct allocation *out);  /* exact start */
bool alloc_table_find(uint64_t address, struct allocation *out);   /* address in [start, start + bytes], end included */
bool alloc_table_cover(uint64_t address, struct allocation *out);  /* with the redzones: [base, end of the tail) */
void alloc_table_set_clean(uint64_t address, uint32_t id, uint64_t seq); /* when it is still there */

void alloc_table_reserve(uint64_t address, uint32_t id, uint32_t reserved);

/* Calls `visit` for all entries in order of address, under the table's lock: it must not call back into the table. */
void alloc_table_each(void (*visit)(const struct allocation *a, void *data), void *data);
/* The same from the first entry that starts at or above `from` on, until `visit` returns false: a large table in parts.
 */
void alloc_table_from(uint64_t from, bool (*visit)(const struct allocation *a, void *data), void *data);
uint32_t alloc_table_count(void); /* without the lock */
/* Removes all entries of a context, or of a module when `module` is not 0. */
void alloc_table_drop(uint32_t context, uint32_t module);
void alloc_table_totals(uint32_t *count, uint64_t *bytes, uint64_t *redzone_bytes); /* redzones: of device memory */

#endif
