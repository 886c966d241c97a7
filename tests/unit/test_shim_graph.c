/* What the shim records of executable graphs, on softgpu: nodes once, launches as one small record each, changes alone.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <stdio.h>
#include <string.h>

#include "tests/unit/shim_kit.h"

#define SOFTGPU "LD_LIBRARY_PATH=" KIT_BUILD "/softgpu"

static void run(struct kit_run *r, struct kit_capture *capture, const char *action, const char *launches,
                const char *option)
{
    const char *const environment[] = {SOFTGPU, "OPSDEBUG_PRESET=watch", option, NULL};
    kit_run(r, "dlsym", action, launches, environment);
    if (!kit_ok(r))
        fail_msg("%s", r->output);
    assert_true(kit_read(r, "out", capture));
}

static void end(struct kit_run *r, struct kit_capture *capture)
{
    kit_free(capture);
    kit_remove(r);
}

/* "kernels launched by cuGraphLaunch were invisible" (breakages): nodes at instantiation, launches attributed to them.
 */
static void test_graph_nodes_in_order(void **state)
{
    struct kit_run r;
    struct kit_capture c;
    run(&r, &c, "graph", "3", NULL);
    const struct cap_graph *made = kit_nth(&c, CAP_GRAPH, 0), *gone = kit_nth(&c, CAP_GRAPH, 1);
    assert_int_equal(kit_count(&c, CAP_GRAPH), 2);
    assert_int_equal(made->version, 1);
    assert_int_equal(made->node_count, 3);
    assert_int_equal(made->flags, 0);
    assert_int_equal(gone->flags, CAP_GRAPH_DESTROYED);
    assert_int_equal(gone->id, made->id);
    assert_int_equal(kit_count(&c, CAP_GRAPH_NODE), 4);
    for (uint32_t i = 0; i < 3; i++) {
        const struct cap_graph_node *n = kit_nth(&c, CAP_GRAPH_NODE, i);
        const uint32_t *dependencies = (const uint32_t *)(n + 1);
        uint32_t value;
        assert_int_equal(n->index, i);
        assert_int_equal(n->kind, CAP_NODE_KERNEL);
        assert_int_equal(n->dependency_count, i == 2 ? 2 : 0);
        if (i == 2)
            assert_int_equal(dependencies[0] + dependencies[1], 1);
        assert_int_equal(n->body_bytes, 16);
        memcpy(&value, (const uint8_t *)(n + 1) + (i == 2 ? 8 : 0) + 12, sizeof value);
        assert_int_equal(value, 10 * i);
    }
    end(&r, &c);
}

/* A changed node is one record with a version of its own, and later launches name that. */
static void test_graph_changed_node_alone(void **state)
{
    struct kit_run r;
    struct kit_capture c;
    run(&r, &c, "graph", "2", NULL);
    const struct cap_graph_node *changed = kit_nth(&c, CAP_GRAPH_NODE, 3);
    uint32_t value;
    assert_int_equal(changed->version, 2);
    assert_int_equal(changed->index, 1);
    memcpy(&value, (const uint8_t *)(changed + 1) + 12, sizeof value);
    assert_int_equal(value, 99);
    for (size_t i = 0; i < 3; i++) {
        const struct cap_graph_launch *l = kit_nth(&c, CAP_GRAPH_LAUNCH, i);
        assert_int_equal(l->version, i < 2 ? 1 : 2);
        assert_int_equal(l->launch.outcome, CAP_LAUNCH_OK);
    }
    end(&r, &c);
}

/* However many nodes it has, a launch is one record of 56 bytes. */
static void test_graph_launch_is_one_record(void **state)
{
    struct kit_run r;
    struct kit_capture few, many;
    run(&r, &few, "graph", "100", NULL);
    uint64_t records = few.header.records, bytes = few.header.record_bytes;
    end(&r, &few);
    run(&r, &many, "graph", "600", NULL);
    assert_int_equal(kit_count(&many, CAP_GRAPH_LAUNCH), 601);
    assert_int_equal(((const struct cap_graph_launch *)kit_nth(&many, CAP_GRAPH_LAUNCH, 9))->launch.head.size, 56);
    /* Between them device times of one launch of 16, and notes of the redzones. */
    assert_true(many.header.records - records < 600);
    assert_true(many.header.record_bytes - bytes < 500 * 60);
    end(&r, &many);
}

static void test_graph_exploded(void **state)
{
    struct kit_run r;
    struct kit_capture c;
    run(&r, &c, "graph", "5", "OPSDEBUG_GRAPHS=explode");
    assert_int_equal(kit_count(&c, CAP_GRAPH_LAUNCH), 0);
    assert_int_equal(kit_count(&c, CAP_LAUNCH), 18);
    const struct cap_launch *last = kit_nth(&c, CAP_LAUNCH, 16);
    uint32_t value;
    memcpy(&value, (const uint8_t *)(last + 1) + 12, sizeof value);
    assert_int_equal(value, 99);
    assert_int_equal(last->flags & CAP_LAUNCH_CAPTURING, 0);
    end(&r, &c);
}

static void node_is(const struct kit_capture *c, size_t n, uint32_t version, uint32_t index, uint32_t kind,
                    uint32_t flags, uint32_t value)
{
    const struct cap_graph_node *node = kit_nth(c, CAP_GRAPH_NODE, n);
    uint32_t got = 0;
    assert_non_null(node);
    assert_int_equal(node->version, version);
    assert_int_equal(node->index, index);
    assert_int_equal(node->kind, kind);
    assert_int_equal(node->flags, flags);
    size_t ends = (node->dependency_count * 4u + 7) & ~(size_t)7;
    if (node->body_bytes)
        memcpy(&got, (const uint8_t *)(node + 1) + ends + 12, sizeof got);
    assert_int_equal(got, value);
}

/* A child graph's nodes stand in its place; what is changed is found by the handles that the program has. */
static void test_graph_child_and_updates(void **state)
{
    enum { KERNEL = CAP_NODE_KERNEL, EMPTY = CAP_NODE_EMPTY };
    struct kit_run r;
    struct kit_capture c;
    run(&r, &c, "graph-child", NULL, NULL);
    static const uint32_t kinds[6] = {KERNEL, EMPTY, KERNEL, KERNEL, EMPTY, KERNEL};
    static const uint32_t made[6] = {10, 0, 1, 2, 0, 30}, updated[6] = {11, 0, 1, 2, 0, 31};
    for (uint32_t i = 0; i < 6; i++)
        node_is(&c, i, 1, i, kinds[i], 0, made[i]);
    node_is(&c, 6, 2, 2, KERNEL, 0, 3);
    node_is(&c, 7, 3, 3, KERNEL, 0, 4);
    for (uint32_t i = 0; i < 6; i++)
        node_is(&c, 8 + i, 4, i, kinds[i], 0, updated[i]);
    node_is(&c, 14, 5, 5, KERNEL, 0, 77);
    node_is(&c, 15, 6, 0, KERNEL, CAP_NODE_DISABLED, 11);
    assert_int_equal(kit_count(&c, CAP_GRAPH_NODE), 16);
    static const uint32_t versions[4] = {1, 3, 4, 6};
    for (size_t i = 0; i < 4; i++)
        assert_int_equal(((const struct cap_graph_launch *)kit_nth(&c, CAP_GRAPH_LAUNCH, i))->version, versions[i]);
    end(&r, &c);
}

/* The same values (the probe looks) when each node is a launch of its own. */
static void test_graph_child_exploded(void **state)
{
    struct kit_run r;
    struct kit_capture c;
    run(&r, &c, "graph-child", NULL, "OPSDEBUG_GRAPHS=explode");
    assert_int_equal(kit_count(&c, CAP_GRAPH_LAUNCH), 0);
    assert_int_equal(kit_count(&c, CAP_LAUNCH), 4 + 4 + 4 + 3);
    end(&r, &c);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_graph_nodes_in_order),       cmocka_unit_test(test_graph_changed_node_alone),
        cmocka_unit_test(test_graph_launch_is_one_record), cmocka_unit_test(test_graph_exploded),
        cmocka_unit_test(test_graph_child_and_updates),    cmocka_unit_test(test_graph_child_exploded),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
