/* graph.h - executable graphs: what they are made of, recorded when they are made or changed, so that a launch costs no
 * more than one small record.
 *
 *     graph_read()      asks the driver for a graph's nodes, children flattened, each after those it depends on
 *     tracked_graph     an executable graph by handle; its nodes as they are now, its version
 *     graph_launch()    one launch: record, snapshots of what all its nodes reach, times, redzones; or node by node
 *
 * Only questions are put to the driver here, about graphs that the program has just handed over in the same call.
 * Thread-safe: the table and the nodes are behind one lock, under which the driver is not called.
 */
#ifndef SHIM_GRAPH_H
#define SHIM_GRAPH_H

#include <opsdebug/capture.h>

#include "shim/call.h"
#include "shim/track.h"

enum { GRAPH_NODES_MAX = 1 << 20 };

struct graph_node {
    uint32_t kind, type, flags; /* enum cap_graph_node_kind, CUgraphNodeType, enum cap_graph_node_flags */
    CUgraphNode handle;         /* by which the program names it; NULL: an empty node of ours */
    CUgraphNode owner;          /* the outermost child graph node that it came through, else NULL */
    uint32_t *dependencies;     /* owned */
    uint32_t dependency_count;
    /* kernels */
    struct tracked_kernel *kernel; /* NULL: unknown */
    uint64_t function;             /* what launches it */
    uint32_t config;               /* its record's id */
    uint32_t grid[3], block[3], dynamic_shared_bytes;
    uint32_t config_flags, cluster[3]; /* enum cap_config_flags */
    bool attributes_known;
    uint8_t *arguments; /* owned; packed */
    uint32_t argument_bytes;
    /* the others */
    CUDA_MEMCPY3D *box; /* owned; of a copy, as the driver has it */
    union {
        struct cap_copy copy;
        struct cap_set set;
        struct cap_graph_memory memory;
    };
};
struct graph_body {
    struct graph_node *nodes;
    uint32_t count, capacity;
    bool incomplete;
    size_t counted; /* of our memory, once it is kept */
};

struct tracked_graph {
    struct tracked_kernel as_kernel; /* what snapshots, times and damage count its launches by */
    CUgraphExec handle;
    uint32_t id;
    uint32_t version; /* behind the lock, as the body */
    struct graph_body body;
    uint32_t changed;     /* index of the node that was changed last */
    uint32_t *memory_ids; /* ids of the allocations that its nodes make; recorded, not in the table */
    uint64_t *memory_addresses;
    uint32_t memory_count;
};

/* ---- reading (graph_read.c) ---- */

/* Also when it fails *body is valid; then it is incomplete. */
void graph_read(CUgraph graph, struct graph_body *body);
/* The bodies of a conditional node: the driver tells them to whoever adds it, and to nobody else. */
void graph_conditional_added(CUgraph graph, CUgraphNode node, const CUgraph *bodies, unsigned count);
/* Before the graph, or one node of it (the other is NULL), is destroyed. */
void graph_conditionals_gone(CUgraph graph, CUgraphNode node);
/* The parameters of one node, from those that an executable graph's node was given. */
void graph_node_kernel(struct graph_node *node, const CUDA_KERNEL_NODE_PARAMS *params);
void graph_node_copy(struct graph_node *node, const CUDA_MEMCPY3D *params);
void graph_node_set(struct graph_node *node, const CUDA_MEMSET_NODE_PARAMS *params);
void graph_node_unknown(struct graph_node *node); /* from now on nobody knows what it does */
void graph_node_clear(struct graph_node *node);   /* frees what it owns */
void graph_body_free(struct graph_body *body);
bool graph_body_keep(struct graph_body *body); /* counts what it holds; false: too much, see memory.h */
bool graph_body_copy(struct graph_body *to, const struct graph_body *from); /* false: no memory, *to is empty */

/* ---- the table (graph.c) ---- */

void graph_made(const struct call *call, CUgraphExec exec, CUgraph graph);
void graph_updated(const struct call *call, CUgraphExec exec, CUgraph graph);
/* `change` gets the node with its old parameters and gives it its new ones. */
void graph_node_changed(CUgraphExec exec, CUgraphNode node, void (*change)(struct graph_node *node, const void *params),
                        const void *params);
void graph_child_changed(CUgraphExec exec, CUgraphNode node, CUgraph child);
void graph_gone(const struct call *call, CUgraphExec exec);
/* NULL: nobody has seen it made, and `make` is false. */
struct tracked_graph *graph_find(CUgraphExec exec, bool make);
/* A copy of its nodes as they are now, and the version; free it. False: no memory. */
bool graph_now(struct tracked_graph *graph, struct graph_body *body, uint32_t *version);
bool graph_node_now(struct tracked_graph *graph, uint32_t index, struct graph_body *one); /* of one node */
uint32_t graph_version(struct tracked_graph *graph);

/* ---- launches (graph_launch.c, graph_explode.c) ---- */

CUresult graph_launch(struct call *call, enum hook hook, CUgraphExec exec, CUstream stream);
/* Launches its nodes one by one. False: it has something else than kernels, copies and sets; nothing was done. */
bool graph_explode(struct call *call, struct tracked_graph *graph, struct tracked_stream *stream, CUresult *result);

#endif
