/* operator_text.c - operators for people: enumerations by name, one line that says what a call did. */
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "analyzer/operator.h"

struct value_name {
    uint64_t value;
    const char *name;
};

static const char *find(const struct value_name *names, size_t count, uint64_t value)
{
    for (size_t i = 0; i < count; i++)
        if (names[i].value == value)
            return names[i].name;
    return NULL;
}
#define FIND(names, value) find(names, sizeof(names) / sizeof *(names), value)

static const struct value_name operations[] = {{0, "N"}, {1, "T"}, {2, "C"}, {3, "conjugated"}};
static const struct value_name fills[] = {{0, "lower"}, {1, "upper"}, {2, "full"}};
static const struct value_name sides[] = {{0, "left"}, {1, "right"}};
static const struct value_name diagonals[] = {{0, "non-unit"}, {1, "unit"}};
static const struct value_name computes[] = {
    {64, "16F"},          {65, "16F pedantic"},  {68, "32F"},           {69, "32F pedantic"},
    {74, "32F fast 16F"}, {75, "32F fast 16BF"}, {77, "32F fast TF32"}, {78, "32F emulated 16BFx9"},
    {70, "64F"},          {71, "64F pedantic"},  {79, "64F emulated"},  {72, "32I"},
    {73, "32I pedantic"},
};
static const struct value_name math_modes[] = {
    {0, "default"}, {1, "tensor op"}, {2, "pedantic"}, {3, "TF32 tensor op"}, {16, "no reduced-precision reduction"},
};
static const struct value_name pointer_modes[] = {{0, "host"},
                                                  {1, "device"},
                                                  {2, "device vector"},
                                                  {3, "alpha device vector, beta zero"},
                                                  {4, "alpha device vector, beta host"}};
static const struct value_name epilogues[] = {
    {1, "none"},
    {2, "ReLU"},
    {4, "bias"},
    {6, "ReLU, bias"},
    {130, "ReLU with mask"},
    {134, "ReLU with mask, bias"},
    {136, "ReLU gradient"},
    {152, "ReLU and bias gradient"},
    {32, "GELU"},
    {36, "GELU, bias"},
    {160, "GELU with input"},
    {164, "GELU with input, bias"},
    {192, "GELU gradient"},
    {208, "GELU and bias gradient"},
    {256, "bias gradient of A"},
    {512, "bias gradient of B"},
};
static const struct value_name orders[] = {
    {0, "columns"}, {1, "rows"}, {2, "COL32"}, {3, "COL4_4R2_8C"}, {4, "COL32_2R_4R4"}};
static const struct value_name reductions[] = {{0, "sum"}, {1, "product"}, {2, "max"}, {3, "min"}, {4, "mean"}};

static bool ends_with(const char *text, const char *end)
{
    size_t a = strlen(text), b = strlen(end);
    return a >= b && strcmp(text + a - b, end) == 0;
}

const char *operator_value_name(const char *parameter, enum cap_library library, uint64_t value)
{
    uint32_t bytes;
    if (strncmp(parameter, "trans", 5) == 0)
        return FIND(operations, value);
    if (strcmp(parameter, "uplo") == 0)
        return FIND(fills, value);
    if (strcmp(parameter, "side") == 0 || strcmp(parameter, "mode") == 0)
        return FIND(sides, value);
    if (strcmp(parameter, "diag") == 0)
        return FIND(diagonals, value);
    if (strcmp(parameter, "computeType") == 0 || strcmp(parameter, "compute_type") == 0) {
        const char *name = FIND(computes, value);
        return name ? name : operator_data_type(value, &bytes); /* as older programs give it */
    }
    if (strcmp(parameter, "math_mode") == 0)
        return FIND(math_modes, value);
    if (strcmp(parameter, "pointer_mode") == 0)
        return FIND(pointer_modes, value);
    if (strcmp(parameter, "epilogue") == 0)
        return FIND(epilogues, value);
    if (strcmp(parameter, "op") == 0 && library == CAP_LIBRARY_NCCL)
        return FIND(reductions, value);
    if (ends_with(parameter, ".order"))
        return FIND(orders, value);
    if (library != CAP_LIBRARY_NCCL &&
        (ends_with(parameter, "type") || ends_with(parameter, "Type") || ends_with(parameter, ".type")))
        return operator_data_type(value, &bytes);
    return NULL;
}

static void product_text(const struct capture *c, const struct model_operator *op, char *out, size_t bytes)
{
    struct operand operands[OPERANDS_MAX];
    size_t count = operator_operands(c, op, operands);
    const struct operand *a = NULL, *b = NULL, *result = NULL;
    uint64_t transa = 0, transb = 0, m = 0, n = 0, k = 0, batch = 1;
    for (size_t i = 0; i < count; i++) {
        if (strcmp(operands[i].name, "A") == 0)
            a = &operands[i];
        if (strcmp(operands[i].name, "B") == 0)
            b = &operands[i];
        if (operands[i].written && strlen(operands[i].name) == 1)
            result = &operands[i];
    }
    operator_number(c, op, "transa", &transa);
    operator_number(c, op, "transb", &transb);
    if (!operator_number(c, op, "batchCount", &batch) && result && result->shaped)
        batch = result->batch;
    bool known = operator_number(c, op, "m", &m) && operator_number(c, op, "n", &n) && operator_number(c, op, "k", &k);
    if (!known && a && result && a->shaped && result->shaped) { /* cuBLASLt has layouts instead */
        operator_number(c, op, "D.rows", &m);
        operator_number(c, op, "D.cols", &n);
        known = operator_number(c, op, transa ? "A.rows" : "A.cols", &k);
    }
    const char *ta = operator_value_name("transa", op->function->library, transa);
    const char *tb = operator_value_name("transb", op->function->library, transb);
    int at = 0;
    if (known)
        at = snprintf(out, bytes, "%s,%s %" PRIu64 "x%" PRIu64 "x%" PRIu64, ta ? ta : "?", tb ? tb : "?", m, n, k);
    if (known && batch > 1 && (size_t)at < bytes)
        at += snprintf(out + at, bytes - (size_t)at, " x %" PRIu64, batch);
    const char *type_a = a ? a->type : NULL, *type_b = b ? b->type : NULL, *type = result ? result->type : type_a;
    if ((size_t)at < bytes && type_a && type_b && type && (strcmp(type_a, type) != 0 || strcmp(type_b, type) != 0))
        at += snprintf(out + at, bytes - (size_t)at, " %s*%s->%s", type_a, type_b, type);
    else if ((size_t)at < bytes && type)
        at += snprintf(out + at, bytes - (size_t)at, " %s", type);
    uint64_t epilogue = 0;
    const char *name = operator_number(c, op, "epilogue", &epilogue) && epilogue > 1
                           ? operator_value_name("epilogue", op->function->library, epilogue)
                           : NULL;
    if ((size_t)at < bytes && name)
        snprintf(out + at, bytes - (size_t)at, " (%s)", name);
}

static void collective_text(const struct capture *c, const struct model_operator *op, char *out, size_t bytes)
{
    static const char *const counts[] = {"count", "sendcount", "recvcount"};
    struct operand operands[OPERANDS_MAX];
    size_t operand_count = operator_operands(c, op, operands);
    uint64_t value;
    int at = 0;
    for (size_t i = 0; i < 3; i++)
        if (operator_number(c, op, counts[i], &value))
            at = snprintf(out, bytes, "%" PRIu64, value);
    if (operand_count && operands[0].type && (size_t)at < bytes)
        at += snprintf(out + at, bytes - (size_t)at, " %s", operands[0].type);
    if (operator_number(c, op, "op", &value) && (size_t)at < bytes) {
        const char *name = operator_value_name("op", CAP_LIBRARY_NCCL, value);
        at += snprintf(out + at, bytes - (size_t)at, " %s", name ? name : "own reduction");
    }
    if (operator_number(c, op, "root", &value) && (size_t)at < bytes)
        at += snprintf(out + at, bytes - (size_t)at, " root %" PRId64, (int64_t)value);
    if (operator_number(c, op, "peer", &value) && (size_t)at < bytes)
        snprintf(out + at, bytes - (size_t)at, " peer %" PRId64, (int64_t)value);
}

void operator_summary(const struct capture *c, const struct model_operator *op, char *out, size_t bytes)
{
    const char *kind = operator_kind(op);
    uint64_t m, n;
    *out = '\0';
    if (operator_communicates(op))
        collective_text(c, op, out, bytes);
    else if (strncmp(kind, "gemm", 4) == 0)
        product_text(c, op, out, bytes);
    else if (operator_number(c, op, "m", &m) && operator_number(c, op, "n", &n))
        snprintf(out, bytes, "%" PRId64 "x%" PRId64, (int64_t)m, (int64_t)n);
    else if (operator_number(c, op, "n", &n))
        snprintf(out, bytes, "%" PRId64, (int64_t)n);
}
