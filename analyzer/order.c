/* order.c - walks the records: who touches what, and is it ordered behind who touched it before? */
#include "analyzer/order.h"

#include <stdlib.h>
#include <string.h>

/* Uses of an allocation that are kept, though the host does not know them to be complete; the oldest go first. */
enum { MOST_USES = 512 };
/* Rows that two patterns are compared over, and two lists of them: what lies behind is not told of. */
enum { MOST_ROWS = 1 << 16, MOST_ROWS_OF_LISTS = 1 << 20 };
/* Slices of a box that are looked at. */
enum { MOST_SLICES = 16 };

struct uses {
    struct order_use *items; /* owned; in order of their issue */
    size_t count, capacity;
};
struct walk {
    const struct model *model;
    const struct judgements *judgements;
    struct order_clocks clocks;
    struct model_live live;
    struct uses *uses; /* owned; by allocation index */
    void (*found)(void *context, const struct order_pair *pair);
    void *context;
    bool incomplete;
    /* Of the work being looked at: streams that it is not ordered behind, to be counted as such afterwards. */
    struct order_stream *stream;
    struct {
        uint32_t slot;
        uint64_t time;
    } repairs[64];
    size_t repair_count;
};

/* ---- which captures can tell ---- */

static bool orders(const char *name)
{
    static const char *const all[] = {"cuStream",  "cuEvent",    "cuCtxSync", "cuCtxRecord",
                                      "cuCtxWait", "cuGreenCtx", "cuLaunch",  "cuGraphLaunch"};
    for (size_t i = 0; i < sizeof all / sizeof *all; i++)
        if (strncmp(name, all[i], strlen(all[i])) == 0)
            return true;
    return false;
}

/* Notes of the shim about functions that it does not know (shim/shim.c). */
static bool unseen_function(const struct model *m)
{
    static const char *const before[] = {"driver function ", "a newer version of "};
    for (size_t i = 0; i < m->note_count; i++) {
        const char *text = capture_string(m->capture, m->notes[i]->text);
        for (size_t k = 0; k < 2; k++)
            if (strncmp(text, before[k], strlen(before[k])) == 0 && orders(text + strlen(before[k])))
                return true;
    }
    return false;
}

const char *order_unknown(const struct model *m)
{
    const struct cap_header *h = &m->capture->header;
    if (!m->records_order)
        return "the capture is older than the records that tell it";
    if (h->dropped_records || m->capture->rejected.count)
        return "records are missing";
    if (h->state == CAP_STEPPED_ASIDE)
        return "the tool stepped aside";
    if (unseen_function(m))
        return "the program may have used functions on streams or events that are newer than this tool";
    return NULL;
}

/* ---- patterns of bytes ---- */

static bool cut(uint64_t a, uint64_t a_bytes, uint64_t b, uint64_t b_bytes, uint64_t *offset, uint64_t *bytes)
{
    uint64_t first = a > b ? a : b, end = a + a_bytes < b + b_bytes ? a + a_bytes : b + b_bytes;
    if (first >= end)
        return false;
    *offset = first;
    *bytes = end - first;
    return true;
}

static uint64_t end_of(const struct judgement_run *r)
{
    return r->offset + (r->count - 1) * r->stride + r->bytes;
}

/* Does [at, at + size) meet a piece of `r`? */
static bool meets(const struct judgement_run *r, uint64_t at, uint64_t size, uint64_t *offset, uint64_t *bytes)
{
    uint64_t k = 0;
    if (r->count > 1 && at > r->offset)
        k = (at - r->offset) / r->stride;
    if (k >= r->count)
        k = r->count - 1;
    return cut(at, size, r->offset + k * r->stride, r->bytes, offset, bytes) ||
           (k + 1 < r->count && cut(at, size, r->offset + (k + 1) * r->stride, r->bytes, offset, bytes));
}

static bool runs_meet(const struct judgement_run *a, const struct judgement_run *b, uint64_t *rows, uint64_t *offset,
                      uint64_t *bytes)
{
    const struct judgement_run *few = a->count <= b->count ? a : b, *many = few == a ? b : a;
    if (end_of(a) <= b->offset || end_of(b) <= a->offset)
        return false;
    for (uint64_t k = 0; k < few->count && k < MOST_ROWS && *rows; k++, --*rows)
        if (meets(many, few->offset + k * few->stride, few->bytes, offset, bytes))
            return true;
    return false;
}

bool order_overlap(const struct judgement_run *a, size_t a_count, const struct judgement_run *b, size_t b_count,
                   uint64_t *offset, uint64_t *bytes)
{
    uint64_t rows = MOST_ROWS_OF_LISTS;
    for (size_t i = 0; i < a_count && rows; i++)
        for (size_t k = 0; k < b_count && rows; k++)
            if (runs_meet(&a[i], &b[k], &rows, offset, bytes))
                return true;
    return false;
}

/* ---- uses ---- */

static const struct judgement_run *runs_of(const struct order_use *u, size_t *count)
{
    *count = u->runs ? u->run_count : 1;
    return u->runs ? u->runs : &u->run;
}

/* What nobody need be told apart from: harmless in any order, or told elsewhere. */
static bool harmless(const struct order_use *a, const struct order_use *b)
{
    if (!a->write && !b->write)
        return true;
    if (a->kind == ORDER_ALLOC || b->kind == ORDER_ALLOC)
        return a->kind == ORDER_FREE || b->kind == ORDER_FREE;
    if (a->kind == ORDER_LAUNCH && b->kind == ORDER_LAUNCH)
        return a->atomics && b->atomics;
    if (a->kind == ORDER_SET && b->kind == ORDER_SET) {
        const struct cap_set *x = (const void *)a->record, *y = (const void *)b->record;
        return x->value == y->value && x->value_bytes == y->value_bytes;
    }
    return false;
}

/* Both leave the same values in the same bytes: in either order the same is there. */
static bool same_values(const struct order_use *a, const struct order_use *b)
{
    return a->write && b->write && a->values && a->values == b->values && a->run_count == b->run_count &&
           memcmp(a->runs, b->runs, a->run_count * sizeof *a->runs) == 0;
}

static enum order_missing why(const struct order_stream *s, const struct order_use *earlier, uint32_t *event)
{
    *event = s->waited_event;
    if (s->waited_event && s->waited_time == 0)
        return ORDER_EVENT_UNUSED;
    if (s->waited_event && s->waited_slot == earlier->slot && s->waited_time < earlier->time)
        return ORDER_EVENT_EARLY;
    *event = 0;
    return ORDER_NOTHING;
}

static void repair(struct walk *w, const struct order_use *earlier)
{
    if (w->repair_count < sizeof w->repairs / sizeof *w->repairs) {
        w->repairs[w->repair_count].slot = earlier->slot;
        w->repairs[w->repair_count++].time = earlier->time;
    }
}

static void compare(struct walk *w, const struct model_allocation *a, const struct order_use *earlier,
                    const struct order_use *later)
{
    size_t count, other;
    const struct judgement_run *x = runs_of(earlier, &count), *y = runs_of(later, &other);
    struct order_pair pair = {.earlier = earlier, .later = later, .allocation = a};
    if (order_time(&w->stream->clock, earlier->slot) >= earlier->time || harmless(earlier, later) ||
        same_values(earlier, later) || !order_overlap(x, count, y, other, &pair.offset, &pair.bytes))
        return;
    pair.missing = why(w->stream, earlier, &pair.event);
    w->found(w->context, &pair);
    repair(w, earlier);
}

/* What the host knows to be complete comes before all that is issued from now on. */
static void forget_complete(const struct walk *w, struct uses *list)
{
    size_t kept = 0;
    for (size_t i = 0; i < list->count; i++)
        if (order_time(&w->clocks.host, list->items[i].slot) < list->items[i].time)
            list->items[kept++] = list->items[i];
    list->count = kept;
}

static bool append(struct uses *list, const struct order_use *use)
{
    if (list->count == MOST_USES) {
        memmove(list->items, list->items + 1, --list->count * sizeof *list->items);
    } else if (list->count == list->capacity) {
        size_t capacity = list->capacity ? list->capacity * 2 : 8;
        struct order_use *more = realloc(list->items, capacity * sizeof *more);
        if (!more)
            return false;
        list->items = more;
        list->capacity = capacity;
    }
    list->items[list->count++] = *use;
    return true;
}

static struct uses *uses_of(struct walk *w, const struct model_allocation *a)
{
    return &w->uses[a - w->model->allocations];
}

/* Both with what was there before and, from then on, with what comes. */
static void take_use(struct walk *w, const struct model_allocation *a, struct order_use use)
{
    struct uses *list = uses_of(w, a);
    if (w->stream->doubt)
        return;
    use.slot = w->stream->slot;
    use.time = order_time(&w->clocks.issued, use.slot);
    forget_complete(w, list);
    for (size_t i = 0; i < list->count; i++)
        if (list->items[i].record != use.record)
            compare(w, a, &list->items[i], &use);
    w->incomplete = !append(list, &use) || w->incomplete;
}

/* ---- work ---- */

/* The host can look at it without a copy, so a kernel that stores there may tell it something. */
static bool host_sees(const struct model_allocation *a)
{
    switch (a->record->kind) {
    case CAP_ALLOC_DEVICE:
    case CAP_ALLOC_PITCHED:
    case CAP_ALLOC_ASYNC:
    case CAP_ALLOC_POOL:
        return false;
    case CAP_ALLOC_VARIABLE: /* it may be managed */
    default:
        return true;
    }
}

static void take_launch(struct walk *w, const struct model_launch *l)
{
    const struct judgement *j = judgements_find(w->judgements, l->number);
    if (!model_launch_ran(l) || l->record->outcome == CAP_LAUNCH_PENDING)
        return;
    w->stream = order_clocks_issue(&w->clocks, l->record->stream);
    if (!w->stream)
        return;
    bool tells = !j || !j->bytes_known;
    if (!j || !j->kernel_known || j->may_wait)
        order_clocks_doubt(w->stream, model_launch_seq(l));
    if (l->config->flags & CAP_CONFIG_ATTRIBUTES)
        w->clocks.events_in_doubt = true; /* one of them records events */
    for (size_t i = 0; j && j->bytes_known && i < j->touch_count; i++) {
        const struct judgement_touch *t = &j->touches[i];
        const struct model_allocation *a = model_allocation_by_id(w->model, t->allocation);
        if (!a || !t->count || a->seq > model_launch_seq(l) || a->free_seq < model_launch_seq(l))
            continue;
        tells = tells || (t->write && host_sees(a));
        take_use(w, a,
                 (struct order_use){.record = &l->record->head,
                                    .launch = l,
                                    .stream = l->record->stream,
                                    .kind = ORDER_LAUNCH,
                                    .write = t->write,
                                    .atomics = j->atomics,
                                    .runs = t->runs,
                                    .values = t->values,
                                    .run_count = t->count});
    }
    if (tells)
        order_clocks_host_may_know(&w->clocks, w->stream);
}

/* A rectangle in one allocation, from the address on. */
static void take_rows(struct walk *w, struct order_use use, uint64_t address, uint64_t width, uint64_t height,
                      uint64_t pitch)
{
    const struct model_allocation *a = model_live_find(&w->live, address);
    if (!a)
        return;
    struct judgement_run *r = &use.run;
    *r = (struct judgement_run){address - a->address, width, pitch, height};
    if (height > 1 && pitch < width) /* rows over each other: all of it, as one */
        *r = (struct judgement_run){r->offset, (height - 1) * pitch + width, 0, 1};
    if (r->count == 1 && r->bytes > a->bytes - r->offset) /* what leaves the allocation is reported elsewhere */
        r->bytes = a->bytes - r->offset;
    if (end_of(r) <= a->bytes)
        take_use(w, a, use);
}

static void take_box(struct walk *w, const struct order_use *use, uint64_t address, const struct cap_copy *c,
                     uint64_t pitch, uint64_t slice_pitch)
{
    if (c->depth > 1 && slice_pitch == pitch * c->height) {
        take_rows(w, *use, address, c->width, c->height * c->depth, pitch);
        return;
    }
    for (uint64_t z = 0; z < c->depth && z < MOST_SLICES; z++)
        take_rows(w, *use, address + z * slice_pitch, c->width, c->height, pitch);
}

static bool on_device(const struct walk *w, uint64_t address)
{
    const struct model_allocation *a = model_live_find(&w->live, address);
    return a && (!host_sees(a) || a->record->kind == CAP_ALLOC_VARIABLE);
}

/* Does the host know, when the call returns, that the copy is complete? */
static bool copy_waits(const struct walk *w, const struct cap_copy *c)
{
    if (c->asynchronous) /* to pageable memory */
        return c->kind != CAP_COPY_ARRAY && !model_live_find(&w->live, c->target);
    const struct model_allocation *to = model_live_find(&w->live, c->target);
    const struct model_allocation *from = model_live_find(&w->live, c->source);
    bool inside = on_device(w, c->target) && on_device(w, c->source) && c->kind != CAP_COPY_ARRAY &&
                  to->record->context == from->record->context;
    return !inside;
}

/* A copy between two devices in the default stream waits for all work of both, and their later work waits for it. */
static bool waits_for_devices(const struct walk *w, const struct cap_copy *c)
{
    const struct cap_stream *s = capture_definition(w->model->capture, CAP_STREAM, c->stream);
    const struct model_allocation *to = model_live_find(&w->live, c->target);
    const struct model_allocation *from = model_live_find(&w->live, c->source);
    return (!s || s->kind == CAP_STREAM_LEGACY) && to && from && on_device(w, c->target) && on_device(w, c->source) &&
           to->record->context != from->record->context;
}

static void take_copy(struct walk *w, const struct cap_copy *c)
{
    if (c->result != 0 || !c->width || !c->height || !c->depth)
        return;
    bool all = c->kind != CAP_COPY_ARRAY && waits_for_devices(w, c);
    if (all)
        order_clocks_host_knows_all(&w->clocks);
    w->stream = order_clocks_issue(&w->clocks, c->stream);
    if (!w->stream)
        return;
    struct order_use use = {.record = &c->head, .stream = c->stream, .kind = ORDER_COPY};
    if (c->kind != CAP_COPY_ARRAY) { /* of those, nobody knows which side is the array's */
        take_box(w, &use, c->source, c, c->source_pitch, c->source_slice_pitch);
        use.write = true;
        take_box(w, &use, c->target, c, c->target_pitch, c->target_slice_pitch);
    }
    if (all || copy_waits(w, c))
        order_clocks_host_may_know(&w->clocks, w->stream);
}

static void take_set(struct walk *w, const struct cap_set *s)
{
    if (s->result != 0 || !s->width || !s->height)
        return;
    w->stream = order_clocks_issue(&w->clocks, s->stream);
    if (!w->stream)
        return;
    take_rows(w, (struct order_use){.record = &s->head, .stream = s->stream, .kind = ORDER_SET, .write = true},
              s->target, s->width, s->height, s->pitch);
    if (!s->asynchronous && !on_device(w, s->target))
        order_clocks_host_may_know(&w->clocks, w->stream);
}

static void take_whole(struct walk *w, const struct model_allocation *a, const struct cap_head *record, uint32_t stream,
                       enum order_kind kind)
{
    w->stream = order_clocks_issue(&w->clocks, stream);
    if (w->stream && a && a->bytes)
        take_use(w, a,
                 (struct order_use){
                     .record = record, .stream = stream, .kind = kind, .write = true, .run = {0, a->bytes, 0, 1}});
}

static void drop_uses(struct uses *list)
{
    free(list->items);
    *list = (struct uses){0};
}

static void take_free(struct walk *w, const struct cap_free *f)
{
    const struct model_allocation *a = model_allocation_by_id(w->model, f->id);
    if (f->result != 0)
        return;
    if (f->stream)
        take_whole(w, a, &f->head, f->stream, ORDER_FREE);
    else
        order_clocks_host_knows_all(&w->clocks);
    if (a)
        drop_uses(uses_of(w, a));
}

static void take_record(struct walk *w, const struct cap_head *record)
{
    const struct cap_alloc *alloc = (const void *)record;
    const struct model_launch *l;
    w->repair_count = 0;
    w->stream = NULL;
    switch (record->type) {
    case CAP_LAUNCH:
        if ((l = model_launch_by_seq(w->model, record->seq)))
            take_launch(w, l);
        break;
    case CAP_COPY:
        take_copy(w, (const void *)record);
        break;
    case CAP_SET:
        take_set(w, (const void *)record);
        break;
    case CAP_ALLOC:
        if (alloc->stream && (alloc->kind == CAP_ALLOC_ASYNC || alloc->kind == CAP_ALLOC_POOL))
            take_whole(w, model_allocation_by_id(w->model, alloc->id), record, alloc->stream, ORDER_ALLOC);
        break;
    case CAP_FREE:
        take_free(w, (const void *)record);
        break;
    default:
        order_clocks_take(&w->clocks, record);
        break;
    }
    /* What was told once is not told again for all that follows. */
    for (size_t i = 0; w->stream && i < w->repair_count; i++)
        order_clocks_put_behind(&w->clocks, w->stream, w->repairs[i].slot, w->repairs[i].time);
}

bool order_walk(const struct model *m, const struct judgements *js,
                void (*found)(void *context, const struct order_pair *pair), void *context)
{
    struct walk w = {.model = m, .judgements = js, .found = found, .context = context};
    if (order_unknown(m))
        return true;
    w.uses = calloc(m->allocation_count + 1, sizeof *w.uses);
    if (!w.uses)
        return false;
    order_clocks_start(&w.clocks, m);
    model_live_start(&w.live, m);
    for (size_t i = 0; i < m->capture->record_count && !w.clocks.failed && !w.live.no_memory; i++) {
        model_live_advance(&w.live, m->capture->records[i]->seq);
        take_record(&w, m->capture->records[i]);
    }
    bool complete = !w.incomplete && !w.clocks.failed && !w.live.no_memory;
    for (size_t i = 0; i < m->allocation_count; i++)
        drop_uses(&w.uses[i]);
    free(w.uses);
    order_clocks_end(&w.clocks);
    model_live_end(&w.live);
    return complete;
}
