#include "softgpu/pages.h"

#include <stdatomic.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "softgpu/driver.h"

enum { MIN_PAGES = 32, REACH = 256 }; /* pages to either side that pages_run() looks at */
#define PAGE_COUNT  (PAGES_WINDOW_BYTES / PAGE_BYTES)
#define ACCESS_MASK UINT64_C(3)
#define REACH_SHIFT 2 /* eight bits: devices */
#define HOST_MASK   (~UINT64_C(4095))

static uint64_t base_address;
static char *arena;             /* physical memory */
static uint64_t physical_count; /* in pages, of each device; those of device 1 follow those of device 0 */
static uint64_t physical_free[PAGE_DEVICES];
static uint8_t *physical_used;   /* one byte per physical page */
static uint8_t *physical_filled; /* with a variant: the page got its first contents */
static uint32_t *physical_file;  /* number of the file that the page lies in, 0 for none */
static uint8_t *address_used;    /* one byte per page of the window */
/* One word per page of the window: host address | devices | access right, 0 when unmapped. Atomic because kernels look
 * while the program maps other pages. */
static _Atomic uint64_t *page_table;

static void *map_lazily(uint64_t bytes)
{
    void *p = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    return p == MAP_FAILED ? NULL : p;
}

/* Keeps the host out of the window. Best effort: under a sanitizer the place may be taken, then only an unlucky mmap of
 * the program at that very address could be mistaken for device memory. */
static void fence_window(void)
{
    void *at = (void *)(uintptr_t)base_address;
    void *p = mmap(at, PAGES_WINDOW_BYTES, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE | MAP_FIXED_NOREPLACE,
                   -1, 0);
    if (p != MAP_FAILED && p != at)
        munmap(p, PAGES_WINDOW_BYTES); /* kernels before 4.17 take the address as a mere hint */
}

bool pages_init(void)
{
    const struct config *c = config_get();
    base_address = UINT64_C(0x0a0000000000) + (c->variant & 0xfff) * PAGE_BYTES;
    physical_count = c->memory_bytes / PAGE_BYTES;
    /* Where the system commits no more than it has (vm.overcommit_memory 2, ulimit -v), a smaller device. */
    while (!(arena = map_lazily((physical_count * c->devices + 1) * PAGE_BYTES)) && physical_count > MIN_PAGES)
        physical_count /= 2;
    for (unsigned i = 0; i < c->devices; i++)
        physical_free[i] = physical_count;
    physical_used = map_lazily(physical_count * c->devices);
    physical_filled = map_lazily(physical_count * c->devices);
    physical_file = map_lazily(physical_count * c->devices * sizeof *physical_file);
    address_used = map_lazily(PAGE_COUNT);
    page_table = map_lazily(PAGE_COUNT * sizeof *page_table);
    if (!arena || !physical_used || !physical_filled || !physical_file || !address_used || !page_table)
        return false;
    arena += PAGE_BYTES - (uintptr_t)arena % PAGE_BYTES;
    fence_window();
    return true;
}

uint64_t pages_base(void)
{
    return base_address;
}

uint64_t pages_free_count(unsigned device)
{
    return physical_free[device];
}

uint64_t pages_total_count(void)
{
    return physical_count;
}

/* ---- address ranges --------------------------------------------------------------------------------------------- */

/* First fit: `count` unused bytes in used[from, to), starting at a multiple of `step`; `to` when there are none. */
static uint64_t first_fit(const uint8_t *used, uint64_t from, uint64_t to, uint64_t count, uint64_t step)
{
    uint64_t at = from;
    while (at < to && count <= to - at) {
        uint64_t n = 0;
        while (n < count && !used[at + n])
            n++;
        if (n == count)
            return at;
        at += n + 1;
        at = (at + step - 1) / step * step;
    }
    return to;
}

uint64_t pages_reserve(uint64_t count, uint64_t align, bool high, uint64_t hint)
{
    uint64_t from = high ? PAGE_COUNT / 2 : 0, to = high ? PAGE_COUNT : PAGE_COUNT / 2;
    uint64_t step = align > PAGE_BYTES ? align / PAGE_BYTES : 1, at = to;
    /* With a variant the window does not start at a multiple of large alignments. */
    if (step > 1) {
        uint64_t skew = base_address / PAGE_BYTES % step;
        for (at = from + (step - (skew + from) % step) % step; at < to && count <= to - at; at += step)
            if (!memchr(address_used + at, 1, count))
                break;
        if (at >= to || count > to - at)
            return 0;
    } else {
        if (hint && hint % PAGE_BYTES == 0 && pages_in_window(hint)) {
            at = (hint - base_address) / PAGE_BYTES;
            if (at < from || at >= to || count > to - at || memchr(address_used + at, 1, count))
                at = to;
        }
        if (at == to)
            at = first_fit(address_used, from, to, count, 1);
        if (at == to)
            return 0;
    }
    memset(address_used + at, 1, count);
    return base_address + at * PAGE_BYTES;
}

void pages_unreserve(uint64_t address, uint64_t count)
{
    memset(address_used + (address - base_address) / PAGE_BYTES, 0, count);
}

/* ---- physical pages --------------------------------------------------------------------------------------------- */

/* A sound device may hold anything in memory that was never written. */
static void fill_first_time(uint64_t page, uint64_t variant)
{
    uint64_t *words = (uint64_t *)(arena + page * PAGE_BYTES), x = variant ^ page;
    for (size_t i = 0; i < PAGE_BYTES / sizeof *words; i++) {
        x = x * UINT64_C(6364136223846793005) + UINT64_C(1442695040888963407);
        words[i] = x;
    }
    physical_filled[page] = 1;
}

static void *take_page(uint64_t page)
{
    uint64_t variant = config_get()->variant;
    physical_used[page] = 1;
    physical_free[page / physical_count]--;
    if (variant && !physical_filled[page])
        fill_first_time(page, variant);
    return arena + page * PAGE_BYTES;
}

bool pages_take(unsigned device, uint64_t count, void **out)
{
    uint64_t from = device * physical_count, to = from + physical_count;
    if (count > physical_free[device])
        return false;
    uint64_t at = first_fit(physical_used, from, to, count, 1);
    if (at < to) {
        for (uint64_t i = 0; i < count; i++)
            out[i] = take_page(at + i);
        return true;
    }
    for (uint64_t i = 0, page = from; i < count; page++)
        if (!physical_used[page])
            out[i++] = take_page(page);
    return true;
}

static uint64_t number_of(const void *host)
{
    return (uint64_t)((const char *)host - arena) / PAGE_BYTES;
}

/* Whoever still maps the file must not see what the page is used for next. */
static bool out_of_file(void *page)
{
    if (mmap(page, PAGE_BYTES, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE | MAP_FIXED, -1,
             0) == MAP_FAILED)
        return false;
    physical_file[number_of(page)] = 0;
    return true;
}

void pages_give(uint64_t count, void *const *pages)
{
    for (uint64_t i = 0; i < count; i++) {
        uint64_t page = number_of(pages[i]);
        if (physical_file[page] && !out_of_file(pages[i]))
            continue; /* never given out again */
        physical_used[page] = 0;
        physical_free[page / physical_count]++;
    }
}

bool pages_into_file(void *page, int fd, uint64_t offset, uint32_t file)
{
    unsigned char resident[PAGE_BYTES / 4096];
    /* What was never touched reads zero in a new file, too. */
    bool known = mincore(page, PAGE_BYTES, resident) == 0;
    for (uint64_t i = 0; i < PAGE_BYTES / 4096; i++)
        if ((!known || resident[i] & 1) &&
            pwrite(fd, (char *)page + i * 4096, 4096, (off_t)(offset + i * 4096)) != 4096)
            return false;
    if (mmap(page, PAGE_BYTES, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_FIXED, fd, (off_t)offset) == MAP_FAILED)
        return false;
    physical_file[number_of(page)] = file;
    return true;
}

uint32_t pages_file(const void *page)
{
    return physical_file[number_of(page)];
}

/* ---- the map ---------------------------------------------------------------------------------------------------- */

static uint64_t entry_at(uint64_t page)
{
    return atomic_load_explicit(&page_table[page], memory_order_acquire);
}

void pages_map(uint64_t address, void *host, enum page_access access, unsigned reach)
{
    uint64_t page = (address - base_address) / PAGE_BYTES;
    atomic_store_explicit(&page_table[page], (uintptr_t)host | (uint64_t)reach << REACH_SHIFT | access,
                          memory_order_release);
}

void *pages_unmap(uint64_t address)
{
    uint64_t page = (address - base_address) / PAGE_BYTES;
    return (void *)(uintptr_t)(atomic_exchange(&page_table[page], 0) & HOST_MASK);
}

void *pages_mapped(uint64_t address, enum page_access *access, unsigned *reach)
{
    uint64_t entry = entry_at((address - base_address) / PAGE_BYTES);
    *access = (enum page_access)(entry & ACCESS_MASK);
    *reach = (unsigned)(entry >> REACH_SHIFT) & ((1u << PAGE_DEVICES) - 1);
    return (void *)(uintptr_t)(entry & HOST_MASK);
}

bool pages_run(uint64_t address, struct pages_run *run)
{
    if (!pages_in_window(address))
        return false;
    uint64_t page = (address - base_address) / PAGE_BYTES, entry = entry_at(page);
    if (!entry)
        return false;
    uint64_t first = page, last = page;
    while (first > 0 && page - first < REACH && entry_at(first - 1) == entry - (page - first + 1) * PAGE_BYTES)
        first--;
    while (last + 1 < PAGE_COUNT && last - page < REACH && entry_at(last + 1) == entry + (last + 1 - page) * PAGE_BYTES)
        last++;
    run->address = base_address + first * PAGE_BYTES;
    run->bytes = (last - first + 1) * PAGE_BYTES;
    run->host = (char *)(uintptr_t)((entry & HOST_MASK) - (page - first) * PAGE_BYTES);
    run->access = (enum page_access)(entry & ACCESS_MASK);
    run->reach = (unsigned)(entry >> REACH_SHIFT) & ((1u << PAGE_DEVICES) - 1);
    return true;
}
