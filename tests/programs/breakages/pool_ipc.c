/* pool_ipc.c GIVER_PRELOAD TAKER_PRELOAD - runs itself twice, as giver and taker of memory of a
 * shared pool, each with its own LD_PRELOAD. The taker says how many words are right, and changes
 * them; the giver how many of those. */
#include <cuda.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

enum { WORDS = 1500, ROUNDS = 3 };

#define EXPECT(condition)                                                                          \
    do {                                                                                           \
        if (!(condition)) {                                                                        \
            printf("%s, line %d: %s\n", role, __LINE__, #condition);                               \
            exit(3);                                                                               \
        }                                                                                          \
    } while (0)

static const char *role;
static CUstream stream;

static void begin(void)
{
    CUcontext context;
    EXPECT(!cuInit(0) && !cuDevicePrimaryCtxRetain(&context, 0) && !cuCtxSetCurrent(context));
    EXPECT(!cuStreamCreate(&stream, CU_STREAM_NON_BLOCKING));
}

static void send_fd(int socket, int fd)
{
    char byte = 'x', room[CMSG_SPACE(sizeof fd)] = {0};
    struct iovec part = {&byte, 1};
    struct msghdr message = {
        .msg_iov = &part, .msg_iovlen = 1, .msg_control = room, .msg_controllen = sizeof room};
    struct cmsghdr *c = CMSG_FIRSTHDR(&message);
    c->cmsg_level = SOL_SOCKET;
    c->cmsg_type = SCM_RIGHTS;
    c->cmsg_len = CMSG_LEN(sizeof fd);
    memcpy(CMSG_DATA(c), &fd, sizeof fd);
    EXPECT(sendmsg(socket, &message, 0) == 1);
}

static int receive_fd(int socket)
{
    char byte, room[CMSG_SPACE(sizeof(int))];
    struct iovec part = {&byte, 1};
    struct msghdr message = {
        .msg_iov = &part, .msg_iovlen = 1, .msg_control = room, .msg_controllen = sizeof room};
    int fd;
    EXPECT(recvmsg(socket, &message, 0) == 1 && CMSG_FIRSTHDR(&message));
    memcpy(&fd, CMSG_DATA(CMSG_FIRSTHDR(&message)), sizeof fd);
    return fd;
}

static unsigned word(unsigned round, unsigned i)
{
    return (i + round) * 2654435761u;
}

static void give(int to)
{
    CUmemPoolProps props = {.allocType = CU_MEM_ALLOCATION_TYPE_PINNED,
                            .handleTypes = CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR,
                            .location = {.type = CU_MEM_LOCATION_TYPE_DEVICE, .id = 0}};
    CUmemoryPool pool;
    int fd = -1;
    unsigned host[WORDS], right = 0;
    char byte;
    EXPECT(!cuMemPoolCreate(&pool, &props));
    EXPECT(
        !cuMemPoolExportToShareableHandle(&fd, pool, CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR, 0));
    send_fd(to, fd);
    for (unsigned round = 0; round < ROUNDS; round++) {
        CUdeviceptr p;
        CUmemPoolPtrExportData data;
        for (unsigned i = 0; i < WORDS; i++)
            host[i] = word(round, i);
        EXPECT(!cuMemAllocFromPoolAsync(&p, sizeof host, pool, stream));
        EXPECT(!cuMemcpyHtoDAsync(p, host, sizeof host, stream) && !cuStreamSynchronize(stream));
        EXPECT(!cuMemPoolExportPointer(&data, p));
        EXPECT(write(to, &data, sizeof data) == sizeof data && read(to, &byte, 1) == 1);
        EXPECT(!cuMemcpyDtoHAsync(host, p, sizeof host, stream) && !cuStreamSynchronize(stream));
        for (unsigned i = 0; i < WORDS; i++)
            right += host[i] == ~word(round, i);
        EXPECT(!cuMemFreeAsync(p, stream) && !cuStreamSynchronize(stream));
    }
    EXPECT(read(to, &byte, 1) == 0); /* the taker has ended, and said what it has to say */
    printf("giver: %u words right\n", right);
}

static void take(int from)
{
    CUmemAccessDesc access = {.location = {.type = CU_MEM_LOCATION_TYPE_DEVICE, .id = 0},
                              .flags = CU_MEM_ACCESS_FLAGS_PROT_READWRITE};
    CUmemoryPool pool;
    unsigned host[WORDS], right = 0;
    int fd = receive_fd(from);
    EXPECT(!cuMemPoolImportFromShareableHandle(&pool, (void *)(intptr_t)fd,
                                               CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR, 0));
    EXPECT(!cuMemPoolSetAccess(pool, &access, 1));
    for (unsigned round = 0; round < ROUNDS; round++) {
        CUdeviceptr p;
        CUmemPoolPtrExportData data;
        EXPECT(read(from, &data, sizeof data) == sizeof data);
        EXPECT(!cuMemPoolImportPointer(&p, pool, &data));
        EXPECT(!cuMemcpyDtoHAsync(host, p, sizeof host, stream) && !cuStreamSynchronize(stream));
        for (unsigned i = 0; i < WORDS; i++) {
            right += host[i] == word(round, i);
            host[i] = ~word(round, i);
        }
        EXPECT(!cuMemcpyHtoDAsync(p, host, sizeof host, stream) && !cuStreamSynchronize(stream));
        EXPECT(!cuMemFreeAsync(p, stream) && !cuStreamSynchronize(stream));
        EXPECT(write(from, "x", 1) == 1);
    }
    printf("taker: %u words right\n", right);
}

static pid_t start(const char *preload, const char *as, int socket, int other)
{
    char number[16];
    const pid_t child = fork();
    if (child)
        return child;
    snprintf(number, sizeof number, "%d", socket);
    if (*preload)
        setenv("LD_PRELOAD", preload, 1);
    close(other);
    execl("/proc/self/exe", "pool_ipc", as, number, "", (char *)NULL);
    _exit(7);
}

int main(int argc, char **argv)
{
    int ends[2], status[2] = {-1, -1};
    role = argc > 1 ? argv[1] : "";
    if (argc == 4) {
        begin();
        (strcmp(role, "give") == 0 ? give : take)(atoi(argv[2]));
        return 0;
    }
    if (argc != 3 || socketpair(AF_UNIX, SOCK_STREAM, 0, ends))
        return 2;
    const pid_t giver = start(argv[1], "give", ends[0], ends[1]),
                taker = start(argv[2], "take", ends[1], ends[0]);
    close(ends[0]);
    close(ends[1]);
    waitpid(taker, &status[1], 0);
    waitpid(giver, &status[0], 0);
    return status[0] || status[1];
}
