#include "shim/blob.h"

#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>
#include <zstd.h>

#include "common/map.h"
#include "shim/call.h"
#include "shim/capture_write.h"
#include "shim/memory.h"
#include "shim/path.h"
#include "shim/rotate.h"
#include "shim/segment.h"
#include "shim/shim.h"
#include "shim/small_stack.h"

enum {
    COMPRESSION_LEVEL = 1, /* keeps up with a PCIe copy; higher levels gain little on tensors */
    COPY_PATIENCE_MS = 1000,
};
/* The helper ends when it has had nothing to do for so long: a process whose main thread called pthread_exit() ends
 * with its last thread, and must not wait for ours. */
#define IDLE_NS 200000000L

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t work, done; /* on the monotonic clock, made with the first thread */
static bool conditions_made;
static struct blob_job *first, **last = &first;
static uint64_t queued, finished, last_copy; /* numbers of jobs; they are done in their order */
static unsigned waiting;
static enum { NO_THREAD, HAS_THREAD, THREAD_FAILED } thread_state;
static bool woken; /* somebody wants a spare segment */
static bool broken;

/* Only the helper uses these. */
static struct map stored_already;
static ZSTD_CCtx *compressor;

bool blob_broken(void)
{
    return __atomic_load_n(&broken, __ATOMIC_RELAXED);
}

/* One frame, piece by piece: contents may be large, and memory for their compressed form is not ours to take. */
static bool compress_into(int fd, const struct blob_job *job, size_t *out_bytes)
{
    static char piece[128 << 10];
    ZSTD_inBuffer in = {job->data, job->bytes, 0};
    errno = ENOMEM;
    if (!compressor && !(compressor = ZSTD_createCCtx()))
        return false;
    ZSTD_CCtx_reset(compressor, ZSTD_reset_session_only);
    ZSTD_CCtx_setParameter(compressor, ZSTD_c_compressionLevel, COMPRESSION_LEVEL);
    ZSTD_CCtx_setPledgedSrcSize(compressor, job->bytes);
    *out_bytes = 0;
    for (size_t left = 1; left;) {
        ZSTD_outBuffer out = {piece, sizeof piece, 0};
        left = ZSTD_compressStream2(compressor, &out, &in, ZSTD_e_end);
        if (ZSTD_isError(left)) {
            errno = ENOMEM;
            return false;
        }
        *out_bytes += out.pos;
        errno = EFBIG;
        if (!capture_size_allowed(*out_bytes) || !capture_write_all(fd, piece, out.pos))
            return false;
    }
    return true;
}

static bool write_blob(const char *path, const char *temporary, const struct blob_job *job, size_t *bytes)
{
    int fd = open(temporary, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
    if (fd < 0)
        return false;
    bool ok = compress_into(fd, job, bytes);
    int kept = errno;
    ok = close(fd) == 0 && ok;
    if (ok && rename(temporary, path) == 0)
        return true;
    kept = ok ? errno : kept;
    unlink(temporary);
    errno = kept;
    return false;
}

static bool store(struct blob_job *job)
{
    uint64_t before;
    if (!job->hashed)
        job->hash = hash_bytes(job->data, job->bytes);
    if (map_get(&stored_already, job->hash.low, &before) && before == job->hash.high) {
        rotate_blob_named(job->hash, 0);
        return true;
    }
    if (blob_broken())
        return false;
    char text[HASH_TEXT_BYTES];
    hash_text(job->hash, text);
    char *PATH_FREED all = path_of("blobs"), *PATH_FREED folder = path_of("blobs/%.2s", text);
    char *PATH_FREED path = path_of("blobs/%.2s/%s.zst", text, text);
    char *PATH_FREED temporary = path_of("blobs/%.2s/%s.zst.new", text, text);
    size_t bytes = 0;
    bool named = all && folder && path && temporary;
    if (named) {
        mkdir(all, 0700);
        mkdir(folder, 0700);
    }
    errno = ENOMEM;
    if (!named || !write_blob(path, temporary, job, &bytes)) {
        __atomic_store_n(&broken, true, __ATOMIC_RELAXED);
        shim_note(CAP_NOTE_LOST, "contents can no longer be stored: %s", strerror(errno));
        return false;
    }
    memory_map_put(&stored_already, job->hash.low, job->hash.high, false); /* else it is stored again */
    rotate_blob_named(job->hash, bytes);
    return true;
}

uint64_t blob_delete(struct hash128 hash)
{
    char text[HASH_TEXT_BYTES];
    struct stat st;
    hash_text(hash, text);
    char *PATH_FREED path = path_of("blobs/%.2s/%s.zst", text, text);
    if (!path)
        return 0;
    uint64_t bytes = stat(path, &st) == 0 ? (uint64_t)st.st_size : 0;
    map_remove(&stored_already, hash.low);
    if (unlink(path) != 0)
        return 0;
    *strrchr(path, '/') = '\0';
    rmdir(path); /* when it was the last one; a folder takes a page on disk */
    return bytes;
}

/* With the lock held: true when there is a job, false when nothing came for a while. Idle time goes into spare
 * segments. */
static bool wait_for_work(void)
{
    struct timespec until;
    clock_gettime(CLOCK_MONOTONIC, &until);
    until.tv_nsec += IDLE_NS;
    until.tv_sec += until.tv_nsec / 1000000000L;
    until.tv_nsec %= 1000000000L;
    woken = true;
    while (!first) {
        if (woken) {
            woken = false;
            pthread_mutex_unlock(&lock);
            segment_make_spare();
            rotate_run(true);
            pthread_mutex_lock(&lock);
        } else if (pthread_cond_timedwait(&work, &lock, &until) && !first && !woken) {
            return false;
        }
    }
    return true;
}

static void *helper(void *unused)
{
    shim_thread.inside = 1;
    shim_thread.stores_contents = true;
    pthread_mutex_lock(&lock);
    while (wait_for_work()) {
        struct blob_job *job = first;
        first = job->next;
        if (!first)
            last = &first;
        pthread_mutex_unlock(&lock);
        uint64_t begin = call_tsc();
        job->stored(job, store(job));
        rotate_run(true);
        CAPTURE_COUNT(helper_tsc, call_tsc() - begin);
        capture_flush_counters();
        pthread_mutex_lock(&lock);
        finished++;
        if (waiting)
            pthread_cond_broadcast(&done);
    }
    thread_state = NO_THREAD; /* the next job makes another one */
    pthread_mutex_unlock(&lock);
    return NULL;
}

/* With the lock held. */
static bool ensure_thread(void)
{
    if (thread_state != NO_THREAD)
        return thread_state == HAS_THREAD;
    if (!conditions_made) {
        pthread_condattr_t monotonic;
        pthread_condattr_init(&monotonic);
        pthread_condattr_setclock(&monotonic, CLOCK_MONOTONIC);
        pthread_cond_init(&work, &monotonic);
        pthread_cond_init(&done, &monotonic);
        pthread_condattr_destroy(&monotonic);
        conditions_made = true;
    }
    pthread_attr_t detached;
    pthread_attr_init(&detached);
    pthread_attr_setdetachstate(&detached, PTHREAD_CREATE_DETACHED);
    small_stack_not(&detached);
    /* The program's signals are for the program's threads. */
    sigset_t all, before;
    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &before);
    pthread_t thread;
    thread_state = pthread_create(&thread, &detached, helper, NULL) == 0 ? HAS_THREAD : THREAD_FAILED;
    pthread_sigmask(SIG_SETMASK, &before, NULL);
    pthread_attr_destroy(&detached);
    return thread_state == HAS_THREAD;
}

void blob_wake(void)
{
    pthread_mutex_lock(&lock);
    woken = true;
    if (ensure_thread())
        pthread_cond_signal(&work);
    pthread_mutex_unlock(&lock);
}

static bool put(struct blob_job *job, bool copy)
{
    job->next = NULL;
    pthread_mutex_lock(&lock);
    bool ok = ensure_thread();
    if (ok) {
        *last = job;
        last = &job->next;
        queued++;
        if (copy)
            last_copy = queued;
        pthread_cond_signal(&work);
    }
    pthread_mutex_unlock(&lock);
    return ok;
}

bool blob_put(struct blob_job *job)
{
    return put(job, false);
}

static void copy_stored(struct blob_job *job, bool ok)
{
    memory_give(sizeof *job + job->bytes);
    free(job); /* the bytes lie behind it */
}

struct hash128 blob_put_copy(const void *data, size_t bytes)
{
    struct hash128 none = {0, 0};
    if (!memory_may(sizeof(struct blob_job) + bytes)) { /* what waits before it may be all that is in the way */
        blob_wait_copies(deadline_in(COPY_PATIENCE_MS));
        if (!memory_may(sizeof(struct blob_job) + bytes))
            return none;
    }
    struct blob_job *job = malloc(sizeof *job + bytes);
    if (!job) {
        memory_give(sizeof *job + bytes);
        return none;
    }
    memcpy(job + 1, data, bytes);
    *job = (struct blob_job){.data = job + 1, .bytes = bytes, .hashed = true, .stored = copy_stored};
    struct hash128 hash = job->hash = hash_bytes(job + 1, bytes);
    if (put(job, true))
        return hash;
    memory_give(sizeof *job + bytes);
    free(job);
    return none;
}

/* Until the helper is done with job number `upto`; how many are left. */
static uint64_t wait_until(const uint64_t *upto, struct deadline deadline)
{
    const struct timespec until = {(time_t)(deadline.ns / 1000000000u), (long)(deadline.ns % 1000000000u)};
    int cancel;
    pthread_setcancelstate(PTHREAD_CANCEL_DISABLE, &cancel); /* the wait is a place where a thread could end */
    pthread_mutex_lock(&lock);
    uint64_t wanted = *upto;
    waiting++;
    while (thread_state == HAS_THREAD && finished < wanted)
        if (pthread_cond_timedwait(&done, &lock, &until) == ETIMEDOUT)
            break;
    waiting--;
    uint64_t left = finished < wanted ? wanted - finished : 0;
    pthread_mutex_unlock(&lock);
    pthread_setcancelstate(cancel, NULL);
    return left;
}

bool blob_wait(struct deadline deadline)
{
    return wait_until(&queued, deadline) == 0;
}

bool blob_wait_copies(struct deadline deadline)
{
    return wait_until(&last_copy, deadline) == 0;
}

void blob_finish(struct deadline deadline)
{
    uint64_t left = wait_until(&queued, deadline);
    if (left)
        shim_note(CAP_NOTE_LOST, "%llu contents were not stored yet when the process ended", (unsigned long long)left);
}
