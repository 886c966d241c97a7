/* ipc.cu GIVER_PRELOAD TAKER_PRELOAD - runs itself twice, as giver and taker of an allocation, each with its own LD_PRELOAD; the
 * taker says how many words are right. */
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <sys/wait.h>
#include <unistd.h>

enum { WORDS = 4096 };

static int give(int to, int from)
{
    unsigned *p, host[WORDS];
    cudaIpcMemHandle_t handle;
    char byte;
    for (unsigned i = 0; i < WORDS; i++)
        host[i] = i * 2654435761u;
    if (cudaMalloc(&p, sizeof host) || cudaMemcpy(p, host, sizeof host, cudaMemcpyHostToDevice) || cudaIpcGetMemHandle(&handle, p))
        return 3;
    if (write(to, &handle, sizeof handle) != sizeof handle || read(from, &byte, 1) != 1)
        return 4;
    return cudaFree(p) != cudaSuccess;
}

static int take(int from, int to)
{
    unsigned *p, host[WORDS], right = 0;
    cudaIpcMemHandle_t handle;
    if (read(from, &handle, sizeof handle) != sizeof handle ||
        cudaIpcOpenMemHandle((void **)&p, handle, cudaIpcMemLazyEnablePeerAccess) ||
        cudaMemcpy(host, p, sizeof host, cudaMemcpyDeviceToHost))
        return 5;
    for (unsigned i = 0; i < WORDS; i++)
        right += host[i] == i * 2654435761u;
    printf("%u words right\n", right);
    fflush(stdout);
    if (cudaIpcCloseMemHandle(p) || write(to, "x", 1) != 1)
        return 6;
    return 0;
}

static pid_t start(const char *preload, const char *role, int in, int out)
{
    char a[16], b[16];
    const pid_t child = fork();
    if (child)
        return child;
    snprintf(a, sizeof a, "%d", in);
    snprintf(b, sizeof b, "%d", out);
    if (*preload)
        setenv("LD_PRELOAD", preload, 1);
    execl("/proc/self/exe", "ipc", role, a, b, (char *)NULL);
    _exit(7);
}

int main(int argc, char **argv)
{
    if (argc == 4)
        return strcmp(argv[1], "give") == 0 ? give(atoi(argv[3]), atoi(argv[2])) : take(atoi(argv[2]), atoi(argv[3]));
    int there[2], back[2], status[2] = {-1, -1};
    if (argc != 3 || pipe(there) || pipe(back))
        return 2;
    const pid_t giver = start(argv[1], "give", back[0], there[1]), taker = start(argv[2], "take", there[0], back[1]);
    waitpid(taker, &status[1], 0);
    close(back[1]);
    waitpid(giver, &status[0], 0);
    return status[0] || status[1];
}
