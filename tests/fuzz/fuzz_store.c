/* A hostile verify.json beside a small sound capture: parsed, classified, reported. */
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "analyzer/report.h"
#include "analyzer/session.h"
#include "analyzer/store.h"
#include "tests/unit/capture_make.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t bytes);

static struct session session;
static FILE *null;

static void add(struct capture_make *m, void *record, size_t bytes)
{
    capture_make_record(m, record, bytes, NULL, 0);
}

static uint32_t add_stream(struct capture_make *m, uint32_t id)
{
    struct cap_stream s = {.head.type = CAP_STREAM, .id = id, .kind = CAP_STREAM_CREATED, .flags = 1};
    add(m, &s, sizeof s);
    return id;
}

static uint32_t add_async(struct capture_make *m, uint64_t address, uint64_t bytes, uint32_t stream)
{
    struct cap_alloc a = {.head.type = CAP_ALLOC,
                          .id = ++m->next_id[CAP_ALLOC],
                          .kind = CAP_ALLOC_ASYNC,
                          .address = address,
                          .bytes = bytes,
                          .tail_redzone = 256,
                          .stream = stream};
    add(m, &a, sizeof a);
    return a.id;
}

/* A node behind those whose indices are the bits of `after`. */
static void add_node(struct capture_make *m, struct cap_graph_node n, uint32_t after, const void *body, uint32_t bytes)
{
    uint8_t tail[256] = {0};
    n.head.type = CAP_GRAPH_NODE;
    n.graph = 1;
    n.body_bytes = bytes;
    for (uint32_t i = 0; i < n.index; i++)
        if (after >> i & 1)
            memcpy(tail + 4u * n.dependency_count++, &i, sizeof i);
    size_t at = (n.dependency_count * 4u + 7) & ~(size_t)7;
    memcpy(tail + at, body, bytes);
    capture_make_record(m, &n, sizeof n, tail, at + ((bytes + 7) & ~7u));
}

static void add_graph(struct capture_make *m, uint32_t version, uint32_t nodes, uint32_t flags)
{
    struct cap_graph g = {.head.type = CAP_GRAPH, .id = 1, .version = version, .node_count = nodes, .flags = flags};
    add(m, &g, sizeof g);
}

static void add_graph_launch(struct capture_make *m, uint32_t version, uint32_t stream)
{
    struct cap_graph_launch l = {.launch = {.head.type = CAP_GRAPH_LAUNCH,
                                            .stream = stream,
                                            .outcome = CAP_LAUNCH_OK,
                                            .flags = CAP_LAUNCH_INPUTS | CAP_LAUNCH_OUTPUTS},
                                 .graph = 1,
                                 .version = version};
    m->header.launches++;
    add(m, &l, sizeof l);
}

static void add_kernel_launch(struct capture_make *m, uint32_t kernel, uint32_t config, const uint64_t params[2],
                              uint32_t stream)
{
    struct cap_launch l = {.head.type = CAP_LAUNCH,
                           .kernel = kernel,
                           .config = config,
                           .stream = stream,
                           .param_bytes = 16,
                           .outcome = CAP_LAUNCH_OK,
                           .flags = CAP_LAUNCH_INPUTS | CAP_LAUNCH_OUTPUTS};
    m->header.launches++;
    capture_make_record(m, &l, sizeof l, params, 16);
}

/* Launches 5 to 8: of a graph of every kind of node (two branches), of a version with fewer nodes, of an unfinished
 * one, and after its end. */
static void add_graph_work(struct capture_make *m, uint32_t kernel, uint32_t config, uint32_t stream)
{
    const uint64_t params[2] = {0x10000, 0x20000};
    const struct cap_set set = {.target = 0x20000, .width = 64, .height = 1, .value_bytes = 4};
    const struct cap_copy copy = {
        .target = 0x20000, .source = 0x10000, .width = 64, .height = 1, .depth = 1, .kind = CAP_COPY_DTOD};
    const struct cap_graph_memory memory = {0x40000, 256};
    const struct cap_graph_node runs = {.version = 1, .kind = CAP_NODE_KERNEL, .kernel = kernel, .config = config};
    add_graph(m, 1, CAP_NODE_KINDS, 0);
    for (uint32_t i = 0; i < CAP_NODE_KINDS; i++) {
        struct cap_graph_node n = i == CAP_NODE_KERNEL ? runs : (struct cap_graph_node){.version = 1, .kind = i};
        n.index = i;
        if (i == CAP_NODE_KERNEL)
            add_node(m, n, 1, params, sizeof params);
        else if (i == CAP_NODE_COPY)
            add_node(m, n, 1, &copy, sizeof copy);
        else if (i == CAP_NODE_SET)
            add_node(m, n, 3, &set, sizeof set);
        else
            add_node(m, n, i ? 1u << (i - 1) : 0, &memory,
                     i == CAP_NODE_ALLOC || i == CAP_NODE_FREE ? sizeof memory : 0);
    }
    add_graph_launch(m, 1, stream);
    add_graph(m, 2, 2, 0);
    struct cap_graph_node n = runs;
    n.version = 2;
    add_node(m, n, 0, params, sizeof params);
    n.index = 1;
    n.flags = CAP_NODE_ARGS_UNKNOWN;
    add_node(m, n, 1, params, 0);
    add_graph_launch(m, 2, stream);
    add_graph(m, 3, 4, CAP_GRAPH_INCOMPLETE); /* and no nodes */
    add_graph_launch(m, 3, stream);
    add_graph(m, 4, 0, CAP_GRAPH_DESTROYED);
    add_graph_launch(m, 4, stream);
}

/* Launches 9 to 12, of two streams of their own that only an event orders, on memory that the streams allocate and
 * free; and a region. */
static void add_ordered_work(struct capture_make *m, uint32_t kernel, uint32_t config, const uint32_t streams[2])
{
    struct cap_event event = {.head.type = CAP_EVENT, .id = 1};
    struct cap_event_op_record record = {
        .head.type = CAP_EVENT_OP, .op = CAP_EVENT_RECORD, .event = 1, .stream = streams[0]};
    struct cap_event_op_record wait = {
        .head.type = CAP_EVENT_OP, .op = CAP_EVENT_STREAM_WAIT, .event = 1, .stream = streams[1]};
    uint32_t a = add_async(m, 0x50000, 1024, streams[0]);
    const uint64_t params[2] = {0x50000, 0x10000};
    struct cap_region region = {
        .head.type = CAP_REGION, .id = ++m->next_id[CAP_ALLOC], .allocation = a, .address = 0x50100, .bytes = 64};
    add(m, &event, sizeof event);
    add(m, &region, sizeof region);
    add_kernel_launch(m, kernel, config, params, streams[0]);
    add_kernel_launch(m, kernel, config, params, streams[1]);
    add(m, &record, sizeof record);
    add(m, &wait, sizeof wait);
    add_kernel_launch(m, kernel, config, params, streams[1]);
    add_kernel_launch(m, kernel, config, params, streams[0]);
    struct cap_free freed = {.head.type = CAP_FREE, .id = a, .address = 0x50000, .stream = streams[1]};
    add(m, &freed, sizeof freed);
}

static void start(void)
{
    struct capture_make m;
    struct capture *capture;
    struct diag diag;
    uint64_t params[2] = {0x10000, 0x20000};
    capture_make_start(&m);
    struct cap_hook hook = {.head.type = CAP_HOOK, .index = 1, .name = capture_make_string(&m, "cuLaunchHostFunc")};
    add(&m, &hook, sizeof hook); /* so that the order between streams is looked at */
    uint32_t module = capture_make_module(&m, NULL);
    uint32_t kernel = capture_make_kernel(&m, module, "_Z5scalePf", (const uint32_t[]){8, 8, 0});
    uint32_t config = capture_make_config(&m, 3, 32);
    uint32_t a = capture_make_alloc(&m, 0x10000, 256), b = capture_make_alloc(&m, 0x20000, 256);
    for (int i = 0; i < 4; i++)
        capture_make_launch(&m, kernel, config, params, 16);
    capture_make_damage(&m, a, 256, 4, 1, m.seq);
    capture_make_damage(&m, b, -8, 4, 1, m.seq);
    add_graph_work(&m, kernel, config, add_stream(&m, 1));
    const uint32_t streams[2] = {add_stream(&m, 2), add_stream(&m, 3)};
    add_ordered_work(&m, kernel, config, streams);
    capture_make_free(&m, b, 0x20000, 0);
    capture_make_error(&m, 700, "CUDA_ERROR_ILLEGAL_ADDRESS");
    struct capture_bytes segment = {m.records, m.bytes};
    if (capture_open_memory((struct capture_bytes){&m.header, sizeof m.header}, &segment, 1, &capture, &diag) ||
        session_adopt(capture, &session, &diag) || session.capture->rejected.count || session.model->launch_count != 12)
        abort(); /* what is to be fuzzed is verify.json */
    capture_make_end(&m);
    null = fopen("/dev/null", "we");
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t bytes)
{
    struct diag diag;
    if (!null)
        start();
    char *text = malloc(bytes + 1);
    if (!text)
        return 0;
    memcpy(text, data, bytes);
    text[bytes] = '\0';
    judgements_free(&session.judgements);
    if (store_parse(session.model, text, "verify.json", &session.judgements, &diag) == STATUS_OK) {
        session_classify(&session);
        report_text(null, &session, (struct report_style){.verbose = true});
        report_json(null, &session);
    }
    free(text);
    return 0;
}
