/* operator.h - calls of library functions (cuBLAS, cuBLASLt, NCCL): their arguments by name, and what they mean.
 *
 * Parameters have the names of the library's header ("lda"); what the shim found beside them (scalars by value,
 * descriptors) has names like "alpha", "A.rows". Whatever the records do not tell is unknown here, never guessed.
 */
#ifndef ANALYZER_OPERATOR_H
#define ANALYZER_OPERATOR_H

#include "analyzer/capture_read.h"

struct model_launch;

struct model_operator {
    const struct cap_operator *record;
    const struct cap_function *function;
    const struct cap_detail *detail; /* NULL: none */
    uint64_t seq, end_seq;           /* end_seq 0: it did not return */
    size_t number;                   /* from 1: `operator N` of reports */
    const char *name;                /* of the function */
    const char *module_path;         /* see model_launch */
    uint32_t iteration;
    uint32_t thread;
    size_t launches; /* of kernels inside */
};

const char *operator_library(const struct model_operator *op); /* "cuBLAS" */
const char *operator_kind(const struct model_operator *op);    /* "gemm", "all-reduce"; "unknown" */
const char *operator_meaning(const struct model_operator *op); /* "matrix product" */
bool operator_is_setup(const struct model_operator *op);       /* no work of its own: handles, communicators, groups */
bool operator_communicates(const struct model_operator *op);

/* A number by the name of a parameter or of a detail. */
bool operator_number(const struct capture *capture, const struct model_operator *op, const char *name, uint64_t *value);
/* A scalar by value as text ("1.5", "1+2i"), in the call's own format. False: it lies on the device, or is unknown. */
bool operator_scalar(const struct capture *capture, const struct model_operator *op, const char *name, char *out,
                     size_t bytes);

/* A matrix, vector or buffer that a call works on. */
struct operand {
    const char *name;
    uint64_t address;
    const char *type;       /* "f32"; NULL: unknown */
    uint32_t element_bytes; /* 0: unknown */
    bool written;           /* it may be written */
    bool list;              /* a list of pointers in memory: what they lead to is not known */
    bool shaped;            /* the rest is known: column by column, `ld` elements apart */
    uint64_t rows, columns, ld, batch;
    int64_t stride; /* elements between the matrices of a batch */
};
enum { OPERANDS_MAX = 16 };
/* Fills `out` with at most OPERANDS_MAX; returns how many. */
size_t operator_operands(const struct capture *capture, const struct model_operator *op, struct operand *out);

/* "N,T 128x64x32 f32", "sum 1024 f32 rank 0 of 2": what there is to say in one line. `out` is never left empty-handed:
 * "" when nothing is known. */
void operator_summary(const struct capture *capture, const struct model_operator *op, char *out, size_t bytes);

/* The names of enumerations as the libraries' headers have them, shortened; NULL: unknown. */
const char *operator_data_type(uint64_t cuda_data_type, uint32_t *bytes);
const char *operator_value_name(const char *parameter, enum cap_library library, uint64_t value);

#endif
