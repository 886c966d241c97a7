#include "softgpu/module.h"

#include <stdlib.h>
#include <string.h>

#include "softgpu/memory.h"

enum { VARIABLE_ALIGN = 256 };

/* ---- variables -------------------------------------------------------------------------------------------------- */

static uint64_t place(uint64_t offset, uint32_t align)
{
    uint64_t a = align > VARIABLE_ALIGN ? align : VARIABLE_ALIGN;
    return (offset + a - 1) / a * a;
}

/* One allocation for all variables of a module, as a real loader does; managed ones have homes of their own. */
static CUresult place_variables(struct module *m)
{
    const struct ptx_module *ptx = m->image->ptx;
    size_t count = ptx_module_variable_count(ptx);
    uint64_t total = 0;
    for (size_t i = 0; i < count; i++) {
        const struct ptx_variable *v = ptx_module_variable(ptx, i);
        if (v->external)
            return CUDA_ERROR_INVALID_PTX; /* nothing is linked here that could define it */
        if (v->managed)
            continue;
        m->variables[i] = place(total, v->align);
        total = m->variables[i] + (v->size ? v->size : 1);
    }
    if (total) {
        CUresult result = memory_alloc(m->context, total, MEMORY_MODULE, NULL, &m->storage);
        if (result != CUDA_SUCCESS)
            return result;
    }
    for (size_t i = 0; i < count; i++) {
        const struct ptx_variable *v = ptx_module_variable(ptx, i);
        if (!v->managed) {
            m->variables[i] += m->storage;
        } else if (m->library && m->library->managed[i]) {
            m->variables[i] = m->library->managed[i];
        } else {
            void *home;
            CUresult result =
                memory_alloc_host(m->library ? NULL : m->context, v->size, MEMORY_MANAGED, CU_MEM_ATTACH_GLOBAL, &home);
            if (result != CUDA_SUCCESS)
                return result;
            m->variables[i] = (uintptr_t)home;
            if (m->library)
                m->library->managed[i] = (uintptr_t)home;
        }
    }
    return CUDA_SUCCESS;
}

static CUresult write_initial_values(struct module *m, bool *managed_done)
{
    const struct ptx_module *ptx = m->image->ptx;
    for (size_t i = 0; i < ptx_module_variable_count(ptx); i++) {
        const struct ptx_variable *v = ptx_module_variable(ptx, i);
        if (!v->size || (v->managed && managed_done && managed_done[i]))
            continue;
        void *bytes = malloc(v->size);
        if (!bytes)
            return CUDA_ERROR_OUT_OF_MEMORY;
        enum status status = ptx_module_variable_init(ptx, i, m->variables, bytes);
        if (status == STATUS_OK)
            memory_copy(m->variables[i], (uintptr_t)bytes, v->size);
        free(bytes);
        if (status != STATUS_OK)
            return CUDA_ERROR_INVALID_PTX;
    }
    return CUDA_SUCCESS;
}

static CUresult make_variables(struct module *m)
{
    size_t count = ptx_module_variable_count(m->image->ptx);
    /* A library's managed variables exist once; a later context must not reset them. */
    bool *done = calloc(count + 1, sizeof *done);
    m->variables = calloc(count + 1, sizeof *m->variables);
    if (!done || !m->variables) {
        free(done);
        return CUDA_ERROR_OUT_OF_MEMORY;
    }
    for (size_t i = 0; m->library && i < count; i++)
        done[i] = m->library->managed[i] != 0;
    CUresult result = place_variables(m);
    if (result == CUDA_SUCCESS)
        result = write_initial_values(m, done);
    free(done);
    return result;
}

/* ---- modules ---------------------------------------------------------------------------------------------------- */

static CUresult make_functions(struct module *m)
{
    m->function_count = ptx_module_kernel_count(m->image->ptx);
    m->functions = calloc(m->function_count + 1, sizeof *m->functions);
    if (!m->functions)
        return CUDA_ERROR_OUT_OF_MEMORY;
    for (size_t i = 0; i < m->function_count; i++) {
        struct function *f = &m->functions[i];
        f->module = m;
        f->entry = ptx_module_kernel(m->image->ptx, i);
        f->carveout = -1;
        if (m->library) {
            f->kernel = &m->library->kernels[i];
            f->max_dynamic_shared = f->kernel->max_dynamic_shared;
            f->carveout = f->kernel->carveout;
        }
        if (!handle_add(f, HANDLE_FUNCTION))
            return CUDA_ERROR_OUT_OF_MEMORY;
    }
    return CUDA_SUCCESS;
}

CUresult module_create(struct context *context, struct image *image, struct library *library, struct module **out)
{
    struct module *m = calloc(1, sizeof *m);
    if (!m)
        return CUDA_ERROR_OUT_OF_MEMORY;
    m->context = context;
    m->image = image_ref(image);
    m->library = library;
    CUresult result = make_variables(m);
    if (result == CUDA_SUCCESS)
        result = make_functions(m);
    if (result == CUDA_SUCCESS && !handle_add(m, HANDLE_MODULE))
        result = CUDA_ERROR_OUT_OF_MEMORY;
    m->next = context->modules;
    context->modules = m;
    if (result != CUDA_SUCCESS) {
        module_destroy(m);
        return result;
    }
    *out = m;
    return CUDA_SUCCESS;
}

void module_destroy(struct module *m)
{
    for (struct module **p = &m->context->modules; *p; p = &(*p)->next)
        if (*p == m) {
            *p = m->next;
            break;
        }
    handle_remove(m, HANDLE_MODULE);
    for (size_t i = 0; m->functions && i < m->function_count; i++) {
        handle_remove(&m->functions[i], HANDLE_FUNCTION);
        free(m->functions[i].legacy);
    }
    if (m->storage)
        memory_free(m->storage, 1u << MEMORY_MODULE);
    for (size_t i = 0; m->variables && !m->library && i < ptx_module_variable_count(m->image->ptx); i++)
        if (ptx_module_variable(m->image->ptx, i)->managed && m->variables[i])
            memory_free(m->variables[i], 1u << MEMORY_MANAGED);
    free(m->variables);
    free(m->functions);
    image_unref(m->image);
    free(m);
}

void module_unload_context(struct context *context)
{
    context_lock();
    while (context->modules)
        module_destroy(context->modules);
    context_unlock();
}

struct function *module_function(struct module *m, const char *name)
{
    for (size_t i = 0; i < m->function_count; i++)
        if (!strcmp(m->functions[i].entry->name, name))
            return &m->functions[i];
    return NULL;
}

CUresult module_variable(struct module *m, const char *name, uint64_t *address, uint64_t *bytes)
{
    const struct ptx_module *ptx = m->image->ptx;
    for (size_t i = 0; i < ptx_module_variable_count(ptx); i++) {
        const struct ptx_variable *v = ptx_module_variable(ptx, i);
        if (!strcmp(v->name, name)) {
            *address = m->variables[i];
            *bytes = v->size;
            return CUDA_SUCCESS;
        }
    }
    return CUDA_ERROR_NOT_FOUND;
}

CUresult library_module(struct library *library, struct context *context, struct module **out)
{
    CUresult result = CUDA_SUCCESS;
    context_lock();
    struct module *m = context->modules;
    while (m && m->library != library)
        m = m->next;
    if (!m)
        result = module_create(context, library->image, library, &m);
    context_unlock();
    *out = m;
    return result;
}

CUresult function_from(CUfunction handle, struct context *context, struct function **out)
{
    struct module *m;
    CUresult result;
    switch (handle_of(handle)) {
    case HANDLE_FUNCTION:
        *out = (struct function *)handle;
        return CUDA_SUCCESS;
    case HANDLE_KERNEL:
        result = library_module(((struct kernel *)handle)->library, context, &m);
        if (result == CUDA_SUCCESS)
            *out = &m->functions[((struct kernel *)handle)->index];
        return result;
    default:
        return CUDA_ERROR_INVALID_HANDLE;
    }
}
