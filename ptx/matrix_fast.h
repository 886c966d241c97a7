/* matrix_fast.h - matrix products of whole warps on vectors, and how their elements go between registers and rows. The
 * results are those of exec_product.c, bit for bit: it stays the oracle, and does what is not done here.
 *
 *     matrix_fast.inc      compiled for AVX2 (matrix_v3.c) and AVX-512 (matrix_v4.c)
 *     matrix_order.c       where each piece goes, worked out when code is lowered
 *     matrix_fast.c        which of them runs
 */
#ifndef PTX_MATRIX_FAST_H
#define PTX_MATRIX_FAST_H

#include "ptx/exec.h"
#include "ptx/matrix.h"

/* Registers of a fragment one after the other, each with 32 lanes of 4 bytes (f64: 8), are given in chunks: where each
 * 64 bytes of them are. */
enum { MATRIX_CHUNK = 64, MATRIX_BYTES = 2048, MATRIX_CHUNKS = MATRIX_BYTES / MATRIX_CHUNK };

/* A chunk is made of pairs of others: which these are, and by piece the place in its pair. */
struct matrix_chunk {
    uint8_t index[MATRIX_CHUNK / 2];
    uint32_t mask[8]; /* by pair: the pieces that come from it */
    uint8_t source[16], pairs;
};

/* Sources: how rows are made of registers; destinations: registers of rows. Pieces have `grain` bits. The rows of a, c
 * and d are those of the matrix; of b too, or `paired`: interleaved by two; in memory the lines, one after the other.
 * Elements of four bits have a byte each. */
struct matrix_order {
    uint16_t from[MATRIX_BYTES], pieces; /* by piece, which one it is */
    uint8_t grain;
    bool paired;
    struct matrix_chunk chunks[MATRIX_CHUNKS]; /* the same by chunk, where pieces have 16 bits or more */
};
void matrix_order(const struct matrix *m, const struct fragment *f, struct matrix_order *o);

struct matrix_fast {
    void (*multiply)(const struct matrix *m, const uint8_t *const *a, const uint8_t *const *b, const uint8_t *const *c,
                     uint8_t *const *d); /* d may be where a, b or c is */
    void (*gather)(const struct fragment *f, const uint8_t *const *registers, uint8_t *rows);
    void (*spread)(const struct fragment *f, const uint8_t *rows, uint8_t *const *registers);
};

/* By the processor; NULL: nothing fits. */
const struct matrix_fast *matrix_fast_choose(void);
/* What does `m` for the launch. NULL: the plain way, as with one_by_one, other sums and rounding by chance. */
const struct matrix_fast *matrix_fast_for(const struct launch *l, const struct matrix *m);

#endif
