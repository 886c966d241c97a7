/* verify_graph.h - a launch of a graph: its nodes are run again one after the other, each with what the ones before it
 * left.
 */
#ifndef ANALYZER_VERIFY_GRAPH_H
#define ANALYZER_VERIFY_GRAPH_H

#include "analyzer/graph_contents.h"
#include "analyzer/model_graph.h"
#include "analyzer/verify.h"
#include "analyzer/verify_compare.h"

/* A node as a launch of its own, so that everything that judges launches can judge it. */
struct graph_step {
    struct model_node_launch as; /* of kernels; its record is owned */
    const struct cap_graph_node *node;
    uint32_t index;
};

/* What a node did to memory, for the order between branches (verify_graph_race.c). */
struct graph_touch {
    uint32_t node, allocation;
    uint8_t *read, *written, *changed; /* owned; one bit per byte; NULL: nothing */
};
struct graph_touches {
    struct graph_touch *items; /* owned */
    size_t count;
    uint64_t bytes;  /* of all bitmaps */
    bool incomplete; /* memory ran out: nothing is said about races */
};

struct graph_run {
    struct verify *verify;
    const struct model_launch *launch;
    struct model_nodes nodes;
    struct graph_contents contents;
    struct graph_touches touches;
    unsigned traits; /* enum reference_trait of all kernels that ran */
    bool branches;   /* some nodes are not ordered */
    bool faulty;     /* a node has a fault that does harm: what follows is not what the device did */
};

/* Judges the launch, and takes over what it wrote into v->valid. */
void verify_judge_graph(struct verify *v, const struct model_launch *launch, struct judgement *j);
/* What a launch of a graph that is not run again may have written counts as written. */
void verify_assume_graph(struct verify *v, const struct model_launch *launch);

bool graph_step_make(const struct graph_run *run, uint32_t index, struct graph_step *out); /* false: no memory */
void graph_step_free(struct graph_step *step);
/* A copy, set, memory or host node, on the bytes of run->contents. False: *j says why not. */
bool graph_run_plain(struct graph_run *run, uint32_t index, struct judgement *j);

/* Compares what all nodes left with the snapshots after the launch (verify_graph_outputs.c). */
void verify_graph_outputs(struct graph_run *run, struct judgement *j);

/* ---- the order of branches ---- */

struct graph_ancestors {
    uint8_t *bits; /* owned; of each node a row: the nodes that end before it starts */
    size_t row;
};
bool graph_ancestors_make(const struct model_nodes *nodes, struct graph_ancestors *out); /* false: too many */
bool graph_ordered(const struct graph_ancestors *ancestors, uint32_t earlier, uint32_t later);

bool graph_has_branches(const struct model_nodes *nodes);
/* After node `index` has run, `memory` is as it left it and run->contents as it found it. */
void graph_touch_kernel(struct graph_run *run, uint32_t index, const struct verify_memory *memory);
void graph_touch_range(struct graph_run *run, uint32_t index, const struct graph_buffer *buffer, uint64_t offset,
                       uint64_t count, const uint8_t *bytes); /* bytes: what is written there; NULL: it is read */
void graph_touches_free(struct graph_touches *touches);
/* Pairs of nodes that nothing orders and that touch the same bytes become faults of *j. */
void graph_races(struct graph_run *run, struct judgement *j);

#endif
