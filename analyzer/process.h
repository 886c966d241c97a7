/* process.h - a living process from outside, by /proc: nothing is stopped, nothing is attached to.
 *
 * What the permissions do not let one see is left empty.
 */
#ifndef ANALYZER_PROCESS_H
#define ANALYZER_PROCESS_H

#include <stdbool.h>
#include <stdint.h>

/* The folder of the capture that process `pid` is writing, a new string; NULL: none, or it cannot be seen. */
char *process_capture(uint32_t pid);

enum process_life { PROCESS_GONE, PROCESS_ALIVE, PROCESS_UNKNOWN };
/* Whether `pid` is the process that writes the capture in `folder` (numbers of processes come again). */
enum process_life process_writes(uint32_t pid, const char *folder);

struct process_thread {
    char state;     /* R, S, D, ...; 0: unknown */
    char name[32];  /* "" unknown */
    char wchan[64]; /* where in the kernel it sleeps, "" unknown or nowhere */
};
struct process_thread process_thread(uint32_t pid, uint32_t tid);

#endif
