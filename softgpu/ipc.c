#include "softgpu/ipc.h"

#include <stdlib.h>
#include <sys/mman.h>
#include <time.h>
#include <unistd.h>

/* ---- memory ----------------------------------------------------------------------------------------------------- */

/* With memory's lock: the pages that an allocation lies in. */
static CUresult pages_of(const struct allocation *a, void **pages, uint64_t count)
{
    enum page_access access;
    unsigned reach;
    for (uint64_t i = 0; i < count; i++)
        if (!(pages[i] = pages_mapped((a->address / PAGE_BYTES + i) * PAGE_BYTES, &access, &reach)))
            return CUDA_ERROR_INVALID_VALUE;
    return CUDA_SUCCESS;
}

CUresult ipc_export(const struct allocation *a, struct share_handle *out)
{
    uint64_t offset = a->address % PAGE_BYTES, count = pages_for(offset + a->bytes), first;
    void **pages = malloc(count * sizeof(void *));
    if (!pages)
        return CUDA_ERROR_OUT_OF_MEMORY;
    if (engine_in_callback()) {
        free(pages);
        return CUDA_ERROR_NOT_PERMITTED;
    }
    /* The bytes move to the file and must not change meanwhile: neither kernels nor new modules write. */
    context_lock();
    engine_stop();
    memory_lock();
    CUresult result = pages_of(a, pages, count);
    if (result == CUDA_SUCCESS &&
        (share_pages(a->device, count, pages, &first) < 0 || !share_export(pages, a->id, out)))
        result = CUDA_ERROR_OUT_OF_MEMORY;
    memory_unlock();
    engine_unlock();
    context_unlock();
    free(pages);
    out->offset = offset;
    out->bytes = a->bytes;
    return result;
}

CUresult ipc_import(struct context *context, void *owner, const struct share_handle *h, uint64_t *address)
{
    struct share_label label;
    int fd = share_open(h, &label);
    if (fd < 0)
        return CUDA_ERROR_INVALID_HANDLE;
    uint64_t count =
        h->offset < PAGE_BYTES && h->bytes <= label.pages * PAGE_BYTES ? pages_for(h->offset + h->bytes) : 0;
    char *host = MAP_FAILED;
    if (count && count <= label.pages - h->first)
        host = mmap(NULL, count * PAGE_BYTES, PROT_READ | PROT_WRITE, MAP_SHARED, fd, (off_t)(h->first * PAGE_BYTES));
    close(fd);
    if (host == MAP_FAILED)
        return CUDA_ERROR_MAP_FAILED;
    memory_lock();
    uint64_t base = pages_reserve(count, PAGE_BYTES, false, 0);
    for (uint64_t i = 0; base && i < count; i++)
        pages_map(base + i * PAGE_BYTES, host + i * PAGE_BYTES, PAGE_READ_WRITE, 1u << context->device);
    memory_unlock();
    const struct allocation a = {.address = base + h->offset,
                                 .bytes = h->bytes,
                                 .span = count * PAGE_BYTES,
                                 .kind = MEMORY_IMPORTED,
                                 .context = context,
                                 .owner = owner,
                                 .device = context->device,
                                 .id = memory_new_id()};
    if (!base || !memory_record(&a)) {
        if (base)
            memory_release(&a);
        else
            munmap(host, count * PAGE_BYTES);
        return CUDA_ERROR_OUT_OF_MEMORY;
    }
    *address = a.address;
    return CUDA_SUCCESS;
}

/* ---- events ----------------------------------------------------------------------------------------------------- */

/* What both sides see, in the label's place for allocations. Records count up; those up to `done` were reached. */
struct counters {
    _Atomic uint32_t issued, done;
};
struct ipc_event {
    atomic_uint refs;
    struct share_label *label;
    struct counters *counters;
};

struct ipc_event *ipc_event_new(struct share_label *label)
{
    struct ipc_event *e = calloc(1, sizeof *e);
    if (e) {
        atomic_init(&e->refs, 1);
        e->label = label;
        e->counters = (struct counters *)(void *)label->exports;
    }
    return e;
}

void ipc_event_unref(struct ipc_event *e)
{
    if (!e || atomic_fetch_sub(&e->refs, 1) != 1)
        return;
    munmap(e->label, SHARE_LABEL_BYTES);
    free(e);
}

const struct share_label *ipc_event_label(const struct ipc_event *e)
{
    return e->label;
}

struct event_op {
    struct op op;
    struct ipc_event *event; /* reference */
    struct context *context;
    uint32_t number; /* of the record that it is, or waits for */
};

static struct event_op *new_event_op(struct ipc_event *event, void (*run)(struct op *op), void (*drop)(struct op *op))
{
    struct event_op *o = op_new(sizeof *o, run, drop);
    if (o) {
        atomic_fetch_add(&event->refs, 1);
        o->event = event;
    }
    return o;
}

static void drop_event_op(struct op *op)
{
    ipc_event_unref(((struct event_op *)op)->event);
    free(op);
}

static bool reached(struct ipc_event *e, uint32_t number)
{
    return (int32_t)(atomic_load(&e->counters->done) - number) >= 0;
}

static void run_record(struct op *op)
{
    struct event_op *o = (struct event_op *)op;
    struct counters *c = o->event->counters;
    uint32_t done = atomic_load(&c->done);
    while ((int32_t)(done - o->number) < 0 && !atomic_compare_exchange_weak(&c->done, &done, o->number)) {
    }
}

/* The other process cannot wake this one cheaply where it does not wait, so this one looks. */
static void look_again(unsigned *looks)
{
    long ns = ++*looks < 100 ? 20000 : 500000;
    nanosleep(&(struct timespec){0, ns}, NULL);
}

static void run_wait(struct op *op)
{
    struct event_op *o = (struct event_op *)op;
    for (unsigned looks = 0; !reached(o->event, o->number) && !atomic_load(engine_cancel()) &&
                             !context_error(o->context) && atomic_load(&o->context->alive);)
        look_again(&looks);
}

struct op *ipc_record(struct ipc_event *event)
{
    struct event_op *o = new_event_op(event, run_record, drop_event_op);
    if (!o)
        return NULL;
    o->number = atomic_fetch_add(&event->counters->issued, 1) + 1;
    o->op.always = true; /* the other process does not know of errors here */
    return &o->op;
}

struct op *ipc_wait(struct context *context, struct ipc_event *event)
{
    struct event_op *o = new_event_op(event, run_wait, drop_event_op);
    if (!o)
        return NULL;
    o->context = context;
    o->number = atomic_load(&event->counters->issued);
    o->op.bound = true;
    return &o->op;
}

bool ipc_done(struct ipc_event *event)
{
    return reached(event, atomic_load(&event->counters->issued));
}

CUresult ipc_synchronize(struct context *context, struct ipc_event *event)
{
    uint32_t number = atomic_load(&event->counters->issued);
    if (engine_in_callback())
        return CUDA_ERROR_NOT_PERMITTED;
    for (unsigned looks = 0; !reached(event, number); look_again(&looks))
        if (context_error(context) || state_exiting())
            return context_error(context) ? context_error(context) : CUDA_ERROR_DEINITIALIZED;
    return CUDA_SUCCESS;
}
