/* What the shim does on the device: redzones, snapshots, times, graph capture, device errors. Against tests/stub, where
 * looks are copies, and against softgpu, where the check kernel runs. */
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>
#include <cmocka.h>

#include "tests/unit/shim_kit.h"

#define ON_SOFTGPU "LD_LIBRARY_PATH=" KIT_BUILD "/softgpu"

static bool softgpu_is_there(void)
{
    return access(KIT_BUILD "/softgpu/libcuda.so.1", R_OK) == 0;
}

static uint8_t expected_byte(uint32_t id, uint64_t address)
{
    return address & 1 ? (uint8_t)(0x7f | (id >> (address >> 1 & 31) & 1) << 7) : 0xff;
}

/* `bytes` behind an allocation of 1000 are overwritten: one damage, with place, extent and contents, and a window that
 * holds the guilty launch and no other. */
static void check_overrun(const char *const *environment, const char *argument, uint64_t bytes)
{
    struct kit_run run;
    struct kit_capture capture;
    kit_run(&run, "dlsym", "overrun", argument, environment);
    assert_true(kit_ok(&run));
    assert_true(kit_read(&run, "out", &capture));
    assert_int_equal(kit_count(&capture, CAP_DAMAGE), 1);
    const struct cap_damage *d = kit_nth(&capture, CAP_DAMAGE, 0);
    const struct cap_alloc *a = kit_nth(&capture, CAP_ALLOC, 0);
    const struct cap_launch *innocent = kit_nth(&capture, CAP_LAUNCH, 0), *guilty = kit_nth(&capture, CAP_LAUNCH, 1);
    assert_int_equal(d->allocation, a->id);
    assert_int_equal(d->tail, 1);
    assert_int_equal(d->offset, 1000);
    assert_int_equal(d->length, bytes);
    assert_true(a->tail_redzone >= 256 && (a->address + a->bytes + a->tail_redzone) % 256 == 0);
    assert_true(d->clean_seq > innocent->head.seq && d->clean_seq <= guilty->head.seq);
    assert_true(d->seen_seq > guilty->head.seq);
    for (uint64_t i = 0; i < bytes && i < 32; i++) {
        assert_int_equal(d->found[i], 90);
        assert_int_equal(d->expected[i], expected_byte(a->id, a->address + 1000 + i));
    }
    kit_free(&capture);
    kit_remove(&run);
}

static void test_overrun_seen_by_copies(void **state)
{
    static const char *const presets[] = {"OPSDEBUG_PRESET=watch", "OPSDEBUG_PRESET=check", "OPSDEBUG_PRESET=deep"};
    for (int i = 0; i < 3; i++) {
        const char *const environment[] = {presets[i], NULL};
        check_overrun(environment, "1", 1);
        check_overrun(environment, "100", 100);
    }
}

static void test_overrun_seen_by_the_kernel(void **state)
{
    static const char *const presets[] = {"OPSDEBUG_PRESET=watch", "OPSDEBUG_PRESET=check", "OPSDEBUG_PRESET=deep"};
    if (!softgpu_is_there()) /* the stub's test of the same things has run */
        return;
    for (int i = 0; i < 3; i++) {
        const char *const environment[] = {ON_SOFTGPU, presets[i], NULL};
        check_overrun(environment, "1", 1);
        check_overrun(environment, "7", 7);
        check_overrun(environment, "100", 100);
    }
}

static void check_overset(const char *device, const char *preset, const char *argument, size_t damages)
{
    const char *const environment[] = {device, preset, NULL};
    struct kit_run run;
    struct kit_capture capture;
    kit_run(&run, "dlsym", "overset", argument, environment);
    assert_true(kit_ok(&run));
    assert_true(kit_read(&run, "out", &capture));
    assert_int_equal(kit_count(&capture, CAP_DAMAGE), damages);
    kit_free(&capture);
    kit_remove(&run);
}

/* Nothing was launched since the last look: a set or a copy is reason enough for another one. */
static void test_overrun_by_sets_and_copies(void **state)
{
    static const char *const presets[] = {"OPSDEBUG_PRESET=watch", "OPSDEBUG_PRESET=check", "OPSDEBUG_PRESET=deep"};
    static const char *const moments[] = {"-sync", "-free", "-exit"};
    for (int softgpu = softgpu_is_there(); softgpu >= 0; softgpu--)
        for (int i = 0; i < 3; i++)
            for (int m = 0; m < 3; m++) {
                static const char *const by[] = {"set", "copy", "nothing"};
                char argument[32];
                for (int b = 0; b < 3; b++) {
                    snprintf(argument, sizeof argument, "%s%s", by[b], moments[m]);
                    check_overset(softgpu ? ON_SOFTGPU : "STUB=1", presets[i], argument, b < 2);
                }
            }
}

static size_t snapshots_among_events(const char *kind, const char *preset, uint32_t *first)
{
    const char *const environment[] = {preset, NULL};
    struct kit_run run;
    struct kit_capture capture;
    kit_run(&run, "dlsym", "events", kind, environment);
    assert_true(kit_ok(&run));
    assert_true(kit_read(&run, "out", &capture));
    const struct cap_launch *l;
    *first = UINT32_MAX;
    for (uint32_t i = 0; (l = kit_nth(&capture, CAP_LAUNCH, i)); i++)
        if (l->flags & CAP_LAUNCH_INPUTS && *first == UINT32_MAX)
            *first = i;
    size_t count = kit_count(&capture, CAP_SNAPSHOT);
    kit_free(&capture);
    kit_remove(&run);
    return count;
}

/* Between two timing events a kernel waits for its snapshots, but not for ever. */
static void test_snapshots_and_timing_events(void **state)
{
    uint32_t first;
    assert_int_equal(snapshots_among_events("timing", "OPSDEBUG_PRESET=check", &first), 4);
    assert_int_equal(first, 64);
    assert_int_equal(snapshots_among_events("fence", "OPSDEBUG_PRESET=check", &first), 4);
    assert_int_equal(first, 0);
    assert_int_equal(snapshots_among_events("marker", "OPSDEBUG_PRESET=check", &first), 4);
    assert_int_equal(first, 1); /* by then it is known that the event opens nothing */
    assert_int_equal(snapshots_among_events("timing", "OPSDEBUG_PRESET=deep", &first), 200);
}

/* What the health check says of `what` (see probe.c); the number of records. */
static size_t health_of(const char *what, const char *const *environment, struct cap_health *out)
{
    struct kit_run run;
    struct kit_capture capture;
    kit_run(&run, "dlsym", "numbers", what, environment);
    assert_true(kit_ok(&run));
    assert_true(kit_read(&run, "out", &capture));
    size_t count = kit_count(&capture, CAP_HEALTH);
    if (count)
        memcpy(out, kit_nth(&capture, CAP_HEALTH, 0), sizeof *out);
    if (count) { /* the launch in the middle, and its memory */
        assert_int_equal(out->launch, ((const struct cap_launch *)kit_nth(&capture, CAP_LAUNCH, 1))->head.seq);
        assert_int_equal(out->allocation, ((const struct cap_alloc *)kit_nth(&capture, CAP_ALLOC, 0))->id);
    }
    const struct cap_health_checked *c;
    uint32_t launches = 0;
    for (size_t i = 0; (c = kit_nth(&capture, CAP_HEALTH_CHECKED, i)); i++)
        launches += c->launches;
    assert_int_equal(launches, strcmp(environment[2], "OPSDEBUG_HEALTH=off") == 0 ? 0 : 3);
    kit_free(&capture);
    kit_remove(&run);
    return count;
}

static void test_health_of_outputs(void **state)
{
    static const char *const presets[] = {"OPSDEBUG_PRESET=watch", "OPSDEBUG_PRESET=check", "OPSDEBUG_PRESET=deep"};
    static const char *const depths[] = {"OPSDEBUG_HEALTH=sample", "OPSDEBUG_HEALTH=full"};
    struct cap_health h = {0};
    for (int i = 0; i < 3 && softgpu_is_there(); i++)
        for (int depth = 0; depth < 2; depth++) {
            const char *const environment[] = {ON_SOFTGPU, presets[i], depths[depth], NULL};
            assert_int_equal(health_of("nan", environment, &h), 1);
            assert_true(h.nan == 1024 && h.inf == 0 && h.over == 0 && h.words > 65000 && h.words <= 65536 &&
                        h.first == 0);
            assert_int_equal(h.flags, CAP_HEALTH_FULL);
            assert_int_equal(h.type, CAP_HEALTH_F32);
            assert_int_equal(health_of("inf", environment, &h), 1);
            assert_true(h.nan == 0 && h.inf == 1024 && h.over == 0);
            assert_int_equal(health_of("large", environment, &h), 1);
            assert_true(h.nan == 0 && h.inf == 0 && h.over == 1024);
            assert_int_equal(health_of("finite", environment, &h), 0);
            assert_int_equal(health_of("integers", environment, &h), 0);
            assert_int_equal(health_of("before", environment, &h), 0);
        }
}

static void test_health_can_be_switched_off_and_told_what_is_large(void **state)
{
    const char *const off[] = {ON_SOFTGPU, "OPSDEBUG_PRESET=deep", "OPSDEBUG_HEALTH=off", NULL};
    const char *const low[] = {ON_SOFTGPU, "OPSDEBUG_PRESET=deep", "OPSDEBUG_HEALTH_THRESHOLD=1e5", NULL};
    const char *const high[] = {ON_SOFTGPU, "OPSDEBUG_PRESET=deep", "OPSDEBUG_HEALTH_THRESHOLD=2e38", NULL};
    struct cap_health h = {0};
    if (!softgpu_is_there())
        return;
    assert_int_equal(health_of("nan", off, &h), 0);
    assert_int_equal(health_of("large", low, &h), 1);
    assert_true(h.threshold == 1e5f);
    assert_int_equal(health_of("large", high, &h), 0);
}

static void check_fresh(const char *const *environment, int status)
{
    struct kit_run run;
    kit_run(&run, "dlsym", "fresh", "fffbfffb", environment);
    assert_true(WIFEXITED(run.status) && WEXITSTATUS(run.status) == status);
    assert_string_equal(run.output, "");
    kit_remove(&run);
}

static void test_new_memory_is_poisoned(void **state)
{
    for (int softgpu = softgpu_is_there(); softgpu >= 0; softgpu--) {
        const char *device = softgpu ? ON_SOFTGPU : "STUB=1";
        const char *const deep[] = {device, "OPSDEBUG_PRESET=deep", NULL}, *const check[] = {device, NULL};
        const char *const off[] = {device, "OPSDEBUG_PRESET=deep", "OPSDEBUG_POISON=off", NULL};
        const char *const on[] = {device, "OPSDEBUG_POISON=on", NULL};
        check_fresh(deep, 3);
        check_fresh(on, 3);
        check_fresh(check, 0);
        check_fresh(off, 0);
    }
}

static void test_no_sentinels_when_switched_off(void **state)
{
    const char *const environment[] = {"OPSDEBUG_SENTINELS=off", NULL};
    struct kit_run run;
    struct kit_capture capture;
    kit_run(&run, "direct", "work", "3", environment);
    assert_true(kit_ok(&run));
    assert_true(kit_read(&run, "out", &capture));
    const struct cap_alloc *a = kit_nth(&capture, CAP_ALLOC, 0);
    assert_int_equal(a->tail_redzone, 0);
    assert_int_equal(a->head_redzone, 0);
    assert_int_equal(kit_count(&capture, CAP_CHECKED), 0);
    kit_free(&capture);
    kit_remove(&run);
}

static void test_redzones_are_not_seen_by_the_program(void **state)
{
    const char *const environment[] = {"OPSDEBUG_PRESET=deep", NULL};
    struct kit_run run;
    kit_run(&run, "direct", "memory-info", NULL, environment);
    assert_true(kit_ok(&run));
    kit_remove(&run);
}

static void test_freed_memory_is_held_back(void **state)
{
    const char *const environment[] = {"OPSDEBUG_QUARANTINE=1M", NULL};
    struct kit_run run;
    struct kit_capture capture;
    kit_run(&run, "direct", "double-free", NULL, environment);
    assert_true(kit_ok(&run));
    assert_true(kit_read(&run, "out", &capture));
    const struct cap_free *first = kit_nth(&capture, CAP_FREE, 0), *second = kit_nth(&capture, CAP_FREE, 1);
    assert_int_not_equal(first->id, 0);
    assert_int_equal(first->result, 0);
    assert_int_equal(second->id, 0);
    assert_int_equal(second->result, 1);
    assert_int_equal(kit_count(&capture, CAP_ERROR), 1);
    kit_free(&capture);
    kit_remove(&run);
}

static void check_graph_capture(const char *const *environment)
{
    struct kit_run run;
    struct kit_capture capture;
    kit_run(&run, "dlsym", "capture", NULL, environment);
    assert_true(kit_ok(&run));
    assert_true(kit_read(&run, "out", &capture));
    assert_int_equal(kit_count(&capture, CAP_LAUNCH), 141);
    const struct cap_launch *l;
    unsigned capturing = 0;
    for (size_t i = 0; (l = kit_nth(&capture, CAP_LAUNCH, i)); i++)
        capturing += (l->flags & CAP_LAUNCH_CAPTURING) != 0;
    assert_int_equal(capturing, 70);
    kit_free(&capture);
    kit_remove(&run);
}

static void test_nothing_of_ours_in_a_stream_capture(void **state)
{
    static const char *const presets[] = {"OPSDEBUG_PRESET=watch", "OPSDEBUG_PRESET=check", "OPSDEBUG_PRESET=deep"};
    for (int i = 0; i < 3; i++) {
        const char *const environment[] = {presets[i], NULL};
        check_graph_capture(environment);
    }
}

static void test_device_error_leaves_launches_and_inputs(void **state)
{
    const char *const environment[] = {"STUB_FAULT_AFTER=5", "OPSDEBUG_PRESET=deep", NULL};
    struct kit_run run;
    struct kit_capture capture;
    kit_run(&run, "direct", "fault", NULL, environment);
    assert_true(kit_ok(&run)); /* every error reached the program */
    assert_true(kit_read(&run, "out", &capture));
    assert_int_equal(kit_count(&capture, CAP_LAUNCH), 10);
    assert_int_equal(kit_count(&capture, CAP_ERROR), 6);
    assert_int_equal(kit_count(&capture, CAP_SNAPSHOT), 10 - 1); /* five launches, the last without its outputs */
    const struct cap_launch *failed = kit_nth(&capture, CAP_LAUNCH, 5);
    assert_int_equal(failed->outcome, CAP_LAUNCH_FAILED);
    assert_true(kit_note(&capture, "device error"));
    kit_free(&capture);
    kit_remove(&run);
}

/* The launches that failed, in a program whose driver refuses all from the fifth on with `code`, and the errors. */
static void refused_launches(const char *const *environment, const char *code, size_t *failed, size_t *errors)
{
    struct kit_run run;
    struct kit_capture capture;
    const struct cap_launch *l;
    kit_run(&run, "direct", "fault", code, environment);
    assert_true(kit_read(&run, "out", &capture));
    *failed = 0;
    for (size_t i = 0; (l = kit_nth(&capture, CAP_LAUNCH, i)); i++)
        *failed += l->outcome == CAP_LAUNCH_FAILED;
    *errors = kit_count(&capture, CAP_ERROR);
    kit_free(&capture);
    kit_remove(&run);
}

/* A launch says that it failed only when its error is there: neither when there is none to tell, since the driver is
 * gone, nor when the process was killed in between. */
static void test_failed_launches_have_errors(void **state)
{
    const char *const invalid[] = {"STUB_FAULT_AFTER=5", "STUB_FAULT=1", NULL};
    const char *const gone[] = {"STUB_FAULT_AFTER=5", "STUB_FAULT=4", NULL};
    const char *const killed[] = {"STUB_FAULT_AFTER=5", "STUB_FAULT=1", "STUB_KILLED_BY_ERROR=1", NULL};
    size_t failed, errors;
    refused_launches(invalid, "1", &failed, &errors);
    assert_int_equal(failed, 5);
    assert_int_equal(errors, 6);
    refused_launches(gone, "4", &failed, &errors);
    assert_int_equal(failed, 0);
    assert_int_equal(errors, 0);
    refused_launches(killed, "1", &failed, &errors);
    assert_int_equal(failed, 0);
    assert_int_equal(errors, 0);
}

static void test_times_of_launches(void **state)
{
    struct kit_run run;
    struct kit_capture capture;
    kit_run(&run, "direct", "work", "100", NULL);
    assert_true(kit_ok(&run));
    assert_true(kit_read(&run, "out", &capture));
    const struct cap_times *t;
    unsigned times = 0;
    for (size_t i = 0; (t = kit_nth(&capture, CAP_TIMES, i)); i++) {
        assert_int_equal(t->source, CAP_TIME_EVENTS);
        assert_int_equal(t->head.size, (sizeof *t + t->count * sizeof(struct cap_time) + 7) / 8 * 8);
        times += t->count;
    }
    assert_int_equal(times, 100);
    kit_free(&capture);
    kit_remove(&run);
}

static void test_snapshot_filter_and_budget(void **state)
{
    static const struct {
        const char *setting;
        size_t snapshots;
    } cases[] = {
        {"OPSDEBUG_SNAPSHOTS=none", 0},      {"OPSDEBUG_SNAPSHOTS=first=3", 6}, {"OPSDEBUG_SNAPSHOTS=all", 20},
        {"OPSDEBUG_KERNEL=nothing_like", 0}, {"OPSDEBUG_KERNEL=no+p", 4},       {"OPSDEBUG_LAUNCH_SKIP=9", 2},
        {"OPSDEBUG_LAUNCH_COUNT=1", 2},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        const char *const environment[] = {cases[i].setting, NULL};
        struct kit_run run;
        struct kit_capture capture;
        kit_run(&run, "direct", "work", "10", environment);
        assert_true(kit_ok(&run));
        assert_true(kit_read(&run, "out", &capture));
        assert_int_equal(kit_count(&capture, CAP_SNAPSHOT), cases[i].snapshots);
        kit_free(&capture);
        kit_remove(&run);
    }
}

static void test_snapshot_over_budget_is_told(void **state)
{
    const char *const environment[] = {"OPSDEBUG_SNAPSHOTS=all", "OPSDEBUG_SNAPSHOT_BUDGET=5000",
                                       "OPSDEBUG_PRESET=deep", NULL};
    struct kit_run run;
    struct kit_capture capture;
    kit_run(&run, "direct", "work", "10", environment);
    assert_true(kit_ok(&run));
    assert_true(kit_read(&run, "out", &capture));
    assert_int_equal(kit_count(&capture, CAP_SNAPSHOT), 5);
    const struct cap_launch *last = kit_nth(&capture, CAP_LAUNCH, 9);
    assert_int_equal(last->flags, CAP_LAUNCH_BUDGET);
    kit_free(&capture);
    kit_remove(&run);
}

/* What may not be left out is there whatever the budget; what was, is counted. */
static void test_budget(void **state)
{
    static const char *const budgets[] = {"OPSDEBUG_BUDGET=100%", "OPSDEBUG_BUDGET=0.001%", "OPSDEBUG_BUDGET=off"};
    for (int i = 0; i < 3; i++) {
        const char *const environment[] = {budgets[i], NULL};
        struct kit_run run;
        struct kit_capture capture;
        uint64_t taken = 0, skipped = 0;
        kit_run(&run, "dlsym", "steady", "600000", environment);
        assert_true(kit_ok(&run));
        assert_true(kit_read(&run, "out", &capture));
        assert_int_equal(kit_count(&capture, CAP_LAUNCH), 600000);
        assert_int_equal(kit_count(&capture, CAP_ALLOC), 601);
        assert_int_equal(kit_count(&capture, CAP_FREE), 600);
        assert_int_equal(kit_count(&capture, CAP_SYNC), 600);
        assert_int_equal(kit_count(&capture, CAP_BUDGET), i == 2 ? 0 : CAP_BUDGET_PARTS);
        for (size_t n = 0; n < kit_count(&capture, CAP_BUDGET); n++) {
            const struct cap_budget *b = kit_nth(&capture, CAP_BUDGET, n);
            taken += b->taken;
            skipped += b->skipped;
        }
        uint64_t stacks = 0;
        for (size_t n = 0; n < capture.count; n++)
            if (capture.records[n].head->type == CAP_LAUNCH)
                stacks += ((const struct cap_launch *)(const void *)capture.records[n].head)->stack != 0;
        if (i == 1)
            assert_true(taken > 0 && skipped > 0 && kit_note(&capture, "budget"));
        else
            assert_int_equal(skipped, 0);
        if (i != 1)
            assert_true(stacks == 0 || stacks == 600000); /* 0: no libunwind here */
        kit_free(&capture);
        kit_remove(&run);
    }
}

/* Looks that take long on the device are left out beyond their share of the time, and counted; the budget pays for
 * their time as well. Those that take nothing, or whose share is not limited, are all made. */
static void test_looks_keep_to_their_share(void **state)
{
    static const struct {
        const char *setting, *elapsed;
        bool paced, left_out;
    } cases[] = {
        {"OPSDEBUG_LOOK_SHARE=1%", "STUB_ELAPSED_MS=10", true, true},
        {"OPSDEBUG_LOOK_SHARE=1%", "STUB_ELAPSED_MS=0", true, false},
        {"OPSDEBUG_LOOK_SHARE=off", "STUB_ELAPSED_MS=10", false, false},
        {"OPSDEBUG_PRESET=deep", "STUB_ELAPSED_MS=10", false, false},
        {"OPSDEBUG_CHECK=launch", "STUB_ELAPSED_MS=10", true, false},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        const char *const environment[] = {cases[i].setting,       cases[i].elapsed,        "STUB_TAKES_CHECKS=1",
                                           "OPSDEBUG_BUDGET=100%", "OPSDEBUG_QUARANTINE=0", NULL};
        struct kit_run run;
        struct kit_capture capture;
        kit_run(&run, "dlsym", "work", "800", environment);
        assert_true(kit_ok(&run));
        assert_true(kit_read(&run, "out", &capture));
        assert_int_equal(kit_count(&capture, CAP_PACE), cases[i].paced ? CAP_PACE_KINDS : 0);
        if (cases[i].paced) {
            const struct cap_pace *p = kit_nth(&capture, CAP_PACE, CAP_PACE_REDZONES);
            assert_int_equal(p->kind, CAP_PACE_REDZONES);
            assert_true(p->taken > 0 && (p->skipped > 0) == cases[i].left_out);
            if (cases[i].left_out) /* 1 % of 5 s and of a short run: 50 ms and a little */
                assert_true(p->taken >= 5 && p->taken < 20 && p->device_ns == p->taken * 10000000);
        }
        if (strcmp(cases[i].elapsed, "STUB_ELAPSED_MS=10") == 0)
            assert_true(capture.header.budget_device_tsc > 50000000); /* five looks, at 1 GHz or more */
        kit_free(&capture);
        kit_remove(&run);
    }
}

/* Damage is not lost with the looks that are left out: the last one finds it. */
static void test_overrun_is_found_whatever_the_share(void **state)
{
    const char *const environment[] = {ON_SOFTGPU, "OPSDEBUG_LOOK_SHARE=0.000001%", "OPSDEBUG_CHECK_BATCH=1", NULL};
    struct kit_run run;
    struct kit_capture capture;
    if (!softgpu_is_there())
        return;
    kit_run(&run, "dlsym", "overrun", "7", environment);
    assert_true(kit_ok(&run));
    assert_true(kit_read(&run, "out", &capture));
    assert_int_equal(kit_count(&capture, CAP_DAMAGE), 1);
    const struct cap_damage *d = kit_nth(&capture, CAP_DAMAGE, 0);
    const struct cap_launch *guilty = kit_nth(&capture, CAP_LAUNCH, 1);
    assert_true(d->clean_seq <= guilty->head.seq && d->seen_seq > guilty->head.seq);
    kit_free(&capture);
    kit_remove(&run);
}

/* A handle that another thread gets while the call that destroyed its first owner is still on its way back is the
 * second owner's; and a handle that the driver refuses becomes nothing. */
static void test_handles_come_again(void **state)
{
    const char *const environment[] = {"STUB_HANDLES=1", NULL};
    struct kit_run run;
    struct kit_capture capture;
    uint32_t events[2] = {0}, streams[3] = {0}, ended = 0, n = 0;
    uint64_t refused = 0;
    const struct cap_event *e;
    const struct cap_stream *s;
    kit_run(&run, "dlsym", "handles", NULL, environment);
    assert_true(kit_ok(&run));
    assert_true(kit_read(&run, "out", &capture));
    for (size_t i = 0; (e = kit_nth(&capture, CAP_EVENT, i)); i++) {
        if (e->destroyed)
            assert_int_equal(e->id, events[0]);
        else if (n < 2)
            events[n++] = e->id;
    }
    assert_int_equal(n, 2);
    const struct cap_event_op_record *op = kit_nth(&capture, CAP_EVENT_OP, 0);
    assert_int_equal(op->event, events[1]);
    n = 0;
    for (size_t i = 0; (s = kit_nth(&capture, CAP_STREAM, i)); i++) {
        if (s->kind == CAP_STREAM_CREATED && !s->destroyed && n < 3)
            streams[n++] = s->id;
        if (s->destroyed)
            ended = s->id;
        refused = n == 1 && !refused ? s->handle + 30 * sizeof(int) : refused;
        assert_int_not_equal(s->handle, refused);
    }
    assert_int_equal(n, 3);
    assert_int_equal(ended, streams[1]);
    const struct cap_set *set = kit_nth(&capture, CAP_SET, 0), *wrong = kit_nth(&capture, CAP_SET, 1);
    assert_int_equal(set->stream, streams[2]);
    assert_int_equal(wrong->stream, 0);
    kit_free(&capture);
    kit_remove(&run);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_budget),
        cmocka_unit_test(test_looks_keep_to_their_share),
        cmocka_unit_test(test_overrun_is_found_whatever_the_share),
        cmocka_unit_test(test_handles_come_again),
        cmocka_unit_test(test_overrun_seen_by_copies),
        cmocka_unit_test(test_overrun_seen_by_the_kernel),
        cmocka_unit_test(test_overrun_by_sets_and_copies),
        cmocka_unit_test(test_snapshots_and_timing_events),
        cmocka_unit_test(test_health_of_outputs),
        cmocka_unit_test(test_health_can_be_switched_off_and_told_what_is_large),
        cmocka_unit_test(test_new_memory_is_poisoned),
        cmocka_unit_test(test_no_sentinels_when_switched_off),
        cmocka_unit_test(test_redzones_are_not_seen_by_the_program),
        cmocka_unit_test(test_freed_memory_is_held_back),
        cmocka_unit_test(test_nothing_of_ours_in_a_stream_capture),
        cmocka_unit_test(test_device_error_leaves_launches_and_inputs),
        cmocka_unit_test(test_failed_launches_have_errors),
        cmocka_unit_test(test_times_of_launches),
        cmocka_unit_test(test_snapshot_filter_and_budget),
        cmocka_unit_test(test_snapshot_over_budget_is_told),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
