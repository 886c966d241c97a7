/* writer.c - the shim's capture writer (capture_write.c, segment.c and intern.c as they are), stopped after every
 * single store into its files; see writer.h.
 *
 * The files are mapped without write permission. A store faults; the handler lets the one instruction through (trap
 * flag) and takes the permission back. So no instruction that stores is missed, whoever compiled it, and none has to be
 * decoded; a repeated one (rep movs) stops after each turn. What lies in the files then is what a kill at this point
 * leaves: shared mappings outlive their process. ptrace would have to step over every instruction or decode them, a
 * writer built with a hook in front of its stores would be another writer.
 */
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <ucontext.h>
#include <unistd.h>

#include "common/hash.h"
#include "shim/blob.h"
#include "shim/budget.h"
#include "shim/capture_write.h"
#include "shim/hooks.h"
#include "shim/intern.h"
#include "shim/options.h"
#include "shim/progress.h"
#include "shim/ranges.h"
#include "shim/rotate.h"
#include "shim/segment.h"
#include "shim/shim.h"
#include "shim/thread.h"
#include "shim/track.h"
#include "tests/stub/writer.h"

static struct writer_log *writer_log;
static bool stepping;
static int to_test = -1, from_test = -1;
static unsigned fail_at;

/* ---- the rest of the shim, as far as the writer asks for it ---- */

__thread struct shim_thread shim_thread = {.hook = HOOK_NONE, .scope = HOOK_NONE};

static const char *const symbols[] = {
#define HOOK(symbol, name, since, kind) #symbol,
#define RUNTIME_HOOK(symbol)            #symbol,
#include "shim/hooks.def"
#undef HOOK
#undef RUNTIME_HOOK
};

static uint64_t live_state;
uint64_t *shim_live = &live_state;

const char *hook_symbol(enum hook hook)
{
    return symbols[hook];
}

bool shim_is_owner(void)
{
    return true;
}

void shim_step_aside(const char *reason)
{
    if (!shim_is_recording())
        return;
    live_state = SHIM_ASIDE;
    capture_set_state(CAP_STEPPED_ASIDE, reason);
}

struct options options; /* no limit: rotation has tests of its own */

bool rotate_keeps(uint16_t type)
{
    return false;
}

void rotate_grown(int64_t bytes)
{
}

bool rotate_is_due(void)
{
    return false;
}

bool rotate_is_late(void)
{
    return false;
}

void rotate_closed(unsigned number, const struct rotate_span *span)
{
}

void rotate_run(bool helper)
{
}

void budget_tick(void)
{
}

void progress_thread_ends(void)
{
}

void track_thread_ends(void)
{
}

void ranges_thread_ends(void)
{
}

/* The helper thread would do this; here it has to be this thread, since only one can be followed. */
void blob_wake(void)
{
    segment_make_spare();
}

/* ---- stops ---- */

static void stop(void)
{
    char byte = 's';
    if (!stepping)
        return;
    if (write(to_test, &byte, 1) != 1 || read(from_test, &byte, 1) != 1)
        _exit(3);
}

enum { REGIONS = 16 };
static struct region {
    char *base;
    size_t bytes;
} regions[REGIONS];
static char *opened[2]; /* the pages that the present instruction may write to: it may cross from one to the next */

static struct region *region_of(const char *address)
{
    for (int i = 0; i < REGIONS; i++)
        if (regions[i].base && address >= regions[i].base && address < regions[i].base + regions[i].bytes)
            return &regions[i];
    return NULL;
}

static void on_fault(int number, siginfo_t *info, void *context)
{
    ucontext_t *user = context;
    char *page = (char *)((uintptr_t)info->si_addr & ~(uintptr_t)4095);
    if (!region_of(info->si_addr) || opened[1] || mprotect(page, 4096, PROT_READ | PROT_WRITE) != 0) {
        signal(SIGSEGV, SIG_DFL);
        return;
    }
    opened[opened[0] != NULL] = page;
    user->uc_mcontext.gregs[REG_EFL] |= 0x100;
}

static void on_trap(int number, siginfo_t *info, void *context)
{
    ucontext_t *user = context;
    user->uc_mcontext.gregs[REG_EFL] &= ~0x100LL;
    for (int i = 0; i < 2; i++) {
        if (opened[i] ? mprotect(opened[i], 4096, PROT_READ) != 0 : i == 0)
            writer_log->lost++;
        opened[i] = NULL;
    }
    writer_log->stores++;
    stop();
}

/* ---- the system calls that change the folder (linked with --wrap) ---- */

static bool call_fails(void)
{
    return writer_log && ++writer_log->calls == fail_at;
}

#define WRAPPED(type, name, parameters, arguments, failed)                                                             \
    type __real_##name parameters;                                                                                     \
    type __wrap_##name parameters;                                                                                     \
    type __wrap_##name parameters                                                                                      \
    {                                                                                                                  \
        if (call_fails()) {                                                                                            \
            errno = ENOSPC;                                                                                            \
            return failed;                                                                                             \
        }                                                                                                              \
        type result = __real_##name arguments;                                                                         \
        int kept = errno;                                                                                              \
        stop();                                                                                                        \
        errno = kept;                                                                                                  \
        return result;                                                                                                 \
    }

WRAPPED(int, posix_fallocate, (int fd, off_t from, off_t bytes), (fd, from, bytes), ENOSPC)
WRAPPED(int, truncate, (const char *path, off_t bytes), (path, bytes), -1)
WRAPPED(int, mkdir, (const char *path, mode_t mode), (path, mode), -1)
WRAPPED(int, unlink, (const char *path), (path), -1)
WRAPPED(int, renameat2, (int a, const char *from, int b, const char *to, unsigned flags), (a, from, b, to, flags), -1)

int __real_open(const char *path, int flags, ...);
int __wrap_open(const char *path, int flags, ...);
int __wrap_open(const char *path, int flags, ...)
{
    va_list more;
    va_start(more, flags);
    int mode = flags & O_CREAT ? va_arg(more, int) : 0;
    va_end(more);
    if (flags & O_CREAT && call_fails()) {
        errno = ENOSPC;
        return -1;
    }
    int result = __real_open(path, flags, mode), kept = errno;
    stop();
    errno = kept;
    return result;
}

void *__real_mmap(void *at, size_t bytes, int protection, int flags, int fd, off_t offset);
void *__wrap_mmap(void *at, size_t bytes, int protection, int flags, int fd, off_t offset);
void *__wrap_mmap(void *at, size_t bytes, int protection, int flags, int fd, off_t offset)
{
    if (!(flags & MAP_SHARED) || fd < 0)
        return __real_mmap(at, bytes, protection, flags, fd, offset);
    if (call_fails()) {
        errno = ENOMEM;
        return MAP_FAILED;
    }
    void *result = __real_mmap(at, bytes, stepping ? PROT_READ : protection, flags, fd, offset);
    for (int i = 0; i < REGIONS && stepping && result != MAP_FAILED; i++)
        if (!regions[i].base) {
            regions[i] = (struct region){result, bytes};
            return result;
        }
    if (stepping)
        writer_log->lost++;
    return result;
}

int __real_munmap(void *at, size_t bytes);
int __wrap_munmap(void *at, size_t bytes);
int __wrap_munmap(void *at, size_t bytes)
{
    struct region *region = region_of(at);
    if (region)
        region->base = NULL;
    return __real_munmap(at, bytes);
}

/* Makes the pages of a spare segment ahead of time: nothing that a file's contents would show. */
int __wrap_madvise(void *at, size_t bytes, int advice);
int __wrap_madvise(void *at, size_t bytes, int advice)
{
    return 0;
}

/* ---- what is written ---- */

static uint64_t hash_with_size(const struct cap_head *record, uint32_t bytes)
{
    uint64_t copy[64];
    memcpy(copy, record, bytes < sizeof copy ? bytes : sizeof copy);
    ((struct cap_head *)copy)->size = bytes;
    return hash_bytes64(copy, bytes < sizeof copy ? bytes : sizeof copy);
}

/* Commits a record whose content is complete; NULL when there was no room for it. */
static struct writer_entry *commit(void *record, size_t bytes)
{
    struct writer_entry *e = &writer_log->entry[writer_log->entries];
    if (!record)
        return NULL;
    if (writer_log->entries == WRITER_ENTRIES)
        _exit(4);
    bytes = (bytes + 7) & ~(size_t)7;
    const struct cap_head *head = record;
    *e = (struct writer_entry){.seq = head->seq, .type = head->type, .bytes = (uint32_t)bytes};
    e->hash = e->patched = hash_with_size(record, (uint32_t)bytes);
    writer_log->entries++;
    capture_commit(record);
    e->committed = 1;
    return e;
}

static uint32_t intern_numbered(unsigned number)
{
    char text[32];
    snprintf(text, sizeof text, "string %u", number);
    uint32_t id = intern_string(text);
    if (id && writer_log->strings < WRITER_STRINGS)
        writer_log->string_ids[writer_log->strings++] = id;
    return id;
}

/* A launch that is written before its call and patched after it, as launch.c does. */
static void write_launch(uint32_t kernel, uint32_t config, uint32_t param_bytes)
{
    struct cap_launch *record =
        capture_record(CAP_LAUNCH, sizeof *record + param_bytes, capture_next_seq(), capture_next_seq());
    if (!record)
        return;
    record->kernel = kernel;
    record->config = config;
    record->param_bytes = (uint16_t)param_bytes;
    record->outcome = CAP_LAUNCH_PENDING;
    memset(record + 1, 0x5a, param_bytes);
    struct writer_entry *e = commit(record, sizeof *record + param_bytes);
    union {
        struct cap_launch record;
        uint64_t words[128];
    } later;
    memcpy(&later, record, e->bytes);
    later.record.outcome = CAP_LAUNCH_OK;
    e->patched = hash_with_size(&later.record.head, e->bytes);
    e->patch_begun = 1;
    __atomic_store_n(&record->outcome, (uint8_t)CAP_LAUNCH_OK, __ATOMIC_RELEASE);
    e->patch_done = 1;
}

static uint32_t write_kernel(void)
{
    uint32_t name = intern_numbered(writer_log->strings), id = intern_new_id(INTERN_KERNEL);
    struct cap_kernel *record = capture_define(CAP_KERNEL, sizeof *record + sizeof(struct cap_kernel_param));
    if (!record)
        return 0;
    record->id = id;
    record->name = name;
    record->param_count = 1;
    record->param_bytes = 8;
    *(struct cap_kernel_param *)(record + 1) = (struct cap_kernel_param){0, 8};
    commit(record, sizeof *record + sizeof(struct cap_kernel_param));
    return id;
}

/* One that fills what is left of a segment; its body costs no stores. */
static void write_large(size_t bytes)
{
    struct cap_note_record *record = capture_define(CAP_NOTE, bytes);
    if (record)
        commit(record, bytes);
}

static void some_of_each(void)
{
    uint32_t kernel = write_kernel(), config = intern_config((uint32_t[]){2, 1, 1}, (uint32_t[]){32, 1, 1}, 0, 0);
    const uint64_t frames[3] = {(uintptr_t)some_of_each, (uintptr_t)write_kernel, writer_log->entries};
    intern_stack(frames, 3);
    for (uint32_t bytes = 0; bytes <= 32; bytes += 8)
        write_launch(kernel, config, bytes);
    for (unsigned i = 0; i < 70; i++)
        capture_count_hook(i % 3);
    capture_flush_counters();
    intern_numbered(writer_log->strings);
}

static void *other_thread(void *unused)
{
    some_of_each();
    write_large(300 << 10); /* beyond its first segment */
    some_of_each();
    return NULL;
}

static void write_all(const char *folder)
{
    pthread_t thread;
    if (capture_open(folder))
        return;
    live_state = SHIM_RECORDING;
    writer_log->published = true;
    some_of_each();
    for (int i = 0; i < 2; i++) /* the second one goes on in the first one's segment */
        if (pthread_create(&thread, NULL, other_thread, NULL) == 0)
            pthread_join(thread, NULL);
    uint32_t kernel = write_kernel(), config = intern_config((uint32_t[]){4, 1, 1}, (uint32_t[]){32, 1, 1}, 0, 0);
    for (int i = 0; i < 4; i++) { /* through the first segment and three later ones, of which two were spares */
        write_large(i ? (4 << 20) - 500 : 200 << 10);
        for (uint32_t bytes = 8; bytes < 256; bytes += 120)
            write_launch(kernel, config, bytes);
    }
    writer_log->closed = 1;
    capture_close();
}

int main(int argc, char **argv)
{
    if (argc < 5)
        return 2;
    writer_log = __real_mmap(NULL, sizeof *writer_log, PROT_READ | PROT_WRITE, MAP_SHARED, atoi(argv[3]), 0);
    if (writer_log == MAP_FAILED)
        return 2;
    if (strcmp(argv[1], "fail") == 0) {
        fail_at = (unsigned)atoi(argv[4]);
    } else {
        struct sigaction fault = {.sa_sigaction = on_fault, .sa_flags = SA_SIGINFO},
                         trap = {.sa_sigaction = on_trap, .sa_flags = SA_SIGINFO};
        sigaction(SIGSEGV, &fault, NULL);
        sigaction(SIGTRAP, &trap, NULL);
        to_test = atoi(argv[4]);
        from_test = argc > 5 ? atoi(argv[5]) : -1;
        stepping = true;
    }
    write_all(argv[2]);
    return 0;
}
