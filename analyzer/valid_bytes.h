/* valid_bytes.h - which bytes of each allocation were ever written, as far as the capture shows.
 *
 * Advanced in the order of the records. Wherever a write may have gone unseen, the bytes count as written: what is
 * reported as never written was never written. Not thread-safe.
 */
#ifndef ANALYZER_VALID_BYTES_H
#define ANALYZER_VALID_BYTES_H

#include "analyzer/model.h"

struct valid_entry {
    uint8_t *bits; /* owned; one per byte; NULL: all alike, see `all` */
    bool all;
    bool touched; /* somebody wrote here since it came to life */
};
struct valid_bytes {
    const struct model *model;
    struct valid_entry *entries; /* by index of the allocation */
    bool give_up;                /* records were lost, or graphs ran: everything counts as written */
};

bool valid_bytes_start(struct valid_bytes *valid, const struct model *model); /* false: no memory */
void valid_bytes_end(struct valid_bytes *valid);

/* Each takes offsets and lengths inside the allocation and clips what is not. */
void valid_bytes_mark(struct valid_bytes *valid, const struct model_allocation *a, uint64_t offset, uint64_t bytes);
void valid_bytes_mark_all(struct valid_bytes *valid, const struct model_allocation *a);
/* `written`: one bit per byte of the allocation. */
void valid_bytes_merge(struct valid_bytes *valid, const struct model_allocation *a, const uint8_t *written);
/* Takes back: the bytes of `unwritten` count as never written. Not when records were lost. */
void valid_bytes_clear(struct valid_bytes *valid, const struct model_allocation *a, const uint8_t *unwritten);
/* A copy takes over which bytes of its source were written. `from` NULL: from memory of the host, all of it was. */
void valid_bytes_copy(struct valid_bytes *valid, const struct model_allocation *to, uint64_t to_offset,
                      const struct model_allocation *from, uint64_t from_offset, uint64_t bytes);
/* One bit per byte, or NULL: all were written (also when memory runs out). Borrowed until the next change. */
const uint8_t *valid_bytes_of(struct valid_bytes *valid, const struct model_allocation *a);
bool valid_bytes_touched(const struct valid_bytes *valid, const struct model_allocation *a);
/* Frees the bitmap of an allocation that ended. */
void valid_bytes_forget(struct valid_bytes *valid, const struct model_allocation *a);

/* Applies a copy or memset record; `live` stands just before it. */
void valid_bytes_record(struct valid_bytes *valid, const struct model_live *live, const struct cap_head *record);

#endif
