#include "shim/small_stack.h"

#include <stdint.h>
#include <sys/auxv.h>
#include <sys/mman.h>
#include <ucontext.h>

#include "shim/no_cancel.h"
#include "shim/thread.h"

/* The kernel leaves at least so much room for a process's first stack before it maps anything below. */
#define FIRST_STACK_BYTES (UINT64_C(128) << 20)

/* The random bytes that the kernel gives each process lie above the first stack. */
static bool is_first_stack(uintptr_t here)
{
    uintptr_t top = getauxval(AT_RANDOM);
    return here < top && top - here < FIRST_STACK_BYTES;
}

/* Once per thread: the C library asks the kernel, and for memory. */
static void ask(struct shim_thread *thread, uintptr_t here)
{
    pthread_attr_t attributes;
    void *low = NULL;
    size_t bytes = 0;
    thread->stack_low = thread->stack_high = 1; /* nothing lies in between */
    if (is_first_stack(here) || pthread_getattr_np(pthread_self(), &attributes) != 0)
        return;
    if (pthread_attr_getstack(&attributes, &low, &bytes) == 0 && bytes) {
        thread->stack_low = (uintptr_t)low;
        thread->stack_high = (uintptr_t)low + bytes;
    }
    pthread_attr_destroy(&attributes);
}

size_t small_stack_left(void)
{
    struct shim_thread *thread = &shim_thread;
    uintptr_t here = (uintptr_t)__builtin_frame_address(0);
    if (!thread->stack_high)
        ask(thread, here);
    return here >= thread->stack_low && here < thread->stack_high ? here - thread->stack_low : SIZE_MAX;
}

void small_stack_not(pthread_attr_t *attributes)
{
    enum { THREAD_BYTES = 256 << 10 };
    size_t usual = 0;
    if (pthread_attr_getstacksize(attributes, &usual) == 0 && usual < THREAD_BYTES)
        pthread_attr_setstacksize(attributes, THREAD_BYTES);
}

/* ---- a stack of ours ---- */

/* Sanitizers would have to be told of the switch. */
#if !defined(__SANITIZE_ADDRESS__) && !defined(__SANITIZE_THREAD__)
enum { OWN_BYTES = 256 << 10, GUARD_BYTES = 4096 };
struct borrower {
    void (*work)(void *);
    void *data;
    ucontext_t back, there;
};

/* makecontext() passes ints only. */
static void run(unsigned high, unsigned low)
{
    const struct borrower *b = (const void *)((uintptr_t)high << 32 | low);
    b->work(b->data);
}

static bool run_on_own(void (*work)(void *), void *data)
{
    NO_CANCEL; /* a thread that ends there would not unwind its own stack */
    uint8_t *map = mmap(NULL, OWN_BYTES, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_STACK, -1, 0);
    if (map == MAP_FAILED)
        return false;
    mprotect(map, GUARD_BYTES, PROT_NONE);
    /* What is saved of this thread would be a frame of two KiB. */
    struct borrower *b = (void *)(map + ((OWN_BYTES - sizeof *b) & ~(size_t)63));
    b->work = work;
    b->data = data;
    bool ran = getcontext(&b->there) == 0;
    if (ran) {
        uintptr_t address = (uintptr_t)b;
        b->there.uc_stack.ss_sp = map + GUARD_BYTES;
        b->there.uc_stack.ss_size = (size_t)((uint8_t *)b - map) - GUARD_BYTES;
        b->there.uc_link = &b->back;
        makecontext(&b->there, (void (*)(void))run, 2, (unsigned)(address >> 32), (unsigned)address);
        ran = swapcontext(&b->back, &b->there) == 0;
    }
    munmap(map, OWN_BYTES);
    return ran;
}

bool small_stack_spare(void (*work)(void *), void *data)
{
    if (small_stack_left() < SMALL_STACK_ENOUGH)
        return run_on_own(work, data);
    work(data);
    return true;
}
#else
bool small_stack_spare(void (*work)(void *), void *data)
{
    work(data);
    return true;
}
#endif
