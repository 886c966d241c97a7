#include "analyzer/operator.h"

#include <complex.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "analyzer/element.h"

static const struct operation {
    uint32_t library;
    const char *part, *id, *text;
} operations[] = {
#define OPERATION(library, part, id, text) {CAP_LIBRARY_##library, part, id, text},
#include "analyzer/operations.def"
#undef OPERATION
};

static const struct operation *operation_of(const struct model_operator *op)
{
    static const struct operation unknown = {0, "", "unknown", "meaning unknown"};
    for (size_t i = 0; i < sizeof operations / sizeof *operations; i++)
        if (operations[i].library == op->function->library && strstr(op->name, operations[i].part))
            return &operations[i];
    return &unknown;
}

const char *operator_library(const struct model_operator *op)
{
    static const char *const names[] = {"cuBLAS", "cuBLASLt", "NCCL"};
    return names[op->function->library];
}

const char *operator_kind(const struct model_operator *op)
{
    return operation_of(op)->id;
}

const char *operator_meaning(const struct model_operator *op)
{
    return operation_of(op)->text;
}

bool operator_is_setup(const struct model_operator *op)
{
    const char *kind = operator_kind(op);
    return strcmp(kind, "setup") == 0 || strcmp(kind, "group") == 0;
}

bool operator_communicates(const struct model_operator *op)
{
    return op->function->library == CAP_LIBRARY_NCCL && !operator_is_setup(op);
}

/* ---- values by name ---- */

static const struct cap_parameter *parameters_of(const struct model_operator *op)
{
    return (const struct cap_parameter *)(op->function + 1);
}

static const uint64_t *values_of(const struct model_operator *op)
{
    return (const uint64_t *)(op->record + 1);
}

static const struct cap_detail_item *detail_item(const struct capture *c, const struct model_operator *op,
                                                 const char *name)
{
    const struct cap_detail_item *items = op->detail ? (const void *)(op->detail + 1) : NULL;
    for (uint32_t i = 0; items && i < op->detail->count; i++)
        if (strcmp(capture_string(c, items[i].name), name) == 0)
            return &items[i];
    return NULL;
}

bool operator_number(const struct capture *c, const struct model_operator *op, const char *name, uint64_t *value)
{
    const struct cap_parameter *parameters = parameters_of(op);
    for (uint32_t i = 0; i < op->function->param_count; i++)
        if (strcmp(capture_string(c, parameters[i].name), name) == 0) {
            *value = values_of(op)[i];
            return true;
        }
    const struct cap_detail_item *item = detail_item(c, op, name);
    if (item && item->kind == CAP_DETAIL_INTEGER)
        *value = item->value[0];
    return item && item->kind == CAP_DETAIL_INTEGER;
}

static int64_t number_or(const struct capture *c, const struct model_operator *op, const char *name, int64_t otherwise)
{
    uint64_t value;
    return operator_number(c, op, name, &value) ? (int64_t)value : otherwise;
}

/* "S" of cublasSgemm_v2: the letter that says which numbers a BLAS function works on. 0: none. */
static char type_letter(const struct model_operator *op)
{
    const char *name = op->name;
    if (op->function->library != CAP_LIBRARY_CUBLAS || strncmp(name, "cublas", 6) != 0 || !name[6])
        return 0;
    char first = name[6], second = name[7];
    if (first == 'I' && second) /* cublasIsamax: the index of ... */
        return (char)(second - ('a' - 'A'));
    return strchr("SDCZH", first) && second >= 'a' && second <= 'z' ? first : 0;
}

static const char *letter_type(char letter, uint32_t *bytes)
{
    static const struct {
        char letter;
        const char *name;
        uint32_t bytes;
    } types[] = {{'S', "f32", 4}, {'D', "f64", 8}, {'C', "c64", 8}, {'Z', "c128", 16}, {'H', "f16", 2}};
    for (size_t i = 0; i < sizeof types / sizeof *types; i++)
        if (types[i].letter == letter) {
            *bytes = types[i].bytes;
            return types[i].name;
        }
    return NULL;
}

bool operator_scalar(const struct capture *c, const struct model_operator *op, const char *name, char *out,
                     size_t bytes)
{
    const struct cap_detail_item *item = detail_item(c, op, name);
    uint64_t compute = (uint64_t)number_or(c, op, "computeType", 0);
    compute = (uint64_t)number_or(c, op, "compute_type", (int64_t)compute);
    float f[2];
    double d[2];
    int32_t i;
    if (!item || item->kind != CAP_DETAIL_BYTES)
        return false;
    memcpy(f, item->value, sizeof f);
    memcpy(d, item->value, sizeof d);
    memcpy(&i, item->value, sizeof i);
    /* Eight bytes are a double or two floats, which the function's letter or its compute type tells. */
    bool two_floats = type_letter(op) == 'C' || (compute >= 68 && compute <= 78 && compute != 70 && compute != 71);
    switch (item->bytes) {
    case 2:
        snprintf(out, bytes, "%g", element_value(ELEMENT_F16, (const uint8_t *)item->value));
        return true;
    case 4:
        if (compute == 72 || compute == 73)
            snprintf(out, bytes, "%" PRId32, i);
        else
            snprintf(out, bytes, "%g", (double)f[0]);
        return true;
    case 8:
        if (two_floats)
            snprintf(out, bytes, "%g%+gi", (double)f[0], (double)f[1]);
        else
            snprintf(out, bytes, "%g", d[0]);
        return true;
    case 16:
        snprintf(out, bytes, "%g%+gi", d[0], d[1]);
        return true;
    default:
        return false;
    }
}

/* ---- operands ---- */

const char *operator_data_type(uint64_t type, uint32_t *bytes)
{
    static const struct {
        const char *name;
        uint32_t bytes;
    } types[] = {
        [0] = {"f32", 4},   [1] = {"f64", 8},     [2] = {"f16", 2},     [3] = {"i8", 1},   [4] = {"c64", 8},
        [5] = {"c128", 16}, [6] = {"c32", 4},     [8] = {"u8", 1},      [10] = {"i32", 4}, [12] = {"u32", 4},
        [14] = {"bf16", 2}, [15] = {"cbf16", 4},  [20] = {"i16", 2},    [22] = {"u16", 2}, [24] = {"i64", 8},
        [26] = {"u64", 8},  [28] = {"f8e4m3", 1}, [29] = {"f8e5m2", 1},
    };
    if (type >= sizeof types / sizeof *types || !types[type].name)
        return NULL;
    *bytes = types[type].bytes;
    return types[type].name;
}

static const char *nccl_type(uint64_t type, uint32_t *bytes)
{
    static const struct {
        const char *name;
        uint32_t bytes;
    } types[] = {{"i8", 1},  {"u8", 1},  {"i32", 4}, {"u32", 4},  {"i64", 8},    {"u64", 8},
                 {"f16", 2}, {"f32", 4}, {"f64", 8}, {"bf16", 2}, {"f8e4m3", 1}, {"f8e5m2", 1}};
    if (type >= sizeof types / sizeof *types)
        return NULL;
    *bytes = types[type].bytes;
    return types[type].name;
}

static void set_type(const struct capture *c, const struct model_operator *op, struct operand *o)
{
    char name[64];
    uint64_t type;
    if (op->function->library == CAP_LIBRARY_NCCL) {
        if (operator_number(c, op, "datatype", &type))
            o->type = nccl_type(type, &o->element_bytes);
        return;
    }
    snprintf(name, sizeof name, op->function->library == CAP_LIBRARY_CUBLASLT ? "%s.type" : "%stype", o->name);
    bool found = operator_number(c, op, name, &type);
    if (!found && op->function->library == CAP_LIBRARY_CUBLAS) {
        snprintf(name, sizeof name, "%sType", o->name); /* xType, yType */
        found = operator_number(c, op, name, &type);
    }
    if (found)
        o->type = operator_data_type(type, &o->element_bytes);
    else
        o->type = letter_type(type_letter(op), &o->element_bytes);
}

/* Does the product see the operand as it lies, or transposed? */
static bool transposed(const struct capture *c, const struct model_operator *op, char which)
{
    return number_or(c, op, which == 'A' ? "transa" : "transb", 0) != 0;
}

/* A, B and C of a matrix product; also those of a batch with equal strides. */
static void shape_product(const struct capture *c, const struct model_operator *op, struct operand *o)
{
    char ld[] = "ldx", stride[] = "stridex";
    char which = o->name[0];
    int64_t m = number_or(c, op, "m", -1), n = number_or(c, op, "n", -1), k = number_or(c, op, "k", -1);
    if (strlen(o->name) != 1 || !strchr("ABC", which) || m < 0 || n < 0 || k < 0)
        return;
    ld[2] = (char)(which + ('a' - 'A'));
    stride[6] = which;
    int64_t step = number_or(c, op, ld, -1);
    int64_t rows = which == 'B' ? k : m, columns = which == 'A' ? k : n;
    if (which != 'C' && transposed(c, op, which)) {
        int64_t swap = rows;
        rows = columns;
        columns = swap;
    }
    o->rows = (uint64_t)rows;
    o->columns = (uint64_t)columns;
    o->ld = (uint64_t)step;
    o->batch = (uint64_t)number_or(c, op, "batchCount", 1);
    o->stride = number_or(c, op, stride, 0);
    o->shaped = step > 0;
}

/* A, B, C and D of cublasLtMatmul, by their layouts. Orders other than by column are tiles that the layout's numbers do
 * not describe as columns; by row they are, the other way round. */
static void shape_layout(const struct capture *c, const struct model_operator *op, struct operand *o)
{
    char name[32];
    uint64_t value[6] = {0};
    static const char *const parts[] = {"rows", "cols", "ld", "batch", "stride", "order"};
    for (size_t i = 0; i < 6; i++) {
        snprintf(name, sizeof name, "%s.%s", o->name, parts[i]);
        if (!operator_number(c, op, name, &value[i]) && i < 3)
            return;
    }
    bool by_row = value[5] == 1;
    if (value[5] > 1)
        return;
    o->rows = value[by_row ? 1 : 0];
    o->columns = value[by_row ? 0 : 1];
    o->ld = value[2];
    o->batch = value[3] ? value[3] : 1;
    o->stride = (int64_t)value[4];
    o->shaped = true;
}

/* How many elements a collective reads and writes at this rank, where its own arguments tell. */
static void shape_buffer(const struct capture *c, const struct model_operator *op, struct operand *o)
{
    uint64_t count;
    bool receives = strcmp(o->name, "recvbuff") == 0;
    bool has_count = operator_number(c, op, "count", &count) ||
                     (!receives && operator_number(c, op, "sendcount", &count)) ||
                     (receives && operator_number(c, op, "recvcount", &count));
    /* These move a multiple of the count, times the number of ranks. */
    const char *kind = operator_kind(op);
    bool many = strcmp(kind, "all-to-all") == 0 || strcmp(kind, "gather") == 0 || strcmp(kind, "scatter") == 0;
    if (!has_count || many)
        return;
    o->rows = count;
    o->columns = o->batch = 1;
    o->ld = count;
    o->shaped = true;
}

static bool is_operand(const char *name, uint32_t kind)
{
    static const char *const others[] = {"alpha", "beta", "algo", "algos", "comm", "config", "devlist", "newcomm"};
    if (kind < CAP_PARAMETER_POINTER || kind > CAP_PARAMETER_TARGETS)
        return false;
    for (size_t i = 0; i < sizeof others / sizeof *others; i++)
        if (strcmp(name, others[i]) == 0)
            return false;
    return true;
}

size_t operator_operands(const struct capture *c, const struct model_operator *op, struct operand *out)
{
    const struct cap_parameter *parameters = parameters_of(op);
    bool product = strcmp(operator_kind(op), "gemm") == 0;
    size_t count = 0;
    uint64_t bias;
    for (uint32_t i = 0; i < op->function->param_count && count < OPERANDS_MAX; i++) {
        struct operand o = {.name = capture_string(c, parameters[i].name), .address = values_of(op)[i]};
        if (!is_operand(o.name, parameters[i].kind) || !o.address)
            continue;
        o.list = parameters[i].kind == CAP_PARAMETER_POINTERS || parameters[i].kind == CAP_PARAMETER_TARGETS;
        o.written = parameters[i].kind == CAP_PARAMETER_TARGET || parameters[i].kind == CAP_PARAMETER_TARGETS;
        set_type(c, op, &o);
        if (op->function->library == CAP_LIBRARY_CUBLASLT)
            shape_layout(c, op, &o);
        else if (op->function->library == CAP_LIBRARY_NCCL)
            shape_buffer(c, op, &o);
        else if (product)
            shape_product(c, op, &o);
        o.shaped = o.shaped && o.element_bytes;
        out[count++] = o;
    }
    if (op->function->library == CAP_LIBRARY_CUBLASLT && count < OPERANDS_MAX && operator_number(c, op, "bias", &bias))
        /* With a gradient epilogue it is written. */
        out[count++] =
            (struct operand){.name = "bias", .address = bias, .written = number_or(c, op, "epilogue", 0) >= 16};
    if (op->function->library == CAP_LIBRARY_CUBLASLT && count < OPERANDS_MAX && operator_number(c, op, "aux", &bias))
        out[count++] = (struct operand){.name = "aux", .address = bias, .written = true};
    return count;
}
