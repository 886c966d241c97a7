/* tracer.h - what the files of softgpu's libcupti share.
 *
 *     attach    the seam of softgpu's driver (softgpu/trace.h): found, watched while anybody wants something, left
 *     call      enter and exit of every API function: correlation, callbacks, API records
 *     effect    what driver calls do beyond themselves: contexts, streams, modules, memory, synchronisation
 *     graph     the same of graphs, and their ids
 *     work      kernels, copies, fills
 *     callback  the one subscriber
 *     activity  which kinds of records are wanted
 *     buffer    the program's buffers, the thread that returns full ones
 * Locks: one each in attach, activity, buffer, effect, intern; none is held while another is taken or while a function
 * of the program runs.
 */
#ifndef SOFTGPU_CUPTI_TRACER_H
#define SOFTGPU_CUPTI_TRACER_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define CUPTI_LIB 1 /* the headers then make their functions visible */
#include <cupti.h>

#include "softgpu/trace.h"

/* ---- attach.c --------------------------------------------------------------------------------------------------- */

/* softgpu's driver, or NULL: there is none, or it is not softgpu's. */
struct softgpu_trace *attach_driver(void);
void *attach_function(const char *name); /* a public function of that driver */
/* Watches, or stops, as callback_wanted() and activity_wanted() say. */
CUptiResult attach_update(void);

/* ---- per thread ------------------------------------------------------------------------------------------------- */

struct external {
    uint64_t *ids;
    size_t depth, capacity;
};
struct thread {
    unsigned depth;       /* of API calls */
    unsigned busy;        /* inside CUPTI or a function that it called: nothing is watched */
    uint32_t correlation; /* of the outermost call */
    bool peer;            /* that call copies between devices by name */
    bool told;            /* external ids of this correlation were written */
    CUptiResult error;    /* last one */
    struct external external[CUPTI_EXTERNAL_CORRELATION_KIND_SIZE];
};
extern _Thread_local struct thread self;

/* Notes the thread's last error, and returns it. */
static inline CUptiResult failed(CUptiResult error)
{
    self.error = error;
    return error;
}

uint32_t thread_id(void); /* as cuptiSetThreadIdType asked */
void external_write(uint32_t correlation);

/* ---- call.c ----------------------------------------------------------------------------------------------------- */

/* What is kept of a call between enter and exit, in trace_call.own. */
struct call_state {
    uint64_t start;
    uint64_t data;    /* CUpti_CallbackData.correlationData */
    uint64_t address; /* of memory that is being freed, and what it was */
    uint64_t bytes;
    uint32_t correlation;
    uint32_t id; /* CUPTI's number of the function; 0: not watched */
    uint16_t memory, device;
};
_Static_assert(sizeof(struct call_state) <= sizeof(((struct trace_call *)0)->own), "state of a call");

extern const struct trace_hooks call_hooks;
uint64_t call_now(void);
void call_set_clock(CUpti_TimestampCallbackFunc clock);
uint64_t call_tag(void);
bool call_tag_peer(uint64_t tag);

/* ---- names.c ---------------------------------------------------------------------------------------------------- */

uint32_t names_id(const struct trace_site *site);               /* 0: CUPTI has no number for it */
const char *names_of(CUpti_CallbackDomain domain, uint32_t id); /* with the version; NULL when there is none */

/* ---- effect.c --------------------------------------------------------------------------------------------------- */

void effect_before(const struct trace_call *call, struct call_state *state);
void effect_after(const struct trace_call *call, struct call_state *state, uint64_t end);
void effect_attach(void); /* watching begins: what is there already */
void effect_dump(CUpti_ActivityKind kind);
void graph_before(const struct trace_call *call, const struct call_state *state);
void graph_after(const struct trace_call *call, const struct call_state *state);
void work_done(const struct trace_work *work);
void device_write_all(void); /* device records */
int device_count(void);
uint32_t device_attribute(CUdevice device, CUdevice_attribute attribute);

/* ---- callback.c ------------------------------------------------------------------------------------------------- */

bool callback_wanted(void);
bool callback_on(CUpti_CallbackDomain domain, uint32_t id);
void callback_issue(CUpti_CallbackDomain domain, uint32_t id, const void *data);
void callback_reset(void);

/* ---- activity.c ------------------------------------------------------------------------------------------------- */

bool activity_wanted(void);
bool activity_on(CUpti_ActivityKind kind, uint32_t context); /* context 0: none */
bool activity_api_on(enum trace_side side, uint32_t id, uint32_t context);
size_t activity_record_bytes(CUpti_ActivityKind kind); /* 0: no such record is made here */
bool activity_latency(void);
void activity_reset(void);

/* ---- buffer.c --------------------------------------------------------------------------------------------------- */

void buffer_write(const void *record); /* of the size of its kind */
void buffer_reset(void);

/* ---- intern.c --------------------------------------------------------------------------------------------------- */

const char *intern(const char *name); /* a copy that is never freed, one per text; NULL for NULL */

int cupti_unsupported(const char *name);

#endif
