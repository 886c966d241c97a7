/* module.h - what the program loads: images of PTX, their instances in contexts, libraries and kernels.
 *
 *     image    parsed PTX, shared by whatever was loaded from it, counted
 *     module   an image in one context: its variables have addresses there, its entries are functions
 *     library  an image that belongs to no context; gets a module in each context at its first use there
 *     kernel   an entry of a library
 * All of it is under context_lock(), but for the parsing, which takes long.
 */
#ifndef SOFTGPU_MODULE_H
#define SOFTGPU_MODULE_H

#include <stdatomic.h>

#include "ptx/opsptx.h"
#include "softgpu/context.h"

enum { FLAW_SETS = 8 };
struct image {
    atomic_uint refs;
    struct ptx_module *ptx;
    struct ptx_version version;
    /* With flaws of arithmetic only (fault.h): the text, and what it became, by flaws; under context_lock(). */
    char *text;
    size_t text_bytes;
    struct ptx_module *flawed[FLAW_SETS];
};

struct module;
struct function {
    struct module *module;
    const struct ptx_kernel *entry;
    int max_dynamic_shared, carveout;
    unsigned cluster[3];
    struct kernel *kernel;        /* when it comes from a library */
    struct legacy_launch *legacy; /* api_legacy.c; free(), under context_lock() */
};
struct module {
    struct image *image;
    struct context *context;
    struct library *library; /* or NULL */
    struct function *functions;
    size_t function_count;
    uint64_t *variables; /* device address by index */
    uint64_t storage;    /* allocation of the variables that are not managed, or 0 */
    struct module *next; /* in the context */
};
struct kernel {
    struct library *library;
    const struct ptx_kernel *entry;
    size_t index;
    int max_dynamic_shared, carveout;
};
struct library {
    struct image *image;
    struct kernel *kernels;
    size_t kernel_count;
    uint64_t *managed; /* address by variable, 0 for those that are not managed: one for all contexts */
};

/* How an image is loaded; the log is the program's buffer (CU_JIT_ERROR_LOG_BUFFER), NULL without one. */
struct jit_log {
    char *error;
    size_t error_bytes;
    char *info;
    size_t info_bytes;
    size_t *error_used, *info_used; /* slots of the option array, or NULL */
};
void jit_log_from(struct jit_log *log, unsigned count, const CUjit_option *options, void **values);

/* Parses the image at `data`: PTX text (NUL-terminated), a fat binary or its wrapper. Nothing but PTX can be used: an
 * ELF image is CUDA_ERROR_NO_BINARY_FOR_GPU. */
CUresult image_load(const void *data, struct jit_log *log, struct image **out);
/* Likewise of PTX text, with a name for messages. */
CUresult image_load_text(const char *text, const char *name, struct jit_log *log, struct image **out);
/* Modules joined by ptx_link(). *joined, if wanted, is the text (free()). */
CUresult image_link(const struct ptx_link_input *inputs, size_t count, struct jit_log *log, char **joined,
                    struct image **out);
/* The image with flaws of arithmetic (fault.h); NULL when it cannot be made. Lives as long as the image. */
const struct ptx_module *image_flawed(struct image *image, uint32_t kinds);
struct image *image_ref(struct image *image);
void image_unref(struct image *image);
/* Reads a whole file into a NUL-terminated buffer (free()). */
CUresult image_read_file(const char *path, char **out);

CUresult module_create(struct context *context, struct image *image, struct library *library, struct module **out);
void module_destroy(struct module *module); /* no launch may be running */
void module_unload_context(struct context *context);
struct function *module_function(struct module *module, const char *name);
/* Address and size of a variable; CUDA_ERROR_NOT_FOUND. */
CUresult module_variable(struct module *module, const char *name, uint64_t *address, uint64_t *bytes);

/* The library's module in a context, made at first use. */
CUresult library_module(struct library *library, struct context *context, struct module **out);
/* The function that a handle means in a context: a CUfunction, or a CUkernel cast to one. */
CUresult function_from(CUfunction handle, struct context *context, struct function **out);

/* What CU_FUNC_ATTRIBUTE_* says. */
CUresult function_attribute(const struct ptx_kernel *entry, const struct image *image, int max_dynamic_shared,
                            int carveout, CUfunction_attribute attribute, int *value);
CUresult function_check_attribute(const struct ptx_kernel *entry, CUfunction_attribute attribute, int value);

#endif
