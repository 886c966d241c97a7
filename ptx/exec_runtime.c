/* exec_runtime.c - the device runtime's functions, one run_*() for each row of runtime.def, as one thread calls them.
 */
#include <stdlib.h>
#include <string.h>
#include "ptx/exec_check.h"
#include "ptx/exec_runtime.h"

struct call {
    struct worker *w;
    struct block *b;
    struct thread *t;
    const struct insn *in;
    struct launch *l;
    const uint8_t (*arguments)[MAX_RUNTIME_PARAM_BYTES];
    bool per_thread; /* the _ptsz form: the default stream is the thread's own */
    bool ended;      /* a fault ended the thread */
};

static uint64_t wide(const struct call *c, int i)
{
    uint64_t v;
    memcpy(&v, c->arguments[i], sizeof v);
    return v;
}

static uint32_t word(const struct call *c, int i)
{
    return (uint32_t)wide(c, i);
}

static void part(const struct call *c, int i, void *out, size_t bytes)
{
    memcpy(out, c->arguments[i], bytes);
}

/* ---- the caller's memory ---- */

static void fault(struct call *c, enum ptx_fault_kind kind, uint64_t address, uint32_t bytes, bool write)
{
    struct ptx_fault f = {.kind = kind, .space = PTX_SPACE_GLOBAL, .address = address, .bytes = bytes};
    f.access.write = write;
    fault_report(c->w, c->b, c->t, c->in, &f);
    c->ended = !c->l->checked && !c->l->shadow;
}

static void note_device_store(struct call *c, const struct ptx_range *r, uint32_t number, uint64_t address,
                              uint32_t bytes)
{
    const struct range_cache cache = {.range = r};
    range_track(c->w, &cache, address - r->address, bytes, true);
    c->w->counts.global_write_bytes += bytes;
    if (r->shadow)
        memset(r->shadow + (address - r->address) / 2, 0, (bytes + 1) / 2 * sizeof *r->shadow);
    c->w->at = number ? r : NULL;
    c->w->at_number = number;
}

/* A result of 4 or 8 bytes to where the thread wants it. */
static enum runtime_error put(struct call *c, uint64_t address, uint64_t value, uint32_t bytes)
{
    uint64_t offset = address & UINT32_MAX;
    struct thread *t = c->t;
    enum mem_space space = address >> 32 == PTX_LOCAL_WINDOW >> 32    ? MEM_LOCAL
                           : address >> 32 == PTX_SHARED_WINDOW >> 32 ? MEM_SHARED
                                                                      : MEM_GLOBAL;
    uint8_t *p = (uint8_t *)(uintptr_t)peek(c->w, c->b, t, address, bytes);
    enum ptx_fault_kind kind = !p                     ? PTX_FAULT_OUT_OF_BOUNDS
                               : address % bytes != 0 ? PTX_FAULT_MISALIGNED
                                                      : PTX_FAULT_NONE;
    uint32_t number = 0;
    const struct ptx_range *r = NULL;
    if (kind == PTX_FAULT_NONE && space == MEM_GLOBAL) {
        r = range_find(c->l, address, &number);
        if (!r || r->flags & PTX_RANGE_READ_ONLY)
            kind = PTX_FAULT_READ_ONLY;
        else if (c->l->checked && r->flags & PTX_RANGE_FREED)
            kind = PTX_FAULT_FREED;
    }
    if (kind != PTX_FAULT_NONE) {
        fault(c, kind, address, bytes, true);
        return RUNTIME_INVALID_VALUE;
    }
    memcpy(p, &value, bytes);
    if (space == MEM_GLOBAL)
        note_device_store(c, r, number, address, bytes);
    else if (space == MEM_LOCAL && t->local_numbers)
        memset(t->local_numbers + offset / 2, 0, bytes / 2 * sizeof *t->local_numbers);
    else if (space == MEM_SHARED && c->b->shared_numbers)
        memset(c->b->shared_numbers + offset / 2, 0, bytes / 2 * sizeof *c->b->shared_numbers);
    if (c->l->checked)
        undef_store(c->w, c->b, t, space, space == MEM_GLOBAL ? address : offset, bytes, 0);
    return RUNTIME_OK;
}

static enum runtime_error put_word(struct call *c, int argument, uint32_t value)
{
    return put(c, wide(c, argument), value, 4);
}

/* ---- facts ---- */

static bool attribute_value(struct call *c, int attribute, int *value)
{
    static const struct {
        int attribute, value;
    } common[] = {{1, 1024},  {2, 1024},  {3, 1024}, {4, 64},    {5, INT32_MAX}, {6, 65535}, {7, 65535},
                  {8, 49152}, {9, 65536}, {10, 32},  {39, 1536}, {81, 102400},   {106, 16},  {97, 101376}};
    const struct ptx_launch *config = c->l->config;
    if (config->device_attribute)
        return config->device_attribute(config->runtime_context, attribute, value);
    unsigned target = config->module->version.target;
    bool known = attribute == 16 || attribute == 75 || attribute == 76;
    if (attribute == 16)
        *value = config->sm_count ? (int)config->sm_count : 1;
    else if (known)
        *value = (int)(attribute == 75 ? target / 10 : target % 10);
    for (size_t i = 0; i < sizeof common / sizeof *common; i++)
        if (common[i].attribute == attribute) {
            *value = common[i].value;
            known = true;
        }
    return known;
}

static uint64_t run_device_attribute(struct call *c)
{
    int value = 0;
    if (word(c, 2) != 0)
        return RUNTIME_NO_DEVICE;
    if (!attribute_value(c, (int)word(c, 1), &value))
        return RUNTIME_INVALID_VALUE;
    return put_word(c, 0, (uint32_t)value);
}

static uint32_t pending_limit(const struct call *c)
{
    uint32_t limit = c->l->root->config->device_launch_limit;
    return limit ? limit : PENDING_LAUNCHES;
}

static uint64_t run_device_limit(struct call *c)
{
    enum { STACK, PRINTF, HEAP, SYNC_DEPTH, PENDING };
    switch (word(c, 1)) {
    case STACK:
        return put(c, wide(c, 0), 1024, 8);
    case PRINTF:
        return put(c, wide(c, 0), 1 << 20, 8);
    case HEAP:
        return put(c, wide(c, 0), c->l->config->heap_bytes, 8);
    case PENDING:
        return put(c, wide(c, 0), pending_limit(c), 8);
    default:
        return RUNTIME_LIMIT;
    }
}

static uint64_t run_cache_config(struct call *c)
{
    return put_word(c, 0, 0); /* no preference */
}

static uint64_t run_bank_config(struct call *c)
{
    return put_word(c, 0, 1); /* banks of 4 bytes */
}

static uint64_t run_device_count(struct call *c)
{
    return put_word(c, 0, 1);
}

static uint64_t run_current_device(struct call *c)
{
    return put_word(c, 0, 0);
}

static uint64_t run_runtime_version(struct call *c)
{
    return put_word(c, 0, 13000);
}

/* The kernel whose address a thread has; NULL: there is none. */
static const struct ptx_kernel *kernel_at(const struct call *c, uint64_t address)
{
    const struct ptx_module *m = c->l->config->module;
    uint64_t offset = address - PTX_CODE_WINDOW, index = offset / CODE_ADDRESS_STEP - 1;
    if (offset % CODE_ADDRESS_STEP || offset == 0 || index >= m->code_count)
        return NULL;
    for (uint32_t i = 0; i < m->kernel_count; i++)
        if (m->kernel_code[i] == m->code[index])
            return &m->kernels[i];
    return NULL;
}

static uint64_t run_function_attributes(struct call *c)
{
    struct { /* cudaFuncAttributes */
        uint64_t shared, constant, local;
        int threads, registers, ptx, binary, cache, dynamic_shared, carveout, cluster, width, height, depth, policy;
        int nonportable, reserved[16], padding;
    } a = {0};
    _Static_assert(sizeof a % 8 == 0, "it is written by 8 bytes");
    const struct ptx_kernel *k = kernel_at(c, wide(c, 1));
    const struct ptx_module *m = c->l->config->module;
    uint64_t words[sizeof a / 8];
    if (!k)
        return RUNTIME_NO_FUNCTION;
    a.shared = k->static_shared_bytes;
    a.local = k->local_bytes;
    a.threads = (int)k->max_threads;
    a.registers = 32; /* nobody knows: machine code would */
    a.ptx = a.binary = (int)m->version.target;
    a.dynamic_shared = 49152 - (int)(a.shared < 49152 ? a.shared : 49152);
    a.carveout = -1;
    memcpy(words, &a, sizeof words);
    enum runtime_error error = RUNTIME_OK;
    for (size_t i = 0; i < sizeof words / sizeof *words && error == RUNTIME_OK && !c->ended; i++)
        error = put(c, wide(c, 0) + 8 * i, words[i], 8);
    return error;
}

static uint64_t run_occupancy(struct call *c)
{
    const struct ptx_kernel *k = kernel_at(c, wide(c, 1));
    uint32_t threads = word(c, 2);
    int most = 0, shared_most = 0, blocks = 0;
    if (!k)
        return RUNTIME_NO_FUNCTION;
    if (!threads || !attribute_value(c, 39, &most) || !attribute_value(c, 81, &shared_most) ||
        !attribute_value(c, 106, &blocks))
        return RUNTIME_INVALID_VALUE;
    uint64_t shared = k->static_shared_bytes + wide(c, 3), warps = ((uint64_t)threads + WARP - 1) / WARP;
    uint64_t fit = (uint64_t)most / WARP / warps, room = shared ? (uint64_t)shared_most / shared : fit;
    fit = fit < room ? fit : room;
    if (threads > k->max_threads)
        fit = 0;
    return put_word(c, 0, fit < (uint64_t)blocks ? (uint32_t)fit : (uint32_t)blocks);
}

/* ---- errors ---- */

static const struct error_text {
    uint32_t error;
    char name[44], text[80];
} error_texts[] = {
    {999, "cudaErrorUnknown", "unknown error"}, /* the first: for all others */
    {RUNTIME_OK, "cudaSuccess", "no error"},
    {RUNTIME_INVALID_VALUE, "cudaErrorInvalidValue", "invalid argument"},
    {RUNTIME_MEMORY, "cudaErrorMemoryAllocation", "out of memory"},
    {RUNTIME_CONFIGURATION, "cudaErrorInvalidConfiguration", "invalid configuration argument"},
    {RUNTIME_PITCH, "cudaErrorInvalidPitchValue", "invalid pitch argument"},
    {RUNTIME_COPY_DIRECTION, "cudaErrorInvalidMemcpyDirection", "invalid copy direction for memcpy"},
    {RUNTIME_DEPTH, "cudaErrorLaunchMaxDepthExceeded", "launch would exceed maximum depth of nested launches"},
    {RUNTIME_NO_FUNCTION, "cudaErrorInvalidDeviceFunction", "invalid device function"},
    {RUNTIME_NO_DEVICE, "cudaErrorInvalidDevice", "invalid device ordinal"},
    {RUNTIME_LIMIT, "cudaErrorUnsupportedLimit", "limit is not supported on this architecture"},
    {RUNTIME_HANDLE, "cudaErrorInvalidResourceHandle", "invalid resource handle"},
    {RUNTIME_RESOURCES, "cudaErrorLaunchOutOfResources", "too many resources requested for launch"},
};

const struct ptx_range runtime_strings = {
    .address = STRING_WINDOW,
    .bytes = sizeof error_texts,
    .host = (void *)(uintptr_t)error_texts,
    .flags = PTX_RANGE_READ_ONLY,
};

static uint64_t error_address(const struct call *c, size_t offset)
{
    uint64_t entry = 0;
    for (size_t i = 0; i < sizeof error_texts / sizeof *error_texts; i++)
        if (error_texts[i].error == word(c, 0))
            entry = i;
    return STRING_WINDOW + entry * sizeof *error_texts + offset;
}

static uint64_t run_error_string(struct call *c)
{
    return error_address(c, offsetof(struct error_text, text));
}

static uint64_t run_error_name(struct call *c)
{
    return error_address(c, offsetof(struct error_text, name));
}

static uint64_t run_peek_error(struct call *c)
{
    return c->t->runtime_error;
}

static uint64_t run_last_error(struct call *c)
{
    uint32_t error = c->t->runtime_error;
    c->t->runtime_error = RUNTIME_OK;
    return error;
}

/* ---- memory of the heap ---- */

static uint64_t run_allocate(struct call *c)
{
    uint64_t bytes = wide(c, 1), address = device_malloc(c->w, bytes);
    if (!address && bytes)
        return RUNTIME_MEMORY;
    return put(c, wide(c, 0), address, 8);
}

static uint64_t run_release(struct call *c)
{
    enum ptx_fault_kind kind = device_free(c->w, wide(c, 0));
    if (kind == PTX_FAULT_NONE)
        return RUNTIME_OK;
    fault(c, kind, wide(c, 0), 0, false);
    return RUNTIME_INVALID_VALUE;
}

/* ---- streams and events ---- */

static uint64_t stream_argument(const struct call *c, int i)
{
    uint64_t stream = wide(c, i);
    return stream == STREAM_DEFAULT && c->per_thread ? STREAM_PER_THREAD : stream;
}

/* A stream or an event: nothing has been put there yet. 0: out of memory. */
static uint64_t new_handle(struct call *c, bool event)
{
    pthread_mutex_lock(&c->l->lock);
    struct grids *g = grids_of(c->l);
    uint64_t handle = HANDLE_WINDOW + ++c->l->root->next_id;
    bool made = g && map_put(event ? &g->events : &g->streams, handle, 0);
    pthread_mutex_unlock(&c->l->lock);
    return made ? handle : 0;
}

static uint64_t drop_handle(struct call *c, bool event)
{
    pthread_mutex_lock(&c->l->lock);
    struct grids *g = grids_of(c->l);
    uint64_t handle = wide(c, 0);
    bool known = g && handle >> 48 == HANDLE_WINDOW >> 48 && map_remove(event ? &g->events : &g->streams, handle);
    pthread_mutex_unlock(&c->l->lock);
    return known ? RUNTIME_OK : RUNTIME_HANDLE;
}

static uint64_t make_handle(struct call *c, bool event, uint32_t flags)
{
    if (word(c, 1) != flags)
        return RUNTIME_INVALID_VALUE;
    uint64_t handle = new_handle(c, event);
    return handle ? put(c, wide(c, 0), handle, 8) : RUNTIME_MEMORY;
}

static uint64_t run_stream_create(struct call *c)
{
    enum { NON_BLOCKING = 1 }; /* the only kind that kernels may make */
    return make_handle(c, false, NON_BLOCKING);
}

static uint64_t run_stream_destroy(struct call *c)
{
    return drop_handle(c, false);
}

static uint64_t run_event_create(struct call *c)
{
    enum { DISABLE_TIMING = 2 }; /* likewise */
    return make_handle(c, true, DISABLE_TIMING);
}

static uint64_t run_event_destroy(struct call *c)
{
    return drop_handle(c, true);
}

static uint64_t run_event_record(struct call *c)
{
    uint32_t last;
    uint64_t before;
    if (!grids_last(c->w, c->b, c->t, stream_argument(c, 1), &last))
        return RUNTIME_HANDLE;
    pthread_mutex_lock(&c->l->lock);
    struct map *events = &c->l->grids->events;
    bool known = map_get(events, wide(c, 0), &before) && map_put(events, wide(c, 0), last);
    pthread_mutex_unlock(&c->l->lock);
    return known ? RUNTIME_OK : RUNTIME_HANDLE;
}

static struct ptx_access call_access(const struct call *c)
{
    struct ptx_access a = {.ptx_line = thread_line(c->t, c->in)};
    memcpy(a.block, c->b->ctaid, sizeof a.block);
    memcpy(a.thread, c->t->tid, sizeof a.thread);
    return a;
}

static uint64_t run_stream_wait(struct call *c)
{
    uint64_t recorded = 0;
    uint32_t last;
    if (!grids_last(c->w, c->b, c->t, stream_argument(c, 0), &last))
        return RUNTIME_HANDLE;
    pthread_mutex_lock(&c->l->lock);
    bool known = map_get(&c->l->grids->events, wide(c, 1), &recorded);
    pthread_mutex_unlock(&c->l->lock);
    if (!known)
        return RUNTIME_HANDLE;
    struct work work = {.after = {0, (uint32_t)recorded}, .at = call_access(c)};
    return grids_add(c->w, c->b, c->t, stream_argument(c, 0), &work);
}

/* ---- launches ---- */

static struct parameter_buffer *new_buffer(struct launch *l, uint64_t bytes)
{
    struct grids *g = grids_of(l);
    if (!g)
        return NULL;
    if (g->buffer_count == g->buffer_capacity) {
        uint32_t want = g->buffer_capacity ? g->buffer_capacity * 2 : 8;
        struct parameter_buffer **fresh = realloc((void *)g->buffers, want * sizeof(void *));
        if (!fresh)
            return NULL;
        g->buffers = fresh;
        g->buffer_capacity = want;
    }
    struct parameter_buffer *p = calloc(1, sizeof *p + bytes);
    if (!p)
        return NULL;
    p->range.address = PARAMETER_WINDOW + (uint64_t)g->buffer_count * PARAMETER_STEP;
    p->range.bytes = bytes;
    p->range.host = p->bytes;
    g->buffers[g->buffer_count++] = p;
    return p;
}

/* NULL and the thread's error. At least 64 bytes, so that a buffer without parameters has an address, too. */
static struct parameter_buffer *get_buffer(struct call *c, uint64_t bytes)
{
    struct launch *l = c->l;
    struct parameter_buffer *p = NULL;
    c->t->runtime_error = RUNTIME_INVALID_VALUE;
    if (bytes > MAX_PARAMETER_BYTES)
        return NULL;
    pthread_mutex_lock(&l->lock);
    bool room = !l->grids || l->grids->buffer_count < UINT32_MAX / 2;
    if (room)
        p = new_buffer(l, bytes ? bytes : 64);
    pthread_mutex_unlock(&l->lock);
    c->t->runtime_error = p ? RUNTIME_OK : RUNTIME_MEMORY;
    return p;
}

static enum runtime_error configure(struct call *c, struct parameter_buffer *p, uint64_t function, int first)
{
    const struct ptx_kernel *k = kernel_at(c, function);
    part(c, first, p->grid, sizeof p->grid);
    part(c, first + 1, p->block, sizeof p->block);
    p->shared = word(c, first + 2);
    if (!k)
        return RUNTIME_NO_FUNCTION;
    if (!launch_fits(k, p->grid, p->block, p->shared))
        return RUNTIME_CONFIGURATION;
    p->kernel = k;
    return RUNTIME_OK;
}

static uint64_t run_parameter_buffer_v1(struct call *c)
{
    uint64_t align = wide(c, 0);
    struct parameter_buffer *p = align > 64 ? NULL : get_buffer(c, wide(c, 1));
    return p ? p->range.address : 0;
}

static uint64_t run_parameter_buffer(struct call *c)
{
    struct parameter_buffer wanted;
    uint32_t before = c->t->runtime_error;
    enum runtime_error error = configure(c, &wanted, wide(c, 0), 1);
    if (error != RUNTIME_OK) {
        c->t->runtime_error = error;
        return 0;
    }
    struct parameter_buffer *p = get_buffer(c, wanted.kernel->param_bytes);
    if (!p)
        return 0;
    c->t->runtime_error = before;
    p->kernel = wanted.kernel;
    p->shared = wanted.shared;
    memcpy(p->grid, wanted.grid, sizeof p->grid);
    memcpy(p->block, wanted.block, sizeof p->block);
    return p->range.address;
}

static struct parameter_buffer *find_buffer(struct call *c, uint64_t address)
{
    struct parameter_buffer *p = NULL;
    uint64_t index = (address - PARAMETER_WINDOW) / PARAMETER_STEP;
    pthread_mutex_lock(&c->l->lock);
    if (address % PARAMETER_STEP == 0 && c->l->grids && index < c->l->grids->buffer_count)
        p = c->l->grids->buffers[index];
    pthread_mutex_unlock(&c->l->lock);
    return p;
}

static enum runtime_error submit(struct call *c, struct parameter_buffer *p, uint64_t stream)
{
    if (stream != STREAM_TAIL && c->l->depth + 1 >= MAX_NESTING)
        return RUNTIME_DEPTH;
    struct work work = {.kernel = p->kernel, .shared = p->shared, .at = call_access(c)};
    uint64_t bytes = work.kernel->param_bytes;
    work.params = malloc(bytes + 1);
    if (!work.params)
        return RUNTIME_MEMORY;
    memcpy(work.params, p->bytes, bytes < p->range.bytes ? bytes : p->range.bytes);
    memcpy(work.grid, p->grid, sizeof work.grid);
    memcpy(work.block, p->block, sizeof work.block);
    p->kernel = NULL;
    return grids_add(c->w, c->b, c->t, stream, &work);
}

static uint64_t run_launch(struct call *c)
{
    struct parameter_buffer *p = find_buffer(c, wide(c, 0));
    return p && p->kernel ? submit(c, p, stream_argument(c, 1)) : RUNTIME_INVALID_VALUE;
}

/* A kernel without parameters needs no buffer. */
static uint64_t run_launch_v1(struct call *c)
{
    const struct ptx_kernel *k = kernel_at(c, wide(c, 0));
    struct parameter_buffer *p = wide(c, 1) ? find_buffer(c, wide(c, 1)) : get_buffer(c, 0);
    if (!k)
        return RUNTIME_NO_FUNCTION;
    if (!p || (k->param_bytes && (!wide(c, 1) || k->param_bytes > p->range.bytes)))
        return RUNTIME_INVALID_VALUE;
    enum runtime_error error = configure(c, p, wide(c, 0), 2);
    return error == RUNTIME_OK ? submit(c, p, stream_argument(c, 5)) : error;
}

/* ---- copies and fills ---- */

struct box {
    uint64_t width, height, depth; /* of a row in bytes */
    uint64_t to, to_row, to_slice, from, from_row, from_slice;
};

static enum runtime_error submit_own(struct call *c, const char *name, const uint64_t *params, uint32_t count,
                                     uint64_t stream)
{
    struct work work = {.own = true, .grid = {1, 1, 1}, .block = {128, 1, 1}, .at = call_access(c)};
    work.kernel = grids_own_kernel(c->l, name);
    const size_t bytes = count * sizeof *params;
    work.params = malloc(bytes);
    if (!work.kernel || !work.params) {
        free(work.params);
        return RUNTIME_MEMORY;
    }
    memcpy(work.params, params, bytes);
    return grids_add(c->w, c->b, c->t, stream, &work);
}

static enum runtime_error copy_box(struct call *c, const struct box *x, uint32_t kind, uint64_t stream)
{
    const uint64_t params[] = {x->to,         x->to_row, x->to_slice, x->from, x->from_row,
                               x->from_slice, x->width,  x->height,   x->depth};
    if (kind > 4) /* cudaMemcpyDefault; addresses tell where memory is */
        return RUNTIME_COPY_DIRECTION;
    if (x->height > 1 && (x->to_row < x->width || x->from_row < x->width))
        return RUNTIME_PITCH;
    if (!x->width || !x->height || !x->depth)
        return RUNTIME_OK;
    return submit_own(c, "copy", params, sizeof params / sizeof *params, stream);
}

static enum runtime_error fill_box(struct call *c, const struct box *x, uint32_t value, uint64_t stream)
{
    const uint64_t params[] = {x->to,    x->to_row, x->to_slice, (value & 0xff) * UINT64_C(0x0101010101010101),
                               x->width, x->height, x->depth};
    if (x->height > 1 && x->to_row < x->width)
        return RUNTIME_PITCH;
    if (!x->width || !x->height || !x->depth)
        return RUNTIME_OK;
    return submit_own(c, "fill", params, sizeof params / sizeof *params, stream);
}

static uint64_t run_copy(struct call *c)
{
    const struct box x = {.to = wide(c, 0), .from = wide(c, 1), .width = wide(c, 2), .height = 1, .depth = 1};
    return copy_box(c, &x, word(c, 3), stream_argument(c, 4));
}

static uint64_t run_copy_2d(struct call *c)
{
    const struct box x = {.to = wide(c, 0),
                          .to_row = wide(c, 1),
                          .from = wide(c, 2),
                          .from_row = wide(c, 3),
                          .width = wide(c, 4),
                          .height = wide(c, 5),
                          .depth = 1};
    return copy_box(c, &x, word(c, 6), stream_argument(c, 7));
}

struct pitched {
    uint64_t address, pitch, width, height; /* cudaPitchedPtr */
};

/* cudaMemcpy3DParms; arrays are not for kernels. */
static uint64_t run_copy_3d(struct call *c)
{
    struct {
        uint64_t from_array, from_at[3];
        struct pitched from;
        uint64_t to_array, to_at[3];
        struct pitched to;
        uint64_t extent[3];
        uint32_t kind, padding;
    } p;
    const uint8_t *bytes = peek(c->w, c->b, c->t, wide(c, 0), sizeof p);
    if (!bytes) {
        fault(c, PTX_FAULT_OUT_OF_BOUNDS, wide(c, 0), sizeof p, false);
        return RUNTIME_INVALID_VALUE;
    }
    memcpy(&p, bytes, sizeof p);
    if (p.from_array || p.to_array)
        return RUNTIME_INVALID_VALUE;
    struct box x = {.to_row = p.to.pitch,
                    .to_slice = p.to.pitch * p.to.height,
                    .from_row = p.from.pitch,
                    .from_slice = p.from.pitch * p.from.height,
                    .width = p.extent[0],
                    .height = p.extent[1],
                    .depth = p.extent[2]};
    x.to = p.to.address + p.to_at[0] + p.to_at[1] * x.to_row + p.to_at[2] * x.to_slice;
    x.from = p.from.address + p.from_at[0] + p.from_at[1] * x.from_row + p.from_at[2] * x.from_slice;
    return copy_box(c, &x, p.kind, stream_argument(c, 1));
}

static uint64_t run_fill(struct call *c)
{
    const struct box x = {.to = wide(c, 0), .width = wide(c, 2), .height = 1, .depth = 1};
    return fill_box(c, &x, word(c, 1), stream_argument(c, 3));
}

static uint64_t run_fill_2d(struct call *c)
{
    const struct box x = {
        .to = wide(c, 0), .to_row = wide(c, 1), .width = wide(c, 3), .height = wide(c, 4), .depth = 1};
    return fill_box(c, &x, word(c, 2), stream_argument(c, 5));
}

static uint64_t run_fill_3d(struct call *c)
{
    struct pitched to;
    uint64_t extent[3];
    part(c, 0, &to, sizeof to);
    part(c, 2, extent, sizeof extent);
    const struct box x = {.to = to.address,
                          .to_row = to.pitch,
                          .to_slice = to.pitch * to.height,
                          .width = extent[0],
                          .height = extent[1],
                          .depth = extent[2]};
    return fill_box(c, &x, word(c, 1), stream_argument(c, 3));
}

/* ---- graphs ---- */

static uint64_t run_set_condition(struct call *c)
{
    const struct ptx_launch *config = c->l->config;
    if (!config->set_condition)
        return 0;
    pthread_mutex_lock(&c->l->lock);
    config->set_condition(config->runtime_context, wide(c, 0), word(c, 1));
    pthread_mutex_unlock(&c->l->lock);
    return 0;
}

/* ---- the table ---- */

static const struct {
    uint64_t (*run)(struct call *c);
    const char *name;
    uint8_t result;
} rows[] = {
#define RUNTIME(id, name, result, ...) {run_##id, #name, result},
#include "ptx/runtime.def"
};

bool runtime_call(struct worker *w, struct block *b, struct thread *t, const struct insn *in, uint32_t row,
                  const uint8_t arguments[MAX_RUNTIME_PARAMS][MAX_RUNTIME_PARAM_BYTES], uint64_t *result)
{
    struct call c = {.w = w, .b = b, .t = t, .in = in, .l = w->launch, .arguments = arguments};
    c.per_thread = strstr(rows[row].name, "_ptsz") != NULL;
    *result = rows[row].run(&c);
    bool asks = rows[row].run == run_last_error || rows[row].run == run_peek_error;
    if (rows[row].result == 4 && *result && !asks)
        t->runtime_error = (uint32_t)*result;
    return !c.ended;
}
