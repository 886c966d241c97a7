/* tail_call.h - functions that are missing from a stack, since they ended with a jump to the next one instead of a
 * call.
 *
 * Compilers write down for each call whom it calls, and which calls are such jumps (DW_TAG_call_site). The caller says
 * that it called F, and F is not the next frame: then F was there, and jumped on.
 */
#ifndef ANALYZER_TAIL_CALL_H
#define ANALYZER_TAIL_CALL_H

#include <stddef.h>

#include <elfutils/libdw.h>

struct tail_call {
    const char *function; /* of the debug information */
    const char *file;     /* of the jump; NULL: which of several it was is not known */
    unsigned line;
    Dwarf_Addr start; /* of the function */
};

/* What identifies the function whose code lies at `address`; 0: nothing is known about it. */
Dwarf_Off tail_call_identity_at(Dwarf_Die *unit, Dwarf_Addr address);
/* The functions between the one that a call at `return_pc` returns to and the next frame, outermost first; addresses as
 * in the debug information, of `unit`. `callee`: the next frame's identity; 0: it is another module's, or unknown.
 * Returns how many there are, at most `limit`; 0 also when anything is unclear. */
size_t tail_calls_missing(Dwarf_Die *unit, Dwarf_Addr return_pc, Dwarf_Off callee, struct tail_call *out, size_t limit);

#endif
