/* small_stack.h - threads whose stack is small: how much of it is left, and a stack of ours for what needs more.
 *
 * Threads may be made with PTHREAD_STACK_MIN, 16 KiB, of which the C library and thread-local data take half. So frames
 * of the shim are small (the build checks it), and what calls others of whom we cannot know it (the loader, a driver
 * that compiles a module of ours, the unwinder) asks here first.
 */
#ifndef SHIM_SMALL_STACK_H
#define SHIM_SMALL_STACK_H

#include <pthread.h>
#include <stdbool.h>
#include <stddef.h>

/* How many bytes the calling thread's stack has below here. SIZE_MAX: not known, since this is the process's first
 * stack, which grows, or one that the program switches to (fibers). */
size_t small_stack_left(void);

/* Calls `work`, on a stack of our own when this one has less than SMALL_STACK_ENOUGH left. False: there was no memory
 * for it, and `work` was not called. */
bool small_stack_spare(void (*work)(void *), void *data);
enum { SMALL_STACK_ENOUGH = 64 << 10 };

/* For threads of our own: enough, whatever the program's get by default. */
void small_stack_not(pthread_attr_t *attributes);

#endif
