/* ptx_forms.h - what test_ptx_rows.c and its oracles share: one form is one row of ptx/opcodes.def with one choice of
 * modifiers and types, as the executor admits it. The oracles say what its result must be: plain C for integers
 * (ptx_oracle_integer.c), MPFR for floats (ptx_oracle_float.c). They are written from the PTX ISA and know nothing of
 * the executor but the names of its modifier classes and types. */
#ifndef TESTS_PTX_FORMS_H
#define TESTS_PTX_FORMS_H

#include "ptx/lower.h"
#include "tests/unit/ptx_kit.h"

struct form {
    const struct opcode *row;
    uint64_t set;           /* M(class) of the modifiers it has */
    int value[CLASS_COUNT]; /* by class */
    enum type types[3];
    uint32_t type_count;
    unsigned variant;   /* which of the row's results or immediates, see test_ptx_rows.c */
    unsigned immediate; /* truth table of lop3, length of bfi */
    char text[320];     /* for kit_instruction() */
    struct kit_shape shape;
    unsigned oracle_index; /* the oracle's own */
    enum type from[3]; /* how operands are drawn; TYPE_NONE: there is none. TYPE_PRED: zero or not; TYPE_U8: a count */
};

/* The result for one operand triple; bits above d's width do not matter. False: not a right one, *expected says what
 * is. */
typedef bool oracle(const struct form *f, const uint64_t in[3], uint64_t got, uint64_t *expected);

/* NULL: this file has no oracle for the form. */
oracle *integer_oracle(struct form *f);
oracle *float_oracle(struct form *f);

static inline bool form_has(const struct form *f, uint64_t classes)
{
    return (f->set & classes) != 0;
}

static inline unsigned form_bits(enum type t)
{
    return type_info[t].bits;
}

static inline bool form_packed(enum type t)
{
    return t == TYPE_F16X2 || t == TYPE_BF16X2;
}

/* The result of a comparison by its word and the operands' order: -1, 0, 1, or 2 when they are unordered. */
bool compare_holds(const struct form *f, int order);
/* What .and, .or, .xor make of it and c. */
bool combine(const struct form *f, bool holds, bool c);

#endif
