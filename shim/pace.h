/* pace.h - what looks of ours may take of the device's time, in a program that runs for long.
 *
 * A look, at redzones or for the health check, runs in the program's own stream, and delays what comes behind it. Each
 * of the two kinds has an allowance in each context: LOOK_SHARE of the time since the context was first seen, and of
 * some seconds in advance, so that a short program has all its looks. Beyond it a look is left out, but for one a
 * second; the next one makes up for it. What looks take is measured by device_cost.c. LOOK_SHARE=off, which is what
 * `deep` means by it, leaves nothing out.
 *
 * Thread-safe; nobody waits for another thread, or for the device.
 */
#ifndef SHIM_PACE_H
#define SHIM_PACE_H

#include <stdbool.h>
#include <stdint.h>

#include <opsdebug/capture.h>

struct pace; /* of one context: both kinds. NULL, which all of these take: nothing to keep to, or no memory */

void pace_start(void); /* the options are read and the capture is open */
struct pace *pace_make(void);

/* Is a look to be made now? True counts it, and in advance what one takes. */
bool pace_takes(struct pace *pace, enum cap_pace_kind kind);
void pace_takes_anyway(struct pace *pace, enum cap_pace_kind kind); /* the same for one that is not left out */
void pace_left_out(enum cap_pace_kind kind);                        /* counts one that was */

void pace_measured(struct pace *pace, enum cap_pace_kind kind, uint64_t ns); /* what a look took */

#endif
