/* libcublas: levels 1 to 3 against plain loops, in all types, with 64-bit integers. */
#define NAME(name) name##_64
#define INT        int64_t
#include "tests/unit/blas_kit.h"

#include "tests/unit/blas_level1.inc"
#include "tests/unit/blas_level2.inc"
#include "tests/unit/blas_level3.inc"

int main(void)
{
    static const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_level1),
        cmocka_unit_test(test_level1_typed),
        cmocka_unit_test(test_level1_arguments),
        cmocka_unit_test(test_general),
        cmocka_unit_test(test_symmetric_and_triangular),
        cmocka_unit_test(test_rank_updates),
        cmocka_unit_test(test_level2_with_device_scalars),
        cmocka_unit_test(test_level2_arguments),
        cmocka_unit_test(test_level3),
        cmocka_unit_test(test_beyond_the_blas),
        cmocka_unit_test(test_level3_arguments),
    };
    return cmocka_run_group_tests_name("softgpu_cublas_levels_64", tests, blas_setup, blas_teardown);
}
