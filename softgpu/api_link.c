/* The linker: PTX and fat binaries go in, and their PTX, joined by ptx_link(), comes out as the image to be loaded. */
#include <stdlib.h>
#include <string.h>

#include "common/fatbin.h"
#include "softgpu/module.h"

struct link {
    struct jit_log log;
    struct ptx_link_input *inputs; /* text and name owned */
    size_t count, capacity;
    char *joined;
};

static CUresult enter_link(CUlinkState state, struct link **out)
{
    struct context *c;
    CUresult result = enter_context(&c);
    if (result != CUDA_SUCCESS)
        return result;
    if (handle_of(state) != HANDLE_LINK)
        return CUDA_ERROR_INVALID_HANDLE;
    *out = (struct link *)state;
    return CUDA_SUCCESS;
}

CUresult cuLinkCreate_v2(unsigned int numOptions, CUjit_option *options, void **optionValues, CUlinkState *stateOut)
{
    struct context *c;
    CUresult result = enter_context(&c);
    if (result != CUDA_SUCCESS)
        return result;
    if (!stateOut || (numOptions && (!options || !optionValues)))
        return CUDA_ERROR_INVALID_VALUE;
    struct link *l = calloc(1, sizeof *l);
    if (!l || !handle_add(l, HANDLE_LINK)) {
        free(l);
        return CUDA_ERROR_OUT_OF_MEMORY;
    }
    jit_log_from(&l->log, numOptions, options, optionValues);
    *stateOut = (CUlinkState)l;
    return CUDA_SUCCESS;
}

CUresult cuLinkCreate(unsigned int numOptions, CUjit_option *options, void **optionValues, CUlinkState *stateOut)
{
    return cuLinkCreate_v2(numOptions, options, optionValues, stateOut);
}

/* Every module must load by itself: its errors are told here, under its own name. */
static CUresult take(struct link *l, const char *text, size_t bytes, const char *name)
{
    struct image *image;
    if (l->count == l->capacity) {
        size_t want = l->capacity ? l->capacity * 2 : 8;
        struct ptx_link_input *fresh = realloc(l->inputs, want * sizeof *fresh);
        if (!fresh)
            return CUDA_ERROR_OUT_OF_MEMORY;
        l->inputs = fresh;
        l->capacity = want;
    }
    char *copy = strndup(text, bytes), *label = strdup(name && *name ? name : "PTX");
    CUresult result = !copy || !label                       ? CUDA_ERROR_OUT_OF_MEMORY
                      : !memmem(text, bytes, ".version", 8) ? CUDA_ERROR_INVALID_PTX
                                                            : image_load_text(copy, label, &l->log, &image);
    if (result != CUDA_SUCCESS) {
        free(copy);
        free(label);
        return result;
    }
    image_unref(image);
    l->inputs[l->count++] = (struct ptx_link_input){copy, label};
    return CUDA_SUCCESS;
}

CUresult cuLinkAddData_v2(CUlinkState state, CUjitInputType type, void *data, size_t size, const char *name,
                          unsigned int numOptions, CUjit_option *options, void **optionValues)
{
    struct link *l;
    struct diag diag;
    char *text;
    size_t bytes;
    CUresult result = enter_link(state, &l);
    if (result != CUDA_SUCCESS)
        return result;
    if (!data || !size)
        return CUDA_ERROR_INVALID_VALUE;
    if (type == CU_JIT_INPUT_PTX)
        return take(l, data, strnlen(data, size), name);
    if (type != CU_JIT_INPUT_FATBINARY)
        return CUDA_ERROR_NO_BINARY_FOR_GPU;
    switch (fatbin_ptx(data, size, config_get()->capability, &text, &bytes, &diag)) {
    case STATUS_OK:
        result = take(l, text, bytes, name);
        free(text);
        return result;
    case STATUS_NOT_FOUND:
        return CUDA_ERROR_NO_BINARY_FOR_GPU;
    default:
        return CUDA_ERROR_INVALID_IMAGE;
    }
}

CUresult cuLinkAddData(CUlinkState state, CUjitInputType type, void *data, size_t size, const char *name,
                       unsigned int numOptions, CUjit_option *options, void **optionValues)
{
    return cuLinkAddData_v2(state, type, data, size, name, numOptions, options, optionValues);
}

CUresult cuLinkAddFile_v2(CUlinkState state, CUjitInputType type, const char *path, unsigned int numOptions,
                          CUjit_option *options, void **optionValues)
{
    struct link *l;
    CUresult result = enter_link(state, &l);
    if (result != CUDA_SUCCESS)
        return result;
    if (!path)
        return CUDA_ERROR_INVALID_VALUE;
    if (type != CU_JIT_INPUT_PTX)
        return type == CU_JIT_INPUT_FATBINARY ? log_unsupported_part("cuLinkAddFile", "fat binaries")
                                              : CUDA_ERROR_NO_BINARY_FOR_GPU;
    char *text;
    result = image_read_file(path, &text);
    if (result != CUDA_SUCCESS)
        return result;
    result = take(l, text, strlen(text), path);
    free(text);
    return result;
}

CUresult cuLinkAddFile(CUlinkState state, CUjitInputType type, const char *path, unsigned int numOptions,
                       CUjit_option *options, void **optionValues)
{
    return cuLinkAddFile_v2(state, type, path, numOptions, options, optionValues);
}

/* The image lives until the state is destroyed. */
CUresult cuLinkComplete(CUlinkState state, void **cubinOut, size_t *sizeOut)
{
    struct link *l;
    CUresult result = enter_link(state, &l);
    if (result != CUDA_SUCCESS)
        return result;
    if (!cubinOut)
        return CUDA_ERROR_INVALID_VALUE;
    if (!l->count)
        return CUDA_ERROR_INVALID_IMAGE;
    struct image *image;
    free(l->joined);
    l->joined = NULL;
    result = image_link(l->inputs, l->count, &l->log, &l->joined, &image);
    if (result != CUDA_SUCCESS)
        return result;
    image_unref(image);
    *cubinOut = l->joined;
    if (sizeOut)
        *sizeOut = strlen(l->joined) + 1;
    return CUDA_SUCCESS;
}

CUresult cuLinkDestroy(CUlinkState state)
{
    CUresult result = enter();
    if (result != CUDA_SUCCESS)
        return result;
    if (!handle_remove(state, HANDLE_LINK))
        return CUDA_ERROR_INVALID_HANDLE;
    struct link *l = (struct link *)state;
    for (size_t i = 0; i < l->count; i++) {
        free((void *)(uintptr_t)l->inputs[i].text);
        free((void *)(uintptr_t)l->inputs[i].name);
    }
    free(l->inputs);
    free(l->joined);
    free(l);
    return CUDA_SUCCESS;
}
