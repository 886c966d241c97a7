/* hang.h - what a program that does not go on is doing: its threads, its streams, and whether one of them is stuck.
 *
 * From the records that the shim keeps for a look from outside (CAP_THREAD_STATE, CAP_STREAM_STATE) and what leads up
 * to them. Works on the capture of a living process and on that of one that was killed. Times are ns; "for" means until
 * now, or until the capture was last written.
 */
#ifndef ANALYZER_HANG_H
#define ANALYZER_HANG_H

#include "analyzer/process.h"
#include "analyzer/session.h"

struct hang_thread {
    const struct cap_thread_state *state;
    const char *call, *scope;      /* names; NULL: it is in no call, or made none */
    uint64_t since_ns;             /* it entered its newest call so long ago */
    const struct cap_head *record; /* what that call wrote; NULL: nothing */
    uint32_t stack;                /* of it, 0 none */
    bool polls;                    /* asks again and again whether something is complete */
    struct process_thread process;
};

struct hang_stream {
    const struct cap_stream *stream;
    const struct cap_stream_state *state;    /* NULL: nobody asked */
    struct model_launch *running, *next;     /* next: has not begun; NULL: none known */
    struct model_launch *last;               /* the newest one in it */
    uint64_t asked_ns, still_ns;             /* asked, and last seen to move, so long ago */
    uint64_t running_ns;                     /* seen to run for at least so long */
    uint64_t usual_ns;                       /* the longest other launch of that kernel; 0: there is none with a time */
    const struct cap_stream_value *value;    /* it may be waiting for this word */
    const struct cap_event_op_record *event; /* it may be waiting for this event */
    const struct cap_order *function;        /* it may be inside this function of the host, or in front of it */
    const struct cap_host_function *called;  /* more about that function; NULL: nothing is known */
    uint64_t called_ns;                      /* it began so long ago; 0: it has not */
    struct process_thread caller;            /* the thread that it runs in */
    const struct hang_thread *waiter;        /* of the program, for this stream; NULL: nobody */
};

struct hang {
    struct session *session;
    enum process_life life;
    bool ended;
    bool stopped;      /* by a signal, SIGSTOP say: alive, and nothing of it runs */
    uint64_t now_ns;   /* since the start of the capture */
    uint64_t after_ns; /* what has not moved for so long is stuck */
    struct hang_thread *threads;
    size_t thread_count;
    struct hang_stream *streams;
    size_t stream_count;
};

/* `s` is open; what is stuck is added to its findings. STATUS_NO_MEMORY: nothing is there. */
enum status hang_look(struct session *s, uint64_t after_ns, struct hang *out);
void hang_free(struct hang *h);
bool hang_in_function(const struct hang_stream *s); /* as far as is known, it waits for a function of the host */
/* A running launch that nothing speaks against but its time: a note, no finding. */
void hang_judge(struct hang *h); /* called by hang_look */

#endif
