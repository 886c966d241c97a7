/* capture_write.h - writes the capture of include/opsdebug/capture.h: header, segments, records.
 *
 * A record is filled in place in the calling thread's segment, a shared mapping of allocated (never sparse) file space:
 *     struct cap_x *r = capture_record(CAP_X, sizeof *r + more, seq, tsc);   body is zero, head is filled but for
 * `size` if (r) { ...; capture_commit(r); } At most one record may be open per thread. NULL means that nothing can be
 * written (stepped aside, or not recording). A committed record may be patched by the same thread during the same
 * wrapped call. Thread-safe; never calls into a driver.
 */
#ifndef SHIM_CAPTURE_WRITE_H
#define SHIM_CAPTURE_WRITE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <opsdebug/capture.h>

#include "shim/thread.h"

/* Makes the directory (`out`, or ops-debug-capture-PID when NULL or empty; process-PID in it when another process was
 * there first), header and the CAP_HOOK records. NULL, or why it failed. Once per process. */
const char *capture_open(const char *out);
void capture_close(void); /* counters, calibration, trims the segments; the process is about to end */
const char *capture_directory(void);
void capture_set_state(uint32_t cap_state, const char *reason);

extern uint64_t *capture_seq; /* the header's counter */
static inline uint64_t capture_next_seq(void)
{
    return __atomic_fetch_add(capture_seq, 1, __ATOMIC_RELAXED);
}
uint64_t capture_last_seq(void); /* the newest one given out */
void capture_tick(void);         /* brings the header's clocks up to date */
void *capture_record(uint16_t type, size_t bytes, uint64_t seq, uint64_t tsc);
void *capture_define(uint16_t type, size_t bytes); /* a record with a seq and time of its own */
void capture_commit(void *record);
/* Whether a record of this thread is still mapped: after a call inside which much was recorded it may not be. */
bool capture_can_patch(const void *record);
/* A record for state that is patched as long as the process lives, by any thread: it comes committed, all zero behind
 * its head. NULL: no space. */
void *capture_pin(uint16_t type, size_t bytes);

void capture_count_other_hook(unsigned hook);
/* A loop calls one function many times: the shared count is brought up to date when another one is called, and with the
 * other counters. */
static inline void capture_count_hook(unsigned hook)
{
    if (shim_thread.counted != hook || !shim_thread.registered)
        capture_count_other_hook(hook);
    shim_thread.hook_calls++;
}
void capture_flush_counters(void); /* the calling thread's counts into the header */
void capture_count(size_t header_member_offset, uint64_t more);
#define CAPTURE_COUNT(member, more) capture_count(offsetof(struct cap_header, member), more)

/* For rotate.c: what the header says of what was dropped. */
void capture_dropped(uint64_t before_seq, uint64_t snapshots_before_seq);
void capture_close_own(void); /* this thread's segments are complete; its next record begins another one */
void capture_count_dropped(uint64_t bytes, uint64_t launches);

extern uint64_t capture_ns_per_tsc_32; /* ns per tick, 32 fractional bits */
static inline uint64_t capture_tsc_to_ns(uint64_t tsc)
{
    return (uint64_t)(((unsigned __int128)tsc * capture_ns_per_tsc_32) >> 32);
}
uint64_t capture_ns_to_tsc(uint64_t ns);
uint64_t capture_own_tsc(void);             /* of the header */
uint64_t capture_tsc_to_mono(uint64_t tsc); /* a point in time as CLOCK_MONOTONIC ns */

/* Whether a file may grow to `bytes`: beyond RLIMIT_FSIZE the kernel would send SIGXFSZ, which ends the program. */
int capture_size_allowed(uint64_t bytes);
/* Writes all of it, through interruptions; false: it could not. */
bool capture_write_all(int fd, const void *data, size_t bytes);

#endif
