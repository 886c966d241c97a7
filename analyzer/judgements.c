/* judgements.c - the judgements of a capture: one each of launches about which there is much to say, and a shared one
 * of all those of which only the reason is known that they were not judged. */
#include "analyzer/judgement.h"

#include <stdlib.h>
#include <string.h>

#include "common/buf.h"
#include "common/hash.h"

/* ---- what is common ---- */

/* Nothing is said but that it was not judged, why, and what the kernel may do. */
static bool plain(const struct judgement *j)
{
    return j->verdict == JUDGEMENT_NOT && !j->fault_count && !j->difference_count && !j->number_count &&
           !j->counts.known && !j->touch_count && !j->bytes_known && !j->instructions && !j->numbers_checked;
}

static bool same_text(const char *a, const char *b)
{
    return a == b || (a && b && strcmp(a, b) == 0);
}

static bool alike(const struct judgement *a, const struct judgement *b)
{
    return same_text(a->reason, b->reason) && same_text(a->detail, b->detail) &&
           same_text(a->numbers_reason, b->numbers_reason) && a->kernel_known == b->kernel_known &&
           a->may_wait == b->may_wait && a->atomics == b->atomics;
}

static bool hash_plain(const struct judgement *j, uint64_t *out)
{
    struct buf b = {0};
    const char *const texts[] = {j->reason, j->detail, j->numbers_reason};
    for (size_t i = 0; i < sizeof texts / sizeof *texts; i++) {
        buf_append(&b, texts[i] ? "+" : "-", 1);
        buf_append(&b, texts[i] ? texts[i] : "", texts[i] ? strlen(texts[i]) + 1 : 0);
    }
    buf_append(&b, (const char[]){(char)j->kernel_known, (char)j->may_wait, (char)j->atomics}, 3);
    *out = b.failed ? 0 : hash_bytes64(b.data, b.size);
    bool ok = !b.failed;
    buf_free(&b);
    return ok;
}

static bool want_said(struct judgements *js, size_t launches)
{
    if (js->said && js->launches >= launches)
        return true;
    uint32_t *more = realloc(js->said, (launches + 1) * sizeof *more);
    if (!more)
        return false;
    size_t old = js->said ? js->launches + 1 : 0;
    memset(more + old, 0, (launches + 1 - old) * sizeof *more);
    js->said = more;
    js->launches = launches;
    return true;
}

bool judgements_say(struct judgements *js, size_t which, size_t launch)
{
    if (js->said[launch])
        return false;
    js->said[launch] = (uint32_t)which + 1;
    js->said_count++;
    return true;
}

enum outcome { FAILED, TAKEN, NOT_COMMON };

/* Makes it one of the common ones, if it is not there, and says it of its launch. */
static enum outcome add_common(struct judgements *js, struct judgement *j, size_t launches)
{
    uint64_t hash, at;
    if (!hash_plain(j, &hash) || !want_said(js, launches))
        return FAILED;
    if (map_get(&js->index, hash, &at)) {
        if (!alike(&js->common[at], j))
            return NOT_COMMON; /* another text with the same hash */
    } else {
        struct judgement *more = js->common_count & (js->common_count - 1)
                                     ? js->common
                                     : realloc(js->common, 2 * (js->common_count + 1) * sizeof *more);
        if (!more)
            return FAILED;
        js->common = more;
        at = js->common_count;
        if (at == UINT32_MAX - 1 || !map_put(&js->index, hash, at))
            return FAILED;
        js->common[js->common_count++] = *j;
        *j = (struct judgement){.launch = j->launch};
    }
    judgements_say(js, at, j->launch);
    judgement_clear(j);
    return TAKEN;
}

/* ---- all of them ---- */

bool judgements_add(struct judgements *js, struct judgement *j, size_t launches)
{
    enum outcome common = plain(j) ? add_common(js, j, launches) : NOT_COMMON;
    if (common != NOT_COMMON)
        return common == TAKEN;
    if (js->count >= js->capacity) {
        size_t capacity = js->count < 8 ? 16 : 2 * js->count;
        struct judgement *more = realloc(js->items, capacity * sizeof *more);
        if (!more)
            return false;
        js->items = more;
        js->capacity = capacity;
    }
    js->items[js->count++] = *j;
    *j = (struct judgement){0};
    return true;
}

static int by_launch(const void *a, const void *b)
{
    size_t x = ((const struct judgement *)a)->launch, y = ((const struct judgement *)b)->launch;
    return x < y ? -1 : x > y;
}

size_t judgements_sort(struct judgements *js)
{
    if (js->count)
        qsort(js->items, js->count, sizeof *js->items, by_launch);
    for (size_t i = 0; i < js->count; i++) {
        size_t launch = js->items[i].launch;
        if ((i && js->items[i - 1].launch == launch) || judgements_said(js, launch))
            return launch;
    }
    return 0;
}

struct judgement *judgements_find(const struct judgements *js, size_t launch)
{
    uint32_t said = judgements_said(js, launch);
    size_t low = 0, high = js->count;
    if (said)
        return &js->common[said - 1];
    while (low < high) {
        size_t middle = low + (high - low) / 2;
        if (js->items[middle].launch < launch)
            low = middle + 1;
        else
            high = middle;
    }
    return low < js->count && js->items[low].launch == launch ? &js->items[low] : NULL;
}

/* ---- two into one ---- */

/* Nothing is known of the launch, or no more than that nobody came to it, which is taken out then. */
static bool make_way(struct judgements *js, size_t launch)
{
    uint32_t said = judgements_said(js, launch);
    if (!said)
        return !judgements_find(js, launch);
    const char *reason = js->common[said - 1].reason;
    if (!reason || strcmp(reason, JUDGEMENT_INTERRUPTED) != 0)
        return false;
    js->said[launch] = 0;
    js->said_count--;
    return true;
}

static bool copy_text(const char *from, char **to)
{
    *to = from ? strdup(from) : NULL;
    return !from || *to;
}

/* `known`: 1 + index in to->common of what `said` is in `from`; 0: not there yet. */
static bool merge_said(struct judgements *to, const struct judgements *from, size_t launch, uint32_t *known)
{
    const struct judgement *j = &from->common[from->said[launch] - 1];
    if (!make_way(to, launch))
        return true;
    if (*known)
        return judgements_say(to, *known - 1, launch);
    struct judgement copy = {
        .launch = launch, .kernel_known = j->kernel_known, .may_wait = j->may_wait, .atomics = j->atomics};
    bool ok = copy_text(j->reason, &copy.reason);
    ok = copy_text(j->detail, &copy.detail) && ok;
    ok = copy_text(j->numbers_reason, &copy.numbers_reason) && ok;
    ok = ok && judgements_add(to, &copy, from->launches > to->launches ? from->launches : to->launches);
    judgement_clear(&copy);
    *known = ok ? judgements_said(to, launch) : 0;
    return ok;
}

bool judgements_merge(struct judgements *to, struct judgements *from)
{
    uint32_t *known = calloc(from->common_count + 1, sizeof *known);
    bool ok = known != NULL;
    for (size_t i = 0; ok && i < from->count; i++) /* before any is added: `to` is in order as yet */
        if (!make_way(to, from->items[i].launch))
            judgement_clear(&from->items[i]);
    for (size_t launch = 1; ok && from->said && launch <= from->launches; launch++)
        ok = !from->said[launch] || merge_said(to, from, launch, &known[from->said[launch] - 1]);
    for (size_t i = 0; ok && i < from->count; i++)
        ok = !from->items[i].launch || judgements_add(to, &from->items[i], from->items[i].launch);
    judgements_sort(to);
    free(known);
    judgements_free(from);
    return ok;
}

void judgements_free(struct judgements *js)
{
    for (size_t i = 0; i < js->count; i++)
        judgement_clear(&js->items[i]);
    for (size_t i = 0; i < js->common_count; i++)
        judgement_clear(&js->common[i]);
    free(js->items);
    free(js->common);
    free(js->said);
    map_free(&js->index);
    *js = (struct judgements){0};
}
