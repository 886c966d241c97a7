/* names.c WHAT - as a program with NVTX (which the toolkit need not bring) is to its tool. many:
 * registers names by the hundred thousand. forks: makes children while other threads name things;
 * says what became of them. */
#include <cuda.h>
#include <dlfcn.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "shim/nvtx.h"
#include "anonymous.h"

enum { NAMES = 200000, FORKS = 100, THREADS = 3, TABLE = 32 };

static void (*functions[TABLE])(void); /* of NVTX's second core module; nothing without a tool */
static void (**slots[TABLE])(void);

static int table(uint32_t module, void (****out)(void), unsigned *count)
{
    *out = slots;
    *count = module == NVTX_MODULE_CORE2 ? TABLE : 0;
    return module == NVTX_MODULE_CORE2;
}

static const void *export_table(uint32_t id)
{
    static const struct nvtx_callbacks callbacks = {sizeof callbacks, table};
    return id == NVTX_TABLE_CALLBACKS ? &callbacks : NULL;
}

typedef const char *register_name(const char *domain, const char *text);
typedef const char *make_domain(const char *name);
typedef int push_name(const char *domain, const struct nvtx_attributes *attributes);
typedef int pop_name(const char *domain);

static register_name *name;
static push_name *push;
static pop_name *pop;
static const char *domain;

static int attach(void)
{
    for (int i = 0; i < TABLE; i++)
        slots[i] = &functions[i];
    nvtx_initialize *initialize =
        (nvtx_initialize *)dlsym(RTLD_DEFAULT, "InitializeInjectionNvtx2");
    if (!initialize || !initialize(export_table))
        return 0;
    name = (register_name *)functions[NVTX_CORE2_REGISTER_A];
    push = (push_name *)functions[NVTX_CORE2_PUSH_EX];
    pop = (pop_name *)functions[NVTX_CORE2_POP];
    domain = ((make_domain *)functions[NVTX_CORE2_CREATE_A])("names");
    return name && push && pop && domain;
}

static void range(const char *registered)
{
    const struct nvtx_attributes a = {.version = 3,
                                      .size = sizeof a,
                                      .message_type = NVTX_REGISTERED,
                                      .message.registered = registered};
    push(domain, &a);
    pop(domain);
}

static int many(void)
{
    CUcontext context;
    char text[64];
    unsigned kept = 0, same = 0;
    long before = anonymous_kib();
    for (unsigned i = 0; i < NAMES; i++) {
        snprintf(text, sizeof text, "iteration %u of the main loop", i);
        const char *one = name(domain, text);
        kept += one != NULL;
        same += name(domain, text) == one;
    }
    range(name(domain, "iteration 7 of the main loop"));
    range(NULL);
    printf("%u kept, %u same, %s\n", kept, same,
           anonymous_kib() - before < 16384 ? "little" : "much");
    return cuInit(0) || cuDevicePrimaryCtxRetain(&context, 0) || cuCtxSetCurrent(context);
}

static volatile int over;

static void *work(void *number)
{
    char text[64];
    for (unsigned i = 0; !over; i++) {
        snprintf(text, sizeof text, "thread %zu, %u", (size_t)number, i);
        range(name(domain, text));
    }
    return NULL;
}

static int forks(void)
{
    pthread_t threads[THREADS];
    int right = 0;
    for (size_t i = 0; i < THREADS; i++)
        if (pthread_create(&threads[i], NULL, work, (void *)i))
            return 3;
    for (int i = 0; i < FORKS; i++) {
        int status = -1;
        pid_t child = fork();
        if (!child) {
            alarm(20);
            for (unsigned k = 0; k < 10; k++)
                range(name(domain, "a child"));
            _exit(4);
        }
        waitpid(child, &status, 0);
        right += WIFEXITED(status) && WEXITSTATUS(status) == 4;
        if (!right) /* one is enough */
            break;
    }
    over = 1;
    for (int i = 0; i < THREADS; i++)
        pthread_join(threads[i], NULL);
    printf("%d children went on\n", right);
    return 0;
}

/* ---- an allocator of the program's own ---- */

void *__libc_malloc(size_t bytes);
void *__libc_calloc(size_t count, size_t bytes);
void *__libc_realloc(void *old, size_t bytes);

static volatile int marks; /* from now on */
static __thread int marking;
static unsigned long marked;

static void mark(void)
{
    if (!marks || marking)
        return;
    marking = 1;
    range("allocation");
    marked++;
    marking = 0;
}

void *malloc(size_t bytes)
{
    mark();
    return __libc_malloc(bytes);
}

void *calloc(size_t count, size_t bytes)
{
    mark();
    return __libc_calloc(count, bytes);
}

void *realloc(void *old, size_t bytes)
{
    mark();
    return __libc_realloc(old, bytes);
}

static int allocator(void)
{
    CUcontext context;
    CUdeviceptr p;
    char text[64];
    marks = 1;
    for (int i = 0; i < 1000; i++) {
        snprintf(text, sizeof text, "step %d", i);
        range(name(domain, text));
        free(malloc(10));
    }
    if (cuInit(0) || cuDevicePrimaryCtxRetain(&context, 0) || cuCtxSetCurrent(context))
        return 3;
    for (int i = 0; i < 1000; i++) {
        snprintf(text, sizeof text, "later step %d", i);
        range(name(domain, text));
        if (cuMemAlloc(&p, 1000 + (size_t)i) || cuMemFree(p))
            return 4;
    }
    marks = 0;
    printf("%s\n", marked > 1000 ? "all went on" : "nothing was marked");
    return 0;
}

int main(int argc, char **argv)
{
    if (argc != 2 || !attach())
        return 2;
    return strcmp(argv[1], "many") == 0    ? many()
           : strcmp(argv[1], "forks") == 0 ? forks()
                                           : allocator();
}
