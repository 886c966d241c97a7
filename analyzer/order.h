/* order.h - which work of a capture nothing orders, though it touches the same bytes (docs/order.md).
 *
 * Vector clocks over the records: one component for each stream, a clock for each stream, each event, and the host.
 * What cannot be told counts as ordered, so a pair that is found is one that no call of the program orders.
 */
#ifndef ANALYZER_ORDER_H
#define ANALYZER_ORDER_H

#include "analyzer/judgement.h"
#include "analyzer/model.h"

enum order_kind { ORDER_LAUNCH, ORDER_COPY, ORDER_SET, ORDER_ALLOC, ORDER_FREE };

/* One piece of work and some of what it touches. */
struct order_use {
    const struct cap_head *record;
    const struct model_launch *launch; /* of a launch */
    uint32_t stream;                   /* id */
    enum order_kind kind;
    bool write;
    bool atomics;                     /* of a launch */
    struct judgement_run run;         /* of other work */
    const struct judgement_run *runs; /* of a launch: borrowed; else NULL */
    size_t run_count;
    uint64_t values; /* as in struct judgement_touch */
    uint32_t slot;   /* of its stream in the clocks */
    uint64_t time;   /* of its stream, when it was issued */
};

enum order_missing {
    ORDER_NOTHING,      /* the later stream waits for nothing of the earlier one */
    ORDER_EVENT_EARLY,  /* it waited for an event that had been recorded before the earlier work */
    ORDER_EVENT_UNUSED, /* it waited for an event that had never been recorded */
};
struct order_pair {
    const struct order_use *earlier, *later; /* in order of their issue */
    const struct model_allocation *allocation;
    uint64_t offset, bytes; /* the first bytes that both touch */
    enum order_missing missing;
    uint32_t event; /* that was waited for in vain, 0: none */
};

/* NULL: the records can tell order. Else why not, in words. */
const char *order_unknown(const struct model *model);
/* Calls `found` with every pair, in order of the later one; nothing when order_unknown(). False: no memory, the list is
 * incomplete. */
bool order_walk(const struct model *model, const struct judgements *judgements,
                void (*found)(void *context, const struct order_pair *pair), void *context);

/* The first bytes that two sets of runs share; false: none. */
bool order_overlap(const struct judgement_run *a, size_t a_count, const struct judgement_run *b, size_t b_count,
                   uint64_t *offset, uint64_t *bytes);

/* ---- inside: clocks, streams and events (order_clock.c) ---- */

enum { ORDER_SLOTS = 1024 }; /* streams alive at the same time; with more the walk ends */

struct order_clock {
    uint64_t *at; /* owned; what is not there is 0 */
    uint32_t count;
};
struct order_stream {
    uint32_t id, context, slot;
    bool legacy, blocking;
    struct order_clock clock;
    uint64_t doubt;   /* seq of the newest work that may make it wait for anything; 0: none, or the host waited since */
    uint32_t capture; /* its work goes into a graph; 0: it runs */
    /* The newest wait that brought nothing, for explanations. */
    uint32_t waited_event, waited_slot;
    uint64_t waited_time; /* of `waited_slot` when the event was recorded; 0: it never was */
};
struct order_event {
    uint32_t id, recorded_stream, capture;
    bool recorded;
    struct order_clock clock;
    uint64_t doubt, seq; /* seq: of the record operation */
};
struct order_clocks {
    const struct model *model;
    struct order_stream *streams; /* owned */
    size_t stream_count, stream_capacity;
    struct order_event *events; /* owned */
    size_t event_count, event_capacity;
    struct map stream_index, event_index;
    uint32_t slots;       /* in use so far */
    uint32_t *free_slots; /* owned; of streams that are gone */
    uint32_t free_count;
    struct order_clock host;   /* what the host knows to be complete */
    struct order_clock issued; /* everything so far */
    uint32_t captures;
    uint32_t last_graph, last_version; /* launched; it records no events, or they are in doubt already */
    bool events_in_doubt;              /* events may be recorded where it is not seen */
    bool failed;                       /* no memory, or too many streams: nothing more may be said */
};

void order_clocks_start(struct order_clocks *clocks, const struct model *model);
void order_clocks_end(struct order_clocks *clocks);
/* A record that orders work, but is none itself. */
void order_clocks_take(struct order_clocks *clocks, const struct cap_head *record);
/* Work is issued in the stream. NULL: it is none of the device's now (recorded into a graph), or in an unknown stream.
 */
struct order_stream *order_clocks_issue(struct order_clocks *clocks, uint32_t stream);
/* From here on the stream may wait for anything. */
void order_clocks_doubt(struct order_stream *stream, uint64_t seq);
/* Counts the stream as ordered behind the work of a slot's stream up to `time`. */
void order_clocks_put_behind(struct order_clocks *clocks, struct order_stream *stream, uint32_t slot, uint64_t time);
/* The host knows all work of the stream so far to be complete (or may know, or all of everything). */
void order_clocks_host_may_know(struct order_clocks *clocks, const struct order_stream *stream);
void order_clocks_host_knows_all(struct order_clocks *clocks);

static inline uint64_t order_time(const struct order_clock *clock, uint32_t slot)
{
    return slot < clock->count ? clock->at[slot] : 0;
}

#endif
