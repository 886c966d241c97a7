/* Memory, events and pools of one process in another one, through the runtime. */
#include <sys/socket.h>
#include <sys/wait.h>

#include "tests/unit/softgpu_runtime.h"

enum { BYTES = 4096 };

/* What the parent tells the child; a descriptor comes with it. */
struct told {
    cudaIpcMemHandle_t memory;
    cudaIpcEventHandle_t event;
    struct cudaMemPoolPtrExportData pointer;
};

static void send_all(int socket, const struct told *t, int fd)
{
    char control[CMSG_SPACE(sizeof fd)] = {0};
    struct iovec part = {(void *)(uintptr_t)t, sizeof *t};
    struct msghdr m = {.msg_iov = &part, .msg_iovlen = 1, .msg_control = control, .msg_controllen = sizeof control};
    struct cmsghdr *c = CMSG_FIRSTHDR(&m);
    *c = (struct cmsghdr){.cmsg_len = CMSG_LEN(sizeof fd), .cmsg_level = SOL_SOCKET, .cmsg_type = SCM_RIGHTS};
    memcpy(CMSG_DATA(c), &fd, sizeof fd);
    assert_int_equal(sendmsg(socket, &m, 0), sizeof *t);
}

static bool receive_all(int socket, struct told *t, int *fd)
{
    char control[CMSG_SPACE(sizeof *fd)] = {0};
    struct iovec part = {t, sizeof *t};
    struct msghdr m = {.msg_iov = &part, .msg_iovlen = 1, .msg_control = control, .msg_controllen = sizeof control};
    if (recvmsg(socket, &m, 0) != sizeof *t || !CMSG_FIRSTHDR(&m))
        return false;
    memcpy(fd, CMSG_DATA(CMSG_FIRSTHDR(&m)), sizeof *fd);
    return true;
}

/* ---- the child: its exit code is the number of the check that failed --------------------------------------------- */

#define must(number, condition)                                                                                        \
    do {                                                                                                               \
        if (!(condition))                                                                                              \
            return number;                                                                                             \
    } while (0)

static int child(int socket)
{
    struct told t;
    void *memory, *again;
    char byte = 0;
    int fd = -1;
    cudaEvent_t event;
    cudaMemPool_t pool;
    must(1, receive_all(socket, &t, &fd));
    must(2, cudaIpcOpenMemHandle(&memory, t.memory, cudaIpcMemLazyEnablePeerAccess) == cudaSuccess);
    must(3, cudaIpcOpenEventHandle(&event, t.event) == cudaSuccess);
    must(4, cudaEventSynchronize(event) == cudaSuccess); /* the parent's fill has been */
    must(5, cudaMemcpy(&byte, memory, 1, cudaMemcpyDeviceToHost) == cudaSuccess && byte == 21);
    must(6, cudaMemset(memory, 22, BYTES) == cudaSuccess && cudaDeviceSynchronize() == cudaSuccess);
    must(7, cudaIpcCloseMemHandle(memory) == cudaSuccess);
    must(8, cudaIpcCloseMemHandle(memory) == cudaErrorInvalidValue);
    must(9, cudaIpcOpenMemHandle(&again, t.memory, 5) == cudaErrorInvalidValue);
    must(10, cudaIpcOpenMemHandle(NULL, t.memory, cudaIpcMemLazyEnablePeerAccess) == cudaErrorInvalidValue);
    must(11, cudaMemPoolImportFromShareableHandle(&pool, (void *)(intptr_t)fd, cudaMemHandleTypePosixFileDescriptor,
                                                  0) == cudaSuccess);
    must(12, cudaMemPoolImportPointer(&memory, pool, &t.pointer) == cudaSuccess);
    must(13, cudaMemcpy(&byte, memory, 1, cudaMemcpyDeviceToHost) == cudaSuccess && byte == 31);
    must(14, cudaFree(memory) == cudaSuccess);
    must(15, cudaMemPoolDestroy(pool) == cudaSuccess);
    must(16, cudaMemPoolImportFromShareableHandle(NULL, (void *)(intptr_t)fd, cudaMemHandleTypePosixFileDescriptor,
                                                  0) == cudaErrorInvalidValue);
    must(17, cudaEventDestroy(event) == cudaSuccess);
    must(18, write(socket, "d", 1) == 1);
    return 0;
}

static pid_t process;
static int channel;

/* Before anything here uses the device: a child of a process that did cannot. */
static int start_child(void)
{
    int ends[2];
    if (socketpair(AF_UNIX, SOCK_STREAM, 0, ends) != 0 || (process = fork()) < 0)
        return 1;
    if (process == 0) {
        close(ends[0]);
        _exit(child(ends[1]));
    }
    close(ends[1]);
    channel = ends[0];
    return 0;
}

/* ---- the parent -------------------------------------------------------------------------------------------------- */

static void test_another_process(void **state)
{
    struct told t;
    void *memory, *pooled;
    int fd = -1, status;
    char byte = 0;
    cudaEvent_t event;
    cudaMemPool_t pool;
    struct cudaMemPoolProps props = {.allocType = cudaMemAllocationTypePinned,
                                     .handleTypes = cudaMemHandleTypePosixFileDescriptor,
                                     .location = {.type = cudaMemLocationTypeDevice}};
    ok(cudaMalloc(&memory, BYTES));
    ok(cudaEventCreateWithFlags(&event, cudaEventInterprocess | cudaEventDisableTiming));
    ok(cudaIpcGetMemHandle(&t.memory, memory));
    ok(cudaIpcGetEventHandle(&t.event, event));
    ok(cudaMemPoolCreate(&pool, &props));
    ok(cudaMallocFromPoolAsync(&pooled, BYTES, pool, NULL));
    ok(cudaMemset(pooled, 31, BYTES));
    ok(cudaMemPoolExportToShareableHandle(&fd, pool, cudaMemHandleTypePosixFileDescriptor, 0));
    ok(cudaMemPoolExportPointer(&t.pointer, pooled));
    ok(cudaMemset(memory, 21, BYTES));
    ok(cudaEventRecord(event, NULL));
    send_all(channel, &t, fd);
    assert_int_equal(waitpid(process, &status, 0), process);
    assert_int_equal(status, 0);
    assert_int_equal(read(channel, &byte, 1), 1);
    ok(cudaMemcpy(&byte, memory, 1, cudaMemcpyDeviceToHost));
    assert_int_equal(byte, 22); /* the child's fill */
    close(fd);
    ok(cudaFree(pooled));
    ok(cudaMemPoolDestroy(pool));
    ok(cudaFree(memory));
    ok(cudaEventDestroy(event));
}

static void test_what_is_refused(void **state)
{
    struct told t = {0};
    void *memory, *p;
    int fd;
    cudaEvent_t event;
    cudaMemPool_t pool, other;
    struct cudaMemPoolProps props = {.allocType = cudaMemAllocationTypePinned,
                                     .location = {.type = cudaMemLocationTypeDevice}};
    ok(cudaMalloc(&memory, BYTES));
    ok(cudaEventCreate(&event));
    ok(cudaMemPoolCreate(&pool, &props)); /* not to be handed out */
    sets(cudaErrorInvalidValue, cudaIpcGetMemHandle(NULL, memory));
    sets(cudaErrorInvalidValue, cudaIpcGetMemHandle(&t.memory, &fd));
    sets(cudaErrorInvalidResourceHandle, cudaIpcOpenMemHandle(&p, t.memory, cudaIpcMemLazyEnablePeerAccess));
    sets(cudaErrorInvalidValue, cudaIpcCloseMemHandle(memory)); /* was not opened */
    ok(cudaIpcGetMemHandle(&t.memory, memory));
    sets(cudaErrorDeviceUninitialized, cudaIpcOpenMemHandle(&p, t.memory, cudaIpcMemLazyEnablePeerAccess)); /* here */
    sets(cudaErrorInvalidResourceHandle, cudaIpcGetEventHandle(&t.event, event)); /* made without the flag */
    sets(cudaErrorInvalidResourceHandle, cudaIpcGetEventHandle(&t.event, NULL));
    sets(cudaErrorInvalidResourceHandle, cudaIpcOpenEventHandle(&event, t.event));
    sets(cudaErrorInvalidValue, cudaMemPoolExportToShareableHandle(&fd, pool, cudaMemHandleTypePosixFileDescriptor, 0));
    sets(cudaErrorInvalidValue,
         cudaMemPoolExportToShareableHandle(NULL, pool, cudaMemHandleTypePosixFileDescriptor, 0));
    sets(cudaErrorInvalidValue, cudaMemPoolExportPointer(&t.pointer, memory));
    sets(cudaErrorInvalidValue, cudaMemPoolExportPointer(NULL, memory));
    sets(cudaErrorInvalidValue, cudaMemPoolImportPointer(NULL, pool, &t.pointer));
    sets(cudaErrorInvalidValue, cudaMemPoolImportPointer(&p, pool, NULL));
    sets(cudaErrorInvalidValue,
         cudaMemPoolImportFromShareableHandle(&other, (void *)(intptr_t)-1, cudaMemHandleTypePosixFileDescriptor, 0));
    ok(cudaMemPoolDestroy(pool));
    ok(cudaEventDestroy(event));
    ok(cudaFree(memory));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_another_process),
        cmocka_unit_test(test_what_is_refused),
    };
    return start_child() || cmocka_run_group_tests(tests, NULL, NULL);
}
