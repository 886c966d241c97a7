#include "shim/segment.h"

#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "shim/blob.h"
#include "shim/capture_write.h"
#include "shim/memory.h"
#include "shim/no_cancel.h"
#include "shim/options.h"
#include "shim/path.h"
#include "shim/rotate.h"
#include "shim/shim.h"
#include "shim/thread.h"

enum {
    FIRST_SEGMENT_BYTES = 256 << 10, /* many programs have many threads that call little */
    LATER_SEGMENT_BYTES = 4 << 20,
    KEPT_SEGMENT_BYTES = 256 << 10,
    PINNED_SEGMENT_BYTES = 64 << 10, /* a thousand threads */
    HANDED_ON_MAX = 64,              /* segments of threads that ended, waiting for the next ones */
    HANDED_ON_ROOM = 4 << 10,        /* that makes one worth it */
    ROTATED_PARTS = 16,              /* a limited capture is dropped in steps of so small a part of it, */
    ROTATED_THREADS = 4,             /* smaller when there are more threads than these, */
    ROTATED_MIN = 4 << 10,           /* but at least so much */
    KEPT_MIN = 16 << 10,
};

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static struct segment *segments;
static unsigned count;
static struct segment *handed_on; /* newest first */
static unsigned handed_on_count;
static unsigned threads;      /* atomic */
static struct segment *spare; /* atomic: made ahead by the helper, its pages already writable */
static bool spare_wanted;     /* atomic */

/* ---- files ---- */

/* Sparse pages of a full disk would raise SIGBUS when they are written through the mapping. No descriptor stays open:
 * programs close or reuse descriptors they do not know. */
void *segment_map_file(const char *path, size_t bytes)
{
    int fd = open(path, O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
    if (fd < 0)
        return NULL;
    void *map = MAP_FAILED;
    int problem = EFBIG;
    if (capture_size_allowed(bytes)) {
        do
            problem = posix_fallocate(fd, 0, (off_t)bytes);
        while (problem == EINTR);
    }
    if (!problem)
        map = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
    if (map == MAP_FAILED) {
        unlink(path);
        errno = problem ? problem : errno;
        map = NULL;
    }
    int kept = errno;
    close(fd);
    errno = kept;
    return map;
}

unsigned segment_number(void)
{
    pthread_mutex_lock(&lock);
    unsigned number = count++;
    pthread_mutex_unlock(&lock);
    return number;
}

/* ---- sizes ---- */

void segment_thread_begins(void)
{
    __atomic_add_fetch(&threads, 1, __ATOMIC_RELAXED);
}

void segment_thread_ends(void)
{
    __atomic_sub_fetch(&threads, 1, __ATOMIC_RELAXED);
}

/* A part of the capture's limit: whole pages, from `least` to `most`. */
static size_t part_bytes(uint64_t parts, size_t least, size_t most)
{
    uint64_t part = (options.max_capture / parts) & ~UINT64_C(4095);
    return part > most ? most : part < least ? least : (size_t)part;
}

/* What a thread's second and later segments get; the first one is no larger. */
static size_t later_bytes(void)
{
    size_t most = memory_roomy(LATER_SEGMENT_BYTES) ? LATER_SEGMENT_BYTES : FIRST_SEGMENT_BYTES;
    if (!options.max_capture)
        return most;
    unsigned sharing = __atomic_load_n(&threads, __ATOMIC_RELAXED) / ROTATED_THREADS;
    return part_bytes(ROTATED_PARTS * (uint64_t)(sharing ? sharing : 1), ROTATED_MIN, most);
}

size_t segment_first_bytes(void)
{
    size_t later = later_bytes();
    return later < FIRST_SEGMENT_BYTES ? later : FIRST_SEGMENT_BYTES;
}

size_t segment_kept_bytes(void)
{
    return options.max_capture ? part_bytes(ROTATED_PARTS, KEPT_MIN, KEPT_SEGMENT_BYTES) : PINNED_SEGMENT_BYTES;
}

/* ---- opening and closing ---- */

struct segment *segment_open(size_t bytes)
{
    NO_CANCEL;
    struct segment *s = calloc(1, sizeof *s);
    if (!s)
        return NULL;
    s->number = segment_number();
    rotate_grown((int64_t)bytes);
    char *PATH_FREED path = path_of_segment(s->number);
    errno = ENOMEM;
    s->base = path ? segment_map_file(path, bytes) : NULL;
    if (!s->base) {
        char reason[128];
        snprintf(reason, sizeof reason, "no space for records: %s", strerror(errno));
        rotate_grown(-(int64_t)bytes);
        free(s);
        shim_step_aside(reason);
        return NULL;
    }
    memory_must(bytes);
    s->bytes = bytes;
    s->used = sizeof(struct cap_segment);
    struct cap_segment *head = (void *)s->base;
    head->version = CAP_VERSION;
    head->number = s->number;
    head->first_seq = __atomic_load_n(capture_seq, __ATOMIC_RELAXED);
    __atomic_store_n(&head->magic, CAP_SEGMENT_MAGIC, __ATOMIC_RELEASE);
    pthread_mutex_lock(&lock);
    s->next = segments;
    segments = s;
    pthread_mutex_unlock(&lock);
    return s;
}

static void know_thread(void)
{
    if (!shim_thread.thread_id)
        shim_thread.thread_id = (uint32_t)syscall(SYS_gettid);
}

void segment_adopt(struct segment *s)
{
    know_thread();
    struct cap_segment *head = (void *)s->base;
    head->tid = shim_thread.thread_id;
    head->first_seq = __atomic_load_n(capture_seq, __ATOMIC_RELAXED);
}

static void forget(const struct segment *s)
{
    pthread_mutex_lock(&lock);
    for (struct segment **at = &segments; *at; at = &(*at)->next)
        if (*at == s) {
            *at = s->next;
            break;
        }
    pthread_mutex_unlock(&lock);
    munmap(s->base, s->bytes);
    memory_give(s->bytes);
}

void segment_close(struct segment *s)
{
    NO_CANCEL;
    char *PATH_FREED path = path_of_segment(s->number);
    size_t used = s->used, bytes = s->bytes;
    struct rotate_span span = {.last_seq = s->last_seq ? s->last_seq : capture_last_seq()};
    span.first_seq = ((const struct cap_segment *)(const void *)s->base)->first_seq;
    forget(s);
    if (path &&
        truncate(path, (off_t)used) == 0) { /* else it only stays longer than needed; a record of size 0 ends it */
        rotate_grown((int64_t)used - (int64_t)bytes);
        bytes = used;
    }
    span.bytes = bytes;
    if (options.max_capture) {
        rotate_closed(s->number, &span);
        if (rotate_is_late())
            rotate_run(false);
        else if (rotate_is_due())
            blob_wake();
    }
    free(s);
}

/* One that nobody has written to. */
static void discard(struct segment *s)
{
    NO_CANCEL;
    char *PATH_FREED path = path_of_segment(s->number);
    forget(s);
    if (path && unlink(path) == 0)
        rotate_grown(-(int64_t)s->bytes);
    free(s);
}

/* ---- ahead of the need ---- */

/* Every first write to a page of a shared file mapping costs the writer a page fault that goes through the file system:
 * as much as fifty records. The helper takes them ahead of time. */
void segment_make_spare(void)
{
    if (!shim_is_recording() || !__atomic_exchange_n(&spare_wanted, false, __ATOMIC_ACQ_REL) ||
        __atomic_load_n(&spare, __ATOMIC_ACQUIRE))
        return;
    struct segment *fresh = segment_open(later_bytes()), *none = NULL;
    if (!fresh)
        return;
#ifdef MADV_POPULATE_WRITE /* Linux 5.14; without it the pages come one by one, as before */
    madvise(fresh->base, fresh->bytes, MADV_POPULATE_WRITE);
#endif
    if (!__atomic_compare_exchange_n(&spare, &none, fresh, false, __ATOMIC_ACQ_REL, __ATOMIC_ACQUIRE))
        discard(fresh);
}

/* The size that is wanted changes with the memory that is left, and with the number of threads. */
static struct segment *take_spare(size_t bytes)
{
    if (bytes != later_bytes())
        return NULL;
    struct segment *found = __atomic_exchange_n(&spare, NULL, __ATOMIC_ACQ_REL);
    if (found && found->bytes != bytes) {
        discard(found);
        found = NULL;
    }
    __atomic_store_n(&spare_wanted, true, __ATOMIC_RELEASE);
    blob_wake();
    return found;
}

/* ---- from thread to thread ---- */

/* A segment costs system calls and page faults, a thread that lives for a few calls uses a corner of it. The next
 * thread goes on behind the last record: what a kill leaves there is what it would leave of one long-lived thread. */
void segment_hand_on(struct segment *s)
{
    pthread_mutex_lock(&lock);
    /* Rotation drops whole segments by their age: one that goes on for ever would have none. */
    bool worth_it = !options.max_capture && handed_on_count < HANDED_ON_MAX && s->bytes - s->used >= HANDED_ON_ROOM &&
                    shim_is_recording();
    if (worth_it) {
        s->next_handed_on = handed_on;
        handed_on = s;
        handed_on_count++;
    }
    pthread_mutex_unlock(&lock);
    if (!worth_it)
        segment_close(s);
}

static struct segment *take_handed_on(size_t need)
{
    pthread_mutex_lock(&lock);
    struct segment **at = &handed_on;
    while (*at && (*at)->bytes - (*at)->used < need + sizeof(struct cap_writer))
        at = &(*at)->next_handed_on;
    struct segment *s = *at;
    if (s) {
        *at = s->next_handed_on;
        handed_on_count--;
    }
    pthread_mutex_unlock(&lock);
    return s;
}

/* The rest of a segment is this thread's. */
static void go_on(struct segment *s)
{
    know_thread();
    struct cap_writer *writer = (void *)(s->base + s->used);
    writer->head = (struct cap_head){0, CAP_WRITER, HOOK_NONE, capture_next_seq(), __builtin_ia32_rdtsc()};
    writer->tid = shim_thread.thread_id;
    s->used += sizeof *writer;
    shim_thread.records++;
    shim_thread.record_bytes += sizeof *writer;
    __atomic_store_n(&writer->head.size, (uint32_t)sizeof *writer, __ATOMIC_RELEASE);
}

struct segment *segment_next(size_t need)
{
    bool first = !shim_thread.segment;
    size_t bytes = first ? segment_first_bytes() : later_bytes();
    if (need > bytes - sizeof(struct cap_segment))
        bytes = (need + sizeof(struct cap_segment) + 4095) & ~(size_t)4095;
    struct segment *s = first ? take_handed_on(need) : NULL;
    if (s) {
        go_on(s);
        return s;
    }
    if (!(s = take_spare(bytes)) && !(s = segment_open(bytes)))
        return NULL;
    segment_adopt(s);
    return s;
}

void segment_close_unused(void)
{
    struct segment *s = __atomic_exchange_n(&spare, NULL, __ATOMIC_ACQ_REL);
    if (s)
        discard(s);
    while ((s = take_handed_on(0)))
        segment_close(s);
}
