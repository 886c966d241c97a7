/* host_function.h - functions of the host that streams call: which one, since when, in which thread, for `ops-debug
 * hang`.
 *
 * The driver is given a function of ours that notes its begin, calls the program's with what it would have got, and
 * notes its end. Not in a stream that is being captured: a graph would show our function to the program. Thread-safe.
 */
#ifndef SHIM_HOST_FUNCTION_H
#define SHIM_HOST_FUNCTION_H

#include "shim/call.h"

struct host_function;

/* Before the real call. NULL: `function` is to be called as it is. `own_stream`: as in track_stream(). */
struct host_function *host_function_new(const struct call *call, CUstream stream, bool own_stream, void *function,
                                        void *data);
void host_function_refused(struct host_function *f); /* the driver will not call it; NULL is fine */

/* What the driver is given, with the host_function as its data. */
void CUDA_CB host_function_called(void *f);
void CUDA_CB host_function_called_back(CUstream stream, CUresult status, void *f);

#endif
