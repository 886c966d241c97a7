/* verify_mutate.c - changes captures by their records, so that most of what the fuzzer tries gets past the reader: a
 * number of a record is changed or taken from another one, records are repeated, moved, dropped, given another type, or
 * come from another input. A tenth of the time libFuzzer's own mutations, of the blobs' bytes or of all. */
#include <stdlib.h>

#include "tests/fuzz/verify_input.h"

size_t LLVMFuzzerMutate(uint8_t *data, size_t size, size_t max_size);
size_t LLVMFuzzerCustomMutator(uint8_t *data, size_t size, size_t max_size, unsigned seed);
size_t LLVMFuzzerCustomCrossOver(const uint8_t *first, size_t first_bytes, const uint8_t *second, size_t second_bytes,
                                 uint8_t *out, size_t max_size, unsigned seed);

enum { MAX_RECORDS = 4096, HEAD = sizeof(struct cap_head), PREFIX = 8 + VERIFY_HEADER_PART };

static uint64_t random_state;
static size_t below(size_t bound)
{
    random_state = random_state * UINT64_C(6364136223846793005) + UINT64_C(1442695040888963407);
    return bound ? (size_t)((random_state >> 33) % bound) : 0;
}

/* ---- records ---- */

struct span {
    size_t at, bytes;
};
struct records {
    uint8_t *data; /* of the segment */
    size_t bytes, room;
    struct span items[MAX_RECORDS];
    size_t count;
};

static void scan(struct records *r)
{
    r->count = 0;
    for (size_t at = sizeof(struct cap_segment); at + HEAD <= r->bytes && r->count < MAX_RECORDS;) {
        uint32_t size;
        memcpy(&size, r->data + at, sizeof size);
        if (size < HEAD || size % 8 || size > r->bytes - at)
            break;
        r->items[r->count++] = (struct span){at, size};
        at += size;
    }
}

static struct span some(const struct records *r)
{
    return r->count ? r->items[below(r->count)] : (struct span){sizeof(struct cap_segment), 0};
}

static void put(struct records *r, size_t at, const void *from, size_t bytes)
{
    if (bytes > r->room - r->bytes)
        return;
    memmove(r->data + at + bytes, r->data + at, r->bytes - at);
    memcpy(r->data + at, from, bytes);
    r->bytes += bytes;
}

static void drop(struct records *r, struct span s)
{
    memmove(r->data + s.at, r->data + s.at + s.bytes, r->bytes - s.at - s.bytes);
    r->bytes -= s.bytes;
}

/* A copy of some record in another place and at another time; with a number of its own when it has one. */
static void repeat(struct records *r)
{
    struct span s = some(r), to = some(r), when = some(r);
    uint8_t copy[1024];
    if (!s.bytes || s.bytes > sizeof copy)
        return;
    memcpy(copy, r->data + s.at, s.bytes);
    if (below(2))
        memcpy(copy + offsetof(struct cap_head, seq), r->data + when.at + offsetof(struct cap_head, seq), 8);
    if (below(2) && s.bytes >= HEAD + 4)
        copy[HEAD] = (uint8_t)(copy[HEAD] + 1 + below(3));
    put(r, to.at, copy, s.bytes);
}

/* ---- numbers ---- */

static uint64_t number(void)
{
    static const uint64_t numbers[] = {0,
                                       1,
                                       2,
                                       3,
                                       4,
                                       7,
                                       8,
                                       16,
                                       31,
                                       32,
                                       33,
                                       64,
                                       255,
                                       256,
                                       1023,
                                       1024,
                                       4096,
                                       0xffff,
                                       0x10000,
                                       0x7fffffff,
                                       0x80000000,
                                       0xffffffff,
                                       UINT64_C(1) << 32,
                                       UINT64_C(1) << 40,
                                       UINT64_C(1) << 56,
                                       UINT64_MAX >> 1,
                                       UINT64_MAX,
                                       UINT64_MAX - 7};
    return numbers[below(sizeof numbers / sizeof *numbers)];
}

/* A record of the same type as the one at `at`, if chance finds one. */
static struct span alike(const struct records *r, size_t at)
{
    for (int tries = 0; tries < 16; tries++) {
        struct span s = some(r);
        if (s.bytes && memcmp(r->data + s.at + offsetof(struct cap_head, type),
                              r->data + at + offsetof(struct cap_head, type), sizeof(uint16_t)) == 0)
            return s;
    }
    return some(r);
}

/* Behind the size and the type, which have ways of their own; among small numbers and bits, too. */
static void change(struct records *r)
{
    struct span s = some(r), from = some(r);
    if (s.bytes < HEAD + 4 || from.bytes < HEAD + 4)
        return;
    size_t width = below(4) == 0 ? 8 : below(8) == 0 ? 1 : 4;
    size_t at = s.at + 8 + below((s.bytes - 8) / width) * width;
    if (at + width > s.at + s.bytes)
        return;
    uint64_t value = 0;
    memcpy(&value, r->data + at, width);
    switch (below(7)) {
    case 0:
        value = number();
        break;
    case 1:
        value += 1 + below(16);
        break;
    case 2:
        value -= 1 + below(16);
        break;
    case 3:
        value ^= UINT64_C(1) << below(width * 8);
        break;
    case 4:
        value = value * 2 - below(2);
        break;
    case 5: /* the same of another one */
        from = alike(r, s.at);
        if (at - s.at + width <= from.bytes)
            memcpy(&value, r->data + from.at + (at - s.at), width);
        break;
    default: /* an address, an id, a seq of another one */
        memcpy(&value, r->data + from.at + 8 + below((from.bytes - 8) / width) * width, width);
    }
    memcpy(r->data + at, &value, width);
}

/* ---- places and sizes of memory ---- */

/* Where the two, or more, numbers lie that tell them. */
static const struct {
    uint16_t type, first, words;
} extents[] = {
    {CAP_ALLOC, offsetof(struct cap_alloc, address), 2},
    {CAP_ALLOC, offsetof(struct cap_alloc, address), 2},
    {CAP_REGION, offsetof(struct cap_region, address), 2},
    {CAP_SNAPSHOT, offsetof(struct cap_snapshot, offset), 2},
    {CAP_SET, offsetof(struct cap_set, target), 4},
    {CAP_COPY, offsetof(struct cap_copy, target), 9},
    {CAP_NAME, offsetof(struct cap_name, address), 2},
    {CAP_MARK, offsetof(struct cap_mark, address), 2},
    {CAP_RESERVE, offsetof(struct cap_reserve, address), 3},
    {CAP_GUARD, offsetof(struct cap_guard, range), 4},
    {CAP_HELD_DAMAGE, offsetof(struct cap_held_damage, offset), 2},
    {CAP_LAUNCH, sizeof(struct cap_launch), 2},          /* arguments */
    {CAP_GRAPH_NODE, sizeof(struct cap_graph_node), 10}, /* dependencies, then arguments, or a copy or set */
};

static uint64_t extreme(void)
{
    static const uint64_t numbers[] = {0,
                                       1,
                                       8,
                                       UINT64_C(1) << 20,
                                       UINT64_C(1) << 32,
                                       UINT64_C(1) << 40,
                                       UINT64_C(1) << 56,
                                       UINT64_C(1) << 63,
                                       UINT64_MAX,
                                       ~0u};
    return numbers[below(sizeof numbers / sizeof *numbers)] + (below(3) ? 0 : below(17) - UINT64_C(8));
}

/* Such numbers lie at limits together, or beside those of other records: what is wrong with one alone is soon refused.
 */
static void change_extent(struct records *r)
{
    size_t row = below(sizeof extents / sizeof *extents), start = below(r->count ? r->count : 1), i = 0;
    const uint16_t type = extents[row].type;
    while (i < r->count && memcmp(r->data + r->items[(start + i) % r->count].at + offsetof(struct cap_head, type),
                                  &type, sizeof type) != 0)
        i++;
    if (i == r->count)
        return;
    struct span s = r->items[(start + i) % r->count];
    size_t words = extents[row].words;
    if (s.bytes < extents[row].first + 8 * words)
        words = s.bytes > extents[row].first ? (s.bytes - extents[row].first) / 8 : 0;
    uint64_t values[16], other[16];
    memcpy(values, r->data + s.at + extents[row].first, 8 * words);
    struct span from = alike(r, s.at);
    memcpy(other, values, 8 * words);
    if (from.bytes >= extents[row].first + 8 * words)
        memcpy(other, r->data + from.at + extents[row].first, 8 * words);
    size_t how = below(4);
    for (size_t k = 0; k < words; k++) {
        if (how == 0 || below(words) == 0)
            values[k] = below(2) ? extreme() : other[below(words)] + below(17) - 8;
        if (how == 1 && !k && below(2))
            values[k] = below(8);
        if (how == 1 && k) /* up to the end of the address space, or nearly */
            values[k] = UINT64_MAX - values[k - 1] - below(2) * below(16);
    }
    if (how == 2 && words > 1) /* side by side with another one, or over it */
        values[0] = other[0] + (below(2) ? other[1] : 0) - (below(2) ? values[1] : 0) + below(3) - 1;
    memcpy(r->data + s.at + extents[row].first, values, 8 * words);
}

static void change_type(struct records *r)
{
    struct span s = some(r), from = some(r);
    if (!s.bytes)
        return;
    if (below(2))
        memcpy(r->data + s.at + 4, r->data + from.at + 4, 2);
    else
        r->data[s.at + 4] = (uint8_t)below(96);
}

/* Longer or shorter by a word, which then is inside the tail. */
static void change_size(struct records *r)
{
    struct span s = some(r);
    uint32_t size = (uint32_t)s.bytes;
    if (s.bytes < HEAD + 8)
        return;
    if (below(2)) {
        const uint64_t word = number();
        if (r->room - r->bytes < 8)
            return;
        put(r, s.at + s.bytes, &word, sizeof word);
        size += 8;
    } else {
        drop(r, (struct span){s.at + s.bytes - 8, 8});
        size -= 8;
    }
    memcpy(r->data + s.at, &size, sizeof size);
}

static void mutate_records(struct records *r)
{
    for (size_t n = 1 + below(4); n > 0; n--) {
        scan(r);
        size_t kind = below(20);
        if (kind < 5)
            change_extent(r);
        else if (kind < 13)
            change(r);
        else if (kind < 16)
            repeat(r);
        else if (kind < 17)
            drop(r, some(r));
        else if (kind < 18)
            change_type(r);
        else if (kind < 19)
            change_size(r);
        else if (r->count > 1) /* elsewhere, at the same time */
            change(r), repeat(r);
    }
}

/* ---- the input ---- */

/* Header, segment and rest put together in `data`. */
static size_t join(uint8_t *data, size_t max_size, const struct records *r, const uint8_t *rest, size_t rest_bytes)
{
    uint32_t length = (uint32_t)r->bytes;
    memcpy(data, &length, sizeof length);
    memcpy(data + PREFIX, r->data, r->bytes);
    size_t left = max_size - PREFIX - r->bytes;
    size_t kept = rest_bytes < left ? rest_bytes : left;
    if (kept)
        memcpy(data + PREFIX + r->bytes, rest, kept);
    return PREFIX + r->bytes + kept;
}

static bool take_apart(struct verify_input *in, const uint8_t *data, size_t size, size_t max_size, struct records *r,
                       uint8_t **rest)
{
    if (!verify_input_read(in, data, size) || max_size < size)
        return false;
    r->room = max_size - PREFIX;
    r->bytes = in->segment_bytes;
    r->data = malloc(r->room + 1);
    *rest = malloc(max_size + 1);
    if (!r->data || !*rest) {
        free(r->data);
        free(*rest);
        return false;
    }
    memcpy(r->data, in->segment, in->segment_bytes);
    memcpy(*rest, in->rest, in->rest_bytes);
    return true;
}

size_t LLVMFuzzerCustomMutator(uint8_t *data, size_t size, size_t max_size, unsigned seed)
{
    static struct verify_input in;
    static struct records r;
    uint8_t *rest;
    random_state = seed;
    below(2);
    if (below(40) == 0 || !take_apart(&in, data, size, max_size, &r, &rest))
        return LLVMFuzzerMutate(data, size, max_size);
    size_t rest_bytes = in.rest_bytes;
    if (below(12) == 0 && rest_bytes)
        rest_bytes = LLVMFuzzerMutate(rest, rest_bytes, max_size - PREFIX - r.bytes);
    else
        mutate_records(&r);
    size = join(data, max_size, &r, rest, rest_bytes);
    free(r.data);
    free(rest);
    return size;
}

/* Some records of the second among those of the first, with the second's blobs behind the first's. */
size_t LLVMFuzzerCustomCrossOver(const uint8_t *first, size_t first_bytes, const uint8_t *second, size_t second_bytes,
                                 uint8_t *out, size_t max_size, unsigned seed)
{
    static struct verify_input in, other;
    static struct records r, theirs;
    uint8_t *rest;
    random_state = seed;
    below(2);
    if (max_size < first_bytes || !verify_input_read(&other, second, second_bytes) ||
        !take_apart(&in, first, first_bytes, max_size, &r, &rest))
        return 0;
    theirs = (struct records){.data = (uint8_t *)(uintptr_t)other.segment, .bytes = other.segment_bytes};
    scan(&theirs);
    for (size_t n = 1 + below(8); n > 0; n--) {
        scan(&r);
        struct span s = some(&theirs);
        put(&r, some(&r).at, theirs.data + s.at, s.bytes);
    }
    size_t rest_bytes = in.rest_bytes, room = max_size - PREFIX - r.bytes;
    if (rest_bytes + other.rest_bytes <= room && other.rest_bytes) {
        memcpy(rest + rest_bytes, other.rest, other.rest_bytes);
        rest_bytes += other.rest_bytes;
    }
    memcpy(out, first, PREFIX);
    size_t size = join(out, max_size, &r, rest, rest_bytes);
    free(r.data);
    free(rest);
    return size;
}
