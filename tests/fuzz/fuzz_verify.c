/* A whole capture from hostile bytes, contents included, and all of `verify`: its launches executed again, judged,
 * kept, reported.
 *
 * The input is a uint32_t with the length of the segment, padded to 8, then the part of a capture header that tells
 * something, the segment (magic and version of both are put right), and the blobs: their hash, their length as a
 * uint32_t, padded to 8, and the contents, padded to 8. A blob counts as what its record says, and is repeated or cut
 * to the length that the record asks for; where none has the hash there is one made from it. So mutations keep their
 * contents. verify_mutate.c mutates by records. Memory and instructions are short: most that is to be found is found
 * with little of either.
 */
#include <inttypes.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "analyzer/report.h"
#include "analyzer/session.h"
#include "analyzer/store.h"
#include "analyzer/verify.h"
#include "common/diag.h"
#include "tests/fuzz/verify_input.h"
#include "tests/unit/verify_kernels.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t bytes);
const char *__asan_default_options(void);

/* Larger blocks are refused, as they are on a machine that has no memory left. (The fuzzer's own are smaller.) */
const char *__asan_default_options(void)
{
    return "allocator_may_return_null=1:max_allocation_size_mb=128";
}

enum { CONTENTS_LIMIT = 1 << 16, LAUNCHES_LIMIT = 12, INSTRUCTIONS = 20000, MEMORY = 1 << 20 };

static struct verify_input input;

/* ---- contents: in place of capture_blob.c ---- */

/* Ascending numbers, floats, one byte all over, NaNs among floats, noise. */
static void fill(uint8_t *out, size_t bytes, uint64_t hash)
{
    for (size_t i = 0; i < bytes; i += 4) {
        uint32_t word = (uint32_t)(i / 4);
        float value = (float)word * 0.25f;
        if (hash % 5 == 1 || hash % 5 == 3)
            memcpy(&word, &value, sizeof word);
        if (hash % 5 == 2)
            word = (uint32_t)(hash >> 8 & 0xff) * 0x01010101u;
        if (hash % 5 == 3 && i % 64 == 0)
            word = UINT32_C(0x7fc00000);
        if (hash % 5 == 4)
            word = (uint32_t)((hash + i) * UINT64_C(0x9e3779b97f4a7c15) >> 32);
        memcpy(out + i, &word, bytes - i < 4 ? bytes - i : 4);
    }
}

static const struct verify_blob *blob_of(struct hash128 hash)
{
    for (size_t i = 0; i < input.blob_count; i++)
        if (input.blobs[i].low == hash.low && input.blobs[i].high == hash.high)
            return &input.blobs[i];
    return NULL;
}

static const char *module_of(struct hash128 hash)
{
    static const char *const modules[] = {scale_ptx, turn_ptx, turn_race_ptx, wait_ptx, slide_ptx};
    return modules[hash.low % (sizeof modules / sizeof *modules)];
}

enum status capture_blob(const struct capture *c, struct hash128 hash, uint64_t limit, uint8_t **out, size_t *out_bytes,
                         struct diag *diag)
{
    const struct verify_blob *blob = blob_of(hash);
    bool module = limit > UINT32_MAX / 8;
    *out = NULL;
    if (hash.high % 61 == 60)
        return diag_set(diag, STATUS_NOT_FOUND, c->path, -1, "no such blob");
    if (!module && limit > CONTENTS_LIMIT)
        return diag_set(diag, STATUS_LIMIT, c->path, -1, "too large");
    const void *from = blob ? (const void *)blob->data : module ? (const void *)module_of(hash) : NULL;
    size_t have = blob ? blob->bytes : module ? strlen(from) : 0;
    *out_bytes = module ? have : (size_t)limit;
    *out = malloc(*out_bytes + 1);
    if (!*out)
        return diag_set(diag, STATUS_NO_MEMORY, c->path, -1, "no memory");
    fill(*out, module ? 0 : *out_bytes, hash.low);
    if (have)
        memcpy(*out, from, have < *out_bytes ? have : *out_bytes);
    return STATUS_OK;
}

/* ---- the run ---- */

/* What is kept is what a later command reads. */
static void keep(struct session *s)
{
    char *text = NULL;
    size_t bytes = 0;
    FILE *f = open_memstream(&text, &bytes);
    struct judgements again = {0};
    struct diag diag;
    bool ok = f && store_print(f, s->model, &s->judgements, NULL);
    if (f)
        fclose(f);
    if (ok) {
        enum status status = store_parse(s->model, text, "verify.json", &again, &diag);
        if (status == STATUS_BAD_INPUT || (!status && judgements_known(&again) != judgements_known(&s->judgements))) {
            fprintf(stderr, "what was kept is not read again: %s\n%s\n", status ? diag.text : "not all of it", text);
            abort();
        }
    }
    if (!judgements_known(&again)) {
        judgements_free(&again);
    } else {
        judgements_free(&s->judgements);
        s->judgements = again;
    }
    free(text);
}

static void judge(struct session *s)
{
    static FILE *null;
    struct diag diag;
    struct selection selection = {.count = LAUNCHES_LIMIT};
    const struct verify_options options = {.workers = 1, .instruction_limit = INSTRUCTIONS, .memory_limit = MEMORY};
    if (!null)
        null = fopen("/dev/null", "we");
    if (verify_capture(s->model, &selection, &options, &s->judgements, &diag))
        return;
    keep(s);
    session_classify(s);
    report_text(null, s, (struct report_style){.verbose = true});
    report_json(null, s);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t bytes)
{
    struct cap_header header = {.command = "./program"};
    struct capture *capture;
    struct session session;
    struct diag diag;
    if (!verify_input_read(&input, data, bytes))
        return 0;
    memcpy(&header, input.header, VERIFY_HEADER_PART);
    header.magic = CAP_MAGIC;
    header.version = CAP_VERSION;
    header.header_bytes = sizeof header;
    uint8_t *segment = malloc(input.segment_bytes);
    if (!segment)
        return 0;
    memcpy(segment, input.segment, input.segment_bytes);
    struct cap_segment head;
    memcpy(&head, segment, sizeof head);
    head.magic = CAP_SEGMENT_MAGIC;
    head.version = CAP_VERSION;
    memcpy(segment, &head, sizeof head);
    struct capture_bytes one = {segment, input.segment_bytes};
    if (capture_open_memory((struct capture_bytes){&header, sizeof header}, &one, 1, &capture, &diag) == STATUS_OK &&
        session_adopt(capture, &session, &diag) == STATUS_OK) {
        judge(&session);
        session_close(&session);
    }
    free(segment);
    return 0;
}
