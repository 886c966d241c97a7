/* store.h - CAPTURE/verify.json: the judgements of a capture, kept between commands.
 *
 * Versioned, written to a temporary file and renamed. Only for the same capture: it names the start time and process.
 */
#ifndef ANALYZER_STORE_H
#define ANALYZER_STORE_H

#include <stdio.h>

#include "analyzer/judgement.h"
#include "analyzer/model.h"

/* Also those of `older` (NULL: none) about whose launches `judgements` says nothing. STATUS_IO when the folder cannot
 * be written to; *diag says why. */
enum status store_write(const struct model *model, const struct judgements *judgements, const struct judgements *older,
                        struct diag *diag);
/* The text of it. False: no memory, or it could not be written. */
bool store_print(FILE *to, const struct model *model, const struct judgements *judgements,
                 const struct judgements *older);
/* STATUS_NOT_FOUND when there is none. On any failure *out is empty. */
enum status store_read(const struct model *model, struct judgements *out, struct diag *diag);

/* The same from text; `where` is for messages. */
enum status store_parse(const struct model *model, const char *text, const char *where, struct judgements *out,
                        struct diag *diag);

#endif
