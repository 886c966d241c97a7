#include "reference/reference_module.h"

#include <stdlib.h>
#include <stdio.h>
#include <string.h>

#include "common/diag.h"
#include "common/fatbin.h"
#include "reference/reference_layout.h"

enum { MAX_LINKED = 255 }; /* as many as ptx_link() takes */

/* Of a program that was linked as device code: the PTX of its objects, joined. */
static enum status link_containers(const void *image, size_t bytes, uint32_t sm, struct reference_module *m,
                                   struct diag *diag)
{
    struct ptx_link_input inputs[MAX_LINKED];
    char names[MAX_LINKED][32];
    const void *container;
    size_t count = 0, size, offset = 0;
    enum status status = STATUS_OK;
    while (status == STATUS_OK && count < MAX_LINKED &&
           fatbin_next_container(image, bytes, &offset, &container, &size)) {
        char *text = NULL;
        size_t length;
        if (fatbin_is_device_runtime(container, size))
            continue;
        status = fatbin_ptx(container, size, sm, &text, &length, diag);
        if (status != STATUS_OK)
            break;
        snprintf(names[count], sizeof names[count], "object %zu", count + 1);
        inputs[count] = (struct ptx_link_input){text, names[count]};
        count++;
    }
    if (status == STATUS_OK)
        status = ptx_link(inputs, count, &m->text, diag);
    m->bytes = m->text ? strlen(m->text) : 0;
    for (size_t i = 0; i < count; i++)
        free((void *)(uintptr_t)inputs[i].text);
    return status;
}

enum status reference_module_open(const void *image, size_t bytes, uint32_t sm, const char *name,
                                  struct reference_module **out, struct diag *diag)
{
    *out = NULL;
    struct reference_module *m = calloc(1, sizeof *m);
    if (!m)
        return STATUS_NO_MEMORY;
    uint64_t first = bytes > 16 ? fatbin_data_size(image) : 0;
    enum status status = first && first < bytes ? link_containers(image, bytes, sm, m, diag)
                                                : fatbin_ptx(image, bytes, sm, &m->text, &m->bytes, diag);
    if (!status)
        status = ptx_module_load(m->text, m->bytes, name, &m->ptx, diag);
    if (status) {
        reference_module_close(m);
        return status;
    }
    *out = m;
    return STATUS_OK;
}

void reference_module_close(struct reference_module *m)
{
    if (!m)
        return;
    ptx_module_free(m->ptx);
    free(m->text);
    free(m);
}

const struct ptx_module *reference_module_ptx(const struct reference_module *m)
{
    return m->ptx;
}

static const char *reason_of(enum status status)
{
    switch (status) {
    case STATUS_OK:
    case STATUS_FAULT:
        return NULL;
    case STATUS_LIMIT:
        return "budget";
    case STATUS_CANCELLED:
        return "interrupted";
    case STATUS_NO_MEMORY:
        return "no-memory";
    case STATUS_NOT_SUPPORTED:
        return "unsupported";
    case STATUS_NOT_FOUND:
        return "unresolved-symbol";
    default:
        return "bad-launch";
    }
}

static void take_faults(const struct layout *layout, const struct ptx_result *run, struct reference_result *result)
{
    result->faults = calloc(run->fault_count + 1, sizeof *result->faults);
    if (!result->faults) {
        result->status = STATUS_NO_MEMORY;
        return;
    }
    for (size_t i = 0; i < run->fault_count; i++) {
        struct reference_fault *f = &result->faults[result->fault_count];
        f->fault = run->faults[i];
        if (layout_translate(layout, &f->fault, &f->region))
            result->fault_count++;
        else
            result->foreign = true;
    }
}

void reference_run(const struct reference_launch *launch, struct reference_result *result)
{
    *result = (struct reference_result){0};
    const struct ptx_module *ptx = reference_module_ptx(launch->module);
    const struct ptx_kernel *kernel = ptx_module_find_kernel(ptx, launch->kernel);
    if (!kernel) {
        result->status = STATUS_NOT_FOUND;
        result->reason = "kernel-not-in-ptx";
        return;
    }
    if (kernel->param_bytes > launch->param_bytes) {
        result->status = STATUS_BAD_INPUT;
        result->reason = "layout-mismatch";
        return;
    }
    if (kernel->uses_heap && !ptx_kernel_refusal(ptx, kernel)) {
        result->status = STATUS_NOT_SUPPORTED;
        result->reason = "device-heap";
        diag_set(&result->diag, result->status, launch->kernel, -1,
                 "it calls malloc or free, and what the device's heap holds is not captured");
        return;
    }
    if (kernel->uses_textures && !ptx_kernel_refusal(ptx, kernel)) {
        result->status = STATUS_NOT_SUPPORTED;
        result->reason = "textures";
        diag_set(&result->diag, result->status, launch->kernel, -1,
                 "it uses textures or surfaces, and neither these nor arrays are captured");
        return;
    }
    struct layout layout;
    result->status = layout_make(&layout, launch, &result->diag);
    if (!result->status) {
        struct ptx_memory memory = {.ranges = layout.ranges, .range_count = layout.range_count};
        struct ptx_launch run = {
            .module = ptx,
            .kernel = kernel,
            .dynamic_shared_bytes = launch->dynamic_shared_bytes,
            .params = layout.params,
            .variables = layout.variables,
            .memory = &memory,
            .cooperative = launch->cooperative,
            .checked = !launch->shadow && !launch->rounding_seed && !launch->profile,
            .profile = launch->profile,
            .rounding_seed = launch->rounding_seed,
            .shadow = launch->shadow,
            .perturbation = launch->perturbation,
            .fill = launch->fill,
            .seed = launch->seed,
            .workers = launch->workers,
            .instruction_limit = launch->instruction_limit,
            .cancel = launch->cancel,
            .sm_count = launch->sm_count,
        };
        memcpy(run.grid, launch->grid, sizeof run.grid);
        memcpy(run.block, launch->block, sizeof run.block);
        struct ptx_result ran;
        result->status = ptx_run(&run, &ran, &result->diag);
        result->instructions = ran.counts.thread_instructions;
        result->tainted_threads = ran.counts.tainted_threads;
        take_faults(&layout, &ran, result);
        result->unknown_read = layout_own_read(&layout);
        result->events = ran.events;
        result->event_count = ran.event_count;
        result->profile = ran.profile;
        ran.events = NULL;
        ran.event_count = 0;
        ran.profile = NULL;
        ptx_result_free(&ran);
    }
    result->reason = reason_of(result->status);
    layout_end(&layout);
}

void reference_result_free(struct reference_result *result)
{
    free(result->faults);
    free(result->events);
    ptx_profile_free(result->profile);
    *result = (struct reference_result){0};
}
