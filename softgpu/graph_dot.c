/* Graphs as text for Graphviz. */
#include <stdio.h>

#include "softgpu/graph.h"

enum {
    FLAGS_KNOWN = (CU_GRAPH_DEBUG_DOT_FLAGS_CONDITIONAL_NODE_PARAMS << 1) - 1,
    HANDLES = CU_GRAPH_DEBUG_DOT_FLAGS_HANDLES | CU_GRAPH_DEBUG_DOT_FLAGS_VERBOSE,
    TOPOLOGY = CU_GRAPH_DEBUG_DOT_FLAGS_EXTRA_TOPO_INFO | CU_GRAPH_DEBUG_DOT_FLAGS_VERBOSE,
};

/* What shows a kind's parameters. Kernel names and the direction of copies always appear. */
static bool shows(CUgraphNodeType type, unsigned flags)
{
    switch ((int)type) {
    case CU_GRAPH_NODE_TYPE_MEMSET:
        return flags & CU_GRAPH_DEBUG_DOT_FLAGS_MEMSET_NODE_PARAMS;
    case CU_GRAPH_NODE_TYPE_WAIT_EVENT:
    case CU_GRAPH_NODE_TYPE_EVENT_RECORD:
        return flags & CU_GRAPH_DEBUG_DOT_FLAGS_EVENT_NODE_PARAMS;
    case CU_GRAPH_NODE_TYPE_MEM_ALLOC:
        return flags & CU_GRAPH_DEBUG_DOT_FLAGS_MEM_ALLOC_NODE_PARAMS;
    case CU_GRAPH_NODE_TYPE_MEM_FREE:
        return flags & CU_GRAPH_DEBUG_DOT_FLAGS_MEM_FREE_NODE_PARAMS;
    case CU_GRAPH_NODE_TYPE_CONDITIONAL:
        return flags & CU_GRAPH_DEBUG_DOT_FLAGS_CONDITIONAL_NODE_PARAMS;
    default:
        return true;
    }
}

static void print_graph(const struct graph *graph, unsigned flags, FILE *file)
{
    bool verbose = flags & CU_GRAPH_DEBUG_DOT_FLAGS_VERBOSE;
    fprintf(file, "subgraph cluster_%llu {\nlabel=\"graph_%llu\"\n", (unsigned long long)graph->id,
            (unsigned long long)graph->id);
    for (const struct node *n = graph->first; n; n = n->next) {
        fprintf(file, "\"node_%llu\" [shape=box label=\"%s\\nID %llu", (unsigned long long)n->id, n->work.kind->name,
                (unsigned long long)n->id);
        if (n->work.kind->print && (verbose || shows(n->work.kind->type, flags))) {
            fprintf(file, "\\n");
            n->work.kind->print(&n->work, file);
        }
        if (flags & HANDLES)
            fprintf(file, "\\nhandle %p", (const void *)n);
        fprintf(file, "\"];\n");
        for (size_t i = 0; i < n->work.body_count; i++)
            print_graph(n->work.bodies[i], flags, file);
    }
    for (const struct node *n = graph->first; n; n = n->next)
        for (size_t i = 0; i < n->out.count; i++) {
            fprintf(file, "\"node_%llu\" -> \"node_%llu\"", (unsigned long long)n->id,
                    (unsigned long long)n->out.at[i].node->id);
            if (flags & TOPOLOGY)
                fprintf(file, " [headlabel=%zu]", i);
            fprintf(file, ";\n");
        }
    fprintf(file, "}\n");
}

CUresult graph_print(const struct graph *graph, const char *path, unsigned flags)
{
    if (flags & ~(unsigned)FLAGS_KNOWN)
        return CUDA_ERROR_INVALID_VALUE;
    FILE *file = fopen(path, "we");
    if (!file)
        return CUDA_ERROR_OPERATING_SYSTEM;
    fprintf(file, "digraph dot {\n");
    print_graph(graph, flags, file);
    fprintf(file, "}\n");
    bool ok = !ferror(file);
    return fclose(file) == 0 && ok ? CUDA_SUCCESS : CUDA_ERROR_OPERATING_SYSTEM;
}
