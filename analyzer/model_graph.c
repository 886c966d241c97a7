#include "analyzer/model_graph.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define GRAPH_KERNEL_ID UINT32_C(0x80000000) /* no kernel has such an id: the capture counts from 1 */

struct model_graph *model_graph_by_id(const struct model *m, uint32_t id)
{
    uint64_t index;
    return map_get(&m->graph_index, id, &index) ? m->graphs[index] : NULL;
}

static struct model_graph *add_graph(struct model *m, uint32_t id)
{
    struct model_graph *g = calloc(1, sizeof *g);
    struct model_graph **more = realloc(m->graphs, (m->graph_count + 1) * sizeof(void *));
    if (more)
        m->graphs = more;
    struct model_kernel *k = &m->kernels[m->kernel_count]; /* model_build.c made room for one per graph */
    char name[32];
    snprintf(name, sizeof name, "graph %u", id);
    if (!g || !more || !map_put(&m->graph_index, id, m->graph_count)) {
        free(g);
        return NULL;
    }
    *g = (struct model_graph){.id = id, .kernel = k, .record = {.id = GRAPH_KERNEL_ID | id}};
    *k = (struct model_kernel){
        .record = &g->record, .graph = g, .mangled = "", .name = strdup(name), .full_name = strdup(name)};
    m->kernel_count++;
    m->graphs[m->graph_count++] = g;
    return k->name && k->full_name ? g : NULL;
}

/* Room for one more behind `count` pointers: doubled whenever they fill a power of two. */
static void *room(void *list, size_t count)
{
    if (count & (count - 1))
        return list;
    return realloc(list, (count ? 2 * count : 1) * sizeof(void *));
}

bool model_graphs_add(struct model *m, const struct cap_head *record)
{
    const struct cap_graph *whole = (const void *)record;
    const struct cap_graph_node *node = (const void *)record;
    struct model_graph *g = model_graph_by_id(m, record->type == CAP_GRAPH ? whole->id : node->graph);
    if (record->type == CAP_GRAPH) {
        if (!g && !(g = add_graph(m, whole->id)))
            return false;
        const struct cap_graph **wholes = room(g->wholes, g->whole_count);
        if (!wholes)
            return false;
        g->wholes = wholes;
        g->wholes[g->whole_count++] = whole;
        return true;
    }
    if (!g) {
        capture_reject(m->capture, record, "node of graph %u, which is described only later", node->graph);
        return true;
    }
    const struct cap_graph_node **nodes = room(g->nodes, g->node_count);
    if (!nodes)
        return false;
    g->nodes = nodes;
    g->nodes[g->node_count++] = node;
    return true;
}

void model_graphs_free(struct model *m)
{
    for (size_t i = 0; i < m->graph_count; i++) {
        free((void *)m->graphs[i]->wholes);
        free((void *)m->graphs[i]->nodes);
        free(m->graphs[i]);
    }
    free(m->graphs);
    map_free(&m->graph_index);
}

/* ---- nodes ---- */

/* What describes the graph of a launch as a whole, NULL: nothing. */
static const struct cap_graph *whole_of(const struct model_launch *l)
{
    const struct model_graph *g = model_launch_graph(l);
    uint32_t version = model_launch_version(l);
    for (size_t i = g ? g->whole_count : 0; i-- > 0;) /* the newest one counts */
        if (g->wholes[i]->version <= version && !(g->wholes[i]->flags & CAP_GRAPH_DESTROYED))
            return g->wholes[i];
    return NULL;
}

struct model_nodes model_launch_nodes(const struct model_launch *l)
{
    struct model_nodes out = {0};
    const struct cap_graph *whole = whole_of(l);
    const struct model_graph *g = model_launch_graph(l);
    uint32_t version = model_launch_version(l);
    if (!whole || whole->node_count > g->node_count)
        return out;
    out.items = calloc(whole->node_count + 1u, sizeof(void *));
    if (!out.items)
        return out;
    out.count = whole->node_count;
    out.complete = !(whole->flags & CAP_GRAPH_INCOMPLETE);
    for (size_t i = 0; i < g->node_count; i++) {
        const struct cap_graph_node *n = g->nodes[i];
        if (n->version >= whole->version && n->version <= version && n->index < out.count)
            out.items[n->index] = n;
    }
    for (size_t i = 0; i < out.count; i++)
        if (!out.items[i]) { /* a record is lost */
            model_nodes_free(&out);
            return out;
        }
    return out;
}

void model_nodes_free(struct model_nodes *nodes)
{
    free((void *)nodes->items);
    *nodes = (struct model_nodes){0};
}

const uint32_t *model_node_dependencies(const struct cap_graph_node *n)
{
    return (const uint32_t *)(n + 1);
}

const void *model_node_body(const struct cap_graph_node *n)
{
    if (n->flags & (CAP_NODE_UNKNOWN | CAP_NODE_ARGS_UNKNOWN))
        return NULL;
    return (const uint8_t *)(n + 1) + (((size_t)n->dependency_count * sizeof(uint32_t) + 7) & ~(size_t)7);
}

const char *model_node_kind(const struct cap_graph_node *n)
{
    static const char *const names[CAP_NODE_KINDS] = {"empty",         "kernel",      "copy", "memset",
                                                      "host function", "allocation",  "free", "event record",
                                                      "event wait",    "conditional", "other"};
    return n->kind < CAP_NODE_KINDS ? names[n->kind] : "other";
}

bool model_node_reaches(const struct cap_graph_node *n, uint64_t address, uint64_t bytes)
{
    const uint8_t *body = model_node_body(n);
    if (!body)
        return n->kind == CAP_NODE_KERNEL || n->kind == CAP_NODE_COPY || n->kind == CAP_NODE_SET;
    if (n->kind == CAP_NODE_COPY)
        return ((const struct cap_copy *)(const void *)body)->target - address < bytes ||
               ((const struct cap_copy *)(const void *)body)->source - address < bytes;
    if (n->kind == CAP_NODE_SET)
        return ((const struct cap_set *)(const void *)body)->target - address < bytes;
    for (uint32_t at = 0; n->kind == CAP_NODE_KERNEL && at + 8u <= n->body_bytes; at += 8) {
        uint64_t word;
        memcpy(&word, body + at, sizeof word);
        if (word - address < bytes)
            return true;
    }
    return false;
}

const struct cap_graph_node *model_launch_node(const struct model_launch *l, uint32_t number)
{
    const struct cap_graph *whole = number ? whole_of(l) : NULL;
    const struct model_graph *g = model_launch_graph(l);
    uint32_t version = model_launch_version(l);
    if (!whole || number > whole->node_count)
        return NULL;
    for (size_t i = g->node_count; i-- > 0;) { /* the newest one counts */
        const struct cap_graph_node *n = g->nodes[i];
        if (n->index == number - 1 && n->version >= whole->version && n->version <= version)
            return n;
    }
    return NULL;
}

const struct model_kernel *model_launch_kernel(const struct model *m, const struct model_launch *l, uint32_t node)
{
    const struct cap_graph_node *n = model_launch_node(l, node);
    uint64_t index;
    return n && map_get(&m->kernel_index, n->kernel, &index) ? &m->kernels[index] : l->kernel;
}

const struct cap_config *model_launch_config(const struct model *m, const struct model_launch *l, uint32_t node)
{
    const struct cap_graph_node *n = model_launch_node(l, node);
    const struct cap_config *config = n ? capture_definition(m->capture, CAP_CONFIG, n->config) : NULL;
    return config ? config : l->config;
}
