#include "analyzer/capture_read.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "analyzer/capture_check.h"
#include "analyzer/name.h"
#include "analyzer/regular.h"
#include "common/buf.h"
#include "common/diag.h"

/* A segment above this is not one of ours: the shim starts a new one long before. */
#define SEGMENT_LIMIT (UINT64_C(4) << 30)

static uint64_t definition_key(enum cap_type type, uint32_t id)
{
    return (uint64_t)type << 32 | id;
}

const void *capture_definition(const struct capture *c, enum cap_type type, uint32_t id)
{
    uint64_t value;
    return id && map_get(&c->defined, definition_key(type, id), &value) ? (const void *)(uintptr_t)value : NULL;
}

const char *capture_string(const struct capture *c, uint32_t id)
{
    uint64_t value;
    return map_get(&c->strings, id, &value) ? (const char *)(uintptr_t)value : "";
}

/* The segment and the offset in it that a record came from. */
static const struct capture_segment *record_place(const struct capture *c, const struct cap_head *record, long *offset)
{
    for (size_t i = 0; i < c->segment_count; i++) {
        const struct capture_segment *s = &c->segments[i];
        uintptr_t at = (uintptr_t)record, start = (uintptr_t)s->data;
        if (at >= start && at < start + s->bytes) {
            *offset = (long)(at - start);
            return s;
        }
    }
    *offset = -1;
    return NULL;
}

static void reject_at(struct capture *c, const char *file, long offset, const char *text)
{
    if (c->rejected.count < CAPTURE_KEPT_REJECTS)
        diag_set(&c->rejected.kept[c->rejected.count], STATUS_BAD_INPUT, file, offset, "%s", text);
    c->rejected.count++;
}

static void reject_text(struct capture *c, const struct cap_head *record, const char *text)
{
    long offset;
    const struct capture_segment *s = record_place(c, record, &offset);
    reject_at(c, s ? s->name : "?", offset, text);
}

void capture_reject(struct capture *c, const struct cap_head *record, const char *format, ...)
{
    char text[CAPTURE_CHECK_TEXT];
    va_list args;
    va_start(args, format);
    vsnprintf(text, sizeof text, format, args);
    va_end(args);
    reject_text(c, record, text);
}

/* ---- header ---- */

static void only_printable(char *text)
{
    for (char *p = text; *p; p++)
        if ((unsigned char)*p < 0x20 || (unsigned char)*p >= 0x7f)
            *p = '?';
}

static enum status take_header(struct capture *c, const char *where, struct capture_bytes bytes, struct diag *diag)
{
    if (bytes.bytes < sizeof c->header)
        return diag_set(diag, STATUS_BAD_INPUT, where, (long)bytes.bytes,
                        "the file ends after %zu bytes; a header of %zu was expected", bytes.bytes, sizeof c->header);
    memcpy(&c->header, bytes.data, sizeof c->header);
    const struct cap_header *h = &c->header;
    if (h->magic != CAP_MAGIC)
        return diag_set(diag, STATUS_BAD_INPUT, where, 0,
                        "not a capture: the magic is %016" PRIx64 ", expected %016" PRIx64, h->magic, CAP_MAGIC);
    if (h->version > CAP_VERSION || h->version == 0)
        return diag_set(diag, STATUS_BAD_INPUT, where, 8,
                        "capture of format version %u; this analyzer reads versions 1 to %d", h->version, CAP_VERSION);
    if (h->header_bytes < sizeof *h)
        return diag_set(diag, STATUS_BAD_INPUT, where, 12, "header of %u bytes; at least %zu were expected",
                        h->header_bytes, sizeof *h);
    c->header.shim_version[sizeof h->shim_version - 1] = '\0';
    c->header.reason[sizeof h->reason - 1] = '\0';
    c->header.command[sizeof h->command - 2] = '\0';
    c->header.command[sizeof h->command - 1] = '\0';
    size_t used = 0;
    for (const char *arg = h->command; *arg; arg += strlen(arg) + 1)
        used += (size_t)snprintf(c->program + used, sizeof c->program - used, "%s%s", used ? " " : "", arg);
    c->shell_program = name_shell(h->command);
    struct buf folder = {0};
    buf_append(&folder, c->path, strlen(c->path) + 1);
    buf_append(&folder, "", 1);
    c->shell_path = folder.failed ? NULL : name_shell(folder.data);
    buf_free(&folder);
    if (!c->shell_program || !c->shell_path)
        return STATUS_NO_MEMORY;
    only_printable(c->program);
    only_printable(c->shell_program);
    return STATUS_OK;
}

/* ---- segments and records ---- */

static void release(const struct capture_segment *s)
{
    if (s->mapped)
        munmap(s->data, s->mapped);
    else
        free(s->data);
}

/* Takes `from` over, but for its name. */
static bool push_segment(struct capture *c, const char *name, struct capture_segment from)
{
    struct capture_segment *more = realloc(c->segments, (c->segment_count + 1) * sizeof *more);
    if (more)
        c->segments = more;
    char *copy = strdup(name);
    if (!more || !copy) {
        free(copy);
        release(&from);
        return false;
    }
    from.name = copy;
    c->segments[c->segment_count++] = from;
    return true;
}

static size_t count_records(const struct capture_segment *s)
{
    size_t n = 0;
    for (size_t at = sizeof(struct cap_segment);
         s->bytes >= sizeof(struct cap_head) && at <= s->bytes - sizeof(struct cap_head);) {
        uint32_t size = ((const struct cap_head *)(s->data + at))->size;
        if (size < sizeof(struct cap_head) || size % 8 || size > s->bytes - at)
            break;
        at += size;
        n++;
    }
    return n;
}

static bool segment_usable(struct capture *c, const struct capture_segment *s)
{
    const struct cap_segment *head = (const void *)s->data;
    if (s->bytes == 0)
        return false; /* created, killed before its header was written */
    if (s->bytes < sizeof *head) {
        capture_reject(c, (const void *)s->data, "segment of %zu bytes; a header of %zu was expected", s->bytes,
                       sizeof *head);
        return false;
    }
    if (head->magic == 0 && (s->bytes < sizeof *head + sizeof(struct cap_head) ||
                             ((const struct cap_head *)(s->data + sizeof *head))->size == 0))
        return false; /* allocated, killed before its header was complete: the magic is stored last */
    if (head->magic != CAP_SEGMENT_MAGIC) {
        capture_reject(c, (const void *)s->data, "not a segment: the magic is %016" PRIx64 ", expected %016" PRIx64,
                       head->magic, CAP_SEGMENT_MAGIC);
        return false;
    }
    if (head->version == 0 || head->version > CAP_VERSION) {
        capture_reject(c, (const void *)s->data, "segment of format version %u; this analyzer reads versions 1 to %d",
                       head->version, CAP_VERSION);
        return false;
    }
    return true;
}

/* Walks one segment and keeps every record of a possible shape. */
static void walk_segment(struct capture *c, const struct capture_segment *s)
{
    char why[CAPTURE_CHECK_TEXT];
    if (!segment_usable(c, s))
        return;
    size_t at = sizeof(struct cap_segment);
    while (s->bytes - at >= sizeof(struct cap_head)) {
        const struct cap_head *record = (const void *)(s->data + at);
        if (record->size == 0)
            return;
        if (record->size < sizeof *record || record->size % 8) {
            capture_reject(
                c, record,
                "record of %u bytes; a multiple of 8, at least %zu, was expected; the rest of the segment is left out",
                record->size, sizeof *record);
            return;
        }
        if (record->size > s->bytes - at) {
            capture_reject(c, record, "record of %u bytes, but the segment ends after %zu; it was cut", record->size,
                           s->bytes - at);
            return;
        }
        at += record->size;
        if (capture_check_shape(record, why))
            c->records[c->record_count++] = record;
        else
            reject_text(c, record, why);
    }
}

static int by_seq(const void *a, const void *b)
{
    const struct cap_head *x = *(const struct cap_head *const *)a, *y = *(const struct cap_head *const *)b;
    if (x->seq != y->seq)
        return x->seq < y->seq ? -1 : 1;
    return (uintptr_t)x < (uintptr_t)y ? -1 : (uintptr_t)x > (uintptr_t)y;
}

/* The length of the UTF-8 sequence at `s`, 0 when it is none that may be printed. */
static size_t utf8_length(const unsigned char *s, size_t left)
{
    size_t n;
    if (s[0] < 0x80)
        return s[0] >= 0x20 && s[0] != 0x7f;
    if (s[0] >= 0xc2 && s[0] <= 0xdf)
        n = 2;
    else if (s[0] >= 0xe1 && s[0] <= 0xef && s[0] != 0xed) /* without e0 and ed: no overlong forms, no surrogates */
        n = 3;
    else
        return 0;
    if (n > left || (s[0] == 0xc2 && s[1] < 0xa0)) /* c2 80 to c2 9f are control characters */
        return 0;
    for (size_t i = 1; i < n; i++)
        if ((s[i] & 0xc0) != 0x80)
            return 0;
    return n;
}

static bool intern_string(struct capture *c, const struct cap_string *record)
{
    char *copy = malloc((size_t)record->bytes + 1);
    if (!copy)
        return false;
    memcpy(copy, record + 1, record->bytes);
    copy[record->bytes] = '\0';
    for (size_t i = 0; i < record->bytes;) {
        size_t n = utf8_length((const unsigned char *)copy + i, record->bytes - i);
        if (n == 0)
            copy[i++] = '?';
        i += n;
    }
    if (map_put(&c->strings, record->id, (uintptr_t)copy))
        return true;
    free(copy);
    return false;
}

/* A kernel may be described again, when more about it is known: the last description counts. */
static bool describes_again(const struct cap_head *record, const struct cap_head *old)
{
    const struct cap_kernel *a = (const void *)record, *b = (const void *)old;
    if (record->type == CAP_GRAPH) /* a later version of it */
        return ((const struct cap_graph *)(const void *)record)->version >
               ((const struct cap_graph *)(const void *)old)->version;
    return record->type == CAP_KERNEL && a->module == b->module && a->name == b->name;
}

/* Indexes definitions; otherwise a second definition of an id is impossible and left out. */
static bool index_definitions(struct capture *c)
{
    size_t kept = 0;
    for (size_t i = 0; i < c->record_count; i++) {
        const struct cap_head *record = c->records[i];
        uint32_t id = capture_check_defines(record);
        const struct cap_head *old = capture_definition(c, record->type, id);
        if (old && !describes_again(record, old)) {
            capture_reject(c, record, "id %u of record type %u is defined a second time", id, record->type);
            continue;
        }
        if (id && !map_put(&c->defined, definition_key(record->type, id), (uintptr_t)record))
            return false;
        if (record->type == CAP_STRING && id && !intern_string(c, (const struct cap_string *)record))
            return false;
        c->records[kept++] = record;
    }
    c->record_count = kept;
    return true;
}

static void drop_dangling(struct capture *c)
{
    char why[CAPTURE_CHECK_TEXT];
    /* A kernel that is left out takes its launches with it: until nothing more falls. */
    for (bool again = true; again;) {
        again = false;
        size_t kept = 0;
        for (size_t i = 0; i < c->record_count; i++) {
            const struct cap_head *record = c->records[i];
            if (capture_check_references(c, record, why)) {
                c->records[kept++] = record;
                continue;
            }
            if (c->header.dropped_before ||
                c->header.dropped_snapshots_before) /* what it refers to may have been dropped */
                c->left_out++;
            else
                reject_text(c, record, why);
            uint32_t id = capture_check_defines(record);
            if (id) {
                map_remove(&c->defined, definition_key(record->type, id));
                again = true;
            }
        }
        c->record_count = kept;
    }
}

/* A segment that took the place of others counts instead of them, whether they are still there or not. */
static void leave_out_replaced(struct capture *c)
{
    for (size_t i = 0; i < c->segment_count; i++) {
        const struct cap_segment *by = (const void *)c->segments[i].data;
        if (c->segments[i].bytes < sizeof *by || by->magic != CAP_SEGMENT_MAGIC)
            continue;
        for (size_t k = 0; k < c->segment_count; k++) {
            const struct cap_segment *old = (const void *)c->segments[k].data;
            if (k != i && c->segments[k].bytes >= sizeof *old && old->number < by->number &&
                (old->number + UINT64_C(1) == by->replaces[0] || old->number + UINT64_C(1) == by->replaces[1]))
                c->segments[k].bytes = 0;
        }
    }
}

/* The program's work, as opposed to what defines or tells something. */
static bool is_work(const struct cap_head *record)
{
    switch (record->type) {
    case CAP_COPY:
    case CAP_SET:
    case CAP_LAUNCH:
    case CAP_SYNC:
    case CAP_EVENT_OP:
    case CAP_ORDER:
    case CAP_TIMES:
    case CAP_HEALTH:
    case CAP_GRAPH_LAUNCH:
    case CAP_RANGE:
    case CAP_OPERATOR:
    case CAP_DETAIL:
    case CAP_MARK:
    case CAP_VALUE:
    case CAP_STREAM_VALUE:
        return true;
    default:
        return false;
    }
}

/* Of each thread the record that tells the path in which it was when the rest was dropped: they are still needed. */
static bool find_paths(const struct capture *c, struct map *paths)
{
    for (size_t i = 0; i < c->record_count && c->records[i]->seq < c->header.dropped_before; i++) {
        const struct cap_range *r = (const void *)c->records[i];
        bool path = r->head.type == CAP_RANGE && (r->kind == CAP_RANGE_PUSH || r->kind == CAP_RANGE_POP);
        if (path && !map_put(paths, r->thread, (uintptr_t)r))
            return false;
        if (r->head.type == CAP_RANGE && r->kind == CAP_RANGE_THREAD_END)
            map_remove(paths, r->thread);
    }
    return true;
}

static bool is_path(const struct map *paths, const struct cap_head *r)
{
    uint64_t newest;
    return r->type == CAP_RANGE && map_get(paths, ((const struct cap_range *)(const void *)r)->thread, &newest) &&
           newest == (uintptr_t)r;
}

/* Threads drop their records in steps of their own: before the newest of these, the rest would show a history with
 * holes. Everything from there on is complete. */
static bool cut(struct capture *c)
{
    struct map paths = {0};
    size_t kept = 0;
    bool ok = find_paths(c, &paths);
    for (size_t i = 0; i < c->record_count; i++) {
        const struct cap_head *r = c->records[i];
        const struct cap_snapshot *snapshot = (const void *)r;
        bool gone = r->type == CAP_SNAPSHOT ? snapshot->launch < c->header.dropped_snapshots_before ||
                                                  snapshot->launch < c->header.dropped_before
                                            : is_work(r) && r->seq < c->header.dropped_before && !is_path(&paths, r);
        if (!gone)
            c->records[kept++] = r;
        c->left_out += gone;
        c->left_out_launches += gone && (r->type == CAP_LAUNCH || r->type == CAP_GRAPH_LAUNCH);
    }
    c->record_count = kept;
    map_free(&paths);
    return ok;
}

static enum status take_records(struct capture *c, struct diag *diag)
{
    size_t total = 0;
    leave_out_replaced(c);
    for (size_t i = 0; i < c->segment_count; i++)
        total += count_records(&c->segments[i]);
    c->record_count = 0;
    c->records = malloc((total + 1) * sizeof(void *));
    if (!c->records)
        return diag_set(diag, STATUS_NO_MEMORY, c->path, -1, "no memory for %zu records", total);
    for (size_t i = 0; i < c->segment_count; i++)
        walk_segment(c, &c->segments[i]);
    bool sorted = true; /* as one thread leaves them */
    for (size_t i = 1; i < c->record_count && sorted; i++)
        sorted = by_seq(&c->records[i - 1], &c->records[i]) < 0;
    if (!sorted)
        qsort(c->records, c->record_count, sizeof(void *), by_seq);
    if (!cut(c) || !index_definitions(c))
        return diag_set(diag, STATUS_NO_MEMORY, c->path, -1, "no memory to index %zu records", c->record_count);
    drop_dangling(c);
    return STATUS_OK;
}

/* ---- files ---- */

/* Whether nobody writes to the capture any more. Only then can its files be mapped: one that its writer shortens under
 * us would kill us. */
static bool settled(const struct capture *c)
{
    return c->header.state != CAP_RUNNING && c->header.pid && kill((pid_t)c->header.pid, 0) != 0 && errno == ESRCH;
}

static enum status read_file(int folder, const char *path, const char *name, uint64_t limit, bool map,
                             struct capture_segment *out, struct diag *diag)
{
    char where[sizeof diag->where];
    snprintf(where, sizeof where, "%s/%s", path, name);
    uint8_t *data = NULL;
    struct stat st;
    size_t bytes = 0, room;
    int fd;
    enum status status = regular_open(folder, name, where, &fd, &st, diag);
    if (status)
        return status == STATUS_NOT_FOUND ? diag_set(diag, status, where, -1, "not there; is the folder a capture?")
                                          : status;
    if ((uint64_t)st.st_size > limit)
        status = diag_set(diag, STATUS_BAD_INPUT, where, -1, "%jd bytes; at most %" PRIu64 " were expected",
                          (intmax_t)st.st_size, limit);
    if (status)
        goto done;
    room = (size_t)st.st_size;
    if (map && room) {
        void *at = mmap(NULL, room, PROT_READ, MAP_PRIVATE, fd, 0);
        if (at != MAP_FAILED) {
            close(fd);
            *out = (struct capture_segment){.data = at, .bytes = room, .mapped = room};
            return STATUS_OK;
        }
    }
    data = malloc(room ? room : 1);
    if (!data) {
        status = diag_set(diag, STATUS_NO_MEMORY, where, -1, "no memory for %zu bytes", room);
        goto done;
    }
    while (bytes < room) {
        ssize_t n = read(fd, data + bytes, room - bytes);
        if (n == 0)
            break;
        if (n < 0 && errno == EINTR)
            continue;
        if (n < 0) {
            status = diag_set(diag, STATUS_IO, where, (long)bytes, "%s", strerror(errno));
            goto done;
        }
        bytes += (size_t)n;
    }
done:
    close(fd);
    if (status) {
        free(data);
        return status;
    }
    *out = (struct capture_segment){.data = data, .bytes = bytes};
    return STATUS_OK;
}

/* process-PID or process-PID-N; whatever else it holds, such a name means nothing to a shell. */
static bool names_process(const char *name)
{
    return strncmp(name, "process-", 8) == 0 && name[8] && strspn(name + 8, "0123456789-") == strlen(name + 8);
}

static enum status push_process(struct capture *c, int folder, const char *name, struct diag *diag)
{
    char header[300];
    snprintf(header, sizeof header, "%s/capture.bin", name);
    if (faccessat(folder, header, F_OK, 0) != 0)
        return STATUS_OK; /* it has not begun, or never did */
    char **more = realloc((void *)c->processes, (c->process_count + 1) * sizeof *more);
    if (more)
        c->processes = more;
    if (!more || !(more[c->process_count] = strdup(name)))
        return diag_set(diag, STATUS_NO_MEMORY, c->path, -1, "no memory for %s", name);
    c->process_count++;
    return STATUS_OK;
}

static int wanted_entry(const struct dirent *entry)
{
    size_t n = strlen(entry->d_name);
    return names_process(entry->d_name) ||
           (strncmp(entry->d_name, "segment-", 8) == 0 && n > 4 && strcmp(entry->d_name + n - 4, ".rec") == 0);
}

static enum status read_segments(struct capture *c, int folder, struct diag *diag)
{
    struct dirent **names = NULL;
    int count = scandirat(folder, ".", &names, wanted_entry, alphasort);
    if (count < 0)
        return diag_set(diag, STATUS_IO, c->path, -1, "cannot list the folder: %s", strerror(errno));
    enum status status = STATUS_OK;
    bool map = settled(c);
    for (int i = 0; i < count && !status; i++) {
        struct capture_segment segment = {0};
        if (names_process(names[i]->d_name)) {
            status = push_process(c, folder, names[i]->d_name, diag);
            continue;
        }
        struct diag problem;
        status = read_file(folder, c->path, names[i]->d_name, SEGMENT_LIMIT, map, &segment, &problem);
        if (status && status != STATUS_NO_MEMORY) { /* the others may be fine */
            reject_at(c, names[i]->d_name, 0, problem.text);
            status = STATUS_OK;
        } else if (status || !push_segment(c, names[i]->d_name, segment)) {
            status = diag_set(diag, STATUS_NO_MEMORY, c->path, -1, "no memory for %s", names[i]->d_name);
        }
    }
    for (int i = 0; i < count; i++)
        free(names[i]);
    free((void *)names);
    return status;
}

static struct capture *new_capture(const char *path, struct diag *diag)
{
    struct capture *c = calloc(1, sizeof *c);
    if (c)
        c->path = strdup(path);
    if (c && c->path)
        return c;
    free(c);
    diag_set(diag, STATUS_NO_MEMORY, path, -1, "no memory");
    return NULL;
}

enum status capture_open(const char *path, struct capture **out, struct diag *diag)
{
    *out = NULL;
    struct capture *c = new_capture(path, diag);
    if (!c)
        return STATUS_NO_MEMORY;
    struct capture_segment header = {0};
    enum status status;
    char where[sizeof diag->where];
    snprintf(where, sizeof where, "%s/capture.bin", path);
    int folder = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (folder < 0) {
        status = errno == ENOTDIR ? diag_set(diag, STATUS_BAD_INPUT, path, -1,
                                             "not a folder; a capture is a folder with capture.bin in it")
                                  : diag_set(diag, STATUS_IO, path, -1, "%s", strerror(errno));
        goto done;
    }
    status = read_file(folder, path, "capture.bin", SEGMENT_LIMIT, false, &header, diag);
    if (!status)
        status = take_header(c, where, (struct capture_bytes){header.data, header.bytes}, diag);
    if (!status)
        status = read_segments(c, folder, diag);
    if (!status)
        status = take_records(c, diag);
    close(folder);
done:
    release(&header);
    if (status) {
        capture_close(c);
        return status;
    }
    *out = c;
    return STATUS_OK;
}

enum status capture_open_memory(struct capture_bytes header, const struct capture_bytes *segments, size_t count,
                                struct capture **out, struct diag *diag)
{
    *out = NULL;
    struct capture *c = new_capture("(memory)", diag);
    if (!c)
        return STATUS_NO_MEMORY;
    enum status status = take_header(c, "capture.bin", header, diag);
    for (size_t i = 0; i < count && !status; i++) {
        char name[48];
        snprintf(name, sizeof name, "segment-%06zu.rec", i);
        uint8_t *copy = malloc(segments[i].bytes ? segments[i].bytes : 1);
        if (copy && segments[i].bytes)
            memcpy(copy, segments[i].data, segments[i].bytes);
        if (!copy || !push_segment(c, name, (struct capture_segment){.data = copy, .bytes = segments[i].bytes}))
            status = diag_set(diag, STATUS_NO_MEMORY, name, -1, "no memory for %zu bytes", segments[i].bytes);
    }
    if (!status)
        status = take_records(c, diag);
    if (status) {
        capture_close(c);
        return status;
    }
    *out = c;
    return STATUS_OK;
}

void capture_close(struct capture *c)
{
    if (!c)
        return;
    for (size_t i = 0; i < c->segment_count; i++) {
        free(c->segments[i].name);
        release(&c->segments[i]);
    }
    for (size_t i = 0; i < c->strings.capacity; i++)
        if (c->strings.slots[i].used)
            free((void *)(uintptr_t)c->strings.slots[i].value);
    map_free(&c->strings);
    map_free(&c->defined);
    for (size_t i = 0; i < c->process_count; i++)
        free(c->processes[i]);
    free((void *)c->processes);
    free(c->segments);
    free((void *)c->records);
    free(c->path);
    free(c->shell_path);
    free(c->shell_program);
    free(c);
}

/* ---- clocks ---- */

uint64_t capture_ticks_ns(const struct capture *c, uint64_t ticks)
{
    const struct cap_header *h = &c->header;
    /* The two pairs are better than the estimate once they are 10 ms apart: the clock reads cost far less than that. */
    if (h->mono_now_ns > h->mono_start_ns && h->mono_now_ns - h->mono_start_ns > 10000000 &&
        h->tsc_now > h->tsc_start) {
        long double ns = (long double)(h->mono_now_ns - h->mono_start_ns) / (long double)(h->tsc_now - h->tsc_start) *
                         (long double)ticks;
        return ns < 1.8e19L ? (uint64_t)ns : UINT64_MAX;
    }
    if (h->tsc_hz_estimate) {
        long double ns = (long double)ticks * 1e9L / (long double)h->tsc_hz_estimate;
        return ns < 1.8e19L ? (uint64_t)ns : UINT64_MAX;
    }
    return 0;
}

uint64_t capture_start_ns(const struct capture *c)
{
    const struct cap_header *h = &c->header;
    return h->start_own_tsc <= h->own_tsc ? capture_ticks_ns(c, h->start_own_tsc) : 0;
}

uint64_t capture_time_ns(const struct capture *c, uint64_t tsc)
{
    return tsc > c->header.tsc_start ? capture_ticks_ns(c, tsc - c->header.tsc_start) : 0;
}
