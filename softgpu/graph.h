/* graph.h - graphs: work as nodes with edges, and executable copies of them.
 *
 *     work     what a node does, as CUgraphNodeParams; knows how to become an operation (engine.h)
 *     node     work at a place of a graph
 *     graph    nodes and edges; of the program, of a node (child graphs, bodies), or of an executable graph
 *     exec     an executable graph: a copy of a graph, changed only by the functions made for that
 *
 * All of it is under graph_lock(). Nothing waits for the device under it, and no function of the program is called.
 */
#ifndef SOFTGPU_GRAPH_H
#define SOFTGPU_GRAPH_H

#include "softgpu/context.h"

void graph_lock(void);
void graph_unlock(void);

/* ---- work ------------------------------------------------------------------------------------------------------- */

struct graph;
struct node;
struct work_kind;
struct kernel_work;
struct graph_block;
struct condition;
struct capture;
struct user_reference;
struct softgpu_operator;

struct work {
    const struct work_kind *kind;
    CUgraphNodeParams params; /* pointers in it belong to the work */
    struct context *context;  /* where it runs; NULL for what has none */
    struct kernel_work *kernel;
    struct graph **bodies; /* of child graph and conditional nodes */
    size_t body_count;
    struct graph_block *block; /* of memory nodes: reference */
    struct condition *condition;
    bool claims;   /* a free node's: no other may free the block */
    bool disabled; /* in executable graphs */
};

/* Operations of one launch, in the order in which they run. */
struct steps {
    struct op **ops; /* references */
    size_t count, capacity;
    bool bound; /* some call the program */
    /* What memory nodes did while the steps were made, to be undone when the launch fails. */
    struct block_change *changes;
    size_t change_count, change_capacity;
};
CUresult steps_add(struct steps *steps, struct op *op); /* takes the reference, also when it fails */
void steps_free(struct steps *steps);
/* In the place of `parent`, an operation of a stream that is running. Not after an error of the context. */
void steps_run(const struct steps *steps, const struct op *parent, const struct context *context);

struct work_kind {
    CUgraphNodeType type;
    const char *name;
    bool in_bodies; /* allowed in the bodies of conditional nodes */
    /* Takes over parameters: into a zeroed work, or one to be replaced. What is there before stays on an error. */
    CUresult (*set)(struct work *work, CUgraphNodeParams *params, struct graph *graph);
    CUresult (*copy)(struct work *to, const struct work *from,
                     bool visible);                                 /* `to` is a plain copy; NULL: that will do */
    void (*clear)(struct work *work);                               /* frees what it owns; NULL: nothing */
    CUresult (*make)(const struct work *work, struct steps *steps); /* NULL: there is nothing to do */
    /* Whether an executable graph's work `old` may become `new`; NULL: yes. */
    CUgraphExecUpdateResult (*change)(const struct work *old, const struct work *new);
    void (*print)(const struct work *work, void *file); /* attributes for DOT; NULL: none */
};
const struct work_kind *work_kind(CUgraphNodeType type); /* NULL: unknown or not supported */
CUresult work_set(struct work *work, CUgraphNodeParams *params, struct graph *graph);
CUresult work_copy(struct work *to, const struct work *from, bool visible);
void work_clear(struct work *work);
/* Of a work that was captured: shape and attributes that CUgraphNodeParams does not hold. */
CUresult work_kernel_attribute(struct work *work, CUkernelNodeAttrID id, const CUkernelNodeAttrValue *value);
CUresult work_kernel_attribute_get(const struct work *work, CUkernelNodeAttrID id, CUkernelNodeAttrValue *value);
CUresult work_kernel_attributes_copy(struct work *to, const struct work *from);
/* A routine of softgpu's own libraries as a kernel node; owned by the work on success. */
CUresult work_operator(struct work *work, struct softgpu_operator *routine, struct context *context);
bool work_is_operator(const struct work *work);
void work_operator_disown(struct work *work); /* gives the routine back and clears the work */
/* The context that a node's parameter means: NULL is the current one. */
CUresult work_context(CUcontext handle, struct context **out);

extern const struct work_kind work_kernel, work_memcpy, work_memset, work_host, work_child, work_empty, work_event_wait,
    work_event_record, work_alloc, work_free, work_conditional, work_memop;

/* ---- graphs ----------------------------------------------------------------------------------------------------- */

struct edge {
    struct node *node;
    CUgraphEdgeData data;
};
struct edges {
    struct edge *at;
    size_t count, capacity;
};
struct node {
    uint64_t id, origin; /* origin: id of the node this is a copy of */
    struct graph *graph;
    struct node *previous, *next; /* in order of insertion */
    struct work work;
    struct edges in, out;
    struct node *pair; /* while comparing graphs */
    size_t pending;    /* while ordering them */
};
struct graph {
    uint64_t id, origin;
    bool visible; /* it and its nodes are handles of the program's */
    bool owned;   /* by a node: not to be destroyed or instantiated by itself */
    bool body;    /* of a conditional node */
    bool moved;   /* a child graph with memory nodes */
    struct node *first, *last;
    size_t count;
    struct capture *capture;      /* under way into it */
    struct condition *conditions; /* made for it */
    struct user_reference *users;
};

struct graph *graph_new(bool visible);
/* Frees it with all its nodes. User objects whose last reference goes are called later by user_objects_settle(). */
void graph_free(struct graph *graph);
CUresult graph_copy(const struct graph *from, bool visible, struct graph **out);
struct graph *graph_from(CUgraph handle);                                           /* NULL when it is none */
struct node *node_from(CUgraphNode handle);                                         /* likewise */
struct node *graph_find_copy(const struct graph *copy, uint64_t origin, bool deep); /* of a node by id */

/* Adds a node; dependencies must be nodes of the graph. `work` is taken over on success. */
CUresult graph_add(struct graph *graph, struct work *work, struct node *const *dependencies,
                   const CUgraphEdgeData *data, size_t count, struct node **out);
CUresult graph_connect(struct node *from, struct node *to, const CUgraphEdgeData *data);
bool graph_disconnect(struct node *from, struct node *to, const CUgraphEdgeData *data);
void graph_remove(struct node *node);
bool graph_edge_default(const CUgraphEdgeData *data);

/* All nodes, each after those it depends on, in a new array (free()). CUDA_ERROR_INVALID_VALUE when there is a cycle,
 * of which *culprit (may be NULL) is a node. */
CUresult graph_order(const struct graph *graph, struct node ***order, struct node **culprit);
CUresult graph_make(const struct graph *graph, struct steps *steps);
bool graph_contains(const struct graph *graph, uint32_t types); /* bits 1 << type; looks into child graphs and bodies */
enum { GRAPH_MEMORY_NODES = 1 << CU_GRAPH_NODE_TYPE_MEM_ALLOC | 1 << CU_GRAPH_NODE_TYPE_MEM_FREE };
CUresult graph_print(const struct graph *graph, const char *path, unsigned flags);

/* ---- memory of graphs (graph_node_memory.c) --------------------------------------------------------------------- */

bool graph_memory_owns(uint64_t address);          /* in an allocation of a memory node, live or not */
CUresult graph_memory_free(uint64_t address);      /* by cuMemFree and cuMemFreeAsync */
bool graph_memory_live(const struct graph *graph); /* some allocation of its nodes is not freed */
void graph_memory_free_live(const struct graph *graph);
CUresult graph_memory_back(const struct graph *graph); /* gives its allocations memory */
void graph_memory_undo(struct steps *steps);           /* what making them did */
void graph_memory_used_by(const struct steps *steps, struct op *op);
void graph_memory_drop(struct steps *steps);
void graph_memory_reset(const struct context *context); /* nothing of the context is live any more */
struct graph_block *graph_block_ref(struct graph_block *block);
void graph_block_unref(struct graph_block *block);

/* ---- conditions (graph_node_child.c) ---------------------------------------------------------------------------- */

void graph_set_condition(uint64_t handle, uint32_t value); /* by kernels; thread-safe, without the lock */
CUresult condition_new(struct graph *graph, struct context *context, unsigned value, unsigned flags, uint64_t *handle);
void conditions_free(struct graph *graph);
bool conditions_used(const struct graph *graph); /* each by a node */
/* Steps that give the conditions of the graph's nodes their defaults. */
CUresult conditions_make_defaults(const struct graph *graph, struct steps *steps);
/* An executable graph's conditional node gets another's condition. */
void work_take_condition(struct work *to, const struct work *from);

/* ---- executable graphs ------------------------------------------------------------------------------------------ */

struct exec;
struct exec *exec_from(CUgraphExec handle);
uint64_t exec_id(const struct exec *exec); /* its own, not that of the graph it was made from */
CUresult exec_new(struct graph *graph, uint64_t flags, struct exec **out, CUgraphInstantiateResult *why,
                  struct node **culprit);
void exec_free(struct exec *exec);
CUresult exec_launch(struct exec *exec, struct stream *stream);
CUresult exec_upload(struct exec *exec, struct stream *stream);
CUresult exec_update(struct exec *exec, struct graph *graph, CUgraphExecUpdateResultInfo *info);
/* The copy in it of a node of the graph it was made from. */
struct node *exec_node(const struct exec *exec, const struct node *node);
CUresult exec_set(struct exec *exec, struct node *node, CUgraphNodeParams *params);
CUresult exec_set_child(struct exec *exec, struct node *node, struct graph *child);
uint64_t exec_flags(const struct exec *exec);
struct graph *exec_graph(const struct exec *exec);

/* ---- user objects ----------------------------------------------------------------------------------------------- */

CUresult users_copy(struct graph *to, const struct graph *from);
void users_free(struct graph *graph);
/* For a launch: the references that it needs until it ends. NULL when there are none. */
CUresult users_hold(const struct graph *graph, struct user_reference **out);
void users_release(struct user_reference *held);
void user_objects_settle(void); /* without any lock: calls what became due; graph_unlock() does, too */

#endif
