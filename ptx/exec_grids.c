/* exec_grids.c - what a grid's threads put into streams, run when its blocks have ended: kernels, copies, fills. */
#include <stdlib.h>
#include <string.h>
#include "ptx/exec_runtime.h"

/* ---- memory ---- */

static const struct ptx_range *parameter_range(struct launch *l, uint64_t address)
{
    const struct ptx_range *found = NULL;
    uint64_t index = (address - PARAMETER_WINDOW) / PARAMETER_STEP;
    pthread_mutex_lock(&l->lock);
    if (l->grids && index < l->grids->buffer_count) {
        const struct ptx_range *r = &l->grids->buffers[index]->range;
        found = address - r->address < r->bytes ? r : NULL;
    }
    pthread_mutex_unlock(&l->lock);
    return found;
}

const struct ptx_range *grids_range(struct launch *l, uint64_t address)
{
    if (address >> 48 == PARAMETER_WINDOW >> 48)
        return parameter_range(l, address);
    return address - STRING_WINDOW < runtime_strings.bytes ? &runtime_strings : NULL;
}

struct grids *grids_of(struct launch *l)
{
    if (!l->grids)
        l->grids = calloc(1, sizeof *l->grids);
    return l->grids;
}

static void list_free(struct work_list *list)
{
    for (uint32_t i = 0; i < list->count; i++)
        free(list->items[i].params);
    free(list->items);
    *list = (struct work_list){0};
}

void grids_free(struct launch *l)
{
    struct grids *g = l->grids;
    if (!g)
        return;
    list_free(&g->works);
    list_free(&g->tails);
    map_free(&g->streams);
    map_free(&g->events);
    for (uint32_t i = 0; i < g->buffer_count; i++)
        free(g->buffers[i]);
    free(g->buffers);
    free(g);
    l->grids = NULL;
}

/* ---- streams ---- */

static bool list_add(struct work_list *list, const struct work *work)
{
    if (list->count == list->capacity) {
        uint32_t want = list->capacity ? list->capacity * 2 : 8;
        struct work *fresh = realloc(list->items, want * sizeof *fresh);
        if (!fresh)
            return false;
        list->items = fresh;
        list->capacity = want;
    }
    list->items[list->count++] = *work;
    return true;
}

/* Each block has a default stream, each thread one of its own; streams that kernels made are known by their handles.
 * False: no stream with an order. */
static bool stream_key(const struct grids *g, const struct block *b, const struct thread *t, uint64_t stream,
                       uint64_t *key)
{
    uint64_t last;
    *key = stream;
    if (stream == STREAM_DEFAULT || stream == STREAM_LEGACY)
        *key = UINT64_C(1) << 63 | b->linear;
    else if (stream == STREAM_PER_THREAD)
        *key = UINT64_C(1) << 62 | (b->linear * MAX_BLOCK_THREADS + t->index);
    else
        return map_get(&g->streams, stream, &last);
    return true;
}

bool grids_last(struct worker *w, const struct block *b, const struct thread *t, uint64_t stream, uint32_t *last)
{
    struct launch *l = w->launch;
    uint64_t key, found = 0;
    pthread_mutex_lock(&l->lock);
    const struct grids *g = grids_of(l);
    bool known = g && stream_key(g, b, t, stream, &key);
    if (known)
        (void)map_get(&g->streams, key, &found);
    pthread_mutex_unlock(&l->lock);
    *last = (uint32_t)found;
    return known;
}

static enum runtime_error add(struct launch *l, const struct block *b, const struct thread *t, uint64_t stream,
                              struct work *work)
{
    struct grids *g = grids_of(l);
    uint32_t limit = l->root->config->device_launch_limit;
    uint64_t key, last = 0;
    if (!g)
        return RUNTIME_MEMORY;
    if (l->root->pending >= (limit ? limit : PENDING_LAUNCHES))
        return RUNTIME_RESOURCES;
    if (stream == STREAM_TAIL || stream == STREAM_FORGET) {
        if (!list_add(stream == STREAM_TAIL ? &g->tails : &g->works, work))
            return RUNTIME_MEMORY;
    } else {
        if (!stream_key(g, b, t, stream, &key))
            return RUNTIME_HANDLE;
        (void)map_get(&g->streams, key, &last);
        work->after[0] = (uint32_t)last;
        if (!map_put(&g->streams, key, g->works.count + 1u))
            return RUNTIME_MEMORY;
        if (!list_add(&g->works, work)) {
            (void)map_put(&g->streams, key, last);
            return RUNTIME_MEMORY;
        }
    }
    l->root->pending++;
    return RUNTIME_OK;
}

enum runtime_error grids_add(struct worker *w, const struct block *b, const struct thread *t, uint64_t stream,
                             struct work *work)
{
    struct launch *l = w->launch;
    work->asker = l->named;
    pthread_mutex_lock(&l->lock);
    enum runtime_error error = add(l, b, t, stream, work);
    pthread_mutex_unlock(&l->lock);
    if (error != RUNTIME_OK)
        free(work->params);
    return error;
}

/* ---- copies and fills ---- */

/* One block of 128 threads goes through rows of all slices; by 8 bytes where everything is a multiple of 8. Made of
 * PTX, so that bounds, undefined bytes, shadows and counts come from where they come for any access. */
#define WALK(params, prepare, wide, narrow)                                                                            \
    "(" params ".param .u64 width, .param .u64 height, .param .u64 depth) {\n"                                         \
    ".reg .pred %p<4>; .reg .b64 %a<32>; .reg .b32 %r<4>; .reg .b16 %h<2>;\n"                                          \
    "ld.param.u64 %a1, [width]; ld.param.u64 %a2, [height]; ld.param.u64 %a3, [depth];\n"                              \
    "ld.param.u64 %a4, [to]; ld.param.u64 %a5, [to_row]; ld.param.u64 %a6, [to_slice];\n"                              \
    "or.b64 %a7, %a1, %a4; or.b64 %a7, %a7, %a5; or.b64 %a7, %a7, %a6;\n" prepare                                      \
    "and.b64 %a7, %a7, 7; setp.eq.u64 %p1, %a7, 0; selp.b64 %a8, 8, 1, %p1;\n"                                         \
    "mov.u32 %r1, %tid.x; cvt.u64.u32 %a9, %r1; mul.lo.u64 %a9, %a9, %a8; mul.lo.u64 %a10, %a8, 128;\n"                \
    "mov.u64 %a11, 0;\n"                                                                                               \
    "SLICE: setp.ge.u64 %p2, %a11, %a3; @%p2 bra END; mov.u64 %a12, 0;\n"                                              \
    "ROW: setp.ge.u64 %p2, %a12, %a2; @%p2 bra NEXT_SLICE; mov.u64 %a13, %a9;\n"                                       \
    "X: setp.ge.u64 %p2, %a13, %a1; @%p2 bra NEXT_ROW;\n"                                                              \
    "mad.lo.u64 %a14, %a11, %a6, %a4; mad.lo.u64 %a14, %a12, %a5, %a14; add.s64 %a14, %a14, %a13;\n"                   \
    "@!%p1 bra NARROW;\n" wide "bra NEXT_X;\nNARROW:\n" narrow "NEXT_X: add.s64 %a13, %a13, %a10; bra X;\n"            \
    "NEXT_ROW: add.s64 %a12, %a12, 1; bra ROW;\nNEXT_SLICE: add.s64 %a11, %a11, 1; bra SLICE;\nEND: ret; }\n"
#define FROM "mad.lo.u64 %a15, %a11, %a18, %a16; mad.lo.u64 %a15, %a12, %a17, %a15; add.s64 %a15, %a15, %a13;\n"

static const char own_text[] =
    ".version 7.0\n.target sm_75\n.address_size 64\n"
    ".entry copy" WALK(
        ".param .u64 to, .param .u64 to_row, .param .u64 to_slice, .param .u64 from, "
        ".param .u64 from_row, .param .u64 from_slice, ",
        "ld.param.u64 %a16, [from]; ld.param.u64 %a17, [from_row]; ld.param.u64 %a18, [from_slice];\n"
        "or.b64 %a7, %a7, %a16; or.b64 %a7, %a7, %a17; or.b64 %a7, %a7, %a18;\n",
        FROM "ld.u64 %a19, [%a15]; st.u64 [%a14], %a19;\n",
        FROM "ld.u8 %h1, [%a15]; st.u8 [%a14], %h1;\n") ".entry fill" WALK(".param .u64 to, .param .u64 to_row, .param "
                                                                           ".u64 to_slice, .param .u64 value, ",
                                                                           "ld.param.u64 %a19, [value]; cvt.u16.u64 "
                                                                           "%h1, %a19;\n",
                                                                           "st.u64 [%a14], %a19;\n",
                                                                           "st.u8 [%a14], %h1;\n");

const struct ptx_kernel *grids_own_kernel(struct launch *l, const char *name)
{
    struct diag diag;
    l = l->root;
    pthread_mutex_lock(&l->lock);
    if (!l->own_module)
        (void)ptx_module_load(own_text, sizeof own_text - 1, "device runtime", &l->own_module, &diag);
    const struct ptx_module *m = l->own_module;
    pthread_mutex_unlock(&l->lock);
    return m ? ptx_module_find_kernel(m, name) : NULL;
}

/* ---- running ---- */

/* What it needs of the launch's choices; the modes are those of the caller's launch. */
static struct ptx_launch work_launch(struct launch *root, const struct work *work)
{
    struct ptx_launch c = *root->config;
    c.kernel = work->kernel;
    c.dynamic_shared_bytes = work->shared;
    c.params = work->params;
    c.cooperative = false;
    c.chosen_blocks = NULL;
    c.chosen_count = 0;
    c.progress = NULL;
    c.profile = false;
    c.launch_id += ++root->next_id << 32;
    memcpy(c.grid, work->grid, sizeof c.grid);
    memcpy(c.block, work->block, sizeof c.block);
    if (work->own) {
        c.module = root->own_module;
        c.variables = NULL;
        c.variant = 0;
    }
    return c;
}

static enum status run_streams(struct launch *l, struct work_list *tails, struct diag *diag);
static enum status run_tails(struct launch *root, unsigned depth, struct work_list *tails, struct diag *diag);

/* The work's blocks and what they started; what it put behind itself goes to `tails`. */
static enum status run_work(struct launch *root, struct work *work, unsigned depth, struct work_list *tails,
                            struct diag *diag)
{
    enum status status = STATUS_OK;
    root->pending--;
    if (work->kernel) {
        const struct ptx_launch config = work_launch(root, work);
        struct launch *l = launch_new(&config, root, root->result);
        if (!l)
            return STATUS_NO_MEMORY;
        l->depth = depth;
        l->named = work->own ? work->asker : work->kernel;
        l->asked = work->own ? &work->at : NULL;
        root->result->counts.device_launches += !work->own;
        status = launch_run(l, diag);
        if (status == STATUS_OK)
            status = run_streams(l, tails, diag);
        launch_free(l);
    }
    free(work->params);
    work->params = NULL;
    work->done = true;
    return status;
}

static bool ready(const struct work_list *list, uint32_t i)
{
    const struct work *w = &list->items[i];
    for (int k = 0; k < 2; k++)
        if (w->after[k] && !list->items[w->after[k] - 1].done)
            return false;
    return !w->done;
}

/* The next one in the order of calls, or, with a seed, any of those at hand that may begin. */
static uint32_t choose(const struct work_list *list, uint32_t first, uint64_t *random)
{
    enum { AT_HAND = 64 };
    uint32_t found[AT_HAND], count = 0;
    if (!*random)
        return first;
    for (uint32_t i = first; i < list->count && i - first < 4 * AT_HAND && count < AT_HAND; i++)
        if (ready(list, i))
            found[count++] = i;
    return count ? found[random_next(random) % count] : first;
}

/* In reverse, so that the next one is the last of the list: what a grid puts behind itself runs before what its
 * forerunner has put there after it. */
static bool stack_tails(struct work_list *tails, struct work_list *more)
{
    for (; more->count; more->count--)
        if (!list_add(tails, &more->items[more->count - 1]))
            return false;
    return true;
}

static enum status run_streams(struct launch *l, struct work_list *tails, struct diag *diag)
{
    struct grids *g = l->grids;
    enum status status = STATUS_OK;
    if (!g)
        return status;
    uint64_t random = l->root->seed ? l->root->seed ^ l->root->next_id << 20 ^ 1 : 0;
    for (uint32_t first = 0; first < g->works.count && status == STATUS_OK;) {
        if (g->works.items[first].done) {
            first++;
            continue;
        }
        struct work_list behind = {0};
        struct work *work = &g->works.items[choose(&g->works, first, &random)];
        status = run_work(l->root, work, l->depth + 1, &behind, diag);
        if (status == STATUS_OK)
            status = run_tails(l->root, l->depth + 1, &behind, diag);
        list_free(&behind);
    }
    if (status == STATUS_OK && !stack_tails(tails, &g->tails))
        status = STATUS_NO_MEMORY;
    return status;
}

/* A chain of grids that each put the next one behind themselves may be of any length: no recursion here. */
static enum status run_tails(struct launch *root, unsigned depth, struct work_list *tails, struct diag *diag)
{
    enum status status = STATUS_OK;
    while (tails->count && status == STATUS_OK) {
        struct work work = tails->items[--tails->count];
        status = run_work(root, &work, depth, tails, diag);
        free(work.params);
    }
    return status;
}

enum status grids_run(struct launch *l, struct diag *diag)
{
    struct work_list tails = {0};
    enum status status = run_streams(l, &tails, diag);
    if (status == STATUS_OK)
        status = run_tails(l, l->depth, &tails, diag);
    list_free(&tails);
    return status;
}
