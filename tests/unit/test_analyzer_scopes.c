/* Module paths, library calls: what records say about launches, and which records are impossible. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <stdlib.h>
#include <string.h>

#include "analyzer/session.h"
#include "analyzer/slabs.h"
#include "tests/unit/capture_make.h"

static void open_session(struct capture_make *m, struct session *s, uint64_t rejected)
{
    struct diag diag = {.text = ""};
    if (session_open(capture_make_write(m), s, &diag))
        fail_msg("%s", diag.text);
    if (s->capture->rejected.count != rejected)
        fail_msg("%d rejected: %s", (int)s->capture->rejected.count, s->capture->rejected.kept[0].text);
}

static void close_all(struct capture_make *m, struct session *s)
{
    session_close(s);
    capture_make_end(m);
}

struct fixture {
    struct capture_make m;
    uint32_t kernel, config;
};

static void start(struct fixture *f)
{
    capture_make_start(&f->m);
    uint32_t module = capture_make_module(&f->m, "x");
    f->kernel = capture_make_kernel(&f->m, module, "work", (const uint32_t[]){8, 0});
    f->config = capture_make_config(&f->m, 1, 32);
}

/* A launch whose head says the scope, as the shim's do inside of a library call. */
static uint64_t launch(struct fixture *f, uint16_t scope)
{
    uint64_t argument = 0;
    uint64_t seq = capture_make_launch(&f->m, f->kernel, f->config, &argument, 8);
    size_t size = sizeof(struct cap_launch) + 8;
    ((struct cap_head *)(void *)(f->m.records + f->m.bytes - size))->scope = scope;
    return seq;
}

static void add_path(struct fixture *f, uint32_t id, uint32_t parent, const char *text)
{
    struct cap_path path = {.head.type = CAP_PATH, .id = id, .parent = parent};
    path.text = capture_make_string(&f->m, text);
    capture_make_record(&f->m, &path, sizeof path, NULL, 0);
}

static void add_range(struct fixture *f, uint32_t kind, uint32_t thread, uint32_t path, uint32_t iteration)
{
    struct cap_range range = {
        .head.type = CAP_RANGE, .kind = kind, .thread = thread, .path = path, .iteration = iteration};
    capture_make_record(&f->m, &range, sizeof range, NULL, 0);
}

static void test_scopes_paths_of_a_thread(void **state)
{
    struct fixture f;
    struct session s;
    start(&f);
    launch(&f, 0xffff);
    add_path(&f, 1, 0, "step");
    add_path(&f, 2, 1, "step.mlp");
    add_range(&f, CAP_RANGE_PUSH, 1, 1, 4);
    add_range(&f, CAP_RANGE_PUSH, 1, 2, 9);
    add_range(&f, CAP_RANGE_PUSH, 2, 1, 5); /* another thread's */
    launch(&f, 0xffff);
    add_range(&f, CAP_RANGE_POP, 1, 1, 4);
    add_range(&f, CAP_RANGE_MARK, 1, 1, 4);
    launch(&f, 0xffff);
    add_range(&f, CAP_RANGE_THREAD_END, 1, 0, 0);
    launch(&f, 0xffff);
    open_session(&f.m, &s, 0);
    const char *const paths[] = {"", "step.mlp", "step", ""};
    const uint32_t iterations[] = {0, 9, 4, 0};
    assert_int_equal(s.model->launch_count, 4);
    for (size_t i = 0; i < 4; i++) {
        assert_string_equal(model_launch_place(s.model, &s.model->launches[i])->module_path, paths[i]);
        assert_int_equal(model_launch_place(s.model, &s.model->launches[i])->iteration, iterations[i]);
    }
    close_all(&f.m, &s);
}

static void test_scopes_impossible_paths(void **state)
{
    struct fixture f;
    struct session s;
    start(&f);
    add_path(&f, 3, 3, "inside itself");
    add_range(&f, CAP_RANGE_PUSH, 1, 77, 0);
    add_range(&f, 99, 1, 0, 0);
    launch(&f, 0xffff);
    open_session(&f.m, &s, 3);
    assert_string_equal(model_launch_place(s.model, &s.model->launches[0])->module_path, "");
    close_all(&f.m, &s);
}

/* ---- library calls ---- */

struct parameter {
    const char *name;
    uint16_t kind, pointee;
    uint64_t value;
};

static uint32_t add_function(struct fixture *f, uint32_t id, uint32_t library, const char *name,
                             const struct parameter *parameters, uint32_t count)
{
    struct cap_parameter list[32];
    struct cap_function function = {
        .head.type = CAP_FUNCTION, .id = id, .library = library, .param_count = count, .scope = 1000 + id};
    for (uint32_t i = 0; i < count; i++)
        list[i] = (struct cap_parameter){capture_make_string(&f->m, parameters[i].name), parameters[i].kind,
                                         parameters[i].pointee};
    function.name = capture_make_string(&f->m, name);
    capture_make_record(&f->m, &function, sizeof function, list, count * sizeof *list);
    return id;
}

static uint64_t add_call(struct fixture *f, uint32_t function, uint64_t end_seq, const struct parameter *parameters,
                         uint32_t count)
{
    uint64_t values[32];
    struct cap_operator op = {.head.type = CAP_OPERATOR, .function = function, .end_seq = end_seq, .host_ns = 5000};
    for (uint32_t i = 0; i < count; i++)
        values[i] = parameters[i].value;
    return capture_make_record(&f->m, &op, sizeof op, values, count * sizeof *values);
}

static const struct parameter product[] = {
    {"handle", CAP_PARAMETER_HANDLE, 0, 0x1234}, {"transa", CAP_PARAMETER_ENUM, 4, 0},
    {"transb", CAP_PARAMETER_ENUM, 4, 1},        {"m", CAP_PARAMETER_INTEGER, 4, 6},
    {"n", CAP_PARAMETER_INTEGER, 4, 5},          {"k", CAP_PARAMETER_INTEGER, 4, 4},
    {"alpha", CAP_PARAMETER_POINTER, 8, 0x7000}, {"A", CAP_PARAMETER_POINTER, 8, 0x10000},
    {"lda", CAP_PARAMETER_INTEGER, 4, 8},        {"strideA", CAP_PARAMETER_INTEGER, 8, 100},
    {"B", CAP_PARAMETER_POINTER, 8, 0x20000},    {"ldb", CAP_PARAMETER_INTEGER, 4, 5},
    {"strideB", CAP_PARAMETER_INTEGER, 8, 0},    {"beta", CAP_PARAMETER_POINTER, 8, 0x7008},
    {"C", CAP_PARAMETER_TARGET, 8, 0x30000},     {"ldc", CAP_PARAMETER_INTEGER, 4, 6},
    {"strideC", CAP_PARAMETER_INTEGER, 8, 30},   {"batchCount", CAP_PARAMETER_INTEGER, 4, 3},
};
enum { PRODUCT_PARAMETERS = sizeof product / sizeof *product };

static void add_scalar(struct fixture *f, uint64_t operator, const char * name, double value)
{
    struct cap_detail detail = {.head.type = CAP_DETAIL, .operator= operator, .count = 1 };
    struct cap_detail_item item = {.kind = CAP_DETAIL_BYTES, .bytes = 8};
    item.name = capture_make_string(&f->m, name);
    memcpy(item.value, &value, sizeof value);
    capture_make_record(&f->m, &detail, sizeof detail, &item, sizeof item);
}

static void test_operator_meaning_of_a_product(void **state)
{
    struct fixture f;
    struct session s;
    struct operand operands[OPERANDS_MAX];
    char text[100];
    start(&f);
    add_function(&f, 1, CAP_LIBRARY_CUBLAS, "cublasDgemmStridedBatched", product, PRODUCT_PARAMETERS);
    uint64_t call = add_call(&f, 1, 0, product, PRODUCT_PARAMETERS);
    add_scalar(&f, call, "alpha", -1.5);
    open_session(&f.m, &s, 0);
    const struct model_operator *op = model_operator_by_number(s.model, 1);
    assert_non_null(op);
    assert_string_equal(operator_kind(op), "gemm");
    assert_false(operator_is_setup(op));
    operator_summary(s.capture, op, text, sizeof text);
    assert_string_equal(text, "N,T 6x5x4 x 3 f64");
    assert_true(operator_scalar(s.capture, op, "alpha", text, sizeof text));
    assert_string_equal(text, "-1.5");
    assert_false(operator_scalar(s.capture, op, "beta", text, sizeof text));
    assert_int_equal(operator_operands(s.capture, op, operands), 3);
    /* B is transposed: it lies there as n x k. */
    const uint64_t rows[] = {6, 5, 6}, columns[] = {4, 4, 5}, ld[] = {8, 5, 6};
    for (size_t i = 0; i < 3; i++) {
        assert_true(operands[i].shaped);
        assert_int_equal(operands[i].rows, rows[i]);
        assert_int_equal(operands[i].columns, columns[i]);
        assert_int_equal(operands[i].ld, ld[i]);
        assert_int_equal(operands[i].batch, 3);
        assert_int_equal(operands[i].element_bytes, 8);
        assert_int_equal(operands[i].written, i == 2);
    }
    /* It succeeded, which its detail shows, though its end could not be written down. */
    assert_true(op->end_seq > op->seq);
    close_all(&f.m, &s);
}

/* The finding says which library call the launch was in; a launch beside the call does not. */
static void race_in(uint16_t scope, bool inside)
{
    struct fixture f;
    struct session s;
    struct findings found = {0};
    start(&f);
    struct cap_hook hook = {.head.type = CAP_HOOK, .index = 1, .name = capture_make_string(&f.m, "cuLaunchHostFunc")};
    capture_make_record(&f.m, &hook, sizeof hook, NULL, 0);
    for (uint32_t id = 7; id <= 8; id++) {
        struct cap_stream stream = {
            .head.type = CAP_STREAM, .id = id, .context = 1, .kind = CAP_STREAM_CREATED, .flags = 1};
        capture_make_record(&f.m, &stream, sizeof stream, NULL, 0);
    }
    uint32_t buffer = capture_make_alloc(&f.m, 0x30000, 4096);
    add_function(&f, 1, CAP_LIBRARY_CUBLAS, "cublasDgemmStridedBatched", product, PRODUCT_PARAMETERS);
    add_call(&f, 1, 0, product, PRODUCT_PARAMETERS);
    struct cap_launch inner = {.head.type = CAP_LAUNCH,
                               .kernel = f.kernel,
                               .config = f.config,
                               .stream = 7,
                               .outcome = CAP_LAUNCH_OK,
                               .flags = CAP_LAUNCH_ARGS_UNKNOWN};
    capture_make_record(&f.m, &inner, sizeof inner, NULL, 0);
    ((struct cap_head *)(void *)(f.m.records + f.m.bytes - sizeof inner))->scope = scope;
    struct cap_set set = {.head.type = CAP_SET,
                          .target = 0x30000,
                          .width = 64,
                          .height = 1,
                          .value_bytes = 1,
                          .stream = 8,
                          .asynchronous = 1};
    capture_make_record(&f.m, &set, sizeof set, NULL, 0);
    open_session(&f.m, &s, 0);
    struct judgement_run run = {.bytes = 64, .count = 1};
    struct judgement_touch touch = {.allocation = buffer, .write = true, .runs = &run, .count = 1};
    struct judgement j = {.launch = 1,
                          .verdict = JUDGEMENT_CHECKED,
                          .bytes_known = true,
                          .kernel_known = true,
                          .touches = &touch,
                          .touch_count = 1};
    struct judgements js = {.items = &j, .count = 1};
    classify_order(s.model, &js, s.symbols, &found);
    assert_int_equal(found.count, 1);
    assert_int_equal(found.items[0].class, FINDING_STREAM_RACE);
    assert_int_equal(strncmp(found.items[0].evidence[0].text, "launch 1, work", 14), 0);
    assert_int_equal(strstr(found.items[0].evidence[0].text, "inside cublasDgemmStridedBatched N,T 6x5x4") != NULL,
                     inside);
    findings_free(&found);
    close_all(&f.m, &s);
}

static void test_operator_in_a_stream_race(void **state)
{
    race_in(1001, true);
    race_in(0xffff, false);
}

static void test_operator_unknown_function(void **state)
{
    static const struct parameter parameters[] = {{"handle", CAP_PARAMETER_HANDLE, 0, 1},
                                                  {"m", CAP_PARAMETER_INTEGER, 4, 7},
                                                  {"AP", CAP_PARAMETER_POINTER, 4, 0x10000},
                                                  {"out", CAP_PARAMETER_TARGETS, 8, 0x20000}};
    struct fixture f;
    struct session s;
    struct operand operands[OPERANDS_MAX];
    start(&f);
    add_function(&f, 1, CAP_LIBRARY_CUBLAS, "cublasStomorrow", parameters, 4);
    add_call(&f, 1, 0, parameters, 4);
    open_session(&f.m, &s, 0);
    const struct model_operator *op = model_operator_by_number(s.model, 1);
    assert_string_equal(operator_kind(op), "unknown");
    assert_int_equal(operator_operands(s.capture, op, operands), 2);
    assert_false(operands[0].shaped || operands[0].written);
    assert_true(operands[1].list && operands[1].written && !operands[1].shaped);
    close_all(&f.m, &s);
}

/* Names that a damaged capture cut short, down to nothing. */
static void test_operator_without_names(void **state)
{
    static const char *const names[] = {"", "cublas", "cublasI", "cublasS", "gemm", "cublasgemm"};
    static const struct parameter parameters[] = {{"", CAP_PARAMETER_POINTER, 4, 0x10000},
                                                  {"m", CAP_PARAMETER_INTEGER, 4, 7},
                                                  {"n", CAP_PARAMETER_INTEGER, 4, 7},
                                                  {"k", CAP_PARAMETER_INTEGER, 4, 7}};
    for (uint32_t i = 0; i < sizeof names / sizeof *names; i++) {
        struct fixture f;
        struct session s;
        struct operand operands[OPERANDS_MAX];
        char text[100];
        start(&f);
        add_function(&f, 1, CAP_LIBRARY_CUBLAS, names[i], parameters, 4);
        add_call(&f, 1, 0, parameters, 4);
        open_session(&f.m, &s, 0);
        const struct model_operator *op = model_operator_by_number(s.model, 1);
        operator_summary(s.capture, op, text, sizeof text);
        assert_int_equal(operator_operands(s.capture, op, operands), 1);
        assert_false(operands[0].shaped);
        close_all(&f.m, &s);
    }
}

static void test_operator_launches_inside(void **state)
{
    struct fixture f;
    struct session s;
    start(&f);
    add_function(&f, 1, CAP_LIBRARY_CUBLAS, "cublasDgemmStridedBatched", product, PRODUCT_PARAMETERS);
    launch(&f, 0xffff);
    uint64_t first = f.m.seq;
    add_call(&f, 1, first + 3, product, PRODUCT_PARAMETERS);
    launch(&f, 1001);
    launch(&f, 1001);
    f.m.seq++; /* the end of the call */
    launch(&f, 0xffff);
    add_call(&f, 1, f.m.seq + 2, product, PRODUCT_PARAMETERS);
    launch(&f, 3); /* inside something else */
    open_session(&f.m, &s, 0);
    const size_t operators[] = {0, 1, 1, 0, 0};
    assert_int_equal(s.model->launch_count, 5);
    for (size_t i = 0; i < 5; i++)
        assert_int_equal(model_launch_place(s.model, &s.model->launches[i])->operator, operators[i]);
    assert_int_equal(s.model->operators[0].launches, 2);
    assert_int_equal(s.model->operators[1].launches, 0);
    close_all(&f.m, &s);
}

static void test_operator_impossible(void **state)
{
    struct fixture f;
    struct session s;
    start(&f);
    add_call(&f, 7, 0, product, PRODUCT_PARAMETERS); /* a function that is not there */
    add_function(&f, 1, CAP_LIBRARY_CUBLAS, "cublasDgemm_v2", product, PRODUCT_PARAMETERS);
    add_call(&f, 1, 0, product, 3);                  /* too few values */
    add_call(&f, 1, 1, product, PRODUCT_PARAMETERS); /* ends before it starts */
    struct cap_function many = {.head.type = CAP_FUNCTION, .id = 2, .param_count = 1000};
    capture_make_record(&f.m, &many, sizeof many, NULL, 0);
    struct cap_detail detail = {.head.type = CAP_DETAIL, .operator= 3, .count = 50};
    capture_make_record(&f.m, &detail, sizeof detail, NULL, 0);
    open_session(&f.m, &s, 5);
    assert_int_equal(s.model->operator_count, 0);
    close_all(&f.m, &s);
}

static void test_operator_collective(void **state)
{
    static const struct parameter parameters[] = {{"sendbuff", CAP_PARAMETER_POINTER, 0, 0x10000},
                                                  {"recvbuff", CAP_PARAMETER_TARGET, 0, 0x20000},
                                                  {"recvcount", CAP_PARAMETER_INTEGER, 8, 100},
                                                  {"datatype", CAP_PARAMETER_ENUM, 4, 9},
                                                  {"op", CAP_PARAMETER_ENUM, 4, 2},
                                                  {"comm", CAP_PARAMETER_HANDLE, 0, 0x55}};
    struct fixture f;
    struct session s;
    struct operand operands[OPERANDS_MAX];
    char text[100];
    start(&f);
    add_function(&f, 1, CAP_LIBRARY_NCCL, "ncclReduceScatter", parameters, 6);
    add_call(&f, 1, 0, parameters, 6);
    open_session(&f.m, &s, 0);
    const struct model_operator *op = model_operator_by_number(s.model, 1);
    assert_string_equal(operator_kind(op), "reduce-scatter");
    assert_true(operator_communicates(op));
    operator_summary(s.capture, op, text, sizeof text);
    assert_string_equal(text, "100 bf16 max");
    assert_int_equal(operator_operands(s.capture, op, operands), 2);
    assert_false(operands[0].shaped); /* as many times 100 as there are ranks */
    assert_true(operands[1].shaped && operands[1].written);
    assert_int_equal(operands[1].rows, 100);
    close_all(&f.m, &s);
}

/* Launches with arguments at `places` places of one allocation, and at as many of a small one. */
static size_t count_slabs(uint64_t bytes, size_t places)
{
    struct fixture f;
    struct session s;
    start(&f);
    capture_make_alloc(&f.m, 0x10000000, bytes);
    for (uint64_t i = 0; i < places; i++) {
        uint64_t argument = 0x10000000 + i * 512;
        capture_make_launch(&f.m, f.kernel, f.config, &argument, 8);
        capture_make_launch(&f.m, f.kernel, f.config, &argument, 8);
    }
    open_session(&f.m, &s, 0);
    size_t count = slabs_of(&s).count;
    close_all(&f.m, &s);
    return count;
}

static void test_slabs(void **state)
{
    assert_int_equal(count_slabs(2 << 20, 12), 1);
    assert_int_equal(count_slabs(2 << 20, 3), 0);  /* rows of one matrix, perhaps */
    assert_int_equal(count_slabs(1 << 16, 12), 0); /* no cache takes so little at once */
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_scopes_paths_of_a_thread),      cmocka_unit_test(test_scopes_impossible_paths),
        cmocka_unit_test(test_operator_meaning_of_a_product), cmocka_unit_test(test_operator_in_a_stream_race),
        cmocka_unit_test(test_operator_unknown_function),     cmocka_unit_test(test_operator_without_names),
        cmocka_unit_test(test_operator_launches_inside),      cmocka_unit_test(test_operator_impossible),
        cmocka_unit_test(test_operator_collective),           cmocka_unit_test(test_slabs),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
