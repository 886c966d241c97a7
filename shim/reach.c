#include "shim/reach.h"

#include <string.h>

#include "shim/alloc_table.h"
#include "shim/capture_write.h"
#include "shim/device_work.h"
#include "shim/driver.h"
#include "shim/record.h"

/* A library's variables have other addresses in each context. With more contexts than places some are asked again. */
static bool asked_before(struct tracked_module *module, uint32_t context)
{
    for (unsigned i = 0; i < MODULE_CONTEXTS; i++) {
        uint32_t none = 0;
        if (__atomic_compare_exchange_n(&module->asked[i], &none, context, false, __ATOMIC_ACQ_REL, __ATOMIC_ACQUIRE))
            return false;
        if (none == context)
            return true;
    }
    __atomic_store_n(&module->asked[context % MODULE_CONTEXTS], context, __ATOMIC_RELEASE);
    return false;
}

bool reach_variables(struct tracked_module *module)
{
    bool found = false;
    const struct tracked_context *context = module ? track_current_context() : NULL;
    if (!context || !module->scan.variable_count || asked_before(module, context->id))
        return false;
    /* The question may load the module, which a capture of another thread may forbid. */
    CUstreamCaptureMode mode = device_relax();
    for (size_t i = 0; i < module->scan.variable_count; i++) {
        const char *name = module->scan.variables[i].name;
        CUdeviceptr address = 0;
        size_t bytes = 0;
        CUresult result = CUDA_ERROR_NOT_FOUND;
        if (module->library && driver.cuLibraryGetGlobal)
            result = driver.cuLibraryGetGlobal(&address, &bytes, (CUlibrary)(uintptr_t)module->handle, name);
        else if (!module->library && driver.cuModuleGetGlobal_v2)
            result = driver.cuModuleGetGlobal_v2(&address, &bytes, (CUmodule)(uintptr_t)module->handle, name);
        if (result == CUDA_SUCCESS && address && bytes) {
            uint64_t seq = capture_next_seq();
            record_variable(seq, __builtin_ia32_rdtsc(), module, address, bytes, name);
            found = true;
        }
    }
    device_unrelax(mode);
    return found;
}

static uint32_t add(struct reached *out, uint32_t count, const struct allocation *a, uint64_t address)
{
    for (uint32_t i = 0; i < count; i++)
        if (out[i].address == address && out[i].a.id == a->id)
            return count;
    if (count < REACH_MAX)
        out[count++] = (struct reached){*a, address};
    return count;
}

uint32_t reach(struct tracked_kernel *kernel, const uint8_t *arguments, uint32_t bytes, struct reached *out)
{
    uint32_t count = 0;
    struct allocation a;
    const struct tracked_context *context = track_current_context();
    (void)reach_variables(kernel->module);
    for (uint32_t i = 0; i + 8 <= bytes; i += 8) {
        uint64_t word;
        memcpy(&word, arguments + i, 8);
        if (word && alloc_table_find(word, &a))
            count = add(out, count, &a, word);
    }
    for (uint32_t i = 0; kernel->module && track_module_variable(kernel->module, i, &a); i++)
        if (!context || a.context == context->id)
            count = add(out, count, &a, a.address);
    return count;
}
