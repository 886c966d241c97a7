/* libcublas: products of matrices against plain loops, in all types and forms, with 32-bit integers. */
#include "tests/unit/blas_kit.h"

#include "tests/unit/blas_products.inc"

int main(void)
{
    static const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_products),
        cmocka_unit_test(test_typed_products),
        cmocka_unit_test(test_rounding_of_operands),
        cmocka_unit_test(test_groups),
        cmocka_unit_test(test_gemv_batches),
        cmocka_unit_test(test_product_arguments),
    };
    return cmocka_run_group_tests_name("softgpu_cublas_products", tests, blas_setup, blas_teardown);
}
