/* exec_matrix.h - matrix instructions of a whole warp (matrix.h), done when all its lanes stand at one. */
#ifndef PTX_EXEC_MATRIX_H
#define PTX_EXEC_MATRIX_H

#include "ptx/exec.h"

/* `in` for `lanes`; a lane that is NULL has ended or never was. */
void matrix_perform(struct block *b, struct thread *const lanes[WARP], const struct insn *in);

#endif
