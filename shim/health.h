/* health.h - what the wrappers ask of sentinels, snapshots and times at the moments when something may be done on the
 * device. */
#ifndef SHIM_HEALTH_H
#define SHIM_HEALTH_H

#include "shim/track.h"

void health_context(void);                              /* a context became current: get ready for it */
void health_before_sync(struct tracked_stream *stream); /* NULL: the whole current context */
void health_look(struct tracked_stream *stream);        /* the same, and nobody is going to wait */
void health_after_sync(CUresult result);
void health_after_event(CUresult result); /* nothing can be put before an event that is recorded already */
void health_poll(void);                   /* at calls that come often; cheap when nothing is due */
void health_before_teardown(struct tracked_context *context); /* it is about to be destroyed or reset */
void health_after_teardown(struct tracked_context *context);
void health_device_lost(void);
void health_settle(void);     /* a sticky error: what is complete goes to disk before the program hears of it */
void health_at_exit(void);    /* the device can still be asked; bounded in time */
void health_at_unload(void);  /* the device cannot be asked any more; what is complete goes to disk */
void health_flush_host(void); /* takes in what lies in host memory */

#endif
