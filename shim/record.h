/* record.h - the records that several wrappers write. */
#ifndef SHIM_RECORD_H
#define SHIM_RECORD_H

#include <opsdebug/capture.h>

#include "shim/alloc_table.h"
#include "shim/call.h"

/* Gives the allocation an id, enters it into the table and records it. `name`: string id of a variable, else 0. */
void record_allocation(const struct call *call, struct allocation *a, uint32_t name);
struct tracked_module;
/* A module's variable, once per address: entered into the table and recorded. */
void record_variable(uint64_t seq, uint64_t tsc, struct tracked_module *module, uint64_t address, uint64_t bytes,
                     const char *name);
struct cap_free *record_free(const struct call *call, const struct allocation *a, uint64_t address, uint32_t stream);
void record_free_done(struct cap_free *record, CUresult result); /* record may be NULL */
struct cap_sync *record_sync(const struct call *call, enum cap_sync_kind kind, uint32_t object);
void record_sync_done(struct cap_sync *record, const struct call *call, CUresult result);

/* CAP_ORDER. After a call that succeeded; `event` and `stream` are ids, 0: none or unknown. */
void record_order(const struct call *call, enum cap_order_op op, uint32_t event, uint32_t stream);
/* After a call that succeeded: what a stream waits for, or writes. */
void record_stream_value(const struct call *call, enum cap_stream_value_op op, uint32_t stream, uint64_t address,
                         uint64_t value, uint32_t bytes, uint32_t flags);

#endif
