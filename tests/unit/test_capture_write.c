/* The capture is whole whatever happens to its process, and the process does not suffer from its capture. Against
 * tests/stub. */
#include <dirent.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>
#include <cmocka.h>

#include "tests/unit/shim_kit.h"

static void test_capture_files_are_private(void **state)
{
    struct kit_run run;
    struct stat facts;
    char path[512];
    kit_run(&run, "direct", "work", "3", NULL);
    assert_true(kit_ok(&run));
    snprintf(path, sizeof path, "%s/out", run.directory);
    assert_int_equal(stat(path, &facts), 0);
    assert_int_equal(facts.st_mode & 0777, 0700);
    snprintf(path, sizeof path, "%s/out/capture.bin", run.directory);
    assert_int_equal(stat(path, &facts), 0);
    assert_int_equal(facts.st_mode & 0777, 0600);
    kit_remove(&run);
}

static void test_capture_definitions_precede_uses(void **state)
{
    struct kit_run run;
    struct kit_capture capture;
    kit_run(&run, "direct", "work", "3", NULL);
    assert_true(kit_read(&run, "out", &capture));
    uint32_t strings = 0, stacks = 0, configs = 0, kernels = 0;
    uint64_t before = 0;
    for (size_t i = 0; i < capture.count; i++) {
        const struct cap_head *head = capture.records[i].head;
        assert_true(head->seq > before);
        before = head->seq;
        if (head->type == CAP_STRING)
            assert_int_equal(((const struct cap_string *)head)->id, ++strings);
        else if (head->type == CAP_STACK)
            assert_int_equal(((const struct cap_stack *)head)->id, ++stacks);
        else if (head->type == CAP_CONFIG)
            configs++;
        else if (head->type == CAP_KERNEL)
            kernels++;
    }
    assert_int_equal(configs, 1);
    assert_true(kernels >= 2);
    assert_true(stacks > 0);
    assert_int_equal(capture.header.dropped_records, 0);
    assert_true(capture.header.next_seq > before);
    assert_true(capture.header.wrapped_calls >= 12);
    assert_true(capture.header.own_tsc > 0);
    kit_free(&capture);
    kit_remove(&run);
}

static void test_capture_snapshots_have_blobs(void **state)
{
    struct kit_run run;
    struct kit_capture capture;
    kit_run(&run, "direct", "work", "5", NULL);
    assert_true(kit_read(&run, "out", &capture));
    assert_int_equal(kit_count(&capture, CAP_SNAPSHOT), 4); /* first=2, before and after */
    const struct cap_snapshot *s;
    for (size_t i = 0; (s = kit_nth(&capture, CAP_SNAPSHOT, i)); i++) {
        assert_int_equal(s->bytes, 1000);
        assert_true(kit_blob(&run, "out", s->hash_low, s->hash_high));
    }
    const struct cap_module *m = kit_nth(&capture, CAP_MODULE, 0);
    assert_int_equal(m->kind, CAP_MODULE_PTX);
    assert_true(kit_blob(&run, "out", m->hash_low, m->hash_high));
    const struct cap_launch *first = kit_nth(&capture, CAP_LAUNCH, 0), *last = kit_nth(&capture, CAP_LAUNCH, 4);
    assert_int_equal(first->flags, CAP_LAUNCH_INPUTS | CAP_LAUNCH_OUTPUTS);
    assert_int_equal(last->flags, 0);
    kit_free(&capture);
    kit_remove(&run);
}

/* The records before a sudden end are there, and nothing but whole records. */
static void check_sudden(const char *action, int signal, size_t launches_at_least)
{
    struct kit_run run;
    struct kit_capture capture;
    kit_run(&run, "direct", action, NULL, NULL);
    if (signal)
        assert_true(WIFSIGNALED(run.status) && WTERMSIG(run.status) == signal);
    else
        assert_true(kit_ok(&run));
    assert_true(kit_read(&run, "out", &capture));
    assert_int_equal(capture.header.state, CAP_RUNNING);
    assert_true(kit_count(&capture, CAP_LAUNCH) >= launches_at_least);
    assert_int_equal(kit_count(&capture, CAP_END), 0);
    kit_free(&capture);
    kit_remove(&run);
}

static void test_capture_survives_kill(void **state)
{
    check_sudden("kill", SIGKILL, 150);
}

static void test_capture_survives_abort(void **state)
{
    check_sudden("abort", SIGABRT, 5);
}

static void test_capture_survives_quick_exit(void **state)
{
    check_sudden("quick", 0, 5);
}

static void test_capture_no_space_at_start(void **state)
{
    struct kit_run run;
    struct kit_capture capture;
    kit_run(&run, "direct", "limit", "1000", NULL);
    assert_true(kit_ok(&run));
    assert_false(kit_read(&run, "out", &capture));
    kit_remove(&run);
}

static void test_capture_no_space_for_records(void **state)
{
    struct kit_run run;
    struct kit_capture capture;
    kit_run(&run, "direct", "limit", "65536", NULL);
    assert_true(kit_ok(&run));
    assert_true(kit_read(&run, "out", &capture));
    assert_int_equal(capture.header.state, CAP_STEPPED_ASIDE);
    assert_true(strlen(capture.header.reason) > 0);
    kit_free(&capture);
    kit_remove(&run);
}

static void test_capture_no_space_later(void **state)
{
    struct kit_run run;
    struct kit_capture capture;
    kit_run(&run, "direct", "limit", "1000000", NULL); /* the first segment fits, the second does not */
    assert_true(kit_ok(&run));
    assert_true(kit_read(&run, "out", &capture));
    assert_int_equal(capture.header.state, CAP_STEPPED_ASIDE);
    assert_true(strstr(capture.header.reason, "no space") != NULL);
    assert_true(kit_count(&capture, CAP_LAUNCH) > 100);
    assert_true(capture.header.dropped_records > 0);
    kit_free(&capture);
    kit_remove(&run);
}

static void test_capture_directory_cannot_be_made(void **state)
{
    const char *const environment[] = {"OPSDEBUG_OUT=/proc/no/such/place", NULL};
    struct kit_run run;
    kit_run(&run, "direct", "work", "3", environment);
    assert_true(kit_ok(&run));
    kit_remove(&run);
}

static unsigned process_folders(const struct kit_run *run, char *name, size_t bytes)
{
    char path[512];
    unsigned count = 0;
    snprintf(path, sizeof path, "%s/out", run->directory);
    DIR *folder = opendir(path);
    const struct dirent *entry;
    while (folder && (entry = readdir(folder)))
        if (strncmp(entry->d_name, "process-", 8) == 0) {
            snprintf(name, bytes, "out/%s", entry->d_name);
            count++;
        }
    if (folder)
        closedir(folder);
    return count;
}

static void test_capture_child_of_recording_parent_is_passive(void **state)
{
    static const char *const actions[] = {"fork-after", "clone-after"};
    for (int i = 0; i < 2; i++) {
        struct kit_run run;
        struct kit_capture capture;
        char name[300];
        /* A sanitizer's leak check cannot stop the threads of a raw clone. */
        const char *const environment[] = {"ASAN_OPTIONS=detect_leaks=0", NULL};
        kit_run(&run, "direct", actions[i], NULL, environment);
        assert_true(kit_ok(&run));
        assert_true(kit_read(&run, "out", &capture));
        assert_int_equal(kit_count(&capture, CAP_LAUNCH), 6);
        assert_int_equal(kit_count(&capture, CAP_ALLOC), 2);
        assert_int_equal(kit_count(&capture, CAP_END), 1);
        assert_int_equal(capture.header.state, CAP_ENDED);
        assert_int_equal(process_folders(&run, name, sizeof name), 0);
        kit_free(&capture);
        kit_remove(&run);
    }
}

static void test_capture_two_processes_share_a_folder(void **state)
{
    struct kit_run run;
    struct kit_capture capture;
    char name[300];
    kit_run(&run, "direct", "fork-before", NULL, NULL);
    assert_true(kit_ok(&run));
    assert_true(kit_read(&run, "out", &capture)); /* the child was first */
    assert_int_equal(kit_count(&capture, CAP_LAUNCH), 2);
    uint32_t parent = capture.header.parent_pid;
    kit_free(&capture);
    assert_int_equal(process_folders(&run, name, sizeof name), 1);
    assert_true(kit_read(&run, name, &capture));
    assert_int_equal(kit_count(&capture, CAP_LAUNCH), 3);
    assert_int_equal(capture.header.pid, parent);
    kit_free(&capture);
    kit_remove(&run);
}

static void test_capture_exec_starts_another(void **state)
{
    struct kit_run run;
    struct kit_capture capture;
    char name[300];
    kit_run(&run, "direct", "exec", NULL, NULL);
    assert_true(kit_ok(&run));
    assert_true(kit_read(&run, "out", &capture));
    assert_int_equal(capture.header.state, CAP_RUNNING);
    assert_int_equal(kit_count(&capture, CAP_LAUNCH), 3);
    kit_free(&capture);
    assert_int_equal(process_folders(&run, name, sizeof name), 1);
    assert_true(kit_read(&run, name, &capture));
    assert_int_equal(capture.header.state, CAP_ENDED);
    kit_free(&capture);
    kit_remove(&run);
}

static void test_capture_many_threads(void **state)
{
    static const char *const presets[] = {"OPSDEBUG_PRESET=watch", "OPSDEBUG_PRESET=check", "OPSDEBUG_PRESET=deep"};
    for (int i = 0; i < 3; i++) {
        const char *const environment[] = {presets[i], NULL};
        struct kit_run run;
        struct kit_capture capture;
        kit_run(&run, "direct", "threads", "20", environment);
        assert_true(kit_ok(&run));
        assert_true(kit_read(&run, "out", &capture));
        assert_int_equal(kit_count(&capture, CAP_LAUNCH), 16 * 20 * 2);
        assert_int_equal(kit_count(&capture, CAP_ALLOC), 16 * 20);
        assert_int_equal(kit_count(&capture, CAP_FREE), 16 * 20);
        assert_int_equal(kit_count(&capture, CAP_DAMAGE), 0);
        assert_int_equal(capture.header.launches, 16 * 20 * 2);
        const struct cap_end *end = kit_nth(&capture, CAP_END, 0);
        assert_int_equal(end->live_allocations, 0);
        kit_free(&capture);
        kit_remove(&run);
    }
}

static void test_capture_first_calls_of_many_threads(void **state)
{
    struct kit_run run;
    struct kit_capture capture;
    kit_run(&run, "direct", "start-race", NULL, NULL);
    assert_true(kit_ok(&run));
    assert_true(kit_read(&run, "out", &capture));
    assert_int_equal(kit_calls(&capture, "cuInit"), 17);
    assert_int_equal(kit_calls(&capture, "cuCtxCreate_v2"), 17);
    kit_free(&capture);
    kit_remove(&run);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_capture_files_are_private),
        cmocka_unit_test(test_capture_definitions_precede_uses),
        cmocka_unit_test(test_capture_snapshots_have_blobs),
        cmocka_unit_test(test_capture_survives_kill),
        cmocka_unit_test(test_capture_survives_abort),
        cmocka_unit_test(test_capture_survives_quick_exit),
        cmocka_unit_test(test_capture_no_space_at_start),
        cmocka_unit_test(test_capture_no_space_for_records),
        cmocka_unit_test(test_capture_no_space_later),
        cmocka_unit_test(test_capture_directory_cannot_be_made),
        cmocka_unit_test(test_capture_child_of_recording_parent_is_passive),
        cmocka_unit_test(test_capture_two_processes_share_a_folder),
        cmocka_unit_test(test_capture_exec_starts_another),
        cmocka_unit_test(test_capture_many_threads),
        cmocka_unit_test(test_capture_first_calls_of_many_threads),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
