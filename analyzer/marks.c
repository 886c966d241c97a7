#include "analyzer/marks.h"

#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "analyzer/element.h"

static const struct dtype {
    const char *name;
    uint32_t bytes;
    enum element_type element; /* ELEMENT_TYPES: none */
} dtypes[CAP_DTYPES] = {
    [CAP_DTYPE_UNKNOWN] = {"?", 0, ELEMENT_TYPES},
    [CAP_DTYPE_F64] = {"f64", 8, ELEMENT_F64},
    [CAP_DTYPE_F32] = {"f32", 4, ELEMENT_F32},
    [CAP_DTYPE_F16] = {"f16", 2, ELEMENT_F16},
    [CAP_DTYPE_BF16] = {"bf16", 2, ELEMENT_BF16},
    [CAP_DTYPE_F8_E4M3] = {"f8e4m3", 1, ELEMENT_TYPES},
    [CAP_DTYPE_F8_E5M2] = {"f8e5m2", 1, ELEMENT_TYPES},
    [CAP_DTYPE_I8] = {"i8", 1, ELEMENT_S8},
    [CAP_DTYPE_U8] = {"u8", 1, ELEMENT_U8},
    [CAP_DTYPE_I16] = {"i16", 2, ELEMENT_S16},
    [CAP_DTYPE_U16] = {"u16", 2, ELEMENT_U16},
    [CAP_DTYPE_I32] = {"i32", 4, ELEMENT_S32},
    [CAP_DTYPE_U32] = {"u32", 4, ELEMENT_U32},
    [CAP_DTYPE_I64] = {"i64", 8, ELEMENT_S64},
    [CAP_DTYPE_U64] = {"u64", 8, ELEMENT_U64},
};

const char *marks_dtype(uint32_t dtype)
{
    return dtype < CAP_DTYPES ? dtypes[dtype].name : "?";
}

uint32_t marks_dtype_bytes(uint32_t dtype)
{
    return dtype < CAP_DTYPES ? dtypes[dtype].bytes : 0;
}

/* ---- names ---- */

const struct cap_name *marks_name(const struct model *m, uint64_t address, uint64_t seq)
{
    const struct cap_name *found = NULL;
    for (size_t i = 0; i < m->name_count && m->names[i]->head.seq < seq; i++) {
        const struct cap_name *n = m->names[i];
        const struct model_allocation *a = model_allocation_by_id(m, n->allocation);
        bool holds = address >= n->address && address - n->address < (n->bytes ? n->bytes : 1);
        if (holds && (!a || a->free_seq > seq))
            found = n; /* the last one counts */
    }
    return found;
}

void marks_coordinates(const struct cap_name *n, uint64_t offset, char *out, size_t bytes)
{
    uint64_t index = offset / (marks_dtype_bytes(n->dtype) ? marks_dtype_bytes(n->dtype) : 1), at[CAP_DIMS_MAX];
    uint32_t dims = n->dims <= CAP_DIMS_MAX ? n->dims : 0;
    for (uint32_t i = dims; i-- > 0;) {
        if (!n->shape[i]) {
            dims = 0;
            break;
        }
        at[i] = index % n->shape[i];
        index /= n->shape[i];
    }
    if (!dims || index) { /* no shape, or beyond it */
        snprintf(out, bytes, "[%" PRIu64 "]", offset / (marks_dtype_bytes(n->dtype) ? marks_dtype_bytes(n->dtype) : 1));
        return;
    }
    size_t used = 0;
    for (uint32_t i = 0; i < dims && used < bytes; i++)
        used += (size_t)snprintf(out + used, bytes - used, "%s%" PRIu64 "%s", i ? ", " : "[", at[i],
                                 i + 1 == dims ? "]" : "");
}

void marks_shape(const struct cap_name *n, char *out, size_t bytes)
{
    size_t used = (size_t)snprintf(out, bytes, "%s", marks_dtype(n->dtype));
    for (uint32_t i = 0; i < n->dims && i < CAP_DIMS_MAX && used < bytes; i++)
        used += (size_t)snprintf(out + used, bytes - used, "%s%" PRIu64 "%s", i ? ", " : " [", n->shape[i],
                                 i + 1 == n->dims ? "]" : "");
}

bool marks_step(const struct model *m, uint64_t seq, uint64_t *step)
{
    size_t low = 0, high = m->mark_count;
    while (low < high) {
        size_t middle = low + (high - low) / 2;
        if (m->marks[middle].record->head.seq < seq)
            low = middle + 1;
        else
            high = middle;
    }
    if (!low || !m->marks[low - 1].has_step)
        return false;
    *step = m->marks[low - 1].step;
    return true;
}

void marks_step_text(const struct model *m, uint64_t seq, char out[MARKS_STEP_BYTES])
{
    uint64_t step;
    out[0] = '\0';
    if (marks_step(m, seq, &step))
        snprintf(out, MARKS_STEP_BYTES, ", step %" PRIu64, step);
}

/* ---- values ---- */

enum finite { IS_FINITE, IS_INFINITE, IS_NAN };

static enum finite judge(uint32_t dtype, const uint8_t *data)
{
    if (dtype == CAP_DTYPE_F8_E4M3) /* has no infinities */
        return (*data & 0x7f) == 0x7f ? IS_NAN : IS_FINITE;
    if (dtype == CAP_DTYPE_F8_E5M2)
        return (*data & 0x7c) != 0x7c ? IS_FINITE : *data & 3 ? IS_NAN : IS_INFINITE;
    double value = dtypes[dtype].element == ELEMENT_TYPES ? 0 : element_value(dtypes[dtype].element, data);
    return isnan(value) ? IS_NAN : isinf(value) ? IS_INFINITE : IS_FINITE;
}

bool marks_values(const struct model *m, const struct model_mark *mark, struct mark_values *out)
{
    struct diag diag;
    uint8_t *data;
    size_t bytes;
    uint32_t dtype = mark->record->dtype, size = marks_dtype_bytes(dtype);
    *out = (struct mark_values){0};
    if (!mark->value || !size ||
        capture_blob(m->capture, (struct hash128){mark->value->hash_low, mark->value->hash_high}, mark->value->bytes,
                     &data, &bytes, &diag))
        return false;
    out->elements = bytes / size;
    for (uint64_t i = 0; i < out->elements; i++) {
        enum finite is = judge(dtype, data + i * size);
        if (is != IS_FINITE && !out->nans && !out->infinities)
            out->first = i;
        out->nans += is == IS_NAN;
        out->infinities += is == IS_INFINITE;
    }
    free(data);
    return true;
}

void marks_text(const struct model *m, const struct model_mark *mark, char *out, size_t bytes)
{
    const struct cap_mark *r = mark->record;
    const char *text = capture_string(m->capture, r->text);
    uint32_t size = marks_dtype_bytes(r->dtype);
    switch (r->kind) {
    case CAP_MARK_STEP:
        snprintf(out, bytes, "step %" PRIu64, r->number);
        break;
    case CAP_MARK_TEXT:
        snprintf(out, bytes, "%s", text);
        break;
    default:
        snprintf(out, bytes, "%s %s: %" PRIu64 " %s%s", r->kind == CAP_MARK_CHECKPOINT ? "checkpoint" : "assert finite",
                 text, size ? r->bytes / size : 0, marks_dtype(r->dtype), mark->value ? "" : ", not looked at");
        break;
    }
}
