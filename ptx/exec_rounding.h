/* exec_rounding.h - launches whose every inexact operation is rounded up or down by chance, the nearer neighbour the
 * more often: several of them show how much rounding matters for each element of the result. docs/shadow.md, "Rounding
 * by chance".
 *
 *     exec_rounding.c          draws, and what the loop calls
 *     exec_rounding.inc        the loop's handlers, made from shadow.def: the exact value of each operation is there
 *     exec_stochastic*.c       the loop, exec_loop.inc once more
 */
#ifndef PTX_EXEC_ROUNDING_H
#define PTX_EXEC_ROUNDING_H

#include "ptx/exec_shadow.h"

/* The generator of a thread: what it draws depends on the seed, the thread's place in the grid and how many operations
 * it has rounded. */
uint64_t rounding_start(uint64_t seed, uint64_t block, uint32_t thread);

/* `result` is the operation's as a device rounds it, `exact` its true value; `noise` is by how much the operation
 * itself may be off. Saturated, flushed and infinite results stay. */
uint32_t rounding_single(struct thread *t, uint32_t result, double exact, double noise);
uint16_t rounding_half(struct thread *t, uint16_t result, bool bf16, double exact, double noise);
uint32_t rounding_tf32(struct thread *t, uint32_t result, double exact);
uint64_t rounding_double(struct thread *t, uint64_t result, struct dd exact, double noise);
/* The result of a half-precision operation, one or two of them. */
union slot rounding_halves(struct thread *t, const struct insn *in, const union slot *R, union slot result);
/* As atom_apply(), with sums of floats rounded by chance. */
uint64_t rounding_atomic(struct worker *w, struct thread *t, unsigned mod, uint8_t *at, uint64_t b, uint64_t c);

/* What PTX (ISA 9.0, the error bounds of each instruction) lets the approximate function `op` be off by at the result
 * x. */
static inline double rounding_noise(unsigned op, unsigned mod, double x)
{
    double size = fabs(x);
    switch (op) {
    case OP_EX2_F32:
    case OP_DIV_APPROX_F32:
        return 0x1p-22 * size;
    case OP_DIV_F32:
        return mod & FLOAT_APPROXIMATE ? 0x1p-22 * size : 0;
    case OP_RCP_F32:
    case OP_SQRT_F32:
        return mod & FLOAT_APPROXIMATE ? 0x1p-23 * size : 0;
    case OP_RSQRT_F32:
        return 0x1.2p-23 * size;
    case OP_LG2_F32:
        return 0x1p-22 * fmax(1, size);
    case OP_SIN_F32:
    case OP_COS_F32:
        return 0x1.2p-21 * 2;
    case OP_TANH_F32:
    case OP_TANH_H:
    case OP_TANH_HX2:
        return 0x1p-11 * size;
    case OP_EX2_H:
    case OP_EX2_HX2:
        return 0x1p-10 * size;
    case OP_RCP_APPROX_F64:
    case OP_RSQRT_APPROX_F64:
        return 0x1p-23 * size;
    case OP_RSQRT_F64:
        return 0x1p-52 * size;
    default:
        return 0;
    }
}

#endif
