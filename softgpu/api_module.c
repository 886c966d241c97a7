/* Modules, libraries and kernels: loading and looking up. */
#include <stdlib.h>
#include <string.h>

#include "softgpu/memory.h"
#include "softgpu/module.h"

/* ---- modules ---------------------------------------------------------------------------------------------------- */

CUresult cuModuleLoadDataEx(CUmodule *module, const void *image, unsigned int numOptions, CUjit_option *options,
                            void **optionValues)
{
    struct context *c;
    CUresult result = enter_context(&c);
    if (result != CUDA_SUCCESS)
        return result;
    if (!module || !image || (numOptions && (!options || !optionValues)))
        return CUDA_ERROR_INVALID_VALUE;
    struct jit_log log;
    struct image *loaded;
    struct module *m = NULL;
    jit_log_from(&log, numOptions, options, optionValues);
    result = image_load(image, &log, &loaded);
    if (result != CUDA_SUCCESS)
        return result;
    context_lock();
    result = module_create(c, loaded, NULL, &m);
    context_unlock();
    image_unref(loaded);
    if (result == CUDA_SUCCESS)
        *module = (CUmodule)m;
    return result;
}

CUresult cuModuleLoadData(CUmodule *module, const void *image)
{
    return cuModuleLoadDataEx(module, image, 0, NULL, NULL);
}

CUresult cuModuleLoadFatBinary(CUmodule *module, const void *fatCubin)
{
    return cuModuleLoadDataEx(module, fatCubin, 0, NULL, NULL);
}

CUresult cuModuleLoad(CUmodule *module, const char *fname)
{
    struct context *c;
    CUresult result = enter_context(&c);
    if (result != CUDA_SUCCESS)
        return result;
    if (!module || !fname)
        return CUDA_ERROR_INVALID_VALUE;
    char *data;
    result = image_read_file(fname, &data);
    if (result != CUDA_SUCCESS)
        return result;
    result = cuModuleLoadDataEx(module, data, 0, NULL, NULL);
    free(data);
    return result;
}

static CUresult enter_module(CUmodule handle, struct module **out)
{
    struct context *c;
    CUresult result = enter_context(&c);
    if (result != CUDA_SUCCESS)
        return result;
    if (handle_of(handle) != HANDLE_MODULE)
        return CUDA_ERROR_INVALID_HANDLE;
    *out = (struct module *)handle;
    return CUDA_SUCCESS;
}

CUresult cuModuleUnload(CUmodule hmod)
{
    struct module *m;
    CUresult result = enter_module(hmod, &m);
    if (result != CUDA_SUCCESS)
        return result;
    if (m->library)
        return CUDA_ERROR_INVALID_HANDLE;
    result = engine_wait_context(m->context);
    if (result != CUDA_SUCCESS)
        return result;
    context_flush(m->context);
    context_lock();
    module_destroy(m);
    context_unlock();
    return CUDA_SUCCESS;
}

CUresult cuModuleGetLoadingMode(CUmoduleLoadingMode *mode)
{
    CUresult result = enter();
    if (result != CUDA_SUCCESS)
        return result;
    if (!mode)
        return CUDA_ERROR_INVALID_VALUE;
    const char *asked = secure_getenv("CUDA_MODULE_LOADING");
    *mode = asked && !strcmp(asked, "EAGER") ? CU_MODULE_EAGER_LOADING : CU_MODULE_LAZY_LOADING;
    return CUDA_SUCCESS;
}

CUresult cuModuleGetFunction(CUfunction *hfunc, CUmodule hmod, const char *name)
{
    struct module *m;
    CUresult result = enter_module(hmod, &m);
    if (result != CUDA_SUCCESS)
        return result;
    if (!hfunc || !name)
        return CUDA_ERROR_INVALID_VALUE;
    *hfunc = (CUfunction)module_function(m, name);
    return *hfunc ? CUDA_SUCCESS : CUDA_ERROR_NOT_FOUND;
}

CUresult cuModuleGetFunctionCount(unsigned int *count, CUmodule mod)
{
    struct module *m;
    CUresult result = enter_module(mod, &m);
    if (result != CUDA_SUCCESS)
        return result;
    if (!count)
        return CUDA_ERROR_INVALID_VALUE;
    *count = (unsigned)m->function_count;
    return CUDA_SUCCESS;
}

CUresult cuModuleEnumerateFunctions(CUfunction *functions, unsigned int numFunctions, CUmodule mod)
{
    struct module *m;
    CUresult result = enter_module(mod, &m);
    if (result != CUDA_SUCCESS)
        return result;
    if (!functions)
        return CUDA_ERROR_INVALID_VALUE;
    for (unsigned i = 0; i < numFunctions && i < m->function_count; i++)
        functions[i] = (CUfunction)&m->functions[i];
    return CUDA_SUCCESS;
}

static CUresult give_variable(struct module *m, const char *name, CUdeviceptr *dptr, size_t *bytes)
{
    uint64_t address, size;
    CUresult result = module_variable(m, name, &address, &size);
    if (result == CUDA_SUCCESS && dptr)
        *dptr = address;
    if (result == CUDA_SUCCESS && bytes)
        *bytes = size;
    return result;
}

CUresult cuModuleGetGlobal_v2(CUdeviceptr *dptr, size_t *bytes, CUmodule hmod, const char *name)
{
    struct module *m;
    CUresult result = enter_module(hmod, &m);
    if (result != CUDA_SUCCESS)
        return result;
    return name ? give_variable(m, name, dptr, bytes) : CUDA_ERROR_INVALID_VALUE;
}

/* ---- libraries -------------------------------------------------------------------------------------------------- */

static void library_free(struct library *l)
{
    for (size_t i = 0; l->kernels && i < l->kernel_count; i++)
        handle_remove(&l->kernels[i], HANDLE_KERNEL);
    handle_remove(l, HANDLE_LIBRARY);
    for (size_t i = 0; l->managed && i < ptx_module_variable_count(l->image->ptx); i++)
        if (l->managed[i])
            memory_free(l->managed[i], 1u << MEMORY_MANAGED);
    image_unref(l->image);
    free(l->kernels);
    free(l->managed);
    free(l);
}

static CUresult library_create(struct image *image, struct library **out)
{
    struct library *l = calloc(1, sizeof *l);
    if (!l)
        return CUDA_ERROR_OUT_OF_MEMORY;
    l->image = image_ref(image);
    l->kernel_count = ptx_module_kernel_count(image->ptx);
    l->kernels = calloc(l->kernel_count + 1, sizeof *l->kernels);
    l->managed = calloc(ptx_module_variable_count(image->ptx) + 1, sizeof *l->managed);
    bool ok = l->kernels && l->managed && handle_add(l, HANDLE_LIBRARY);
    for (size_t i = 0; ok && i < l->kernel_count; i++) {
        l->kernels[i] =
            (struct kernel){.library = l, .entry = ptx_module_kernel(image->ptx, i), .index = i, .carveout = -1};
        ok = handle_add(&l->kernels[i], HANDLE_KERNEL);
    }
    if (!ok) {
        library_free(l);
        return CUDA_ERROR_OUT_OF_MEMORY;
    }
    *out = l;
    return CUDA_SUCCESS;
}

CUresult cuLibraryLoadData(CUlibrary *library, const void *code, CUjit_option *jitOptions, void **jitOptionsValues,
                           unsigned int numJitOptions, CUlibraryOption *libraryOptions, void **libraryOptionValues,
                           unsigned int numLibraryOptions)
{
    CUresult result = enter();
    if (result != CUDA_SUCCESS)
        return result;
    if (!library || !code || (numJitOptions && (!jitOptions || !jitOptionsValues)) ||
        (numLibraryOptions && !libraryOptions))
        return CUDA_ERROR_INVALID_VALUE;
    struct jit_log log;
    struct image *image;
    struct library *l = NULL;
    jit_log_from(&log, numJitOptions, jitOptions, jitOptionsValues);
    result = image_load(code, &log, &image);
    if (result != CUDA_SUCCESS)
        return result;
    result = library_create(image, &l);
    image_unref(image);
    if (result == CUDA_SUCCESS)
        *library = (CUlibrary)l;
    return result;
}

CUresult cuLibraryLoadFromFile(CUlibrary *library, const char *fileName, CUjit_option *jitOptions,
                               void **jitOptionsValues, unsigned int numJitOptions, CUlibraryOption *libraryOptions,
                               void **libraryOptionValues, unsigned int numLibraryOptions)
{
    CUresult result = enter();
    if (result != CUDA_SUCCESS)
        return result;
    if (!library || !fileName)
        return CUDA_ERROR_INVALID_VALUE;
    char *data;
    result = image_read_file(fileName, &data);
    if (result != CUDA_SUCCESS)
        return result;
    result = cuLibraryLoadData(library, data, jitOptions, jitOptionsValues, numJitOptions, libraryOptions,
                               libraryOptionValues, numLibraryOptions);
    free(data);
    return result;
}

static CUresult enter_library(CUlibrary handle, struct library **out)
{
    CUresult result = enter();
    if (result != CUDA_SUCCESS)
        return result;
    if (handle_of(handle) != HANDLE_LIBRARY)
        return CUDA_ERROR_INVALID_HANDLE;
    *out = (struct library *)handle;
    return CUDA_SUCCESS;
}

CUresult cuLibraryUnload(CUlibrary library)
{
    struct library *l;
    CUresult result = enter_library(library, &l);
    if (result != CUDA_SUCCESS)
        return result;
    result = engine_wait_device();
    if (result != CUDA_SUCCESS || state_exiting()) /* the runtime's; other threads may be launching still */
        return result;
    context_lock();
    for (struct context *c = context_all(); c; c = c->next)
        for (struct module *m = c->modules, *next; m; m = next) {
            next = m->next;
            if (m->library == l)
                module_destroy(m);
        }
    context_unlock();
    library_free(l);
    return CUDA_SUCCESS;
}

CUresult cuLibraryGetKernel(CUkernel *pKernel, CUlibrary library, const char *name)
{
    struct library *l;
    CUresult result = enter_library(library, &l);
    if (result != CUDA_SUCCESS)
        return result;
    if (!pKernel || !name)
        return CUDA_ERROR_INVALID_VALUE;
    for (size_t i = 0; i < l->kernel_count; i++)
        if (!strcmp(l->kernels[i].entry->name, name)) {
            *pKernel = (CUkernel)&l->kernels[i];
            return CUDA_SUCCESS;
        }
    return CUDA_ERROR_NOT_FOUND;
}

CUresult cuLibraryGetKernelCount(unsigned int *count, CUlibrary lib)
{
    struct library *l;
    CUresult result = enter_library(lib, &l);
    if (result != CUDA_SUCCESS)
        return result;
    if (!count)
        return CUDA_ERROR_INVALID_VALUE;
    *count = (unsigned)l->kernel_count;
    return CUDA_SUCCESS;
}

CUresult cuLibraryEnumerateKernels(CUkernel *kernels, unsigned int numKernels, CUlibrary lib)
{
    struct library *l;
    CUresult result = enter_library(lib, &l);
    if (result != CUDA_SUCCESS)
        return result;
    if (!kernels)
        return CUDA_ERROR_INVALID_VALUE;
    for (unsigned i = 0; i < numKernels && i < l->kernel_count; i++)
        kernels[i] = (CUkernel)&l->kernels[i];
    return CUDA_SUCCESS;
}

static CUresult enter_library_module(CUlibrary library, struct module **out)
{
    struct library *l;
    struct context *c;
    CUresult result = enter_library(library, &l);
    if (result == CUDA_SUCCESS)
        result = enter_context(&c);
    return result == CUDA_SUCCESS ? library_module(l, c, out) : result;
}

CUresult cuLibraryGetModule(CUmodule *pMod, CUlibrary library)
{
    struct module *m;
    CUresult result = enter_library_module(library, &m);
    if (result != CUDA_SUCCESS)
        return result;
    if (!pMod)
        return CUDA_ERROR_INVALID_VALUE;
    *pMod = (CUmodule)m;
    return CUDA_SUCCESS;
}

CUresult cuLibraryGetGlobal(CUdeviceptr *dptr, size_t *bytes, CUlibrary library, const char *name)
{
    struct module *m;
    CUresult result = enter_library_module(library, &m);
    if (result != CUDA_SUCCESS)
        return result;
    return name ? give_variable(m, name, dptr, bytes) : CUDA_ERROR_INVALID_VALUE;
}

CUresult cuLibraryGetManaged(CUdeviceptr *dptr, size_t *bytes, CUlibrary library, const char *name)
{
    struct library *l;
    struct module *m;
    CUresult result = enter_library(library, &l);
    if (result != CUDA_SUCCESS)
        return result;
    if (!name)
        return CUDA_ERROR_INVALID_VALUE;
    size_t i = 0, count = ptx_module_variable_count(l->image->ptx);
    while (i < count && strcmp(ptx_module_variable(l->image->ptx, i)->name, name) != 0)
        i++;
    if (i == count || !ptx_module_variable(l->image->ptx, i)->managed)
        return CUDA_ERROR_NOT_FOUND;
    result = enter_library_module(library, &m);
    return result == CUDA_SUCCESS ? give_variable(m, name, dptr, bytes) : result;
}

CUresult cuLibraryGetUnifiedFunction(void **fptr, CUlibrary library, const char *symbol)
{
    struct library *l;
    CUresult result = enter_library(library, &l);
    return result == CUDA_SUCCESS ? CUDA_ERROR_NOT_FOUND : result;
}

/* ---- kernels ---------------------------------------------------------------------------------------------------- */

static CUresult enter_kernel(CUkernel handle, struct kernel **out)
{
    CUresult result = enter();
    if (result != CUDA_SUCCESS)
        return result;
    if (handle_of(handle) != HANDLE_KERNEL)
        return CUDA_ERROR_INVALID_HANDLE;
    *out = (struct kernel *)handle;
    return CUDA_SUCCESS;
}

CUresult cuKernelGetFunction(CUfunction *pFunc, CUkernel kernel)
{
    struct kernel *k;
    struct context *c;
    struct function *f;
    CUresult result = enter_kernel(kernel, &k);
    if (result == CUDA_SUCCESS)
        result = enter_context(&c);
    if (result != CUDA_SUCCESS)
        return result;
    if (!pFunc)
        return CUDA_ERROR_INVALID_VALUE;
    result = function_from((CUfunction)kernel, c, &f);
    if (result == CUDA_SUCCESS)
        *pFunc = (CUfunction)f;
    return result;
}

CUresult cuKernelGetLibrary(CUlibrary *pLib, CUkernel kernel)
{
    struct kernel *k;
    CUresult result = enter_kernel(kernel, &k);
    if (result != CUDA_SUCCESS)
        return result;
    if (!pLib)
        return CUDA_ERROR_INVALID_VALUE;
    *pLib = (CUlibrary)k->library;
    return CUDA_SUCCESS;
}

CUresult cuKernelGetName(const char **name, CUkernel hfunc)
{
    CUresult result = enter();
    if (result != CUDA_SUCCESS)
        return result;
    if (!name)
        return CUDA_ERROR_INVALID_VALUE;
    if (handle_of(hfunc) == HANDLE_FUNCTION)
        *name = ((struct function *)hfunc)->entry->name;
    else if (handle_of(hfunc) == HANDLE_KERNEL)
        *name = ((struct kernel *)hfunc)->entry->name;
    else
        return CUDA_ERROR_INVALID_HANDLE;
    return CUDA_SUCCESS;
}

static CUresult give_param(const struct ptx_kernel *entry, size_t index, size_t *offset, size_t *size)
{
    if (!offset)
        return CUDA_ERROR_INVALID_VALUE;
    if (index >= entry->param_count)
        return CUDA_ERROR_INVALID_VALUE;
    *offset = entry->params[index].offset;
    if (size)
        *size = entry->params[index].size;
    return CUDA_SUCCESS;
}

CUresult cuKernelGetParamInfo(CUkernel kernel, size_t paramIndex, size_t *paramOffset, size_t *paramSize)
{
    struct kernel *k;
    CUresult result = enter_kernel(kernel, &k);
    return result == CUDA_SUCCESS ? give_param(k->entry, paramIndex, paramOffset, paramSize) : result;
}

CUresult cuKernelGetAttribute(int *pi, CUfunction_attribute attrib, CUkernel kernel, CUdevice dev)
{
    struct kernel *k;
    CUresult result = enter_kernel(kernel, &k);
    if (result != CUDA_SUCCESS)
        return result;
    if (!pi)
        return CUDA_ERROR_INVALID_VALUE;
    if (!device_exists(dev))
        return CUDA_ERROR_INVALID_DEVICE;
    return function_attribute(k->entry, k->library->image, k->max_dynamic_shared, k->carveout, attrib, pi);
}

CUresult cuKernelSetAttribute(CUfunction_attribute attrib, int val, CUkernel kernel, CUdevice dev)
{
    struct kernel *k;
    CUresult result = enter_kernel(kernel, &k);
    if (result != CUDA_SUCCESS)
        return result;
    if (!device_exists(dev))
        return CUDA_ERROR_INVALID_DEVICE;
    result = function_check_attribute(k->entry, attrib, val);
    if (result != CUDA_SUCCESS)
        return result;
    context_lock();
    for (struct context *c = context_all(); c; c = c->next)
        for (struct module *m = c->modules; m; m = m->next)
            if (m->library == k->library && attrib == CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES)
                m->functions[k->index].max_dynamic_shared = val;
    if (attrib == CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES)
        k->max_dynamic_shared = val;
    else
        k->carveout = val;
    context_unlock();
    return CUDA_SUCCESS;
}

CUresult cuKernelSetCacheConfig(CUkernel kernel, CUfunc_cache config, CUdevice dev)
{
    struct kernel *k;
    CUresult result = enter_kernel(kernel, &k);
    if (result == CUDA_SUCCESS && (unsigned)config > CU_FUNC_CACHE_PREFER_EQUAL)
        result = CUDA_ERROR_INVALID_VALUE;
    if (result == CUDA_SUCCESS && !device_exists(dev))
        result = CUDA_ERROR_INVALID_DEVICE;
    return result;
}

CUresult cuFuncGetParamInfo(CUfunction func, size_t paramIndex, size_t *paramOffset, size_t *paramSize)
{
    struct context *c;
    struct function *f;
    CUresult result = enter_context(&c);
    if (result == CUDA_SUCCESS)
        result = function_from(func, c, &f);
    return result == CUDA_SUCCESS ? give_param(f->entry, paramIndex, paramOffset, paramSize) : result;
}
