/* verify_garbage.h - what a launch leaves when other bytes lie where nobody wrote.
 *
 * The launch is run with several fillings of those bytes; the outputs that are not the same each time are made of them.
 */
#ifndef ANALYZER_VERIFY_GARBAGE_H
#define ANALYZER_VERIFY_GARBAGE_H

#include "analyzer/verify_memory.h"

struct verify;
struct model_launch;

/* What lies in bytes that nobody wrote changes nothing that the launch stores; changes only values, in device memory;
 * changes more: where it stores, what the host sees at once, or whether it comes to its end. */
enum verify_garbage { VERIFY_GARBAGE_HARMLESS, VERIFY_GARBAGE_VALUES, VERIFY_GARBAGE_HARMFUL };

enum verify_filled {
    VERIFY_FILLED_ALL,     /* with all fillings: values made from such bytes were computed with or compared */
    VERIFY_FILLED_GLOBAL,  /* the launch's buffers, with two: whatever only moves differs in every byte */
    VERIFY_FILLED_PRIVATE, /* likewise shared and local memory */
};

/* The hole between two members of a structure is smaller than the largest alignment. */
enum { VERIFY_HOLE_BYTES = 15 };

struct verify_fillings {
    bool ran; /* the rest says something */
    enum verify_garbage answer;
    struct verify_memory first; /* as the first filling leaves it */
    uint8_t **differs;          /* owned, by its regions: one bit per byte that is not the same each time; NULL: none */
    bool *moved;                /* owned, likewise: all of these hold the filling itself */
};

/* `instructions`: of the run that is known, 0: unknown. A run of very many more does not come to its end. Zero *out
 * before; always followed by verify_fillings_free(). */
void verify_try_fillings(struct verify *v, const struct model_launch *launch, const struct reference_launch *like,
                         enum verify_filled filled, uint64_t instructions, struct verify_fillings *out);
void verify_fillings_free(struct verify_fillings *fillings);

#endif
