/* ends.c HOW [clear|overwrite] - launches a kernel 20 times, then ends HOW: a signal's number, or by name. Other threads
 * are at work meanwhile. Before its first CUDA call it clears its environment, or writes over the strings, as programs
 * do that change their title. */
#include <cuda.h>
#include <pthread.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

static CUcontext context;

static void work(int times)
{
    CUdeviceptr p;
    for (int i = 0; i < times; i++)
        if (cuCtxSetCurrent(context) || cuMemAlloc(&p, 1000) || cuMemsetD8(p, 1, 1000) || cuCtxSynchronize() ||
            cuMemFree(p))
            return; /* other threads go on while the process ends */
}

static int launch(int times)
{
    static const char ptx[] = ".version 7.0\n.target sm_50\n.address_size 64\n"
                              ".visible .entry mark()\n{\n\tret;\n}\n";
    CUmodule module;
    CUfunction function;
    if (cuCtxSetCurrent(context) || cuModuleLoadData(&module, ptx) || cuModuleGetFunction(&function, module, "mark"))
        return 1;
    for (int i = 0; i < times; i++)
        if (cuLaunchKernel(function, 1, 1, 1, 1, 1, 1, 0, NULL, NULL, NULL))
            return 1;
    return 0;
}

static void *for_ever(void *unused)
{
    for (;;)
        work(1);
    return NULL;
}

/* Until the process ends, or the driver does. */
static void *launch_for_ever(void *unused)
{
    while (launch(20) == 0)
        ;
    for (;;)
        pause();
    return NULL;
}

static void *last(void *unused)
{
    usleep(50000);
    work(20);
    printf("last\n");
    fflush(stdout);
    return NULL;
}

int main(int argc, char **argv)
{
    const char *how = argc > 1 ? argv[1] : "";
    pthread_t thread;
    if (argc > 2 && strcmp(argv[2], "clear") == 0)
        clearenv();
    for (char **at = argc > 2 ? environ : NULL; at && *at; at++)
        memset(*at, 'x', strlen(*at));
    if (cuInit(0) || cuDevicePrimaryCtxRetain(&context, 0) || launch(20))
        return 9;
    work(20);
    printf("%s\n", how);
    fflush(stdout);
    if (strcmp(how, "thread") == 0) { /* main goes first */
        pthread_create(&thread, NULL, last, NULL);
        pthread_exit(NULL);
    }
    bool launching = strcmp(how, "launching") == 0;
    for (int i = 0; i < 2; i++)
        pthread_create(&thread, NULL, launching ? launch_for_ever : for_ever, NULL);
    usleep(20000);
    if (launching)
        exit(7);
    if (strcmp(how, "exit") == 0)
        exit(3);
    if (strcmp(how, "_exit") == 0)
        _exit(4);
    if (strcmp(how, "quick_exit") == 0)
        quick_exit(5);
    if (strcmp(how, "exit_group") == 0)
        syscall(SYS_exit_group, 6);
    if (strcmp(how, "abort") == 0)
        abort();
    if (strcmp(how, "trap") == 0)
        __builtin_trap();
    if (strcmp(how, "null") == 0)
        *(volatile int *)(size_t)(argc - 2) = 1;
    kill(getpid(), atoi(how));
    pause();
    return 0;
}
