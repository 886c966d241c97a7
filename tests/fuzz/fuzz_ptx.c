/* PTX text: load it, and when it loads, ask everything of it and run a few thousand instructions of every kernel in
 * every mode. Whatever the text, nothing may crash, hang or read out of bounds. A line "//link" parts it into modules
 * that are linked first; when each of them loads and they link, what comes out must load, too. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "ptx/opsptx.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

enum { BUFFER = 4096, MAX_VARIABLES = 64, MAX_VARIABLE = 1 << 16, MAX_PARTS = 4 };
#define SEPARATOR "//link\n"

static void print(void *context, const char *text, size_t bytes)
{
    size_t *sum = context;
    for (size_t i = 0; i < bytes; i++)
        *sum += (unsigned char)text[i];
}

/* Handles, by their lowest bits: a texture of the buffer, arrays of several sizes and settings, surfaces. */
static bool texture(void *context, uint64_t handle, struct ptx_texture *out)
{
    const struct ptx_range *buffer = context;
    if ((handle & 7) == 7)
        return false;
    *out = (struct ptx_texture){.surface = handle & 1,
                                .layers = 3,
                                .channels = (uint8_t)(1 << (handle >> 3) % 3),
                                .bits = (uint8_t)(8 << (handle >> 5) % 3),
                                .kind = (handle >> 7) % 2 ? PTX_TEXEL_SIGNED : PTX_TEXEL_UNSIGNED,
                                .level_count = handle & 2 ? 2 : 1,
                                .linear = handle & 2,
                                .mip_linear = handle & 16,
                                .normalised = handle & 4,
                                .read_normalised = handle & 2,
                                .seamless = handle & 8,
                                .level_max = 5};
    if (out->bits == 32 && (handle >> 8) % 2)
        out->kind = PTX_TEXEL_FLOAT;
    for (unsigned i = 0; i < 3; i++)
        out->addressing[i] = (enum ptx_addressing)((handle >> 2 * i) % 4);
    for (uint32_t i = 0; i < out->level_count; i++)
        out->levels[i] = (struct ptx_texture_level){.host = out->surface || handle & 2 ? buffer->host : NULL,
                                                    .address = buffer->address,
                                                    .row_bytes = 128,
                                                    .slice_bytes = 1024,
                                                    .width = 8 >> i,
                                                    .height = 8 >> i,
                                                    .depth = 3};
    return true;
}

enum mode {
    PLAIN,
    ONE_BY_ONE,
    CHECKED, /* under guard first */
    CHECKED_ORDER,
    CHECKED_GRID,
    SHADOW,
    SHADOW_PERTURBED,
    ROUNDING,
    PROFILE,
    PROFILE_ONE_BY_ONE,
    VARIANT,
    MODE_COUNT
};

static void run(const struct ptx_module *m, const struct ptx_kernel *kernel, const struct ptx_memory *memory,
                const uint64_t *variables, enum mode mode)
{
    size_t sum = 0;
    unsigned char *params = malloc(kernel->param_bytes + 1u);
    if (!params)
        return;
    /* Every aligned word points to the buffer: pointers in whatever place are good ones. */
    for (uint32_t i = 0; i < kernel->param_bytes; i++)
        params[i] = (unsigned char)(memory->ranges[0].address >> (i % 8 * 8));
    struct ptx_launch launch = {
        .module = m,
        .kernel = kernel,
        .grid = {2, 1, 1},
        .block = {mode == PLAIN || mode == SHADOW || mode == VARIANT ? 3 : 40, 1, 1},
        .params = params,
        .variables = variables,
        .memory = memory,
        .dynamic_shared_bytes = 64,
        .checked = mode >= CHECKED && mode <= CHECKED_GRID,
        .shadow = mode == SHADOW || mode == SHADOW_PERTURBED,
        .perturbation = mode == SHADOW_PERTURBED,
        .rounding_seed = mode == ROUNDING ? 3 : 0,
        .variant = mode == VARIANT ? 7 : 0,
        .profile = mode == PROFILE || mode == PROFILE_ONE_BY_ONE,
        .one_by_one = mode == ONE_BY_ONE || mode == PROFILE_ONE_BY_ONE,
        .seed = mode == CHECKED_ORDER || mode == SHADOW_PERTURBED || mode == ROUNDING ? 5 : 0,
        .cooperative = mode == CHECKED_GRID,
        .instruction_limit = 3000,
        .print = print,
        .print_context = &sum,
    };
    if (kernel->required_block[0])
        memcpy(launch.block, kernel->required_block, sizeof launch.block);
    struct ptx_result result;
    struct diag diag;
    (void)ptx_run(&launch, &result, &diag);
    for (size_t i = 0; i < result.fault_count; i++) {
        struct ptx_source frames[4];
        sum += ptx_module_source(m, result.faults[i].access.ptx_line, frames, 4);
        sum += (size_t)ptx_fault_kind_name(result.faults[i].kind)[0];
    }
    for (size_t i = 0; i < result.event_count; i++)
        sum += result.events[i].access.ptx_line + result.events[i].operand_count;
    for (size_t i = 0; result.profile && i < result.profile->instruction_count; i++)
        sum += result.profile->instructions[i].threads;
    ptx_result_free(&result);
    free(params);
}

static bool loads(const char *text, size_t bytes)
{
    struct ptx_module *m;
    struct diag diag;
    if (ptx_module_load(text, bytes, "part", &m, &diag) != STATUS_OK)
        return false;
    ptx_module_free(m);
    return true;
}

/* The text, or that of its parts linked (to be freed by the caller); NULL when they do not link. */
static char *linked(const uint8_t *data, size_t size, size_t *bytes)
{
    struct ptx_link_input parts[MAX_PARTS];
    size_t count = 0;
    bool all_load = true;
    char *text = malloc(size + 1), *joined = NULL, *next = text;
    if (!text)
        return NULL;
    memcpy(text, data, size);
    text[size] = 0;
    *bytes = size;
    if (memchr(text, 0, size) || !strstr(text, SEPARATOR))
        return text;
    while (next && count < MAX_PARTS) {
        char *part = next, *end = strstr(part, SEPARATOR);
        next = end ? end + strlen(SEPARATOR) : NULL;
        if (end)
            *end = 0;
        parts[count++] = (struct ptx_link_input){.text = part, .name = "part"};
        all_load = all_load && loads(part, strlen(part));
    }
    struct diag diag;
    if (ptx_link(parts, count, &joined, &diag) == STATUS_OK) {
        *bytes = strlen(joined);
        if (all_load && !loads(joined, *bytes)) {
            fputs(joined, stderr);
            abort();
        }
    }
    free(text);
    return joined;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct ptx_module *m;
    struct diag diag;
    size_t bytes;
    char *text = linked(data, size, &bytes);
    enum status status = text ? ptx_module_load(text, bytes, "fuzz", &m, &diag) : STATUS_BAD_INPUT;
    free(text);
    if (status != STATUS_OK)
        return 0;
    size_t count = ptx_module_variable_count(m);
    uint64_t variables[MAX_VARIABLES] = {0};
    void *hosts[MAX_VARIABLES] = {NULL};
    struct ptx_range ranges[MAX_VARIABLES + 2];
    uint8_t *buffer = calloc(1, BUFFER), *valid = calloc(1, BUFFER / 8), *tainted = calloc(1, BUFFER);
    struct ptx_shadow_value *shadow = calloc(BUFFER / 2, sizeof *shadow);
    bool runnable = count <= MAX_VARIABLES && buffer && valid && shadow && tainted;
    ranges[0] = (struct ptx_range){.address = 0x0101010101010000,
                                   .bytes = BUFFER,
                                   .host = buffer,
                                   .id = 1,
                                   .valid = valid,
                                   .shadow = shadow,
                                   .tainted = tainted};
    struct ptx_memory memory = {.ranges = ranges, .range_count = 1, .texture = texture, .context = ranges};
    for (size_t i = 0; runnable && i < count; i++) {
        const struct ptx_variable *v = ptx_module_variable(m, i);
        variables[i] = 0x0201010101010000 + i * 0x100000000;
        hosts[i] = v->size <= MAX_VARIABLE ? malloc(v->size + 1) : NULL;
        runnable = hosts[i] != NULL;
        ranges[memory.range_count++] =
            (struct ptx_range){.address = variables[i], .bytes = v->size, .host = hosts[i], .id = (uint32_t)i + 2};
    }
    for (size_t i = 0; runnable && i < count; i++)
        (void)ptx_module_variable_init(m, i, variables, hosts[i]);
    for (size_t i = 0; runnable && i < ptx_module_kernel_count(m) && i < 4; i++)
        for (int mode = 0; mode < MODE_COUNT; mode++)
            run(m, ptx_module_kernel(m, i), &memory, variables, (enum mode)mode);
    for (size_t i = 0; i < MAX_VARIABLES; i++)
        free(hosts[i]);
    free(buffer);
    free(valid);
    free(shadow);
    free(tainted);
    ptx_module_free(m);
    return 0;
}
