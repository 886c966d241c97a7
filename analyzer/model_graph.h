/* model_graph.h - executable graphs: which nodes a launch of one has.
 *
 * A launch of a graph is one launch of the model, of a kernel that stands for the graph ("graph 3"). Its nodes are
 * numbered from 1 in reports, in the order of their indices, which is an order in which they may run.
 */
#ifndef ANALYZER_MODEL_GRAPH_H
#define ANALYZER_MODEL_GRAPH_H

#include "analyzer/model.h"

struct model_graph {
    uint32_t id;
    struct model_kernel *kernel;         /* stands for it */
    struct cap_kernel record;            /* of that kernel */
    const struct cap_graph **wholes;     /* owned; in order */
    const struct cap_graph_node **nodes; /* owned; all of its versions, in order */
    size_t whole_count, node_count;
};

struct model_nodes {
    const struct cap_graph_node **items; /* owned; by index, none is NULL */
    size_t count;
    bool complete; /* they are all that the launch did */
};

/* False: no memory. */
bool model_graphs_add(struct model *model, const struct cap_head *record);
void model_graphs_free(struct model *model);
struct model_graph *model_graph_by_id(const struct model *model, uint32_t id); /* NULL: there is none */

/* The nodes of a launch of a graph, as they were then. Empty and not complete when memory runs out. */
struct model_nodes model_launch_nodes(const struct model_launch *launch);
void model_nodes_free(struct model_nodes *nodes);
/* Node `number` (from 1) of a launch, as it was then. NULL: it has none of that number, or is of a kernel. */
const struct cap_graph_node *model_launch_node(const struct model_launch *launch, uint32_t number);

const uint32_t *model_node_dependencies(const struct cap_graph_node *node);
const void *model_node_body(const struct cap_graph_node *node); /* NULL: it has none */
/* "kernel", "copy", ... */
const char *model_node_kind(const struct cap_graph_node *node);
/* Is the address of one of its arguments, of what it copies or sets, in [address, address + bytes)? */
bool model_node_reaches(const struct cap_graph_node *node, uint64_t address, uint64_t bytes);

/* Of a launch, or of one node of it when `node` (from 1) is not 0. Never NULL. */
const struct model_kernel *model_launch_kernel(const struct model *model, const struct model_launch *launch,
                                               uint32_t node);
const struct cap_config *model_launch_config(const struct model *model, const struct model_launch *launch,
                                             uint32_t node);

#endif
