/* thread.h - what the shim knows about the calling thread. Plain thread-local data, valid from the thread's first
 * instruction. */
#ifndef SHIM_THREAD_H
#define SHIM_THREAD_H

#include <stdbool.h>
#include <stdint.h>

struct cap_thread_state;
struct progress_seat;
struct segment;

struct shim_thread {
    uint32_t inside;          /* > 0 inside a real driver call or our own code: wrappers and look-ups pass through */
    uint16_t hook;            /* the driver function we are inside of */
    uint16_t scope;           /* the outermost hooked function, HOOK_NONE outside */
    uint32_t runtime_depth;   /* open scopes of cudart entry points */
    uint32_t open_bytes;      /* size of the record that is being filled */
    bool open_kept;           /* it lies in a segment of all threads, whose lock is held */
    struct segment *segment;  /* where this thread's records go */
    struct segment *previous; /* kept mapped, since a call may still patch a record in it */
    uint64_t calls, own_tsc, launches, records, record_bytes; /* not yet added to the capture's header */
    uint32_t flush_at;                                        /* so many calls later they are added, see call.c */
    uint32_t hook_calls; /* calls of `counted`, not yet added to its CAP_HOOK record */
    uint16_t counted;
    bool registered;       /* its end will be noticed */
    bool stores_contents;  /* the helper: its records name blobs, see rotate.h */
    bool ranges_unwritten; /* it has pushed ranges that no record tells of, see ranges.h */
    bool slow;             /* the current call did more than the usual, see call.h */
    bool error_told;       /* the current call's error is recorded */
    uint32_t until_exact;  /* calls until the next one whose own time is measured whatever it does */
    uint32_t before_ticks; /* what our own code before a real call usually takes */
    uint32_t random;
    uintptr_t stack_low, stack_high; /* see small_stack.h; stack_high is 0 until somebody asked */
    uint32_t thread_id;              /* Linux thread id, 0 unknown yet */
    struct cap_thread_state *state;  /* in the capture: where this thread is, see progress.h */
    struct progress_seat *seat;      /* that owns it */
};

/* Preloaded libraries get static TLS; initial-exec keeps every access to one instruction and never allocates. */
extern __thread struct shim_thread shim_thread __attribute__((tls_model("initial-exec")));

/* The current wrapped call does more than write its record: its own time is measured from here on, see call.h. */
static inline void thread_slow(void)
{
    shim_thread.slow = true;
}

#endif
