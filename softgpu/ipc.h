/* ipc.h - device memory and events of other processes, and of this one for others (share.h).
 *
 * An exported allocation is found again through the exporter's descriptor in /proc, so both processes must belong to
 * the same user and see each other.
 */
#ifndef SOFTGPU_IPC_H
#define SOFTGPU_IPC_H

#include "softgpu/context.h"
#include "softgpu/memory.h"
#include "softgpu/share.h"

/* Fills a handle for a live allocation of the device, whose pages become a file first if they are none. Waits until no
 * kernel runs then. */
CUresult ipc_export(const struct allocation *a, struct share_handle *out);
/* Maps what a handle names at a new address, as memory of `context` and, if not NULL, of `owner`. */
CUresult ipc_import(struct context *context, void *owner, const struct share_handle *handle, uint64_t *address);

/* An event that other processes see: a mapping of its page, counted, since operations outlive the event. */
struct ipc_event;
struct ipc_event *ipc_event_new(struct share_label *label); /* takes over the mapping; NULL: out of memory */
void ipc_event_unref(struct ipc_event *event);              /* NULL is fine */
const struct share_label *ipc_event_label(const struct ipc_event *event);
/* The operation that a record, or a wait for what was recorded so far, puts into a stream. NULL: out of memory. */
struct op *ipc_record(struct ipc_event *event);
struct op *ipc_wait(struct context *context, struct ipc_event *event);
bool ipc_done(struct ipc_event *event);
/* The host waits. */
CUresult ipc_synchronize(struct context *context, struct ipc_event *event);

#endif
