/* store_touch.c - runs are lists of four numbers each: offset, bytes, stride, count. All below 2^53, so that JSON's
 * doubles hold them. */
#include "analyzer/store_touch.h"

#include <math.h>
#include <stdlib.h>

#define LARGEST 9007199254740992.0 /* 2^53 */

void store_touch_write(cJSON *to, const struct judgement *j)
{
    if (!j->kernel_known)
        return;
    cJSON_AddBoolToObject(to, "may_wait", j->may_wait);
    cJSON_AddBoolToObject(to, "atomics", j->atomics);
    cJSON *touches = cJSON_AddArrayToObject(to, "touches");
    for (size_t i = 0; i < j->touch_count; i++) {
        const struct judgement_touch *t = &j->touches[i];
        cJSON *touch = cJSON_CreateObject(), *runs;
        cJSON_AddNumberToObject(touch, "allocation", t->allocation);
        cJSON_AddBoolToObject(touch, "write", t->write);
        if (t->values)
            cJSON_AddNumberToObject(touch, "values", (double)t->values);
        runs = cJSON_AddArrayToObject(touch, "runs");
        for (size_t k = 0; k < t->count; k++) {
            const uint64_t numbers[4] = {t->runs[k].offset, t->runs[k].bytes, t->runs[k].stride, t->runs[k].count};
            for (int n = 0; n < 4; n++)
                cJSON_AddItemToArray(runs, cJSON_CreateNumber((double)numbers[n]));
        }
        cJSON_AddItemToArray(touches, touch);
    }
}

static bool read_number(const cJSON **at, uint64_t *out)
{
    const cJSON *item = *at;
    if (!item || !cJSON_IsNumber(item) || !(item->valuedouble >= 0) || item->valuedouble >= LARGEST)
        return false;
    *out = (uint64_t)item->valuedouble;
    *at = item->next;
    return true;
}

/* A run must have bytes, must not overlap itself, and must end where an address can. */
static bool sane(const struct judgement_run *r)
{
    uint64_t span;
    return r->bytes && r->count && (r->count == 1 || r->stride >= r->bytes) &&
           !__builtin_mul_overflow(r->stride, r->count, &span) && span < (UINT64_C(1) << 60);
}

static bool read_touch(const cJSON *from, struct judgement_touch *t)
{
    const cJSON *allocation = cJSON_GetObjectItemCaseSensitive(from, "allocation");
    const cJSON *runs = cJSON_GetObjectItemCaseSensitive(from, "runs");
    const cJSON *at = cJSON_IsArray(runs) ? runs->child : NULL;
    size_t numbers = (size_t)cJSON_GetArraySize(runs);
    if (!cJSON_IsNumber(allocation) || !(allocation->valuedouble >= 0) || allocation->valuedouble > UINT32_MAX ||
        numbers % 4)
        return false;
    t->allocation = (uint32_t)allocation->valuedouble;
    t->write = cJSON_IsTrue(cJSON_GetObjectItemCaseSensitive(from, "write"));
    const cJSON *values = cJSON_GetObjectItemCaseSensitive(from, "values");
    if (values && !read_number(&values, &t->values))
        return false;
    t->runs = calloc(numbers / 4 + 1, sizeof *t->runs);
    for (; t->runs && t->count < numbers / 4; t->count++) {
        struct judgement_run *r = &t->runs[t->count];
        if (!read_number(&at, &r->offset) || !read_number(&at, &r->bytes) || !read_number(&at, &r->stride) ||
            !read_number(&at, &r->count) || !sane(r))
            return false;
    }
    return t->runs != NULL;
}

bool store_touch_read(const cJSON *from, struct judgement *j)
{
    const cJSON *touches = cJSON_GetObjectItemCaseSensitive(from, "touches"), *item;
    j->kernel_known = cJSON_HasObjectItem(from, "may_wait");
    j->may_wait = cJSON_IsTrue(cJSON_GetObjectItemCaseSensitive(from, "may_wait"));
    j->atomics = cJSON_IsTrue(cJSON_GetObjectItemCaseSensitive(from, "atomics"));
    j->touches = calloc((size_t)cJSON_GetArraySize(touches) + 1, sizeof *j->touches);
    if (!j->touches)
        return false;
    cJSON_ArrayForEach(item, touches) if (!read_touch(item, &j->touches[j->touch_count++])) return false;
    return true;
}
