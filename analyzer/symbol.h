/* symbol.h - host stacks as functions, files and lines (elfutils libdw), inlined calls included.
 *
 * Functions that ended with a jump to the next one are there, too, where the debug information tells (tail_call.h).
 * Looked up lazily and kept: each stack once. An object is used only when a file lies at its recorded path and carries
 * the recorded build id; else its frames read "libfoo.so+0x1234". Nothing is fetched from the network.
 */
#ifndef ANALYZER_SYMBOL_H
#define ANALYZER_SYMBOL_H

#include "analyzer/capture_read.h"

struct symbol_frame {
    char *text;     /* "main block.cu:210", "main libfoo.so+0x1234", or "libfoo.so+0x1234"; never NULL */
    char *function; /* NULL: unknown */
    char *file;     /* as in the debug information; NULL: unknown */
    unsigned line;  /* 0: unknown */
    bool inlined;   /* into the frame that follows */
    bool own;       /* the program's own source: neither a library of CUDA's or ours nor a header of theirs */
    bool foreign;   /* such a library, what the compiler makes of a launch, or `_start` and its like */
};
struct symbol_stack {
    struct symbol_frame *frames; /* innermost first */
    size_t count;
    size_t own;  /* index of the first frame that looks like the program's own source, not a library's header; `count`:
                    none */
    size_t near; /* index of the first frame that is not foreign, else 0: the best there is where none is own */
};

struct symbols;
struct symbols *symbols_new(const struct capture *capture); /* NULL when memory runs out */
void symbols_free(struct symbols *symbols);                 /* NULL is fine */
/* The stack of id `stack`; an empty one for 0 and for what is not there. Lives as long as `symbols`. */
const struct symbol_stack *symbols_stack(struct symbols *symbols, uint32_t stack);
/* "block.cu:210" of the program's own frame, else the nearest frame's text, else "". Written to `out`; returns it. */
const char *symbols_place(struct symbols *symbols, uint32_t stack, char *out, size_t bytes);
/* The function that begins at `address`, as it lay there when the record with `seq` was written: "done block.cu:88",
 * "libfoo.so+0x1234". Written to `out`; returns it. */
const char *symbols_function(struct symbols *symbols, uint64_t address, uint64_t seq, char *out, size_t bytes);
/* How many recorded objects were not found, or were others than those that ran. */
size_t symbols_missing(struct symbols *symbols);

#endif
