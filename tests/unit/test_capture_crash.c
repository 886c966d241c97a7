/* A process may die after any store of the capture writer: what it had committed can be read, and nothing else is
 * there. The writer (tests/stub/writer.c) stops after each store; here the capture is read with the analyzer's reader.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <fcntl.h>
#include <ftw.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "analyzer/capture_read.h"
#include "analyzer/session.h"
#include "common/hash.h"
#include "tests/stub/writer.h"

#ifndef KIT_BUILD /* given by build.mk; only the linter sees these */
#define KIT_BUILD           "build"
#define KIT_SANITIZER_COLON ""
#endif

struct writer {
    char directory[64], folder[80];
    struct writer_log *log;
    int log_fd, from_writer, to_writer;
    pid_t pid;
};

static void start(struct writer *w, const char *mode, unsigned fail_at)
{
    int up[2], down[2];
    char log[16], a[16], b[16];
    *w = (struct writer){.directory = "/tmp/crash-test-XXXXXX"};
    assert_non_null(mkdtemp(w->directory));
    snprintf(w->folder, sizeof w->folder, "%s/out", w->directory);
    w->log_fd = memfd_create("log", 0);
    assert_int_equal(ftruncate(w->log_fd, sizeof *w->log), 0);
    w->log = mmap(NULL, sizeof *w->log, PROT_READ | PROT_WRITE, MAP_SHARED, w->log_fd, 0);
    assert_ptr_not_equal(w->log, MAP_FAILED);
    assert_int_equal(pipe(up), 0);
    assert_int_equal(pipe(down), 0);
    snprintf(log, sizeof log, "%d", w->log_fd);
    snprintf(a, sizeof a, "%u", fail_at ? fail_at : (unsigned)up[1]);
    snprintf(b, sizeof b, "%d", down[0]);
    w->pid = fork();
    if (w->pid == 0) {
        close(up[0]);
        close(down[1]);
        execl(KIT_BUILD "/stub/writer", "writer", mode, w->folder, log, a, b, (char *)NULL);
        _exit(126);
    }
    close(up[1]);
    close(down[0]);
    w->from_writer = up[0];
    w->to_writer = down[1];
}

static int remove_one(const char *path, const struct stat *facts, int type, struct FTW *where)
{
    return remove(path);
}

static int finish(struct writer *w)
{
    int status = -1;
    waitpid(w->pid, &status, 0);
    close(w->from_writer);
    close(w->to_writer);
    close(w->log_fd);
    return status;
}

static void clean(struct writer *w)
{
    munmap(w->log, sizeof *w->log);
    nftw(w->directory, remove_one, 16, FTW_DEPTH | FTW_PHYS);
}

/* True when the writer has stopped once more, false when it has ended. */
static bool stopped(const struct writer *w)
{
    char byte;
    return read(w->from_writer, &byte, 1) == 1;
}

static void go_on(const struct writer *w)
{
    assert_int_equal(write(w->to_writer, "g", 1), 1);
}

static uint64_t hash_of(const struct cap_head *record)
{
    return hash_bytes64(record, record->size < 512 ? record->size : 512);
}

static const struct cap_head *record_by_seq(const struct capture *c, uint64_t seq)
{
    size_t low = 0, high = c->record_count;
    while (low < high) {
        size_t middle = (low + high) / 2;
        if (c->records[middle]->seq == seq)
            return c->records[middle];
        if (c->records[middle]->seq < seq)
            low = middle + 1;
        else
            high = middle;
    }
    return NULL;
}

/* 0 when all is well, else the number of the check that fails, for a message. */
static int judge_entry(const struct capture *c, const struct writer_entry *e)
{
    const struct cap_head *record = record_by_seq(c, e->seq);
    if (!record)
        return e->committed ? 1 : 0;
    if (record->type != e->type || record->size != e->bytes)
        return 2;
    uint64_t hash = hash_of(record);
    if (hash == e->hash && !e->patch_done)
        return 0;
    return hash == e->patched && (e->patch_begun || e->hash == e->patched) ? 0 : 3;
}

static const char *judge(const char *folder, const struct writer_log *log, bool with_report)
{
    static char why[1024];
    struct capture *c;
    struct diag diag = {.text = ""};
    char path[128];
    snprintf(path, sizeof path, "%s/capture.bin", folder);
    if (access(path, F_OK) != 0)
        return log->published ? "capture.bin is gone" : NULL;
    if (capture_open(folder, &c, &diag) != STATUS_OK) {
        snprintf(why, sizeof why, "cannot be opened: %s", diag.text);
        return why;
    }
    why[0] = '\0';
    if (c->rejected.count)
        snprintf(why, sizeof why, "rejected: %s: %s", c->rejected.kept[0].where, c->rejected.kept[0].text);
    for (uint32_t i = 0; i < log->entries && !why[0]; i++) {
        int wrong = judge_entry(c, &log->entry[i]);
        if (wrong)
            snprintf(why, sizeof why, "record %u (seq %lu, type %u): check %d", i, (unsigned long)log->entry[i].seq,
                     log->entry[i].type, wrong);
    }
    for (uint32_t i = 0; i < log->strings && !why[0]; i++) {
        char text[32];
        snprintf(text, sizeof text, "string %u", i);
        if (strcmp(capture_string(c, log->string_ids[i]), text) != 0)
            snprintf(why, sizeof why, "string %u is '%s'", i, capture_string(c, log->string_ids[i]));
    }
    for (size_t i = 0; i < c->record_count && !why[0]; i++)
        if (c->records[i]->seq >= c->header.next_seq)
            snprintf(why, sizeof why, "seq %lu is beyond the header's", (unsigned long)c->records[i]->seq);
    if (c->header.state != CAP_RUNNING && !log->closed && !why[0])
        snprintf(why, sizeof why, "state %u", c->header.state);
    if (!with_report) {
        capture_close(c);
        return why[0] ? why : NULL;
    }
    struct session session;
    if (session_adopt(c, &session, &diag) == STATUS_OK) {
        session_classify(&session);
        if (findings_serious(&session.findings) && !why[0])
            snprintf(why, sizeof why, "a finding of class %s", finding_class_name(session.findings.items[0].class));
        session_close(&session);
    } else {
        snprintf(why, sizeof why, "no session: %s", diag.text);
    }
    return why[0] ? why : NULL;
}

static void test_capture_is_whole_after_every_store(void **state)
{
    struct writer w;
    unsigned stops = 0;
    start(&w, "step", 0);
    for (; stopped(&w); stops++) {
        const char *why = judge(w.folder, w.log, stops % 61 == 0);
        if (why) {
            kill(w.pid, SIGKILL);
            fail_msg("stop %u (store %u, call %u): %s", stops, w.log->stores, w.log->calls, why);
        }
        go_on(&w);
    }
    assert_int_equal(finish(&w), 0);
    assert_int_equal(w.log->lost, 0);
    assert_true(w.log->entries > 30 && w.log->stores > 2000 && w.log->closed);
    assert_null(judge(w.folder, w.log, true));
    print_message("# %u stores, %u system calls, %u records\n", w.log->stores, w.log->calls, w.log->entries);
    clean(&w);
}

/* That a stopped process's files are those of a killed one: killed in earnest, at 20 of the stops. */
static void test_capture_is_whole_after_kill(void **state)
{
    enum { KILLS = 20 };
    for (unsigned k = 0; k < KILLS; k++) {
        struct writer w;
        unsigned at = 40 + k * k * 13, stops = 0;
        start(&w, "step", 0);
        while (stopped(&w) && stops++ < at)
            go_on(&w);
        kill(w.pid, SIGKILL);
        int status = finish(&w);
        assert_true(WIFSIGNALED(status) && WTERMSIG(status) == SIGKILL);
        const char *why = judge(w.folder, w.log, true);
        if (why)
            fail_msg("killed at stop %u: %s", at, why);
        clean(&w);
    }
}

/* Each system call that the writer needs fails once, as on a full disk: it steps aside or does without. */
static void test_capture_is_whole_when_a_call_fails(void **state)
{
    unsigned failures = 0, kept = 0;
    for (unsigned n = 1;; n++) {
        struct writer w;
        start(&w, "fail", n);
        assert_int_equal(finish(&w), 0);
        unsigned calls = w.log->calls;
        const char *why = NULL;
        w.log->closed = 1; /* the state may be any of those at an end */
        why = judge(w.folder, w.log, true);
        if (why)
            fail_msg("call %u fails: %s", n, why);
        kept += w.log->entries > 0;
        clean(&w);
        if (calls < n)
            break;
        failures++;
    }
    assert_true(failures > 15 && kept > 10);
}

/* A whole program under the whole shim: it says in `told` how many launches have returned. */
static pid_t start_program(const char *folder, const char *told)
{
    pid_t pid = fork();
    if (pid == 0) {
        setenv("LD_LIBRARY_PATH", KIT_BUILD "/stub", 1);
        setenv("LD_PRELOAD", KIT_SANITIZER_COLON KIT_BUILD "/libopsdebug.so", 1);
        setenv("OPSDEBUG_OUT", folder, 1);
        execl(KIT_BUILD "/programs/breakages/killed", "killed", told, (char *)NULL);
        _exit(126);
    }
    return pid;
}

static void nap(uint64_t ns)
{
    const struct timespec time = {(time_t)(ns / 1000000000u), (long)(ns % 1000000000u)};
    nanosleep(&time, NULL);
}

static uint64_t now_ns(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (uint64_t)t.tv_sec * 1000000000u + (uint64_t)t.tv_nsec;
}

static void check_killed(const char *folder, uint32_t told, uint64_t after)
{
    struct capture *c;
    struct diag diag = {.text = ""};
    char path[128];
    snprintf(path, sizeof path, "%s/capture.bin", folder);
    if (access(path, F_OK) != 0) {
        assert_int_equal(told, 0);
        return;
    }
    if (capture_open(folder, &c, &diag) != STATUS_OK)
        fail_msg("killed after %lu ns: %s", (unsigned long)after, diag.text);
    uint32_t launches = 0;
    for (size_t i = 0; i < c->record_count; i++)
        launches += c->records[i]->type == CAP_LAUNCH;
    /* The one that was under way may be there, too. */
    if (c->rejected.count || launches < told || launches > told + 1)
        fail_msg("killed after %lu ns: %lu rejected, %u launches, %u had returned; %s", (unsigned long)after,
                 (unsigned long)c->rejected.count, launches, told,
                 c->rejected.count ? c->rejected.kept[0].text : "none rejected");
    capture_close(c);
}

/* KILLS=1000 (and SEED) by hand: then the only test. */
static void test_capture_is_whole_after_kills_at_random(void **state)
{
    const char *wanted = getenv("KILLS"), *seed = getenv("SEED");
    unsigned kills = wanted ? (unsigned)atoi(wanted) : 25, with_launches = 0;
    struct writer w = {.directory = "/tmp/crash-test-XXXXXX"};
    char path[80];
    assert_non_null(mkdtemp(w.directory));
    snprintf(w.folder, sizeof w.folder, "%s/out", w.directory);
    snprintf(path, sizeof path, "%s/told", w.directory);
    int fd = open(path, O_RDWR | O_CREAT, 0600);
    assert_int_equal(ftruncate(fd, 4096), 0);
    uint32_t *told = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
    assert_ptr_not_equal(told, MAP_FAILED);
    close(fd);
    uint64_t life = 0, state_of_chance = seed ? strtoull(seed, NULL, 10) : 20;
    for (unsigned k = 0; k <= kills; k++) {
        *told = 0;
        uint64_t begin = now_ns(), after = 0;
        pid_t pid = start_program(w.folder, path);
        if (k) {
            state_of_chance = state_of_chance * UINT64_C(6364136223846793005) + UINT64_C(1442695040888963407);
            after = (state_of_chance >> 33) % life;
            nap(after);
            kill(pid, SIGKILL);
        }
        int status;
        waitpid(pid, &status, 0);
        if (!k) { /* how long it lives */
            assert_int_equal(status, 0);
            life = now_ns() - begin;
        }
        check_killed(w.folder, *told, after);
        with_launches += *told > 0;
        nftw(w.folder, remove_one, 16, FTW_DEPTH | FTW_PHYS);
    }
    print_message("# %u kills, %u of them with launches\n", kills, with_launches - 1);
    assert_true(with_launches > kills / 8);
    munmap(told, 4096);
    nftw(w.directory, remove_one, 16, FTW_DEPTH | FTW_PHYS);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_capture_is_whole_after_every_store),
        cmocka_unit_test(test_capture_is_whole_after_kill),
        cmocka_unit_test(test_capture_is_whole_when_a_call_fails),
        cmocka_unit_test(test_capture_is_whole_after_kills_at_random),
    };
    if (getenv("KILLS"))
        cmocka_set_test_filter("*at_random");
    return cmocka_run_group_tests(tests, NULL, NULL);
}
