/* library_meaning.c - what a library call's arguments alone do not tell: the handle's stream and modes, scalars by
 * value, the contents of descriptors.
 *
 * Asked of the library itself, through functions that only read its own structures on the host. What the program's
 * pointers lead to is read after the call has succeeded, since a library that refuses a call need not have followed
 * them.
 */
#include <stdlib.h>
#include <string.h>

#include "shim/capture_write.h"
#include "shim/intern.h"
#include "shim/library.h"
#include "shim/thread.h"

/* ---- asking ---- */

/* An attribute of a cuBLAS handle; false: it has none. */
static bool ask_handle(const struct library_call *call, const char *symbol, void **cached, uint64_t handle, void *out)
{
    int (*get)(void *, void *) = handle ? (int (*)(void *, void *))library_beside(call, symbol, cached) : NULL;
    return get && get((void *)(uintptr_t)handle, out) == 0;
}

static bool ask_descriptor(const struct library_call *call, const char *symbol, void **cached, uint64_t descriptor,
                           int attribute, void *out, size_t bytes)
{
    int (*get)(void *, int, void *, size_t, size_t *) = NULL;
    size_t written = 0;
    if (descriptor)
        get = (int (*)(void *, int, void *, size_t, size_t *))library_beside(call, symbol, cached);
    return get && get((void *)(uintptr_t)descriptor, attribute, out, bytes, &written) == 0 && written == bytes;
}

bool library_stream(const struct library_call *call, void **stream)
{
    static void *get_stream[LIBRARY_VERSIONS];
    uint64_t value;
    if (library_argument(call, "stream", &value)) {
        *stream = (void *)(uintptr_t)value;
        return true;
    }
    if (library_rows[call->function].library != CAP_LIBRARY_CUBLAS || !library_argument(call, "handle", &value) ||
        library_rows[call->function].parameters[0].kind != CAP_PARAMETER_HANDLE)
        return false;
    return ask_handle(call, "cublasGetStream_v2", get_stream, value, stream);
}

/* ---- the record ---- */

enum { ITEMS_MAX = 48 };
struct items {
    struct {
        const char *name;
        struct cap_detail_item item;
    } list[ITEMS_MAX];
    uint32_t count;
};

static void add_integer(struct items *items, const char *name, uint64_t value)
{
    if (items->count < ITEMS_MAX) {
        items->list[items->count].name = name;
        items->list[items->count++].item =
            (struct cap_detail_item){.kind = CAP_DETAIL_INTEGER, .bytes = 8, .value = {value, 0}};
    }
}

static void add_bytes(struct items *items, const char *name, uint64_t address, uint32_t bytes)
{
    if (items->count >= ITEMS_MAX || !address || !bytes || bytes > 16)
        return;
    struct cap_detail_item *item = &items->list[items->count].item;
    *item = (struct cap_detail_item){.kind = CAP_DETAIL_BYTES, .bytes = (uint16_t)bytes};
    memcpy(item->value, (const void *)(uintptr_t)address, bytes);
    items->list[items->count++].name = name;
}

static void write_items(const struct library_call *call, const struct items *items)
{
    uint32_t names[ITEMS_MAX];
    for (uint32_t i = 0; i < items->count; i++)
        names[i] = intern_string(items->list[i].name);
    struct cap_detail *record =
        capture_define(CAP_DETAIL, sizeof *record + items->count * sizeof(struct cap_detail_item));
    if (!record)
        return;
    struct cap_detail_item *out = (void *)(record + 1);
    record->operator= call->seq;
    record->count = items->count;
    for (uint32_t i = 0; i < items->count; i++) {
        out[i] = items->list[i].item;
        out[i].name = names[i];
    }
    capture_commit(record);
}

/* ---- scalars ---- */

/* Bytes of an element of a cudaDataType; 0: unknown here, or less than one. */
static uint32_t data_type_bytes(uint64_t type)
{
    static const uint8_t bytes[] = {
        [0] = 4,  [1] = 8,  [2] = 2,  [3] = 1,   [4] = 8,  [5] = 16,  [6] = 4,  [7] = 2,  [8] = 1,
        [9] = 2,  [10] = 4, [11] = 8, [12] = 4,  [13] = 8, [14] = 2,  [15] = 4, [20] = 2, [21] = 4,
        [22] = 2, [23] = 4, [24] = 8, [25] = 16, [26] = 8, [27] = 16, [28] = 1, [29] = 1,
    };
    return type < sizeof bytes ? bytes[type] : 0;
}

static bool is_complex(uint64_t type)
{
    return type == 4 || type == 5;
}

/* Of alpha and beta when the function computes in `compute`, a cublasComputeType_t or (as older programs give it) a
 * cudaDataType. */
static uint32_t compute_scalar_bytes(uint64_t compute, bool complex)
{
    switch (compute) {
    case 64: /* CUBLAS_COMPUTE_16F and its pedantic form */
    case 65:
        return 2;
    case 68: /* all forms of 32F */
    case 69:
    case 74:
    case 75:
    case 77:
    case 78:
        return complex ? 8 : 4;
    case 70: /* 64F */
    case 71:
    case 79:
        return complex ? 16 : 8;
    case 72: /* 32I */
    case 73:
        return 4;
    default:
        return data_type_bytes(compute);
    }
}

static uint32_t scalar_bytes(const struct library_call *call, uint32_t pointee)
{
    uint64_t type, c;
    if (pointee)
        return pointee;
    if (library_argument(call, "alphaType", &type))
        return data_type_bytes(type);
    if (library_argument(call, "computeType", &type))
        return compute_scalar_bytes(type, library_argument(call, "Ctype", &c) && is_complex(c));
    return 0;
}

/* On a 32F product whose output is integer, and the like, the width is told by the compute type as well. */
static void add_scalars(const struct library_call *call, struct items *items)
{
    const struct library_row *row = &library_rows[call->function];
    for (uint32_t i = 0; i < row->count; i++)
        if (row->parameters[i].kind == CAP_PARAMETER_POINTER &&
            (strcmp(row->parameters[i].name, "alpha") == 0 || strcmp(row->parameters[i].name, "beta") == 0))
            add_bytes(items, row->parameters[i].name, call->values[i], scalar_bytes(call, row->parameters[i].pointee));
}

static void blas_detail(const struct library_call *call, struct items *items)
{
    static void *get_pointer_mode[LIBRARY_VERSIONS], *get_math_mode[LIBRARY_VERSIONS],
        *get_atomics_mode[LIBRARY_VERSIONS];
    uint64_t handle;
    int pointer_mode = 0, math_mode = 0, atomics_mode = 0;
    if (library_rows[call->function].parameters[0].kind != CAP_PARAMETER_HANDLE ||
        !library_argument(call, "handle", &handle) ||
        strncmp(library_rows[call->function].symbol, "cublasDestroy", 13) == 0)
        return;
    if (!ask_handle(call, "cublasGetPointerMode_v2", get_pointer_mode, handle, &pointer_mode))
        return;
    if (pointer_mode == 0)
        add_scalars(call, items);
    else
        add_integer(items, "pointer_mode", (uint64_t)pointer_mode);
    if (ask_handle(call, "cublasGetMathMode", get_math_mode, handle, &math_mode) && math_mode)
        add_integer(items, "math_mode", (uint64_t)math_mode);
    if (ask_handle(call, "cublasGetAtomicsMode", get_atomics_mode, handle, &atomics_mode) && atomics_mode)
        add_integer(items, "atomics_mode", (uint64_t)atomics_mode);
}

/* ---- cuBLASLt ---- */

struct attribute {
    const char *name;
    int number, bytes;
    bool always; /* else only when it is not 0, the default */
};

static const struct attribute product_attributes[] = {
    {"compute_type", 0, 4, true}, {"scale_type", 1, 4, true}, {"pointer_mode", 2, 4, false},
    {"transa", 3, 4, true},       {"transb", 4, 4, true},     {"transc", 5, 4, false},
    {"epilogue", 7, 4, true},     {"bias", 8, 8, false},      {"bias_stride", 10, 8, false},
    {"aux", 11, 8, false},        {"aux_ld", 12, 8, false},   {"aux_stride", 13, 8, false},
};
static const struct attribute transform_attributes[] = {
    {"scale_type", 0, 4, true},
    {"pointer_mode", 1, 4, false},
    {"transa", 2, 4, true},
    {"transb", 3, 4, true},
};

/* Names live as long as the process: they are interned by pointer to static text. */
#define LAYOUT(x)                                                                                                      \
    {                                                                                                                  \
        {x ".type", 0, 4, true}, {x ".order", 1, 4, false}, {x ".rows", 2, 8, true}, {x ".cols", 3, 8, true},          \
            {x ".ld", 4, 8, true}, {x ".batch", 5, 4, true},                                                           \
        {                                                                                                              \
            x ".stride", 6, 8, false                                                                                   \
        }                                                                                                              \
    }
static const struct attribute layout_attributes[4][7] = {LAYOUT("A"), LAYOUT("B"), LAYOUT("C"), LAYOUT("D")};

static void add_attributes(const struct library_call *call, struct items *items, const char *getter, void **cached,
                           uint64_t descriptor, const struct attribute *attributes, size_t count)
{
    for (size_t i = 0; i < count; i++) {
        uint64_t value = 0;
        if (ask_descriptor(call, getter, cached, descriptor, attributes[i].number, &value,
                           (size_t)attributes[i].bytes) &&
            (value || attributes[i].always))
            add_integer(items, attributes[i].name, value);
    }
}

static bool item_value(const struct items *items, const char *name, uint64_t *value)
{
    for (uint32_t i = 0; i < items->count; i++)
        if (strcmp(items->list[i].name, name) == 0) {
            *value = items->list[i].item.value[0];
            return true;
        }
    return false;
}

static void lt_detail(const struct library_call *call, struct items *items)
{
    static const char *const layouts[] = {"Adesc", "Bdesc", "Cdesc", "Ddesc"};
    static void *get_product[LIBRARY_VERSIONS], *get_transform[LIBRARY_VERSIONS], *get_layout[LIBRARY_VERSIONS];
    uint64_t descriptor, address, type, pointer_mode = 0;
    if (library_argument(call, "computeDesc", &descriptor))
        add_attributes(call, items, "cublasLtMatmulDescGetAttribute", get_product, descriptor, product_attributes,
                       sizeof product_attributes / sizeof *product_attributes);
    if (library_argument(call, "transformDesc", &descriptor))
        add_attributes(call, items, "cublasLtMatrixTransformDescGetAttribute", get_transform, descriptor,
                       transform_attributes, sizeof transform_attributes / sizeof *transform_attributes);
    for (size_t i = 0; i < sizeof layouts / sizeof *layouts; i++)
        if (library_argument(call, layouts[i], &descriptor))
            add_attributes(call, items, "cublasLtMatrixLayoutGetAttribute", get_layout, descriptor,
                           layout_attributes[i], sizeof layout_attributes[i] / sizeof *layout_attributes[i]);
    item_value(items, "pointer_mode", &pointer_mode);
    if (!item_value(items, "scale_type", &type))
        return;
    if (pointer_mode == 0 && library_argument(call, "alpha", &address))
        add_bytes(items, "alpha", address, data_type_bytes(type));
    if ((pointer_mode == 0 || pointer_mode == 4) &&
        library_argument(call, "beta", &address)) /* 4: beta alone is the host's */
        add_bytes(items, "beta", address, data_type_bytes(type));
}

/* ---- NCCL ---- */

/* The communicators that a call made: NCCL puts them where it was told before it returns. */
static void nccl_detail(const struct library_call *call, struct items *items)
{
    static const char *const names[] = {"comm[0]",  "comm[1]",  "comm[2]",  "comm[3]", "comm[4]",  "comm[5]",
                                        "comm[6]",  "comm[7]",  "comm[8]",  "comm[9]", "comm[10]", "comm[11]",
                                        "comm[12]", "comm[13]", "comm[14]", "comm[15]"};
    const struct library_row *row = &library_rows[call->function];
    uint64_t address, count = 1;
    if (!library_argument(call, "newcomm", &address) &&
        (!row->count || row->parameters[0].kind != CAP_PARAMETER_OTHER || !library_argument(call, "comm", &address)))
        return;
    (void)library_argument(call, "ndev", &count);
    for (uint64_t i = 0; address && i < count && i < sizeof names / sizeof *names; i++)
        add_integer(items, names[i], (uint64_t)((void **)(uintptr_t)address)[i]);
}

void library_detail(const struct library_call *call)
{
    struct items *items = calloc(1, sizeof *items);
    if (!items)
        return;
    switch (library_rows[call->function].library) {
    case CAP_LIBRARY_CUBLAS:
        blas_detail(call, items);
        break;
    case CAP_LIBRARY_CUBLASLT:
        lt_detail(call, items);
        break;
    default:
        nccl_detail(call, items);
        break;
    }
    if (items->count || !capture_can_patch(call->record))
        write_items(call, items);
    free(items);
}
