#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "common/diag.h"
#include "analyzer/model.h"
#include "analyzer/model_graph.h"
#include "analyzer/name.h"

/* How many records of each type there are: every array is allocated once. */
struct census {
    size_t of[256];
};

static struct census count_types(const struct capture *c)
{
    struct census census = {{0}};
    for (size_t i = 0; i < c->record_count; i++)
        if (c->records[i]->type < 256)
            census.of[c->records[i]->type]++;
    return census;
}

static void *array(size_t count, size_t size)
{
    return calloc(count ? count : 1, size);
}

static bool make_arrays(struct model *m, const struct census *n)
{
    m->kernels = array(n->of[CAP_KERNEL] + n->of[CAP_GRAPH], sizeof *m->kernels);
    m->allocations = array(n->of[CAP_ALLOC] + n->of[CAP_REGION], sizeof *m->allocations);
    m->region_records = array(n->of[CAP_REGION], sizeof *m->region_records);
    m->launches = array(n->of[CAP_LAUNCH] + n->of[CAP_GRAPH_LAUNCH], sizeof *m->launches);
    m->changes = array(2 * n->of[CAP_ALLOC] + n->of[CAP_FREE] + n->of[CAP_REGION], sizeof *m->changes);
    m->snapshots = array(n->of[CAP_SNAPSHOT], sizeof(void *));
    m->damages = array(n->of[CAP_DAMAGE], sizeof(void *));
    m->looks = array(n->of[CAP_DAMAGE_LOOK], sizeof(void *));
    m->reserves = array(n->of[CAP_RESERVE], sizeof(void *));
    m->host_maps = array(n->of[CAP_HOST_MAP], sizeof(void *));
    m->errors = array(n->of[CAP_ERROR], sizeof(void *));
    m->bad_frees = array(n->of[CAP_FREE], sizeof(void *));
    m->notes = array(n->of[CAP_NOTE], sizeof(void *));
    m->operators = array(n->of[CAP_OPERATOR], sizeof *m->operators);
    m->marks = array(n->of[CAP_MARK], sizeof *m->marks);
    m->names = array(n->of[CAP_NAME], sizeof(void *));
    m->options = array(n->of[CAP_OPTION], sizeof(void *));
    return m->kernels && m->allocations && m->launches && m->changes && m->snapshots && m->damages && m->looks &&
           m->reserves && m->host_maps && m->errors && m->bad_frees && m->notes && m->options && m->operators &&
           m->marks && m->names && m->region_records;
}

static bool add_kernel(struct model *m, const struct cap_kernel *record)
{
    uint64_t known;
    if (map_get(&m->kernel_index, record->id, &known)) { /* described again */
        m->kernels[known].record = record;
        return true;
    }
    struct model_kernel *k = &m->kernels[m->kernel_count];
    k->record = record;
    k->module = capture_definition(m->capture, CAP_MODULE, record->module);
    k->mangled = capture_string(m->capture, record->name);
    k->name = name_short(k->mangled);
    k->full_name = name_full(k->mangled);
    bool ok = k->name && k->full_name && map_put(&m->kernel_index, record->id, m->kernel_count);
    m->kernel_count++;
    return ok;
}

static bool add_allocation(struct model *m, const struct cap_alloc *record)
{
    struct model_allocation *a = &m->allocations[m->allocation_count];
    *a = (struct model_allocation){
        .record = record,
        .id = record->id,
        .address = record->address,
        .bytes = record->bytes,
        .seq = record->head.seq,
        .free_seq = UINT64_MAX,
    };
    m->changes[m->change_count++] = (struct model_change){record->head.seq, a, false};
    return map_put(&m->allocation_index, record->id, m->allocation_count++);
}

/* A region is an allocation inside another one: it has an id of its own, and the other's kind. */
static bool add_region(struct model *m, const struct cap_region *record)
{
    struct model_allocation *old = model_allocation_by_id(m, record->id);
    const struct model_allocation *parent = model_allocation_by_id(m, record->allocation);
    if (record->ended) {
        if (!old || !old->parent || old->free_seq != UINT64_MAX || old->seq >= record->head.seq)
            return true; /* begun or ended elsewhere */
        old->free_seq = record->head.seq;
        m->changes[m->change_count++] = (struct model_change){record->head.seq, old, true};
        return true;
    }
    if (old || !parent || parent->parent) {
        capture_reject(m->capture, &record->head, "region %u of allocation %u, which cannot be", record->id,
                       record->allocation);
        return true;
    }
    struct cap_alloc *stand_in = &m->region_records[m->region_count++];
    *stand_in = *parent->record;
    stand_in->head = record->head;
    stand_in->id = record->id;
    stand_in->stack = record->stack;
    stand_in->name = record->name;
    stand_in->address = record->address;
    stand_in->bytes = record->bytes;
    stand_in->head_redzone = stand_in->tail_redzone = 0;
    struct model_allocation *a = &m->allocations[m->allocation_count];
    *a = (struct model_allocation){
        .record = stand_in,
        .id = record->id,
        .address = record->address,
        .bytes = record->bytes,
        .seq = record->head.seq,
        .free_seq = UINT64_MAX,
        .parent = parent,
    };
    m->changes[m->change_count++] = (struct model_change){record->head.seq, a, false};
    return map_put(&m->allocation_index, record->id, m->allocation_count++);
}

/* Other errors are of earlier work, or of a driver that is not there any more. */
static bool refused_address(int32_t result)
{
    return result == 1 /* INVALID_VALUE */ || result == 713 /* HOST_MEMORY_NOT_REGISTERED */;
}

static bool no_context(int32_t result)
{
    return result == 201 /* INVALID_CONTEXT */ || result == 709 /* CONTEXT_IS_DESTROYED */;
}

static void add_free(struct model *m, const struct cap_free *record)
{
    struct model_allocation *a = model_allocation_by_id(m, record->id);
    if (!record->id) {
        if (!record->result || refused_address(record->result) || no_context(record->result))
            m->bad_frees[m->bad_free_count++] = record;
        return;
    }
    if (record->result != 0) { /* the driver refused: it is still there */
        if (refused_address(record->result))
            m->bad_frees[m->bad_free_count++] = record;
        return;
    }
    if (!a || a->seq >= record->head.seq) {
        capture_reject(m->capture, &record->head, "allocation %u is freed before it exists", record->id);
        return;
    }
    if (a->released)
        return;
    if (a->free_seq != UINT64_MAX) {
        capture_reject(m->capture, &record->head, "allocation %u is freed a second time", record->id);
        return;
    }
    a->free_seq = record->head.seq;
    a->free_stack = record->stack;
    m->changes[m->change_count++] = (struct model_change){record->head.seq, a, true};
}

/* What lived in a context goes with it. */
static void end_context(struct model *m, const struct cap_context *record)
{
    for (size_t i = 0; record->destroyed && i < m->allocation_count; i++) {
        struct model_allocation *a = &m->allocations[i];
        if (a->parent || a->record->context != record->id || a->free_seq != UINT64_MAX)
            continue;
        a->free_seq = record->head.seq;
        a->released = true;
        m->changes[m->change_count++] = (struct model_change){record->head.seq, a, true};
    }
}

static bool add_launch(struct model *m, const struct cap_launch *record)
{
    uint64_t kernel;
    if (!map_get(&m->kernel_index, record->kernel, &kernel)) {
        capture_reject(m->capture, &record->head, "launch of kernel %u, which is described only later", record->kernel);
        return true;
    }
    m->launches[m->launch_count] = (struct model_launch){
        .record = record,
        .number = (uint32_t)m->launch_count + 1,
        .kernel = &m->kernels[kernel],
        .config = capture_definition(m->capture, CAP_CONFIG, record->config),
    };
    m->launch_count++;
    return true;
}

static bool add_graph_launch(struct model *m, const struct cap_graph_launch *record)
{
    static const struct cap_config nothing;
    const struct model_graph *graph = model_graph_by_id(m, record->graph);
    if (!graph) {
        capture_reject(m->capture, &record->launch.head, "launch of graph %u, which is described only later",
                       record->graph);
        return true;
    }
    struct model_launch *l = &m->launches[m->launch_count];
    *l = (struct model_launch){
        .record = &record->launch,
        .number = (uint32_t)m->launch_count + 1,
        .kernel = graph->kernel,
        .config = &nothing,
    };
    m->launch_count++;
    return true;
}

/* Functions that write memory, or let others write it, and have no record of their own (shim/wrap_unseen.c); with their
 * versions and forms. */
static bool writes_unseen(const struct model *m, const char *name)
{
    static const char *const all[] = {
        "cuStreamWaitValue", "cuStreamWriteValue", "cuStreamBatchMemOp",
        "cuLaunchGrid",      "cuIpcGetMemHandle",  "cuMemPoolExportPointer",
    };
    for (size_t i = 0; i < sizeof all / sizeof *all; i++)
        if (strncmp(name, all[i], strlen(all[i])) == 0)
            return true;
    /* Older captures tell of no graphs. */
    return strcmp(name, "cuLaunch") == 0 || (!m->graph_count && strncmp(name, "cuGraphLaunch", 13) == 0);
}

/* Once they were counted only, as those were. */
static bool is_batch(const char *name)
{
    return strncmp(name, "cuMemcpyBatchAsync", 18) == 0 || strncmp(name, "cuMemcpy3DBatchAsync", 20) == 0;
}

static void take_hooks(struct model *m)
{
    bool batches = false;
    for (size_t i = 0; i < m->capture->record_count; i++) {
        const struct cap_hook *hook = (const void *)m->capture->records[i];
        if (hook->head.type != CAP_HOOK)
            continue;
        const char *name = capture_string(m->capture, hook->name);
        if (hook->calls && writes_unseen(m, name))
            m->uses_graphs = true;
        batches = batches || (hook->calls && is_batch(name));
        m->records_order = m->records_order || strcmp(name, "cuLaunchHostFunc") == 0; /* hooked since then */
    }
    if (batches && !m->records_order)
        m->uses_graphs = true;
}

static bool add_record(struct model *m, const struct cap_head *record)
{
    switch (record->type) {
    case CAP_ALLOC:
        return add_allocation(m, (const void *)record);
    case CAP_REGION:
        return add_region(m, (const void *)record);
    case CAP_FREE:
        add_free(m, (const void *)record);
        return true;
    case CAP_CONTEXT:
        end_context(m, (const void *)record);
        return true;
    case CAP_LAUNCH:
        return add_launch(m, (const void *)record);
    case CAP_GRAPH_LAUNCH:
        return add_graph_launch(m, (const void *)record);
    case CAP_SNAPSHOT:
        m->snapshots[m->snapshot_count++] = (const void *)record;
        return true;
    case CAP_DAMAGE:
        m->damages[m->damage_count++] = (const void *)record;
        return true;
    case CAP_DAMAGE_LOOK:
        m->looks[m->look_count++] = (const void *)record;
        return true;
    case CAP_RESERVE:
        m->reserves[m->reserve_count++] = (const void *)record;
        return true;
    case CAP_HOST_MAP:
        m->host_maps[m->host_map_count++] = (const void *)record;
        return true;
    case CAP_GUARD:
        m->guard_count++;
        return true;
    case CAP_ERROR:
        m->errors[m->error_count++] = (const void *)record;
        return true;
    case CAP_NOTE:
        m->notes[m->note_count++] = (const void *)record;
        return true;
    case CAP_OPTION:
        m->options[m->option_count++] = (const void *)record;
        return true;
    case CAP_DEVICE:
        if (!m->device)
            m->device = (const void *)record;
        return true;
    case CAP_CHECKED:
        m->redzones_checked += ((const struct cap_checked *)record)->redzones;
        return true;
    case CAP_END:
        m->end = (const void *)record;
        return true;
    default:
        return true;
    }
}

static int compare_u64(uint64_t a, uint64_t b)
{
    return a < b ? -1 : a > b;
}

static int by_launch(const void *a, const void *b)
{
    const struct cap_snapshot *x = *(const struct cap_snapshot *const *)a, *y = *(const struct cap_snapshot *const *)b;
    int order = compare_u64(x->launch, y->launch);
    order = order ? order : compare_u64(x->when, y->when);
    order = order ? order : compare_u64(x->allocation, y->allocation);
    order = order ? order : compare_u64(x->offset, y->offset);
    return order ? order : compare_u64(x->head.seq, y->head.seq);
}

static void join_snapshots(struct model *m)
{
    qsort(m->snapshots, m->snapshot_count, sizeof(void *), by_launch);
    size_t kept = 0;
    for (size_t i = 0; i < m->snapshot_count; i++) {
        struct model_launch *l = model_launch_by_seq(m, m->snapshots[i]->launch);
        if (!l && m->snapshots[i]->launch < m->capture->header.dropped_before)
            continue; /* it was dropped */
        if (!l) {
            capture_reject(m->capture, &m->snapshots[i]->head,
                           "snapshot of launch record %" PRIu64 ", which is not there", m->snapshots[i]->launch);
            continue;
        }
        if (!l->snapshots)
            l->snapshots = (uint32_t)kept + 1;
        m->snapshots[kept++] = m->snapshots[i];
    }
    m->snapshot_count = kept;
}

/* The first error behind a failed launch, before the next launch of the same outcome, is its own. */
static bool join_errors(struct model *m)
{
    size_t failed = 0;
    for (size_t i = 0; i < m->launch_count; i++)
        failed += m->launches[i].record->outcome == CAP_LAUNCH_FAILED;
    m->refusals = array(failed, sizeof *m->refusals);
    for (size_t i = 0, e = 0; m->refusals && failed && i < m->launch_count; i++) {
        const struct model_launch *l = &m->launches[i];
        if (l->record->outcome != CAP_LAUNCH_FAILED)
            continue;
        while (e < m->error_count && m->errors[e]->head.seq < model_launch_seq(l))
            e++;
        if (e < m->error_count)
            m->refusals[m->refusal_count++] = (struct model_refusal){l->number, m->errors[e++]};
    }
    return m->refusals;
}

/* A graph of which not all is known may write anywhere. */
static void note_unseen_graphs(struct model *m)
{
    for (size_t i = 0; i < m->launch_count && !m->uses_graphs; i++) {
        const struct model_launch *l = &m->launches[i];
        bool again = i && m->launches[i - 1].kernel == l->kernel &&
                     model_launch_version(&m->launches[i - 1]) == model_launch_version(l);
        if (!model_launch_graph(l) || again)
            continue;
        struct model_nodes nodes = model_launch_nodes(l);
        m->uses_graphs = !nodes.complete;
        model_nodes_free(&nodes);
    }
}

enum status model_build(struct capture *c, struct model **out, struct diag *diag)
{
    *out = NULL;
    struct census census = count_types(c);
    struct model *m = calloc(1, sizeof *m);
    if (!m)
        return diag_set(diag, STATUS_NO_MEMORY, c->path, -1, "no memory");
    m->capture = c;
    if (census.of[CAP_LAUNCH] + census.of[CAP_GRAPH_LAUNCH] >= UINT32_MAX || census.of[CAP_SNAPSHOT] >= UINT32_MAX) {
        model_free(m);
        return diag_set(diag, STATUS_BAD_INPUT, c->path, -1, "more than %u launches or snapshots", UINT32_MAX);
    }
    bool ok = make_arrays(m, &census);
    /* Kernels first: another thread may have described one with a later seq than the launch has. Graphs stand behind
     * them. */
    for (size_t i = 0; i < c->record_count && ok; i++)
        if (c->records[i]->type == CAP_KERNEL)
            ok = add_kernel(m, (const void *)c->records[i]);
    for (size_t i = 0; i < c->record_count && ok; i++)
        if (c->records[i]->type == CAP_GRAPH || c->records[i]->type == CAP_GRAPH_NODE)
            ok = model_graphs_add(m, c->records[i]);
    for (size_t i = 0; i < c->record_count && ok; i++)
        ok = add_record(m, c->records[i]);
    ok = ok && model_scopes(m) && join_errors(m);
    if (!ok) {
        model_free(m);
        return diag_set(diag, STATUS_NO_MEMORY, c->path, -1, "no memory for the model of %zu records", c->record_count);
    }
    take_hooks(m);
    join_snapshots(m);
    note_unseen_graphs(m);
    m->uses_graphs = m->uses_graphs || c->header.dropped_before; /* what was dropped wrote memory, too */
    model_times(m);
    *out = m;
    return STATUS_OK;
}

void model_free(struct model *m)
{
    if (!m)
        return;
    for (size_t i = 0; i < m->kernel_count; i++) {
        free(m->kernels[i].name);
        free(m->kernels[i].full_name);
    }
    free(m->kernels);
    free(m->allocations);
    free(m->launches);
    free(m->places);
    free(m->refusals);
    free(m->operators);
    free(m->marks);
    free(m->region_records);
    free((void *)m->names);
    map_free(&m->operator_index);
    free(m->changes);
    free((void *)m->snapshots);
    free((void *)m->damages);
    free((void *)m->looks);
    free((void *)m->reserves);
    free((void *)m->host_maps);
    free((void *)m->errors);
    free((void *)m->bad_frees);
    free((void *)m->notes);
    free((void *)m->options);
    map_free(&m->kernel_index);
    map_free(&m->allocation_index);
    model_graphs_free(m);
    free(m);
}

/* ---- look-ups ---- */

struct model_allocation *model_allocation_by_id(const struct model *m, uint32_t id)
{
    uint64_t index;
    return map_get(&m->allocation_index, id, &index) ? &m->allocations[index] : NULL;
}

struct model_launch *model_launch_by_number(const struct model *m, size_t number)
{
    return number >= 1 && number <= m->launch_count ? &m->launches[number - 1] : NULL;
}

struct model_launch *model_launch_by_seq(const struct model *m, uint64_t seq)
{
    size_t index = model_first_launch_from(m, seq); /* no map: there may be tens of millions */
    return index < m->launch_count && model_launch_seq(&m->launches[index]) == seq ? &m->launches[index] : NULL;
}

const char *model_option(const struct model *m, const char *name)
{
    for (size_t i = m->option_count; i-- > 0;)
        if (strcasecmp(capture_string(m->capture, m->options[i]->name), name) == 0)
            return capture_string(m->capture, m->options[i]->value);
    return NULL;
}

uint32_t model_launch_version(const struct model_launch *l)
{
    return model_launch_graph(l) ? ((const struct cap_graph_launch *)(const void *)l->record)->version : 0;
}

const struct model_place *model_launch_place(const struct model *m, const struct model_launch *l)
{
    return &m->places[l->place];
}

const struct cap_error *model_launch_error(const struct model *m, const struct model_launch *l)
{
    size_t low = 0, high = m->refusal_count;
    while (low < high) {
        size_t middle = low + (high - low) / 2;
        if (m->refusals[middle].launch < l->number)
            low = middle + 1;
        else
            high = middle;
    }
    return low < m->refusal_count && m->refusals[low].launch == l->number ? m->refusals[low].error : NULL;
}

const struct cap_snapshot *model_launch_snapshot(const struct model *m, const struct model_launch *l, size_t index)
{
    if (!l->snapshots || index >= m->snapshot_count - (l->snapshots - 1))
        return NULL;
    const struct cap_snapshot *s = m->snapshots[l->snapshots - 1 + index];
    return s->launch == model_launch_seq(l) ? s : NULL;
}

const struct graph_contents *model_launch_contents(const struct model_launch *l)
{
    return l->node ? ((const struct model_node_launch *)(const void *)l)->contents : NULL;
}

const uint8_t *model_launch_params(const struct model_launch *l)
{
    return l->record->flags & CAP_LAUNCH_ARGS_UNKNOWN ? NULL : (const uint8_t *)(l->record + 1);
}

bool model_mappings_join(const struct model *m, uint64_t seq, uint64_t boundary)
{
    bool begins = false, ends = false, asked = false;
    for (size_t i = 0; i < m->reserve_count && m->reserves[i]->head.seq < seq; i++) {
        const struct cap_reserve *r = m->reserves[i];
        if (r->address == boundary) {
            begins = !r->freed;
            asked = r->asked;
        }
        if (r->address + r->bytes == boundary)
            ends = !r->freed;
    }
    return !(begins || ends) || (begins && asked);
}

bool model_launch_ran(const struct model_launch *l)
{
    return l->record->outcome != CAP_LAUNCH_FAILED && !(l->record->flags & CAP_LAUNCH_CAPTURING);
}

/* Launches lie about evenly among the records: a guess, steps from there that double until they are past the place,
 * then halving. Each look is a page of the capture, and this takes far fewer of them than halving alone. */
size_t model_first_launch_from(const struct model *m, uint64_t seq)
{
    const struct model_launch *l = m->launches;
    size_t low = 0, high = m->launch_count, step = 1; /* before `low` all are below; from `high` on none is */
    if (!high || model_launch_seq(&l[high - 1]) < seq)
        return high;
    uint64_t first = model_launch_seq(&l[0]), last = model_launch_seq(&l[high - 1]);
    if (seq <= first)
        return 0;
    size_t guess = (size_t)((double)(seq - first) / (double)(last - first) * (double)(high - 1));
    if (model_launch_seq(&l[guess]) < seq) {
        for (low = guess + 1; step < high - guess && model_launch_seq(&l[guess + step]) < seq; step *= 2)
            low = guess + step + 1;
        high = step < high - guess ? guess + step : high;
    } else {
        for (high = guess; step <= guess && model_launch_seq(&l[guess - step]) >= seq; step *= 2)
            high = guess - step;
        low = step <= guess ? guess - step + 1 : 0;
    }
    while (low < high) {
        size_t middle = low + (high - low) / 2;
        if (model_launch_seq(&l[middle]) < seq)
            low = middle + 1;
        else
            high = middle;
    }
    return low;
}
