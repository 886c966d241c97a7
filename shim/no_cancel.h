/* no_cancel.h - stretches of ours in which the program's pthread_cancel() does not end the thread.
 *
 * Opening, writing and sleeping are places where a thread that was cancelled ends. Of ours it would end with locks
 * held, and inside calls of the driver's that are no such place. The real calls stay as they are.
 */
#ifndef SHIM_NO_CANCEL_H
#define SHIM_NO_CANCEL_H

#include <pthread.h>

static inline int no_cancel_begin(void)
{
    int before;
    pthread_setcancelstate(PTHREAD_CANCEL_DISABLE, &before);
    return before;
}

static inline void no_cancel_end(const int *before)
{
    pthread_setcancelstate(*before, NULL);
}

/* Until the end of the block. */
#define NO_CANCEL __attribute__((cleanup(no_cancel_end))) const int cancel_state = no_cancel_begin()

#endif
