/* Every door leads to the wrappers, and none of them changes what a program sees. Against tests/stub. */
#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>
#include <cmocka.h>

#include "tests/unit/shim_kit.h"

/* What the action `work` of the probe leaves, by whatever route it got its functions. */
static void check_work(const char *route, const char *const *environment)
{
    struct kit_run run;
    struct kit_capture capture;
    kit_run(&run, route, "work", "3", environment);
    assert_true(kit_ok(&run));
    assert_true(kit_read(&run, "out", &capture));
    assert_int_equal(capture.header.magic, CAP_MAGIC);
    assert_int_equal(capture.header.state, CAP_ENDED);
    assert_int_equal(kit_count(&capture, CAP_LAUNCH), 3);
    assert_int_equal(kit_count(&capture, CAP_ALLOC), 1);
    assert_int_equal(kit_count(&capture, CAP_FREE), 1);
    assert_int_equal(kit_count(&capture, CAP_COPY), 2);
    assert_int_equal(kit_count(&capture, CAP_ERROR), 0);
    assert_int_equal(kit_count(&capture, CAP_END), 1);
    assert_int_equal(kit_calls(&capture, "cuLaunchKernel"), 3);
    assert_int_equal(kit_calls(&capture, "cuInit"), 1);
    const struct cap_alloc *a = kit_nth(&capture, CAP_ALLOC, 0);
    assert_int_equal(a->bytes, 1000);
    const struct cap_launch *l = kit_nth(&capture, CAP_LAUNCH, 2);
    assert_int_equal(l->outcome, CAP_LAUNCH_OK);
    assert_int_equal(l->param_bytes, 8);
    assert_memory_equal(l + 1, &a->address, 8);
    kit_free(&capture);
    kit_remove(&run);
}

static void test_door_direct(void **state)
{
    check_work("direct", NULL);
}

static void test_door_dlsym(void **state)
{
    check_work("dlsym", NULL);
}

static void test_door_proc_address(void **state)
{
    check_work("proc", NULL);
}

static void test_door_proc_address_other_pointers(void **state)
{
    const char *const environment[] = {"STUB_OTHER_POINTERS=1", NULL};
    check_work("proc", environment);
}

static void test_door_driver_without_v2(void **state)
{
    const char *const environment[] = {"LD_LIBRARY_PATH=" KIT_BUILD "/stub/old", NULL};
    check_work("proc", environment);
}

static void test_door_init_looks_itself_up(void **state)
{
    const char *const environment[] = {"STUB_REENTER=1", NULL};
    check_work("direct", environment);
    check_work("dlsym", environment);
}

static void test_door_newer_version_passes_through(void **state)
{
    const char *const environment[] = {"STUB_NEWER=1", NULL};
    struct kit_run run;
    struct kit_capture capture;
    kit_run(&run, "dlsym", "newer", NULL, environment);
    assert_true(kit_ok(&run));
    assert_true(kit_read(&run, "out", &capture));
    assert_true(kit_note(&capture, "newer version of cuMemAlloc"));
    assert_int_equal(kit_calls(&capture, "cuMemcpyHtoD_v2_ptds"), 1);
    const struct cap_copy *copy = kit_nth(&capture, CAP_COPY, 0);
    const struct cap_stream *stream = kit_nth(&capture, CAP_STREAM, 0);
    assert_non_null(copy);
    assert_non_null(stream);
    assert_int_equal(copy->stream, stream->id);
    assert_int_equal(stream->kind, CAP_STREAM_PER_THREAD);
    kit_free(&capture);
    kit_remove(&run);
}

static void test_door_program_without_cuda(void **state)
{
    struct kit_run run;
    struct kit_capture capture;
    kit_run(&run, "none", "plain", NULL, NULL);
    assert_true(kit_ok(&run));
    assert_false(kit_read(&run, "out", &capture));
    char path[512];
    snprintf(path, sizeof path, "%s/out", run.directory);
    assert_int_not_equal(access(path, F_OK), 0);
    kit_remove(&run);
}

static void test_door_scope_of_the_program(void **state)
{
    struct kit_run run;
    kit_run(&run, "dlsym", "scope", "aside", NULL);
    assert_true(kit_ok(&run));
    kit_remove(&run);
    kit_run(&run, "direct", "scope", "linked", NULL);
    assert_true(kit_ok(&run));
    kit_remove(&run);
}

static void test_door_namesake(void **state)
{
    struct kit_run run;
    kit_run(&run, "none", "namesake", KIT_BUILD "/stub/namesake.so", NULL);
    assert_true(kit_ok(&run));
    kit_remove(&run);
}

static int interposer_count(const char *path)
{
    int count = -1;
    FILE *f = fopen(path, "r");
    if (f) {
        if (fscanf(f, "%d", &count) != 1)
            count = -1;
        fclose(f);
    }
    return count;
}

/* Beside a second tool of the same kind, in both orders and by every route: all works, and we see the calls. */
static void test_door_second_interposer(void **state)
{
    static const char *const orders[] = {
        "LD_PRELOAD=" KIT_SANITIZER_COLON KIT_BUILD "/libopsdebug.so:" KIT_BUILD "/stub/interposer.so",
        "LD_PRELOAD=" KIT_SANITIZER_COLON KIT_BUILD "/stub/interposer.so:" KIT_BUILD "/libopsdebug.so",
    };
    static const char *const routes[] = {"direct", "dlsym", "proc"};
    for (int order = 0; order < 2; order++)
        for (int route = 0; route < 3; route++) {
            char out[64];
            snprintf(out, sizeof out, "INTERPOSER_OUT=/tmp/interposer-%d", (int)getpid());
            const char *const environment[] = {orders[order], out, NULL};
            struct kit_run run;
            struct kit_capture capture;
            kit_run(&run, routes[route], "work", "3", environment);
            assert_true(kit_ok(&run));
            assert_true(kit_read(&run, "out", &capture));
            assert_int_equal(kit_count(&capture, CAP_ALLOC), 1);
            assert_int_equal(kit_count(&capture, CAP_LAUNCH), 3);
            assert_in_range(interposer_count(strchr(out, '=') + 1), 0, 3);
            unlink(strchr(out, '=') + 1);
            kit_free(&capture);
            kit_remove(&run);
        }
}

static void test_door_garbage_arguments(void **state)
{
    static const char *const presets[] = {"OPSDEBUG_PRESET=check", "OPSDEBUG_PRESET=deep"};
    for (int i = 0; i < 2; i++) {
        const char *const environment[] = {presets[i], NULL};
        struct kit_run run;
        struct kit_capture capture;
        kit_run(&run, "direct", "garbage", NULL, environment);
        assert_true(kit_ok(&run));
        assert_true(kit_read(&run, "out", &capture));
        assert_in_range(kit_count(&capture, CAP_ERROR), 7, 8);
        kit_free(&capture);
        kit_remove(&run);
    }
}

static const char *const hooked[] = {
#define HOOK(symbol, name, since, kind) #symbol,
#define RUNTIME_HOOK(symbol)            #symbol,
#include "shim/hooks.def"
#undef HOOK
#undef RUNTIME_HOOK
#define LIBRARY(symbol, library, count, prototype, arguments, parameters, values) #symbol,
#include "shim/libraries.inc"
#undef LIBRARY
    "InitializeInjectionNvtx2",
    "InitializeInjectionNvtx2_fnptr", /* see nvtx.c */
    "InitializeInjectionNvtxExtension",
    "InitializeInjectionNvtxExtension_fnptr",
    "opsdebug_api",
    "dlsym",
    "dlvsym",
    "dlclose",
};

enum {
    runtime_hooks = 0
#define HOOK(symbol, name, since, kind)
#define RUNTIME_HOOK(symbol) +1
#include "shim/hooks.def"
#undef HOOK
#undef RUNTIME_HOOK
};

enum {
    versioned_library_hooks = 0
#define COUNTED_CUBLAS   +1
#define COUNTED_CUBLASLT +1
#define COUNTED_NCCL
#define LIBRARY(symbol, library, count, prototype, arguments, parameters, values) COUNTED_##library
#include "shim/libraries.inc"
#undef LIBRARY
};

static bool is_hooked(const char *symbol)
{
    for (size_t i = 0; i < sizeof hooked / sizeof *hooked; i++)
        if (strcmp(hooked[i], symbol) == 0)
            return true;
    return false;
}

static void test_exports_are_the_hooks(void **state)
{
    char line[512], symbol[256];
    size_t exports = 0;
    const char *const command[] = {"nm", "-D", "--defined-only", (KIT_BUILD "/libopsdebug.so"), NULL};
    FILE *nm = kit_command(command);
    assert_non_null(nm);
    while (fgets(line, sizeof line, nm)) {
        char type;
        if (sscanf(line, "%*x %c %255[^@\n]", &type, symbol) != 2 || type == 'A' ||
            strncmp(symbol, "__odr_asan.", 11) == 0) /* AddressSanitizer's, of the exported pointer */
            continue;
        if (!is_hooked(symbol))
            fprintf(stderr, "# exported, but no hook: %s\n", symbol);
        assert_true(is_hooked(symbol));
        exports++;
    }
    fclose(nm);
    assert_int_equal(exports, sizeof hooked / sizeof *hooked + 3 + 3 * runtime_hooks + 3 * versioned_library_hooks);
    /* Those of libc in two versions each; those of cudart and cuBLAS in three more. */
}

/* Every child of the program loads the shim as well: what it needs must be everywhere. */
static void test_needs_libc_only(void **state)
{
    char line[512];
    const char *const command[] = {"readelf", "-d", (KIT_BUILD "/libopsdebug.so"), NULL};
    FILE *readelf = kit_command(command);
    assert_non_null(readelf);
    while (fgets(line, sizeof line, readelf))
        if (strstr(line, "(NEEDED)") && !strstr(line, "san.so")) /* a sanitizer build needs its run time */
            assert_non_null(strstr(line, "[libc.so.6]"));
    fclose(readelf);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_door_direct),
        cmocka_unit_test(test_door_dlsym),
        cmocka_unit_test(test_door_proc_address),
        cmocka_unit_test(test_door_proc_address_other_pointers),
        cmocka_unit_test(test_door_driver_without_v2),
        cmocka_unit_test(test_door_init_looks_itself_up),
        cmocka_unit_test(test_door_newer_version_passes_through),
        cmocka_unit_test(test_door_program_without_cuda),
        cmocka_unit_test(test_door_scope_of_the_program),
        cmocka_unit_test(test_door_namesake),
        cmocka_unit_test(test_door_second_interposer),
        cmocka_unit_test(test_door_garbage_arguments),
        cmocka_unit_test(test_exports_are_the_hooks),
        cmocka_unit_test(test_needs_libc_only),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
