/* graph_launch.c - one launch of an executable graph: one record, whatever the graph holds. */
#include <stdlib.h>
#include <string.h>

#include "common/map.h"
#include "shim/alloc_table.h"
#include "shim/capture_write.h"
#include "shim/damage.h"
#include "shim/device_work.h"
#include "shim/graph.h"
#include "shim/health.h"
#include "shim/options.h"
#include "shim/reach.h"
#include "shim/scan.h"
#include "shim/sentinel.h"
#include "shim/snapshot.h"
#include "shim/stack.h"
#include "shim/timing.h"

/* So many versions of one graph get snapshots of their first launches; a program that changes its graph before each
 * launch would else have all of them taken. */
enum { SAMPLED_VERSIONS = 8 };

struct going { /* a launch on its way */
    struct call *call;
    struct tracked_graph *graph;
    struct tracked_stream *stream;
    struct cap_graph_launch *record; /* NULL: not written yet */
    struct allocation *found;        /* owned; what its nodes reach, when it gets snapshots or is looked at */
    uint32_t found_count;
    bool outputs;
    struct scan_slot *scan; /* NULL: it is not looked at */
    struct timing_slot timing;
};

/* ---- what its nodes reach ---- */

struct gathering {
    struct allocation *found;
    uint32_t count, capacity;
    struct map seen; /* ids */
    bool lost;       /* no memory */
};

static void take(struct gathering *g, const struct allocation *a)
{
    uint64_t there;
    if (map_get(&g->seen, a->id, &there))
        return;
    if (g->count == g->capacity) {
        uint32_t capacity = g->capacity ? g->capacity * 2 : 32;
        struct allocation *more = realloc(g->found, capacity * sizeof *more);
        if (!more) {
            g->lost = true;
            return;
        }
        g->found = more;
        g->capacity = capacity;
    }
    g->found[g->count++] = *a;
    g->lost = !map_put(&g->seen, a->id, 1) || g->lost;
}

static void take_address(struct gathering *g, uint64_t address)
{
    struct allocation a;
    if (address && alloc_table_find(address, &a))
        take(g, &a);
}

static void take_node(struct gathering *g, const struct graph_node *node, struct reached *room)
{
    if (node->kind == CAP_NODE_KERNEL && node->kernel) {
        uint32_t count = reach(node->kernel, node->arguments, node->argument_bytes, room);
        for (uint32_t i = 0; i < count; i++)
            take(g, &room[i].a);
    } else if (node->kind == CAP_NODE_COPY && node->copy.kind != CAP_COPY_ARRAY) {
        take_address(g, node->copy.target);
        take_address(g, node->copy.source);
    } else if (node->kind == CAP_NODE_SET)
        take_address(g, node->set.target);
}

static bool gather(struct tracked_graph *graph, struct allocation **found, uint32_t *count)
{
    struct gathering g = {0};
    thread_slow();
    struct graph_body body;
    uint32_t version;
    struct reached *room = malloc(REACH_MAX * sizeof *room);
    g.lost = !room || !graph_now(graph, &body, &version);
    for (uint32_t i = 0; !g.lost && i < body.count; i++)
        take_node(&g, &body.nodes[i], room);
    if (room)
        graph_body_free(&body);
    free(room);
    map_free(&g.seen);
    *found = g.found;
    *count = g.count;
    return !g.lost;
}

/* ---- the launch ---- */

static void write_record(struct going *g, uint8_t outcome)
{
    uint32_t stack = stack_sampled(), version = graph_version(g->graph);
    struct cap_graph_launch *record = capture_record(CAP_GRAPH_LAUNCH, sizeof *record, g->call->seq, g->call->tsc);
    if (!record)
        return;
    record->launch.stream = g->stream ? g->stream->id : 0;
    record->launch.stack = stack;
    record->launch.outcome = outcome;
    record->graph = g->graph->id;
    record->version = version;
    capture_commit(record);
    g->record = record;
}

static void add_flag(struct going *g, uint8_t flag)
{
    uint8_t *flags = &g->record->launch.flags;
    __atomic_store_n(flags, (uint8_t)(*flags | flag), __ATOMIC_RELAXED);
}

static void take_before(struct going *g)
{
    struct snapshot_result got = snapshot_take_found(CAP_BEFORE, g->call->seq, g->stream, g->found, g->found_count);
    g->outputs = got.taken;
    add_flag(g, (uint8_t)((got.taken ? CAP_LAUNCH_INPUTS : 0) | (got.left_out ? CAP_LAUNCH_BUDGET : 0)));
}

static void before(struct going *g)
{
    struct tracked_kernel *counted = &g->graph->as_kernel;
    bool own_work = device_stream_free(g->stream);
    uint32_t version = graph_version(g->graph);
    enum snapshot_choice choice =
        snapshot_choose(counted, version < SAMPLED_VERSIONS ? version : SAMPLED_VERSIONS, g->stream, !own_work);
    bool look = own_work && scan_due(counted, choice == SNAPSHOT_TAKE);
    if (choice == SNAPSHOT_TAKE || look) {
        bool all = gather(g->graph, &g->found, &g->found_count);
        if (!all && choice == SNAPSHOT_TAKE)
            choice = SNAPSHOT_OVER_BUDGET;
        g->call->seq = capture_next_seq(); /* behind the variables that were found on the way */
    }
    write_record(g, CAP_LAUNCH_PENDING);
    if (!g->record)
        return;
    if (choice == SNAPSHOT_OVER_BUDGET)
        add_flag(g, CAP_LAUNCH_BUDGET);
    if (choice == SNAPSHOT_TAKE)
        take_before(g);
    if (look)
        g->scan = scan_before_found(g->stream, g->call->seq, g->found, g->found_count, choice == SNAPSHOT_TAKE);
    if (own_work)
        timing_begin(&g->timing, counted, g->stream, g->call->seq);
}

static void after(struct going *g, CUresult result)
{
    bool ok = result == CUDA_SUCCESS;
    bool failed = !ok && call_tell_error(g->call, result); /* before the outcome, see launch_after */
    uint64_t host_ns = call_real_ns(g->call);
    shim_thread.launches++;
    timing_end(&g->timing, ok);
    scan_after(g->scan, g->stream, ok);
    if (!g->record && (ok || failed))
        write_record(g, ok ? CAP_LAUNCH_OK : CAP_LAUNCH_FAILED);
    if (g->record && (ok || capture_can_patch(g->record))) {
        struct cap_launch *launch = &g->record->launch;
        __atomic_store_n(&launch->host_ns, host_ns > UINT32_MAX ? UINT32_MAX : (uint32_t)host_ns, __ATOMIC_RELAXED);
        if (ok || failed) /* a reader takes a pending one for a call that hangs */
            __atomic_store_n(&launch->outcome, (uint8_t)(ok ? CAP_LAUNCH_OK : CAP_LAUNCH_FAILED), __ATOMIC_RELEASE);
    }
    if (!ok || !g->stream)
        return;
    __atomic_fetch_add(&g->graph->as_kernel.launches, 1, __ATOMIC_RELAXED);
    if (g->record && g->outputs &&
        snapshot_take_found(CAP_AFTER, g->call->seq, g->stream, g->found, g->found_count).taken)
        add_flag(g, CAP_LAUNCH_OUTPUTS);
    damage_launched(g->call->seq, &g->graph->as_kernel);
    sentinel_after_launch(g->stream, g->call->seq, false);
    health_poll();
}

CUresult graph_launch(struct call *call, enum hook hook, CUgraphExec exec, CUstream handle)
{
    bool per_thread = hook_kind(hook) == HOOK_PER_THREAD;
    struct going g = {.call = call, .graph = graph_find(exec, false)};
    g.stream = track_stream(handle, per_thread, false);
    /* In a capture it becomes a child graph, which is recorded when that one is instantiated. */
    bool capturing = g.stream && device_stream_captures(g.stream);
    CUresult result;
    if (g.graph && g.stream && !capturing && options.graphs == GRAPHS_EXPLODE &&
        graph_explode(call, g.graph, g.stream, &result))
        return result;
    if (g.graph && g.stream && !capturing)
        before(&g);
    call_begin(call);
    result = REAL(cuGraphLaunch, hook)(exec, handle);
    call_end(call);
    if (capturing)
        return result;
    if (result == CUDA_SUCCESS) {
        g.graph = g.graph ? g.graph : graph_find(exec, true);
        g.stream = g.stream ? g.stream : track_stream(handle, per_thread, true);
        if (g.stream && !g.record && device_stream_captures(g.stream))
            return result;
    }
    if (g.graph)
        after(&g, result);
    free(g.found);
    return result;
}
