/* The program's buffers. A record goes into the current one; a full one is given back by a thread of CUPTI's own, so
 * that the program's function never runs under what some thread of the device or the program holds; a flush gives back
 * all of them itself. */
#include <pthread.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>

#include "softgpu/cupti/tracer.h"

struct buffer {
    uint8_t *data;
    size_t bytes, used;
    size_t records, max_records; /* 0: as many as fit */
    struct buffer *next;
};

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t changed = PTHREAD_COND_INITIALIZER;
static CUpti_BuffersCallbackRequestFunc request;
static CUpti_BuffersCallbackCompleteFunc complete;
static struct buffer *current, *spare; /* lists of one or more, to be filled */
static struct buffer *full, **full_end = &full;
static unsigned returning; /* buffers on their way to the program */
static bool worker;
static size_t dropped;

static bool registered(void)
{
    pthread_mutex_lock(&lock);
    bool is = request != NULL;
    pthread_mutex_unlock(&lock);
    return is;
}

CUptiResult cuptiActivityRegisterCallbacks(CUpti_BuffersCallbackRequestFunc funcBufferRequested,
                                           CUpti_BuffersCallbackCompleteFunc funcBufferCompleted)
{
    if (!funcBufferRequested || !funcBufferCompleted)
        return failed(CUPTI_ERROR_INVALID_PARAMETER);
    pthread_mutex_lock(&lock);
    request = funcBufferRequested;
    complete = funcBufferCompleted;
    pthread_mutex_unlock(&lock);
    return CUPTI_SUCCESS;
}

/* ---- giving back ------------------------------------------------------------------------------------------------ */

/* With the lock, which is given up meanwhile: one buffer goes back to the program. */
static void give_back(struct buffer *b)
{
    CUpti_BuffersCallbackCompleteFunc function = complete;
    returning++;
    pthread_mutex_unlock(&lock);
    self.busy++;
    if (function)
        function(NULL, 0, b->data, b->bytes, b->used);
    self.busy--;
    free(b);
    pthread_mutex_lock(&lock);
    returning--;
    pthread_cond_broadcast(&changed);
}

static struct buffer *take_full(void)
{
    struct buffer *b = full;
    if (b && !(full = b->next))
        full_end = &full;
    return b;
}

static void *worker_main(void *argument)
{
    pthread_mutex_lock(&lock);
    for (;;) {
        struct buffer *b = take_full();
        if (b)
            give_back(b);
        else
            pthread_cond_wait(&changed, &lock);
    }
    return NULL;
}

/* With the lock. The program's signal handlers run on the program's threads only. */
static void start_worker(void)
{
    sigset_t all, old;
    pthread_t thread;
    if (worker)
        return;
    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &old);
    worker = pthread_create(&thread, NULL, worker_main, NULL) == 0;
    pthread_sigmask(SIG_SETMASK, &old, NULL);
    if (worker)
        pthread_detach(thread);
}

/* With the lock: the current buffer takes no more. */
static void retire_current(void)
{
    struct buffer *b = current;
    current = spare;
    if (spare)
        spare = spare->next;
    if (current)
        current->next = NULL;
    b->next = NULL;
    *full_end = b;
    full_end = &b->next;
}

/* ---- writing ---------------------------------------------------------------------------------------------------- */

static bool has_room(const struct buffer *b, size_t bytes)
{
    return b->bytes - b->used >= bytes && (!b->max_records || b->records < b->max_records);
}

/* Asks the program for a buffer that takes at least `bytes`; NULL when it has none. One that is too small goes back. */
static struct buffer *new_buffer(CUpti_BuffersCallbackRequestFunc function, size_t bytes)
{
    struct buffer *b = calloc(1, sizeof *b);
    if (!b)
        return NULL;
    self.busy++;
    function(&b->data, &b->bytes, &b->max_records);
    self.busy--;
    if (b->data && b->bytes >= bytes)
        return b;
    if (b->data) {
        pthread_mutex_lock(&lock);
        give_back(b);
        pthread_mutex_unlock(&lock);
    } else {
        free(b);
    }
    return NULL;
}

/* With the lock, given up while the program is asked: the current buffer has room afterwards, or the answer is no. */
static bool make_room(size_t bytes)
{
    while (!current || !has_room(current, bytes)) {
        if (current) {
            retire_current();
            start_worker();
            pthread_cond_broadcast(&changed);
            continue;
        }
        CUpti_BuffersCallbackRequestFunc function = request;
        pthread_mutex_unlock(&lock);
        struct buffer *b = function ? new_buffer(function, bytes) : NULL;
        pthread_mutex_lock(&lock);
        if (!b)
            return current && has_room(current, bytes);
        /* Another thread may have been faster. */
        if (current) {
            b->next = spare;
            spare = b;
        } else {
            current = b;
        }
    }
    return true;
}

void buffer_write(const void *record)
{
    CUpti_ActivityKind kind;
    memcpy(&kind, record, sizeof kind);
    size_t bytes = activity_record_bytes(kind);
    pthread_mutex_lock(&lock);
    if (make_room(bytes)) {
        memcpy(current->data + current->used, record, bytes);
        current->used += bytes;
        current->records++;
    } else {
        dropped++;
    }
    pthread_mutex_unlock(&lock);
}

/* ---- flushing and reading --------------------------------------------------------------------------------------- */

static void flush(void)
{
    pthread_mutex_lock(&lock);
    if (current && current->used)
        retire_current();
    for (struct buffer *b; (b = take_full());)
        give_back(b);
    /* Those that others are giving back, too; not when this is called from there. */
    while (returning && !self.busy)
        pthread_cond_wait(&changed, &lock);
    pthread_mutex_unlock(&lock);
}

void buffer_reset(void)
{
    flush();
    pthread_mutex_lock(&lock);
    while (current) {
        struct buffer *b = current;
        current = spare;
        spare = spare ? spare->next : NULL;
        give_back(b);
    }
    request = NULL;
    complete = NULL;
    pthread_mutex_unlock(&lock);
}

CUptiResult cuptiActivityFlushAll(uint32_t flag)
{
    if (!attach_driver())
        return failed(CUPTI_ERROR_NOT_INITIALIZED);
    if (!registered())
        return failed(CUPTI_ERROR_INVALID_OPERATION);
    flush();
    return CUPTI_SUCCESS;
}

CUptiResult cuptiActivityFlush(CUcontext context, uint32_t streamId, uint32_t flag)
{
    return cuptiActivityFlushAll(flag);
}

/* A period concerns full buffers only, which go back at once here. */
CUptiResult cuptiActivityFlushPeriod(uint32_t time)
{
    return attach_driver() ? CUPTI_SUCCESS : failed(CUPTI_ERROR_NOT_INITIALIZED);
}

CUptiResult cuptiActivityGetNumDroppedRecords(CUcontext context, uint32_t streamId, size_t *count)
{
    if (!count)
        return failed(CUPTI_ERROR_INVALID_PARAMETER);
    pthread_mutex_lock(&lock);
    *count = dropped;
    dropped = 0;
    pthread_mutex_unlock(&lock);
    return CUPTI_SUCCESS;
}

CUptiResult cuptiActivityGetNextRecord(uint8_t *buffer, size_t validBufferSizeBytes, CUpti_Activity **record)
{
    if (!buffer || !record)
        return failed(CUPTI_ERROR_INVALID_PARAMETER);
    size_t at = 0;
    if (*record) {
        at = (size_t)((uint8_t *)*record - buffer);
        if (at >= validBufferSizeBytes || !activity_record_bytes((*record)->kind))
            return failed(CUPTI_ERROR_INVALID_KIND);
        at += activity_record_bytes((*record)->kind);
    }
    if (at == validBufferSizeBytes)
        return failed(CUPTI_ERROR_MAX_LIMIT_REACHED);
    CUpti_Activity *next = (CUpti_Activity *)(buffer + at);
    if (at + sizeof *next > validBufferSizeBytes || !activity_record_bytes(next->kind) ||
        at + activity_record_bytes(next->kind) > validBufferSizeBytes)
        return failed(CUPTI_ERROR_INVALID_KIND);
    *record = next;
    return CUPTI_SUCCESS;
}
