/* device_cost.h - for the budget (budget.h) and the pace of looks (pace.h): how long the device is at work for us, by
 * pairs of events of ours around copies and looks.
 *
 * The program waits for this work when it waits for its stream; whether it would have had to wait as long anyway nobody
 * can tell, so all of it counts: an upper bound. Snapshots are all measured (with a budget), looks one of eight. A
 * health look is one of the two around a launch, each of which counts for itself. Thread-safe.
 */
#ifndef SHIM_DEVICE_COST_H
#define SHIM_DEVICE_COST_H

#include <stdbool.h>

#include <opsdebug/capture.h>

#include "shim/track.h"

struct device_cost {
    struct cost_pair *pair; /* NULL: not measured */
    struct tracked_stream *stream;
    struct device_costs *costs; /* that `pair` is of */
};
void device_cost_begin(struct device_cost *cost, enum cap_budget_part part, struct tracked_stream *stream);
void device_cost_end(const struct device_cost *cost);

struct device_work;
struct device_costs;                                 /* the pairs of a context */
struct device_costs *device_costs_make(void);        /* NULL: nobody asks, or the driver has no events */
void device_costs_collect(struct device_work *work); /* takes in what is complete; the context is there */

#endif
