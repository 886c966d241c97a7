#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/fatbin.h"
#include "softgpu/fault.h"
#include "softgpu/module.h"

struct wrapper {
    uint32_t magic, version;
    const void *data;
    void *file_or_list; /* version 2: NULL-terminated list of fat binaries to be linked together */
};

/* Programs print their buffers whether there was a message or not. */
static void jit_log_clear(struct jit_log *log)
{
    if (log->error && log->error_bytes)
        log->error[0] = '\0';
    if (log->info && log->info_bytes)
        log->info[0] = '\0';
    if (log->error_used)
        *log->error_used = 0;
    if (log->info_used)
        *log->info_used = 0;
}

void jit_log_from(struct jit_log *log, unsigned count, const CUjit_option *options, void **values)
{
    *log = (struct jit_log){0};
    for (unsigned i = 0; options && values && i < count; i++) {
        switch (options[i]) {
        case CU_JIT_ERROR_LOG_BUFFER:
            log->error = values[i];
            break;
        case CU_JIT_ERROR_LOG_BUFFER_SIZE_BYTES:
            log->error_bytes = (unsigned)(uintptr_t)values[i];
            log->error_used = (size_t *)&values[i];
            break;
        case CU_JIT_INFO_LOG_BUFFER:
            log->info = values[i];
            break;
        case CU_JIT_INFO_LOG_BUFFER_SIZE_BYTES:
            log->info_bytes = (unsigned)(uintptr_t)values[i];
            log->info_used = (size_t *)&values[i];
            break;
        case CU_JIT_WALL_TIME: {
            float none = 0;
            values[i] = NULL;
            memcpy(&values[i], &none, sizeof none);
            break;
        }
        default: /* the others steer a compiler that is not here */
            break;
        }
    }
    jit_log_clear(log);
}

static void jit_log_write(struct jit_log *log, const struct diag *diag)
{
    size_t used = 0;
    if (log->error && log->error_bytes) {
        int n = snprintf(log->error, log->error_bytes, "%s, line %u, column %u; error: %s\n%s%s", diag->where,
                         diag->line, diag->column, diag->text, diag->excerpt, *diag->excerpt ? "\n" : "");
        used = n < 0 ? 0 : (size_t)n < log->error_bytes ? (size_t)n : log->error_bytes - 1;
    }
    if (log->error_used)
        *log->error_used = used;
}

/* The device's PTX compiler in the real driver tells these apart; here the executor's status and the text's target do.
 */
static CUresult load_error(enum status status)
{
    switch (status) {
    case STATUS_NO_MEMORY:
        return CUDA_ERROR_OUT_OF_MEMORY;
    case STATUS_NOT_FOUND:
        return CUDA_ERROR_NO_BINARY_FOR_GPU;
    default:
        return CUDA_ERROR_INVALID_PTX;
    }
}

#define INPUT_NAME "ptxas application ptx input" /* what the real compiler calls it */

static CUresult parse(const char *text, size_t bytes, const char *name, struct jit_log *log, struct image **out)
{
    struct diag diag = {.offset = -1};
    struct image *image = calloc(1, sizeof *image);
    if (!image)
        return CUDA_ERROR_OUT_OF_MEMORY;
    atomic_init(&image->refs, 1);
    enum status status = ptx_module_load(text, bytes, name, &image->ptx, &diag);
    CUresult result = status == STATUS_OK ? CUDA_SUCCESS : load_error(status);
    if (result == CUDA_SUCCESS) {
        image->version = ptx_module_version(image->ptx);
        if (image->version.target > config_get()->capability) {
            snprintf(diag.where, sizeof diag.where, "%s", name);
            snprintf(diag.text, sizeof diag.text, "a program for sm_%u cannot be compiled for sm_%u",
                     image->version.target, config_get()->capability);
            result = CUDA_ERROR_INVALID_PTX;
        }
    }
    if (result == CUDA_SUCCESS && fault_changes_text()) {
        image->text = strndup(text, bytes);
        image->text_bytes = image->text ? strlen(image->text) : 0;
    }
    if (result == CUDA_SUCCESS) {
        *out = image;
        return CUDA_SUCCESS;
    }
    log_unsupported_part("PTX", diag.text);
    jit_log_write(log, &diag);
    image_unref(image);
    return result;
}

/* Says why in the program's JIT log and in SOFTGPU_LOG. */
static CUresult refuse_machine_code(struct jit_log *log)
{
    static const char why[] = "the image holds machine code, and this device executes PTX only: compile for a virtual "
                              "architecture (NVRTC: --gpu-architecture=compute_75; nvcc: -gencode "
                              "arch=compute_75,code=compute_75)";
    struct diag diag = {.offset = -1, .where = "image"};
    snprintf(diag.text, sizeof diag.text, "%s", why);
    log_unsupported_part("machine code", why);
    jit_log_write(log, &diag);
    return CUDA_ERROR_NO_BINARY_FOR_GPU;
}

/* The PTX of a container that fits the device, in a new buffer. */
static CUresult container_text(const void *data, struct jit_log *log, char **text, size_t *bytes)
{
    struct diag diag = {.offset = -1};
    uint64_t size = fatbin_data_size(data);
    if (!size)
        return CUDA_ERROR_INVALID_IMAGE;
    enum status status = fatbin_ptx(data, size, config_get()->capability, text, bytes, &diag);
    if (status == STATUS_OK)
        return CUDA_SUCCESS;
    if (status == STATUS_NOT_FOUND)
        return refuse_machine_code(log);
    jit_log_write(log, &diag);
    return status == STATUS_BAD_INPUT ? CUDA_ERROR_INVALID_IMAGE : load_error(status);
}

static CUresult load_container(const void *data, struct jit_log *log, struct image **out)
{
    char *text = NULL;
    size_t bytes = 0;
    CUresult result = container_text(data, log, &text, &bytes);
    if (result == CUDA_SUCCESS)
        result = parse(text, bytes, INPUT_NAME, log, out);
    free(text);
    return result;
}

CUresult image_load_text(const char *text, const char *name, struct jit_log *log, struct image **out)
{
    return parse(text, strlen(text), name, log, out);
}

CUresult image_link(const struct ptx_link_input *inputs, size_t count, struct jit_log *log, char **joined,
                    struct image **out)
{
    struct diag diag;
    char *text;
    enum status status = ptx_link(inputs, count, &text, &diag);
    if (status != STATUS_OK) {
        log_unsupported_part("link", diag.text);
        jit_log_write(log, &diag);
        return load_error(status);
    }
    CUresult result = parse(text, strlen(text), INPUT_NAME, log, out);
    if (result == CUDA_SUCCESS && joined)
        *joined = text;
    else
        free(text);
    return result;
}

/* What -rdc=true leaves: containers that the device linker has joined, as machine code only; their PTX is joined here.
 */
static CUresult load_list(const void *const *list, struct jit_log *log, struct image **out)
{
    struct ptx_link_input *inputs = NULL;
    size_t count = 0, all = 0;
    CUresult result = CUDA_SUCCESS;
    while (list[all])
        all++;
    inputs = calloc(all + 1, sizeof *inputs);
    char(*names)[32] = calloc(all + 1, sizeof *names);
    if (!inputs || !names)
        result = CUDA_ERROR_OUT_OF_MEMORY;
    for (size_t i = 0; i < all && result == CUDA_SUCCESS; i++) {
        char *text = NULL;
        size_t bytes = 0;
        if (fatbin_is_device_runtime(list[i], fatbin_data_size(list[i])))
            continue;                                             /* the executor has its functions */
        snprintf(names[i], sizeof names[i], "object %zu", i + 1); /* of the program, in the order of linking */
        result = container_text(list[i], log, &text, &bytes);
        if (result == CUDA_SUCCESS)
            inputs[count++] = (struct ptx_link_input){text, names[i]};
    }
    if (result == CUDA_SUCCESS)
        result = image_link(inputs, count, log, NULL, out);
    for (size_t i = 0; i < count; i++)
        free((void *)(uintptr_t)inputs[i].text);
    free(inputs);
    free(names);
    return result;
}

/* Byte by byte, so that nothing behind a short text is read. */
static bool starts_with(const unsigned char *data, const unsigned char magic[4])
{
    return data[0] == magic[0] && data[1] == magic[1] && data[2] == magic[2] && data[3] == magic[3];
}

CUresult image_load(const void *data, struct jit_log *log, struct image **out)
{
    *out = NULL;
    static const unsigned char wrapper[4] = {0xb1, 0x43, 0x62, 0x46}, container[4] = {0x50, 0xed, 0x55, 0xba};
    static const unsigned char elf[4] = {0x7f, 'E', 'L', 'F'};
    if (starts_with(data, wrapper)) {
        const struct wrapper *w = data;
        return w->version == 2 && w->file_or_list ? load_list(w->file_or_list, log, out)
                                                  : load_container(w->data, log, out);
    }
    if (starts_with(data, container))
        return load_container(data, log, out);
    if (starts_with(data, elf))
        return refuse_machine_code(log);
    const char *text = data;
    size_t bytes = strlen(text);
    return memmem(text, bytes, ".version", 8) ? parse(text, bytes, INPUT_NAME, log, out) : CUDA_ERROR_INVALID_IMAGE;
}

const struct ptx_module *image_flawed(struct image *image, uint32_t kinds)
{
    struct diag diag;
    size_t bytes = 0, slot = (kinds & FAULT_TEXT_KINDS) >> FAULT_TF32;
    _Static_assert(FAULT_TEXT_KINDS >> FAULT_TF32 == FLAW_SETS - 1, "one slot per set of flaws");
    context_lock();
    if (!image->flawed[slot] && image->text) {
        char *text = fault_rewrite(image->text, image->text_bytes, kinds, &bytes);
        if (text && ptx_module_load(text, bytes, "flawed", &image->flawed[slot], &diag) != STATUS_OK)
            log_unsupported_part("SOFTGPU_FAULTS", diag.text);
        free(text);
    }
    const struct ptx_module *flawed = image->flawed[slot];
    context_unlock();
    return flawed;
}

struct image *image_ref(struct image *image)
{
    atomic_fetch_add(&image->refs, 1);
    return image;
}

void image_unref(struct image *image)
{
    if (atomic_fetch_sub(&image->refs, 1) != 1)
        return;
    ptx_module_free(image->ptx);
    for (size_t i = 0; i < FLAW_SETS; i++)
        ptx_module_free(image->flawed[i]);
    free(image->text);
    free(image);
}

CUresult image_read_file(const char *path, char **out)
{
    FILE *f = fopen(path, "rbe");
    if (!f)
        return CUDA_ERROR_FILE_NOT_FOUND;
    struct buf b = {0};
    char chunk[65536];
    size_t n;
    while ((n = fread(chunk, 1, sizeof chunk, f)) > 0)
        buf_append(&b, chunk, n);
    fclose(f);
    /* Room behind a short file, so that looking at magic numbers and headers stays inside. */
    static const char zeros[16];
    buf_append(&b, zeros, sizeof zeros);
    if (b.failed) {
        buf_free(&b);
        return CUDA_ERROR_OUT_OF_MEMORY;
    }
    *out = b.data;
    return CUDA_SUCCESS;
}
