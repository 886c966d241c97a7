/* classify_order.c - work of two streams that touches the same bytes and that nothing orders (docs/order.md). */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "analyzer/finding.h"
#include "analyzer/order.h"
#include "analyzer/place.h"

enum { WORK_BYTES = 420, STREAM_BYTES = 48 };

/* Pairs of the same two places are one finding. */
struct place_key {
    const struct model_kernel *kernel; /* NULL: no launch */
    uint32_t stack;
    enum order_kind kind;
};
struct told {
    struct place_key earlier, later;
    size_t finding, pairs;
};
struct teller {
    const struct model *model;
    const struct judgements *judgements;
    struct symbols *symbols;
    struct findings *out;
    struct told *told; /* owned */
    size_t count;
};

static uint32_t stack_of(const struct order_use *u)
{
    const void *record = u->record;
    switch (u->kind) {
    case ORDER_LAUNCH:
        return ((const struct cap_launch *)record)->stack;
    case ORDER_COPY:
        return ((const struct cap_copy *)record)->stack;
    case ORDER_SET:
        return ((const struct cap_set *)record)->stack;
    case ORDER_ALLOC:
        return ((const struct cap_alloc *)record)->stack;
    default:
        return ((const struct cap_free *)record)->stack;
    }
}

static struct place_key key_of(const struct order_use *u)
{
    return (struct place_key){u->launch ? u->launch->kernel : NULL, stack_of(u), u->kind};
}

static bool same_key(const struct place_key *a, const struct place_key *b)
{
    return a->kernel == b->kernel && a->stack == b->stack && a->kind == b->kind;
}

static const char *stream_text(const struct model *m, uint32_t id, char out[STREAM_BYTES])
{
    const struct cap_stream *s = capture_definition(m->capture, CAP_STREAM, id);
    if (s && s->kind == CAP_STREAM_LEGACY)
        snprintf(out, STREAM_BYTES, "the default stream");
    else if (s && s->kind == CAP_STREAM_PER_THREAD)
        snprintf(out, STREAM_BYTES, "a thread's default stream (%u)", id);
    else
        snprintf(out, STREAM_BYTES, "stream %u%s", id, s && s->flags & 1 ? " (non-blocking)" : "");
    return out;
}

/* "launch 4, scale" or "a copy", with the place of the call */
static const char *work_text(const struct teller *t, const struct order_use *u, char out[WORK_BYTES])
{
    static const char *const names[] = {"launch", "a copy", "a memset", "its allocation", "its free"};
    char place[160];
    symbols_place(t->symbols, stack_of(u), place, sizeof place);
    const char *open = *place ? " (" : "", *close = *place ? ")" : "";
    const struct model_operator *op =
        u->launch ? model_operator_by_number(t->model, model_launch_place(t->model, u->launch)->operator) : NULL;
    char inside[140] = "";
    if (op) {
        char meaning[90];
        operator_summary(t->model->capture, op, meaning, sizeof meaning);
        snprintf(inside, sizeof inside, " inside %.40s%s%s", op->name, *meaning ? " " : "", meaning);
    }
    if (u->launch)
        snprintf(out, WORK_BYTES, "launch %u, %.80s%s%s%s%s", u->launch->number, u->launch->kernel->name, inside, open,
                 place, close);
    else
        snprintf(out, WORK_BYTES, "%s%s%s%s", names[u->kind], open, place, close);
    return out;
}

static void add_sides(const struct teller *t, struct finding *f, const struct order_pair *p)
{
    const struct order_use *const sides[2] = {p->earlier, p->later};
    static const char *const names[2] = {"issued first", "issued later"};
    for (int i = 0; i < 2; i++) {
        const struct order_use *u = sides[i];
        char work[WORK_BYTES], stream[STREAM_BYTES];
        const char *does = u->kind == ORDER_ALLOC || u->kind == ORDER_FREE ? "concerns all of it"
                           : u->write                                      ? "writes these bytes"
                                                                           : "reads these bytes";
        finding_evidence(f, names[i], "%s, in %s: %s", work_text(t, u, work), stream_text(t->model, u->stream, stream),
                         does);
    }
}

static void add_missing(const struct teller *t, struct finding *f, const struct order_pair *p)
{
    char first[STREAM_BYTES], second[STREAM_BYTES];
    stream_text(t->model, p->earlier->stream, first);
    stream_text(t->model, p->later->stream, second);
    if (p->missing == ORDER_EVENT_EARLY)
        finding_evidence(f, "order", "%s waits for event %u, but that was recorded in %s before the earlier work",
                         second, p->event, first);
    else if (p->missing == ORDER_EVENT_UNUSED)
        finding_evidence(f, "order", "%s waits for event %u, but when it began to wait nobody had recorded that",
                         second, p->event);
    else
        finding_evidence(f, "order", "no event, wait or synchronisation puts %s behind %s here", second, first);
}

static void set_place(const struct teller *t, struct finding *f, const struct order_use *u)
{
    const struct symbol_stack *s = symbols_stack(t->symbols, stack_of(u));
    if (s->own >= s->count)
        return;
    f->file = s->frames[s->own].file ? strdup(s->frames[s->own].file) : NULL;
    f->line = s->frames[s->own].line;
    f->function = s->frames[s->own].function ? strdup(s->frames[s->own].function) : NULL;
}

static void summarise(const struct teller *t, struct finding *f, const struct order_pair *p)
{
    const struct order_use *e = p->earlier, *l = p->later;
    char allocation[PLACE_ALLOCATION_BYTES], first[WORK_BYTES], second[WORK_BYTES] = "it";
    place_allocation(t->symbols, p->allocation, allocation);
    work_text(t, e, first);
    if (!l->launch) /* else the headline names it */
        work_text(t, l, second);
    if (l->kind == ORDER_FREE)
        finding_summary(f, "%s is freed in another stream while %s may still use it", allocation, first);
    else if (e->kind == ORDER_ALLOC)
        finding_summary(f, "%s uses %s, which another stream allocates, perhaps only later", second, allocation);
    else
        finding_summary(f, "%s %s bytes %" PRIu64 " to %" PRIu64 " of %s while %s may still be %s them", second,
                        l->write ? "writes" : "reads", p->offset, p->offset + p->bytes - 1, allocation, first,
                        e->write ? "writing" : "reading");
}

static void tell(struct teller *t, struct told *told, const struct order_pair *p)
{
    const struct order_use *shown = p->later->launch || !p->earlier->launch ? p->later : p->earlier;
    bool alone = !p->earlier->launch && !p->later->launch; /* the records are exact */
    told->finding = findings_add(t->out, p->later->kind == ORDER_FREE ? FINDING_USE_AFTER_FREE : FINDING_STREAM_RACE,
                                 alone ? 0.95 : 0.9);
    if (told->finding == SIZE_MAX)
        return;
    struct finding *f = &t->out->items[told->finding];
    f->allocation = p->allocation->id;
    f->offset = (int64_t)p->offset;
    summarise(t, f, p);
    set_place(t, f, shown);
    add_sides(t, f, p);
    add_missing(t, f, p);
    if (p->earlier->launch)
        finding_next(f, "ops-debug show %s %u", t->model->capture->shell_path, p->earlier->launch->number);
    if (p->later->launch)
        finding_next(f, "ops-debug show %s %u", t->model->capture->shell_path, p->later->launch->number);
    if (!shown->launch)
        finding_next(f, "ops-debug report -v %s", t->model->capture->shell_path);
}

/* What comes out of a race explains itself: no numbers of it are held against the kernel or the device. */
static void mark(const struct teller *t, const struct order_use *u)
{
    struct judgement *j = u->launch ? judgements_find(t->judgements, u->launch->number) : NULL;
    if (j)
        j->raced = true;
}

static void take_pair(void *context, const struct order_pair *p)
{
    struct teller *t = context;
    const struct place_key earlier = key_of(p->earlier), later = key_of(p->later);
    const struct order_use *shown = p->later->launch || !p->earlier->launch ? p->later : p->earlier;
    size_t i = 0;
    mark(t, p->earlier);
    mark(t, p->later);
    while (i < t->count && !(same_key(&t->told[i].earlier, &earlier) && same_key(&t->told[i].later, &later)))
        i++;
    if (i == t->count) {
        struct told *more = realloc(t->told, (t->count + 1) * sizeof *more);
        if (!more) {
            t->out->no_memory = true;
            return;
        }
        t->told = more;
        t->told[t->count++] = (struct told){.earlier = earlier, .later = later};
        tell(t, &t->told[i], p);
    }
    t->told[i].pairs++;
    if (t->told[i].finding != SIZE_MAX && shown->launch)
        finding_launch(&t->out->items[t->told[i].finding], shown->launch->number);
}

void classify_order(const struct model *m, const struct judgements *js, struct symbols *symbols, struct findings *out)
{
    struct teller t = {.model = m, .judgements = js, .symbols = symbols, .out = out};
    if (!order_walk(m, js, take_pair, &t))
        out->no_memory = true;
    for (size_t i = 0; i < t.count; i++)
        if (t.told[i].finding != SIZE_MAX && t.told[i].pairs > 1)
            finding_evidence(&out->items[t.told[i].finding], "count", "%zu pairs of work of these two places",
                             t.told[i].pairs);
    free(t.told);
}
