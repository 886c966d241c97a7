/* exec.c - a launch: what is checked before it, its workers, which block runs next, its result. */
#include <stdlib.h>
#include <stdio.h>
#include <stdarg.h>
#include <string.h>
#include <time.h>
#include "ptx/counts.h"
#include "ptx/variant.h"
#include "ptx/exec_runtime.h"
#include "ptx/exec_shadow.h"
#include "ptx/guard.h"
#include "ptx/matrix_fast.h"

enum { MAX_WORKERS = 256, MAX_RESIDENT = 4096, GUARD_SLICES = 64, GUARD_TRIES = 3 };
/* Thread-instructions a block gets at a time. Blocks of a cooperative launch are expected to wait for each other: each
 * grid sync costs every waiting block one whole slice. */
#define SLICE              UINT64_C(4000000)
#define COOPERATIVE_SLICE  (SLICE / 256)
#define MAX_RESIDENT_BYTES (UINT64_C(1) << 30)

uint64_t random_next(uint64_t *state) /* splitmix64 */
{
    uint64_t z = *state += UINT64_C(0x9e3779b97f4a7c15);
    z = (z ^ z >> 30) * UINT64_C(0xbf58476d1ce4e5b9);
    z = (z ^ z >> 27) * UINT64_C(0x94d049bb133111eb);
    return z ^ z >> 31;
}

void launch_stop(struct launch *l, enum status status)
{
    int ok = STATUS_OK;
    atomic_compare_exchange_strong(&l->status, &ok, (int)status);
}

static uint64_t now(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (uint64_t)t.tv_sec * UINT64_C(1000000000) + (uint64_t)t.tv_nsec;
}

static uint64_t after(uint64_t start, uint64_t time)
{
    return time < UINT64_MAX - start ? start + time : UINT64_MAX;
}

bool launch_overdue(struct launch *l)
{
    if (l->config->cancel && atomic_load_explicit(l->config->cancel, memory_order_relaxed))
        launch_stop(l, STATUS_CANCELLED);
    if (l->deadline && now() >= l->deadline)
        launch_stop(l, STATUS_LIMIT);
    return launch_stopped(l);
}

static uint64_t real_time(void)
{
    struct timespec now;
    clock_gettime(CLOCK_REALTIME, &now);
    return (uint64_t)now.tv_sec * 1000000000u + (uint64_t)now.tv_nsec;
}

/* Clocks of a multiprocessor tick once per instruction of the thread; the global timer is the host's real time. */
uint64_t clock_value(struct worker *w, const struct thread *t, unsigned mode, uint64_t executed)
{
    uint64_t ticks = t->executed + executed;
    switch (mode) {
    case 0:
        return (uint32_t)ticks;
    case 1:
        return ticks >> 32;
    case 2:
        return ticks;
    case 3:
        return real_time();
    case 4:
        return (uint32_t)real_time();
    default:
        return real_time() >> 32;
    }
}

/* ---- configuration ---- */

__attribute__((format(printf, 2, 3))) static enum status refuse(struct diag *d, const char *format, ...)
{
    if (d) {
        va_list args;
        memset(d, 0, sizeof *d);
        d->offset = -1;
        snprintf(d->where, sizeof d->where, "launch");
        va_start(args, format);
        vsnprintf(d->text, sizeof d->text, format, args);
        va_end(args);
    }
    return STATUS_BAD_INPUT;
}

bool launch_fits(const struct ptx_kernel *k, const uint32_t grid[3], const uint32_t block[3], uint32_t shared)
{
    uint64_t threads = 1;
    for (int i = 0; i < 3; i++) {
        if (grid[i] == 0 || block[i] == 0 || block[i] > MAX_BLOCK_THREADS)
            return false;
        threads *= block[i];
    }
    return threads <= k->max_threads && threads <= MAX_BLOCK_THREADS && block[2] <= 64 && grid[0] <= INT32_MAX &&
           grid[1] <= 65535 && grid[2] <= 65535 &&
           (!k->required_block[0] || memcmp(k->required_block, block, sizeof k->required_block) == 0) &&
           (uint64_t)k->static_shared_bytes + shared + 2 * RESERVED_SHARED <= MAX_SHARED;
}

static enum status check_config(struct launch *l, struct diag *d)
{
    const struct ptx_launch *c = l->config;
    const struct ptx_kernel *k = c->kernel;
    if (!c->module || !k)
        return refuse(d, "no module or kernel given");
    l->module = c->module;
    for (uint32_t i = 0; i < l->module->kernel_count; i++)
        if (&l->module->kernels[i] == k)
            l->entry = l->module->kernel_code[i];
    if (!l->entry)
        return refuse(d, "kernel `%s` is not of this module", k->name);
    const struct diag *refusal = ptx_kernel_refusal(c->module, k);
    if (refusal) {
        if (d)
            *d = *refusal;
        return STATUS_NOT_SUPPORTED;
    }
    uint64_t threads = 1, blocks = 1;
    for (int i = 0; i < 3; i++) {
        if (c->grid[i] == 0 || c->block[i] == 0)
            return refuse(d, "grid and block need at least 1 in every dimension");
        if (c->block[i] > MAX_BLOCK_THREADS)
            return refuse(d, "block is %u x %u x %u threads: at most 1024", c->block[0], c->block[1], c->block[2]);
        threads *= c->block[i];
    }
    if (threads > MAX_BLOCK_THREADS || c->block[2] > 64)
        return refuse(d, "block is %u x %u x %u threads: at most 1024, and 64 in z", c->block[0], c->block[1],
                      c->block[2]);
    if (threads > k->max_threads)
        return refuse(d, "block has %llu threads: kernel `%s` is compiled for at most %u", (unsigned long long)threads,
                      k->name, k->max_threads);
    if (k->required_block[0] && memcmp(k->required_block, c->block, sizeof c->block) != 0)
        return refuse(d, "kernel `%s` needs blocks of %u x %u x %u threads", k->name, k->required_block[0],
                      k->required_block[1], k->required_block[2]);
    if (c->grid[0] > INT32_MAX || c->grid[1] > 65535 || c->grid[2] > 65535)
        return refuse(d, "grid is %u x %u x %u blocks: at most 2147483647 x 65535 x 65535", c->grid[0], c->grid[1],
                      c->grid[2]);
    for (int i = 0; i < 3; i++)
        blocks *= c->grid[i];
    if (k->param_bytes && !c->params)
        return refuse(d, "kernel `%s` takes %u bytes of parameters: none given", k->name, k->param_bytes);
    if (l->module->variable_count && !c->variables)
        return refuse(d, "the module has %u variables: their addresses are not given", l->module->variable_count);
    if (!c->memory)
        return refuse(d, "no memory given");
    if (c->chosen_blocks && c->cooperative)
        return refuse(d, "a cooperative launch needs all its blocks: some are chosen");
    for (uint64_t i = 0; c->chosen_blocks && i < c->chosen_count; i++)
        if (c->chosen_blocks[i] >= blocks)
            return refuse(d, "block %llu is chosen: the grid has %llu", (unsigned long long)c->chosen_blocks[i],
                          (unsigned long long)blocks);
    if (c->cooperative && blocks > MAX_RESIDENT)
        return refuse(d, "a cooperative launch of %llu blocks: at most %d", (unsigned long long)blocks, MAX_RESIDENT);
    if (c->checked + c->shadow + (c->rounding_seed != 0) > 1)
        return refuse(d, "checked mode, shadow mode and rounding by chance do not go together");
    l->memory = c->memory;
    l->block_threads = (uint32_t)threads;
    l->warp_count = (l->block_threads + WARP - 1) / WARP;
    l->block_count = blocks;
    l->run_count = c->chosen_blocks ? c->chosen_count : blocks;
    l->checked = c->checked && !l->guard;
    l->shadow = c->shadow;
    l->rounding = c->rounding_seed != 0;
    if (c->variant && (c->shadow || l->rounding))
        return refuse(d, "a variant does not go with shadow mode or rounding by chance");
    if (c->profile && (c->checked || c->shadow || l->rounding || c->variant))
        return refuse(d, "a profile is made in device mode only, without a variant");
    if (c->matrix_sum < 0 || c->matrix_sum >= PTX_MATRIX_SUM_COUNT)
        return refuse(d, "matrix_sum is %d: at most %d", (int)c->matrix_sum, PTX_MATRIX_SUM_COUNT - 1);
    return STATUS_OK;
}

/* What the variant chooses, beginning with the code. */
static enum status choose_variant(struct launch *l)
{
    const uint64_t variant = l->config->variant;
    l->seed = l->config->seed ? l->config->seed : variant;
    l->matrix_sum = l->config->matrix_sum;
    l->matrix_fast = l->config->one_by_one ? NULL : matrix_fast_choose();
    if (!variant)
        return STATUS_OK;
    l->flushes_atomics = variant_choice(variant, VARIANT_ATOMICS, 2);
    l->matrix_sum = (enum ptx_matrix_sum)variant_choice(variant, VARIANT_MATRIX, PTX_MATRIX_SUM_COUNT);
    l->variant = variant_module(l->module, &l->entry, variant);
    if (!l->variant)
        return STATUS_NO_MEMORY;
    l->module = l->variant;
    return STATUS_OK;
}

static uint64_t param_value(const struct launch *l, const struct fill *f)
{
    uint64_t v = 0;
    if (f->value + (uint64_t)f->bytes <= l->entry->function->param_bytes)
        memcpy(&v, l->params + f->value, f->bytes);
    unsigned shift = 64 - 8u * f->bytes;
    return f->sign ? (uint64_t)((int64_t)(v << shift) >> shift) : v;
}

static uint64_t launch_value(const struct launch *l, const struct fill *f, bool *known)
{
    const struct ptx_launch *c = l->config;
    *known = true;
    switch (f->kind) {
    case FILL_PARAM:
        return param_value(l, f);
    case FILL_VARIABLE:
        return c->variables[f->value] + (uint64_t)f->addend;
    case FILL_SHARED:
        return l->shared_offsets[f->value] + (uint64_t)f->addend;
    case FILL_FUNCTION:
        return PTX_CODE_WINDOW + (uint64_t)(f->value + 1) * CODE_ADDRESS_STEP;
    case FILL_NTID:
        return c->block[f->value];
    case FILL_NCTAID:
        return c->grid[f->value];
    case FILL_NWARPID:
        return l->warp_count;
    case FILL_NSMID:
        return c->sm_count ? c->sm_count : 1;
    case FILL_GRIDID:
        return c->launch_id;
    case FILL_DYNAMIC_SMEM:
        return c->dynamic_shared_bytes;
    case FILL_TOTAL_SMEM:
        return l->shared_bytes - l->layout.reserved_bytes + (f->value ? RESERVED_SHARED : 0);
    case FILL_GRID_SYNC:
        return c->cooperative ? (f->value ? GRID_WINDOW >> 32 : GRID_WINDOW & UINT32_MAX) : 0;
    default:
        *known = false;
        return 0;
    }
}

static enum status make_templates(struct launch *l)
{
    const struct ptx_module *m = l->module;
    l->shared_offsets = calloc(m->shared_count + 1u, sizeof *l->shared_offsets);
    l->templates = calloc(m->code_count + 1u, sizeof(union slot *));
    l->params = calloc(l->entry->function->param_bytes + 16u, 1);
    if (!l->shared_offsets || !l->templates || !l->params)
        return STATUS_NO_MEMORY;
    if (l->config->params)
        memcpy(l->params, l->config->params, l->entry->function->param_bytes);
    if (layout_kernel(m, l->entry->function->index, l->shared_offsets, &l->layout))
        return STATUS_NO_MEMORY;
    uint64_t shared = (uint64_t)l->layout.dynamic_offset + l->config->dynamic_shared_bytes;
    if (l->config->dynamic_shared_bytes == 0)
        shared = (uint64_t)l->layout.reserved_bytes + l->layout.static_bytes;
    if (shared > MAX_SHARED)
        return STATUS_BAD_INPUT;
    l->shared_bytes = (uint32_t)shared;
    for (uint32_t i = 0; i < m->code_count; i++) {
        const struct code *k = m->code[i];
        if (!l->layout.reachable[i] || !k->defined)
            continue;
        union slot *t = l->templates[i] = calloc(k->slot_count + 1u, sizeof *t);
        if (!t)
            return STATUS_NO_MEMORY;
        if (k->slot_count)
            memcpy(t, k->frame, k->slot_count * sizeof *t);
        for (uint32_t f = 0; f < k->fill_count; f++) {
            bool known;
            uint64_t v = launch_value(l, &k->fills[f], &known);
            if (known)
                t[k->fills[f].slot].u64 = v;
        }
    }
    return STATUS_OK;
}

/* ---- order of blocks ---- */

/* A seeded bijection on [0, count): a Feistel network over the next even number of bits, walked until it lands inside.
 */
static uint64_t permute(uint64_t index, uint64_t count, uint64_t seed)
{
    unsigned half = 1;
    while (half < 32 && (UINT64_C(1) << (2 * half)) < count)
        half++;
    uint64_t mask = (UINT64_C(1) << half) - 1;
    do {
        uint64_t left = index >> half, right = index & mask;
        for (uint64_t round = 0; round < 4; round++) {
            uint64_t state = seed ^ (round << 56) ^ right, mixed = random_next(&state) & mask, next = left ^ mixed;
            left = right;
            right = next;
        }
        index = left << half | right;
    } while (index >= count);
    return index;
}

static bool next_block(struct launch *l, uint64_t *linear)
{
    uint64_t i = atomic_fetch_add(&l->next_block, 1);
    if (i >= l->run_count)
        return false;
    *linear = l->seed && l->run_count > 1 ? permute(i, l->run_count, l->seed) : i;
    if (l->config->chosen_blocks)
        *linear = l->config->chosen_blocks[*linear];
    return true;
}

/* About a hundred times per launch. */
static void block_ended(struct launch *l)
{
    uint64_t done = atomic_fetch_add(&l->blocks_done, 1) + 1, step = l->run_count / 100 + 1;
    if (!l->config->progress || launch_stopped(l) || (done % step && done != l->run_count))
        return;
    pthread_mutex_lock(&l->lock);
    l->config->progress(l->config->progress_context, done, l->run_count);
    pthread_mutex_unlock(&l->lock);
}

/* ---- workers ---- */

static bool add_block(struct worker *w, uint64_t linear)
{
    if (w->block_count == w->block_capacity) {
        uint32_t want = w->block_capacity ? w->block_capacity * 2 : 4;
        struct block **fresh = realloc((void *)w->blocks, want * sizeof(struct block *));
        if (!fresh)
            return false;
        w->blocks = fresh;
        w->block_capacity = want;
    }
    struct block *b = block_create(w);
    if (!b)
        return false;
    w->blocks[w->block_count++] = b;
    return block_start(b, linear);
}

static uint64_t block_bytes(const struct launch *l)
{
    return (uint64_t)l->block_threads * (l->entry->slot_count * 8u + l->entry->local_bytes + 256u) + l->shared_bytes;
}

/* Under guard: why a block that did not end in so many slices is to be left to the checked loop; NULL: it is not. By
 * far the most blocks end sooner. */
static const char *waits(struct block *b, uint32_t slices)
{
    const bool look = slices && !(slices & (slices - 1));
    return look && guard_waits(b)  ? "a block that waits for others"
           : slices > GUARD_SLICES ? "a block that does not end"
                                   : NULL;
}

/* Blocks wait for each other only when something is wrong with the order: a block that has used a long slice without
 * ending may be spinning for a later one, which then becomes resident beside it. */
static void run_blocks(struct worker *w)
{
    struct launch *l = w->launch;
    uint64_t linear;
    bool more = true;
    if (l->config->cooperative) {
        while (next_block(l, &linear))
            if (!add_block(w, linear)) {
                launch_stop(l, STATUS_NO_MEMORY);
                return;
            }
        more = false;
    } else if (next_block(l, &linear)) {
        if (!add_block(w, linear)) {
            launch_stop(l, STATUS_NO_MEMORY);
            return;
        }
    } else {
        return;
    }
    uint32_t running = w->block_count, slices = 0;
    while (running && !launch_stopped(l)) {
        uint64_t slice = l->config->cooperative ? COOPERATIVE_SLICE : SLICE << (running < 6 ? running : 6);
        for (uint32_t i = 0; i < w->block_count && !launch_stopped(l); i++) {
            struct block *b = w->blocks[i];
            if (b->finished)
                continue;
            const char *doubt = l->guard && more ? waits(b, slices) : NULL;
            if (doubt) {
                guard_doubt(l->guard, doubt, 0);
                launch_stop(l, STATUS_FAULT);
            }
            if (!b->finished)
                block_run(b, slice);
            while (b->finished && !launch_stopped(l)) {
                block_ended(l);
                more = more && next_block(l, &linear);
                if (!more)
                    break;
                slices = 0;
                if (!block_start(b, linear)) {
                    launch_stop(l, STATUS_NO_MEMORY);
                    return;
                }
                block_run(b, slice);
            }
            running -= b->finished;
        }
        slices++;
        if (l->guard)
            continue; /* one block after the other */
        if (running == w->block_count && more && running < MAX_RESIDENT &&
            running * block_bytes(l) < MAX_RESIDENT_BYTES) {
            more = next_block(l, &linear);
            if (more && !add_block(w, linear)) {
                launch_stop(l, STATUS_NO_MEMORY);
                return;
            }
            running = w->block_count;
            for (uint32_t i = 0; i < w->block_count; i++)
                running -= w->blocks[i]->finished;
        }
    }
}

static void *worker_main(void *argument)
{
    struct worker *w = argument;
    run_blocks(w);
    for (uint32_t i = 0; i < w->block_count; i++)
        block_destroy(w->blocks[i]);
    free((void *)w->blocks);
    return NULL;
}

static bool finish_counting(struct launch *l, const struct worker *workers, uint32_t count)
{
    struct counter *counters[MAX_WORKERS];
    for (uint32_t i = 0; i < count; i++)
        counters[i] = workers[i].counter;
    return counts_finish(l->counting, counters, count, &l->result->profile);
}

static enum status run_workers(struct launch *l)
{
    uint32_t count = l->config->workers ? l->config->workers : 1;
    if (count > MAX_WORKERS)
        count = MAX_WORKERS;
    if (count > l->run_count)
        count = (uint32_t)l->run_count;
    if (l->checked || l->shadow || l->guard)
        count = 1; /* findings must not depend on the host's timing */
    if (count == 0)
        count = 1;
    l->multi = count > 1;
    struct worker *workers = calloc(count, sizeof *workers);
    if (!workers)
        return STATUS_NO_MEMORY;
    bool ok = true;
    for (uint32_t i = 0; i < count && ok; i++) {
        workers[i].launch = l;
        workers[i].cache = calloc(l->module->access_count + 1u, sizeof *workers[i].cache);
        workers[i].counter = l->counting ? counter_create(l->counting) : NULL;
        ok = workers[i].cache != NULL && (!l->counting || workers[i].counter);
    }
    uint32_t started = 0;
    for (; ok && started + 1 < count; started++)
        if (pthread_create(&workers[started + 1].thread, NULL, worker_main, &workers[started + 1]) != 0)
            break; /* fewer will do */
    if (ok)
        worker_main(&workers[0]);
    for (uint32_t i = 1; i <= started; i++)
        pthread_join(workers[i].thread, NULL);
    for (uint32_t i = 0; i < count; i++) {
        struct ptx_counts *c = &l->result->counts, *part = &workers[i].counts;
        c->thread_instructions += part->thread_instructions;
        c->warp_instructions += part->warp_instructions;
        c->blocks += part->blocks;
        c->threads += part->threads;
        l->result->lane_steps += workers[i].lane_steps;
        c->tainted_threads += part->tainted_threads;
        c->global_read_bytes += part->global_read_bytes;
        c->global_write_bytes += part->global_write_bytes;
        free(workers[i].cache);
        free(workers[i].textures);
    }
    if (l->counting) {
        ok = ok && finish_counting(l, workers, count);
        for (uint32_t i = 0; i < count; i++)
            counter_free(workers[i].counter);
    }
    free(workers);
    return ok ? STATUS_OK : STATUS_NO_MEMORY;
}

void launch_free(struct launch *l)
{
    bool root = l->root == l;
    grids_free(l);
    for (uint32_t i = 0; l->templates && i < l->module->code_count; i++)
        free(l->templates[i]);
    for (uint32_t i = 0; i < atomic_load(&l->found_count); i++)
        free(l->found[i]);
    free(l->templates);
    free(l->lane_chains);
    free(l->layout.reachable);
    free(l->shared_offsets);
    free(l->params);
    count_table_free(l->counting);
    if (l->checked)
        check_launch_end(l);
    if (root) {
        fault_table_free(l->faults);
        shadow_launch_end(l);
        ptx_module_free(l->own_module);
    }
    variant_module_free(l->variant, l->config->module);
    pthread_mutex_destroy(&l->lock);
    free(l);
}

struct launch *launch_new(const struct ptx_launch *config, struct launch *root, struct ptx_result *result)
{
    struct launch *l = calloc(1, sizeof *l);
    if (!l)
        return NULL;
    l->config = config;
    l->result = result;
    l->root = root ? root : l;
    if (root)
        l->deadline = root->deadline;
    else if (config->time_limit_ns)
        l->deadline = after(now(), config->time_limit_ns);
    pthread_mutex_init(&l->lock, NULL);
#if defined(__x86_64__) && !defined(__clang__)
    l->fma = __builtin_cpu_supports("fma") && __builtin_cpu_supports("avx2") && __builtin_cpu_supports("bmi2");
#endif
    return l;
}

/* Tables of findings: one set for all grids. */
static bool make_tables(struct launch *l)
{
    if (l->root == l)
        l->faults = fault_table_create(l->config->fault_limit);
    else
        l->faults = l->root->faults;
    if (!l->faults || (l->checked && !check_launch_start(l)))
        return false;
    if (l->root == l)
        return !l->shadow || shadow_launch_start(l);
    l->numbers = l->root->numbers;
    return true;
}

enum status launch_run(struct launch *l, struct diag *diag)
{
    const struct ptx_launch *config = l->config;
    enum status status = check_config(l, diag);
    if (status == STATUS_OK)
        status = choose_variant(l);
    if (status == STATUS_OK) {
        status = make_templates(l);
        if (status == STATUS_BAD_INPUT)
            (void)refuse(diag, "kernel `%s` with %u bytes of dynamic shared memory needs more than %d bytes",
                         config->kernel->name, config->dynamic_shared_bytes, MAX_SHARED);
    }
    if (status != STATUS_OK)
        return status;
    l->grid_range = (struct ptx_range){
        .address = GRID_WINDOW, .bytes = config->cooperative ? GRID_WORKSPACE : 0, .host = l->grid_workspace};
    if (!make_tables(l) || (config->profile && !(l->counting = count_table_make(l))))
        return STATUS_NO_MEMORY;
    bool lanes = lanes_launch(l);
    if (l->guard && !lanes)
        guard_doubt(l->guard, "a kernel that does not run in lock-step", 0);
    if (l->guard && (!lanes || !guard_start(l->guard, l)))
        return STATUS_FAULT;
    if (lanes && !lanes_chain(l))
        return STATUS_NO_MEMORY;
    status = run_workers(l);
    return status == STATUS_OK ? (enum status)atomic_load(&l->status) : status;
}

/* `guard`: a try of a checked launch in lock-step, or NULL. */
static enum status run_once(const struct ptx_launch *config, struct guard *guard, struct ptx_result *result,
                            struct diag *diag)
{
    memset(result, 0, sizeof *result);
    struct launch *l = launch_new(config, NULL, result);
    if (!l)
        return result->status = STATUS_NO_MEMORY;
    l->guard = guard;
    enum status status = launch_run(l, diag);
    if (status == STATUS_OK)
        status = grids_run(l, diag);
    if (l->faults && (!fault_table_finish(l->faults, result) || !shadow_launch_finish(l)))
        status = STATUS_NO_MEMORY;
    result->status = status;
    if (guard) { /* cancelled, or out of time: nothing was found until then */
        bool sound = !guard->doubt && (status == STATUS_OK || status == STATUS_CANCELLED ||
                                       (status == STATUS_LIMIT && l->deadline && now() >= l->deadline));
        result->guarded = sound;
        guard_end(guard, sound);
    }
    launch_free(l);
    return status;
}

/* A checked launch runs in lock-step first, under guard; when there is the slightest doubt it runs again. */
enum status ptx_run(const struct ptx_launch *config, struct ptx_result *result, struct diag *diag)
{
    struct guard *g = guard_create(config);
    const char *doubt = g ? NULL : "";
    uint32_t line = 0;
    for (int tries = 0; g && tries < GUARD_TRIES; tries++) {
        enum status status = run_once(config, g, result, diag);
        if (result->guarded || status == STATUS_BAD_INPUT || status == STATUS_NOT_SUPPORTED) {
            guard_free(g);
            return status;
        }
        if (!g->doubt)
            guard_doubt(g, status == STATUS_FAULT ? "a fault" : status == STATUS_LIMIT ? "a limit" : "no memory", 0);
        doubt = g->doubt;
        line = g->doubt_line;
        ptx_result_free(result);
        if (!g->again)
            break;
        g->doubt = NULL;
    }
    guard_free(g);
    enum status status = run_once(config, NULL, result, diag);
    result->doubt = doubt;
    result->doubt_line = line;
    return status;
}

void ptx_result_free(struct ptx_result *result)
{
    free(result->faults);
    free(result->events);
    ptx_profile_free(result->profile);
    memset(result, 0, sizeof *result);
}
