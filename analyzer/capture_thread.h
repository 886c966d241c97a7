/* capture_thread.h - which thread wrote a record: the segment's head says it, up to the first CAP_WRITER in it. */
#ifndef ANALYZER_CAPTURE_THREAD_H
#define ANALYZER_CAPTURE_THREAD_H

#include "analyzer/capture_read.h"

struct capture_threads {
    struct capture_writing {
        const uint8_t *from; /* where in the segments its records begin */
        uint32_t tid;
    } * writings; /* owned; by address */
    size_t count;
    bool several; /* more than one thread */
};

bool capture_threads_find(struct capture_threads *out, const struct capture *capture); /* false: no memory */
void capture_threads_free(struct capture_threads *threads);
/* The Linux thread id, 0: unknown. */
uint32_t capture_threads_of(const struct capture_threads *threads, const struct cap_head *record);

#endif
