/* progress.h - where the program's threads are and how far its streams got, kept in the capture for `ops-debug hang`.
 *
 * Each thread has a CAP_THREAD_STATE record that its wrappers patch: two stores at the start of a call, one at its end.
 * While calls are made, a thread of ours wakes up ten times a second; when something has taken a second, it asks the
 * device about the launches that are not known to have ended (cuEventQuery of the events around them, cuStreamQuery)
 * and patches a CAP_STREAM_STATE per stream. Where nothing takes that long it never calls the driver. It has all
 * signals blocked and ends when no call has been made for a while: a process may end with its last thread.
 */
#ifndef SHIM_PROGRESS_H
#define SHIM_PROGRESS_H

#include <opsdebug/capture.h>

#include "shim/hooks.h"
#include "shim/thread.h"
#include "shim/track.h"

struct cap_thread_state *progress_take_seat(void); /* NULL: no space */
extern int progress_watched;                       /* atomic: the thread of ours is there */
void progress_watch(void);                         /* sees to it */

static inline void progress_entered(struct shim_thread *thread, enum hook hook, uint64_t tsc, uint64_t seq)
{
    struct cap_thread_state *state = thread->state;
    if (!state && !(state = progress_take_seat()))
        return;
    __atomic_store_n(&state->entered_tsc, tsc, __ATOMIC_RELAXED);
    __atomic_store_n(&state->seq, seq, __ATOMIC_RELAXED);
    __atomic_store_n(&state->scope, thread->scope, __ATOMIC_RELAXED);
    __atomic_store_n(&state->call, hook, __ATOMIC_RELEASE);
    if (!__atomic_load_n(&progress_watched, __ATOMIC_RELAXED))
        progress_watch();
}

static inline void progress_left(struct shim_thread *thread)
{
    if (thread->state)
        __atomic_store_n(&thread->state->call, HOOK_NONE, __ATOMIC_RELEASE);
}

void progress_thread_ends(void);
/* Its end is about to be asked for: nobody is asking in it any more when this returns (or a second is over). */
void progress_context_ends(struct tracked_context *context);  /* NULL is fine */
void progress_context_stays(struct tracked_context *context); /* unless it is gone, it did not end after all */
void progress_stream_ends(struct tracked_stream *stream);
void progress_stop(void); /* the process ends: the same for all */

#endif
