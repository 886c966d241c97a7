/* Captures that no shim writes, through all of verify: what once went wrong there. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <stdlib.h>
#include <string.h>

#include "analyzer/session.h"
#include "analyzer/verify.h"
#include "tests/unit/capture_make.h"
#include "tests/unit/verify_kernels.h"

enum { OUT = 0x700000, IN = 0x710000, FAR = 0x720000, COUNT = 64 };
struct params {
    uint64_t out, in;
    uint32_t n, zero;
};

struct bench {
    struct capture_make make;
    struct session session;
    uint32_t kernel, config, out, in;
    float before[COUNT], after[COUNT];
};

static void start(struct bench *b)
{
    *b = (struct bench){0};
    capture_make_start(&b->make);
    uint32_t module = capture_make_module(&b->make, scale_ptx);
    b->kernel = capture_make_kernel(&b->make, module, "scale", (const uint32_t[]){8, 8, 4, 0});
    b->config = capture_make_config(&b->make, 1, COUNT);
    b->out = capture_make_alloc(&b->make, OUT, sizeof b->before);
    b->in = capture_make_alloc(&b->make, IN, sizeof b->before);
    for (int i = 0; i < COUNT; i++)
        b->after[i] = b->before[i] + 1;
}

static void snapshots(struct bench *b, uint64_t launch)
{
    capture_make_snapshot(&b->make, launch, b->out, CAP_BEFORE, b->before, sizeof b->before);
    capture_make_snapshot(&b->make, launch, b->in, CAP_BEFORE, b->before, sizeof b->before);
    capture_make_snapshot(&b->make, launch, b->out, CAP_AFTER, b->after, sizeof b->after);
    capture_make_snapshot(&b->make, launch, b->in, CAP_AFTER, b->before, sizeof b->before);
}

static void finish(struct bench *b, size_t rejected)
{
    struct diag diag = {.text = ""};
    const struct verify_options options = {.workers = 1, .instruction_limit = 1000000, .memory_limit = 1 << 24};
    capture_make_finish(&b->make);
    if (session_open(capture_make_write(&b->make), &b->session, &diag))
        fail_msg("%s", diag.text);
    assert_int_equal(b->session.capture->rejected.count, rejected);
    assert_int_equal(verify_capture(b->session.model, NULL, &options, &b->session.judgements, &diag), STATUS_OK);
    session_classify(&b->session);
}

static void end(struct bench *b)
{
    session_close(&b->session);
    capture_make_end(&b->make);
}

/* Both are found by their id: an argument into the one then led to the other's place in lists. */
static void test_region_with_the_id_of_an_allocation(void **state)
{
    struct bench b;
    start(&b);
    struct cap_region region = {
        .head.type = CAP_REGION, .id = b.in + 1, .allocation = b.out, .address = OUT, .bytes = sizeof b.before};
    capture_make_record(&b.make, &region, sizeof region, NULL, 0);
    assert_int_equal(capture_make_alloc(&b.make, FAR, 4096), region.id);
    const struct params params = {OUT, FAR, COUNT, 0};
    snapshots(&b, capture_make_launch(&b.make, b.kernel, b.config, &params, 20));
    finish(&b, 1);
    assert_non_null(strstr(b.session.capture->rejected.kept[0].text, "has the id of an allocation"));
    end(&b);
}

/* A product without columns, very many times, far apart. */
static void test_operator_of_very_many_nothings(void **state)
{
    static const struct {
        const char *name;
        uint16_t kind;
        uint64_t value;
    } parameters[] = {{"m", CAP_PARAMETER_INTEGER, 4},
                      {"n", CAP_PARAMETER_INTEGER, 0},
                      {"k", CAP_PARAMETER_INTEGER, 4},
                      {"A", CAP_PARAMETER_POINTER, IN},
                      {"lda", CAP_PARAMETER_INTEGER, 4},
                      {"B", CAP_PARAMETER_POINTER, IN},
                      {"ldb", CAP_PARAMETER_INTEGER, 4},
                      {"C", CAP_PARAMETER_TARGET, OUT},
                      {"ldc", CAP_PARAMETER_INTEGER, 4},
                      {"strideC", CAP_PARAMETER_INTEGER, INT64_MAX},
                      {"batchCount", CAP_PARAMETER_INTEGER, UINT64_MAX}};
    enum { COUNT_OF = sizeof parameters / sizeof *parameters };
    struct cap_parameter list[COUNT_OF];
    uint64_t values[COUNT_OF];
    struct bench b;
    start(&b);
    for (size_t i = 0; i < COUNT_OF; i++) {
        list[i] = (struct cap_parameter){capture_make_string(&b.make, parameters[i].name), parameters[i].kind, 8};
        values[i] = parameters[i].value;
    }
    struct cap_function function = {.head.type = CAP_FUNCTION, .id = 1, .param_count = COUNT_OF, .scope = 1000};
    function.name = capture_make_string(&b.make, "cublasDgemmStridedBatched");
    capture_make_record(&b.make, &function, sizeof function, list, sizeof list);
    struct cap_operator op = {.head.type = CAP_OPERATOR, .function = 1};
    capture_make_record(&b.make, &op, sizeof op, values, sizeof values);
    values[1] = 2; /* two columns each, of two products so far apart that the second one is nowhere */
    values[COUNT_OF - 1] = 3;
    capture_make_record(&b.make, &op, sizeof op, values, sizeof values);
    finish(&b, 0);
    assert_int_equal(b.session.model->operator_count, 2);
    end(&b);
}

/* ---- graphs of one node ---- */

static void graph(struct bench *b, uint32_t kind, uint32_t flags, const void *body, uint32_t bytes)
{
    struct cap_graph g = {.head.type = CAP_GRAPH, .id = 1, .version = 1, .node_count = 1};
    struct cap_graph_node node = {
        .head.type = CAP_GRAPH_NODE, .graph = 1, .version = 1, .kind = kind, .flags = flags, .body_bytes = bytes};
    struct cap_graph_launch launch = {.launch = {.head.type = CAP_GRAPH_LAUNCH,
                                                 .outcome = CAP_LAUNCH_OK,
                                                 .flags = CAP_LAUNCH_INPUTS | CAP_LAUNCH_OUTPUTS},
                                      .graph = 1,
                                      .version = 1};
    start(b);
    capture_make_record(&b->make, &g, sizeof g, NULL, 0);
    capture_make_record(&b->make, &node, sizeof node, body, bytes);
    capture_make_record(&b->make, &launch, sizeof launch, NULL, 0);
    finish(b, 0);
}

/* `reason` NULL: it is judged. */
static void graph_is(struct bench *b, const char *reason)
{
    const struct judgement *j = judgements_find(&b->session.judgements, 1);
    assert_non_null(j);
    if (reason ? !j->reason || strcmp(j->reason, reason) != 0 : j->verdict != JUDGEMENT_CHECKED)
        fail_msg("%s: %s", j->reason, j->detail);
    end(b);
}

/* A row that is longer than any memory, where there is none. */
static void test_graph_sets_very_long_rows(void **state)
{
    struct bench b;
    const struct cap_set set = {.target = FAR, .width = UINT64_C(1) << 55, .height = 1, .value_bytes = 4};
    graph(&b, CAP_NODE_SET, 0, &set, sizeof set);
    graph_is(&b, NULL);
}

/* Very many slices without a row. */
static void test_graph_copies_very_many_nothings(void **state)
{
    struct bench b;
    const struct cap_copy copy = {.target = OUT, .source = IN, .width = 4, .depth = UINT64_C(1) << 56};
    graph(&b, CAP_NODE_COPY, 0, &copy, sizeof copy);
    graph_is(&b, NULL);
}

/* Only kernels' arguments may be unknown in a graph that a shim wrote. */
static void test_graph_nodes_without_a_body(void **state)
{
    static const uint32_t kinds[] = {CAP_NODE_COPY, CAP_NODE_SET, CAP_NODE_ALLOC, CAP_NODE_FREE};
    struct bench b;
    for (size_t i = 0; i < sizeof kinds / sizeof *kinds; i++) {
        graph(&b, kinds[i], CAP_NODE_ARGS_UNKNOWN, NULL, 0);
        graph_is(&b, "args-unknown");
        graph(&b, kinds[i], CAP_NODE_UNKNOWN | CAP_NODE_DISABLED, NULL, 0);
        graph_is(&b, NULL);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_region_with_the_id_of_an_allocation),
        cmocka_unit_test(test_operator_of_very_many_nothings),
        cmocka_unit_test(test_graph_sets_very_long_rows),
        cmocka_unit_test(test_graph_copies_very_many_nothings),
        cmocka_unit_test(test_graph_nodes_without_a_body),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
