/* library.h - functions of cuBLAS, cuBLASLt and NCCL as operators: one record per call, with its arguments and meaning.
 *
 * Their rows are generated from the libraries' headers (shim/generate-libraries), and with them one wrapper for each:
 *     struct library_call call;
 *     if (!library_enter(&call, LIBRARY_x, values))
 *         return ((type)library_real(LIBRARY_x))(...);
 *     return library_leave(&call, ((type)call.real)(...));
 * Between the two the thread is in the scope of that function: launches, copies and sets inside belong to it, and a
 * library function that is called inside is passed through. Nothing here is enqueued, waited for or called a second
 * time on behalf of the program.
 */
#ifndef SHIM_LIBRARY_H
#define SHIM_LIBRARY_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <opsdebug/capture.h>

struct library_unique_id { /* ncclUniqueId, which is passed by value */
    char bytes[128];
};

struct library_parameter {
    const char *name;
    uint16_t kind, pointee; /* as in cap_parameter */
};

enum library_function {
#define LIBRARY(symbol, library, count, prototype, arguments, parameters, values) LIBRARY_##symbol,
#include "shim/libraries.inc"
#undef LIBRARY
    LIBRARY_COUNT,
};

struct library_row {
    const char *symbol;
    uint32_t library, count;
    const struct library_parameter *parameters;
    void *wrapper;
};
extern const struct library_row library_rows[LIBRARY_COUNT]; /* sorted by symbol */

/* Of cuBLAS: 0 for who did not say which, then CUDA 11, 12, 13. */
enum { LIBRARY_VERSIONS = 4 };

struct library_call {
    void *real;
    uint32_t version;
    enum library_function function;
    const uint64_t *values;
    struct cap_operator *record; /* NULL: none could be written */
    uint64_t seq, begin_tsc, real_begin;
};

/* False: not the outermost call, or nothing is recorded; call library_real() instead. */
bool library_enter(struct library_call *call, enum library_function function, const uint64_t *values);
int library_leave(struct library_call *call, int status); /* returns `status` */
void *library_real(enum library_function function);       /* never NULL */

/* Another function of the library that the call goes to; NULL when it is not there. `cached` is of this symbol. */
void *library_beside(const struct library_call *call, const char *symbol, void *cached[LIBRARY_VERSIONS]);
/* The value of the parameter `name`; false: the function has none. */
bool library_argument(const struct library_call *call, const char *name, uint64_t *value);

/* The doors: the answer for a look-up of `symbol` that found `real`, or `real` itself. */
void *library_substitute(void *handle, const char *symbol, void *real);
bool library_knows(const char *symbol);

/* ---- library_meaning.c: what the arguments alone do not tell ---- */

/* The stream that a call will put its work into; false: unknown. */
bool library_stream(const struct library_call *call, void **stream);
void library_detail(const struct library_call *call); /* after success: writes a CAP_DETAIL when there is more */

#endif
