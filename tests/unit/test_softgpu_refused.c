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

static const struct refused {
    const char *name;
    int error;
} all[] = {
#define REFUSED(name, error, reason) {#name, error},
#include "softgpu/refused.def"
#undef REFUSED
};

static void test_every_row(void **state)
{
    void *libraries[] = {dlopen("libcuda.so.1", RTLD_NOW), dlopen("libcudart.so.13", RTLD_NOW),
                         dlopen("libcublas.so.13", RTLD_NOW), dlopen("libcublasLt.so.13", RTLD_NOW)};
    for (size_t i = 0; i < sizeof all / sizeof *all; i++) {
        int (*function)(uint64_t, uint64_t, uint64_t, uint64_t, uint64_t, uint64_t) = NULL;
        for (size_t k = 0; k < 4 && !function; k++) {
            assert_non_null(libraries[k]);
            *(void **)&function = dlsym(libraries[k], all[i].name);
        }
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
