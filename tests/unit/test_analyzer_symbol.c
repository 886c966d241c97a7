/* Host stacks, on this very program. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <link.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "analyzer/name.h"
#include "analyzer/symbol.h"
#include "tests/unit/capture_make.h"

static uint64_t here, inside; /* `inside`: of remember() itself */
static unsigned here_line;

__attribute__((noinline)) static void note_inside(void)
{
    inside = (uint64_t)(uintptr_t)__builtin_return_address(0);
}

/* The address that a call on line `here_line` returns to. */
__attribute__((noinline)) static void remember(void)
{
    here = (uint64_t)(uintptr_t)__builtin_return_address(0);
    note_inside();
    __asm__ volatile("");
}

static inline __attribute__((always_inline)) void call_inlined(void)
{
    here_line = __LINE__ + 1;
    remember();
    __asm__ volatile("");
}

__attribute__((noinline)) static void outer(void)
{
    call_inlined();
    __asm__ volatile("");
}

/* Functions that end with a jump to the next one, which returns to whoever called them. */
static unsigned jump_line;
__attribute__((noinline)) static void jumps(void)
{
    jump_line = __LINE__ + 1;
    remember();
}

__attribute__((noinline)) static void jumps_twice(void)
{
    jumps();
}

__attribute__((noinline)) static void remember_too(void)
{
    here = (uint64_t)(uintptr_t)__builtin_return_address(0);
    __asm__ volatile("" : : : "memory");
}

static volatile int which;
__attribute__((noinline)) static void jumps_somewhere(void)
{
    if (which)
        remember();
    else
        remember_too();
}

static void (*volatile anybody)(void) = jumps;

#define CALLER(name, callee)                                                                                           \
    __attribute__((noinline)) static void name(void)                                                                   \
    {                                                                                                                  \
        callee();                                                                                                      \
        __asm__ volatile("");                                                                                          \
    }
CALLER(calls_jumps, jumps)
CALLER(calls_jumps_twice, jumps_twice)
CALLER(calls_jumps_somewhere, jumps_somewhere)
CALLER(calls_anybody, anybody)

static int first_object(struct dl_phdr_info *info, size_t size, void *object)
{
    struct cap_object *o = object;
    o->bias = info->dlpi_addr;
    for (int i = 0; i < info->dlpi_phnum; i++)
        if (info->dlpi_phdr[i].p_type == PT_LOAD && (info->dlpi_phdr[i].p_flags & PF_X)) {
            o->start = info->dlpi_addr + info->dlpi_phdr[i].p_vaddr;
            o->end = o->start + info->dlpi_phdr[i].p_memsz;
        }
    return 1;
}

struct bench {
    struct capture_make make;
    struct capture *capture;
    struct symbols *symbols;
    uint32_t stack;
};

static void bench_start_with(struct bench *b, const char *path, uint32_t build_id_bytes, const uint64_t *frames,
                             uint32_t count)
{
    struct diag diag;
    struct cap_object object = {.head.type = CAP_OBJECT, .build_id_bytes = build_id_bytes, .build_id = "another one"};
    *b = (struct bench){0};
    capture_make_start(&b->make);
    dl_iterate_phdr(first_object, &object);
    object.path = capture_make_string(&b->make, path);
    capture_make_record(&b->make, &object, sizeof object, NULL, 0);
    b->stack = capture_make_stack(&b->make, frames, count);
    assert_int_equal(capture_open(capture_make_write(&b->make), &b->capture, &diag), STATUS_OK);
    b->symbols = symbols_new(b->capture);
    assert_non_null(b->symbols);
}

static void bench_start(struct bench *b, const char *path, uint32_t build_id_bytes)
{
    outer();
    bench_start_with(b, path, build_id_bytes, &here, 1);
}

static void bench_end(struct bench *b)
{
    symbols_free(b->symbols);
    capture_close(b->capture);
    capture_make_end(&b->make);
}

static const char *own_path(char out[512])
{
    ssize_t n = readlink("/proc/self/exe", out, 511);
    assert_true(n > 0);
    out[n] = '\0';
    return out;
}

static void test_symbols_inlined_call(void **state)
{
    struct bench b;
    char path[512], expected[64], place[64];
    bench_start(&b, own_path(path), 0);
    const struct symbol_stack *s = symbols_stack(b.symbols, b.stack);
    assert_int_equal(symbols_missing(b.symbols), 0);
    assert_int_equal(s->count, 2);
    snprintf(expected, sizeof expected, "call_inlined test_analyzer_symbol.c:%u", here_line);
    assert_string_equal(s->frames[0].text, expected);
    assert_true(s->frames[0].inlined);
    assert_string_equal(s->frames[1].function, "outer");
    assert_false(s->frames[1].inlined);
    assert_int_equal(s->own, 0);
    snprintf(expected, sizeof expected, "test_analyzer_symbol.c:%u", here_line);
    assert_string_equal(symbols_place(b.symbols, b.stack, place, sizeof place), expected);
    assert_ptr_equal(symbols_stack(b.symbols, b.stack), s);
    bench_end(&b);
}

/* Without debug information: the program's place in its code, not the line of the library that it called. */
static void test_symbols_library_below(void **state)
{
    struct bench b;
    char place[64];
    struct cap_object program = {.head.type = CAP_OBJECT, .start = 0x1000, .end = 0x2000, .bias = 0x1000};
    struct cap_object library = {.head.type = CAP_OBJECT, .start = 0x3000, .end = 0x4000, .bias = 0x3000};
    const uint64_t both[] = {0x3011, 0x1022}, alone[] = {0x3011};
    struct diag diag;
    b = (struct bench){0};
    capture_make_start(&b.make);
    program.path = capture_make_string(&b.make, "/nowhere/program");
    library.path = capture_make_string(&b.make, "/nowhere/libcudart.so.13");
    capture_make_record(&b.make, &program, sizeof program, NULL, 0);
    capture_make_record(&b.make, &library, sizeof library, NULL, 0);
    b.stack = capture_make_stack(&b.make, both, 2);
    uint32_t other = capture_make_stack(&b.make, alone, 1);
    assert_int_equal(capture_open(capture_make_write(&b.make), &b.capture, &diag), STATUS_OK);
    b.symbols = symbols_new(b.capture);
    assert_string_equal(symbols_place(b.symbols, b.stack, place, sizeof place), "program+0x21");
    assert_string_equal(symbols_place(b.symbols, other, place, sizeof place), "libcudart.so.13+0x10");
    bench_end(&b);
}

/* Another build of the same program has other lines: offsets are all that can be said. */
static void test_symbols_other_build(void **state)
{
    struct bench b;
    char path[512];
    bench_start(&b, own_path(path), 11);
    const struct symbol_stack *s = symbols_stack(b.symbols, b.stack);
    assert_int_equal(symbols_missing(b.symbols), 1);
    assert_int_equal(s->count, 1);
    assert_int_equal(strncmp(s->frames[0].text, "test_analyzer_symbol+0x", 23), 0);
    assert_int_equal(s->own, 1);
    bench_end(&b);
}

static void test_symbols_file_gone(void **state)
{
    struct bench b;
    bench_start(&b, "/nowhere/libgone.so", 0);
    assert_int_equal(strncmp(symbols_stack(b.symbols, b.stack)->frames[0].text, "libgone.so+0x", 13), 0);
    assert_int_equal(symbols_stack(b.symbols, 0)->count, 0);
    assert_int_equal(symbols_stack(b.symbols, 77)->count, 0);
    bench_end(&b);
}

static void test_name_own_source(void **state)
{
    assert_true(name_own_source("/home/me/block.cu"));
    assert_true(name_own_source("block.cuh"));
    assert_false(name_own_source("/usr/local/cuda/bin/../targets/x86_64-linux/include/device_atomic_functions.hpp"));
    assert_false(name_own_source("/tmp/tmpxft_0001-6_block.cudafe1.stub.c"));
    assert_false(name_own_source("/usr/include/c++/12/bits/stl_vector.h"));
}

static void test_name_demangle(void **state)
{
    char *name = name_short("_ZN2at6native25elementwise_kernel_helperILi128ELi4EfEEvPT1_i");
    assert_non_null(strstr(name, "at::native::elementwise_kernel_helper<128, 4, float>"));
    free(name);
    name = name_short("plain_c");
    assert_string_equal(name, "plain_c");
    free(name);
    name = name_full("_Z5scalePf");
    assert_string_equal(name, "scale(float*)");
    free(name);
    name = name_short("_Znonsense");
    assert_string_equal(name, "_Znonsense");
    free(name);
    name = name_short("_ZN8__main__4axpyB2v1B4cw51E5ArrayIfE");
    assert_string_equal(name, "__main__::axpy");
    free(name);
}

static void test_name_shell(void **state)
{
    static const struct {
        const char *words, *expected;
    } cases[] = {
        {"\0", ""},
        {"/tmp/a-b_1.x\0", "/tmp/a-b_1.x"},
        {"a b\0c\0", "'a b' c"},
        {"it's\0$HOME\0", "'it'\\''s' '$HOME'"},
        {"k<float, 4>(int)\0*\0", "'k<float, 4>(int)' '*'"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        char *text = name_shell(cases[i].words);
        assert_string_equal(text, cases[i].expected);
        free(text);
    }
}

#if defined __OPTIMIZE__ && !defined __SANITIZE_ADDRESS__ && !defined __SANITIZE_THREAD__
enum { JUMPS = 1 };
#else
enum { JUMPS = 0 }; /* they are calls */
#endif

/* The stack of a call from `function`, with remember() as its innermost frame, or without; the functions that it must
 * have, innermost first; whether the line of the first jump is known. */
static void check_stack(void (*function)(void), bool with_innermost, size_t count, const char *const *functions,
                        bool line)
{
    struct bench b;
    char path[512];
    function();
    const uint64_t frames[] = {inside, here};
    bench_start_with(&b, own_path(path), 0, with_innermost ? frames : &here, with_innermost ? 2 : 1);
    const struct symbol_stack *s = symbols_stack(b.symbols, b.stack);
    assert_int_equal(s->count, count);
    for (size_t i = 0; i < count; i++)
        assert_string_equal(s->frames[i].function, functions[i]);
    if (line)
        assert_int_equal(s->frames[with_innermost].line, jump_line);
    else if (count > 1)
        assert_false(s->frames[0].own);
    bench_end(&b);
}

static void test_symbols_tail_calls(void **state)
{
    if (!JUMPS)
        skip();
    check_stack(calls_jumps, true, 3, (const char *const[]){"remember", "jumps", "calls_jumps"}, true);
    check_stack(calls_jumps_twice, true, 4,
                (const char *const[]){"remember", "jumps", "jumps_twice", "calls_jumps_twice"}, true);
    /* Which of its two jumps it was is not known. */
    check_stack(calls_jumps_somewhere, false, 2, (const char *const[]){"jumps_somewhere", "calls_jumps_somewhere"},
                false);
    /* remember() does not jump on: it is not what was called. */
    check_stack(calls_jumps, false, 1, (const char *const[]){"calls_jumps"}, false);
}

/* A call through a pointer does not say whom it calls. */
static void test_symbols_tail_call_of_anybody(void **state)
{
    struct bench b;
    char path[512];
    if (!JUMPS)
        skip();
    calls_anybody();
    const uint64_t frames[] = {inside, here};
    bench_start_with(&b, own_path(path), 0, frames, 2);
    const struct symbol_stack *s = symbols_stack(b.symbols, b.stack);
    assert_int_equal(s->count, 2);
    assert_string_equal(s->frames[1].function, "calls_anybody");
    bench_end(&b);
}

extern void _start(void);

static void test_symbols_outermost_frame(void **state)
{
    struct bench b;
    char path[512];
    outer();
    const uint64_t frames[] = {here, (uint64_t)(uintptr_t)_start + 8};
    bench_start_with(&b, own_path(path), 0, frames, 2);
    const struct symbol_stack *s = symbols_stack(b.symbols, b.stack);
    assert_int_equal(s->count, 3);
    assert_string_equal(s->frames[1].function, "outer");
    assert_false(s->frames[1].foreign);
    assert_string_equal(s->frames[2].function, "_start");
    assert_true(s->frames[2].foreign);
    bench_end(&b);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_symbols_inlined_call),
        cmocka_unit_test(test_symbols_tail_calls),
        cmocka_unit_test(test_symbols_tail_call_of_anybody),
        cmocka_unit_test(test_symbols_outermost_frame),
        cmocka_unit_test(test_symbols_other_build),
        cmocka_unit_test(test_symbols_library_below),
        cmocka_unit_test(test_symbols_file_gone),
        cmocka_unit_test(test_name_own_source),
        cmocka_unit_test(test_name_demangle),
        cmocka_unit_test(test_name_shell),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
