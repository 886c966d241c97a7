/* matrix.h - what a warp-level matrix instruction does: wmma, mma, ldmatrix, stmatrix, movmatrix. lower_matrix.c makes
 * one description per form that a module uses, exec_matrix.c follows it. In short:
 *
 *     extra[b ...] of the micro-operation: destination registers, a slot to work in, source registers (a, b, c)
 *     a, imm       address, of memory forms        c   slot of the stride, in elements
 *     d            how many of the extra slots are written       mod   number of the description
 */
#ifndef PTX_MATRIX_H
#define PTX_MATRIX_H

#include <stdbool.h>
#include <stdint.h>

enum { MATRIX_BITS_XOR = 1, MATRIX_BITS_AND };
enum { TILE_ELEMENTS = 1024, MAX_MATRICES = 4096 };

enum matrix_kind { MATRIX_LOAD, MATRIX_STORE, MATRIX_MULTIPLY, MATRIX_TRANSPOSE };
enum matrix_type {
    MATRIX_F16,
    MATRIX_BF16,
    MATRIX_TF32,
    MATRIX_F32,
    MATRIX_F64,
    MATRIX_S8,
    MATRIX_U8,
    MATRIX_S4,
    MATRIX_U4,
    MATRIX_B1, /* an element here is a word of 32 of them */
    MATRIX_E4M3,
    MATRIX_E5M2,
    MATRIX_S32,
    MATRIX_B16,
    MATRIX_B32,
    MATRIX_TYPE_COUNT
};

/* How the elements of a matrix lie in the registers of a warp. */
struct fragment {
    enum matrix_type type;
    uint8_t registers, per_register, bits; /* of a lane; elements in each; bits of an element */
    uint16_t rows, columns, batches;       /* Volta's m8n8k4 does four products at once */
    /* Element of the matrix (batch, row, column, the last fastest) by lane, register, place in the register. */
    uint16_t *place;
    const struct matrix_order *order; /* matrix_fast.h: the same for whole warps */
};

struct matrix {
    enum matrix_kind kind;
    struct fragment d, a, b, c; /* a: what is stored, or transposed */
    bool satfinite;
    uint8_t bits; /* b1: how words are combined before their ones are counted */
    /* Memory: `lines` runs of `line_elements` elements. */
    uint8_t space;  /* enum mem_space */
    bool addressed; /* each line by its own lane (ldmatrix, stmatrix), else by base and stride */
    bool columns;   /* a line is a column of the matrix */
    uint16_t lines, line_elements;
};

#endif
