/* store_runs.h - numbers of launches as text, in verify.json: "5 1x995 3 2x10" is 5, the 995 after it, then 1003, then
 * every second one, ten of them. Each run is its distance from the number before (at first: from 0), and, with x, how
 * often that distance comes.
 */
#ifndef ANALYZER_STORE_RUNS_H
#define ANALYZER_STORE_RUNS_H

#include <stdbool.h>
#include <stddef.h>

#include "common/buf.h"

struct store_runs { /* zero-initialised is empty */
    struct buf text;
    size_t last, distance, count; /* the run that may go on */
};
/* Numbers from 1 in ascending order. */
void store_runs_add(struct store_runs *runs, size_t number);
/* Ends the last run. Valid until the end; NULL: no memory. */
const char *store_runs_text(struct store_runs *runs);
void store_runs_free(struct store_runs *runs);

struct store_runs_reader {
    const char *at; /* borrowed */
    size_t last, distance, left, most;
    bool bad; /* it ended because of something that is no such text, or a number above `most` */
};
/* False: empty. */
bool store_runs_start(struct store_runs_reader *reader, const char *text, size_t most);
/* False: there are no more; see `bad`. */
bool store_runs_next(struct store_runs_reader *reader, size_t *out);

#endif
