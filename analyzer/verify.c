#include "analyzer/verify_graph.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/diag.h"

/* Decompressed contents kept between launches. */
#define BLOB_BUDGET (UINT64_C(1) << 30)
/* A module's image above this is refused: no known library's is near. */
#define IMAGE_LIMIT (UINT64_C(1) << 30)

/* ---- modules ---- */

static const char *load_reason(enum status status)
{
    switch (status) {
    case STATUS_NOT_FOUND:
        return "no-ptx";
    case STATUS_NOT_SUPPORTED:
        return "unsupported";
    case STATUS_NO_MEMORY:
        return "no-memory";
    default:
        return "bad-ptx";
    }
}

static void load_module(struct verify *v, const struct cap_module *record, struct verify_module *m)
{
    struct hash128 hash = {record->hash_low, record->hash_high};
    struct diag diag = {.text = ""};
    uint8_t *image;
    size_t bytes;
    if (record->kind == CAP_MODULE_CUBIN || (hash.low == 0 && hash.high == 0)) {
        m->reason = "no-ptx";
        return;
    }
    if (capture_blob(v->model->capture, hash, IMAGE_LIMIT, &image, &bytes, &diag)) {
        m->reason = "no-image";
        m->detail = strdup(diag.text);
        return;
    }
    char name[32];
    snprintf(name, sizeof name, "module %u", record->id);
    enum status status = reference_module_open(image, bytes, v->sm, name, &m->module, &diag);
    free(image);
    if (status) {
        m->reason = load_reason(status);
        m->detail = strdup(diag.text);
    }
}

const struct verify_module *verify_module_of(struct verify *v, const struct model_launch *l)
{
    static const struct verify_module none = {.reason = "no-ptx"};
    static const struct verify_module no_memory = {.reason = "no-memory"};
    uint64_t at;
    if (!l->kernel->module)
        return &none;
    uint32_t id = l->kernel->module->id;
    if (map_get(&v->module_index, id, &at))
        return &v->modules[at];
    struct verify_module *more = realloc(v->modules, (v->module_count + 1) * sizeof *more);
    if (more)
        v->modules = more;
    if (!more || !map_put(&v->module_index, id, v->module_count))
        return &no_memory;
    struct verify_module *m = &v->modules[v->module_count++];
    *m = (struct verify_module){0};
    load_module(v, l->kernel->module, m);
    return m;
}

/* ---- what a launch did to the allocations ---- */

/* Nothing but the arguments leads it to memory: its PTX loads nothing that could be a
 * pointer. */
static bool keeps_to_arguments(struct verify *v, const struct model_launch *l)
{
    uint8_t *reach = &v->reach[l->kernel - v->model->kernels];
    if (*reach == VERIFY_REACH_UNKNOWN) {
        const struct verify_module *m = verify_module_of(v, l);
        const struct ptx_module *ptx = m->module ? reference_module_ptx(m->module) : NULL;
        const struct ptx_kernel *kernel = ptx ? ptx_module_find_kernel(ptx, l->kernel->mangled) : NULL;
        bool keeps = kernel && !(reference_traits(m->module, kernel) & REFERENCE_POINTERS);
        *reach = keeps ? VERIFY_REACH_ARGUMENTS : VERIFY_REACH_ANYWHERE;
    }
    return *reach == VERIFY_REACH_ARGUMENTS;
}

/* A device's addresses leave the upper byte of a pointer to the program. */
#define ADDRESS_BITS UINT64_C(0x00ffffffffffffff)

/* It ran, but what it wrote is unknown: whatever it may have written counts as written. */
static void assume_written(struct verify *v, const struct model_launch *l)
{
    const uint8_t *params = model_launch_params(l);
    bool anywhere = !params || !keeps_to_arguments(v, l);
    if (l->record->outcome == CAP_LAUNCH_FAILED)
        return;
    const struct model_allocation *a;
    for (struct address_place at = {0}; anywhere && (a = address_list_next(&v->live.live, &at));)
        valid_bytes_mark_all(&v->valid, a);
    /* Also pointers in two halves, and those whose upper byte says something else. */
    for (uint32_t at = 0; !anywhere && at + 8u <= l->record->param_bytes; at += 4) {
        uint64_t word;
        memcpy(&word, params + at, sizeof word);
        a = model_live_find(&v->live, word & ADDRESS_BITS);
        if (a)
            valid_bytes_mark_all(&v->valid, a);
    }
}

/* Stores that the checked run dropped did happen on the device: where they went, nothing is known to be unwritten. */
static void assume_faults_written(struct verify *v, const struct judgement *j)
{
    for (size_t i = 0; i < j->fault_count; i++) {
        const struct judgement_fault *f = &j->faults[i];
        const struct model_allocation *meant = model_allocation_by_id(v->model, f->allocation);
        const struct model_allocation *landed = model_allocation_by_id(v->model, f->landed);
        if (f->access.write && meant)
            valid_bytes_mark_all(&v->valid, meant);
        if (f->access.write && landed)
            valid_bytes_mark_all(&v->valid, landed);
    }
}

static void merge_written(struct verify *v, const struct model_launch *l, const struct verify_memory *memory)
{
    bool keeps = true;
    for (size_t i = 0; i < memory->count; i++) {
        if (memory->info[i].freed)
            continue;
        valid_bytes_merge(&v->valid, memory->info[i].allocation, memory->regions[i].written);
        for (uint64_t k = 0; !memory->info[i].reached && keeps && k < (memory->regions[i].bytes + 7) / 8; k++)
            keeps = memory->regions[i].written[k] == 0;
    }
    if (!keeps) /* the other answer is not proven by one launch */
        v->reach[l->kernel - v->model->kernels] = VERIFY_REACH_ANYWHERE;
}

static bool cancelled(const struct verify *v)
{
    return v->options->cancel && atomic_load_explicit(v->options->cancel, memory_order_relaxed);
}

static void judge_kernel(struct verify *v, const struct model_launch *l, struct judgement *j)
{
    struct verify_memory memory = {0};
    bool ran = false;
    verify_judge(v, l, j, &memory, &ran);
    if (ran)
        merge_written(v, l, &memory);
    else
        assume_written(v, l);
    verify_take_kernel(v, l, j);
    assume_faults_written(v, j);
    verify_apply_stains(v, l);
    verify_memory_free(&memory);
}

/* False: no memory. */
static bool take_launch(struct verify *v, const struct model_launch *l, bool selected, struct judgements *out)
{
    struct judgement j = {.launch = l->number};
    if (!selected) {
        (model_launch_graph(l) ? verify_assume_graph : assume_written)(v, l);
        return true;
    }
    if (!cancelled(v))
        (model_launch_graph(l) ? verify_judge_graph : judge_kernel)(v, l, &j);
    if (cancelled(v)) { /* what was found in a launch that was broken off is not all there is to find */
        judgement_clear(&j);
        j.launch = l->number;
        verify_not(&j, JUDGEMENT_INTERRUPTED, NULL);
    }
    bool ok = judgements_add(out, &j, v->model->launch_count);
    judgement_clear(&j);
    return ok;
}

/* False: no memory. */
static bool walk(struct verify *v, struct selection *selection, struct judgements *out)
{
    const struct model *m = v->model;
    size_t next = 0;
    bool ok = true;
    for (size_t i = 0; ok && i < m->capture->record_count; i++) {
        const struct cap_head *record = m->capture->records[i];
        model_live_advance(&v->live, record->seq);
        if (record->type == CAP_COPY)
            verify_host_copy(v, (const void *)record, out);
        if (record->type == CAP_COPY || record->type == CAP_SET)
            valid_bytes_record(&v->valid, &v->live, record);
        if (record->type == CAP_OPERATOR)
            verify_operator(v, model_operator_by_seq(m, record->seq));
        if ((record->type != CAP_LAUNCH && record->type != CAP_GRAPH_LAUNCH) || next >= m->launch_count ||
            m->launches[next].record != (const void *)record)
            continue;
        const struct model_launch *l = &m->launches[next++];
        if (v->options->progress && !cancelled(v))
            v->options->progress(v->options->progress_context, l, out);
        ok = take_launch(v, l, !selection || selection_takes(selection, l), out);
    }
    return ok;
}

enum status verify_start(struct verify *v, const struct model *m, const struct verify_options *options,
                         struct diag *diag)
{
    *v = (struct verify){.model = m, .options = options};
    v->reach = calloc(m->kernel_count + 1, sizeof *v->reach);
    v->kernels = calloc(m->kernel_count + 1, sizeof *v->kernels);
    v->exhausted = calloc(m->kernel_count + 1, sizeof *v->exhausted);
    model_live_start(&v->live, m);
    blob_cache_start(&v->blobs, m->capture, BLOB_BUDGET);
    v->sm = m->device ? m->device->major * 10 + m->device->minor : 0;
    v->sm_count = m->device ? m->device->sm_count : 1;
    if (valid_bytes_start(&v->valid, m) && overlap_start(&v->overlap, m) && v->reach && v->kernels && v->exhausted)
        return STATUS_OK;
    return diag_set(diag, STATUS_NO_MEMORY, m->capture->path, -1, "no memory");
}

void verify_end(struct verify *v)
{
    for (size_t i = 0; i < v->module_count; i++) {
        reference_module_close(v->modules[i].module);
        free(v->modules[i].detail);
    }
    free(v->modules);
    verify_stains_end(v);
    free(v->reach);
    free(v->kernels);
    free(v->exhausted);
    map_free(&v->module_index);
    model_live_end(&v->live);
    valid_bytes_end(&v->valid);
    overlap_end(&v->overlap);
    blob_cache_end(&v->blobs);
}

enum status verify_capture(const struct model *m, struct selection *selection, const struct verify_options *options,
                           struct judgements *out, struct diag *diag)
{
    struct verify v;
    *out = (struct judgements){0};
    enum status status = verify_start(&v, m, options, diag);
    if (!status && !walk(&v, selection, out))
        status = diag_set(diag, STATUS_NO_MEMORY, m->capture->path, -1, "no memory for the judgements");
    if (!status && v.live.no_memory)
        status = diag_set(diag, STATUS_NO_MEMORY, m->capture->path, -1, "no memory for the list of allocations");
    if (!status && cancelled(&v)) /* a copy to the host that was not come to may yet show what is held back */
        status = diag_set(diag, STATUS_CANCELLED, m->capture->path, -1, "interrupted");
    if (!status)
        verify_stains_rest(&v, out);
    verify_end(&v);
    if (status && status != STATUS_CANCELLED)
        judgements_free(out);
    return status;
}
