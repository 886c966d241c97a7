/* exec_tile.h - a matrix instruction as the plain way does it (exec_matrix.c, exec_product.c): tiles, who takes part,
 * and what elements are as numbers. */
#ifndef PTX_EXEC_TILE_H
#define PTX_EXEC_TILE_H

#include "ptx/exec_shadow.h"
#include "ptx/matrix.h"
#include "ptx/matrix_sum.h"

/* `shadow` is kept in checked mode, `number` and `pair` in shadow mode. */
struct tile {
    uint64_t bits[TILE_ELEMENTS];
    struct shadow shadow[TILE_ELEMENTS];
    struct ptx_shadow_value number[TILE_ELEMENTS];
    struct number_pair pair[TILE_ELEMENTS];
};

struct warp {
    struct worker *worker;
    struct block *block;
    struct thread *const *lanes;
    struct thread *first; /* some lane that is there */
    const struct insn *in;
    const struct matrix *matrix;
    const uint32_t *extra;
    bool checked, shadow, whole;
};

static inline union slot *slot_at(const struct thread *t, uint32_t slot)
{
    return &t->stack[t->base + slot];
}

static inline unsigned elements(const struct fragment *f)
{
    return (unsigned)f->rows * f->columns * f->batches;
}

static inline double decode(enum matrix_type type, uint64_t bits)
{
    switch (type) {
    case MATRIX_F16:
        return (double)half_to_float((uint16_t)bits);
    case MATRIX_BF16:
        return (double)bfloat_to_float((uint16_t)bits);
    case MATRIX_TF32: { /* the lower 13 bits of the mantissa are not looked at */
        float x = float32((uint32_t)bits);
        return x != x ? (double)x : (double)float32((uint32_t)bits & ~UINT32_C(0x1fff));
    }
    case MATRIX_F64:
        return float64(bits);
    case MATRIX_E4M3:
        return mini_to_double((uint8_t)bits, MINI_E4M3);
    case MATRIX_E5M2:
        return mini_to_double((uint8_t)bits, MINI_E5M2);
    default:
        return (double)float32((uint32_t)bits);
    }
}

struct product {
    const struct tile *a, *b, *c;
    struct tile *d;
    unsigned m, n, k, batch; /* batch: which of several */
};

static inline unsigned cell_a(const struct product *p, unsigned i, unsigned k)
{
    return (p->batch * p->m + i) * p->k + k;
}

static inline unsigned cell_b(const struct product *p, unsigned k, unsigned j)
{
    return (p->batch * p->k + k) * p->n + j;
}

static inline unsigned cell_c(const struct product *p, unsigned i, unsigned j)
{
    return (p->batch * p->m + i) * p->n + j;
}

/* d's values in one batch. */
void product_values(const struct warp *w, const struct product *p);

#endif
