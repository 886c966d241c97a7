#include "softgpu/memop.h"

#include <sched.h>
#include <string.h>
#include <time.h>

#include "softgpu/memory.h"

enum { SPINS = 64, SLEEP_NS = 20000, LONGEST_SLEEP_NS = 500000 };

struct memop_op {
    struct op op;
    struct context *context;
    unsigned count;
    CUstreamBatchMemOpParams params[];
};

/* ---- checks ----------------------------------------------------------------------------------------------------- */

static bool address_ok(CUdeviceptr address, unsigned bytes, bool write)
{
    struct allocation a;
    return address % bytes == 0 && memory_lookup(address, &a) && a.kind != MEMORY_MANAGED && a.kind != MEMORY_ARRAY &&
           memory_covers(address, bytes, write);
}

static bool operation_ok(const CUstreamBatchMemOpParams *p, bool old)
{
    switch (p->operation) {
    case CU_STREAM_MEM_OP_WAIT_VALUE_32:
    case CU_STREAM_MEM_OP_WAIT_VALUE_64:
        return (p->waitValue.flags & ~(unsigned)CU_STREAM_WAIT_VALUE_FLUSH) <= CU_STREAM_WAIT_VALUE_NOR &&
               address_ok(p->waitValue.address, p->operation == CU_STREAM_MEM_OP_WAIT_VALUE_32 ? 4 : 8, false);
    case CU_STREAM_MEM_OP_WRITE_VALUE_32:
    case CU_STREAM_MEM_OP_WRITE_VALUE_64:
        return p->writeValue.flags <= (old ? CU_STREAM_WRITE_VALUE_NO_MEMORY_BARRIER : CU_STREAM_WRITE_VALUE_DEFAULT) &&
               address_ok(p->writeValue.address, p->operation == CU_STREAM_MEM_OP_WRITE_VALUE_32 ? 4 : 8, true);
    case CU_STREAM_MEM_OP_FLUSH_REMOTE_WRITES:
        return p->flushRemoteWrites.flags == 0;
    case CU_STREAM_MEM_OP_BARRIER:
        return !old && p->memoryBarrier.flags <= CU_STREAM_MEMORY_BARRIER_TYPE_GPU;
    default:
        return false;
    }
}

CUresult memop_check(const CUstreamBatchMemOpParams *params, unsigned count, bool old)
{
    if (!params || !count || count > MEMOP_LIMIT)
        return CUDA_ERROR_INVALID_VALUE;
    for (unsigned i = 0; i < count; i++)
        if (!operation_ok(&params[i], old))
            return CUDA_ERROR_INVALID_VALUE;
    return CUDA_SUCCESS;
}

/* ---- work ------------------------------------------------------------------------------------------------------- */

static bool satisfied_32(uint32_t now, uint32_t value, unsigned condition)
{
    switch (condition) {
    case CU_STREAM_WAIT_VALUE_GEQ:
        return (int32_t)(now - value) >= 0;
    case CU_STREAM_WAIT_VALUE_EQ:
        return now == value;
    case CU_STREAM_WAIT_VALUE_AND:
        return (now & value) != 0;
    default:
        return ~(now | value) != 0;
    }
}

static bool satisfied_64(uint64_t now, uint64_t value, unsigned condition)
{
    switch (condition) {
    case CU_STREAM_WAIT_VALUE_GEQ:
        return (int64_t)(now - value) >= 0;
    case CU_STREAM_WAIT_VALUE_EQ:
        return now == value;
    case CU_STREAM_WAIT_VALUE_AND:
        return (now & value) != 0;
    default:
        return ~(now | value) != 0;
    }
}

/* The word's place, looked up anew each time: its page may be unmapped while a stream waits. */
static char *place(struct context *context, CUdeviceptr address)
{
    uint64_t room;
    char *at = memory_host(address, &room);
    if (!at)
        context_fail(context, CUDA_ERROR_ILLEGAL_ADDRESS);
    return at;
}

/* The word may be written by a copy or a kernel just now, bytewise as far as the language knows: on this hardware an
 * aligned word comes whole. */
__attribute__((no_sanitize("thread"))) static bool satisfied(struct context *context, const CUstreamBatchMemOpParams *p,
                                                             bool *gone)
{
    unsigned condition = p->waitValue.flags & ~(unsigned)CU_STREAM_WAIT_VALUE_FLUSH;
    void *at = place(context, p->waitValue.address);
    *gone = !at;
    if (*gone)
        return false;
    return p->operation == CU_STREAM_MEM_OP_WAIT_VALUE_32
               ? satisfied_32(__atomic_load_n((uint32_t *)at, __ATOMIC_ACQUIRE), p->waitValue.value, condition)
               : satisfied_64(__atomic_load_n((uint64_t *)at, __ATOMIC_ACQUIRE), p->waitValue.value64, condition);
}

/* False when the wait was given up: the context failed or was destroyed, or the process ends. */
static bool wait_for(struct context *context, const CUstreamBatchMemOpParams *p)
{
    bool gone;
    long sleep_ns = SLEEP_NS;
    for (unsigned spins = 0; !satisfied(context, p, &gone); spins++) {
        if (gone || atomic_load(engine_cancel()) || context_error(context) || !atomic_load(&context->alive))
            return false;
        if (spins < SPINS) {
            sched_yield();
            continue;
        }
        nanosleep(&(struct timespec){0, sleep_ns}, NULL);
        sleep_ns = sleep_ns < LONGEST_SLEEP_NS ? sleep_ns * 2 : sleep_ns;
    }
    return true;
}

static bool write_value(struct context *context, const CUstreamBatchMemOpParams *p)
{
    void *at = place(context, p->writeValue.address);
    if (!at)
        return false;
    if (p->operation == CU_STREAM_MEM_OP_WRITE_VALUE_32)
        __atomic_store_n((uint32_t *)at, p->writeValue.value, __ATOMIC_SEQ_CST);
    else
        __atomic_store_n((uint64_t *)at, p->writeValue.value64, __ATOMIC_SEQ_CST);
    return true;
}

static void run(struct op *op)
{
    struct memop_op *m = (struct memop_op *)op;
    bool go_on = true;
    for (unsigned i = 0; go_on && i < m->count; i++) {
        const CUstreamBatchMemOpParams *p = &m->params[i];
        if (p->operation == CU_STREAM_MEM_OP_WAIT_VALUE_32 || p->operation == CU_STREAM_MEM_OP_WAIT_VALUE_64)
            go_on = wait_for(m->context, p);
        else if (p->operation == CU_STREAM_MEM_OP_WRITE_VALUE_32 || p->operation == CU_STREAM_MEM_OP_WRITE_VALUE_64)
            go_on = write_value(m->context, p);
        else
            atomic_thread_fence(memory_order_seq_cst);
    }
}

CUresult memop_make(struct context *context, const CUstreamBatchMemOpParams *params, unsigned count, struct op **out)
{
    struct memop_op *m = op_new(sizeof *m + count * sizeof *params, run, NULL);
    if (!m)
        return CUDA_ERROR_OUT_OF_MEMORY;
    m->context = context;
    m->count = count;
    /* A thread of the program that synchronises must not take over a wait: at exit it could not leave. */
    m->op.bound = true;
    memcpy(m->params, params, count * sizeof *params);
    *out = &m->op;
    return CUDA_SUCCESS;
}
