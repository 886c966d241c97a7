/* attribute.h - a range of elements of a tensor at one launch: what came out, what should have, from what, and where
 * the difference was made.
 */
#ifndef ANALYZER_ATTRIBUTE_H
#define ANALYZER_ATTRIBUTE_H

#include "analyzer/rerun.h"

enum { ATTRIBUTE_INPUTS = 8, ATTRIBUTE_ROWS = 65536, ATTRIBUTE_TRACED = 12 };

struct attribute_value {
    bool known;
    double value;
};
struct attribute_row {
    uint64_t element, offset;
    struct attribute_value before, device, reference, wide; /* reference: the PTX on the CPU; wide: in fp64 */
    bool bits_differ;                                       /* device and reference, where both are known */
    struct attribute_value inputs[ATTRIBUTE_INPUTS];        /* before the launch */
    struct judgement_access origin; /* of what contributed most of its error, or made the NaN; ptx_line 0: unknown */
    struct judgement_access stored; /* who stored it; the first ATTRIBUTE_TRACED rows are asked for */
};
/* A buffer that the launch reaches. */
struct attribute_buffer {
    const struct model_allocation *allocation;
    enum element_type type;
    bool stored, has_before, has_after; /* by the re-execution; whole snapshots are there */
    struct element_statistics before, after;
};
struct attribute {
    const struct model_launch *launch;
    const struct model_allocation *allocation;
    enum element_type type;
    bool type_guessed; /* neither asked for nor seen being stored */
    struct attribute_row *rows;
    size_t row_count;
    const struct model_allocation *inputs[ATTRIBUTE_INPUTS]; /* of as many elements */
    size_t input_count;
    struct attribute_buffer *buffers;
    size_t buffer_count;
    char reason[32], detail[256]; /* why there is no reference; "" when there is one */
};

struct attribute_request {
    const struct model_launch *launch;
    const struct model_allocation *allocation; /* NULL: the one whose outputs are furthest off, else the first stored */
    bool has_type, has_range;
    enum element_type type;
    int64_t around;    /* without a range: the elements about this byte offset; -1: about the worst element */
    uint64_t from, to; /* elements [from, to) */
};
/* On failure *out is empty and *diag says why (STATUS_BAD_INPUT: no such elements). */
enum status attribute_make(const struct model *model, const struct attribute_request *request, struct attribute *out,
                           struct diag *diag);
void attribute_free(struct attribute *attribute);

#endif
