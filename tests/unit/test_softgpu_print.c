/* What kernels print: how much of it is kept, and when it appears. */
#include "tests/unit/softgpu_test.h"

enum { FIFO = 4096 };

static const char kernels[] = ".version 7.0\n.target sm_75\n.address_size 64\n"
                              ".extern .func (.param .b32 r) vprintf(.param .b64 f, .param .b64 a);\n"
                              ".global .align 1 .b8 form[4] = {37, 100, 10, 0};\n" /* "%d\n" */
                              ".visible .entry count(.param .u32 from, .param .u32 to) {\n"
                              "  .local .align 8 .b8 depot[8];\n"
                              "  .reg .b64 f, a;\n  .reg .b32 i, n, r;\n  .reg .pred p;\n"
                              "  ld.param.u32 i, [from];\n  ld.param.u32 n, [to];\n"
                              "  mov.u64 f, form;\n  cvta.global.u64 f, f;\n"
                              "  mov.u64 a, depot;\n  cvta.local.u64 a, a;\n"
                              "LOOP:\n  setp.ge.u32 p, i, n;\n  @p bra DONE;\n"
                              "  st.u32 [a], i;\n"
                              "  {\n  .param .b64 p0;\n  st.param.b64 [p0], f;\n"
                              "  .param .b64 p1;\n  st.param.b64 [p1], a;\n  .param .b32 rv;\n"
                              "  call.uni (rv), vprintf, (p0, p1);\n  ld.param.b32 r, [rv];\n  }\n"
                              "  add.u32 i, i, 1;\n  bra LOOP;\nDONE:\n  ret;\n}\n";
static CUfunction count;

/* stdout goes to a file between these two; the second returns what came, to be freed. */
static int terminal;
static FILE *caught;

static void catch_output(void)
{
    fflush(stdout);
    caught = tmpfile();
    assert_non_null(caught);
    terminal = dup(STDOUT_FILENO);
    dup2(fileno(caught), STDOUT_FILENO);
}

static char *caught_output(void)
{
    fflush(stdout);
    dup2(terminal, STDOUT_FILENO);
    close(terminal);
    long bytes = lseek(fileno(caught), 0, SEEK_END);
    char *text = calloc(1, (size_t)bytes + 1);
    assert_non_null(text);
    assert_int_equal(pread(fileno(caught), text, (size_t)bytes, 0), bytes);
    fclose(caught);
    return text;
}

static CUresult launch(unsigned from, unsigned to)
{
    void *params[] = {&from, &to};
    return cuLaunchKernel(count, 1, 1, 1, 1, 1, 1, 0, NULL, params, NULL);
}

static int start(void **state)
{
    CUmodule m;
    if (use_primary_context(state) || cuCtxSetLimit(CU_LIMIT_PRINTF_FIFO_SIZE, FIFO) != CUDA_SUCCESS)
        return 1;
    return cuModuleLoadData(&m, kernels) != CUDA_SUCCESS || cuModuleGetFunction(&count, m, "count") != CUDA_SUCCESS;
}

/* Numbers from..to-1, one a line, and nothing else. */
static void expect_numbers(const char *text, unsigned from, unsigned to)
{
    char *next;
    for (unsigned i = from; i < to; i++, text = next + 1) {
        assert_int_equal(strtoul(text, &next, 10), i);
        assert_int_equal(*next, '\n');
    }
    assert_string_equal(text, "");
}

/* The FIFO is circular: what is oldest gives way, in whole calls of printf. */
static void test_full_fifo_keeps_what_is_newest(void **state)
{
    enum { LAST = 100000, FIRST = LAST - FIFO / 6 }; /* five digits and a line's end */
    catch_output();
    CUresult result = launch(0, LAST);
    CUresult waited = cuCtxSynchronize();
    char *text = caught_output();
    ok(result);
    ok(waited);
    assert_true(strlen(text) <= FIFO);
    expect_numbers(text, FIRST, LAST);
    free(text);
}

static void test_what_fits_is_kept_whole(void **state)
{
    catch_output();
    CUresult result = launch(0, 900);
    CUresult waited = cuCtxSynchronize();
    char *text = caught_output();
    ok(result);
    ok(waited);
    expect_numbers(text, 0, 900);
    free(text);
}

/* Each kernel has the whole FIFO, also when nobody synchronises in between. */
static void test_kernels_do_not_overwrite_each_other(void **state)
{
    CUresult result = CUDA_SUCCESS;
    catch_output();
    for (unsigned i = 0; i < 30 && result == CUDA_SUCCESS; i++)
        result = launch(1000 + i * 600, 1000 + (i + 1) * 600);
    CUresult waited = cuCtxSynchronize();
    char *text = caught_output();
    ok(result);
    ok(waited);
    expect_numbers(text, 1000, 19000);
    free(text);
}

static void CUDA_CB say(CUstream stream, CUresult status, void *data)
{
    printf("called\n");
}

static void test_output_comes_before_a_callback(void **state)
{
    catch_output();
    CUresult result = launch(7, 9);
    CUresult added = cuStreamAddCallback(NULL, say, NULL, 0);
    CUresult waited = cuCtxSynchronize();
    char *text = caught_output();
    ok(result);
    ok(added);
    ok(waited);
    assert_string_equal(text, "7\n8\ncalled\n");
    free(text);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(test_full_fifo_keeps_what_is_newest, start, reset_context),
        cmocka_unit_test_setup_teardown(test_what_fits_is_kept_whole, start, reset_context),
        cmocka_unit_test_setup_teardown(test_kernels_do_not_overwrite_each_other, start, reset_context),
        cmocka_unit_test_setup_teardown(test_output_comes_before_a_callback, start, reset_context),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
