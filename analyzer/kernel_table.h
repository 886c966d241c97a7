/* kernel_table.h - launches and times added up per kernel name, the most device time first. */
#ifndef ANALYZER_KERNEL_TABLE_H
#define ANALYZER_KERNEL_TABLE_H

#include "analyzer/bound.h"

struct kernel_row {
    const struct model_kernel *kernel; /* one of the kernels with that name */
    size_t launches, timed;            /* timed: with a device time */
    uint64_t launch_ns, device_ns, wait_ns;
    size_t bounded;                 /* launches with a known bound */
    uint64_t bound_ns;              /* summed over them */
    uint64_t memory_ns, compute_ns; /* of it: those that memory, or operations, bind */
};
struct kernel_table {
    struct kernel_row *rows; /* owned, free with free() */
    size_t count;
    uint32_t time_source; /* enum cap_time_source of the device times; 0: there are none */
};

/* An empty table when memory runs out. */
struct kernel_table kernel_table_of(const struct model *model, const struct judgements *judgements);

#endif
