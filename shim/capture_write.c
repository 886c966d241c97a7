#include "shim/capture_write.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "shim/budget.h"
#include "shim/hooks.h"
#include "shim/memory.h"
#include "shim/no_cancel.h"
#include "shim/options.h"
#include "shim/path.h"
#include "shim/progress.h"
#include "shim/ranges.h"
#include "shim/rotate.h"
#include "shim/segment.h"
#include "shim/shim.h"
#include "shim/thread.h"
#include "shim/track.h"

#ifndef OPSDEBUG_VERSION
#define OPSDEBUG_VERSION "0.1"
#endif

enum { CALIBRATE_TICKS = 1 << 20 }; /* the clocks are compared again after some 400 us */

/* Stands in while there is no file, so that counting needs no test. */
static struct cap_header no_header;
static struct cap_header *header = &no_header;
uint64_t *capture_seq = &no_header.next_seq;
static char directory[PATH_MAX];
static uint64_t *hook_calls[HOOK_COUNT]; /* into the CAP_HOOK records */
uint64_t capture_ns_per_tsc_32;

static pthread_mutex_t pinned_lock = PTHREAD_MUTEX_INITIALIZER;
static struct segment *pinned; /* of all threads; older ones, when it was full, stay mapped as well */
static pthread_key_t thread_key;
static bool thread_key_valid;

static uint64_t now_ns(clockid_t clock)
{
    struct timespec t;
    clock_gettime(clock, &t);
    return (uint64_t)t.tv_sec * 1000000000u + (uint64_t)t.tv_nsec;
}

static uint64_t now_tsc(void)
{
    return __builtin_ia32_rdtsc();
}

/* The two clocks at one moment. A thread that is preempted between the two readings would pair times that are
 * milliseconds apart, so the readings have to be close. */
static void now_pair(uint64_t *tsc, uint64_t *mono_ns)
{
    uint64_t best = UINT64_MAX;
    for (int i = 0; i < 8 && best > 2000; i++) {
        uint64_t before = now_tsc(), ns = now_ns(CLOCK_MONOTONIC), after = now_tsc();
        if (after - before < best) {
            best = after - before;
            *tsc = before + best / 2;
            *mono_ns = ns;
        }
    }
}

int capture_size_allowed(uint64_t bytes)
{
    struct rlimit limit;
    return getrlimit(RLIMIT_FSIZE, &limit) != 0 || limit.rlim_cur == RLIM_INFINITY || bytes <= limit.rlim_cur;
}

bool capture_write_all(int fd, const void *data, size_t bytes)
{
    const char *at = data;
    while (bytes) {
        ssize_t n = write(fd, at, bytes);
        if (n < 0 && errno == EINTR)
            continue;
        if (n <= 0)
            return false;
        at += n;
        bytes -= (size_t)n;
    }
    return true;
}

static void thread_ends(void *data)
{
    struct shim_thread *thread = &shim_thread;
    if (shim_is_owner()) {
        ranges_thread_ends();
        progress_thread_ends();
        track_thread_ends();
    }
    struct segment *last = thread->segment, *previous = thread->previous;
    if (!shim_is_owner())
        return;
    capture_flush_counters();
    thread->registered = false; /* destructors of others may call once more; then ours comes again */
    thread->segment = thread->previous = NULL;
    if (previous && !previous->pinned)
        segment_close(previous);
    if (last && !last->pinned)
        segment_hand_on(last);
    if (last)
        segment_thread_ends();
}

uint64_t capture_last_seq(void)
{
    return __atomic_load_n(capture_seq, __ATOMIC_RELAXED) - 1;
}

/* So that thread_ends runs: for what was counted, and for the segment. */
static void register_thread(struct shim_thread *thread)
{
    if (!thread->registered && thread_key_valid)
        thread->registered = pthread_setspecific(thread_key, thread) == 0;
}

static struct segment *switch_segment(size_t need)
{
    struct shim_thread *thread = &shim_thread;
    thread_slow();
    if (!thread->segment)
        segment_thread_begins();
    struct segment *fresh = segment_next(need), *oldest = thread->previous;
    if (!fresh)
        return NULL;
    if (thread->segment)
        thread->segment->last_seq = capture_last_seq();
    thread->previous = thread->segment;
    thread->segment = fresh;
    if (oldest && !oldest->pinned)
        segment_close(oldest);
    register_thread(thread);
    return fresh;
}

static bool pinned_room(size_t bytes);

/* In a limited capture: what is never dropped lies in segments of all threads. The lock is held until the commit. */
static struct cap_head *kept_record(size_t bytes)
{
    pthread_mutex_lock(&pinned_lock);
    if (pinned_room(bytes)) {
        shim_thread.open_kept = true;
        return (void *)(pinned->base + pinned->used);
    }
    pthread_mutex_unlock(&pinned_lock);
    __atomic_fetch_add(&header->dropped_records, 1, __ATOMIC_RELAXED);
    return NULL;
}

void *capture_record(uint16_t type, size_t bytes, uint64_t seq, uint64_t tsc)
{
    struct shim_thread *thread = &shim_thread;
    if (!shim_is_recording()) {
        __atomic_fetch_add(&header->dropped_records, 1, __ATOMIC_RELAXED);
        return NULL;
    }
    bytes = (bytes + 7) & ~(size_t)7;
    struct segment *s = thread->segment;
    struct cap_head *head = NULL;
    if (options.max_capture && rotate_keeps(type)) {
        if (!(head = kept_record(bytes)))
            return NULL;
    } else if (!s || bytes > s->bytes - s->used) {
        s = bytes <= UINT32_MAX - 8 ? switch_segment(bytes) : NULL;
        if (!s) {
            __atomic_fetch_add(&header->dropped_records, 1, __ATOMIC_RELAXED);
            return NULL;
        }
    }
    if (!head)
        head = (void *)(s->base + s->used);
    head->type = type;
    head->scope = thread->scope;
    head->seq = seq;
    head->tsc = tsc;
    thread->open_bytes = (uint32_t)bytes;
    return head;
}

void *capture_define(uint16_t type, size_t bytes)
{
    return capture_record(type, bytes, capture_next_seq(), now_tsc());
}

void capture_commit(void *record)
{
    struct shim_thread *thread = &shim_thread;
    struct cap_head *head = record;
    thread->records++;
    thread->record_bytes += thread->open_bytes;
    if (thread->open_kept)
        pinned->used += thread->open_bytes;
    else
        thread->segment->used += thread->open_bytes;
    __atomic_store_n(&head->size, thread->open_bytes, __ATOMIC_RELEASE);
    if (thread->open_kept) {
        thread->open_kept = false;
        pthread_mutex_unlock(&pinned_lock);
    }
}

bool capture_can_patch(const void *record)
{
    const struct segment *mapped[] = {shim_thread.segment, shim_thread.previous};
    const uint8_t *at = record;
    for (int i = 0; i < 2; i++)
        if (mapped[i] && at >= mapped[i]->base && at < mapped[i]->base + mapped[i]->bytes)
            return true;
    return false;
}

/* Behind pinned_lock: sees to it that `pinned` has room. */
static bool pinned_room(size_t bytes)
{
    if (pinned && bytes <= pinned->bytes - pinned->used)
        return true;
    size_t size = segment_kept_bytes();
    if (bytes > size - sizeof(struct cap_segment))
        size = (bytes + sizeof(struct cap_segment) + 4095) & ~(size_t)4095;
    struct segment *fresh = segment_open(size);
    if (!fresh)
        return false;
    fresh->pinned = true;
    segment_adopt(fresh);
    pinned = fresh;
    return true;
}

void *capture_pin(uint16_t type, size_t bytes)
{
    bytes = (bytes + 7) & ~(size_t)7;
    if (!shim_is_recording())
        return NULL;
    pthread_mutex_lock(&pinned_lock);
    if (!pinned_room(bytes)) {
        pthread_mutex_unlock(&pinned_lock);
        return NULL;
    }
    struct cap_head *head = (void *)(pinned->base + pinned->used);
    *head = (struct cap_head){0, type, HOOK_NONE, capture_next_seq(), now_tsc()};
    pinned->used += bytes;
    __atomic_store_n(&head->size, (uint32_t)bytes, __ATOMIC_RELEASE);
    pthread_mutex_unlock(&pinned_lock);
    CAPTURE_COUNT(records, 1);
    CAPTURE_COUNT(record_bytes, bytes);
    return head;
}

static void flush_hook_calls(struct shim_thread *thread)
{
    if (thread->hook_calls && hook_calls[thread->counted])
        __atomic_fetch_add(hook_calls[thread->counted], thread->hook_calls, __ATOMIC_RELAXED);
    thread->hook_calls = 0;
}

void capture_count_other_hook(unsigned hook)
{
    struct shim_thread *thread = &shim_thread;
    flush_hook_calls(thread);
    register_thread(thread);
    thread->counted = (uint16_t)hook;
}

void capture_dropped(uint64_t before_seq, uint64_t snapshots_before_seq)
{
    if (before_seq > header->dropped_before)
        __atomic_store_n(&header->dropped_before, before_seq, __ATOMIC_RELEASE);
    if (snapshots_before_seq > header->dropped_snapshots_before)
        __atomic_store_n(&header->dropped_snapshots_before, snapshots_before_seq, __ATOMIC_RELEASE);
}

void capture_close_own(void)
{
    struct shim_thread *thread = &shim_thread;
    struct segment *own[] = {thread->previous, thread->segment};
    thread->segment = thread->previous = NULL;
    if (own[1])
        segment_thread_ends();
    for (int i = 0; i < 2; i++)
        if (own[i] && !own[i]->pinned)
            segment_close(own[i]);
}

void capture_count_dropped(uint64_t bytes, uint64_t launches)
{
    CAPTURE_COUNT(dropped_segments, 1);
    CAPTURE_COUNT(dropped_segment_bytes, bytes);
    CAPTURE_COUNT(dropped_launches, launches);
}

void capture_count(size_t header_member_offset, uint64_t more)
{
    __atomic_fetch_add((uint64_t *)((char *)header + header_member_offset), more, __ATOMIC_RELAXED);
}

static void calibrate_live(void)
{
    uint64_t tsc, ns;
    now_pair(&tsc, &ns);
    __atomic_store_n(&header->tsc_now, tsc, __ATOMIC_RELAXED);
    __atomic_store_n(&header->mono_now_ns, ns, __ATOMIC_RELAXED);
}

void capture_tick(void)
{
    calibrate_live();
}

void capture_flush_counters(void)
{
    struct shim_thread *thread = &shim_thread;
    CAPTURE_COUNT(wrapped_calls, thread->calls);
    CAPTURE_COUNT(own_tsc, thread->own_tsc);
    CAPTURE_COUNT(launches, thread->launches);
    CAPTURE_COUNT(records, thread->records);
    CAPTURE_COUNT(record_bytes, thread->record_bytes);
    flush_hook_calls(thread);
    memory_tell(header);
    thread->calls = thread->own_tsc = thread->launches = thread->records = thread->record_bytes = 0;
    if (now_tsc() - __atomic_load_n(&header->tsc_now, __ATOMIC_RELAXED) > CALIBRATE_TICKS)
        calibrate_live();
    budget_tick();
}

uint64_t capture_ns_to_tsc(uint64_t ns)
{
    return (uint64_t)(((unsigned __int128)ns << 32) / (capture_ns_per_tsc_32 ? capture_ns_per_tsc_32 : 1));
}

uint64_t capture_own_tsc(void)
{
    return __atomic_load_n(&header->own_tsc, __ATOMIC_RELAXED);
}

uint64_t capture_tsc_to_mono(uint64_t tsc)
{
    return header->mono_start_ns + capture_tsc_to_ns(tsc - header->tsc_start);
}

const char *capture_directory(void)
{
    return directory;
}

void capture_set_state(uint32_t cap_state, const char *reason)
{
    if (reason)
        snprintf(header->reason, sizeof header->reason, "%s", reason);
    __atomic_store_n(&header->state, cap_state, __ATOMIC_RELEASE);
}

/* capture.bin appears whole or not at all, and never in place of another one; errno is EEXIST then. */
static bool give_name(const char *from, const char *to)
{
    if (renameat2(AT_FDCWD, from, AT_FDCWD, to, RENAME_NOREPLACE) == 0)
        return true;
    if (errno != EINVAL && errno != ENOSYS)
        return false;
    if (access(to, F_OK) == 0) { /* this file system cannot tell; nearly as good */
        errno = EEXIST;
        return false;
    }
    return rename(from, to) == 0;
}

/* A file of its own with what `header` holds so far, as capture.bin of the present `directory`. */
static struct cap_header *publish_header(bool *existed)
{
    char *PATH_FREED path = path_of("capture.bin");
    char *PATH_FREED hidden = path_of(".capture.bin-%d", (int)getpid());
    *existed = path && access(path, F_OK) == 0;
    if (!path || !hidden || *existed)
        return NULL;
    unlink(hidden); /* of a process that had this number and was killed */
    struct cap_header *map = segment_map_file(hidden, sizeof *map);
    if (!map)
        return NULL;
    memcpy(map, header, sizeof *map);
    if (give_name(hidden, path))
        return map;
    *existed = errno == EEXIST;
    munmap(map, sizeof *map);
    unlink(hidden);
    return NULL;
}

/* `wanted` wherever the program goes: it may change its working directory. realpath() would take much of a small stack.
 */
static bool make_absolute(const char *wanted, char *out, size_t bytes)
{
    size_t length = 0;
    if (*wanted != '/') {
        if (!getcwd(out, bytes) || *out != '/')
            return false;
        length = strlen(out);
        if (length + 1 == bytes)
            return false;
        out[length++] = '/';
    }
    if (strlen(wanted) >= bytes - length)
        return false;
    strcpy(out + length, wanted);
    return true;
}

/* A folder that is ours alone to write capture.bin in. */
static bool claim_directory(const char *wanted)
{
    static char base[PATH_MAX]; /* once per process, in one thread */
    bool existed = false;
    if ((mkdir(wanted, 0700) != 0 && errno != EEXIST) || !make_absolute(wanted, base, sizeof base))
        return false;
    for (int attempt = 0; attempt < 64; attempt++) {
        int length;
        if (attempt == 0)
            length = snprintf(directory, sizeof directory, "%s", base);
        else if (attempt == 1)
            length = snprintf(directory, sizeof directory, "%s/process-%d", base, (int)getpid());
        else /* the same process again, after exec */
            length = snprintf(directory, sizeof directory, "%s/process-%d-%d", base, (int)getpid(), attempt);
        if (length < 0 || (size_t)length >= sizeof directory - 64)
            return false;
        if (attempt && mkdir(directory, 0700) != 0 && errno != EEXIST)
            return false;
        struct cap_header *map = publish_header(&existed);
        if (map) {
            header = map;
            capture_seq = &map->next_seq;
            return true;
        }
        if (!existed)
            return false;
    }
    return false;
}

static void read_command(char *out, size_t bytes)
{
    int fd = open("/proc/self/cmdline", O_RDONLY | O_CLOEXEC);
    if (fd < 0)
        return;
    ssize_t got = read(fd, out, bytes - 2);
    if (got < 0)
        out[0] = '\0';
    close(fd);
}

/* Half a millisecond is enough to tell ticks from nanoseconds within a few parts in ten thousand. */
static void measure_tsc(void)
{
    uint64_t t0, n0, t1, n1;
    now_pair(&t0, &n0);
    do
        now_pair(&t1, &n1);
    while (n1 - n0 < 500000);
    header->tsc_start = t0;
    header->mono_start_ns = n0;
    header->tsc_hz_estimate = (uint64_t)((double)(t1 - t0) * 1e9 / (double)(n1 - n0));
    capture_ns_per_tsc_32 = (uint64_t)((double)(n1 - n0) / (double)(t1 - t0) * 4294967296.0);
}

static size_t hook_name_bytes(unsigned hook)
{
    return (sizeof(struct cap_string) + strlen(hook_symbol(hook)) + 7) & ~(size_t)7;
}

/* Written straight into the first segment: the state is not "recording" yet. In a capture with a limit this segment is
 * also the first of those that are never dropped, and no larger than need be; else the first of this thread. */
static struct segment *open_first(void)
{
    size_t bytes = segment_first_bytes();
    if (options.max_capture) {
        bytes = sizeof(struct cap_segment) + segment_kept_bytes();
        for (unsigned i = 0; i < HOOK_COUNT; i++)
            bytes += hook_name_bytes(i) + sizeof(struct cap_hook);
        bytes = (bytes + 4095) & ~(size_t)4095;
    }
    struct segment *s = segment_open(bytes);
    if (!s)
        return NULL;
    s->pinned = true;
    segment_adopt(s);
    if (options.max_capture) {
        pinned = s;
        return s;
    }
    shim_thread.segment = s;
    segment_thread_begins();
    return s;
}

static bool write_hooks(void)
{
    struct segment *s = open_first();
    if (!s)
        return false;
    for (unsigned i = 0; i < HOOK_COUNT; i++) {
        const char *text = hook_symbol(i);
        size_t length = strlen(text), bytes = hook_name_bytes(i);
        struct cap_string *name = (void *)(s->base + s->used);
        name->head = (struct cap_head){0, CAP_STRING, HOOK_NONE, capture_next_seq(), header->tsc_start};
        name->id = i + 1; /* the first string ids belong to the hooks */
        name->bytes = (uint32_t)length;
        memcpy(name + 1, text, length);
        __atomic_store_n(&name->head.size, (uint32_t)bytes, __ATOMIC_RELEASE);
        struct cap_hook *hook = (void *)(s->base + s->used + bytes);
        hook->head = (struct cap_head){0, CAP_HOOK, HOOK_NONE, capture_next_seq(), header->tsc_start};
        hook->index = i;
        hook->name = i + 1;
        hook_calls[i] = &hook->calls;
        __atomic_store_n(&hook->head.size, (uint32_t)sizeof *hook, __ATOMIC_RELEASE);
        s->used += bytes + sizeof *hook;
    }
    return true;
}

const char *capture_open(const char *out)
{
    NO_CANCEL;
    char usual[64];
    no_header.next_seq = 1;
    snprintf(usual, sizeof usual, "ops-debug-capture-%d", (int)getpid());
    measure_tsc();
    header->version = CAP_VERSION;
    header->header_bytes = sizeof *header;
    header->pid = (uint32_t)getpid();
    header->parent_pid = (uint32_t)getppid();
    header->start_realtime_ns = now_ns(CLOCK_REALTIME);
    snprintf(header->shim_version, sizeof header->shim_version, "%s", OPSDEBUG_VERSION);
    read_command(header->command, sizeof header->command);
    calibrate_live();
    header->state = CAP_RUNNING;
    header->magic = CAP_MAGIC;
    if (!claim_directory(out && *out ? out : usual))
        return "the capture directory cannot be made";
    thread_key_valid = pthread_key_create(&thread_key, thread_ends) == 0;
    if (!write_hooks()) {
        capture_set_state(CAP_STEPPED_ASIDE, "no space for records");
        return "no space for records";
    }
    return NULL;
}

void capture_close(void)
{
    capture_flush_counters();
    calibrate_live();
    segment_close_unused();
    if (header->state == CAP_RUNNING)
        capture_set_state(CAP_ENDED, NULL);
    /* Other threads may still be writing, and this one may be asked once more by a later destructor: nothing is
     * unmapped. Only the space behind the last record is given back, which no living thread of ours needs: its next
     * record would. So segments stay as they are unless their thread is this one. */
    struct segment *s = shim_thread.segment;
    if (s && header != &no_header) {
        char *PATH_FREED path = path_of_segment(s->number);
        size_t keep = (s->used + 4095) & ~(size_t)4095;
        s->bytes = keep < s->bytes ? keep : s->bytes;
        if (!path || truncate(path, (off_t)s->bytes) != 0)
            s->bytes = s->used; /* unchanged on disk; simply write no more */
    }
}
