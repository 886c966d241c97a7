/* counts_access.c - one request to memory: which sectors, lines and banks its lanes touch, and which bytes.
 *
 * The words are Nsight Compute's (Kernel Profiling Guide, "Metrics Decoder"): a request is one instruction of a warp; a
 * sector is 32 aligned bytes, a line four of them; work that the banks cannot do at once is done in several wavefronts.
 *
 * Shared memory has 32 banks of 4 bytes; lanes that want the same word of a bank share it (CUDA C++ Programming Guide,
 * "Shared Memory" of compute capability 5.x and later). As a bank gives 4 bytes at a time, the 32 lanes' accesses of 8
 * bytes are done by half warps, those of 16 bytes by quarter warps, and conflicts are among the lanes of one part.
 * (Same guide, compute capability 2.x, and NVIDIA's answers on "unexpected shared memory bank conflict": LDS.128 takes
 * four passes. Devices of 7.x may do with fewer where pairs of lanes have the same address; that is not counted.) */
#include <stdlib.h>
#include <string.h>
#include "ptx/counts.h"

enum { SECTOR_SHIFT = 5, LINE_SHIFT = 7, BANKS = 32, MAX_PIECES = 256 };

/* ---- bytes touched ---- */

static struct touch_page *find_page(struct counter *c, uint64_t number)
{
    unsigned at = (unsigned)(number % TOUCH_RECENT);
    if (c->recent[at].page && c->recent[at].number == number)
        return c->recent[at].page;
    uint64_t value;
    struct touch_page *page;
    if (map_get(&c->pages, number, &value)) {
        page = (struct touch_page *)(uintptr_t)value;
    } else {
        page = calloc(1, sizeof *page);
        if (!page || !map_put(&c->pages, number, (uintptr_t)page)) {
            free(page);
            c->no_memory = true;
            return NULL;
        }
    }
    c->recent[at].number = number;
    c->recent[at].page = page;
    return page;
}

static void touch(struct counter *c, enum ptx_space space, uint64_t address, uint64_t bytes, bool read, bool write)
{
    const uint64_t key = space == PTX_SPACE_CONST ? TOUCH_CONST : 0;
    address += space == PTX_SPACE_SHARED  ? PTX_SHARED_WINDOW
               : space == PTX_SPACE_LOCAL ? PTX_LOCAL_WINDOW
               : space == PTX_SPACE_PARAM ? PTX_PARAM_WINDOW
                                          : 0;
    while (bytes) {
        unsigned bit = (unsigned)(address & 63), n = bytes < 64 - bit ? (unsigned)bytes : 64 - bit;
        struct touch_page *page = find_page(c, key | address / TOUCH_PAGE);
        if (!page)
            return;
        uint64_t bits = (n == 64 ? UINT64_MAX : (UINT64_C(1) << n) - 1) << bit;
        unsigned word = (unsigned)(address % TOUCH_PAGE / 64);
        page->read[word] |= read ? bits : 0;
        page->written[word] |= write ? bits : 0;
        address += n;
        bytes -= n;
    }
}

/* ---- sets of numbers ---- */

static void sort(uint64_t *v, uint32_t n)
{
    for (uint32_t i = 1; i < n; i++) {
        uint64_t x = v[i];
        uint32_t k = i;
        for (; k > 0 && v[k - 1] > x; k--)
            v[k] = v[k - 1];
        v[k] = x;
    }
}

/* How many different values `v >> shift` takes; `v` is sorted. */
static uint32_t different(const uint64_t *v, uint32_t n, unsigned shift)
{
    uint32_t count = n > 0;
    for (uint32_t i = 1; i < n; i++)
        count += v[i] >> shift != v[i - 1] >> shift;
    return count;
}

/* How many bytes the sorted accesses touch; they are aligned to their size, so two are the same or apart. */
static uint64_t different_bytes(const uint64_t *v, uint32_t n, uint32_t size)
{
    uint64_t total = 0;
    for (uint32_t i = 0; i < n; i++)
        total += i == 0 || v[i] != v[i - 1] ? size : 0;
    return total;
}

static uint32_t most_equal(const uint64_t *v, uint32_t n)
{
    uint32_t most = 0, run = 0;
    for (uint32_t i = 0; i < n; i++) {
        run = i && v[i] == v[i - 1] ? run + 1 : 1;
        most = run > most ? run : most;
    }
    return most;
}

/* ---- banks ---- */

/* Passes for accesses that are done together: the most different words of one bank. */
static uint32_t bank_passes(const uint64_t *address, uint32_t n, uint32_t size)
{
    uint64_t words[BANKS][BANKS];
    uint8_t used[BANKS] = {0};
    uint32_t most = 0;
    for (uint32_t i = 0; i < n; i++)
        for (uint64_t w = 0; w < (address[i] % 4 + size + 3) / 4; w++) { /* addresses that fault may wrap around */
            const uint64_t word = address[i] / 4 + w;
            unsigned bank = (unsigned)(word % BANKS), k = 0;
            while (k < used[bank] && words[bank][k] != word)
                k++;
            if (k == used[bank] && k < BANKS)
                words[bank][used[bank]++] = word;
            most = used[bank] > most ? used[bank] : most;
        }
    return most;
}

/* By parts of the warp whose bytes fill the banks once. */
static void count_banks(struct ptx_access_counts *a, const uint64_t *address, uint32_t mask, uint32_t size)
{
    uint32_t part = size <= 4 ? WARP : size >= 128 ? 1 : 128 / size;
    for (uint32_t first = 0; first < WARP; first += part) {
        uint64_t in_part[WARP];
        uint32_t n = 0;
        for (uint32_t i = first; i < first + part; i++)
            if (mask >> i & 1)
                in_part[n++] = address[i];
        if (!n)
            continue;
        a->wavefronts += bank_passes(in_part, n, size);
        a->ideal_wavefronts++;
    }
}

/* ---- requests ---- */

static enum ptx_space space_of(enum mem_space space, uint64_t *address)
{
    if (space == MEM_GENERIC) {
        uint64_t window = *address >> 32;
        space = window == PTX_SHARED_WINDOW >> 32  ? MEM_SHARED
                : window == PTX_LOCAL_WINDOW >> 32 ? MEM_LOCAL
                : window == PTX_PARAM_WINDOW >> 32 ? MEM_PARAM
                                                   : MEM_GLOBAL;
        *address = space == MEM_GLOBAL ? *address : *address & UINT32_MAX;
    }
    *address = narrow_address(space, *address);
    return space == MEM_SHARED  ? PTX_SPACE_SHARED
           : space == MEM_LOCAL ? PTX_SPACE_LOCAL
           : space == MEM_PARAM ? PTX_SPACE_PARAM
           : space == MEM_CONST ? PTX_SPACE_CONST
                                : PTX_SPACE_GLOBAL;
}

static struct ptx_access_counts *counts_of(struct counter *c, uint32_t site, enum ptx_space space)
{
    if (!c->sites[site])
        c->sites[site] = calloc(1, sizeof *c->sites[site]);
    c->no_memory |= !c->sites[site];
    return c->sites[site] ? &c->sites[site]->in[space] : NULL;
}

/* Local memory is laid out so that a word of all lanes lies together. */
static uint64_t interleaved(uint64_t offset, uint32_t lane)
{
    return offset / 4 * 4 * WARP + lane * 4 + offset % 4;
}

/* Accesses of more than 4 bytes to local memory touch several words, each in another line. */
static void count_lines_local(struct ptx_access_counts *a, const uint64_t *address, uint32_t mask, uint32_t size)
{
    uint64_t at[WARP * 8];
    uint32_t n = 0, step = size < 4 ? size : 4;
    for (uint32_t m = mask; m; m &= m - 1)
        for (uint32_t k = 0; k < size && n < WARP * 8; k += step)
            at[n++] = interleaved(address[__builtin_ctz(m)] + k, (uint32_t)__builtin_ctz(m));
    sort(at, n);
    uint32_t sectors = different(at, n, SECTOR_SHIFT);
    a->sectors += sectors;
    a->lines += different(at, n, LINE_SHIFT);
    a->ideal_sectors += (n * step + 31) / 32 < sectors ? (n * step + 31) / 32 : sectors;
}

/* What the accesses of `mask`, all to one space, are as a request of a warp. */
static void measure(const struct site *s, struct ptx_access_counts *a, enum ptx_space space, const uint64_t *address,
                    uint32_t mask, uint32_t size)
{
    uint64_t sorted[WARP];
    uint32_t n = 0;
    for (uint32_t m = mask; m; m &= m - 1)
        sorted[n++] = address[__builtin_ctz(m)];
    a->requests++;
    a->request_accesses += n;
    sort(sorted, n);
    if (space == PTX_SPACE_SHARED) {
        count_banks(a, address, mask, size);
    } else if (space == PTX_SPACE_LOCAL) {
        count_lines_local(a, address, mask, size);
    } else if (space == PTX_SPACE_GLOBAL) {
        uint32_t per_access = (size + 31) / 32; /* aligned: whole sectors, or inside one */
        a->sectors += (uint64_t)different(sorted, n, SECTOR_SHIFT) * per_access;
        a->lines += different(sorted, n, LINE_SHIFT);
        a->ideal_sectors += (different_bytes(sorted, n, size) + 31) / 32;
    }
    if (s->atomic) {
        uint32_t most = most_equal(sorted, n);
        a->atomics++;
        a->same_address += most;
        a->same_address_most = most > a->same_address_most ? most : a->same_address_most;
    }
}

static void count_bytes(const struct site *s, struct ptx_access_counts *a, uint32_t lanes, uint32_t size)
{
    a->accesses += lanes;
    a->read_bytes += s->read ? (uint64_t)lanes * size : 0;
    a->write_bytes += s->write ? (uint64_t)lanes * size : 0;
}

/* The accesses of `mask` that are all to one space. */
static void count_same_space(struct counter *c, const struct site *s, struct ptx_access_counts *a, enum ptx_space space,
                             const uint64_t *address, uint32_t mask, uint32_t size, bool together)
{
    for (uint32_t m = mask; m; m &= m - 1)
        touch(c, space, address[__builtin_ctz(m)], size, s->read, s->write);
    count_bytes(s, a, (uint32_t)__builtin_popcount(mask), size);
    if (together)
        measure(s, a, space, address, mask, size);
}

/* ---- addresses that grow by steps ---- */

static void touch_steps(struct counter *c, const struct site *s, enum ptx_space space, const struct site_steps *x)
{
    uint32_t rows = x->rise ? WARP >> x->fold : 1, columns = 1u << x->fold;
    if (x->mask != UINT32_MAX && (x->stride || x->rise)) {
        for (uint32_t m = x->mask; m; m &= m - 1)
            touch(c, space, steps_address(x, (uint32_t)__builtin_ctz(m)), s->bytes, s->read, s->write);
        return;
    }
    for (uint32_t row = 0; row < rows; row++) {
        uint64_t at = x->base + (uint64_t)x->rise * row;
        if (x->stride == 0)
            touch(c, space, at, s->bytes, s->read, s->write);
        else if (x->stride == s->bytes)
            touch(c, space, at, (uint64_t)s->bytes * columns, s->read, s->write);
        else
            for (uint32_t i = 0; i < columns; i++)
                touch(c, space, at + (uint64_t)x->stride * i, s->bytes, s->read, s->write);
    }
}

static bool same_window(const struct site_steps *x, uint32_t corner)
{
    return steps_address(x, corner) >> 32 == x->base >> 32;
}

static struct steps_memo measure_steps(const struct site *s, enum ptx_space space, const struct site_steps *x,
                                       uint8_t low)
{
    uint64_t address[WARP];
    struct ptx_access_counts a = {0};
    for (uint32_t i = 0; i < WARP; i++)
        address[i] = steps_address(x, i);
    measure(s, &a, space, address, x->mask, s->bytes);
    return (struct steps_memo){
        .stride = x->stride,
        .rise = x->rise,
        .mask = x->mask,
        .known = 1,
        .low = low,
        .space = (uint8_t)space,
        .fold = (uint8_t)x->fold,
        .sectors = (uint16_t)a.sectors,
        .ideal_sectors = (uint16_t)a.ideal_sectors,
        .lines = (uint16_t)a.lines,
        .wavefronts = (uint16_t)a.wavefronts,
        .ideal_wavefronts = (uint16_t)a.ideal_wavefronts,
        .same_address = (uint16_t)a.same_address,
    };
}

bool count_steps(struct counter *c, uint32_t number, struct site_steps *x)
{
    const struct site *s = &c->table->sites[number];
    const uint32_t columns = 1u << x->fold;
    if (s->kind != SITE_PLAIN ||
        (s->space == MEM_GENERIC &&
         !(same_window(x, WARP - 1) && same_window(x, columns - 1) && same_window(x, WARP - columns))))
        return false;
    enum ptx_space space = space_of(s->space, &x->base);
    struct ptx_access_counts *a = counts_of(c, number, space);
    if (space == PTX_SPACE_LOCAL || !a)
        return false;
    /* Nothing but the place within a line and the steps matters: mostly it was so the last time. */
    const uint8_t low = x->stride || x->rise ? x->base & 127 : 0;
    struct steps_memo *memo = &c->sites[number]->memo[low / 4];
    if (!memo->known || memo->low != low || memo->space != space || memo->stride != x->stride ||
        memo->rise != x->rise || memo->fold != x->fold || memo->mask != x->mask)
        *memo = measure_steps(s, space, x, low);
    a->requests++;
    a->request_accesses += (uint32_t)__builtin_popcount(x->mask);
    a->sectors += memo->sectors;
    a->ideal_sectors += memo->ideal_sectors;
    a->lines += memo->lines;
    a->wavefronts += memo->wavefronts;
    a->ideal_wavefronts += memo->ideal_wavefronts;
    a->atomics += s->atomic;
    a->same_address += memo->same_address;
    if (memo->same_address > a->same_address_most)
        a->same_address_most = memo->same_address;
    count_bytes(s, a, (uint32_t)__builtin_popcount(x->mask), s->bytes);
    touch_steps(c, s, space, x);
    return true;
}

/* ---- addresses of any kind ---- */

static void count_request(struct counter *c, uint32_t site, const uint64_t *given, uint32_t mask, uint32_t size,
                          bool together)
{
    const struct site *s = &c->table->sites[site];
    uint64_t address[WARP] = {0};
    uint32_t in[COUNTED_SPACES] = {0};
    for (uint32_t m = mask; m; m &= m - 1) {
        unsigned i = (unsigned)__builtin_ctz(m);
        address[i] = given[i];
        in[space_of(s->space, &address[i])] |= 1u << i;
    }
    for (int space = 0; space < COUNTED_SPACES && size; space++) {
        struct ptx_access_counts *a = in[space] ? counts_of(c, site, (enum ptx_space)space) : NULL;
        if (a)
            count_same_space(c, s, a, (enum ptx_space)space, address, in[space], size, together);
    }
}

/* ---- copies and matrices ---- */

/* Both sides of a copy; lanes that are given nothing read nothing, and zeros are written. */
static void count_copy(struct counter *c, uint32_t site, const struct site_values *v, uint32_t mask, bool together)
{
    const struct site *s = &c->table->sites[site];
    struct site side = *s;
    struct ptx_access_counts *global = counts_of(c, site, PTX_SPACE_GLOBAL),
                             *shared = counts_of(c, site, PTX_SPACE_SHARED);
    uint64_t address[WARP] = {0};
    uint32_t reading = 0;
    if (!global || !shared)
        return;
    for (uint32_t m = mask; m; m &= m - 1) {
        unsigned i = (unsigned)__builtin_ctz(m);
        address[i] = narrow_address(MEM_SHARED, v->address[i]);
        reading |= v->length[i] ? 1u << i : 0;
    }
    side.write = true;
    count_same_space(c, &side, shared, PTX_SPACE_SHARED, address, mask, s->bytes, together);
    side.write = false;
    side.read = true;
    if (reading)
        count_same_space(c, &side, global, PTX_SPACE_GLOBAL, v->other, reading, s->bytes, together);
}

static void count_bulk(struct counter *c, uint32_t site, const struct site_values *v, uint32_t mask, bool together)
{
    const struct site *s = &c->table->sites[site];
    struct ptx_access_counts *global = counts_of(c, site, PTX_SPACE_GLOBAL),
                             *shared = counts_of(c, site, PTX_SPACE_SHARED);
    if (!global || !shared)
        return;
    struct ptx_access_counts *from = s->to_global ? shared : global, *to = s->to_global ? global : shared;
    for (uint32_t m = mask; m; m &= m - 1) {
        unsigned i = (unsigned)__builtin_ctz(m);
        uint64_t bytes = (uint32_t)v->length[i], at = v->other[i], end = at + bytes;
        if (!bytes || bytes > MAX_SHARED) /* it will fault */
            continue;
        touch(c, PTX_SPACE_GLOBAL, at, bytes, !s->to_global, s->to_global);
        touch(c, PTX_SPACE_SHARED, narrow_address(MEM_SHARED, v->address[i]), bytes, s->to_global, !s->to_global);
        from->accesses++;
        from->read_bytes += bytes;
        to->accesses++;
        to->write_bytes += bytes;
        if (!together)
            continue;
        from->requests++;
        from->request_accesses++;
        to->requests++;
        to->request_accesses++;
        global->sectors += (end + 31) / 32 - at / 32;
        global->ideal_sectors += (bytes + 31) / 32;
        global->lines += (end + 127) / 128 - at / 128;
        shared->wavefronts += (bytes + 127) / 128; /* it has no lanes whose banks could meet */
        shared->ideal_wavefronts += (bytes + 127) / 128;
    }
}

/* wmma: which lane gets which element is the device's secret, so all that is known of the banks is how many passes the
 * bytes take at least. Base and stride are the same in all lanes. */
static void count_matrix(struct counter *c, uint32_t site, const struct site_values *v, uint32_t mask, bool together)
{
    const struct site *s = &c->table->sites[site];
    uint64_t at[MAX_PIECES], base = v->address[__builtin_ctz(mask)];
    uint64_t stride = (uint64_t)(uint32_t)v->other[__builtin_ctz(mask)] * s->bits / 8;
    enum ptx_space space = space_of(s->space, &base);
    struct ptx_access_counts *a = counts_of(c, site, space);
    uint32_t n = 0, bytes = s->lines * s->bytes;
    if (!a)
        return;
    for (uint32_t line = 0; line < s->lines; line++) {
        uint64_t start = base + stride * line;
        touch(c, space, start, s->bytes, s->read, s->write);
        for (uint64_t k = start & ~UINT64_C(31); k < start + s->bytes && n < MAX_PIECES; k += 32)
            at[n++] = k;
    }
    a->accesses += WARP; /* all lanes must be there */
    a->read_bytes += s->read ? bytes : 0;
    a->write_bytes += s->write ? bytes : 0;
    if (!together)
        return;
    a->requests++;
    a->request_accesses += WARP;
    sort(at, n);
    if (space == PTX_SPACE_SHARED) {
        a->wavefronts += (bytes + 127) / 128;
        a->ideal_wavefronts += (bytes + 127) / 128;
    } else {
        a->sectors += different(at, n, SECTOR_SHIFT);
        a->lines += different(at, n, LINE_SHIFT);
        a->ideal_sectors += (bytes + 31) / 32;
    }
}

static void add_offset(struct site_values *v, uint32_t mask, uint64_t offset)
{
    for (uint32_t m = mask; m; m &= m - 1)
        v->address[__builtin_ctz(m)] += offset;
}

void count_site(struct counter *c, uint32_t site, struct site_values *v, uint32_t mask, bool together)
{
    const struct site *s = &c->table->sites[site];
    switch (s->kind) {
    case SITE_COPY:
        count_copy(c, site, v, mask, together);
        return;
    case SITE_BULK:
        count_bulk(c, site, v, mask, together);
        return;
    case SITE_MATRIX:
        add_offset(v, mask, s->imm);
        if (mask)
            count_matrix(c, site, v, mask, together);
        return;
    case SITE_ROWS:
        mask &= s->lines >= WARP ? UINT32_MAX : (1u << s->lines) - 1;
        break;
    default:
        break;
    }
    add_offset(v, mask, s->imm);
    if (mask)
        count_request(c, site, v->address, mask, s->bytes, together);
}
