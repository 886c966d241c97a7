/* link_text.h - several PTX modules as one: what a device linker does with machine code, done to the text.
 *
 * The modules follow each other under the first one's header; external declarations find their definitions then. Names
 * that are a module's own (neither .visible nor .extern), and .weak ones, of which each module keeps its own copy, get
 * a suffix, and the numbers of source files are shifted.
 */
#ifndef SOFTGPU_LINK_TEXT_H
#define SOFTGPU_LINK_TEXT_H

#include "common/buf.h"

/* Appends NUL-terminated `text` as module number `index` (from 0, in order). Running out of memory is noted in *out. */
void link_text_append(struct buf *out, const char *text, unsigned index);

#endif
