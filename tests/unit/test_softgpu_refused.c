/* What refused.def lists is exported, and returns the error that it names. */
#include <dlfcn.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <cublas_v2.h>
#include <cuda.h>
#include <cuda_runtime_api.h>
#if __has_include(<cupti.h>)
#include <cupti.h>
#define WITH_CUPTI 1
#endif

static const struct refused {
    const char *name;
    int error;
} all[] = {
#define REFUSED(name, error, reason) {#name, error},
#include "softgpu/refused.def"
#ifdef WITH_CUPTI
#include "softgpu/cupti/refused.def"
#endif
#undef REFUSED
};

static void test_every_row(void **state)
{
    static const char *const names[] = {
        "libcuda.so.1",   "libcudart.so.13", "libcublas.so.13", "libcublasLt.so.13",
#ifdef WITH_CUPTI
        "libcupti.so.13",
#endif
    };
    enum { LIBRARIES = sizeof names / sizeof *names };
    void *libraries[LIBRARIES];
    for (size_t k = 0; k < LIBRARIES; k++) {
        libraries[k] = dlopen(names[k], RTLD_NOW);
        assert_non_null(libraries[k]);
    }
    for (size_t i = 0; i < sizeof all / sizeof *all; i++) {
        int (*function)(uint64_t, uint64_t, uint64_t, uint64_t, uint64_t, uint64_t) = NULL;
        for (size_t k = 0; k < LIBRARIES && !function; k++)
            *(void **)&function = dlsym(libraries[k], all[i].name);
        if (!function)
            fail_msg("%s is not exported", all[i].name);
        int error = function(0, 0, 0, 0, 0, 0);
        if (error != all[i].error)
            fail_msg("%s returns %d, not %d", all[i].name, error, all[i].error);
    }
}

int main(void)
{
    static const struct CMUnitTest tests[] = {cmocka_unit_test(test_every_row)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
