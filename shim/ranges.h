/* ranges.h - named ranges of the program's time: per thread a stack of pushed ones, which gives launches their module
 * path, and ranges by number.
 *
 * Also what is pushed before the first CUDA call counts: it is kept, and recorded when the thread gets into a capture.
 * Thread-safe. Names are copied.
 */
#ifndef SHIM_RANGES_H
#define SHIM_RANGES_H

#include <stdint.h>

/* `domain` NULL or "": the default one. `name` may be NULL. */
void ranges_push(const char *domain, const char *name);
void ranges_pop(const char *domain); /* the innermost range of that domain; nothing when there is none */
uint64_t ranges_start(const char *domain, const char *name); /* its number, never 0 */
void ranges_end(uint64_t number);
void ranges_mark(const char *domain, const char *name);

/* The text as it is kept for good, each once; NULL: text is NULL, so many or so much are kept already (memory_may
 * counts that), or this is a child that records nothing. For handles that NVTX gives out. */
const char *ranges_keep(const char *text);
uint64_t ranges_names_dropped(void); /* how often there was no room */

/* The calling thread has pushed ranges that no record tells of yet (shim_thread.ranges_unwritten). */
void ranges_catch_up(void);
void ranges_thread_ends(void);

#endif
