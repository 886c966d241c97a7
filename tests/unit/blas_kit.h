/* blas_kit.h - what the tests of softgpu's BLAS libraries share: arrays on the device with their values as numbers, and
 * the plain loops that results are compared with. Small multiples of 1/8 are used throughout: exact in every type. */
#ifndef TESTS_UNIT_BLAS_KIT_H
#define TESTS_UNIT_BLAS_KIT_H

#include <complex.h>
#include <math.h>

#include "tests/unit/softgpu_test.h"

#include <cublasLt.h>
#include <cublas_v2.h>

typedef double complex number;

struct array {
    cudaDataType type;
    int64_t n;
    CUdeviceptr d;
    number *v; /* as uploaded */
};

extern cublasHandle_t handle;
int blas_setup(void **state);
int blas_teardown(void **state);

size_t type_bytes(cudaDataType type);
bool type_is_complex(cudaDataType type);
/* Reads and writes one element of an array in the host's memory. */
number get(const void *data, cudaDataType type, int64_t i);
void put(void *data, cudaDataType type, int64_t i, number value);

/* Pseudo-random values, the same for the same seed. */
struct array array_new(cudaDataType type, int64_t n, unsigned seed);
struct array array_of(cudaDataType type, int64_t n, number value);
void array_set(struct array *a); /* uploads v again */
void array_free(struct array *a);
void *pointer(const struct array *a);
/* The device's values; free(). */
number *array_get(const struct array *a);
/* Fails unless every element on the device is within tolerance * max(1, |wanted|) of `wanted`, NaN for NaN. */
void array_expect(const struct array *a, const number *wanted, double tolerance, const char *what);

/* Addresses of the `count` members of a batch inside of `a`, `step` elements apart, on the device; cuMemFree_v2(). */
CUdeviceptr address_list(const struct array *a, int64_t step, int count);

/* Where scalar() puts its numbers and results are expected, for the handle too: CUBLAS_POINTER_MODE_HOST at first. */
void use_pointer_mode(cublasPointerMode_t mode);
/* A scalar in the type's own format; the address stays valid for the next seven calls. */
const void *scalar(cudaDataType type, number value);
/* Room for a result in the pointer mode, filled with something else, and what is there after the call. */
void *result_room(void);
number result(cudaDataType type);

number op_at(const number *v, int64_t ld, cublasOperation_t op, int64_t i, int64_t j);
/* c = alpha op(a) op(b) + beta c; c is not read when beta is 0. */
void loop_gemm(cublasOperation_t ta, cublasOperation_t tb, int m, int n, int k, number alpha, const number *a, int lda,
               const number *b, int ldb, number beta, number *c, int ldc);
/* Full symmetric or Hermitian matrix out of its triangle, and triangular with zeros beside it. */
void full_symmetric(number *full, const number *v, int n, int ld, cublasFillMode_t uplo, bool hermitian);
void full_triangle(number *full, const number *v, int n, int ld, cublasFillMode_t uplo, cublasDiagType_t diag);

/* Index of element i of a vector of n with increment inc. */
int64_t at(int64_t i, int64_t n, int64_t inc);
number *copy_of(const struct array *a); /* its v; free() */
void expect_number(number got, number wanted, double tolerance, const char *what);
/* The nearest value of the type, ties to even; both parts of complex ones. Not for subnormals. */
number rounded(cudaDataType type, number value);
/* `re` alone for real types. */
number factor(cudaDataType type, double re, double im);
cudaDataType real_of(cudaDataType type);

#define succeeds(call) assert_int_equal((call), CUBLAS_STATUS_SUCCESS)

extern const cudaDataType real_and_complex[4];
extern const cublasOperation_t ops[3];
extern const cublasFillMode_t fills[2];
double tolerance_of(cudaDataType type);

/* A function's name in the width of integers that is tested; with 64 bits NAME(f) is defined before. */
#ifndef NAME
#define NAME(name) name
#define INT        int
#endif
/* The function of a type by the letters of all four, with pointers to void. */
#define CALL_OF(type, s, d, c, z, ...)                                                                                 \
    ((type) == CUDA_R_32F   ? NAME(cublas##s)(__VA_ARGS__)                                                             \
     : (type) == CUDA_R_64F ? NAME(cublas##d)(__VA_ARGS__)                                                             \
     : (type) == CUDA_C_32F ? NAME(cublas##c)(__VA_ARGS__)                                                             \
                            : NAME(cublas##z)(__VA_ARGS__))
#define CALL(type, routine, ...) CALL_OF(type, S##routine, D##routine, C##routine, Z##routine, __VA_ARGS__)
#define CALL_REAL(type, routine, ...)                                                                                  \
    ((type) == CUDA_R_32F ? NAME(cublasS##routine)(__VA_ARGS__) : NAME(cublasD##routine)(__VA_ARGS__))
#define CALL_COMPLEX(type, routine, ...)                                                                               \
    ((type) == CUDA_C_32F ? NAME(cublasC##routine)(__VA_ARGS__) : NAME(cublasZ##routine)(__VA_ARGS__))

#endif
