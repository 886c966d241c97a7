/* children.c WAY - a program that uses the device, and has a child made in some WAY that does too, or does something else. Both say
 * what they computed. */
#include <cuda.h>
#include <sched.h>
#include <signal.h>
#include <spawn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

extern char **environ;

static unsigned work(unsigned char value)
{
    CUcontext context;
    CUdeviceptr p;
    unsigned char host[1000];
    unsigned sum = 0;
    if (cuInit(0) || cuDevicePrimaryCtxRetain(&context, 0) || cuCtxSetCurrent(context) || cuMemAlloc(&p, sizeof host) ||
        cuMemsetD8(p, value, sizeof host) || cuMemcpyDtoH(host, p, sizeof host) || cuMemFree(p))
        exit(9);
    for (size_t i = 0; i < sizeof host; i++)
        sum += host[i];
    return sum;
}

static void say(const char *who, unsigned sum)
{
    printf("%s %u\n", who, sum);
    fflush(stdout);
}

static int reap(pid_t child)
{
    int status = 0;
    if (child < 0 || waitpid(child, &status, 0) != child)
        return 97;
    return WIFEXITED(status) ? WEXITSTATUS(status) : 100 + WTERMSIG(status);
}

static char *again[] = {"/proc/self/exe", "child", NULL};

static int by_fork(int (*what)(void))
{
    pid_t child = fork();
    if (child == 0)
        _exit(what());
    return reap(child);
}

static int exec_self(void)
{
    execv(again[0], again);
    return 96;
}

/* What CUDA does not support, in a child of a process that uses it: must not harm, hang or reach the parent's files. */
static int use_after_fork(void)
{
    CUdeviceptr p;
    for (int i = 0; i < 100; i++)
        cuMemAlloc(&p, 1000);
    return 5;
}

static int leave_by_exit(void)
{
    exit(6);
}

static int die(void)
{
    abort();
}

static int by_vfork(int with_exec)
{
    pid_t child = vfork();
    if (child == 0) {
        if (with_exec)
            execv(again[0], again);
        _exit(7);
    }
    return reap(child);
}

static int by_spawn(void)
{
    pid_t child;
    char self[4096];
    ssize_t n = readlink("/proc/self/exe", self, sizeof self - 1);
    if (n < 0)
        return 95;
    self[n] = '\0';
    char *arguments[] = {self, "child", NULL};
    return posix_spawn(&child, self, NULL, NULL, arguments, environ) ? 94 : reap(child);
}

static int by_clone(int flags, int (*what)(void))
{
    pid_t child = (pid_t)syscall(SYS_clone, flags | SIGCHLD, NULL, NULL, NULL, NULL);
    if (child == 0)
        exit(what()); /* runs the parent's exit handlers */
    return reap(child);
}

static int nothing(void)
{
    return 8;
}

/* The parent goes, the child goes on: a daemon's start. What the parent did not begin, the child may. */
static int by_daemon(void)
{
    int ends[2];
    char byte;
    if (pipe(ends))
        return 93;
    pid_t child = fork();
    if (child == 0) {
        setsid();
        if (fork())
            _exit(0);
        say("daemon", work(3));
        if (write(ends[1], "x", 1) != 1)
            _exit(92);
        exit(0);
    }
    int status = reap(child);
    close(ends[1]);
    return read(ends[0], &byte, 1) == 1 ? status : 91;
}

int main(int argc, char **argv)
{
    const char *way = argc > 1 ? argv[1] : "";
    if (strcmp(way, "child") == 0) {
        say("child", work(2));
        return 42;
    }
    if (strcmp(way, "daemon") == 0) { /* before the parent's first call */
        printf("status %d\n", by_daemon());
        return 0;
    }
    if (strcmp(way, "exec") == 0) {
        say("before", work(1));
        return exec_self();
    }
    say("parent", work(1));
    int status = 90;
    if (strcmp(way, "fork") == 0)
        status = by_fork(use_after_fork);
    else if (strcmp(way, "fork-exit") == 0)
        status = by_fork(leave_by_exit);
    else if (strcmp(way, "fork-abort") == 0)
        status = by_fork(die);
    else if (strcmp(way, "fork-exec") == 0)
        status = by_fork(exec_self);
    else if (strcmp(way, "vfork") == 0)
        status = by_vfork(0);
    else if (strcmp(way, "vfork-exec") == 0)
        status = by_vfork(1);
    else if (strcmp(way, "posix_spawn") == 0)
        status = by_spawn();
    else if (strcmp(way, "clone") == 0)
        status = by_clone(0, nothing);
    else if (strcmp(way, "clone-use") == 0)
        status = by_clone(0, use_after_fork);
    else if (strcmp(way, "clone-files") == 0) /* shares descriptors and folder with its parent, not memory */
        status = by_clone(CLONE_FILES | CLONE_FS, use_after_fork);
    else if (strcmp(way, "system") == 0)
        status = WEXITSTATUS(system("exit 11"));
    printf("status %d\n", status);
    say("parent", work(4));
    return 0;
}
