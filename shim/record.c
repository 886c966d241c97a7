#include "shim/record.h"

#include <string.h>

#include "shim/capture_write.h"
#include "shim/intern.h"
#include "shim/stack.h"
#include "shim/track.h"

void record_allocation(const struct call *call, struct allocation *a, uint32_t name)
{
    const struct tracked_context *context = track_current_context();
    thread_slow();
    uint32_t stack = stack_here();
    if (!a->id)
        a->id = intern_new_id(INTERN_ALLOC);
    if (!a->context)
        a->context = context ? context->id : 0;
    if (!a->base)
        a->base = a->address - a->head;
    a->clean_seq = call->seq;
    alloc_table_insert(a);
    /* Behind the free, in another thread, of who had the address before: that call may have begun after this one. */
    uint64_t seq = a->kind == CAP_ALLOC_VARIABLE ? call->seq : capture_next_seq();
    struct cap_alloc *record = capture_record(CAP_ALLOC, sizeof *record, seq, call->tsc);
    if (!record)
        return;
    record->id = a->id;
    record->kind = a->kind;
    record->context = a->context;
    record->stack = stack;
    record->address = a->address;
    record->bytes = a->bytes;
    record->host_address = a->host_address;
    record->head_redzone = a->head;
    record->tail_redzone = a->tail;
    record->module = a->module;
    record->name = name;
    record->stream = a->stream;
    record->constant = a->constant;
    capture_commit(record);
}

static bool is_constant(const struct tracked_module *module, const char *name)
{
    for (size_t i = 0; module && i < module->scan.variable_count; i++)
        if (strcmp(module->scan.variables[i].name, name) == 0)
            return module->scan.variables[i].constant;
    return false;
}

void record_variable(uint64_t seq, uint64_t tsc, struct tracked_module *module, uint64_t address, uint64_t bytes,
                     const char *name)
{
    struct allocation a;
    uint32_t owner = module ? module->id : 0;
    if (alloc_table_exact(address, &a) && a.kind == CAP_ALLOC_VARIABLE && a.module == owner && a.bytes == bytes)
        return;
    a = (struct allocation){.address = address, .bytes = bytes, .base = address, .kind = CAP_ALLOC_VARIABLE};
    a.module = owner;
    a.constant = is_constant(module, name);
    struct call call = {.seq = seq, .tsc = tsc};
    record_allocation(&call, &a, intern_string(name));
    if (module)
        track_module_add_variable(module, &a);
}

struct cap_free *record_free(const struct call *call, const struct allocation *a, uint64_t address, uint32_t stream)
{
    thread_slow();
    uint32_t stack = stack_here();
    struct cap_free *record = capture_record(CAP_FREE, sizeof *record, call->seq, call->tsc);
    if (!record)
        return NULL;
    record->id = a ? a->id : 0;
    record->stack = stack;
    record->address = address;
    record->stream = stream;
    capture_commit(record);
    return record;
}

/* What is held back may have made room meanwhile, and told of much damage. */
void record_free_done(struct cap_free *record, CUresult result)
{
    if (record && capture_can_patch(record))
        __atomic_store_n(&record->result, (int32_t)result, __ATOMIC_RELAXED);
}

struct cap_sync *record_sync(const struct call *call, enum cap_sync_kind kind, uint32_t object)
{
    uint32_t stack = stack_sampled();
    struct cap_sync *record = capture_record(CAP_SYNC, sizeof *record, call->seq, call->tsc);
    if (!record)
        return NULL;
    record->kind = kind;
    record->object = object;
    record->stack = stack;
    capture_commit(record);
    return record;
}

void record_sync_done(struct cap_sync *record, const struct call *call, CUresult result)
{
    if (!record)
        return;
    __atomic_store_n(&record->wait_ns, capture_tsc_to_ns(call->real_end - call->real_begin), __ATOMIC_RELAXED);
    __atomic_store_n(&record->result, (int32_t)result, __ATOMIC_RELAXED);
}

void record_order(const struct call *call, enum cap_order_op op, uint32_t event, uint32_t stream)
{
    struct cap_order *record = capture_record(CAP_ORDER, sizeof *record, call->seq, call->tsc);
    if (!record)
        return;
    record->op = op;
    record->event = event;
    record->stream = stream;
    capture_commit(record);
}

void record_stream_value(const struct call *call, enum cap_stream_value_op op, uint32_t stream, uint64_t address,
                         uint64_t value, uint32_t bytes, uint32_t flags)
{
    uint32_t stack = stack_here();
    struct cap_stream_value *record = capture_record(CAP_STREAM_VALUE, sizeof *record, call->seq, call->tsc);
    if (!record)
        return;
    record->op = op;
    record->stream = stream;
    record->address = address;
    record->value = value;
    record->bytes = bytes;
    record->flags = flags;
    record->stack = stack;
    capture_commit(record);
}
