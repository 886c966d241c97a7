/* operands.h - which slots a micro-operation reads and which it writes, those in code.extra and of calls included. */
#ifndef PTX_OPERANDS_H
#define PTX_OPERANDS_H

#include "ptx/code.h"

enum { MAX_OPERANDS = 160 };

struct operands {
    uint32_t reads[MAX_OPERANDS], writes[MAX_OPERANDS];
    uint32_t read_count, write_count;
};
/* False: there are too many of them. */
bool insn_operands(const struct ptx_module *m, const struct code *k, const struct insn *in, struct operands *out);

/* By slot: it may be read before it is written. malloc'd; NULL: no memory. Where it would take much to find out, all
 * may. */
bool *slots_read_first(const struct ptx_module *m, const struct code *k);

#endif
