#include "shim/shim.h"

#include <dlfcn.h>
#include <errno.h>
#include <link.h>
#include <sched.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include <opsdebug/capture.h>

#include "shim/blob.h"
#include "shim/budget.h"
#include "shim/capture_write.h"
#include "shim/doors.h"
#include "shim/driver.h"
#include "shim/health.h"
#include "shim/intern.h"
#include "shim/memory.h"
#include "shim/nvtx.h"
#include "shim/object.h"
#include "shim/options.h"
#include "shim/pace.h"
#include "shim/progress.h"
#include "shim/ranges.h"
#include "shim/small_stack.h"
#include "shim/stack.h"
#include "shim/thread.h"
#include "shim/track.h"

static int state = SHIM_IDLE;
static pid_t starter; /* atomic: the process whose thread is starting, or has started */
static bool device_lost;
static uint64_t no_page; /* for systems without pages that are wiped on fork */
uint64_t *shim_live = &no_page;
static bool wiped; /* it lies in such a page */
static uintptr_t text_start, text_end;

static bool is_owner(void)
{
    return __atomic_load_n(&state, __ATOMIC_ACQUIRE) != SHIM_PASSIVE && (!wiped || shim_live_state());
}

bool shim_is_owner(void)
{
    return is_owner();
}

bool shim_is_idle(void)
{
    return __atomic_load_n(&state, __ATOMIC_ACQUIRE) == SHIM_IDLE;
}

bool shim_device_usable(void)
{
    return shim_is_recording() && !__atomic_load_n(&device_lost, __ATOMIC_RELAXED);
}

bool shim_owns_address(uintptr_t address)
{
    return address >= text_start && address < text_end;
}

static int find_own_text(struct dl_phdr_info *info, size_t size, void *data)
{
    uintptr_t self = (uintptr_t)find_own_text;
    for (int i = 0; i < info->dlpi_phnum; i++) {
        const ElfW(Phdr) *p = &info->dlpi_phdr[i];
        uintptr_t start = info->dlpi_addr + p->p_vaddr;
        if (p->p_type == PT_LOAD && (p->p_flags & PF_X) && self >= start && self < start + p->p_memsz) {
            text_start = start;
            text_end = start + p->p_memsz;
            return 1;
        }
    }
    return 0;
}

/* A page that every kind of forked child sees as zeros (MADV_WIPEONFORK, Linux 4.14), also one made by a raw clone()
 * for which no pthread_atfork handler runs. Reading it costs less than getpid() in each wrapper. */
static void own_page(void)
{
    void *page = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (page == MAP_FAILED)
        return;
    if (madvise(page, 4096, MADV_WIPEONFORK) != 0) {
        munmap(page, 4096);
        return;
    }
    uint64_t *word = page;
    *word = SHIM_STARTING;
    __atomic_store_n(&shim_live, word, __ATOMIC_RELEASE);
    wiped = true;
}

static void set_state(enum shim_state now)
{
    __atomic_store_n(shim_live, (uint64_t)now, __ATOMIC_RELEASE);
    __atomic_store_n(&state, now, __ATOMIC_RELEASE);
}

void shim_note(int kind, const char *format, ...)
{
    char text[512];
    va_list args;
    va_start(args, format);
    vsnprintf(text, sizeof text, format, args);
    va_end(args);
    uint32_t id = intern_string(text);
    struct cap_note_record *note = capture_define(CAP_NOTE, sizeof *note);
    if (note) {
        note->kind = (uint32_t)kind;
        note->text = id;
        capture_commit(note);
    }
}

void shim_step_aside(const char *reason)
{
    int recording = SHIM_RECORDING;
    if (!is_owner())
        return;
    if (__atomic_compare_exchange_n(&state, &recording, SHIM_ASIDE, false, __ATOMIC_ACQ_REL, __ATOMIC_ACQUIRE)) {
        __atomic_store_n(shim_live, SHIM_ASIDE, __ATOMIC_RELEASE);
        capture_set_state(CAP_STEPPED_ASIDE, reason);
    }
}

void shim_device_lost(CUresult result)
{
    if (__atomic_exchange_n(&device_lost, true, __ATOMIC_ACQ_REL))
        return;
    shim_note(CAP_NOTE_LOST, "device error %d: no more checks or snapshots; what was copied before is kept",
              (int)result);
    health_device_lost();
}

static void note_look_ups(void)
{
    const char *name;
    for (unsigned cursor = 0; (name = doors_unknown_name(&cursor));)
        shim_note(CAP_NOTE_INFO, "driver function %s was looked up and is unknown here: its calls are not seen", name);
    for (unsigned cursor = 0; (name = doors_newer_name(&cursor));)
        shim_note(CAP_NOTE_LOST, "a newer version of %s was looked up than is known here: its calls are not seen",
                  name);
    for (unsigned cursor = 0; (name = doors_second_library(&cursor));)
        shim_note(CAP_NOTE_LOST, "the program uses a second %s: its calls are not seen", name);
    if (ranges_names_dropped())
        shim_note(CAP_NOTE_LOST, "%llu times a name was registered with NVTX and there was no room for it: it has none",
                  (unsigned long long)ranges_names_dropped());
}

bool shim_exit_registered;

/* Handlers run in reverse order: this one before those that the driver registered when it was loaded, initialised, or
 * made its first context, and after those that the program registered later. The device can still be asked. May run
 * more than once. */
static void at_exit(void)
{
    /* exit() was called by a signal handler, or a callback, that interrupted this thread in the driver or in our own
     * code: locks may be held that are not given back. */
    if (!shim_is_recording() || shim_thread.inside)
        return;
    shim_thread.inside++;
    progress_stop();
    health_at_exit();
    shim_thread.inside--;
}

void shim_register_exit(void)
{
    __atomic_store_n(&shim_exit_registered, true, __ATOMIC_RELAXED);
    atexit(at_exit);
}

__attribute__((destructor)) static void at_unload(void)
{
    if (__atomic_load_n(&state, __ATOMIC_ACQUIRE) < SHIM_RECORDING || !is_owner())
        return;
    if (shim_thread.inside) { /* see at_exit: nothing that takes a lock; what is written is whole */
        capture_set_state(CAP_ENDED, NULL);
        return;
    }
    shim_thread.inside++;
    if (shim_is_recording()) {
        health_at_unload();
        note_look_ups();
        track_write_end();
    }
    capture_close();
    shim_thread.inside--;
}

static void start_recording(void)
{
    dl_iterate_phdr(find_own_text, NULL);
    own_page();
    options_read();
    memory_start(options.max_memory, shim_step_aside);
    const char *problem = capture_open(options.out);
    if (problem) {
        set_state(SHIM_ASIDE);
        return;
    }
    set_state(SHIM_RECORDING);
    options_record();
    budget_start();
    pace_start();
    object_refresh();
    const char *other;
    if (nvtx_other_tool(&other))
        shim_note(CAP_NOTE_LOST, "NVTX_INJECTION64_PATH names %s: NVTX ranges go there and are not seen here", other);
}

static void start(void *unused)
{
    start_recording(); /* files only: no call into the driver, no dlopen, so nobody can be waiting for us while we wait
                        */
    stack_load();
    driver_load();
}

/* Only the child's copy of this memory changes. */
static bool be_passive(void)
{
    __atomic_store_n(&state, SHIM_PASSIVE, __ATOMIC_RELEASE);
    return false;
}

bool shim_enter(void)
{
    int now = __atomic_load_n(&state, __ATOMIC_ACQUIRE);
    if (now >= SHIM_RECORDING)
        return now != SHIM_PASSIVE && is_owner() ? true : be_passive();
    int idle = SHIM_IDLE;
    if (now == SHIM_IDLE)
        __atomic_store_n(&starter, getpid(), __ATOMIC_RELEASE);
    if (__atomic_compare_exchange_n(&state, &idle, SHIM_STARTING, false, __ATOMIC_ACQ_REL, __ATOMIC_ACQUIRE)) {
        uint64_t begin = __builtin_ia32_rdtsc();
        shim_thread.inside++;
        if (!small_stack_spare(start, NULL)) { /* this much has room anywhere */
            own_page();
            options_read();
            driver_load();
            set_state(SHIM_ASIDE);
        }
        shim_thread.inside--;
        uint64_t took = __builtin_ia32_rdtsc() - begin;
        shim_thread.own_tsc += took;
        CAPTURE_COUNT(start_own_tsc, took);
        budget_started(shim_thread.own_tsc);
        return true;
    }
    /* A child that was forked meanwhile waits for a thread that it does not have. */
    for (const pid_t self = getpid(); __atomic_load_n(&state, __ATOMIC_ACQUIRE) == SHIM_STARTING; sched_yield())
        if (__atomic_load_n(&starter, __ATOMIC_ACQUIRE) != self)
            return be_passive();
    return shim_enter();
}
