/* Kernels that do not end when they are executed again: those that wait for somebody else are given up early, those
 * that only look like it are not. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <string.h>

#include "analyzer/session.h"
#include "analyzer/verify.h"
#include "tests/unit/capture_make.h"

/* Where launches get so many instructions, a kernel that may wait is looked at after a 256th part. */
enum { OUT = 0x700000, FLAG = 0x710000, WORDS = 64, LIMIT = 100000000, FIRST = LIMIT / 256 };

#define KERNEL(body)                                                                                                   \
    ".version 7.0\n.target sm_75\n.address_size 64\n.file 1 \"/src/wait.cu\"\n"                                        \
    ".visible .entry k(.param .u64 out, .param .u64 flag, .param .u32 n)\n{\n"                                         \
    ".reg .pred %p<4>;\n.reg .b32 %r<10>;\n.reg .b64 %rd<6>;\n"                                                        \
    "ld.param.u64 %rd1, [out];\nld.param.u64 %rd2, [flag];\nld.param.u32 %r1, [n];\n"                                  \
    "mov.u32 %r2, %ctaid.x;\nmov.u32 %r3, %tid.x;\nmov.u32 %r9, 7;\n.loc 1 5 3\n" body "\nret;\n}\n"
#define LOAD "ld.volatile.global.u32 %r4, [%rd2];\n"
#define DONE "st.global.u32 [%rd1], %r9;\n"

struct bench {
    struct capture_make make;
    struct session session;
    uint32_t out, flag, kernel, config;
};

static void bench_start(struct bench *b, const char *ptx, uint32_t grid, uint32_t block)
{
    *b = (struct bench){0};
    capture_make_start(&b->make);
    uint32_t module = capture_make_module(&b->make, ptx);
    b->kernel = capture_make_kernel(&b->make, module, "k", (const uint32_t[]){8, 8, 4, 0});
    b->config = capture_make_config(&b->make, grid, block);
    b->out = capture_make_alloc(&b->make, OUT, 4 * WORDS);
    b->flag = capture_make_alloc(&b->make, FLAG, 4 * WORDS);
    capture_make_copy_in(&b->make, OUT, 4 * WORDS);
    capture_make_copy_in(&b->make, FLAG, 4 * WORDS);
}

/* `flag`: first word of it afterwards. */
static void bench_launch(struct bench *b, uint32_t n, uint32_t flag)
{
    const struct {
        uint64_t out, flag;
        uint32_t n, zero;
    } params = {OUT, FLAG, n, 0};
    const uint32_t before[WORDS] = {0};
    uint32_t after[WORDS] = {7}, flags[WORDS] = {flag};
    uint64_t launch = capture_make_launch(&b->make, b->kernel, b->config, &params, 20);
    capture_make_snapshot(&b->make, launch, b->out, CAP_BEFORE, before, sizeof before);
    capture_make_snapshot(&b->make, launch, b->flag, CAP_BEFORE, before, sizeof before);
    capture_make_snapshot(&b->make, launch, b->out, CAP_AFTER, after, sizeof after);
    capture_make_snapshot(&b->make, launch, b->flag, CAP_AFTER, flags, sizeof flags);
}

static void bench_verify(struct bench *b, uint64_t limit)
{
    struct diag diag = {.text = ""};
    const struct verify_options options = {.workers = 1, .instruction_limit = limit};
    capture_make_finish(&b->make);
    if (session_open(capture_make_write(&b->make), &b->session, &diag))
        fail_msg("%s", diag.text);
    assert_int_equal(b->session.capture->rejected.count, 0);
    assert_int_equal(verify_capture(b->session.model, NULL, &options, &b->session.judgements, &diag), STATUS_OK);
    session_classify(&b->session);
    assert_false(findings_serious(&b->session.findings));
}

static void bench_end(struct bench *b)
{
    session_close(&b->session);
    capture_make_end(&b->make);
}

/* One launch; `reason` NULL: it is judged. */
static void one(const char *ptx, uint32_t grid, uint32_t block, uint32_t n, uint32_t flag, const char *reason,
                const char *detail)
{
    struct bench b;
    bench_start(&b, ptx, grid, block);
    bench_launch(&b, n, flag);
    bench_verify(&b, LIMIT);
    const struct judgement *j = judgements_find(&b.session.judgements, 1);
    assert_non_null(j);
    if (reason ? !j->reason || strcmp(j->reason, reason) != 0 : j->verdict != JUDGEMENT_CHECKED)
        fail_msg("%s: %s", j->reason, j->detail);
    if (reason && !strstr(j->detail, detail))
        fail_msg("%s", j->detail);
    if (!reason)
        assert_true(j->instructions > FIRST || detail);
    bench_end(&b);
}

static void test_waits_for_a_flag(void **state)
{
    one(KERNEL("W: " LOAD "setp.eq.u32 %p1, %r4, 0;\n@%p1 bra W;\n" DONE), 1, 8, 0, 0, "waits", "wait.cu:5");
    one(KERNEL("W: " LOAD "setp.eq.u32 %p1, %r4, 0;\n@%p1 bra W;\n" DONE), 3, 2, 0, 0, "waits", "wait.cu:5");
}

/* The others are at the barrier already, and stay there. */
static void test_waits_one_thread_for_all(void **state)
{
    one(KERNEL("setp.ne.u32 %p2, %r3, 0;\n@%p2 bra ALL;\nW: " LOAD "setp.eq.u32 %p1, %r4, 0;\nmembar.gl;\n@%p1 bra W;\n"
               "ALL: bar.sync 0;\n" DONE),
        1, 34, 0, 0, "waits", "wait.cu:5");
}

/* An atomic that changes nothing looks at the word, too. */
static void test_waits_by_atomics(void **state)
{
    one(KERNEL("W: atom.global.or.b32 %r4, [%rd2], 0;\nsetp.eq.u32 %p1, %r4, 0;\n@%p1 bra W;\n" DONE), 1, 2, 0, 0,
        "waits", "wait.cu:5");
}

/* A later block does what the first one waits for. */
static void test_waits_for_another_block(void **state)
{
    one(KERNEL("setp.ne.u32 %p2, %r2, 0;\n@%p2 bra SET;\nW: " LOAD "setp.eq.u32 %p1, %r4, 0;\n@%p1 bra W;\n" DONE
               "bra END;\nSET: st.volatile.global.u32 [%rd2], 1;\nEND:"),
        2, 1, 0, 1, NULL, NULL);
}

/* It counts on, in memory, by atomics or stores, for longer than the first look. */
static void test_waits_for_nobody(void **state)
{
    one(KERNEL("W: atom.global.add.u32 %r4, [%rd2], 1;\nsetp.lt.u32 %p1, %r4, %r1;\n@%p1 bra W;\n" DONE), 1, 1, 200000,
        200001, NULL, NULL);
    one(KERNEL("W: " LOAD
               "add.u32 %r4, %r4, 1;\nst.global.u32 [%rd2], %r4;\nsetp.lt.u32 %p1, %r4, %r1;\n@%p1 bra W;\n" DONE),
        1, 1, 200000, 200000, NULL, NULL);
}

/* So short a wait that nobody asks. */
static void test_waits_shortly(void **state)
{
    one(KERNEL("mov.u32 %r5, 0;\nW: " LOAD "add.u32 %r5, %r5, 1;\nsetp.lt.u32 %p1, %r5, %r1;\n@%p1 bra W;\n" DONE), 1,
        32, 100, 0, NULL, "short");
}

/* What has used up all of the budget before gets less, unless it is smaller than what did. */
static void test_budget_of_a_kernel_that_did_not_end(void **state)
{
    struct bench b;
    bench_start(&b, KERNEL("mov.u32 %r5, 0;\nW: add.u32 %r5, %r5, 1;\nsetp.lt.u32 %p1, %r5, %r1;\n@%p1 bra W;\n" DONE),
                1, 4);
    bench_launch(&b, 100, 0);
    bench_launch(&b, UINT32_MAX, 0);
    bench_launch(&b, 100, 0);
    bench_launch(&b, UINT32_MAX, 0);
    b.config = capture_make_config(&b.make, 1, 2);
    bench_launch(&b, 4000, 0);
    bench_launch(&b, 400000, 0);
    bench_verify(&b, 320000);
    const struct judgements *js = &b.session.judgements;
    static const bool ends[] = {true, false, true, false, true, false};
    for (size_t i = 0; i < sizeof ends / sizeof *ends; i++)
        if ((judgements_find(js, i + 1)->verdict == JUDGEMENT_CHECKED) != ends[i])
            fail_msg("launch %zu: %s", i + 1, judgements_find(js, i + 1)->detail);
    assert_string_equal(judgements_find(js, 2)->reason, "budget");
    assert_non_null(strstr(judgements_find(js, 2)->detail, "within 0.32 million"));
    assert_non_null(strstr(judgements_find(js, 4)->detail, "within 0.02 million"));
    assert_non_null(strstr(judgements_find(js, 6)->detail, "within 0.32 million"));
    bench_end(&b);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_waits_for_a_flag),
        cmocka_unit_test(test_waits_one_thread_for_all),
        cmocka_unit_test(test_waits_by_atomics),
        cmocka_unit_test(test_waits_for_another_block),
        cmocka_unit_test(test_waits_for_nobody),
        cmocka_unit_test(test_waits_shortly),
        cmocka_unit_test(test_budget_of_a_kernel_that_did_not_end),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
