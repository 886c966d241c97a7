/* counts.h - inside of exact counting (ptx_launch.profile): what is known of every PTX instruction before a launch, and
 * what each worker counts while it runs. The public result is struct ptx_profile.
 *
 *     counts_table.c   which micro-operations are whose PTX instruction's, of which class, with how many floating-point
 *                      operations; and which of them touch memory, and how ("sites")
 *     counts.c         a worker's counters; the result, made of all workers'
 *     counts_access.c  one request to memory: sectors, lines, bank conflicts, bytes touched
 *     lanes_count.c    handlers that count, put before the lock-step engine's plain ones
 *     exec_counted.c   the loop of one thread with counting
 *
 * What is counted while running is small: per micro-operation how many lanes and warps executed it, kept as differences
 * at the two ends of each straight run, and per site what its accesses were like. All are sums, sets or maxima: the
 * order of blocks and the number of workers do not matter.
 */
#ifndef PTX_COUNTS_H
#define PTX_COUNTS_H

#include "common/map.h"
#include "ptx/exec.h"

enum { NO_SITE = 0, COUNTED_SPACES = PTX_SPACE_SURFACE };

/* How a site's lanes access memory. */
enum site_kind {
    SITE_PLAIN,  /* `bytes` bytes at slot + imm, each lane its own */
    SITE_COPY,   /* cp.async: `bytes` bytes from global to shared memory */
    SITE_BULK,   /* cp.async.bulk: any number of bytes */
    SITE_ROWS,   /* ldmatrix and its kind: the first `lines` lanes have addresses, of `bytes` bytes each */
    SITE_MATRIX, /* wmma: `lines` runs of `bytes` bytes, at slot + imm and then by a stride in elements of `bits` */
};
struct site {
    uint32_t function, pc;
    enum site_kind kind;
    enum mem_space space; /* MEM_GENERIC: by address */
    bool read, write, atomic;
    bool to_global;                         /* SITE_BULK */
    uint32_t slot, other_slot, length_slot; /* struct site_values */
    uint32_t bits, lines;
    uint32_t bytes;
    uint64_t imm;
};

/* One PTX instruction of a function that the kernel can reach. */
struct counted {
    uint32_t function, statement, line;
    uint32_t issue_pc, done_pc; /* executed when issue_pc was, its guard included; and done_pc: its guard was true */
    bool guarded;
    uint8_t class, flop_type;
    uint32_t flops; /* of one thread; of a warp when `warp_flops` */
    bool warp_flops, branch;
    uint32_t param_bytes; /* of ld.param and st.param: bytes of a thread, which no site sees */
    bool param_write;
};

struct count_table {
    const struct ptx_module *module;
    uint32_t *base;     /* by function: number of its first micro-operation */
    uint32_t pc_count;  /* of all reachable functions */
    uint32_t *site_of;  /* by number: its site, NO_SITE: it touches no memory */
    struct site *sites; /* sites[0] is none */
    uint32_t site_count, site_capacity;
    struct counted *list; /* by function, then in order */
    uint32_t count;
    uint32_t entry_base; /* of the kernel itself */
    /* The lock-step engine's handlers, by partial, that count and go on to the plain ones. */
    const struct insn *(**handlers[2])(struct lanes *L, const struct insn *in);
};
/* NULL: no memory. */
struct count_table *count_table_make(const struct launch *l);
void count_table_free(struct count_table *t);

/* Addresses that grow by steps: lane i's is base + stride * (i % 2^fold) + rise * (i / 2^fold). */
struct site_steps {
    uint64_t base;
    int64_t stride, rise;
    uint32_t fold, mask; /* mask: the lanes */
};
static inline uint64_t steps_address(const struct site_steps *x, uint32_t lane)
{
    return x->base + (uint64_t)x->stride * (lane & ((1u << x->fold) - 1)) + (uint64_t)x->rise * (lane >> x->fold);
}

/* A request whose addresses grow by steps, and what it was like. */
struct steps_memo {
    int64_t stride, rise;
    uint32_t mask;
    uint8_t known, low, space, fold; /* low: the first lane's place in its line */
    uint16_t sectors, ideal_sectors, lines, wavefronts, ideal_wavefronts, same_address;
};

/* What a site's requests were like, by space that they went to. */
struct site_counts {
    struct ptx_access_counts in[COUNTED_SPACES];
    struct steps_memo memo[32]; /* by word of the line: the last one */
};

enum { TOUCH_PAGE = 4096, TOUCH_RECENT = 256 };
#define TOUCH_CONST (UINT64_C(1) << 63) /* in a page's key: touched as .const */
struct touch_page {                     /* one bit per byte */
    uint64_t read[TOUCH_PAGE / 64], written[TOUCH_PAGE / 64];
};

struct counter {
    const struct count_table *table;
    uint64_t *lanes, *warps;    /* by number, as differences to the one before; one longer */
    uint64_t *alone;            /* by number: executions by threads that ran one at a time */
    uint64_t *divergent;        /* by number: of branches */
    struct site_counts **sites; /* by site; NULL: never used */
    struct map pages; /* address / TOUCH_PAGE -> struct touch_page *; shared and local memory in their windows */
    struct {
        uint64_t number;
        struct touch_page *page;
    } recent[TOUCH_RECENT];
    bool no_memory;
};
struct counter *counter_create(const struct count_table *t);
void counter_free(struct counter *c);

/* A group of a warp in lock-step executed the kernel's micro-operations [from, to). */
static inline void counter_run(struct counter *c, uint32_t from, uint32_t to, uint32_t mask)
{
    uint64_t n = (uint64_t)__builtin_popcount(mask);
    if (from == to)
        return;
    uint64_t *lanes = c->lanes + c->table->entry_base, *warps = c->warps + c->table->entry_base;
    lanes[from] += n;
    lanes[to] -= n;
    warps[from]++;
    warps[to]--;
}

/* The counts of all workers, which are changed, as the launch's result. False: no memory. */
bool counts_finish(const struct count_table *t, struct counter *const *counters, uint32_t count,
                   struct ptx_profile **out);

/* ---- counts_access.c ---- */
/* What the slots of a site have in each lane: its own, its other one (the other address of a copy, or the stride of a
 * matrix), and a copy's length. */
struct site_values {
    uint64_t address[WARP], other[WARP], length[WARP];
};
/* The lanes of `mask` do what the site does. `together`: they are a warp's; else one thread's, of whose warp nothing is
 * known. Changes *v. */
void count_site(struct counter *c, uint32_t site, struct site_values *v, uint32_t mask, bool together);

/* The same for lanes of a warp whose addresses, offset included, grow by steps; changes *steps. False: it must be told
 * lane by lane. */
bool count_steps(struct counter *c, uint32_t site, struct site_steps *steps);

/* ---- exec_counted.c ---- */
void count_thread(struct worker *w, struct thread *t, uint32_t site);

/* ---- lanes_count.c ---- */
/* Puts handlers that count before the launch's plain ones. False: no memory. */
bool lanes_count_install(struct launch *l);

#endif
