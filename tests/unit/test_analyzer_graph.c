/* Launches of graphs on synthetic captures: which nodes a version has, what is judged and put on which node, what
 * cannot be, and records that cannot be. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "analyzer/model_graph.h"
#include "analyzer/store.h"
#include "tests/unit/verify_kernels.h"
#include "tests/unit/verify_kit.h"

enum { A = 0x700000, B = 0x710000, C = 0x720000, COUNT = 64, GRAPH = 5 };
struct params {
    uint64_t out, in;
    uint32_t n, zero;
};

struct bench {
    struct capture_make make;
    uint32_t a, b, c, scale, slide, config, version;
    float zeros[COUNT], one[COUNT], two[COUNT]; /* what scale makes of it: i + 1, i + 2 */
    float ramp[COUNT];
    struct session session;
};

static void start(struct bench *b)
{
    *b = (struct bench){.version = 1};
    capture_make_start(&b->make);
    const uint32_t sizes[] = {8, 8, 4, 0};
    b->scale = capture_make_kernel(&b->make, capture_make_module(&b->make, scale_ptx), "scale", sizes);
    b->slide = capture_make_kernel(&b->make, capture_make_module(&b->make, slide_ptx), "slide", sizes);
    b->config = capture_make_config(&b->make, 1, COUNT);
    b->a = capture_make_alloc(&b->make, A, sizeof b->ramp);
    b->b = capture_make_alloc(&b->make, B, sizeof b->ramp);
    b->c = capture_make_alloc(&b->make, C, sizeof b->ramp);
    for (uint64_t at = A; at <= C; at += B - A)
        capture_make_copy_in(&b->make, at, sizeof b->ramp);
    for (int i = 0; i < COUNT; i++) {
        b->ramp[i] = (float)i;
        b->one[i] = (float)i + 1;
        b->two[i] = (float)i + 2;
    }
}

static void whole(struct bench *b, uint32_t nodes, uint32_t flags)
{
    struct cap_graph g = {
        .head.type = CAP_GRAPH, .id = GRAPH, .version = b->version, .node_count = nodes, .flags = flags};
    capture_make_record(&b->make, &g, sizeof g, NULL, 0);
}

/* A node that depends on `after` (indices, ended by -1). */
static void node(struct bench *b, uint32_t index, uint32_t kind, uint32_t kernel, const int *after, const void *body,
                 size_t bytes)
{
    uint8_t tail[512] = {0};
    struct cap_graph_node n = {.head.type = CAP_GRAPH_NODE,
                               .graph = GRAPH,
                               .version = b->version,
                               .index = index,
                               .kind = kind,
                               .kernel = kernel,
                               .config = kernel ? b->config : 0,
                               .body_bytes = (uint32_t)bytes};
    for (; after && after[n.dependency_count] >= 0; n.dependency_count++)
        memcpy(tail + n.dependency_count * 4u, &after[n.dependency_count], 4);
    size_t ends = (n.dependency_count * 4u + 7) & ~(size_t)7;
    if (bytes)
        memcpy(tail + ends, body, bytes);
    capture_make_record(&b->make, &n, sizeof n, tail, ends + ((bytes + 7) & ~(size_t)7));
}

static void kernel(struct bench *b, uint32_t index, uint32_t which, const int *after, uint64_t out, uint64_t in,
                   uint32_t n)
{
    const struct params p = {out, in, n, 0};
    node(b, index, CAP_NODE_KERNEL, which, after, &p, 20);
}

static uint64_t launch(struct bench *b, const float *a, const float *from_b, const float *c, const float *a_after,
                       const float *b_after, const float *c_after)
{
    struct cap_graph_launch l = {
        .launch = {.head.type = CAP_GRAPH_LAUNCH,
                   .host_ns = 1000,
                   .outcome = CAP_LAUNCH_OK,
                   .flags = CAP_LAUNCH_INPUTS | CAP_LAUNCH_OUTPUTS},
        .graph = GRAPH,
        .version = b->version,
    };
    uint64_t seq = capture_make_record(&b->make, &l, sizeof l, NULL, 0);
    const size_t bytes = sizeof b->ramp;
    capture_make_snapshot(&b->make, seq, b->a, CAP_BEFORE, a, bytes);
    capture_make_snapshot(&b->make, seq, b->b, CAP_BEFORE, from_b, bytes);
    capture_make_snapshot(&b->make, seq, b->c, CAP_BEFORE, c, bytes);
    capture_make_snapshot(&b->make, seq, b->a, CAP_AFTER, a_after, bytes);
    capture_make_snapshot(&b->make, seq, b->b, CAP_AFTER, b_after, bytes);
    capture_make_snapshot(&b->make, seq, b->c, CAP_AFTER, c_after, bytes);
    return seq;
}

static void verify(struct bench *b)
{
    verify_kit_verify(&b->make, &b->session);
}

static void end(struct bench *b)
{
    verify_kit_end(&b->make, &b->session);
}

static void silent(struct bench *b, size_t checked)
{
    verify(b);
    verify_kit_is_silent(&b->session, checked);
    end(b);
}

static void not_judged(struct bench *b, const char *reason)
{
    verify(b);
    assert_int_equal(b->session.findings.count, 0);
    const struct judgement *j = judgements_find(&b->session.judgements, 1);
    assert_non_null(j);
    assert_int_equal(j->verdict, JUDGEMENT_NOT);
    assert_string_equal(j->reason, reason);
    end(b);
}

static const struct finding *only(struct bench *b, enum finding_class class, uint32_t node_number)
{
    verify(b);
    const struct finding *f = verify_kit_only(&b->session, class);
    assert_int_equal(f->launch, 1);
    assert_int_equal(f->node, node_number);
    return f;
}

#define AFTER(...) ((const int[]){__VA_ARGS__ - 1})

/* ---- sound ---- */

static void test_graph_chain(void **state)
{
    struct bench b;
    start(&b);
    whole(&b, 2, 0);
    kernel(&b, 0, b.scale, AFTER(), B, A, COUNT);
    kernel(&b, 1, b.scale, AFTER(0, ), C, B, COUNT);
    launch(&b, b.ramp, b.zeros, b.zeros, b.ramp, b.one, b.two);
    silent(&b, 1);
}

/* A copy and a set between kernels: c = 0, b = a, c = b + 1. */
static void test_graph_copies_and_sets(void **state)
{
    struct bench b;
    start(&b);
    const struct cap_set set = {.target = C, .width = sizeof b.ramp, .height = 1, .value_bytes = 4};
    const struct cap_copy copy = {
        .target = B, .source = A, .width = sizeof b.ramp, .height = 1, .depth = 1, .kind = CAP_COPY_DTOD};
    whole(&b, 3, 0);
    node(&b, 0, CAP_NODE_SET, 0, AFTER(), &set, sizeof set);
    node(&b, 1, CAP_NODE_COPY, 0, AFTER(), &copy, sizeof copy);
    kernel(&b, 2, b.scale, AFTER(0, 1, ), C, B, COUNT / 2);
    float half[COUNT] = {0};
    memcpy(half, b.one, sizeof half / 2);
    launch(&b, b.ramp, b.zeros, b.two, b.ramp, b.ramp, half);
    silent(&b, 1);
}

/* The second version changes one node alone; a disabled node does nothing. */
static void test_graph_versions(void **state)
{
    struct bench b;
    start(&b);
    whole(&b, 2, 0);
    kernel(&b, 0, b.scale, AFTER(), B, A, COUNT);
    kernel(&b, 1, b.slide, AFTER(0, ), C, B, sizeof b.ramp); /* past the end: never launched so */
    b.version = 2;
    kernel(&b, 1, b.scale, AFTER(0, ), C, B, COUNT);
    launch(&b, b.ramp, b.zeros, b.zeros, b.ramp, b.one, b.two);
    b.version = 3;
    struct cap_graph_node off = {.head.type = CAP_GRAPH_NODE,
                                 .graph = GRAPH,
                                 .version = 3,
                                 .index = 1,
                                 .kind = CAP_NODE_KERNEL,
                                 .kernel = b.scale,
                                 .config = b.config,
                                 .flags = CAP_NODE_DISABLED,
                                 .body_bytes = 0};
    capture_make_record(&b.make, &off, sizeof off, NULL, 0);
    launch(&b, b.ramp, b.zeros, b.zeros, b.ramp, b.one, b.zeros);
    silent(&b, 2);
}

/* ---- on a node ---- */

static void test_graph_fault_of_a_node(void **state)
{
    struct bench b;
    start(&b);
    whole(&b, 2, 0);
    kernel(&b, 0, b.scale, AFTER(), B, A, COUNT);
    kernel(&b, 1, b.slide, AFTER(0, ), C, B, sizeof b.ramp);
    uint64_t seq = launch(&b, b.ramp, b.zeros, b.zeros, b.ramp, b.one, b.zeros);
    uint64_t sync = capture_make_sync(&b.make, 0);
    capture_make_damage(&b.make, b.c, sizeof b.ramp, 4, seq, sync);
    const struct finding *f = only(&b, FINDING_OUT_OF_BOUNDS_WRITE, 2);
    assert_int_equal(f->line, 40);
    assert_int_equal(f->damages, 1);
    assert_true(f->confidence > 0.98);
    end(&b);
}

/* Without snapshots only the redzone speaks: the launch of the graph is named, no node. */
static void test_graph_damage_without_snapshots(void **state)
{
    struct bench b;
    start(&b);
    whole(&b, 1, 0);
    kernel(&b, 0, b.slide, AFTER(), C, B, sizeof b.ramp);
    struct cap_graph_launch l = {
        .launch = {.head.type = CAP_GRAPH_LAUNCH, .outcome = CAP_LAUNCH_OK}, .graph = GRAPH, .version = 1};
    uint64_t seq = capture_make_record(&b.make, &l, sizeof l, NULL, 0);
    uint64_t sync = capture_make_sync(&b.make, 0);
    capture_make_damage(&b.make, b.c, sizeof b.ramp, 4, seq, sync);
    only(&b, FINDING_OUT_OF_BOUNDS_WRITE, 0);
    assert_string_equal(judgements_find(&b.session.judgements, 1)->reason, "no-inputs");
    end(&b);
}

/* The device left wrong values in B; C, made of them, is no finding of its own. */
static void test_graph_difference_of_the_first_node(void **state)
{
    struct bench b;
    start(&b);
    whole(&b, 2, 0);
    kernel(&b, 0, b.scale, AFTER(), B, A, COUNT);
    kernel(&b, 1, b.scale, AFTER(0, ), C, B, COUNT);
    float wrong[COUNT], wronger[COUNT];
    for (int i = 0; i < COUNT; i++) {
        wrong[i] = b.one[i] * (i % 3 ? 1.0f : 3.0f);
        wronger[i] = wrong[i] + 1;
    }
    launch(&b, b.ramp, b.zeros, b.zeros, b.ramp, wrong, wronger);
    only(&b, FINDING_MISMATCH, 1);
    end(&b);
}

/* B is overwritten by the second node: which of the two was wrong is not seen. */
static void test_graph_difference_with_candidates(void **state)
{
    struct bench b;
    start(&b);
    whole(&b, 2, 0);
    kernel(&b, 0, b.scale, AFTER(), B, A, COUNT);
    kernel(&b, 1, b.scale, AFTER(0, ), B, B, COUNT);
    float wrong[COUNT];
    for (int i = 0; i < COUNT; i++)
        wrong[i] = b.two[i] * 5;
    launch(&b, b.ramp, b.zeros, b.zeros, b.ramp, wrong, b.zeros);
    const struct finding *f = only(&b, FINDING_MISMATCH, 0);
    bool told = false;
    for (size_t i = 0; i < f->evidence_count; i++)
        told =
            told || (strcmp(f->evidence[i].kind, "candidates") == 0 && strstr(f->evidence[i].text, "node 1 (scale)"));
    assert_true(told);
    end(&b);
}

/* A buffer that the program freed while the graph still names it. */
static void test_graph_use_after_free(void **state)
{
    struct bench b;
    start(&b);
    whole(&b, 2, 0);
    kernel(&b, 0, b.scale, AFTER(), C, A, COUNT);
    kernel(&b, 1, b.scale, AFTER(0, ), B, A, COUNT);
    capture_make_free(&b.make, b.b, B, 0);
    struct cap_graph_launch l = {
        .launch = {.head.type = CAP_GRAPH_LAUNCH, .outcome = CAP_LAUNCH_OK, .flags = CAP_LAUNCH_INPUTS},
        .graph = GRAPH,
        .version = 1};
    uint64_t seq = capture_make_record(&b.make, &l, sizeof l, NULL, 0);
    capture_make_snapshot(&b.make, seq, b.a, CAP_BEFORE, b.ramp, sizeof b.ramp);
    capture_make_snapshot(&b.make, seq, b.c, CAP_BEFORE, b.zeros, sizeof b.ramp);
    const struct finding *f = only(&b, FINDING_USE_AFTER_FREE, 2);
    assert_int_equal(f->allocation, b.b);
    end(&b);
}

/* The driver refused it: said so, without the shape of any kernel. */
static void test_graph_refused(void **state)
{
    struct bench b;
    start(&b);
    whole(&b, 1, 0);
    kernel(&b, 0, b.scale, AFTER(), C, A, COUNT);
    struct cap_graph_launch l = {
        .launch = {.head.type = CAP_GRAPH_LAUNCH, .outcome = CAP_LAUNCH_FAILED}, .graph = GRAPH, .version = 1};
    capture_make_record(&b.make, &l, sizeof l, NULL, 0);
    capture_make_error(&b.make, 1, "CUDA_ERROR_INVALID_VALUE");
    const struct finding *f = only(&b, FINDING_FAILED_LAUNCH, 0);
    assert_non_null(strstr(f->evidence[0].text, "graph 5"));
    end(&b);
}

/* ---- branches ---- */

static void branches(struct bench *b, bool ordered)
{
    start(b);
    whole(b, 3, 0);
    kernel(b, 0, b->scale, AFTER(), A, A, 1); /* a beginning for both */
    kernel(b, 1, b->scale, AFTER(0, ), B, A, COUNT);
    kernel(b, 2, b->scale, ordered ? AFTER(0, 1, ) : AFTER(0, ), C, B, COUNT);
    float first[COUNT], one[COUNT], two[COUNT];
    memcpy(first, b->ramp, sizeof first);
    memcpy(one, b->one, sizeof one);
    memcpy(two, b->two, sizeof two);
    first[0] = 1;
    one[0] = 2;
    two[0] = 3;
    launch(b, b->ramp, b->zeros, b->zeros, first, one, two);
}

static void test_graph_race_of_branches(void **state)
{
    struct bench b;
    branches(&b, false);
    const struct finding *f = only(&b, FINDING_STREAM_RACE, 2);
    assert_int_equal(f->other_node, 3);
    assert_int_equal(f->allocation, b.b);
    end(&b);
    branches(&b, true);
    silent(&b, 1);
}

/* Two branches that read one buffer and write apart. */
static void test_graph_branches_apart(void **state)
{
    struct bench b;
    start(&b);
    whole(&b, 2, 0);
    kernel(&b, 0, b.scale, AFTER(), B, A, COUNT);
    kernel(&b, 1, b.scale, AFTER(), C, A, COUNT);
    launch(&b, b.ramp, b.zeros, b.zeros, b.ramp, b.one, b.one);
    silent(&b, 1);
}

/* Both store what is there already. */
static void test_graph_branches_same_value(void **state)
{
    struct bench b;
    start(&b);
    whole(&b, 2, 0);
    kernel(&b, 0, b.scale, AFTER(), B, A, COUNT);
    kernel(&b, 1, b.scale, AFTER(), B, A, COUNT);
    launch(&b, b.ramp, b.zeros, b.zeros, b.ramp, b.one, b.zeros);
    silent(&b, 1);
}

/* ---- what cannot be judged ---- */

static void test_graph_not_judged(void **state)
{
    static const struct {
        uint32_t kind, flags;
        const char *reason;
    } cases[] = {{CAP_NODE_CONDITIONAL, 0, "unsupported"},
                 {CAP_NODE_EVENT_WAIT, 0, "unsupported"},
                 {CAP_NODE_OTHER, 0, "unsupported"},
                 {CAP_NODE_COPY, CAP_NODE_UNKNOWN, "args-unknown"}};
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct bench b;
        start(&b);
        whole(&b, 2, CAP_GRAPH_INCOMPLETE);
        kernel(&b, 0, b.scale, AFTER(), B, A, COUNT);
        struct cap_graph_node n = {.head.type = CAP_GRAPH_NODE,
                                   .graph = GRAPH,
                                   .version = 1,
                                   .index = 1,
                                   .kind = cases[i].kind,
                                   .flags = cases[i].flags};
        capture_make_record(&b.make, &n, sizeof n, NULL, 0);
        launch(&b, b.ramp, b.zeros, b.zeros, b.ramp, b.one, b.zeros);
        not_judged(&b, cases[i].reason);
    }
}

/* From memory that no record tells of: what is copied is not known, and a kernel reads it. */
static void test_graph_unknown_source(void **state)
{
    struct bench b;
    start(&b);
    const struct cap_copy copy = {
        .target = A, .source = 0x1000, .width = sizeof b.ramp, .height = 1, .depth = 1, .kind = CAP_COPY_HTOD};
    whole(&b, 2, 0);
    node(&b, 0, CAP_NODE_COPY, 0, AFTER(), &copy, sizeof copy);
    kernel(&b, 1, b.scale, AFTER(0, ), B, A, COUNT);
    launch(&b, b.ramp, b.zeros, b.zeros, b.ramp, b.one, b.zeros);
    not_judged(&b, "no-inputs");
}

static void test_graph_nodes_missing(void **state)
{
    struct bench b;
    start(&b);
    whole(&b, 2, 0);
    kernel(&b, 0, b.scale, AFTER(), B, A, COUNT);
    launch(&b, b.ramp, b.zeros, b.zeros, b.ramp, b.one, b.zeros);
    not_judged(&b, "graph");
}

/* ---- records that cannot be ---- */

static void rejects(struct bench *b, size_t rejected, size_t launches)
{
    verify_kit_open(&b->make, &b->session);
    assert_int_equal(b->session.capture->rejected.count, rejected);
    assert_int_equal(b->session.model->launch_count, launches);
    end(b);
}

static void test_graph_records_rejected(void **state)
{
    struct bench b;
    struct cap_graph_node n = {.head.type = CAP_GRAPH_NODE, .graph = GRAPH, .version = 1};
    start(&b);
    whole(&b, 1, 0);
    kernel(&b, 1, b.scale, AFTER(1, ), B, A, COUNT); /* depends on itself */
    n.kind = CAP_NODE_KINDS;
    capture_make_record(&b.make, &n, sizeof n, NULL, 0);
    n.kind = CAP_NODE_COPY; /* without a body */
    capture_make_record(&b.make, &n, sizeof n, NULL, 0);
    n.kind = CAP_NODE_KERNEL; /* of no kernel */
    capture_make_record(&b.make, &n, sizeof n, NULL, 0);
    n.kind = CAP_NODE_EMPTY;
    n.dependency_count = 1000;
    capture_make_record(&b.make, &n, sizeof n, NULL, 0);
    n.dependency_count = 0;
    n.body_bytes = 64;
    capture_make_record(&b.make, &n, sizeof n, NULL, 0);
    n.body_bytes = 0;
    n.graph = GRAPH + 1; /* of no graph */
    capture_make_record(&b.make, &n, sizeof n, NULL, 0);
    const struct cap_set wraps = {.target = UINT64_MAX - 8, .width = 64, .height = 1, .value_bytes = 1};
    node(&b, 2, CAP_NODE_SET, 0, AFTER(), &wraps, sizeof wraps);
    /* Sizes of no memory, whatever is said of how a node's call went. */
    const struct cap_set wide = {.width = UINT64_MAX, .height = 1, .value_bytes = 1, .result = 1};
    node(&b, 2, CAP_NODE_SET, 0, AFTER(), &wide, sizeof wide);
    const struct cap_copy tall = {
        .width = 1, .height = UINT64_MAX, .depth = 1, .source_pitch = 1, .kind = CAP_COPY_DTOD, .result = 1};
    node(&b, 2, CAP_NODE_COPY, 0, AFTER(), &tall, sizeof tall);
    rejects(&b, 10, 0);

    struct cap_graph_launch l = {.launch = {.head.type = CAP_GRAPH_LAUNCH, .outcome = 9}, .graph = GRAPH, .version = 1};
    start(&b);
    whole(&b, 0, 0);
    capture_make_record(&b.make, &l, sizeof l, NULL, 0);
    l.launch.outcome = CAP_LAUNCH_OK;
    l.graph = GRAPH + 1;
    capture_make_record(&b.make, &l, sizeof l, NULL, 0);
    l.graph = GRAPH;
    l.launch.param_bytes = 8;
    capture_make_record(&b.make, &l, sizeof l, NULL, 0);
    l.launch.param_bytes = 0;
    capture_make_record(&b.make, &l, sizeof l, NULL, 0);
    rejects(&b, 3, 1);
}

/* ---- verify.json ---- */

/* A store with one judgement, of launch 1 (a graph's, of two nodes) or launch 2 (a kernel's). */
static void store_is(struct bench *b, enum status wanted, int launch, const char *members)
{
    char text[1024];
    struct judgements js;
    struct diag diag = {.text = ""};
    snprintf(text, sizeof text,
             "{\"version\": 1, \"start_realtime_ns\": \"1\", \"pid\": 4711, "
             "\"judgements\": [{\"launch\": %d, \"checked\": true, %s}]}",
             launch, members);
    enum status status = store_parse(b->session.model, text, "verify.json", &js, &diag);
    if (status != wanted)
        fail_msg("%s: %s", members, status ? diag.text : "taken");
    judgements_free(&b->session.judgements);
    b->session.judgements = js;
    session_classify(&b->session);
}

#define RACE(more)       "\"faults\": [{\"kind\": \"race\", \"allocation\": 1, \"bytes\": 4" more "}]"
#define DIFFERENCE(more) "\"differences\": [{\"kind\": \"mismatch\", \"allocation\": 1" more "}]"
#define NUMBER(more)     "\"numbers\": [{\"kind\": \"nan\", \"allocation\": 1" more "}]"

static void test_store_nodes(void **state)
{
    struct bench b;
    const struct params p = {B, A, COUNT, 0};
    const struct cap_set set = {.target = C, .width = 4, .height = 1, .value_bytes = 4};
    start(&b);
    whole(&b, 2, 0);
    kernel(&b, 0, b.scale, AFTER(), B, A, COUNT);
    node(&b, 1, CAP_NODE_SET, 0, AFTER(), &set, sizeof set);
    launch(&b, b.ramp, b.zeros, b.zeros, b.ramp, b.one, b.zeros);
    capture_make_launch(&b.make, b.scale, b.config, &p, 20);
    verify_kit_open(&b.make, &b.session);

    store_is(&b, STATUS_OK, 1, RACE(", \"node\": 1, \"other_node\": 2"));
    assert_int_equal(b.session.findings.count, 1);
    assert_non_null(strstr(b.session.findings.items[0].summary, "by node 1 (scale) and"));
    assert_non_null(strstr(b.session.findings.items[0].summary, "by node 2 (memset)"));
    store_is(&b, STATUS_OK, 1, RACE(", \"node\": 2"));
    store_is(&b, STATUS_OK, 1, DIFFERENCE(""));
    store_is(&b, STATUS_OK, 1, DIFFERENCE(", \"node\": 2, \"candidates\": [1, 2]"));
    store_is(&b, STATUS_OK, 1, NUMBER(", \"node\": 1"));
    store_is(&b, STATUS_OK, 2, RACE(""));

    static const char *const faults[] = {
        RACE(", \"other_node\": 2"),
        RACE(", \"node\": 1, \"other_node\": 3"),
        RACE(", \"node\": 2, \"other_node\": 2"),
        RACE(", \"node\": 3"),
        RACE(", \"node\": 0"),
        RACE(", \"node\": 1.5"),
        RACE(", \"node\": -1"),
        RACE(", \"node\": 4294967297"),
        RACE(", \"node\": \"1\""),
        DIFFERENCE(", \"node\": 3"),
        DIFFERENCE(", \"candidates\": [1]"),
        DIFFERENCE(", \"node\": 1, \"candidates\": [3]"),
        DIFFERENCE(", \"node\": 1, \"candidates\": [1e300]"),
        DIFFERENCE(", \"node\": 1, \"candidates\": [1, 1, 1, 1, 1, 1, 1, 1, 1]"),
        NUMBER(", \"node\": 3"),
        NUMBER(", \"node\": 1e300"),
    };
    for (size_t i = 0; i < sizeof faults / sizeof *faults; i++)
        store_is(&b, STATUS_BAD_INPUT, 1, faults[i]);
    store_is(&b, STATUS_BAD_INPUT, 2, RACE(", \"node\": 1, \"other_node\": 2"));
    store_is(&b, STATUS_BAD_INPUT, 2, RACE(", \"other_node\": 2"));
    store_is(&b, STATUS_BAD_INPUT, 2, RACE(", \"node\": 1"));
    store_is(&b, STATUS_BAD_INPUT, 2, DIFFERENCE(", \"node\": 1"));
    store_is(&b, STATUS_BAD_INPUT, 2, NUMBER(", \"node\": 1"));
    store_is(&b, STATUS_BAD_INPUT, 3, RACE(""));
    store_is(&b, STATUS_BAD_INPUT, 1, RACE("") "}, {\"launch\": 1, \"checked\": true");
    end(&b);
}

/* A node that only an earlier version has is none of a later one's, and no number goes past the end. */
static void test_graph_node_by_number(void **state)
{
    struct bench b;
    start(&b);
    whole(&b, 2, 0);
    kernel(&b, 0, b.scale, AFTER(), B, A, COUNT);
    kernel(&b, 1, b.slide, AFTER(0, ), C, B, 0);
    launch(&b, b.ramp, b.zeros, b.zeros, b.ramp, b.one, b.zeros);
    b.version = 2;
    whole(&b, 1, 0);
    kernel(&b, 0, b.slide, AFTER(), B, A, 0);
    launch(&b, b.ramp, b.zeros, b.zeros, b.ramp, b.one, b.zeros);
    b.version = 3; /* its node is lost */
    whole(&b, 1, 0);
    launch(&b, b.ramp, b.zeros, b.zeros, b.ramp, b.one, b.zeros);
    verify_kit_open(&b.make, &b.session);
    const struct model_launch *l = b.session.model->launches;
    assert_int_equal(model_launch_node(&l[0], 1)->kernel, b.scale);
    assert_int_equal(model_launch_node(&l[0], 2)->kernel, b.slide);
    assert_int_equal(model_launch_node(&l[1], 1)->kernel, b.slide);
    assert_null(model_launch_node(&l[1], 2));
    assert_null(model_launch_node(&l[2], 1));
    static const uint32_t none[] = {0, 3, UINT32_MAX};
    for (size_t i = 0; i < 3; i++) {
        assert_null(model_launch_node(&l[0], none[i]));
        assert_ptr_equal(model_launch_kernel(b.session.model, &l[0], none[i]), l[0].kernel);
    }
    end(&b);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_graph_chain),
        cmocka_unit_test(test_graph_copies_and_sets),
        cmocka_unit_test(test_graph_versions),
        cmocka_unit_test(test_graph_fault_of_a_node),
        cmocka_unit_test(test_graph_damage_without_snapshots),
        cmocka_unit_test(test_graph_difference_of_the_first_node),
        cmocka_unit_test(test_graph_difference_with_candidates),
        cmocka_unit_test(test_graph_use_after_free),
        cmocka_unit_test(test_graph_refused),
        cmocka_unit_test(test_graph_race_of_branches),
        cmocka_unit_test(test_graph_branches_apart),
        cmocka_unit_test(test_graph_branches_same_value),
        cmocka_unit_test(test_graph_not_judged),
        cmocka_unit_test(test_graph_unknown_source),
        cmocka_unit_test(test_graph_nodes_missing),
        cmocka_unit_test(test_graph_records_rejected),
        cmocka_unit_test(test_store_nodes),
        cmocka_unit_test(test_graph_node_by_number),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
