#include "analyzer/store.h"
#include "analyzer/regular.h"
#include "analyzer/store_check.h"
#include "analyzer/store_runs.h"
#include "analyzer/store_touch.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <math.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cjson/cJSON.h>

#include "common/diag.h"

/* 2: what is common to many launches is stored once. 1: one entry per launch. */
enum { STORE_VERSION = 2, STORE_OLDEST = 1 };
#define STORE_LIMIT ((off_t)1 << 30)

/* ---- writing ---- */

/* 64-bit values are written as text: JSON's numbers are doubles. */
static void add_u64(cJSON *to, const char *name, uint64_t value)
{
    char text[24];
    snprintf(text, sizeof text, "%" PRIu64, value);
    cJSON_AddStringToObject(to, name, text);
}

static void add_triple(cJSON *to, const char *name, const uint32_t v[3])
{
    cJSON *array = cJSON_AddArrayToObject(to, name);
    for (int i = 0; i < 3; i++)
        cJSON_AddItemToArray(array, cJSON_CreateNumber(v[i]));
}

static cJSON *access_json(const struct judgement_access *a)
{
    cJSON *json = cJSON_CreateObject();
    cJSON_AddNumberToObject(json, "ptx_line", a->ptx_line);
    add_triple(json, "block", a->block);
    add_triple(json, "thread", a->thread);
    cJSON_AddBoolToObject(json, "write", a->write);
    cJSON_AddBoolToObject(json, "atomic", a->atomic);
    cJSON *frames = cJSON_AddArrayToObject(json, "frames");
    for (size_t i = 0; i < a->frame_count; i++) {
        cJSON *frame = cJSON_CreateObject();
        if (a->frames[i].file)
            cJSON_AddStringToObject(frame, "file", a->frames[i].file);
        if (a->frames[i].function)
            cJSON_AddStringToObject(frame, "function", a->frames[i].function);
        cJSON_AddNumberToObject(frame, "line", a->frames[i].line);
        cJSON_AddItemToArray(frames, frame);
    }
    return json;
}

static cJSON *fault_json(const struct judgement_fault *f)
{
    cJSON *json = cJSON_CreateObject();
    cJSON_AddStringToObject(json, "kind", judgement_fault_kind_name(f->kind));
    cJSON_AddStringToObject(json, "detail", f->detail ? f->detail : "");
    cJSON_AddStringToObject(json, "space", f->space ? f->space : "");
    cJSON_AddItemToObject(json, "access", access_json(&f->access));
    if (f->other.ptx_line)
        cJSON_AddItemToObject(json, "other", access_json(&f->other));
    add_u64(json, "address", f->address);
    cJSON_AddNumberToObject(json, "bytes", f->bytes);
    cJSON_AddNumberToObject(json, "allocation", f->allocation);
    add_u64(json, "offset", (uint64_t)f->offset);
    cJSON_AddNumberToObject(json, "landed", f->landed);
    cJSON_AddBoolToObject(json, "landed_changed", f->landed_changed);
    add_u64(json, "count", f->count);
    add_u64(json, "threads", f->threads);
    cJSON_AddBoolToObject(json, "same_value", f->same_value);
    if (f->unseen)
        cJSON_AddBoolToObject(json, "unseen", true);
    if (f->node)
        cJSON_AddNumberToObject(json, "node", f->node);
    if (f->other_node)
        cJSON_AddNumberToObject(json, "other_node", f->other_node);
    return json;
}

/* NaN and infinities are no JSON numbers: all floating-point values are written as hexadecimal text. */
static void add_real(cJSON *to, const char *name, double value)
{
    char text[40];
    snprintf(text, sizeof text, "%a", value);
    cJSON_AddStringToObject(to, name, text);
}

static cJSON *difference_json(const struct judgement_difference *d)
{
    cJSON *json = cJSON_CreateObject();
    cJSON_AddStringToObject(json, "kind", judgement_difference_kind_name(d->kind));
    cJSON_AddNumberToObject(json, "allocation", d->allocation);
    add_u64(json, "words", d->words);
    add_u64(json, "of", d->of);
    add_u64(json, "offset", d->offset);
    cJSON_AddNumberToObject(json, "device", d->device);
    cJSON_AddNumberToObject(json, "expected", d->expected);
    if (d->scales > 0)
        add_real(json, "scales", d->scales);
    if (d->node)
        cJSON_AddNumberToObject(json, "node", d->node);
    cJSON *candidates = d->candidate_count ? cJSON_AddArrayToObject(json, "candidates") : NULL;
    for (uint32_t i = 0; i < d->candidate_count && i < JUDGEMENT_CANDIDATES; i++)
        cJSON_AddItemToArray(candidates, cJSON_CreateNumber(d->candidates[i]));
    return json;
}

static cJSON *number_json(const struct judgement_number *n)
{
    cJSON *json = cJSON_CreateObject();
    cJSON_AddStringToObject(json, "kind", judgement_number_kind_name(n->kind));
    cJSON_AddItemToObject(json, "access", access_json(&n->access));
    cJSON_AddNumberToObject(json, "operands", n->operand_count);
    add_real(json, "a", n->operands[0]);
    add_real(json, "b", n->operands[1]);
    add_real(json, "c", n->operands[2]);
    add_real(json, "result", n->result);
    add_real(json, "result_wide", n->result_wide);
    cJSON_AddNumberToObject(json, "allocation", n->allocation);
    add_u64(json, "offset", n->offset);
    add_u64(json, "count", n->count);
    add_u64(json, "of", n->of);
    add_real(json, "stored", n->stored);
    add_real(json, "wide", n->wide);
    add_real(json, "limit_absolute", n->limit_absolute);
    add_real(json, "limit_relative", n->limit_relative);
    if (n->node)
        cJSON_AddNumberToObject(json, "node", n->node);
    return json;
}

/* ---- counts ---- */

/* Its plain numbers, in both directions. */
static const struct {
    const char *name;
    size_t at;
} count_fields[] = {
#define FIELD(name)                                                                                                    \
    {                                                                                                                  \
#name, offsetof(struct judgement_counts, name)                                                                 \
    }
    FIELD(threads),  FIELD(alone),         FIELD(warps),           FIELD(warp_threads), FIELD(requests),
    FIELD(sectors),  FIELD(ideal_sectors), FIELD(shared_requests), FIELD(wavefronts),   FIELD(ideal_wavefronts),
    FIELD(branches), FIELD(divergent),
#undef FIELD
};
enum { COUNT_FIELDS = sizeof count_fields / sizeof *count_fields };

static cJSON *counts_json(const struct judgement_counts *c)
{
    cJSON *json = cJSON_CreateObject();
    for (size_t i = 0; i < COUNT_FIELDS; i++)
        add_u64(json, count_fields[i].name, *(const uint64_t *)((const char *)c + count_fields[i].at));
    cJSON *operations = cJSON_AddObjectToObject(json, "operations");
    for (unsigned i = 0; i < JUDGEMENT_OPERATION_TYPES; i++)
        if (c->operations[i])
            add_u64(operations, judgement_operation_name(i), c->operations[i]);
    cJSON *patterns = cJSON_AddArrayToObject(json, "patterns");
    for (size_t i = 0; i < c->pattern_count; i++) {
        const struct judgement_pattern *p = &c->patterns[i];
        cJSON *item = cJSON_CreateObject();
        cJSON_AddStringToObject(item, "kind", judgement_pattern_kind_name(p->kind));
        cJSON_AddItemToObject(item, "access", access_json(&p->access));
        add_u64(item, "requests", p->requests);
        add_u64(item, "actual", p->actual);
        add_u64(item, "ideal", p->ideal);
        cJSON_AddItemToArray(patterns, item);
    }
    return json;
}

static cJSON *judgement_json(const struct judgement *j)
{
    cJSON *json = cJSON_CreateObject();
    cJSON_AddNumberToObject(json, "launch", (double)j->launch);
    cJSON_AddBoolToObject(json, "checked", j->verdict == JUDGEMENT_CHECKED);
    if (j->reason)
        cJSON_AddStringToObject(json, "reason", j->reason);
    if (j->detail)
        cJSON_AddStringToObject(json, "detail", j->detail);
    add_u64(json, "instructions", j->instructions);
    if (j->bytes_known) {
        add_u64(json, "bytes_read", j->bytes_read);
        add_u64(json, "bytes_written", j->bytes_written);
    }
    if (j->fault_count) {
        cJSON *faults = cJSON_AddArrayToObject(json, "faults");
        for (size_t i = 0; i < j->fault_count; i++)
            cJSON_AddItemToArray(faults, fault_json(&j->faults[i]));
    }
    if (j->counts.known)
        cJSON_AddItemToObject(json, "counts", counts_json(&j->counts));
    store_touch_write(json, j);
    cJSON_AddBoolToObject(json, "numbers_checked", j->numbers_checked);
    if (j->numbers_reason)
        cJSON_AddStringToObject(json, "numbers_reason", j->numbers_reason);
    if (j->number_count) {
        cJSON *numbers = cJSON_AddArrayToObject(json, "numbers");
        for (size_t i = 0; i < j->number_count; i++)
            cJSON_AddItemToArray(numbers, number_json(&j->numbers[i]));
    }
    if (j->difference_count) {
        cJSON *differences = cJSON_AddArrayToObject(json, "differences");
        for (size_t i = 0; i < j->difference_count; i++)
            cJSON_AddItemToArray(differences, difference_json(&j->differences[i]));
    }
    return json;
}

/* Launches are counted from the oldest that is left of a capture with a limit: which one that is. */
static uint64_t first_launch(const struct model *m)
{
    return m->launch_count ? model_launch_seq(&m->launches[0]) : 0;
}

/* One at a time: there may be millions. Takes `json` over. */
static bool print_item(FILE *to, cJSON *json, bool first)
{
    char *text = cJSON_PrintUnformatted(json);
    bool ok = text && (first || fputc(',', to) != EOF) && fputs(text, to) >= 0;
    cJSON_Delete(json);
    free(text);
    return ok;
}

/* Those of `js` about whose launches `newer` (may be NULL) says nothing. */
static bool print_items(FILE *to, const struct judgements *js, const struct judgements *newer, bool *first)
{
    bool ok = true;
    for (size_t i = 0; ok && i < js->count; i++) {
        if (newer && judgements_find(newer, js->items[i].launch))
            continue;
        ok = print_item(to, judgement_json(&js->items[i]), *first);
        *first = false;
    }
    return ok;
}

static bool print_common(FILE *to, const struct judgements *js, const struct judgements *newer, bool *first)
{
    struct store_runs *runs = calloc(js->common_count + 1, sizeof *runs);
    bool ok = runs != NULL;
    for (size_t launch = 1; ok && js->said && launch <= js->launches; launch++)
        if (js->said[launch] && !(newer && judgements_find(newer, launch)))
            store_runs_add(&runs[js->said[launch] - 1], launch);
    for (size_t i = 0; runs && i < js->common_count; i++) {
        const char *launches = store_runs_text(&runs[i]);
        if (ok && launches && *launches) {
            cJSON *json = judgement_json(&js->common[i]);
            cJSON_AddStringToObject(json, "launches", launches);
            ok = print_item(to, json, *first);
            *first = false;
        }
        ok = ok && launches;
        store_runs_free(&runs[i]);
    }
    free(runs);
    return ok;
}

static bool print_head(FILE *to, const struct model *m)
{
    cJSON *root = cJSON_CreateObject();
    cJSON_AddNumberToObject(root, "version", STORE_VERSION);
    add_u64(root, "start_realtime_ns", m->capture->header.start_realtime_ns);
    cJSON_AddNumberToObject(root, "pid", m->capture->header.pid);
    cJSON_AddNumberToObject(root, "launches", (double)m->launch_count);
    add_u64(root, "first_launch", first_launch(m));
    char *text = cJSON_PrintUnformatted(root);
    bool ok = text && fprintf(to, "%.*s", (int)strlen(text) - 1, text) > 0; /* its brace is closed later */
    cJSON_Delete(root);
    free(text);
    return ok;
}

bool store_print(FILE *to, const struct model *m, const struct judgements *js, const struct judgements *older)
{
    bool first = true, first_common = true;
    bool ok = print_head(to, m) && fputs(",\"judgements\":[", to) >= 0 && print_items(to, js, NULL, &first);
    ok = ok && (!older || print_items(to, older, js, &first)) && fputs("],\"common\":[", to) >= 0;
    ok = ok && print_common(to, js, NULL, &first_common);
    ok = ok && (!older || print_common(to, older, js, &first_common)) && fputs("]}\n", to) >= 0;
    return ok;
}

/* As private as the rest of the capture, and never what somebody put there. */
static FILE *create_file(const char *path)
{
    unlink(path); /* of a process that had this number and was killed */
    int fd = open(path, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
    FILE *f = fd < 0 ? NULL : fdopen(fd, "wb");
    if (!f && fd >= 0)
        close(fd);
    return f;
}

enum status store_write(const struct model *m, const struct judgements *js, const struct judgements *older,
                        struct diag *diag)
{
    char path[4096], temporary[4096 + 32];
    if (snprintf(path, sizeof path, "%s/verify.json", m->capture->path) >= (int)sizeof path)
        return diag_set(diag, STATUS_IO, m->capture->path, -1, "the path is too long");
    snprintf(temporary, sizeof temporary, "%s.%d.tmp", path, (int)getpid());
    FILE *f = create_file(temporary);
    if (!f)
        return diag_set(diag, STATUS_IO, path, -1, "%s", strerror(errno));
    errno = 0;
    bool ok = store_print(f, m, js, older);
    ok = fclose(f) == 0 && ok;
    if (ok && rename(temporary, path) == 0)
        return STATUS_OK;
    enum status status = diag_set(diag, STATUS_IO, path, -1, "%s", errno ? strerror(errno) : "no memory");
    unlink(temporary);
    return status;
}

/* ---- reading ---- */

static double number(const cJSON *from, const char *name)
{
    const cJSON *item = cJSON_GetObjectItemCaseSensitive(from, name);
    return cJSON_IsNumber(item) && isfinite(item->valuedouble) ? item->valuedouble : 0;
}

static uint32_t number32(const cJSON *from, const char *name)
{
    double value = number(from, name);
    return value >= 0 && value <= UINT32_MAX ? (uint32_t)value : 0;
}

static uint64_t number64(const cJSON *from, const char *name)
{
    const cJSON *item = cJSON_GetObjectItemCaseSensitive(from, name);
    return cJSON_IsString(item) ? strtoull(item->valuestring, NULL, 10) : 0;
}

/* A copy of a text that is fit to be printed, or NULL. */
static char *text_of(const cJSON *from, const char *name)
{
    const cJSON *item = cJSON_GetObjectItemCaseSensitive(from, name);
    char *copy = cJSON_IsString(item) ? strdup(item->valuestring) : NULL;
    for (char *p = copy; p && *p; p++)
        if ((unsigned char)*p < 0x20 || *p == 0x7f)
            *p = '?';
    return copy;
}

static bool truth(const cJSON *from, const char *name)
{
    return cJSON_IsTrue(cJSON_GetObjectItemCaseSensitive(from, name));
}

static void read_triple(const cJSON *from, const char *name, uint32_t out[3])
{
    const cJSON *array = cJSON_GetObjectItemCaseSensitive(from, name);
    for (int i = 0; i < 3; i++) {
        const cJSON *item = cJSON_GetArrayItem(array, i);
        out[i] = cJSON_IsNumber(item) && item->valuedouble >= 0 && item->valuedouble <= UINT32_MAX
                     ? (uint32_t)item->valuedouble
                     : 0;
    }
}

static void read_access(const cJSON *from, struct judgement_access *a)
{
    a->ptx_line = number32(from, "ptx_line");
    read_triple(from, "block", a->block);
    read_triple(from, "thread", a->thread);
    a->write = truth(from, "write");
    a->atomic = truth(from, "atomic");
    const cJSON *frame;
    cJSON_ArrayForEach(frame, cJSON_GetObjectItemCaseSensitive(from, "frames"))
    {
        if (a->frame_count == JUDGEMENT_FRAMES)
            break;
        a->frames[a->frame_count++] =
            (struct judgement_frame){text_of(frame, "file"), text_of(frame, "function"), number32(frame, "line")};
    }
}

/* The number of a node, from 1; 0 when there is no item. False: it is no such number. */
static bool read_node(const cJSON *item, uint32_t *out)
{
    *out = 0;
    if (!item)
        return true;
    if (!cJSON_IsNumber(item) || !(item->valuedouble >= 1 && item->valuedouble <= UINT32_MAX))
        return false;
    *out = (uint32_t)item->valuedouble;
    return item->valuedouble == *out;
}

static bool node_of(const cJSON *from, const char *name, uint32_t *out)
{
    return read_node(cJSON_GetObjectItemCaseSensitive(from, name), out);
}

static bool read_fault(const cJSON *from, struct judgement_fault *f)
{
    char *kind = text_of(from, "kind");
    unsigned k = 0;
    while (kind && k < JUDGEMENT_FAULT_KINDS && strcmp(kind, judgement_fault_kind_name(k)) != 0)
        k++;
    bool known = kind && k < JUDGEMENT_FAULT_KINDS;
    free(kind);
    if (!known)
        return false;
    f->kind = k;
    f->detail = text_of(from, "detail");
    f->space = text_of(from, "space");
    if (!f->space)
        f->space = strdup("");
    if (!f->detail)
        f->detail = strdup("");
    read_access(cJSON_GetObjectItemCaseSensitive(from, "access"), &f->access);
    read_access(cJSON_GetObjectItemCaseSensitive(from, "other"), &f->other);
    f->address = number64(from, "address");
    f->bytes = number32(from, "bytes");
    f->allocation = number32(from, "allocation");
    f->offset = (int64_t)number64(from, "offset");
    f->landed = number32(from, "landed");
    f->landed_changed = truth(from, "landed_changed");
    f->count = number64(from, "count");
    f->threads = number64(from, "threads");
    f->same_value = truth(from, "same_value");
    f->unseen = truth(from, "unseen");
    return f->space && f->detail && node_of(from, "node", &f->node) && node_of(from, "other_node", &f->other_node);
}

static double real(const cJSON *from, const char *name)
{
    const cJSON *item = cJSON_GetObjectItemCaseSensitive(from, name);
    return cJSON_IsString(item) ? strtod(item->valuestring, NULL) : 0;
}

static bool read_difference(const cJSON *from, struct judgement_difference *d)
{
    char *kind = text_of(from, "kind");
    unsigned k = 0;
    while (kind && k < JUDGEMENT_DIFFERENCE_KINDS && strcmp(kind, judgement_difference_kind_name(k)) != 0)
        k++;
    bool known = kind && k < JUDGEMENT_DIFFERENCE_KINDS;
    free(kind);
    *d = (struct judgement_difference){
        .kind = k,
        .allocation = number32(from, "allocation"),
        .words = number64(from, "words"),
        .of = number64(from, "of"),
        .offset = number64(from, "offset"),
        .device = number32(from, "device"),
        .expected = number32(from, "expected"),
        .scales = real(from, "scales"),
    };
    const cJSON *item;
    cJSON_ArrayForEach(item, cJSON_GetObjectItemCaseSensitive(from, "candidates"))
    {
        if (d->candidate_count == JUDGEMENT_CANDIDATES || !read_node(item, &d->candidates[d->candidate_count++]))
            return false;
    }
    return known && node_of(from, "node", &d->node);
}

static bool read_number(const cJSON *from, struct judgement_number *n)
{
    char *kind = text_of(from, "kind");
    unsigned k = 0;
    while (kind && k < JUDGEMENT_NUMBER_KINDS && strcmp(kind, judgement_number_kind_name(k)) != 0)
        k++;
    bool known = kind && k < JUDGEMENT_NUMBER_KINDS;
    free(kind);
    *n = (struct judgement_number){
        .kind = k,
        .operand_count = number32(from, "operands"),
        .operands = {real(from, "a"), real(from, "b"), real(from, "c")},
        .result = real(from, "result"),
        .result_wide = real(from, "result_wide"),
        .allocation = number32(from, "allocation"),
        .offset = number64(from, "offset"),
        .count = number64(from, "count"),
        .of = number64(from, "of"),
        .stored = real(from, "stored"),
        .wide = real(from, "wide"),
        .limit_absolute = real(from, "limit_absolute"),
        .limit_relative = real(from, "limit_relative"),
    };
    if (n->operand_count > 3)
        n->operand_count = 3;
    read_access(cJSON_GetObjectItemCaseSensitive(from, "access"), &n->access);
    return known && node_of(from, "node", &n->node);
}

static bool read_pattern(const cJSON *from, struct judgement_pattern *p)
{
    char *kind = text_of(from, "kind");
    unsigned k = 0;
    while (kind && k < JUDGEMENT_PATTERN_KINDS && strcmp(kind, judgement_pattern_kind_name(k)) != 0)
        k++;
    bool known = kind && k < JUDGEMENT_PATTERN_KINDS;
    free(kind);
    *p = (struct judgement_pattern){
        .kind = k,
        .requests = number64(from, "requests"),
        .actual = number64(from, "actual"),
        .ideal = number64(from, "ideal"),
    };
    read_access(cJSON_GetObjectItemCaseSensitive(from, "access"), &p->access);
    return known;
}

static bool read_counts(const cJSON *from, struct judgement_counts *c)
{
    const cJSON *item, *operations = cJSON_GetObjectItemCaseSensitive(from, "operations"),
                       *patterns = cJSON_GetObjectItemCaseSensitive(from, "patterns");
    c->known = cJSON_IsObject(from);
    for (size_t i = 0; i < COUNT_FIELDS; i++)
        *(uint64_t *)((char *)c + count_fields[i].at) = number64(from, count_fields[i].name);
    for (unsigned i = 0; i < JUDGEMENT_OPERATION_TYPES; i++)
        c->operations[i] = number64(operations, judgement_operation_name(i));
    c->patterns = calloc((size_t)cJSON_GetArraySize(patterns) + 1, sizeof *c->patterns);
    if (!c->patterns)
        return false;
    cJSON_ArrayForEach(item, patterns) if (!read_pattern(item, &c->patterns[c->pattern_count++])) return false;
    return true;
}

static bool read_judgement(const cJSON *from, struct judgement *j)
{
    const cJSON *item;
    const cJSON *faults = cJSON_GetObjectItemCaseSensitive(from, "faults");
    const cJSON *differences = cJSON_GetObjectItemCaseSensitive(from, "differences");
    const cJSON *numbers = cJSON_GetObjectItemCaseSensitive(from, "numbers");
    j->launch = (size_t)number32(from, "launch");
    j->verdict = truth(from, "checked") ? JUDGEMENT_CHECKED : JUDGEMENT_NOT;
    j->reason = text_of(from, "reason");
    j->detail = text_of(from, "detail");
    j->instructions = number64(from, "instructions");
    j->bytes_known = cJSON_HasObjectItem(from, "bytes_read");
    j->bytes_read = number64(from, "bytes_read");
    j->bytes_written = number64(from, "bytes_written");
    j->faults = calloc((size_t)cJSON_GetArraySize(faults) + 1, sizeof *j->faults);
    j->differences = calloc((size_t)cJSON_GetArraySize(differences) + 1, sizeof *j->differences);
    j->numbers = calloc((size_t)cJSON_GetArraySize(numbers) + 1, sizeof *j->numbers);
    j->numbers_checked = truth(from, "numbers_checked");
    j->numbers_reason = text_of(from, "numbers_reason");
    if (!j->faults || !j->differences || !j->numbers || j->launch == 0)
        return false;
    if (!read_counts(cJSON_GetObjectItemCaseSensitive(from, "counts"), &j->counts))
        return false;
    if (!store_touch_read(from, j))
        return false;
    cJSON_ArrayForEach(item, numbers) if (!read_number(item, &j->numbers[j->number_count++])) return false;
    cJSON_ArrayForEach(item, faults) if (!read_fault(item, &j->faults[j->fault_count++])) return false;
    cJSON_ArrayForEach(item,
                       differences) if (!read_difference(item, &j->differences[j->difference_count++])) return false;
    return true;
}

/* Stores that do not say where they count from were made before captures could have a limit. */
static bool counts_alike(const struct model *m, const cJSON *root)
{
    return cJSON_HasObjectItem(root, "first_launch") ? number64(root, "first_launch") == first_launch(m)
                                                     : !m->capture->header.dropped_before;
}

/* Takes *j over. `entry` is for messages. */
static enum status take_judgement(const struct model *m, struct judgement *j, size_t entry, const char *path,
                                  struct judgements *out, struct diag *diag)
{
    size_t launch = j->launch;
    if (!store_check(m, j))
        return diag_set(diag, STATUS_BAD_INPUT, path, -1,
                        "entry %zu names a launch, or nodes of it, that the capture does not have", entry);
    if (judgements_said(out, launch))
        return diag_set(diag, STATUS_BAD_INPUT, path, -1, "launch %zu comes twice", launch);
    if (!judgements_add(out, j, m->launch_count))
        return diag_set(diag, STATUS_NO_MEMORY, path, -1, "no memory");
    return STATUS_OK;
}

static enum status take_items(const struct model *m, const cJSON *items, const char *path, struct judgements *out,
                              struct diag *diag)
{
    enum status status = STATUS_OK;
    size_t entry = 0;
    for (const cJSON *item = items ? items->child : NULL; item && !status; item = item->next) {
        struct judgement j = {0};
        entry++;
        status = read_judgement(item, &j) ? take_judgement(m, &j, entry, path, out, diag)
                                          : diag_set(diag, STATUS_BAD_INPUT, path, -1, "entry %zu is malformed", entry);
        judgement_clear(&j);
    }
    return status;
}

/* One entry is of many launches: `launches` has the runs of their numbers, the first of which is the entry's own. */
static enum status take_common(const struct model *m, const cJSON *items, const char *path, struct judgements *out,
                               struct diag *diag)
{
    enum status status = STATUS_OK;
    size_t entry = 0;
    for (const cJSON *item = items ? items->child : NULL; item && !status; item = item->next) {
        struct judgement j = {0};
        struct store_runs_reader runs;
        size_t launch, before = out->said_count;
        entry++;
        const cJSON *text = cJSON_GetObjectItemCaseSensitive(item, "launches");
        if (!cJSON_IsString(text) || !read_judgement(item, &j) ||
            !store_runs_start(&runs, text->valuestring, m->launch_count) || !store_runs_next(&runs, &launch)) {
            judgement_clear(&j);
            return diag_set(diag, STATUS_BAD_INPUT, path, -1, "entry %zu of what is common is malformed", entry);
        }
        j.launch = launch;
        status = take_judgement(m, &j, entry, path, out, diag);
        judgement_clear(&j);
        if (!status && out->said_count == before)
            return diag_set(diag, STATUS_BAD_INPUT, path, -1, "entry %zu says more than can be common", entry);
        size_t which = status ? 0 : judgements_said(out, launch) - 1;
        while (!status && store_runs_next(&runs, &launch))
            if (!judgements_say(out, which, launch))
                status = diag_set(diag, STATUS_BAD_INPUT, path, -1, "launch %zu comes twice", launch);
        if (!status && runs.bad)
            status = diag_set(diag, STATUS_BAD_INPUT, path, -1, "entry %zu of what is common is malformed", entry);
    }
    return status;
}

static enum status take_root(const struct model *m, const cJSON *root, const char *path, struct judgements *out,
                             struct diag *diag)
{
    const cJSON *items = cJSON_GetObjectItemCaseSensitive(root, "judgements");
    double version = number(root, "version");
    if (!cJSON_IsObject(root) || !cJSON_IsArray(items))
        return diag_set(diag, STATUS_BAD_INPUT, path, 0, "not a verify.json");
    if (version != STORE_VERSION && version != STORE_OLDEST)
        return diag_set(diag, STATUS_BAD_INPUT, path, 0, "version %g; this analyzer reads versions %d to %d", version,
                        STORE_OLDEST, STORE_VERSION);
    if (number64(root, "start_realtime_ns") != m->capture->header.start_realtime_ns ||
        number32(root, "pid") != m->capture->header.pid)
        return diag_set(diag, STATUS_BAD_INPUT, path, 0, "it belongs to another capture");
    if (!counts_alike(m, root))
        return diag_set(diag, STATUS_BAD_INPUT, path, 0, "the capture has dropped launches since");
    enum status status = take_items(m, items, path, out, diag);
    const cJSON *common = cJSON_GetObjectItemCaseSensitive(root, "common");
    if (!status)
        status = take_common(m, cJSON_IsArray(common) ? common : NULL, path, out, diag);
    size_t twice = status ? 0 : judgements_sort(out);
    if (twice)
        status = diag_set(diag, STATUS_BAD_INPUT, path, -1, "launch %zu comes twice", twice);
    return status;
}

enum status store_parse(const struct model *m, const char *text, const char *where, struct judgements *out,
                        struct diag *diag)
{
    *out = (struct judgements){0};
    cJSON *root = cJSON_Parse(text);
    enum status status = take_root(m, root, where, out, diag);
    cJSON_Delete(root);
    if (status)
        judgements_free(out);
    return status;
}

enum status store_read(const struct model *m, struct judgements *out, struct diag *diag)
{
    char path[4096];
    enum status status;
    *out = (struct judgements){0};
    snprintf(path, sizeof path, "%s/verify.json", m->capture->path);
    char *text = NULL;
    size_t bytes = 0;
    status = regular_read(path, STORE_LIMIT, &text, &bytes, diag);
    if (status)
        return status;
    status = store_parse(m, text, path, out, diag);
    free(text);
    return status;
}
