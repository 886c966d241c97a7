/* place.h - an access of a re-executed launch in words: which line of the program's own source, which thread. */
#ifndef ANALYZER_PLACE_H
#define ANALYZER_PLACE_H

#include "analyzer/finding.h"

enum { PLACE_THREAD_BYTES = 96, PLACE_TEXT_BYTES = 160, PLACE_ALLOCATION_BYTES = 256 };

/* The innermost frame of the program's own source; an atomic's or an intrinsic's header is not where the mistake is.
 * NULL: no line is known. */
const struct judgement_frame *place_frame(const struct judgement_access *access);
/* Of one source line, or, where none is known, of one PTX line. */
bool place_equal(const struct judgement_access *a, const struct judgement_access *b);
/* "block 7 thread 96" */
void place_thread(const struct judgement_access *access, char out[PLACE_THREAD_BYTES]);
/* "block.cu:88 (PTX line 311)" */
void place_text(const struct judgement_access *access, char out[PLACE_TEXT_BYTES]);
/* "allocation 9 (allocated at block.cu:210)" */
void place_allocation(struct symbols *symbols, const struct model_allocation *allocation,
                      char out[PLACE_ALLOCATION_BYTES]);
/* Fills file, line, function, PTX line, and block and thread when `thread`. */
void place_set(struct finding *finding, const struct judgement_access *access, bool thread);
/* Is the finding at the line of this access (or at its PTX line, when no source line is known)? */
bool place_same(const struct finding *finding, const struct judgement_access *access);
/* One piece of evidence for each caller that the access was inlined into. */
void place_inlined(struct finding *finding, const struct judgement_access *access);

#endif
