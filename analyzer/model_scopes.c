/* model_scopes.c - what each launch belongs to: the ranges that its thread had pushed by then, and the library call. */
#include <stdlib.h>

#include "analyzer/model.h"
#include "analyzer/model_scopes.h"

bool scopes_start(struct scopes *s, const struct capture *c)
{
    *s = (struct scopes){.capture = c};
    return capture_threads_find(&s->threads, c);
}

void scopes_end(struct scopes *s)
{
    capture_threads_free(&s->threads);
    map_free(&s->now);
    *s = (struct scopes){0};
}

uint32_t scopes_thread(struct scopes *s, const struct cap_head *record)
{
    return capture_threads_of(&s->threads, record);
}

bool scopes_range(struct scopes *s, const struct cap_range *r)
{
    if (!r->path) {
        map_remove(&s->now, r->thread);
        return true;
    }
    return map_put(&s->now, r->thread, (uint64_t)r->path << 32 | r->iteration);
}

struct scope scopes_of(struct scopes *s, const struct cap_head *record)
{
    uint64_t now;
    if (!s->now.count || !map_get(&s->now, scopes_thread(s, record), &now))
        return (struct scope){"", 0};
    const struct cap_path *path = capture_definition(s->capture, CAP_PATH, (uint32_t)(now >> 32));
    return (struct scope){path ? capture_string(s->capture, path->text) : "", (uint32_t)now};
}

/* ---- the model ---- */

struct model_operator *model_operator_by_number(const struct model *m, size_t number)
{
    return number && number <= m->operator_count ? &m->operators[number - 1] : NULL;
}

struct model_operator *model_operator_by_seq(const struct model *m, uint64_t seq)
{
    uint64_t index;
    return map_get(&m->operator_index, seq, &index) ? &m->operators[index] : NULL;
}

static bool add_operator(struct model *m, struct scopes *scopes, struct map *open, const struct cap_operator *record)
{
    struct scope scope = scopes_of(scopes, &record->head);
    struct model_operator *op = &m->operators[m->operator_count];
    *op = (struct model_operator){
        .record = record,
        .function = capture_definition(m->capture, CAP_FUNCTION, record->function),
        .seq = record->head.seq,
        .end_seq = record->end_seq,
        .number = m->operator_count + 1,
        .module_path = scope.path,
        .iteration = scope.iteration,
        .thread = scopes_thread(scopes, &record->head),
    };
    op->name = capture_string(m->capture, op->function->name);
    m->has_paths = m->has_paths || *scope.path;
    return map_put(&m->operator_index, op->seq, m->operator_count++) && map_put(open, op->thread, op->number);
}

/* A call whose end could not be written down tells of it by its details, which come after success. */
static void add_detail(struct model *m, const struct cap_detail *detail)
{
    struct model_operator *op = model_operator_by_seq(m, detail->operator);
    if (!op || op->detail)
        return;
    op->detail = detail;
    if (!op->end_seq)
        op->end_seq = detail->head.seq;
}

/* The operator that was called last in the thread, when the launch was made in it. */
static struct model_operator *operator_around(struct model *m, const struct map *open, const struct model_launch *l,
                                              uint32_t thread)
{
    uint64_t number;
    if (!open->count || !map_get(open, thread, &number))
        return NULL;
    struct model_operator *op = &m->operators[number - 1];
    bool ended = op->end_seq && model_launch_seq(l) > op->end_seq;
    return l->record->head.scope == op->function->scope && !ended ? op : NULL;
}

/* The place of that description; most launches are where the one before them in their thread was. */
static bool find_place(struct model *m, struct map *places, uint32_t thread, struct model_place wanted, uint32_t *out)
{
    uint64_t index = 0;
    if (map_get(places, thread, &index)) {
        const struct model_place *p = &m->places[index];
        *out = (uint32_t)index;
        if (p->module_path == wanted.module_path && p->iteration == wanted.iteration && p->operator== wanted.operator)
            return true;
    }
    if (!(m->place_count & (m->place_count - 1))) { /* full: they are doubled */
        struct model_place *more = realloc(m->places, 2 * m->place_count * sizeof *more);
        if (!more)
            return false;
        m->places = more;
    }
    *out = (uint32_t)m->place_count;
    m->places[m->place_count++] = wanted;
    return map_put(places, thread, *out);
}

static bool place_launch(struct model *m, struct scopes *scopes, const struct map *open, struct map *places,
                         struct model_launch *l)
{
    if (!open->count && !scopes->now.count)
        return true; /* as long as there is nothing to be in */
    uint32_t thread = scopes_thread(scopes, &l->record->head);
    struct scope scope = scopes_of(scopes, &l->record->head);
    struct model_operator *op = operator_around(m, open, l, thread);
    m->has_paths = m->has_paths || *scope.path;
    if (op)
        op->launches++;
    else if (!*scope.path && !scope.iteration)
        return true;
    return find_place(m, places, thread,
                      (struct model_place){scope.path, scope.iteration, op ? (uint32_t)op->number : 0}, &l->place);
}

struct model_mark *model_mark_by_number(const struct model *m, size_t number)
{
    return number && number <= m->mark_count ? &m->marks[number - 1] : NULL;
}

static bool add_mark(struct model *m, struct scopes *scopes, struct map *marks, const struct cap_mark *record)
{
    const struct model_mark *before = m->mark_count ? &m->marks[m->mark_count - 1] : NULL;
    struct model_mark *mark = &m->marks[m->mark_count];
    *mark = (struct model_mark){.record = record, .number = m->mark_count + 1};
    mark->module_path = scopes_of(scopes, &record->head).path;
    bool step = record->kind == CAP_MARK_STEP;
    mark->has_step = step || (before && before->has_step);
    mark->step = step ? record->number : before ? before->step : 0;
    return map_put(marks, record->head.seq, m->mark_count++);
}

static void add_value(struct model *m, const struct map *marks, const struct cap_value *value)
{
    uint64_t index;
    if (map_get(marks, value->mark, &index) && value->bytes == m->marks[index].record->bytes)
        m->marks[index].value = value;
    else
        capture_reject(m->capture, &value->head, "value of a mark that is not there");
}

bool model_scopes(struct model *m)
{
    struct scopes scopes;
    struct map open = {0};   /* thread -> number of the operator that it called last */
    struct map marks = {0};  /* seq -> index */
    struct map places = {0}; /* thread -> index of its newest launch's */
    size_t next = 0;         /* launch */
    m->places = malloc(sizeof *m->places);
    bool ok = scopes_start(&scopes, m->capture) && m->places;
    if (ok)
        m->places[m->place_count++] = (struct model_place){.module_path = ""};
    for (size_t i = 0; ok && i < m->capture->record_count; i++) {
        const struct cap_head *record = m->capture->records[i];
        struct model_launch *l = next < m->launch_count ? &m->launches[next] : NULL;
        if (l && &l->record->head == record)
            ok = place_launch(m, &scopes, &open, &places, &m->launches[next++]);
        else if (record->type == CAP_RANGE)
            ok = scopes_range(&scopes, (const void *)record);
        else if (record->type == CAP_OPERATOR)
            ok = add_operator(m, &scopes, &open, (const void *)record);
        else if (record->type == CAP_DETAIL)
            add_detail(m, (const void *)record);
        else if (record->type == CAP_MARK)
            ok = add_mark(m, &scopes, &marks, (const void *)record);
        else if (record->type == CAP_VALUE)
            add_value(m, &marks, (const void *)record);
        else if (record->type == CAP_NAME)
            m->names[m->name_count++] = (const void *)record;
    }
    scopes_end(&scopes);
    map_free(&open);
    map_free(&marks);
    map_free(&places);
    return ok;
}
