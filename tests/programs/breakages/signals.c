/* signals.c - a program with handlers of its own for everything: they stay, and they are what runs. */
#include <cuda.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static volatile sig_atomic_t seen[65];
static unsigned char alternate[65536];

static void handler(int number, siginfo_t *info, void *context)
{
    seen[number]++;
}

static void *worker(void *context)
{
    CUdeviceptr p;
    for (int i = 0; i < 200; i++)
        if (cuCtxSetCurrent(context) || cuMemAlloc(&p, 1000) || cuMemsetD8(p, 1, 1000) || cuMemFree(p))
            exit(3);
    return NULL;
}

int main(void)
{
    struct sigaction mine, now;
    sigset_t masked, mask;
    stack_t stack = {.ss_sp = alternate, .ss_size = sizeof alternate}, after;
    CUcontext context;
    pthread_t threads[4];
    memset(&mine, 0, sizeof mine);
    mine.sa_sigaction = handler;
    mine.sa_flags = SA_SIGINFO | SA_ONSTACK | SA_RESTART;
    for (int n = 1; n < 65; n++)
        if (n != SIGKILL && n != SIGSTOP)
            sigaction(n, &mine, NULL);
    sigaltstack(&stack, NULL);
    sigemptyset(&masked);
    sigaddset(&masked, SIGUSR2);
    pthread_sigmask(SIG_SETMASK, &masked, NULL);

    if (cuInit(0) || cuDevicePrimaryCtxRetain(&context, 0) || cuCtxSetCurrent(context))
        return 2;
    for (int i = 0; i < 4; i++)
        pthread_create(&threads[i], NULL, worker, context);
    for (int i = 0; i < 50; i++) { /* interrupted at any place */
        kill(getpid(), SIGALRM);
        usleep(200);
    }
    for (int i = 0; i < 4; i++)
        pthread_join(threads[i], NULL);
    if (cuCtxSynchronize())
        return 2;

    int changed = 0;
    for (int n = 1; n < 65; n++)
        if (n != SIGKILL && n != SIGSTOP && n != 32 && n != 33)
            changed += sigaction(n, NULL, &now) == 0 &&
                       (now.sa_sigaction != handler || (now.sa_flags & mine.sa_flags) != mine.sa_flags);
    pthread_sigmask(SIG_SETMASK, NULL, &mask);
    sigaltstack(NULL, &after);
    raise(SIGSEGV);
    raise(SIGABRT);
    raise(SIGTERM);
    raise(SIGUSR2);
    printf("%d handlers changed; mask %d %d; stack %d; seen %d %d %d %d %d\n", changed, sigismember(&mask, SIGUSR2),
           sigismember(&mask, SIGALRM), after.ss_sp == alternate, seen[SIGSEGV] > 0, seen[SIGABRT], seen[SIGTERM],
           seen[SIGUSR2], seen[SIGALRM] > 0);
    return changed;
}
