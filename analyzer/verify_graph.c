#include "analyzer/verify_graph.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/diag.h"

enum { ROW_LIMIT = 1 << 20 }; /* rows of a copy or set that are followed one by one */

/* ---- nodes ---- */

static const struct model_kernel *kernel_of(const struct graph_run *r, const struct cap_graph_node *n)
{
    uint64_t index;
    return map_get(&r->verify->model->kernel_index, n->kernel, &index) ? &r->verify->model->kernels[index] : NULL;
}

/* "node 3, scale" */
static void node_text(const struct graph_run *r, uint32_t index, char *out, size_t bytes)
{
    const struct cap_graph_node *n = r->nodes.items[index];
    const struct model_kernel *k = n->kind == CAP_NODE_KERNEL ? kernel_of(r, n) : NULL;
    snprintf(out, bytes, "node %u, %.100s", index + 1, k ? k->name : model_node_kind(n));
}

static bool not_because(const struct graph_run *r, uint32_t index, struct judgement *j, const char *reason,
                        const char *detail)
{
    char node[128], text[400];
    node_text(r, index, node, sizeof node);
    snprintf(text, sizeof text, "%s%s%.240s", node, detail && *detail ? ": " : "", detail ? detail : "");
    return verify_not(j, reason, text);
}

bool graph_step_make(const struct graph_run *r, uint32_t index, struct graph_step *out)
{
    const struct cap_graph_node *n = r->nodes.items[index];
    const void *body = model_node_body(n);
    uint32_t bytes = body ? n->body_bytes : 0;
    struct cap_launch *record = calloc(1, sizeof *record + bytes + 8);
    if (!record)
        return false;
    record->head = r->launch->record->head;
    record->head.type = CAP_LAUNCH;
    record->kernel = n->kernel;
    record->config = n->config;
    record->stream = r->launch->record->stream;
    record->stack = r->launch->record->stack;
    record->param_bytes = (uint16_t)bytes;
    record->outcome = CAP_LAUNCH_OK;
    record->flags = body ? 0 : CAP_LAUNCH_ARGS_UNKNOWN;
    if (bytes)
        memcpy(record + 1, body, bytes);
    *out = (struct graph_step){.node = n, .index = index};
    out->as.launch = *r->launch;
    out->as.launch.record = record;
    out->as.launch.kernel = (struct model_kernel *)kernel_of(r, n);
    out->as.launch.config = capture_definition(r->verify->model->capture, CAP_CONFIG, n->config);
    out->as.launch.snapshots = 0;
    out->as.launch.node = 1;
    out->as.contents = &r->contents;
    return true;
}

void graph_step_free(struct graph_step *step)
{
    free((void *)step->as.launch.record);
}

/* Moves what was found at a node to the launch's judgement. */
static bool take_judgement(struct judgement *to, struct judgement *from, uint32_t index)
{
    struct judgement_fault *faults = realloc(to->faults, (to->fault_count + from->fault_count + 1) * sizeof *faults);
    to->faults = faults ? faults : to->faults;
    struct judgement_number *numbers =
        realloc(to->numbers, (to->number_count + from->number_count + 1) * sizeof *numbers);
    to->numbers = numbers ? numbers : to->numbers;
    if (!faults || !numbers)
        return false;
    for (size_t i = 0; i < from->fault_count; i++) {
        from->faults[i].node = index + 1;
        to->faults[to->fault_count++] = from->faults[i];
    }
    for (size_t i = 0; i < from->number_count; i++) {
        from->numbers[i].node = index + 1;
        to->numbers[to->number_count++] = from->numbers[i];
    }
    from->fault_count = 0;
    from->number_count = 0;
    to->instructions += from->instructions;
    return true;
}

/* Stores that the checked run dropped did happen on the device, and what was loaded from outside is not known: nothing
 * that this node wrote, or that its stray stores may have hit, is taken for what the device had. */
static void forget_after_faults(struct graph_run *r, const struct judgement *j, const struct verify_memory *memory)
{
    bool loads = false;
    for (size_t i = 0; i < j->fault_count; i++) {
        const struct judgement_fault *f = &j->faults[i];
        const struct model_allocation *landed = model_allocation_by_id(r->verify->model, f->landed);
        struct graph_buffer *b = landed ? graph_contents_of(&r->contents, landed) : NULL;
        if (f->same_value)
            continue;
        r->faulty = true;
        loads = loads || f->kind != JUDGEMENT_FAULT_OUT_OF_BOUNDS || !f->access.write || f->access.atomic;
        if (f->access.write && b)
            graph_contents_forget(b, 0, landed->bytes);
    }
    for (size_t i = 0; loads && i < memory->count; i++) {
        const struct reference_region *region = &memory->regions[i];
        struct graph_buffer *b = graph_contents_of(&r->contents, memory->info[i].allocation);
        for (uint64_t k = 0; b && k < (region->bytes + 7) / 8; k++)
            b->known[k] &= (uint8_t)~region->written[k];
    }
}

static void add_traits(struct graph_run *r, const struct model_launch *l)
{
    const struct verify_module *m = verify_module_of(r->verify, l);
    const struct ptx_kernel *k =
        m->module ? ptx_module_find_kernel(reference_module_ptx(m->module), l->kernel->mangled) : NULL;
    r->traits |= k ? reference_traits(m->module, k) & REFERENCE_FREEDOMS : REFERENCE_FREEDOMS;
}

static void merge_valid(struct graph_run *r, const struct verify_memory *memory)
{
    for (size_t i = 0; i < memory->count; i++)
        if (!memory->info[i].freed)
            valid_bytes_merge(&r->verify->valid, memory->info[i].allocation, memory->regions[i].written);
}

/* Checked when some node with floats is, and every other one, too. */
static void take_numbers(struct judgement *j, const struct judgement *own)
{
    const char *why = own->numbers_checked ? NULL : own->numbers_reason ? own->numbers_reason : "fault";
    j->numbers_checked = j->numbers_checked || own->numbers_checked;
    if (why && strcmp(why, "no-floats") != 0 && !j->numbers_reason)
        j->numbers_reason = strdup(why);
}

static bool run_kernel(struct graph_run *r, uint32_t index, struct judgement *j)
{
    struct graph_step step;
    struct judgement own = {.launch = j->launch};
    struct verify_memory memory = {0};
    bool ran = false;
    if (!graph_step_make(r, index, &step))
        return verify_not(j, "no-memory", NULL);
    bool ok = step.as.launch.kernel && step.as.launch.config;
    if (ok) {
        verify_judge(r->verify, &step.as.launch, &own, &memory, &ran);
        ok = ran && own.verdict == JUDGEMENT_CHECKED;
        if (!ok)
            not_because(r, index, j, own.reason ? own.reason : "unknown", own.detail);
    } else
        not_because(r, index, j, "args-unknown", NULL);
    if (ok) {
        add_traits(r, &step.as.launch);
        graph_touch_kernel(r, index, &memory);
        graph_contents_store(&r->contents, index, &memory);
        merge_valid(r, &memory);
        forget_after_faults(r, &own, &memory);
        take_numbers(j, &own);
        ok = take_judgement(j, &own, index) || verify_not(j, "no-memory", NULL);
    }
    judgement_clear(&own);
    verify_memory_free(&memory);
    graph_step_free(&step);
    return ok;
}

/* The buffer that holds all of a row, made when it is not there. NULL: outside of any allocation, or in host memory
 * that no record tells of. */
static struct graph_buffer *buffer_at(struct graph_run *r, uint64_t address, uint64_t bytes, uint64_t *offset)
{
    const struct model_allocation *a = model_live_find(&r->verify->live, address);
    if (!a || bytes > a->bytes - (address - a->address))
        return NULL;
    *offset = address - a->address;
    return graph_contents_of(&r->contents, a);
}

static bool copy_row(struct graph_run *r, uint32_t index, uint64_t target, uint64_t source, uint64_t bytes, bool arrays)
{
    uint64_t to_offset = 0, from_offset = 0;
    const struct graph_buffer *from = arrays ? NULL : buffer_at(r, source, bytes, &from_offset);
    uint32_t from_id = from ? from->allocation->id : 0;
    struct graph_buffer *to = buffer_at(r, target, bytes, &to_offset);
    from = from_id ? graph_contents_find(&r->contents, from_id) : NULL; /* making the other one may have moved it */
    if (from)
        graph_touch_range(r, index, from, from_offset, bytes, NULL);
    if (!to)
        return true;
    if (!from || !graph_contents_known(from, from_offset, bytes)) {
        graph_touch_range(r, index, to, to_offset, bytes, to->host + to_offset);
        graph_contents_forget(to, to_offset, bytes);
        return true;
    }
    uint8_t *row = malloc((size_t)bytes + 1);
    if (!row)
        return false;
    memcpy(row, from->host + from_offset, (size_t)bytes);
    graph_touch_range(r, index, to, to_offset, bytes, row);
    graph_contents_write(to, index, to_offset, row, bytes);
    free(row);
    return true;
}

static bool run_copy(struct graph_run *r, uint32_t index, struct judgement *j)
{
    struct cap_copy c = *(const struct cap_copy *)model_node_body(r->nodes.items[index]);
    bool ok = true;
    if (!c.width || !c.height || !c.depth)
        return true; /* however many nothings */
    if (c.height > ROW_LIMIT / c.depth)
        return not_because(r, index, j, "budget", "a copy of too many rows");
    bool arrays = c.kind == CAP_COPY_ARRAY;
    for (uint64_t z = 0; ok && z < c.depth; z++)
        for (uint64_t y = 0; ok && y < c.height; y++)
            ok = copy_row(r, index, c.target + z * c.target_slice_pitch + y * c.target_pitch,
                          c.source + z * c.source_slice_pitch + y * c.source_pitch, c.width, arrays);
    c.head.type = CAP_COPY;
    valid_bytes_record(&r->verify->valid, &r->verify->live, &c.head);
    return (ok && !r->contents.no_memory) || verify_not(j, "no-memory", NULL);
}

/* What each row is set to; NULL: no memory. */
static uint8_t *set_row(const struct cap_set *s)
{
    uint8_t *row = malloc((size_t)s->width + 4);
    for (uint64_t i = 0; row && i < s->width; i++)
        row[i] = (uint8_t)(s->value >> i % s->value_bytes * 8);
    return row;
}

static bool run_set(struct graph_run *r, uint32_t index, struct judgement *j)
{
    struct cap_set s = *(const struct cap_set *)model_node_body(r->nodes.items[index]);
    if (s.height > ROW_LIMIT || !s.value_bytes || s.value_bytes > sizeof s.value)
        return not_because(r, index, j, "budget", "a set of too many rows");
    uint8_t *row = NULL;
    bool ok = true;
    for (uint64_t y = 0; ok && y < s.height; y++) {
        uint64_t offset;
        struct graph_buffer *to = buffer_at(r, s.target + y * s.pitch, s.width, &offset);
        if (!to)
            continue;
        ok = row || (row = set_row(&s)) != NULL; /* only now: the width may be anything where nothing is hit */
        if (!ok)
            break;
        graph_touch_range(r, index, to, offset, s.width, row);
        graph_contents_write(to, index, offset, row, s.width);
    }
    free(row);
    s.head.type = CAP_SET;
    valid_bytes_record(&r->verify->valid, &r->verify->live, &s.head);
    return (ok && !r->contents.no_memory) || verify_not(j, "no-memory", NULL);
}

/* A function of the host may have done anything to memory that it can reach. */
static void run_host(struct graph_run *r)
{
    for (size_t i = 0; i < r->contents.count; i++)
        if (verify_shared_with_host(r->contents.buffers[i].allocation))
            graph_contents_forget(&r->contents.buffers[i], 0, r->contents.buffers[i].allocation->bytes);
}

static void run_memory(struct graph_run *r, uint32_t index)
{
    const struct cap_graph_memory *m = model_node_body(r->nodes.items[index]);
    const struct model_allocation *a = m ? model_live_find(&r->verify->live, m->address) : NULL;
    struct graph_buffer *b = a ? graph_contents_of(&r->contents, a) : NULL;
    if (b)
        graph_contents_forget(b, 0, a->bytes);
}

/* All that is to be known of these is in their body. */
static bool lacks_body(const struct cap_graph_node *n)
{
    bool needs =
        n->kind == CAP_NODE_COPY || n->kind == CAP_NODE_SET || n->kind == CAP_NODE_ALLOC || n->kind == CAP_NODE_FREE;
    return needs && !model_node_body(n);
}

bool graph_run_plain(struct graph_run *r, uint32_t index, struct judgement *j)
{
    if (lacks_body(r->nodes.items[index]))
        return not_because(r, index, j, "args-unknown", "its parameters were not recorded");
    switch ((enum cap_graph_node_kind)r->nodes.items[index]->kind) {
    case CAP_NODE_EMPTY:
    case CAP_NODE_EVENT_RECORD:
        return true;
    case CAP_NODE_COPY:
        return run_copy(r, index, j);
    case CAP_NODE_SET:
        return run_set(r, index, j);
    case CAP_NODE_HOST:
        run_host(r);
        return true;
    case CAP_NODE_ALLOC:
    case CAP_NODE_FREE:
        run_memory(r, index);
        return true;
    case CAP_NODE_EVENT_WAIT:
        return not_because(r, index, j, "unsupported", "it waits for work outside of the graph");
    default:
        return not_because(r, index, j, "unsupported", "nodes of this kind are not followed");
    }
}

static bool run_node(struct graph_run *r, uint32_t index, struct judgement *j)
{
    const struct cap_graph_node *n = r->nodes.items[index];
    if (n->flags & CAP_NODE_DISABLED)
        return true;
    if (n->flags & CAP_NODE_UNKNOWN)
        return not_because(r, index, j, "args-unknown", "its parameters could not be asked for");
    return n->kind == CAP_NODE_KERNEL ? run_kernel(r, index, j) : graph_run_plain(r, index, j);
}

/* ---- the launch ---- */

static bool can_run(struct verify *v, const struct model_launch *l, const struct model_nodes *nodes,
                    struct judgement *j)
{
    if (l->record->outcome == CAP_LAUNCH_FAILED)
        return verify_refused(v, l, j);
    if (!nodes->items || (!nodes->complete && !nodes->count))
        return verify_not(j, "graph", "what the graph holds was not recorded");
    if (overlap_found(&v->overlap, l))
        return verify_not(j, "overlapped", "another thread put work into the stream at the same moment");
    size_t befores = 0;
    const struct cap_snapshot *s;
    for (size_t i = 0; (s = model_launch_snapshot(v->model, l, i)); i++)
        befores += s->when == CAP_BEFORE;
    if (!befores && !(l->record->flags & CAP_LAUNCH_INPUTS))
        return verify_not(j, l->record->flags & CAP_LAUNCH_BUDGET ? "budget" : "no-inputs",
                          "no snapshots before the launch");
    return true;
}

static bool has_harm(const struct judgement *j)
{
    for (size_t i = 0; i < j->fault_count; i++)
        if (!j->faults[i].same_value)
            return true;
    return false;
}

void verify_assume_graph(struct verify *v, const struct model_launch *l)
{
    if (l->record->outcome == CAP_LAUNCH_FAILED)
        return;
    const struct model_allocation *a;
    for (struct address_place at = {0}; (a = address_list_next(&v->live.live, &at));)
        valid_bytes_mark_all(&v->valid, a);
}

static void finish(struct graph_run *r, struct judgement *j)
{
    graph_races(r, j);
    for (uint32_t i = 0; i < r->nodes.count; i++) /* no snapshot shows what the graph's own memory held */
        if (r->nodes.items[i]->kind == CAP_NODE_ALLOC)
            run_memory(r, i);
    j->verdict = JUDGEMENT_CHECKED;
    if (!j->numbers_checked && !j->numbers_reason)
        j->numbers_reason = strdup("no-floats");
    j->numbers_checked = !j->numbers_reason;
    if (!has_harm(j))
        verify_graph_outputs(r, j);
}

void verify_judge_graph(struct verify *v, const struct model_launch *l, struct judgement *j)
{
    struct graph_run r = {.verify = v, .launch = l, .nodes = model_launch_nodes(l)};
    struct diag diag = {.text = ""};
    bool ok = can_run(v, l, &r.nodes, j);
    if (ok) {
        enum status status = graph_contents_start(&r.contents, v->model, l, &v->blobs, v->options->memory_limit, &diag);
        ok = !status || verify_not(j, status == STATUS_BAD_INPUT ? "no-inputs" : "no-memory", diag.text);
    }
    r.branches = ok && graph_has_branches(&r.nodes);
    for (uint32_t i = 0; ok && i < r.nodes.count; i++)
        ok = run_node(&r, i, j);
    if (ok)
        finish(&r, j);
    else
        verify_assume_graph(v, l);
    graph_touches_free(&r.touches);
    graph_contents_end(&r.contents);
    model_nodes_free(&r.nodes);
}
