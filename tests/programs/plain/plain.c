/*
 * plain.c - a program that never touches CUDA, but does what a preloaded library might disturb:
 * memory, threads, fork, and look-ups by dlsym.
 */
#include <dlfcn.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#define THREADS 4
#define BLOCKS  1000

static void *churn(void *argument)
{
    const size_t salt = (size_t)argument;
    unsigned char *blocks[BLOCKS];
    size_t sum = 0;

    for (size_t i = 0; i < BLOCKS; i++) {
        const size_t size = 1 + (i * 37 + salt) % 4096;
        blocks[i] = malloc(size);
        if (!blocks[i])
            abort();
        memset(blocks[i], (int)(i + salt), size);
        if (i % 3 == 0) {
            blocks[i] = realloc(blocks[i], 2 * size);
            if (!blocks[i])
                abort();
        }
    }
    for (size_t i = 0; i < BLOCKS; i++) {
        sum += blocks[i][0];
        free(blocks[i]);
    }
    return (void *)sum;
}

/* RTLD_NEXT must still mean "after this program", and an unknown name must still be unknown. */
static int look_up(void)
{
    size_t (*length)(const char *);
    void *self = dlopen(NULL, RTLD_NOW);
    int right;

    *(void **)&length = dlsym(RTLD_NEXT, "strlen");
    right = self && length && length("plain") == 5 && dlsym(RTLD_DEFAULT, "strlen") &&
            dlvsym(RTLD_DEFAULT, "memcpy", "GLIBC_2.14") && !dlsym(self, "no_such_function_here");
    if (self)
        dlclose(self);
    return right;
}

int main(void)
{
    pthread_t threads[THREADS];
    size_t sum = 0;
    int status = 0;
    pid_t child;

    for (size_t i = 0; i < THREADS; i++)
        if (pthread_create(&threads[i], NULL, churn, (void *)i))
            abort();
    for (size_t i = 0; i < THREADS; i++) {
        void *part;
        pthread_join(threads[i], &part);
        sum += (size_t)part;
    }

    fflush(stdout);
    child = fork();
    if (child < 0)
        abort();
    if (child == 0) {
        void *part = churn((void *)5);
        _exit(part ? 7 : 8);
    }
    /* Exactly one child: waitpid() for any must not meet a stranger. */
    if (waitpid(-1, &status, 0) != child || waitpid(-1, NULL, 0) != -1)
        abort();

    printf("plain: sum %zu, child %d, dlsym %s\n", sum, WEXITSTATUS(status),
           look_up() ? "ok" : "wrong");
    return 0;
}
