/* wrap_module.c - modules, libraries, kernels and module variables. */
#include <opsdebug/capture.h>

#include "shim/alloc_table.h"
#include "shim/call.h"
#include "shim/driver.h"
#include "shim/health.h"
#include "shim/intern.h"
#include "shim/record.h"
#include "shim/touch.h"
#include "shim/track.h"

static uint64_t as_number(const void *handle)
{
    return (uint64_t)(uintptr_t)handle;
}

CUresult cuModuleLoad(CUmodule *module, const char *fname)
{
    struct call call;
    if (!call_enter(&call, HOOK_cuModuleLoad))
        return PASS(cuModuleLoad, HOOK_cuModuleLoad)(module, fname);
    health_context();
    call_begin(&call);
    CUresult result = REAL(cuModuleLoad, HOOK_cuModuleLoad)(module, fname);
    call_end(&call);
    if (result == CUDA_SUCCESS)
        track_module_file(as_number(*module), false, fname);
    return call_leave(&call, result);
}

CUresult cuModuleLoadData(CUmodule *module, const void *image)
{
    struct call call;
    if (!call_enter(&call, HOOK_cuModuleLoadData))
        return PASS(cuModuleLoadData, HOOK_cuModuleLoadData)(module, image);
    health_context();
    call_begin(&call);
    CUresult result = REAL(cuModuleLoadData, HOOK_cuModuleLoadData)(module, image);
    call_end(&call);
    if (result == CUDA_SUCCESS)
        track_module_loaded(as_number(*module), false, image, NULL);
    return call_leave(&call, result);
}

CUresult cuModuleLoadDataEx(CUmodule *module, const void *image, unsigned int numOptions, CUjit_option *options,
                            void **optionValues)
{
    struct call call;
    if (!call_enter(&call, HOOK_cuModuleLoadDataEx))
        return PASS(cuModuleLoadDataEx, HOOK_cuModuleLoadDataEx)(module, image, numOptions, options, optionValues);
    health_context();
    call_begin(&call);
    CUresult result =
        REAL(cuModuleLoadDataEx, HOOK_cuModuleLoadDataEx)(module, image, numOptions, options, optionValues);
    call_end(&call);
    if (result == CUDA_SUCCESS)
        track_module_loaded(as_number(*module), false, image, NULL);
    return call_leave(&call, result);
}

CUresult cuModuleLoadFatBinary(CUmodule *module, const void *fatCubin)
{
    struct call call;
    if (!call_enter(&call, HOOK_cuModuleLoadFatBinary))
        return PASS(cuModuleLoadFatBinary, HOOK_cuModuleLoadFatBinary)(module, fatCubin);
    health_context();
    call_begin(&call);
    CUresult result = REAL(cuModuleLoadFatBinary, HOOK_cuModuleLoadFatBinary)(module, fatCubin);
    call_end(&call);
    if (result == CUDA_SUCCESS)
        track_module_loaded(as_number(*module), false, fatCubin, NULL);
    return call_leave(&call, result);
}

CUresult cuModuleUnload(CUmodule hmod)
{
    struct call call;
    if (!call_enter(&call, HOOK_cuModuleUnload))
        return PASS(cuModuleUnload, HOOK_cuModuleUnload)(hmod);
    struct module_taken *taken = track_module_take(as_number(hmod));
    call_begin(&call);
    CUresult result = REAL(cuModuleUnload, HOOK_cuModuleUnload)(hmod);
    call_end(&call);
    track_module_taken(taken, result == CUDA_SUCCESS);
    return call_leave(&call, result);
}

CUresult cuLibraryLoadData(CUlibrary *library, const void *code, CUjit_option *jitOptions, void **jitOptionsValues,
                           unsigned int numJitOptions, CUlibraryOption *libraryOptions, void **libraryOptionValues,
                           unsigned int numLibraryOptions)
{
    struct call call;
    if (!call_enter(&call, HOOK_cuLibraryLoadData))
        return PASS(cuLibraryLoadData, HOOK_cuLibraryLoadData)(library, code, jitOptions, jitOptionsValues,
                                                               numJitOptions, libraryOptions, libraryOptionValues,
                                                               numLibraryOptions);
    health_context();
    call_begin(&call);
    CUresult result =
        REAL(cuLibraryLoadData, HOOK_cuLibraryLoadData)(library, code, jitOptions, jitOptionsValues, numJitOptions,
                                                        libraryOptions, libraryOptionValues, numLibraryOptions);
    call_end(&call);
    if (result == CUDA_SUCCESS)
        track_module_loaded(as_number(*library), true, code, NULL);
    return call_leave(&call, result);
}

CUresult cuLibraryLoadFromFile(CUlibrary *library, const char *fileName, CUjit_option *jitOptions,
                               void **jitOptionsValues, unsigned int numJitOptions, CUlibraryOption *libraryOptions,
                               void **libraryOptionValues, unsigned int numLibraryOptions)
{
    struct call call;
    if (!call_enter(&call, HOOK_cuLibraryLoadFromFile))
        return PASS(cuLibraryLoadFromFile, HOOK_cuLibraryLoadFromFile)(library, fileName, jitOptions, jitOptionsValues,
                                                                       numJitOptions, libraryOptions,
                                                                       libraryOptionValues, numLibraryOptions);
    health_context();
    call_begin(&call);
    CUresult result = REAL(cuLibraryLoadFromFile,
                           HOOK_cuLibraryLoadFromFile)(library, fileName, jitOptions, jitOptionsValues, numJitOptions,
                                                       libraryOptions, libraryOptionValues, numLibraryOptions);
    call_end(&call);
    if (result == CUDA_SUCCESS)
        track_module_file(as_number(*library), true, fileName);
    return call_leave(&call, result);
}

CUresult cuLibraryUnload(CUlibrary library)
{
    struct call call;
    if (!call_enter(&call, HOOK_cuLibraryUnload))
        return PASS(cuLibraryUnload, HOOK_cuLibraryUnload)(library);
    struct module_taken *taken = track_module_take(as_number(library));
    call_begin(&call);
    CUresult result = REAL(cuLibraryUnload, HOOK_cuLibraryUnload)(library);
    call_end(&call);
    track_module_taken(taken, result == CUDA_SUCCESS);
    return call_leave(&call, result);
}

CUresult cuModuleGetFunction(CUfunction *hfunc, CUmodule hmod, const char *name)
{
    struct call call;
    if (!call_enter(&call, HOOK_cuModuleGetFunction))
        return PASS(cuModuleGetFunction, HOOK_cuModuleGetFunction)(hfunc, hmod, name);
    call_begin(&call);
    CUresult result = REAL(cuModuleGetFunction, HOOK_cuModuleGetFunction)(hfunc, hmod, name);
    call_end(&call);
    if (result == CUDA_SUCCESS)
        track_kernel_found(as_number(*hfunc), false, track_module(as_number(hmod)), name);
    return call_leave(&call, result);
}

CUresult cuLibraryGetKernel(CUkernel *pKernel, CUlibrary library, const char *name)
{
    struct call call;
    if (!call_enter(&call, HOOK_cuLibraryGetKernel))
        return PASS(cuLibraryGetKernel, HOOK_cuLibraryGetKernel)(pKernel, library, name);
    call_begin(&call);
    CUresult result = REAL(cuLibraryGetKernel, HOOK_cuLibraryGetKernel)(pKernel, library, name);
    call_end(&call);
    if (result == CUDA_SUCCESS)
        track_kernel_found(as_number(*pKernel), true, track_module(as_number(library)), name);
    return call_leave(&call, result);
}

CUresult cuKernelGetFunction(CUfunction *pFunc, CUkernel kernel)
{
    struct call call;
    if (!call_enter(&call, HOOK_cuKernelGetFunction))
        return PASS(cuKernelGetFunction, HOOK_cuKernelGetFunction)(pFunc, kernel);
    call_begin(&call);
    CUresult result = REAL(cuKernelGetFunction, HOOK_cuKernelGetFunction)(pFunc, kernel);
    call_end(&call);
    if (result == CUDA_SUCCESS) {
        struct tracked_kernel *known = track_kernel(as_number(kernel));
        if (known && as_number(*pFunc) != known->handle)
            track_kernel_alias(as_number(*pFunc), known);
    }
    return call_leave(&call, result);
}

CUresult cuLibraryGetModule(CUmodule *pMod, CUlibrary library)
{
    struct call call;
    if (!call_enter(&call, HOOK_cuLibraryGetModule))
        return PASS(cuLibraryGetModule, HOOK_cuLibraryGetModule)(pMod, library);
    call_begin(&call);
    CUresult result = REAL(cuLibraryGetModule, HOOK_cuLibraryGetModule)(pMod, library);
    call_end(&call);
    if (result == CUDA_SUCCESS) {
        struct tracked_module *known = track_module(as_number(library));
        if (known)
            track_module_alias(as_number(*pMod), known);
    }
    return call_leave(&call, result);
}

/* Who has its address may touch it. */
static bool is_managed(CUdeviceptr address)
{
    unsigned managed = 0;
    return !driver.cuPointerGetAttribute ||
           driver.cuPointerGetAttribute(&managed, CU_POINTER_ATTRIBUTE_IS_MANAGED, address) != CUDA_SUCCESS || managed;
}

/* Either of the two may be NULL; then it is found when a snapshot needs it. */
static void variable_found(const struct call *call, uint64_t module, const CUdeviceptr *address, const size_t *bytes,
                           const char *name)
{
    if (address && !touch_managed_is_shared() && is_managed(*address))
        touch_managed_seen();
    if (address && bytes && *address && *bytes)
        record_variable(call->seq, call->tsc, track_module(module), *address, *bytes, name);
}

CUresult cuModuleGetGlobal_v2(CUdeviceptr *dptr, size_t *bytes, CUmodule hmod, const char *name)
{
    struct call call;
    if (!call_enter(&call, HOOK_cuModuleGetGlobal_v2))
        return PASS(cuModuleGetGlobal_v2, HOOK_cuModuleGetGlobal_v2)(dptr, bytes, hmod, name);
    call_begin(&call);
    CUresult result = REAL(cuModuleGetGlobal_v2, HOOK_cuModuleGetGlobal_v2)(dptr, bytes, hmod, name);
    call_end(&call);
    if (result == CUDA_SUCCESS)
        variable_found(&call, as_number(hmod), dptr, bytes, name);
    return call_leave(&call, result);
}

CUresult cuLibraryGetGlobal(CUdeviceptr *dptr, size_t *bytes, CUlibrary library, const char *name)
{
    struct call call;
    if (!call_enter(&call, HOOK_cuLibraryGetGlobal))
        return PASS(cuLibraryGetGlobal, HOOK_cuLibraryGetGlobal)(dptr, bytes, library, name);
    call_begin(&call);
    CUresult result = REAL(cuLibraryGetGlobal, HOOK_cuLibraryGetGlobal)(dptr, bytes, library, name);
    call_end(&call);
    if (result == CUDA_SUCCESS)
        variable_found(&call, as_number(library), dptr, bytes, name);
    return call_leave(&call, result);
}

CUresult cuLibraryGetManaged(CUdeviceptr *dptr, size_t *bytes, CUlibrary library, const char *name)
{
    struct call call;
    if (!call_enter(&call, HOOK_cuLibraryGetManaged))
        return PASS(cuLibraryGetManaged, HOOK_cuLibraryGetManaged)(dptr, bytes, library, name);
    call_begin(&call);
    CUresult result = REAL(cuLibraryGetManaged, HOOK_cuLibraryGetManaged)(dptr, bytes, library, name);
    call_end(&call);
    if (result == CUDA_SUCCESS)
        variable_found(&call, as_number(library), dptr, bytes, name);
    return call_leave(&call, result);
}
