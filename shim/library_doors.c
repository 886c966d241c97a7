/* library_doors.c - cuBLAS's entry points once per version, as runtime_doors.c has them of cudart: a handle of one
 * version means nothing to the other. NCCL's functions have no versions. The numbers are those of LIBRARY_VERSIONS.
 */
#include "shim/library.h"
#include "shim/runtime_doors.h"

#define ENTRIES_CUBLAS(symbol)                                                                                         \
    VERSIONED_ENTRY(symbol, 1, "libcublas.so.11")                                                                      \
    VERSIONED_ENTRY(symbol, 2, "libcublas.so.12")                                                                      \
    VERSIONED_ENTRY(symbol, 3, "libcublas.so.13")
#define ENTRIES_CUBLASLT(symbol)                                                                                       \
    VERSIONED_ENTRY(symbol, 1, "libcublasLt.so.11")                                                                    \
    VERSIONED_ENTRY(symbol, 2, "libcublasLt.so.12")                                                                    \
    VERSIONED_ENTRY(symbol, 3, "libcublasLt.so.13")
#define ENTRIES_NCCL(symbol)
#define LIBRARY(symbol, library, count, prototype, arguments, parameters, values) ENTRIES_##library(symbol)
#include "shim/libraries.inc"
#undef LIBRARY
