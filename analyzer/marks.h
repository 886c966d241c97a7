/* marks.h - what the program says through opsdebug.h: names and shapes of buffers, steps and marks, values that it
 * asked to look at.
 */
#ifndef ANALYZER_MARKS_H
#define ANALYZER_MARKS_H

#include "analyzer/model.h"

struct findings;
struct symbols;

/* The name that `address` had just before the record `seq`; NULL: none. */
const struct cap_name *marks_name(const struct model *model, uint64_t address, uint64_t seq);
/* "[3, 17]" by the shape; "[57]" without one. `offset`: bytes from the name's address. */
void marks_coordinates(const struct cap_name *name, uint64_t offset, char *out, size_t bytes);
const char *marks_dtype(uint32_t dtype); /* "f32"; "?" */
uint32_t marks_dtype_bytes(uint32_t dtype);
/* "f32 [64, 128]" */
void marks_shape(const struct cap_name *name, char *out, size_t bytes);

/* The newest step that had begun just before the record `seq`, in any thread. False: none. */
bool marks_step(const struct model *model, uint64_t seq, uint64_t *step);
enum { MARKS_STEP_BYTES = 40 };
/* ", step 3"; "" without one. */
void marks_step_text(const struct model *model, uint64_t seq, char out[MARKS_STEP_BYTES]);

/* What a mark's value holds. False: there is none, or it cannot be read. */
struct mark_values {
    uint64_t elements, nans, infinities;
    uint64_t first; /* index of the first that is not finite */
};
bool marks_values(const struct model *model, const struct model_mark *mark, struct mark_values *out);
/* "step 3", "checkpoint loss: 1 f32", ... */
void marks_text(const struct model *model, const struct model_mark *mark, char *out, size_t bytes);

#endif
