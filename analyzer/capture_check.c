#include "analyzer/capture_check.h"

#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>

/* Above these a value is a flipped bit, not a program. */
#define BYTES_LIMIT (UINT64_C(1) << 56) /* of memory; sizes below it can be rounded up and added without care */
enum { STACK_LIMIT = 4096, PARAM_LIMIT = 32768, REDZONE_LIMIT = 1 << 30, BUILD_ID_LIMIT = 24 };

/* Type, struct and the name used in messages. The struct is the least that a record of the type holds. */
#define RECORDS(X)                                                                                                     \
    X(CAP_STRING, cap_string, "string")                                                                                \
    X(CAP_STACK, cap_stack, "stack")                                                                                   \
    X(CAP_OBJECT, cap_object, "object")                                                                                \
    X(CAP_HOOK, cap_hook, "hook")                                                                                      \
    X(CAP_OPTION, cap_option, "option")                                                                                \
    X(CAP_NOTE, cap_note_record, "note")                                                                               \
    X(CAP_DEVICE, cap_device, "device")                                                                                \
    X(CAP_CONTEXT, cap_context, "context")                                                                             \
    X(CAP_STREAM, cap_stream, "stream")                                                                                \
    X(CAP_EVENT, cap_event, "event")                                                                                   \
    X(CAP_MODULE, cap_module, "module")                                                                                \
    X(CAP_KERNEL, cap_kernel, "kernel")                                                                                \
    X(CAP_CONFIG, cap_config, "config")                                                                                \
    X(CAP_ALLOC, cap_alloc, "allocation")                                                                              \
    X(CAP_FREE, cap_free, "free")                                                                                      \
    X(CAP_COPY, cap_copy, "copy")                                                                                      \
    X(CAP_SET, cap_set, "memset")                                                                                      \
    X(CAP_LAUNCH, cap_launch, "launch")                                                                                \
    X(CAP_SYNC, cap_sync, "synchronisation")                                                                           \
    X(CAP_EVENT_OP, cap_event_op_record, "event operation")                                                            \
    X(CAP_TIMES, cap_times, "times")                                                                                   \
    X(CAP_SNAPSHOT, cap_snapshot, "snapshot")                                                                          \
    X(CAP_DAMAGE, cap_damage, "damage")                                                                                \
    X(CAP_ERROR, cap_error, "error")                                                                                   \
    X(CAP_CHECKED, cap_checked, "check")                                                                               \
    X(CAP_DAMAGE_LOOK, cap_damage_look, "damage look")                                                                 \
    X(CAP_HEALTH, cap_health, "health")                                                                                \
    X(CAP_HEALTH_CHECKED, cap_health_checked, "health check")                                                          \
    X(CAP_PATH, cap_path, "path")                                                                                      \
    X(CAP_RANGE, cap_range, "range")                                                                                   \
    X(CAP_FUNCTION, cap_function, "library function")                                                                  \
    X(CAP_OPERATOR, cap_operator, "operator")                                                                          \
    X(CAP_DETAIL, cap_detail, "operator detail")                                                                       \
    X(CAP_NAME, cap_name, "buffer name")                                                                               \
    X(CAP_REGION, cap_region, "region")                                                                                \
    X(CAP_MARK, cap_mark, "mark")                                                                                      \
    X(CAP_VALUE, cap_value, "value")                                                                                   \
    X(CAP_GRAPH, cap_graph, "graph")                                                                                   \
    X(CAP_GRAPH_NODE, cap_graph_node, "graph node")                                                                    \
    X(CAP_GRAPH_LAUNCH, cap_graph_launch, "graph launch")                                                              \
    X(CAP_ORDER, cap_order, "order")                                                                                   \
    X(CAP_END, cap_end, "end")                                                                                         \
    X(CAP_GUARD, cap_guard, "guard")                                                                                   \
    X(CAP_RESERVE, cap_reserve, "reservation")                                                                         \
    X(CAP_BAD_FREE, cap_bad_free, "bad free")                                                                          \
    X(CAP_HELD_DAMAGE, cap_held_damage, "damage of freed memory")                                                      \
    X(CAP_THREAD_STATE, cap_thread_state, "thread state")                                                              \
    X(CAP_HOST_FUNCTION, cap_host_function, "function of the host")                                                    \
    X(CAP_STREAM_STATE, cap_stream_state, "stream state")                                                              \
    X(CAP_STREAM_VALUE, cap_stream_value, "stream value")                                                              \
    X(CAP_PACE, cap_pace, "pace")                                                                                      \
    X(CAP_BUDGET, cap_budget, "budget")                                                                                \
    X(CAP_WRITER, cap_writer, "writer")                                                                                \
    X(CAP_HOST_MAP, cap_host_map, "host mapping")

static size_t least_bytes(unsigned type)
{
    switch (type) {
#define X(type, structure, name)                                                                                       \
    case type:                                                                                                         \
        return sizeof(struct structure);
        RECORDS(X)
#undef X
    default:
        return sizeof(struct cap_head);
    }
}

static const char *type_name(unsigned type)
{
    switch (type) {
#define X(type, structure, name)                                                                                       \
    case type:                                                                                                         \
        return name;
        RECORDS(X)
#undef X
    default:
        return "unknown";
    }
}

static bool no(char *why, const char *format, ...) __attribute__((format(printf, 2, 3)));
static bool no(char *why, const char *format, ...)
{
    va_list args;
    va_start(args, format);
    vsnprintf(why, CAPTURE_CHECK_TEXT, format, args);
    va_end(args);
    return false;
}

/* `count` items of `item` bytes behind the fixed part must lie inside the record. */
static bool tail_fits(const struct cap_head *record, size_t fixed, uint64_t count, size_t item, char *why)
{
    if (count <= (record->size - fixed) / item)
        return true;
    return no(why, "%s record of %u bytes claims %" PRIu64 " items behind its first %zu bytes", type_name(record->type),
              record->size, count, fixed);
}

/* width x height x depth with pitches, starting at `address`, must be a size that memory has, and not wrap around. */
static bool extent_fits(uint64_t address, const uint64_t size[3], const uint64_t pitch[2])
{
    uint64_t last = 0, step;
    if (!size[0] || !size[1] || !size[2])
        return true;
    return !__builtin_mul_overflow(size[1] - 1, pitch[0], &step) && !__builtin_add_overflow(last, step, &last) &&
           !__builtin_mul_overflow(size[2] - 1, pitch[1], &step) && !__builtin_add_overflow(last, step, &last) &&
           !__builtin_add_overflow(last, size[0], &last) && last <= BYTES_LIMIT &&
           !__builtin_add_overflow(last, address, &last);
}

static bool check_kernel(const struct cap_kernel *k, char *why)
{
    if (!tail_fits(&k->head, sizeof *k, k->param_count, sizeof(struct cap_kernel_param), why))
        return false;
    if (k->param_bytes > PARAM_LIMIT)
        return no(why, "kernel %u claims %u bytes of parameters; at most %d are possible", k->id, k->param_bytes,
                  PARAM_LIMIT);
    const struct cap_kernel_param *params = (const struct cap_kernel_param *)(k + 1);
    for (uint32_t i = 0; i < k->param_count; i++)
        if (params[i].offset > k->param_bytes || params[i].size > k->param_bytes - params[i].offset)
            return no(why, "kernel %u: parameter %u lies outside its %u bytes of parameters", k->id, i, k->param_bytes);
    return true;
}

static bool check_alloc(const struct cap_alloc *a, char *why)
{
    uint64_t end;
    if (__builtin_add_overflow(a->address, a->bytes, &end))
        return no(why, "allocation %u wraps around the end of the address space", a->id);
    if (a->bytes > BYTES_LIMIT)
        return no(why, "allocation %u of %" PRIu64 " bytes", a->id, a->bytes);
    if (a->head_redzone > REDZONE_LIMIT || a->tail_redzone > REDZONE_LIMIT)
        return no(why, "allocation %u claims impossible redzones (%u and %u bytes)", a->id, a->head_redzone,
                  a->tail_redzone);
    return true;
}

static bool check_damage(const struct cap_damage *d, char *why)
{
    if (d->length == 0 || d->length > REDZONE_LIMIT)
        return no(why, "damage of %" PRIu64 " bytes", d->length);
    if (d->clean_seq > d->seen_seq)
        return no(why, "damage seen at %" PRIu64 ", before it was intact at %" PRIu64, d->seen_seq, d->clean_seq);
    if (d->offset > INT64_MAX - (int64_t)REDZONE_LIMIT)
        return no(why, "damage at offset %" PRId64, d->offset);
    return true;
}

static bool check_guard(const struct cap_guard *g, char *why)
{
    uint64_t end, mapped_end;
    if (__builtin_add_overflow(g->range, g->range_bytes, &end) ||
        __builtin_add_overflow(g->mapped, g->mapped_bytes, &mapped_end) || g->mapped < g->range || mapped_end > end ||
        !g->mapped_bytes || g->under > 1)
        return no(why, "guard pages of allocation %u: an impossible mapping", g->allocation);
    return true;
}

static bool check_reserve(const struct cap_reserve *r, char *why)
{
    uint64_t end;
    if (r->address < r->side || __builtin_add_overflow(r->address, r->bytes, &end) ||
        __builtin_add_overflow(end, r->side, &end))
        return no(why, "reservation wraps around the end of the address space");
    return true;
}

static bool check_held(const struct cap_held_damage *d, char *why)
{
    uint64_t end;
    if (!d->length || __builtin_add_overflow(d->offset, d->length, &end) || d->clean_seq > d->seen_seq)
        return no(why, "damage of freed allocation %u: an impossible range", d->allocation);
    return true;
}

static bool check_health(const struct cap_health *h, char *why)
{
    uint64_t end;
    if (__builtin_add_overflow(h->offset, h->bytes, &end) || h->first < h->offset || h->first >= end)
        return no(why, "health of allocation %u: first value at %" PRIu64 ", outside its range", h->allocation,
                  h->first);
    if ((uint64_t)h->nan + h->inf + h->over == 0 || (uint64_t)h->nan + h->inf + h->over > h->words ||
        h->words > h->bytes / 4)
        return no(why, "health of allocation %u: impossible counts", h->allocation);
    return true;
}

static bool check_copy(const struct cap_copy *c, char *why)
{
    const uint64_t size[3] = {c->width, c->height, c->depth};
    if (!extent_fits(c->target, size, (const uint64_t[]){c->target_pitch, c->target_slice_pitch}) ||
        !extent_fits(c->source, size, (const uint64_t[]){c->source_pitch, c->source_slice_pitch}))
        return no(why, "copy of impossible size");
    return true;
}

static bool check_set(const struct cap_set *s, char *why)
{
    if (!extent_fits(s->target, (const uint64_t[]){s->width, s->height, 1}, (const uint64_t[]){s->pitch, 0}))
        return no(why, "memset of impossible size");
    return true;
}

/* The least that the body of a node of the kind holds. */
static size_t node_body_bytes(const struct cap_graph_node *n)
{
    if (n->flags & (CAP_NODE_UNKNOWN | CAP_NODE_ARGS_UNKNOWN))
        return 0;
    switch ((enum cap_graph_node_kind)n->kind) {
    case CAP_NODE_COPY:
        return sizeof(struct cap_copy);
    case CAP_NODE_SET:
        return sizeof(struct cap_set);
    case CAP_NODE_ALLOC:
    case CAP_NODE_FREE:
        return sizeof(struct cap_graph_memory);
    default:
        return 0;
    }
}

static bool check_node(const struct cap_graph_node *n, char *why)
{
    const uint32_t *dependencies = (const uint32_t *)(n + 1);
    if (n->kind >= CAP_NODE_KINDS)
        return no(why, "node of graph %u is of kind %u", n->graph, n->kind);
    if (!tail_fits(&n->head, sizeof *n, n->dependency_count, sizeof *dependencies, why))
        return false;
    for (uint32_t i = 0; i < n->dependency_count; i++)
        if (dependencies[i] >= n->index)
            return no(why, "node %u of graph %u depends on node %u, which comes later", n->index, n->graph,
                      dependencies[i]);
    size_t ends = ((size_t)n->dependency_count * sizeof *dependencies + 7) & ~(size_t)7;
    if (ends > n->head.size - sizeof *n || n->body_bytes > n->head.size - sizeof *n - ends ||
        n->body_bytes < node_body_bytes(n) || n->body_bytes > PARAM_LIMIT)
        return no(why, "node %u of graph %u claims %u bytes", n->index, n->graph, n->body_bytes);
    const uint8_t *body = (const uint8_t *)dependencies + ends;
    if (n->flags & (CAP_NODE_UNKNOWN | CAP_NODE_ARGS_UNKNOWN))
        return true;
    if (n->kind == CAP_NODE_COPY)
        return check_copy((const void *)body, why);
    if (n->kind == CAP_NODE_SET)
        return check_set((const void *)body, why);
    return true;
}

bool capture_check_shape(const struct cap_head *record, char *why)
{
    size_t least = least_bytes(record->type);
    if (record->size < least)
        return no(why, "%s record of %u bytes; at least %zu were expected", type_name(record->type), record->size,
                  least);
    switch (record->type) {
    case CAP_STRING: {
        const struct cap_string *s = (const void *)record;
        return tail_fits(record, sizeof *s, s->bytes, 1, why);
    }
    case CAP_STACK: {
        const struct cap_stack *s = (const void *)record;
        if (s->count > STACK_LIMIT)
            return no(why, "stack %u claims %u frames", s->id, s->count);
        return tail_fits(record, sizeof *s, s->count, sizeof(uint64_t), why);
    }
    case CAP_OBJECT: {
        const struct cap_object *o = (const void *)record;
        if (o->start > o->end || o->build_id_bytes > BUILD_ID_LIMIT)
            return no(why, "object with an impossible mapping or build id");
        return true;
    }
    case CAP_KERNEL:
        return check_kernel((const void *)record, why);
    case CAP_ALLOC:
        return check_alloc((const void *)record, why);
    case CAP_COPY:
        /* What the driver refused may have had any size; nothing but its place is looked at. */
        return ((const struct cap_copy *)record)->result || check_copy((const void *)record, why);
    case CAP_SET:
        return ((const struct cap_set *)record)->result || check_set((const void *)record, why);
    case CAP_GRAPH_NODE:
        return check_node((const void *)record, why);
    case CAP_GRAPH_LAUNCH: {
        const struct cap_launch *l = (const void *)record;
        if (l->outcome > CAP_LAUNCH_FAILED || l->param_bytes)
            return no(why, "launch of a graph with outcome %u and %u bytes of arguments", l->outcome, l->param_bytes);
        return true;
    }
    case CAP_LAUNCH: {
        const struct cap_launch *l = (const void *)record;
        if (l->outcome > CAP_LAUNCH_FAILED)
            return no(why, "launch with outcome %u", l->outcome);
        return (l->flags & CAP_LAUNCH_ARGS_UNKNOWN) || tail_fits(record, sizeof *l, l->param_bytes, 1, why);
    }
    case CAP_TIMES: {
        const struct cap_times *t = (const void *)record;
        return tail_fits(record, sizeof *t, t->count, sizeof(struct cap_time), why);
    }
    case CAP_BUDGET: {
        const struct cap_budget *b = (const void *)record;
        if (b->part >= CAP_BUDGET_PARTS || !(b->share >= 0 && b->share <= 1))
            return no(why, "budget of part %u", b->part);
        return true;
    }
    case CAP_PACE: {
        const struct cap_pace *p = (const void *)record;
        if (p->kind >= CAP_PACE_KINDS || !(p->share >= 0 && p->share <= 1))
            return no(why, "pace of kind %u", p->kind);
        return true;
    }
    case CAP_STREAM_VALUE: {
        const struct cap_stream_value *v = (const void *)record;
        if (v->op > CAP_VALUE_WRITE || (v->bytes != 4 && v->bytes != 8))
            return no(why, "stream value of operation %u, %u bytes", v->op, v->bytes);
        return true;
    }
    case CAP_HOST_MAP: {
        const struct cap_host_map *map = (const void *)record;
        return map->start < map->end || no(why, "host mapping that ends before it begins");
    }
    case CAP_DAMAGE:
        return check_damage((const void *)record, why);
    case CAP_HEALTH:
        return check_health((const void *)record, why);
    case CAP_GUARD:
        return check_guard((const void *)record, why);
    case CAP_RESERVE:
        return check_reserve((const void *)record, why);
    case CAP_HELD_DAMAGE:
        return check_held((const void *)record, why);
    case CAP_BAD_FREE:
        return ((const struct cap_bad_free *)record)->kind <= CAP_BAD_FREE_HOST ||
               no(why, "bad free of kind %u", ((const struct cap_bad_free *)record)->kind);
    default:
        return capture_check_scope_shape(record, why);
    }
}

uint32_t capture_check_defines(const struct cap_head *record)
{
    switch (record->type) {
    case CAP_STRING:
        return ((const struct cap_string *)record)->id;
    case CAP_STACK:
        return ((const struct cap_stack *)record)->id;
    case CAP_CONTEXT:
        return ((const struct cap_context *)record)->destroyed ? 0 : ((const struct cap_context *)record)->id;
    case CAP_STREAM:
        return ((const struct cap_stream *)record)->destroyed ? 0 : ((const struct cap_stream *)record)->id;
    case CAP_EVENT:
        return ((const struct cap_event *)record)->destroyed ? 0 : ((const struct cap_event *)record)->id;
    case CAP_MODULE:
        return ((const struct cap_module *)record)->id;
    case CAP_KERNEL:
        return ((const struct cap_kernel *)record)->id;
    case CAP_CONFIG:
        return ((const struct cap_config *)record)->id;
    case CAP_ALLOC:
        return ((const struct cap_alloc *)record)->id;
    case CAP_PATH:
        return ((const struct cap_path *)record)->id;
    case CAP_FUNCTION:
        return ((const struct cap_function *)record)->id;
    case CAP_REGION:
        return ((const struct cap_region *)record)->ended ? 0 : ((const struct cap_region *)record)->id;
    case CAP_GRAPH: {
        const struct cap_graph *g = (const void *)record;
        return g->flags & CAP_GRAPH_DESTROYED ? 0 : g->id;
    }
    default:
        return 0;
    }
}

/* `id` must name a record of `type`; 0 is allowed when `optional`. */
static bool refers(const struct capture *c, const struct cap_head *record, enum cap_type type, uint32_t id,
                   bool optional, char *why)
{
    if ((optional && id == 0) || capture_definition(c, type, id))
        return true;
    return no(why, "%s record refers to %s %u, which is not there", type_name(record->type), type_name(type), id);
}

static bool check_snapshot(const struct capture *c, const struct cap_snapshot *s, char *why)
{
    if (!refers(c, &s->head, CAP_ALLOC, s->allocation, false, why))
        return false;
    const struct cap_alloc *a = capture_definition(c, CAP_ALLOC, s->allocation);
    if (s->offset > a->bytes || s->bytes > a->bytes - s->offset)
        return no(why, "snapshot [%" PRIu64 ", +%" PRIu64 ") lies outside allocation %u of %" PRIu64 " bytes",
                  s->offset, s->bytes, a->id, a->bytes);
    if (s->when > CAP_AFTER)
        return no(why, "snapshot taken at moment %u", s->when);
    return true;
}

bool capture_check_references(const struct capture *c, const struct cap_head *record, char *why)
{
    switch (record->type) {
    case CAP_KERNEL: {
        const struct cap_kernel *k = (const void *)record;
        return refers(c, record, CAP_MODULE, k->module, true, why) &&
               refers(c, record, CAP_STRING, k->name, false, why);
    }
    case CAP_FREE:
        return refers(c, record, CAP_ALLOC, ((const struct cap_free *)record)->id, true, why);
    case CAP_LAUNCH: {
        const struct cap_launch *l = (const void *)record;
        return refers(c, record, CAP_KERNEL, l->kernel, false, why) &&
               refers(c, record, CAP_CONFIG, l->config, false, why) &&
               refers(c, record, CAP_STREAM, l->stream, true, why);
    }
    case CAP_GRAPH_NODE: {
        const struct cap_graph_node *n = (const void *)record;
        bool unknown = n->kind != CAP_NODE_KERNEL || (n->flags & CAP_NODE_UNKNOWN);
        return refers(c, record, CAP_GRAPH, n->graph, false, why) &&
               refers(c, record, CAP_KERNEL, n->kernel, unknown, why) &&
               refers(c, record, CAP_CONFIG, n->config, unknown, why);
    }
    case CAP_GRAPH_LAUNCH: {
        const struct cap_graph_launch *l = (const void *)record;
        return refers(c, record, CAP_GRAPH, l->graph, false, why) &&
               refers(c, record, CAP_STREAM, l->launch.stream, true, why);
    }
    case CAP_ORDER: {
        const struct cap_order *o = (const void *)record;
        return refers(c, record, CAP_STREAM, o->stream, true, why) && refers(c, record, CAP_EVENT, o->event, true, why);
    }
    case CAP_SNAPSHOT:
        return check_snapshot(c, (const void *)record, why);
    case CAP_DAMAGE:
        return refers(c, record, CAP_ALLOC, ((const struct cap_damage *)record)->allocation, false, why);
    case CAP_HEALTH:
        return refers(c, record, CAP_ALLOC, ((const struct cap_health *)record)->allocation, false, why);
    case CAP_GUARD:
        return refers(c, record, CAP_ALLOC, ((const struct cap_guard *)record)->allocation, false, why);
    case CAP_BAD_FREE:
        return refers(c, record, CAP_ALLOC, ((const struct cap_bad_free *)record)->allocation, true, why);
    case CAP_HELD_DAMAGE: {
        const struct cap_held_damage *d = (const void *)record;
        const struct cap_alloc *a = capture_definition(c, CAP_ALLOC, d->allocation);
        if (!refers(c, record, CAP_ALLOC, d->allocation, false, why))
            return false;
        return d->offset + d->length <= a->bytes || no(why, "damage outside of freed allocation %u", d->allocation);
    }
    default:
        return capture_check_scope_references(c, record, why);
    }
}
