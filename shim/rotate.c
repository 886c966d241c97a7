#include "shim/rotate.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include <opsdebug/capture.h>

#include "common/buf.h"
#include "common/map.h"
#include "shim/blob.h"
#include "shim/capture_write.h"
#include "shim/options.h"
#include "shim/shim.h"

struct closed {
    unsigned number;
    uint64_t first_seq, bytes;
    struct closed *next; /* by first_seq */
};

enum { ROTATED_PARTS = 16 };

static int64_t on_disk; /* atomic */
static pthread_mutex_t closed_lock = PTHREAD_MUTEX_INITIALIZER;
static struct closed *closed; /* oldest first */

/* Behind `running`. */
static pthread_mutex_t running = PTHREAD_MUTEX_INITIALIZER;
static struct buf carried; /* the records of the carry segment */
static unsigned carry_number;
static bool has_carry;
static bool failed; /* atomic */

static pthread_mutex_t names_lock = PTHREAD_MUTEX_INITIALIZER;
static struct map names; /* of blobs: how many records name them, by the lower half of the hash */

bool rotate_keeps(uint16_t type)
{
    switch (type) { /* what comes with the program's work; the rest defines or tells something */
    case CAP_EVENT:
    case CAP_ALLOC:
    case CAP_FREE:
    case CAP_COPY:
    case CAP_SET:
    case CAP_LAUNCH:
    case CAP_SYNC:
    case CAP_EVENT_OP:
    case CAP_TIMES:
    case CAP_SNAPSHOT:
    case CAP_CHECKED:
    case CAP_HEALTH:
    case CAP_HEALTH_CHECKED:
    case CAP_ORDER:
    case CAP_GRAPH_LAUNCH:
    case CAP_RANGE:
    case CAP_OPERATOR:
    case CAP_DETAIL:
    case CAP_MARK:
    case CAP_VALUE:
    case CAP_STREAM_VALUE:
    case CAP_WRITER:
        return false;
    default:
        return true;
    }
}

void rotate_grown(int64_t bytes)
{
    __atomic_fetch_add(&on_disk, bytes, __ATOMIC_RELAXED);
}

static uint64_t excess(uint64_t limit)
{
    int64_t now = __atomic_load_n(&on_disk, __ATOMIC_RELAXED);
    return limit && now > 0 && (uint64_t)now > limit ? (uint64_t)now - limit : 0;
}

bool rotate_is_due(void)
{
    return excess(options.max_capture) && __atomic_load_n(&closed, __ATOMIC_RELAXED) &&
           !__atomic_load_n(&failed, __ATOMIC_RELAXED);
}

bool rotate_is_late(void)
{
    return rotate_is_due() && excess(options.max_capture + options.max_capture / 4);
}

void rotate_closed(unsigned number, uint64_t first_seq, uint64_t bytes)
{
    struct closed *c = malloc(sizeof *c);
    if (!c)
        return; /* it stays */
    *c = (struct closed){.number = number, .first_seq = first_seq, .bytes = bytes};
    pthread_mutex_lock(&closed_lock);
    struct closed **at = &closed;
    while (*at && (*at)->first_seq <= first_seq)
        at = &(*at)->next;
    c->next = *at;
    __atomic_store_n(at, c, __ATOMIC_RELEASE);
    pthread_mutex_unlock(&closed_lock);
}

static struct closed *take_oldest(void)
{
    pthread_mutex_lock(&closed_lock);
    struct closed *c = closed;
    if (c)
        __atomic_store_n(&closed, c->next, __ATOMIC_RELEASE);
    pthread_mutex_unlock(&closed_lock);
    return c;
}

/* ---- blobs ---- */

void rotate_blob_named(struct hash128 hash, uint64_t bytes)
{
    static uint64_t since; /* stored, since the helper's segment was begun */
    uint64_t count = 0;
    if (!options.max_capture)
        return;
    rotate_grown((int64_t)bytes);
    since += bytes;
    if (since > options.max_capture / ROTATED_PARTS) { /* contents are dropped with the records that name them */
        capture_close_own();
        since = 0;
    }
    pthread_mutex_lock(&names_lock);
    map_get(&names, hash.low, &count);
    map_put(&names, hash.low, count + 1);
    pthread_mutex_unlock(&names_lock);
}

static void unname(struct hash128 hash)
{
    uint64_t count = 0;
    pthread_mutex_lock(&names_lock);
    bool known = map_get(&names, hash.low, &count);
    if (known && count > 1)
        map_put(&names, hash.low, count - 1);
    else if (known)
        map_remove(&names, hash.low);
    pthread_mutex_unlock(&names_lock);
    if (known && count <= 1)
        rotate_grown(-(int64_t)blob_delete(hash));
}

/* ---- segments ---- */

/* Everything of the file, to be freed; NULL: it cannot be read. */
static uint8_t *read_segment(unsigned number, size_t *bytes)
{
    char path[PATH_MAX + 32];
    struct stat st;
    capture_segment_path(number, path, sizeof path);
    int fd = open(path, O_RDONLY | O_CLOEXEC);
    uint8_t *data = fd >= 0 && fstat(fd, &st) == 0 ? malloc((size_t)st.st_size + 1) : NULL;
    *bytes = 0;
    while (data && *bytes < (size_t)st.st_size) {
        ssize_t n = read(fd, data + *bytes, (size_t)st.st_size - *bytes);
        if (n < 0 && errno == EINTR)
            continue;
        if (n <= 0)
            break;
        *bytes += (size_t)n;
    }
    if (fd >= 0)
        close(fd);
    return data;
}

typedef void visit_function(const struct cap_head *record, void *data);

static void each_record(const uint8_t *records, size_t bytes, visit_function *visit, void *data)
{
    for (size_t at = 0; bytes - at >= sizeof(struct cap_head);) {
        const struct cap_head *record = (const void *)(records + at);
        if (record->size < sizeof *record || record->size > bytes - at)
            return;
        visit(record, data);
        at += record->size;
    }
}

/* What there is to know of a segment, and of what was carried before it. */
struct summary {
    uint64_t last_seq, launches; /* of the program's work */
    uint64_t last_launch;        /* that a snapshot in it is of */
    struct map freed;            /* ids of allocations whose free is in it, or was carried */
    struct map made;             /* ids of allocations */
    struct buf carry;            /* what is carried on */
    bool no_memory;
};

static void summarise(const struct cap_head *record, void *data)
{
    struct summary *s = data;
    const struct cap_free *free_record = (const void *)record;
    if (record->type == CAP_FREE && free_record->id && !free_record->result)
        s->no_memory = !map_put(&s->freed, free_record->id, 1) || s->no_memory;
    if (record->type == CAP_ALLOC)
        s->no_memory = !map_put(&s->made, ((const struct cap_alloc *)(const void *)record)->id, 1) || s->no_memory;
}

static void count(const struct cap_head *record, void *data)
{
    struct summary *s = data;
    switch (record->type) {
    case CAP_SNAPSHOT: {
        uint64_t launch = ((const struct cap_snapshot *)(const void *)record)->launch;
        s->last_launch = launch > s->last_launch ? launch : s->last_launch;
        return;
    }
    case CAP_TIMES: /* what was seen of the work comes later, and nothing depends on it */
    case CAP_CHECKED:
    case CAP_HEALTH:
    case CAP_HEALTH_CHECKED:
        return;
    default:
        break;
    }
    s->last_seq = record->seq > s->last_seq ? record->seq : s->last_seq;
    s->launches += record->type == CAP_LAUNCH || record->type == CAP_GRAPH_LAUNCH;
}

/* An allocation without its free, a free without its allocation: the other half is in a segment that stays. */
static void carry(const struct cap_head *record, void *data)
{
    struct summary *s = data;
    uint64_t there;
    const struct cap_free *free_record = (const void *)record;
    bool needed = false;
    if (record->type == CAP_ALLOC)
        needed = !map_get(&s->freed, ((const struct cap_alloc *)(const void *)record)->id, &there);
    else if (record->type == CAP_FREE && free_record->id && !free_record->result)
        needed = !map_get(&s->made, free_record->id, &there);
    if (needed)
        buf_append(&s->carry, record, record->size);
}

static void drop_names(const struct cap_head *record, void *unused)
{
    if (record->type == CAP_SNAPSHOT) {
        const struct cap_snapshot *r = (const void *)record;
        unname((struct hash128){r->hash_low, r->hash_high});
    } else if (record->type == CAP_VALUE) {
        const struct cap_value *r = (const void *)record;
        unname((struct hash128){r->hash_low, r->hash_high});
    }
}

/* The file appears whole, under the number of a segment. From that moment on it stands for the segment `dropped` and
 * the carry segment before it, whether these are still there or not. */
static bool write_carry(const struct buf *records, unsigned number, const struct closed *dropped)
{
    char path[PATH_MAX + 32], hidden[PATH_MAX + 32];
    const struct cap_segment head = {
        .magic = CAP_SEGMENT_MAGIC,
        .version = CAP_VERSION,
        .number = number,
        .first_seq = dropped->first_seq,
        .replaces = {dropped->number + UINT64_C(1), has_carry ? carry_number + UINT64_C(1) : 0},
    };
    capture_segment_path(number, path, sizeof path);
    snprintf(hidden, sizeof hidden, "%s/.carry", capture_directory());
    if (!capture_size_allowed(sizeof head + records->size))
        return false;
    int fd = open(hidden, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
    if (fd < 0)
        return false;
    bool ok = capture_write_all(fd, &head, sizeof head) && capture_write_all(fd, records->data, records->size);
    ok = close(fd) == 0 && ok && rename(hidden, path) == 0;
    if (!ok)
        unlink(hidden);
    return ok;
}

static void delete_segment(unsigned number, uint64_t bytes)
{
    char path[PATH_MAX + 32];
    capture_segment_path(number, path, sizeof path);
    if (unlink(path) == 0)
        rotate_grown(-(int64_t)bytes);
}

/* Replaces the carry segment by one that also has what is still needed of `c`, declares the rest dropped, deletes. */
static bool drop(const struct closed *c, bool helper)
{
    size_t bytes;
    struct summary s = {0};
    uint8_t *data = read_segment(c->number, &bytes);
    if (!data || bytes < sizeof(struct cap_segment)) {
        free(data);
        return false;
    }
    const uint8_t *records = data + sizeof(struct cap_segment);
    size_t size = bytes - sizeof(struct cap_segment);
    each_record((const uint8_t *)carried.data, carried.size, summarise, &s);
    each_record(records, size, summarise, &s);
    each_record(records, size, count, &s);
    each_record((const uint8_t *)carried.data, carried.size, carry, &s);
    each_record(records, size, carry, &s);
    unsigned number = capture_segment_number();
    bool ok = !s.no_memory && !s.carry.failed;
    if (ok)
        capture_dropped(s.last_seq ? s.last_seq + 1 : 0, s.last_launch ? s.last_launch + 1 : 0); /* before it is */
    if (ok && (ok = write_carry(&s.carry, number, c))) {
        rotate_grown((int64_t)(s.carry.size + sizeof(struct cap_segment)));
        capture_count_dropped(c->bytes, s.launches);
        if (helper)
            each_record(records, size, drop_names, NULL);
        delete_segment(c->number, c->bytes);
        if (has_carry)
            delete_segment(carry_number, carried.size + sizeof(struct cap_segment));
        buf_free(&carried);
        carried = s.carry;
        has_carry = true;
        carry_number = number;
    } else
        buf_free(&s.carry);
    map_free(&s.freed);
    map_free(&s.made);
    free(data);
    return ok;
}

void rotate_run(bool helper)
{
    struct timespec until;
    if (!rotate_is_due() || !shim_is_recording())
        return;
    /* Who writes faster than the helper drops waits for it: that is what keeps the limit. */
    clock_gettime(CLOCK_REALTIME, &until);
    until.tv_sec++;
    if (helper ? pthread_mutex_lock(&running) : pthread_mutex_timedlock(&running, &until))
        return;
    while (rotate_is_due()) {
        struct closed *c = take_oldest();
        if (!c) /* another thread's is being closed */
            break;
        bool ok = drop(c, helper);
        free(c);
        if (ok)
            continue;
        __atomic_store_n(&failed, true, __ATOMIC_RELAXED);
        shim_note(CAP_NOTE_LOST, "the oldest records could not be dropped: the capture gets larger than MAX_CAPTURE");
        break;
    }
    pthread_mutex_unlock(&running);
}
