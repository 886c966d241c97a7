/* verify_judge.c - one launch: can it be re-executed, what happened, what does that say. */
#include "analyzer/verify.h"

#include <stdlib.h>
#include <string.h>

bool verify_not(struct judgement *j, const char *reason, const char *detail)
{
    free(j->reason);
    free(j->detail);
    j->verdict = JUDGEMENT_NOT;
    j->reason = strdup(reason);
    j->detail = detail && *detail ? strdup(detail) : NULL;
    return false;
}

bool verify_refused(const struct verify *v, const struct model_launch *l, struct judgement *j)
{
    const struct cap_error *error = model_launch_error(v->model, l);
    return verify_not(j, "failed-launch", error ? capture_string(v->model->capture, error->name) : NULL);
}

void verify_fill_launch(const struct verify *v, const struct model_launch *l, const struct reference_module *module,
                        const struct verify_memory *memory, struct reference_launch *out)
{
    *out = (struct reference_launch){
        .module = module,
        .kernel = l->kernel->mangled,
        .dynamic_shared_bytes = l->config->dynamic_shared_bytes,
        .cooperative = (l->config->flags & CAP_CONFIG_COOPERATIVE) != 0,
        .params = model_launch_params(l),
        .param_bytes = l->record->param_bytes,
        .regions = memory->regions,
        .region_count = memory->count,
        .pointers = memory->pointers,
        .pointer_count = memory->pointer_count,
        .variables = memory->variables,
        .variable_count = memory->variable_count,
        .layout = REFERENCE_ISOLATED,
        .workers = v->options->workers,
        .instruction_limit = v->options->instruction_limit,
        .cancel = v->options->cancel,
        .sm_count = v->sm_count,
    };
    memcpy(out->grid, l->config->grid, sizeof out->grid);
    memcpy(out->block, l->config->block, sizeof out->block);
}

static bool mapped_at(const struct model_live *live, uint64_t address)
{
    const struct model_allocation *a = model_live_find(live, address);
    return a && a->record->kind == CAP_ALLOC_MAPPED;
}

/* Handles that are mapped side by side (cuMemMap) may well be used as one array: where it ends, nobody has said. */
static bool mapped_neighbours(const struct verify *v, const struct model_launch *l)
{
    const uint8_t *params = model_launch_params(l);
    for (uint32_t at = 0; params && at + 8u <= l->record->param_bytes; at += 8) {
        uint64_t word;
        memcpy(&word, params + at, sizeof word);
        const struct model_allocation *a = model_live_find(&v->live, word);
        if (a && a->record->kind == CAP_ALLOC_MAPPED &&
            ((mapped_at(&v->live, a->address + a->bytes) &&
              model_mappings_join(v->model, model_launch_seq(l), a->address + a->bytes)) ||
             (mapped_at(&v->live, a->address - 1) && model_mappings_join(v->model, model_launch_seq(l), a->address))))
            return true;
    }
    return false;
}

/* Everything that can be said without running it. */
static bool can_run(struct verify *v, const struct model_launch *l, const struct reference_module **module,
                    struct judgement *j)
{
    size_t reached, with_contents;
    if (l->record->outcome == CAP_LAUNCH_FAILED)
        return verify_refused(v, l, j);
    if (l->record->flags & CAP_LAUNCH_CAPTURING)
        return verify_not(j, "graph", "recorded into a graph, not executed here");
    if (model_launch_graph(l))
        return verify_not(j, "graph", "a launch of a graph is not one kernel's");
    if (!model_launch_params(l))
        return verify_not(j, "args-unknown", NULL);
    if (l->config->flags & CAP_CONFIG_CLUSTER)
        return verify_not(j, "unsupported", "thread block clusters");
    if (mapped_neighbours(v, l))
        return verify_not(j, "mapped-neighbours", "memory mapped side by side may be one array or several");
    if (verify_memory_between(l, &v->live))
        return verify_not(j, "sub-allocation",
                          "an argument leads into an allocation with registered regions, but into none of them");
    if (!model_launch_contents(l) && overlap_found(&v->overlap, l))
        return verify_not(j, "overlapped", "another thread put work into the stream at the same moment");
    const struct verify_module *m = verify_module_of(v, l);
    if (!m->module)
        return verify_not(j, m->reason, m->detail);
    *module = m->module;
    verify_memory_survey(l, &v->live, &reached, &with_contents);
    if (reached && !with_contents && !model_launch_contents(l))
        return verify_not(j, l->record->flags & CAP_LAUNCH_BUDGET ? "budget" : "no-inputs",
                          "no snapshots before the launch");
    return true;
}

bool verify_make_memory(struct verify *v, const struct model_launch *l, bool everything, struct verify_memory *memory,
                        struct judgement *j)
{
    struct diag diag = {.text = ""};
    verify_memory_free(memory);
    enum status status =
        verify_memory_make(memory, l, &v->live, &v->valid, &v->blobs, everything, v->options->memory_limit, &diag);
    if (status == STATUS_BAD_INPUT)
        return verify_not(j, "no-inputs", diag.text);
    return !status || verify_not(j, status == STATUS_LIMIT ? "budget" : "no-memory", diag.text);
}

/* Of shared and local memory, which a checked run fills with 0: what only moves such bytes shows (verify_private.c). */
enum { PROFILE_FILL = 0xff };

static bool run_in(struct verify *v, const struct model_launch *l, const struct reference_module *module,
                   enum reference_layout layout, bool profile, uint64_t limit, struct reference_launch *run,
                   struct verify_memory *memory, struct reference_result *result, struct judgement *j)
{
    if (!verify_make_memory(v, l, layout == REFERENCE_AS_LAUNCHED, memory, j))
        return false;
    verify_fill_launch(v, l, module, memory, run);
    run->layout = layout;
    run->profile = profile;
    run->fill = profile ? PROFILE_FILL : 0;
    run->instruction_limit = limit;
    reference_run(run, result);
    return true;
}

/* Isolated first. A kernel that follows pointers out of memory runs with everything where it was. */
static bool run_somewhere(struct verify *v, const struct model_launch *l, const struct reference_module *module,
                          const enum reference_layout *layout, bool profile, uint64_t limit,
                          struct reference_launch *run, struct verify_memory *memory, struct reference_result *result,
                          struct judgement *j)
{
    if (!run_in(v, l, module, layout ? *layout : REFERENCE_ISOLATED, profile, limit, run, memory, result, j))
        return false;
    if (!result->foreign || layout)
        return true;
    reference_result_free(result);
    return run_in(v, l, module, REFERENCE_AS_LAUNCHED, profile, limit, run, memory, result, j);
}

static bool out_of_budget(const struct reference_result *result)
{
    return result->status == STATUS_LIMIT && result->instructions;
}

static bool execute(struct verify *v, const struct model_launch *l, const enum reference_layout *layout, bool profile,
                    struct reference_launch *run, struct verify_memory *memory, struct reference_result *result,
                    struct judgement *j)
{
    const struct reference_module *module = NULL;
    *result = (struct reference_result){0};
    if (!can_run(v, l, &module, j))
        return false;
    /* Where the memory has to lie is known from an earlier run, which came to its end. */
    uint64_t limit = layout ? v->options->instruction_limit : verify_limit(v, l);
    uint64_t first = layout ? limit : verify_first_limit(v, l);
    if (!run_somewhere(v, l, module, layout, profile, first, run, memory, result, j))
        return false;
    if (out_of_budget(result) && first < limit) {
        reference_result_free(result);
        if (verify_waits(v, l, run, j) || !run_somewhere(v, l, module, layout, profile, limit, run, memory, result, j))
            return false;
    }
    if (out_of_budget(result) && !layout) {
        reference_result_free(result);
        return verify_exhausted(v, l, j);
    }
    j->instructions = result->instructions;
    return true;
}

bool verify_execute(struct verify *v, const struct model_launch *l, struct reference_launch *run,
                    struct verify_memory *memory, struct reference_result *result, struct judgement *j)
{
    return execute(v, l, NULL, false, run, memory, result, j);
}

bool verify_profile(struct verify *v, const struct model_launch *l, const enum reference_layout *layout,
                    struct reference_launch *run, struct verify_memory *memory, struct reference_result *result,
                    struct judgement *j)
{
    return execute(v, l, layout, true, run, memory, result, j);
}

static void drop_uninitialised(struct reference_result *result)
{
    size_t kept = 0;
    for (size_t i = 0; i < result->fault_count; i++)
        if (result->faults[i].fault.kind != PTX_FAULT_UNINITIALISED)
            result->faults[kept++] = result->faults[i];
    result->fault_count = kept;
}

static bool has_uninitialised(const struct reference_result *result)
{
    for (size_t i = 0; i < result->fault_count; i++)
        if (result->faults[i].fault.kind == PTX_FAULT_UNINITIALISED)
            return true;
    return false;
}

/* An access that belongs to no buffer we know. When the device carried on, it knew one: memory that the capture did not
 * see. */
static bool unknown_address(const struct verify *v, const struct reference_result *result)
{
    for (size_t i = 0; i < result->fault_count; i++) {
        const struct ptx_fault *f = &result->faults[i].fault;
        bool global = f->space == PTX_SPACE_GLOBAL || f->space == PTX_SPACE_CONST;
        if (f->kind == PTX_FAULT_OUT_OF_BOUNDS && global && result->faults[i].region == SIZE_MAX &&
            v->model->error_count == 0)
            return true;
    }
    return false;
}

/* Moves them to `held`, unless something worse is among the faults: then they stay, to be told with it. */
static void hold_uninitialised(struct judgement *j, struct judgement *held)
{
    size_t kept = 0;
    for (size_t i = 0; i < j->fault_count; i++)
        if (j->faults[i].kind != JUDGEMENT_FAULT_UNINITIALISED && !j->faults[i].same_value)
            return;
    held->faults = calloc(j->fault_count + 1, sizeof *held->faults);
    for (size_t i = 0; held->faults && i < j->fault_count; i++) {
        if (j->faults[i].kind == JUDGEMENT_FAULT_UNINITIALISED)
            held->faults[held->fault_count++] = j->faults[i];
        else
            j->faults[kept++] = j->faults[i];
    }
    j->fault_count = held->faults ? kept : j->fault_count;
}

static bool has_harm(const struct judgement *j)
{
    for (size_t i = 0; i < j->fault_count; i++)
        if (!j->faults[i].same_value)
            return true;
    return false;
}

void verify_judge(struct verify *v, const struct model_launch *l, struct judgement *j, struct verify_memory *memory,
                  bool *ran)
{
    struct reference_launch run;
    struct reference_result result;
    *ran = false;
    if (!verify_execute(v, l, &run, memory, &result, j))
        return;
    const struct reference_module *module = run.module;
    if (result.reason) {
        verify_not(j, result.reason, result.diag.text);
    } else if (result.unknown_read || verify_memory_read_unknown(memory)) {
        verify_not(j, "no-inputs", "it read memory whose contents were not captured");
    } else if (unknown_address(v, &result)) {
        verify_not(j, "unknown-memory", "it used an address that belongs to no recorded allocation");
    } else {
        *ran = true;
        j->bytes_known = true;
        verify_memory_moved(memory, &j->bytes_read, &j->bytes_written);
        verify_take_touches(memory, j);
        struct verify_fillings fillings = {0};
        if (has_uninitialised(&result))
            verify_try_fillings(v, l, &run, VERIFY_FILLED_ALL, result.instructions, &fillings);
        enum verify_garbage garbage = fillings.answer;
        if (garbage == VERIFY_GARBAGE_HARMLESS)
            drop_uninitialised(&result);
        j->verdict = JUDGEMENT_CHECKED;
        verify_take_faults(v, l, module, memory, &result, j);
        verify_locate_source(v, l, &run, memory, j);
        struct judgement held = {0}; /* a graph's node: dropped, nobody follows what becomes of its outputs */
        if (garbage == VERIFY_GARBAGE_VALUES)
            hold_uninitialised(j, &held);
        /* A fault outranks a numeric explanation: what comes after it is not what the device did. */
        if (!has_harm(j) && model_launch_contents(l)) {
            verify_numbers(v, l, &run, j); /* its outputs are compared when all of the graph has run */
        } else if (!has_harm(j)) {
            verify_trace_unwritten(v, l, &run, memory, &fillings, garbage == VERIFY_GARBAGE_VALUES ? &held : NULL);
            verify_fillings_free(&fillings);
            bool known = garbage == VERIFY_GARBAGE_HARMLESS &&
                         (verify_counts(v, l, &run, memory, j) || !verify_trace_private(v, l, &run));
            if (known) {
                verify_outputs(v, l, module, &run, memory, j);
                verify_numbers(v, l, &run, j);
            } else {
                j->numbers_reason = strdup("unwritten-inputs");
            }
        }
        judgement_clear(&held);
        verify_fillings_free(&fillings);
    }
    reference_result_free(&result);
}
