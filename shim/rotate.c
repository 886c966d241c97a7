#include "shim/rotate.h"

#include <errno.h>
#include <fcntl.h>
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
#include "shim/path.h"
#include "shim/rotate_carry.h"
#include "shim/segment.h"
#include "shim/shim.h"
#include "shim/thread.h"

struct closed {
    unsigned number;
    bool contents; /* of the helper: its records name blobs, and nothing else depends on them */
    struct rotate_span span;
    struct carry_spread spread; /* once somebody asked how it is spread */
    struct closed *older, *newer;
};

enum {
    ROTATED_PARTS = 16,
    FLOOR_PARTS = 4, /* so large a part of the limit is never dropped, */
    FLOOR_MOST = 4 << 20,
};

static int64_t on_disk; /* atomic */
static pthread_mutex_t closed_lock = PTHREAD_MUTEX_INITIALIZER;
static struct closed *oldest, *newest;          /* by last_seq */
static uint64_t work_bytes, carried_work_bytes; /* atomic: of closed segments without contents; in the carry segment */
static unsigned contents_count;                 /* atomic: of closed segments with contents */

/* Behind `running`. */
static pthread_mutex_t running = PTHREAD_MUTEX_INITIALIZER;
static struct buf carried; /* the records of the carry segment */
static struct carry_spread carried_work;
static unsigned carry_number;
static bool has_carry;
static uint64_t cut; /* work before it was dropped */
static bool failed;  /* atomic */

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

/* The newest work: this much is kept even when what cannot be dropped takes more than the limit. */
static uint64_t floor_bytes(void)
{
    uint64_t part = options.max_capture / FLOOR_PARTS;
    return part < FLOOR_MOST ? part : FLOOR_MOST;
}

/* An eighth more, so that each turn makes room for some records. */
static bool work_can_go(void)
{
    uint64_t least = floor_bytes(), bytes = __atomic_load_n(&work_bytes, __ATOMIC_RELAXED);
    return bytes && bytes + __atomic_load_n(&carried_work_bytes, __ATOMIC_RELAXED) > least + least / 8;
}

static bool something_can_go(bool helper)
{
    if (__atomic_load_n(&failed, __ATOMIC_RELAXED))
        return false;
    return work_can_go() || (helper && __atomic_load_n(&contents_count, __ATOMIC_RELAXED));
}

bool rotate_is_due(void)
{
    return excess(options.max_capture) && something_can_go(true);
}

bool rotate_is_late(void)
{
    return excess(options.max_capture + options.max_capture / 4) && something_can_go(false);
}

/* With closed_lock held, as are the next ones. */
static void link_closed(struct closed *c)
{
    struct closed *before = newest;
    while (before && before->span.last_seq > c->span.last_seq)
        before = before->older;
    c->older = before;
    c->newer = before ? before->newer : oldest;
    *(before ? &before->newer : &oldest) = c;
    *(c->newer ? &c->newer->older : &newest) = c;
}

static void unlink_closed(struct closed *c)
{
    *(c->older ? &c->older->newer : &oldest) = c->newer;
    *(c->newer ? &c->newer->older : &newest) = c->older;
}

void rotate_closed(unsigned number, const struct rotate_span *span)
{
    struct closed *c = calloc(1, sizeof *c);
    if (!c)
        return; /* it stays */
    c->number = number;
    c->span = *span;
    c->contents = shim_thread.stores_contents;
    pthread_mutex_lock(&closed_lock);
    link_closed(c);
    pthread_mutex_unlock(&closed_lock);
    if (c->contents)
        __atomic_add_fetch(&contents_count, 1, __ATOMIC_RELAXED);
    else
        __atomic_add_fetch(&work_bytes, span->bytes, __ATOMIC_RELAXED);
}

/* The oldest that may go; that with contents only on the helper thread, which alone may delete blobs. */
static struct closed *take_oldest(bool helper)
{
    bool work = work_can_go();
    pthread_mutex_lock(&closed_lock);
    struct closed *c = oldest;
    while (c && !(c->contents ? helper : work))
        c = c->newer;
    if (c)
        unlink_closed(c);
    pthread_mutex_unlock(&closed_lock);
    if (c && c->contents)
        __atomic_sub_fetch(&contents_count, 1, __ATOMIC_RELAXED);
    else if (c)
        __atomic_sub_fetch(&work_bytes, c->span.bytes, __ATOMIC_RELAXED);
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
    char *PATH_FREED path = path_of_segment(number);
    struct stat st;
    int fd = path ? open(path, O_RDONLY | O_CLOEXEC) : -1;
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

/* What there is to know of the records that go. */
struct summary {
    uint64_t last_seq;                  /* of the program's work */
    uint64_t last_launch;               /* that a snapshot in it is of */
    uint64_t cut, launches, work_bytes; /* launches before the cut, bytes from there on */
};

static void summarise(const struct cap_head *record, void *data)
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
}

static void count_cut(const struct cap_head *record, void *data)
{
    struct summary *s = data;
    if (record->seq >= s->cut)
        s->work_bytes += record->size;
    else
        s->launches += record->type == CAP_LAUNCH || record->type == CAP_GRAPH_LAUNCH;
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
    char *PATH_FREED path = path_of_segment(number), *PATH_FREED hidden = path_of(".carry");
    const struct cap_segment head = {
        .magic = CAP_SEGMENT_MAGIC,
        .version = CAP_VERSION,
        .number = number,
        .first_seq = dropped->span.first_seq,
        .replaces = {dropped->number + UINT64_C(1), has_carry ? carry_number + UINT64_C(1) : 0},
    };
    if (!path || !hidden || !capture_size_allowed(sizeof head + records->size))
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
    char *PATH_FREED path = path_of_segment(number);
    if (path && unlink(path) == 0)
        rotate_grown(-(int64_t)bytes);
}

/* Closed segments with work, newest first; NULL: no memory. They stay as long as `running` is held. */
static struct closed **list_work(size_t *count)
{
    pthread_mutex_lock(&closed_lock);
    *count = 0;
    for (const struct closed *c = newest; c; c = c->older)
        *count += !c->contents;
    struct closed **list = malloc((*count + 1) * sizeof(void *));
    size_t n = 0;
    for (struct closed *c = newest; c && list; c = c->older)
        if (!c->contents)
            list[n++] = c;
    pthread_mutex_unlock(&closed_lock);
    return list;
}

/* How much of it is not older than `seq`, about. */
static uint64_t bytes_since(struct closed *c, uint64_t seq)
{
    if (c->span.first_seq >= seq)
        return c->span.bytes;
    if (c->span.last_seq < seq)
        return 0;
    size_t bytes;
    uint8_t *data = c->spread.bytes ? NULL : read_segment(c->number, &bytes);
    if (data && bytes > sizeof(struct cap_segment)) {
        const struct carry_records records = {data + sizeof(struct cap_segment), bytes - sizeof(struct cap_segment), 0};
        carry_spread(&c->spread, &records, 0);
    }
    free(data);
    return carry_spread_since(&c->spread, seq);
}

static bool is_enough(struct closed *const *list, size_t count, uint64_t seq)
{
    uint64_t least = floor_bytes(), bytes = carry_spread_since(&carried_work, seq);
    for (size_t i = 0; i < count && bytes < least; i++)
        bytes += bytes_since(list[i], seq);
    return bytes >= least;
}

/* Where the history shall begin when `c`, which is in no list any more, is dropped: behind its work, unless too little
 * would be left. Threads that worked side by side and ended together leave segments that all end at about the same seq,
 * so then some of what they hold is carried on. */
static uint64_t choose_cut(struct closed *c, uint64_t last_seq)
{
    size_t count;
    uint64_t low = cut, high = last_seq + 1;
    struct closed **list = low < high ? list_work(&count) : NULL;
    if (!list)
        return low > high ? low : high;
    if (!is_enough(list, count, high)) {
        list[count++] = c; /* list_work left room */
        while (low + 1 < high) {
            uint64_t middle = low + (high - low) / 2;
            *(is_enough(list, count, middle) ? &low : &high) = middle;
        }
        high = low;
    }
    free(list);
    return high;
}

/* Replaces the carry segment by one that also has what is still needed of `c`, declares the rest dropped, deletes. */
static bool drop_work(struct closed *c, const struct carry_records *records)
{
    const struct carry_records before = {carried.data, carried.size, 0};
    struct buf next = {0};
    struct summary s = {0};
    carry_each(records, summarise, &s);
    s.cut = choose_cut(c, s.last_seq);
    carry_each(&before, count_cut, &s);
    carry_each(records, count_cut, &s);
    unsigned number = segment_number();
    if (!carry_build(&next, &before, records, s.cut)) {
        buf_free(&next);
        return false;
    }
    capture_dropped(s.cut, 0); /* before it is */
    if (!write_carry(&next, number, c)) {
        buf_free(&next);
        return false;
    }
    rotate_grown((int64_t)(next.size + sizeof(struct cap_segment)));
    capture_count_dropped(c->span.bytes, s.launches);
    delete_segment(c->number, c->span.bytes);
    if (has_carry)
        delete_segment(carry_number, carried.size + sizeof(struct cap_segment));
    buf_free(&carried);
    carried = next;
    has_carry = true;
    carry_number = number;
    cut = s.cut;
    carry_spread(&carried_work, &(const struct carry_records){carried.data, carried.size, 0}, cut);
    __atomic_store_n(&carried_work_bytes, s.work_bytes, __ATOMIC_RELAXED);
    return true;
}

static void drop_contents(const struct closed *c, const struct carry_records *records)
{
    struct summary s = {0};
    carry_each(records, summarise, &s);
    capture_dropped(0, s.last_launch ? s.last_launch + 1 : 0);
    capture_count_dropped(c->span.bytes, 0);
    carry_each(records, drop_names, NULL);
    delete_segment(c->number, c->span.bytes);
}

static bool drop(struct closed *c)
{
    size_t bytes;
    uint8_t *data = read_segment(c->number, &bytes);
    bool ok = data && bytes >= sizeof(struct cap_segment);
    if (ok) {
        const struct cap_segment *head = (const void *)data;
        const struct carry_records records = {head + 1, bytes - sizeof *head, head->tid};
        if (c->contents)
            drop_contents(c, &records);
        else
            ok = drop_work(c, &records);
    }
    free(data);
    return ok;
}

void rotate_run(bool helper)
{
    struct timespec until;
    if (!excess(options.max_capture) || !something_can_go(helper) || !shim_is_recording())
        return;
    /* Who writes faster than the helper drops waits for it: that is what keeps the limit. */
    clock_gettime(CLOCK_REALTIME, &until);
    until.tv_sec++;
    if (helper ? pthread_mutex_lock(&running) : pthread_mutex_timedlock(&running, &until))
        return;
    while (excess(options.max_capture) && something_can_go(helper)) {
        struct closed *c = take_oldest(helper);
        if (!c) /* another thread's is being closed */
            break;
        bool ok = drop(c);
        free(c);
        if (ok)
            continue;
        __atomic_store_n(&failed, true, __ATOMIC_RELAXED);
        shim_note(CAP_NOTE_LOST, "the oldest records could not be dropped: the capture gets larger than MAX_CAPTURE");
        break;
    }
    pthread_mutex_unlock(&running);
}
