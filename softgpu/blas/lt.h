/* lt.h - inside libcublasLt: what its opaque descriptors hold. Their sizes are those of the header's opaque structures.
 */
#ifndef SOFTGPU_BLAS_LT_H
#define SOFTGPU_BLAS_LT_H

#include "softgpu/blas/blas.h"

struct lt_layout {
    int32_t type, order, batch_count, batch_mode;
    uint64_t rows, cols;
    int64_t ld, stride, plane_offset;
};
_Static_assert(sizeof(struct lt_layout) <= sizeof(cublasLtMatrixLayoutOpaque_t), "layout fits");

enum { LT_SCALES = 6 }; /* of A, B, C, D, the auxiliary matrix, and the scales written for D */
struct lt_matmul {
    int32_t compute, scale_type, pointer_mode, transa, transb, transc, fill_mode;
    uint32_t epilogue;
    int32_t sm_count, aux_type, bias_type;
    int32_t scale_mode[LT_SCALES];
    int8_t fast_accumulation;
    uint64_t bias, aux, scale[LT_SCALES], amax_d, amax_aux, emulation;
    int64_t bias_stride, aux_ld, aux_stride, alpha_stride;
};
_Static_assert(sizeof(struct lt_matmul) <= sizeof(cublasLtMatmulDescOpaque_t), "operation fits");

struct lt_transform {
    int32_t scale_type, pointer_mode, transa, transb;
};
_Static_assert(sizeof(struct lt_transform) <= sizeof(cublasLtMatrixTransformDescOpaque_t), "transformation fits");

struct lt_preference {
    uint32_t search_mode, reduction_mask, alignment[4];
    uint64_t workspace, implementation_mask;
    float waves;
};
_Static_assert(sizeof(struct lt_preference) <= sizeof(cublasLtMatmulPreferenceOpaque_t), "preference fits");

struct lt_algo {
    uint32_t magic;
    int32_t id;
    uint32_t tile;
    int32_t split_k;
    uint32_t reduction, swizzling, custom, stages;
    uint16_t inner_shape, cluster_shape;
};
_Static_assert(sizeof(struct lt_algo) <= sizeof(cublasLtMatmulAlgo_t), "algorithm fits");

/* A field of such a structure that has a number in the interface. */
struct lt_attribute {
    int id;
    size_t offset, bytes;
};
#define LT_FIELD(id, structure, field)                                                                                 \
    {                                                                                                                  \
        id, offsetof(struct structure, field), sizeof(((struct structure *)0)->field)                                  \
    }

/* CUBLAS_STATUS_INVALID_VALUE for NULL, an unknown attribute, or a size that is not the field's. */
cublasStatus_t lt_set(void *object, const struct lt_attribute *table, size_t count, int id, const void *value,
                      size_t bytes);
/* With `bytes` 0 only the size is told. */
cublasStatus_t lt_get(const void *object, const struct lt_attribute *table, size_t count, int id, void *value,
                      size_t bytes, size_t *written);

/* One multiplication as its job holds it. */
struct lt_work {
    struct lt_matmul op;
    struct operand d, alpha_vector, beta_vector;
};
/* Whether the combination can be run: CUBLAS_STATUS_INVALID_VALUE for what contradicts itself, NOT_SUPPORTED. */
cublasStatus_t lt_check(const struct lt_matmul *op, const struct lt_layout *a, const struct lt_layout *b,
                        const struct lt_layout *c, const struct lt_layout *d);
/* Runs it: `a`, `b`, `c` of the job and the lt_work in `extra`. */
void lt_run(struct job *job);

/* The only algorithm. */
enum { LT_ALGO_ID = 0, LT_ALGO_MAGIC = 0x736c7431 };
bool lt_algo_valid(const cublasLtMatmulAlgo_t *algo);

#endif
