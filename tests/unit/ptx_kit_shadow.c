/* ptx_kit_shadow.c - launches in shadow mode, in both engines: values, entries, flags, events and counts must be the
 * same. */
#include <stdlib.h>
#include <string.h>
#include "tests/unit/ptx_kit.h"

struct copy {
    unsigned char *parts[6];
};

/* What a launch may change of a range; false: not kept. */
static size_t part_of_range(const struct ptx_range *r, unsigned part, void **at)
{
    void *const parts[6] = {r->host, r->shadow, r->tainted, r->written, r->read, r->shadow_used};
    const size_t bytes[6] = {r->bytes,           (r->bytes + 1) / 2 * sizeof *r->shadow,
                             r->bytes,           (r->bytes + 7) / 8,
                             (r->bytes + 7) / 8, (r->bytes + PTX_SHADOW_CHUNK - 1) / PTX_SHADOW_CHUNK};
    *at = parts[part];
    return *at ? bytes[part] : 0;
}

static void copy_ranges(const struct kit *k, struct copy *to)
{
    for (size_t i = 0; i < k->memory.range_count; i++)
        for (unsigned part = 0; part < 6; part++) {
            void *at = NULL;
            size_t bytes = part_of_range(&k->ranges[i], part, &at);
            to[i].parts[part] = bytes ? malloc(bytes) : NULL;
            assert_true(!bytes || to[i].parts[part]);
            if (bytes)
                memcpy(to[i].parts[part], at, bytes);
        }
}

static void put_back_ranges(const struct kit *k, const struct copy *from)
{
    for (size_t i = 0; i < k->memory.range_count; i++)
        for (unsigned part = 0; part < 6; part++) {
            void *at = NULL;
            size_t bytes = part_of_range(&k->ranges[i], part, &at);
            if (from[i].parts[part])
                memcpy(at, from[i].parts[part], bytes);
        }
}

static void free_copies(const struct kit *k, struct copy *c)
{
    for (size_t i = 0; i < k->memory.range_count; i++)
        for (unsigned part = 0; part < 6; part++)
            free(c[i].parts[part]);
}

static bool same_number(double a, double b)
{
    uint64_t bits[2];
    memcpy(&bits[0], &a, sizeof a);
    memcpy(&bits[1], &b, sizeof b);
    return bits[0] == bits[1] || (a != a && b != b);
}

static bool same_value(const struct ptx_shadow_value *a, const struct ptx_shadow_value *b)
{
    return same_number(a->wide, b->wide) && a->origin == b->origin && a->depth == b->depth && a->kind == b->kind &&
           a->flags == b->flags;
}

static bool same_event(const struct ptx_number_event *a, const struct ptx_number_event *b)
{
    bool same = a->kind == b->kind && kit_same_access(&a->access, &b->access) && a->operand_count == b->operand_count &&
                a->count == b->count && same_number(a->result, b->result) &&
                same_number(a->result_wide, b->result_wide) && same_number(a->error_in, b->error_in) &&
                same_number(a->error_out, b->error_out);
    for (unsigned i = 0; same && i < a->operand_count; i++)
        same = same_number(a->operands[i], b->operands[i]) && same_number(a->operands_wide[i], b->operands_wide[i]);
    return same;
}

static void compare_shadow(size_t range, const struct ptx_shadow_value *one, const struct ptx_shadow_value *other,
                           size_t bytes, bool timed)
{
    for (size_t i = 0; i < bytes / sizeof *one; i++)
        if (timed ? one[i].flags != other[i].flags : !same_value(&one[i], &other[i]))
            fail_msg("entry %zu of range %zu: %.17g origin %u depth %u kind %u flags %u one by one, %.17g origin %u "
                     "depth %u kind %u flags %u in lock-step",
                     i, range, one[i].wide, one[i].origin, (unsigned)one[i].depth, (unsigned)one[i].kind,
                     (unsigned)one[i].flags, other[i].wide, other[i].origin, (unsigned)other[i].depth,
                     (unsigned)other[i].kind, (unsigned)other[i].flags);
}

static void compare_ranges(const struct kit *k, const struct copy *one)
{
    static const char *const names[6] = {"memory",          "shadow",       "flags",
                                         "what is written", "what is read", "what has entries"};
    for (size_t i = 0; i < k->memory.range_count; i++)
        for (unsigned part = 0; part < 6; part++) {
            void *at = NULL;
            size_t bytes = part_of_range(&k->ranges[i], part, &at);
            const unsigned char *other = at, *kept = one[i].parts[part];
            if (!kept || !other)
                continue;
            if (part == 1)
                compare_shadow(i, (const void *)kept, at, bytes, k->timed);
            for (size_t n = 0; part != 1 && (part == 2 || !k->timed) && n < bytes; n++)
                if (kept[n] != other[n])
                    fail_msg("%s of range %zu, byte %zu: %02x one by one, %02x in lock-step", names[part], i, n,
                             kept[n], other[n]);
        }
}

static void compare_results(const struct ptx_result *one, const struct ptx_result *other, bool spins)
{
    assert_int_equal(one->status, other->status);
    for (size_t i = 0; i < one->event_count && i < other->event_count; i++) {
        const struct ptx_number_event *a = &one->events[i], *b = &other->events[i];
        if (!same_event(a, b))
            fail_msg("event %zu: kind %d line %u count %llu, thread %u, %.17g (%.17g), error %g to %g one by one; kind "
                     "%d line %u count %llu, thread %u, %.17g (%.17g), error %g to %g in lock-step",
                     i, (int)a->kind, a->access.ptx_line, (unsigned long long)a->count, a->access.thread[0], a->result,
                     a->result_wide, a->error_in, a->error_out, (int)b->kind, b->access.ptx_line,
                     (unsigned long long)b->count, b->access.thread[0], b->result, b->result_wide, b->error_in,
                     b->error_out);
    }
    assert_int_equal(one->event_count, other->event_count);
    if (spins)
        return;
    assert_int_equal(one->counts.thread_instructions, other->counts.thread_instructions);
    assert_int_equal(one->counts.tainted_threads, other->counts.tainted_threads);
    assert_int_equal(one->counts.global_read_bytes, other->counts.global_read_bytes);
    assert_int_equal(one->counts.global_write_bytes, other->counts.global_write_bytes);
}

enum status kit_run_shadow(struct kit *k)
{
    struct copy before[KIT_BUFFERS] = {0}, after[KIT_BUFFERS] = {0};
    struct ptx_result one;
    copy_ranges(k, before);
    k->launch.one_by_one = true;
    (void)ptx_run(&k->launch, &one, &k->diag);
    k->launch.one_by_one = false;
    copy_ranges(k, after);
    put_back_ranges(k, before);
    k->printed_bytes = 0;
    (void)ptx_run(&k->launch, &k->result, &k->diag);
    compare_ranges(k, after);
    compare_results(&one, &k->result, k->spins);
    free_copies(k, before);
    free_copies(k, after);
    ptx_result_free(&one);
    return k->result.status;
}
