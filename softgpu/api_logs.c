/* The driver's log of errors, for programs that ask for it: a bounded list of messages, callbacks, dumps. What is noted
 * here is what SOFTGPU_LOG gets, but each time it happens. */
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "softgpu/driver.h"

/* As much as the documentation says is kept; at least LINES messages of full length fit. */
enum { LINE_BYTES = 256, LINES = 25600 / LINE_BYTES };
static const char truncated[] = "[...] older messages were dropped\n";

struct CUlogsCallbackEntry_st {
    CUlogsCallback function;
    void *data;
    struct CUlogsCallbackEntry_st *next;
};

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static char lines[LINES][LINE_BYTES];
static unsigned written; /* messages ever noted; number i lies in lines[i % LINES] */
static struct CUlogsCallbackEntry_st *callbacks;

void logs_note(const char *name, const char *detail)
{
    struct timespec now;
    struct tm t;
    char line[LINE_BYTES];
    struct CUlogsCallbackEntry_st called[8];
    size_t count = 0;
    clock_gettime(CLOCK_REALTIME, &now);
    localtime_r(&now.tv_sec, &t);
    int bytes = snprintf(line, sizeof line, "[%02d:%02d:%02d.%03ld][%ld][CUDA][E] %s%s%s", t.tm_hour, t.tm_min,
                         t.tm_sec, now.tv_nsec / 1000000, (long)gettid(), name, *detail ? ": " : "", detail);
    if (bytes >= (int)sizeof line)
        bytes = sizeof line - 1;
    pthread_mutex_lock(&lock);
    memcpy(lines[written++ % LINES], line, sizeof line);
    for (const struct CUlogsCallbackEntry_st *c = callbacks; c && count < sizeof called / sizeof *called; c = c->next)
        called[count++] = *c;
    pthread_mutex_unlock(&lock);
    for (size_t i = 0; i < count; i++)
        called[i].function(called[i].data, CU_LOG_LEVEL_ERROR, line, (size_t)bytes);
}

CUresult cuLogsRegisterCallback(CUlogsCallback callbackFunc, void *userData, CUlogsCallbackHandle *callback_out)
{
    if (!callbackFunc)
        return CUDA_ERROR_INVALID_VALUE;
    struct CUlogsCallbackEntry_st *c = calloc(1, sizeof *c);
    if (!c)
        return CUDA_ERROR_OUT_OF_MEMORY;
    c->function = callbackFunc;
    c->data = userData;
    pthread_mutex_lock(&lock);
    c->next = callbacks;
    callbacks = c;
    pthread_mutex_unlock(&lock);
    if (callback_out)
        *callback_out = c;
    return CUDA_SUCCESS;
}

CUresult cuLogsUnregisterCallback(CUlogsCallbackHandle callback)
{
    pthread_mutex_lock(&lock);
    struct CUlogsCallbackEntry_st **at = &callbacks;
    while (*at && *at != callback)
        at = &(*at)->next;
    struct CUlogsCallbackEntry_st *found = *at;
    if (found)
        *at = found->next;
    pthread_mutex_unlock(&lock);
    free(found);
    return found ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
}

CUresult cuLogsCurrent(CUlogIterator *iterator_out, unsigned int flags)
{
    if (!iterator_out || flags)
        return CUDA_ERROR_INVALID_VALUE;
    pthread_mutex_lock(&lock);
    *iterator_out = written;
    pthread_mutex_unlock(&lock);
    return CUDA_SUCCESS;
}

/* ---- dumps: with the lock --------------------------------------------------------------------------------------- */

/* The first message to be dumped; *lost when earlier ones that were asked for are gone. */
static unsigned first_message(const CUlogIterator *iterator, bool *lost)
{
    unsigned oldest = written > LINES ? written - LINES : 0, first = iterator ? *iterator : 0;
    if (first > written)
        first = written;
    *lost = first < oldest;
    return *lost ? oldest : first;
}

static size_t bytes_from(unsigned first)
{
    size_t bytes = 0;
    for (unsigned i = first; i < written; i++)
        bytes += strlen(lines[i % LINES]) + 1;
    return bytes;
}

CUresult cuLogsDumpToFile(CUlogIterator *iterator, const char *pathToFile, unsigned int flags)
{
    FILE *file = pathToFile && !flags ? fopen(pathToFile, "we") : NULL;
    if (!file)
        return CUDA_ERROR_INVALID_VALUE;
    bool lost;
    pthread_mutex_lock(&lock);
    unsigned first = first_message(iterator, &lost);
    if (lost)
        fputs(truncated, file);
    for (unsigned i = first; i < written; i++)
        fprintf(file, "%s\n", lines[i % LINES]);
    if (iterator)
        *iterator = written;
    pthread_mutex_unlock(&lock);
    return fclose(file) == 0 ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
}

CUresult cuLogsDumpToMemory(CUlogIterator *iterator, char *buffer, size_t *size, unsigned int flags)
{
    if (!buffer || !size || !*size || flags)
        return CUDA_ERROR_INVALID_VALUE;
    bool lost;
    size_t room = *size - 1, used = 0;
    CUresult result = CUDA_SUCCESS;
    pthread_mutex_lock(&lock);
    unsigned first = first_message(iterator, &lost);
    /* What does not fit is left out from the oldest on. */
    while (first < written && bytes_from(first) + (lost ? sizeof truncated - 1 : 0) > room) {
        lost = true;
        first++;
    }
    if (first == written && lost) {
        result = CUDA_ERROR_INVALID_VALUE;
    } else {
        if (lost)
            used = sizeof truncated - 1;
        memcpy(buffer, truncated, used);
        for (unsigned i = first; i < written; i++)
            used += (size_t)sprintf(buffer + used, "%s\n", lines[i % LINES]);
        if (iterator)
            *iterator = written;
    }
    pthread_mutex_unlock(&lock);
    buffer[used] = 0;
    *size = used;
    return result;
}
