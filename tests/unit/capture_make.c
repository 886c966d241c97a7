#include "tests/unit/capture_make.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <zstd.h>

#include "common/hash.h"

static void must(bool ok, const char *what)
{
    if (ok)
        return;
    fprintf(stderr, "capture_make: %s failed\n", what);
    abort();
}

void capture_make_start(struct capture_make *m)
{
    *m = (struct capture_make){.seq = 1};
    m->header = (struct cap_header){
        .magic = CAP_MAGIC,
        .version = CAP_VERSION,
        .header_bytes = sizeof m->header,
        .pid = 4711,
        .start_realtime_ns = 1,
        .tsc_start = 1000,
        .mono_start_ns = 1000,
        .tsc_now = 1000 + 200000000,
        .mono_now_ns = 1000 + 100000000, /* two ticks per ns, 100 ms */
        .tsc_hz_estimate = 2000000000,
        .state = CAP_ENDED,
        .own_tsc = 2000000,
        .shim_version = "test",
        .command = "./program\0argument",
    };
    struct cap_segment segment = {.magic = CAP_SEGMENT_MAGIC, .version = CAP_VERSION, .number = 1, .tid = 1};
    m->capacity = 1 << 16;
    m->records = calloc(1, m->capacity);
    must(m->records, "calloc");
    memcpy(m->records, &segment, sizeof segment);
    m->bytes = sizeof segment;
    strcpy(m->path, "/tmp/capture-make-XXXXXX");
    must(mkdtemp(m->path), "mkdtemp");
}

void capture_make_remove(const char *path)
{
    char command[256];
    snprintf(command, sizeof command, "rm -rf '%s'", path);
    must(system(command) == 0, "rm"); /* NOLINT: the path is our own */
}

void capture_make_end(struct capture_make *m)
{
    capture_make_remove(m->path);
    free(m->records);
    *m = (struct capture_make){0};
}

static void write_file(const char *path, const void *data, size_t bytes)
{
    FILE *f = fopen(path, "wbe");
    must(f && fwrite(data, 1, bytes, f) == bytes, path);
    must(fclose(f) == 0, path);
}

const char *capture_make_write(struct capture_make *m)
{
    char path[128];
    snprintf(path, sizeof path, "%s/capture.bin", m->path);
    write_file(path, &m->header, sizeof m->header);
    snprintf(path, sizeof path, "%s/segment-000001.rec", m->path);
    write_file(path, m->records, m->bytes + 32); /* the zeros behind the last record */
    return m->path;
}

static struct hash128 write_blob(struct capture_make *m, const void *data, size_t bytes)
{
    struct hash128 hash = hash_bytes(data, bytes);
    char text[HASH_TEXT_BYTES], path[192];
    hash_text(hash, text);
    snprintf(path, sizeof path, "%s/blobs", m->path);
    mkdir(path, 0700);
    snprintf(path, sizeof path, "%s/blobs/%.2s", m->path, text);
    mkdir(path, 0700);
    snprintf(path, sizeof path, "%s/blobs/%.2s/%s.zst", m->path, text, text);
    size_t room = ZSTD_compressBound(bytes);
    void *packed = malloc(room);
    must(packed, "malloc");
    size_t n = ZSTD_compress(packed, room, data, bytes, 1);
    must(!ZSTD_isError(n), "ZSTD_compress");
    write_file(path, packed, n);
    free(packed);
    return hash;
}

uint64_t capture_make_record(struct capture_make *m, void *record, size_t bytes, const void *tail, size_t tail_bytes)
{
    struct cap_head *head = record;
    size_t size = (bytes + tail_bytes + 7) / 8 * 8;
    head->size = (uint32_t)size;
    head->scope = 0xffff;
    head->seq = m->seq++;
    head->tsc = m->header.tsc_start + 1000 * head->seq;
    while (m->bytes + size + 64 > m->capacity) {
        m->records = realloc(m->records, m->capacity * 2);
        must(m->records, "realloc");
        memset(m->records + m->capacity, 0, m->capacity);
        m->capacity *= 2;
    }
    memcpy(m->records + m->bytes, record, bytes);
    if (tail_bytes)
        memcpy(m->records + m->bytes + bytes, tail, tail_bytes);
    m->bytes += size;
    m->header.next_seq = m->seq;
    m->header.records++;
    return head->seq;
}

uint32_t capture_make_string(struct capture_make *m, const char *text)
{
    struct cap_string r = {.head.type = CAP_STRING, .id = ++m->next_id[CAP_STRING], .bytes = (uint32_t)strlen(text)};
    capture_make_record(m, &r, sizeof r, text, strlen(text));
    return r.id;
}

uint32_t capture_make_stack(struct capture_make *m, const uint64_t *frames, uint32_t count)
{
    struct cap_stack r = {.head.type = CAP_STACK, .id = ++m->next_id[CAP_STACK], .count = count};
    capture_make_record(m, &r, sizeof r, frames, count * sizeof *frames);
    return r.id;
}

void capture_make_option(struct capture_make *m, const char *name, const char *value)
{
    struct cap_option r = {
        .head.type = CAP_OPTION, .name = capture_make_string(m, name), .value = capture_make_string(m, value)};
    capture_make_record(m, &r, sizeof r, NULL, 0);
}

uint32_t capture_make_module(struct capture_make *m, const char *ptx)
{
    struct cap_module r = {
        .head.type = CAP_MODULE, .id = ++m->next_id[CAP_MODULE], .kind = ptx ? CAP_MODULE_PTX : CAP_MODULE_CUBIN};
    if (ptx) {
        struct hash128 hash = write_blob(m, ptx, strlen(ptx));
        r.image_bytes = strlen(ptx);
        r.hash_low = hash.low;
        r.hash_high = hash.high;
    }
    capture_make_record(m, &r, sizeof r, NULL, 0);
    return r.id;
}

uint32_t capture_make_kernel(struct capture_make *m, uint32_t module, const char *name, const uint32_t *sizes)
{
    struct cap_kernel_param params[16];
    struct cap_kernel r = {
        .head.type = CAP_KERNEL, .id = ++m->next_id[CAP_KERNEL], .module = module, .layout_source = CAP_LAYOUT_DRIVER};
    r.name = capture_make_string(m, name);
    for (; sizes[r.param_count]; r.param_count++) {
        uint32_t size = sizes[r.param_count], align = size > 8 ? 8 : size;
        r.param_bytes = (r.param_bytes + align - 1) / align * align;
        params[r.param_count] = (struct cap_kernel_param){r.param_bytes, size};
        r.param_bytes += size;
    }
    capture_make_record(m, &r, sizeof r, params, r.param_count * sizeof *params);
    return r.id;
}

uint32_t capture_make_config(struct capture_make *m, uint32_t grid, uint32_t block)
{
    struct cap_config r = {
        .head.type = CAP_CONFIG, .id = ++m->next_id[CAP_CONFIG], .grid = {grid, 1, 1}, .block = {block, 1, 1}};
    capture_make_record(m, &r, sizeof r, NULL, 0);
    return r.id;
}

uint32_t capture_make_alloc(struct capture_make *m, uint64_t address, uint64_t bytes)
{
    struct cap_alloc r = {
        .head.type = CAP_ALLOC,
        .id = ++m->next_id[CAP_ALLOC],
        .kind = CAP_ALLOC_DEVICE,
        .address = address,
        .bytes = bytes,
        .tail_redzone = 256,
    };
    capture_make_record(m, &r, sizeof r, NULL, 0);
    return r.id;
}

uint64_t capture_make_free(struct capture_make *m, uint32_t id, uint64_t address, int32_t result)
{
    struct cap_free r = {.head.type = CAP_FREE, .id = id, .address = address, .result = result};
    return capture_make_record(m, &r, sizeof r, NULL, 0);
}

uint64_t capture_make_copy_in(struct capture_make *m, uint64_t target, uint64_t bytes)
{
    struct cap_copy r = {.head.type = CAP_COPY,
                         .target = target,
                         .source = 0x1000,
                         .width = bytes,
                         .height = 1,
                         .depth = 1,
                         .kind = CAP_COPY_HTOD};
    return capture_make_record(m, &r, sizeof r, NULL, 0);
}

uint64_t capture_make_set(struct capture_make *m, uint64_t target, uint64_t bytes)
{
    struct cap_set r = {.head.type = CAP_SET, .target = target, .width = bytes, .height = 1, .value_bytes = 1};
    return capture_make_record(m, &r, sizeof r, NULL, 0);
}

uint64_t capture_make_launch(struct capture_make *m, uint32_t kernel, uint32_t config, const void *params,
                             uint16_t bytes)
{
    struct cap_launch r = {
        .head.type = CAP_LAUNCH,
        .kernel = kernel,
        .config = config,
        .host_ns = 5000,
        .param_bytes = bytes,
        .outcome = CAP_LAUNCH_OK,
        .flags = CAP_LAUNCH_INPUTS | CAP_LAUNCH_OUTPUTS,
    };
    m->header.launches++;
    return capture_make_record(m, &r, sizeof r, params, bytes);
}

void capture_make_snapshot(struct capture_make *m, uint64_t launch, uint32_t allocation, enum cap_snapshot_when when,
                           const void *data, uint64_t bytes)
{
    struct hash128 hash = write_blob(m, data, bytes);
    struct cap_snapshot r = {
        .head.type = CAP_SNAPSHOT,
        .launch = launch,
        .allocation = allocation,
        .when = when,
        .bytes = bytes,
        .hash_low = hash.low,
        .hash_high = hash.high,
    };
    capture_make_record(m, &r, sizeof r, NULL, 0);
}

void capture_make_damage(struct capture_make *m, uint32_t allocation, int64_t offset, uint64_t length, uint64_t clean,
                         uint64_t seen)
{
    struct cap_damage r = {
        .head.type = CAP_DAMAGE,
        .allocation = allocation,
        .tail = offset >= 0,
        .offset = offset,
        .length = length,
        .clean_seq = clean,
        .seen_seq = seen,
        .expected = {0xff, 0x7f, 0xff, 0x7f},
        .found = {0, 0, 0x80, 0x3f},
    };
    capture_make_record(m, &r, sizeof r, NULL, 0);
}

void capture_make_error(struct capture_make *m, int32_t code, const char *name)
{
    struct cap_error r = {.head.type = CAP_ERROR, .code = code, .name = capture_make_string(m, name)};
    capture_make_record(m, &r, sizeof r, NULL, 0);
}

uint64_t capture_make_sync(struct capture_make *m, uint64_t wait_ns)
{
    struct cap_sync r = {.head.type = CAP_SYNC, .kind = CAP_SYNC_CONTEXT, .wait_ns = wait_ns};
    return capture_make_record(m, &r, sizeof r, NULL, 0);
}

void capture_make_time(struct capture_make *m, uint64_t launch, uint32_t device_ns)
{
    struct cap_time time = {.device_ns = device_ns};
    struct cap_times r = {.head.type = CAP_TIMES, .base_launch = launch, .source = CAP_TIME_EVENTS, .count = 1};
    capture_make_record(m, &r, sizeof r, &time, sizeof time);
}

void capture_make_finish(struct capture_make *m)
{
    struct cap_end r = {.head.type = CAP_END};
    capture_make_record(m, &r, sizeof r, NULL, 0);
}
