/* exec_fault.c - the table of faults of a launch: each distinct (kind, instruction, range) once, with a count.
 *
 * The representative of an entry is its first access in the order of (block, thread), whatever the order of execution
 * was, so that reports do not depend on workers and seeds more than the program does. */
#include <stdlib.h>
#include <string.h>
#include "ptx/exec.h"

struct fault_entry {
    struct ptx_fault fault;
    uint64_t order;       /* of the representative: block * threads + thread */
    uint64_t last_thread; /* likewise, of the latest access: runs of one thread count once */
};
struct fault_table {
    struct fault_entry *entries;
    uint32_t count, limit;
    uint64_t dropped;
};

struct fault_table *fault_table_create(uint32_t limit)
{
    struct fault_table *t = calloc(1, sizeof *t);
    if (!t)
        return NULL;
    t->limit = limit ? limit : 64;
    if (t->limit > 1u << 16)
        t->limit = 1u << 16;
    t->entries = calloc(t->limit, sizeof *t->entries);
    if (!t->entries) {
        free(t);
        return NULL;
    }
    return t;
}

void fault_table_free(struct fault_table *t)
{
    if (!t)
        return;
    free(t->entries);
    free(t);
}

uint32_t thread_line(const struct thread *t, const struct insn *in)
{
    size_t pc = (size_t)(in - t->code->insns);
    return t->code->lines[pc];
}

/* Without knowledge of what the pointer was made from: the range whose nearer end is nearest. */
static void nearest_range(struct launch *l, struct ptx_fault *f)
{
    const struct ptx_memory *m = l->memory;
    if (grids_range(l, f->address))
        return;
    uint64_t best = UINT64_MAX;
    size_t low = 0, high = m->range_count;
    while (low < high) {
        size_t mid = low + (high - low) / 2;
        if (m->ranges[mid].address <= f->address)
            low = mid + 1;
        else
            high = mid;
    }
    for (size_t i = low ? low - 1 : 0; i < m->range_count && i <= low; i++) {
        const struct ptx_range *r = &m->ranges[i];
        uint64_t distance = f->address < r->address ? r->address - f->address : f->address - r->address - r->bytes + 1;
        if (f->address - r->address < r->bytes) /* begins inside, ends behind */
            distance = 0;
        if (distance < best) {
            best = distance;
            f->has_range = true;
            f->range_id = r->id;
            f->offset = (int64_t)(f->address - r->address);
        }
    }
}

static bool same_fault(const struct ptx_fault *a, const struct ptx_fault *b)
{
    return a->kind == b->kind && a->access.ptx_line == b->access.ptx_line && a->space == b->space &&
           a->has_range == b->has_range && a->range_id == b->range_id && a->same_value == b->same_value &&
           a->access.write == b->access.write && a->kernel == b->kernel;
}

void fault_report(struct worker *w, struct block *b, struct thread *t, const struct insn *in, struct ptx_fault *f)
{
    struct launch *l = w->launch;
    if (l->shadow) /* judged elsewhere; the access gives zero, or the thread ends */
        return;
    f->access.ptx_line = f->access.ptx_line ? f->access.ptx_line : thread_line(t, in);
    memcpy(f->access.block, b->ctaid, sizeof f->access.block);
    memcpy(f->access.thread, t->tid, sizeof f->access.thread);
    f->kernel = l->named;
    if (l->asked) {
        f->access.ptx_line = l->asked->ptx_line;
        memcpy(f->access.block, l->asked->block, sizeof f->access.block);
        memcpy(f->access.thread, l->asked->thread, sizeof f->access.thread);
    }
    f->count = f->threads = 1;
    uint64_t order = b->linear * l->block_threads + t->index;
    if (f->kind == PTX_FAULT_OUT_OF_BOUNDS && f->space == PTX_SPACE_GLOBAL && !f->has_range)
        nearest_range(l, f); /* takes the lock itself */
    pthread_mutex_lock(&l->lock);
    struct fault_table *table = l->faults;
    struct fault_entry *e = NULL;
    for (uint32_t i = 0; i < table->count && !e; i++)
        if (same_fault(&table->entries[i].fault, f))
            e = &table->entries[i];
    if (e) {
        e->fault.count++;
        if (e->last_thread != order)
            e->fault.threads++;
        e->last_thread = order;
        if (order < e->order) {
            f->count = e->fault.count;
            f->threads = e->fault.threads;
            e->fault = *f;
            e->order = order;
        }
    } else if (table->count < table->limit) {
        e = &table->entries[table->count++];
        e->fault = *f;
        e->order = e->last_thread = order;
    } else {
        table->dropped++;
    }
    pthread_mutex_unlock(&l->lock);
    if (!l->checked)
        launch_stop(l, STATUS_FAULT);
}

void fault_simple(struct worker *w, struct block *b, struct thread *t, enum ptx_fault_kind kind)
{
    struct ptx_fault f = {.kind = kind, .space = PTX_SPACE_GLOBAL};
    fault_report(w, b, t, &t->code->insns[t->pc < t->code->count ? t->pc : t->code->count - 1], &f);
}

static int compare_faults(const void *x, const void *y)
{
    const struct ptx_fault *a = x, *b = y;
#define ORDER(field)                                                                                                   \
    if (a->field != b->field)                                                                                          \
    return a->field < b->field ? -1 : 1
    ORDER(access.ptx_line);
    ORDER(kind);
    ORDER(space);
    ORDER(has_range);
    ORDER(range_id);
    ORDER(access.write);
    ORDER(same_value);
    ORDER(kernel); /* all point into one array */
#undef ORDER
    return 0;
}

/* Races at one place, some of them of the same value: one fault, and not a harmless one. */
static void join_same_value(struct ptx_result *result)
{
    size_t kept = 0;
    for (size_t i = 0; i < result->fault_count; i++) {
        struct ptx_fault *f = &result->faults[i], as_last = *f;
        struct ptx_fault *last = kept ? &result->faults[kept - 1] : NULL;
        as_last.same_value = last && last->same_value;
        if (last && f->same_value && !last->same_value && same_fault(last, &as_last))
            last->count += f->count;
        else
            result->faults[kept++] = *f;
    }
    result->fault_count = kept;
}

bool fault_table_finish(struct fault_table *t, struct ptx_result *result)
{
    result->faults_dropped = t->dropped;
    if (t->count == 0)
        return true;
    result->faults = calloc(t->count, sizeof *result->faults);
    if (!result->faults)
        return false;
    for (uint32_t i = 0; i < t->count; i++)
        result->faults[i] = t->entries[i].fault;
    result->fault_count = t->count;
    qsort(result->faults, t->count, sizeof *result->faults, compare_faults);
    join_same_value(result);
    return true;
}

const char *ptx_fault_kind_name(enum ptx_fault_kind kind)
{
    static const char *const names[] = {
        [PTX_FAULT_NONE] = "none",
        [PTX_FAULT_OUT_OF_BOUNDS] = "out of bounds",
        [PTX_FAULT_MISALIGNED] = "misaligned",
        [PTX_FAULT_READ_ONLY] = "read-only",
        [PTX_FAULT_FREED] = "use after free",
        [PTX_FAULT_UNINITIALISED] = "uninitialised",
        [PTX_FAULT_SHARED_RACE] = "shared memory race",
        [PTX_FAULT_GLOBAL_RACE] = "global memory race",
        [PTX_FAULT_BARRIER] = "divergent barrier",
        [PTX_FAULT_TRAP] = "trap",
        [PTX_FAULT_ASSERT] = "assertion failed",
        [PTX_FAULT_BAD_CALL] = "call or branch to no function",
        [PTX_FAULT_STACK] = "stack exhausted",
        [PTX_FAULT_TEXTURE] = "no such texture or surface",
    };
    return (unsigned)kind < sizeof names / sizeof *names ? names[kind] : "unknown";
}
