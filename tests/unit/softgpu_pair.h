/* softgpu_pair.h - a second process for tests: started before the device is used here, it does what it is told through
 * a socket: a letter, a handle, perhaps a descriptor. */
#ifndef TESTS_UNIT_SOFTGPU_PAIR_H
#define TESTS_UNIT_SOFTGPU_PAIR_H

#include <sys/socket.h>
#include <sys/wait.h>

#include "tests/unit/gate.h"
#include "tests/unit/softgpu_test.h"

enum { MIB = 1 << 20 };

/* What one process asks the other to do, and what it answers. */
struct message {
    char what;
    CUresult result;
    uint64_t number, bytes;
    CUdeviceptr address;
    union {
        CUipcMemHandle memory;
        CUipcEventHandle event;
        CUmemPoolPtrExportData pointer;
    } handle;
};

static int line = -1; /* to the other process */
static pid_t other;

static inline bool say(const struct message *m, int fd)
{
    struct iovec io = {(void *)m, sizeof *m};
    union {
        struct cmsghdr align;
        char bytes[CMSG_SPACE(sizeof(int))];
    } control = {0};
    struct msghdr h = {.msg_iov = &io, .msg_iovlen = 1};
    if (fd >= 0) {
        h.msg_control = control.bytes;
        h.msg_controllen = sizeof control.bytes;
        struct cmsghdr *c = CMSG_FIRSTHDR(&h);
        c->cmsg_level = SOL_SOCKET;
        c->cmsg_type = SCM_RIGHTS;
        c->cmsg_len = CMSG_LEN(sizeof fd);
        memcpy(CMSG_DATA(c), &fd, sizeof fd);
    }
    return sendmsg(line, &h, 0) == (ssize_t)sizeof *m;
}

static inline bool hear(struct message *m, int *fd)
{
    struct iovec io = {m, sizeof *m};
    union {
        struct cmsghdr align;
        char bytes[CMSG_SPACE(sizeof(int))];
    } control;
    struct msghdr h = {
        .msg_iov = &io, .msg_iovlen = 1, .msg_control = control.bytes, .msg_controllen = sizeof control.bytes};
    if (recvmsg(line, &h, MSG_WAITALL) != (ssize_t)sizeof *m)
        return false;
    struct cmsghdr *c = CMSG_FIRSTHDR(&h);
    *fd = -1;
    if (c && c->cmsg_type == SCM_RIGHTS)
        memcpy(fd, CMSG_DATA(c), sizeof *fd);
    return true;
}

/* ---- the other process ------------------------------------------------------------------------------------------ */

static inline CUresult map_descriptor(int fd, uint64_t bytes, CUdeviceptr *address)
{
    CUmemGenericAllocationHandle h;
    CUmemAccessDesc desc = {{.type = CU_MEM_LOCATION_TYPE_DEVICE, .id = 0}, CU_MEM_ACCESS_FLAGS_PROT_READWRITE};
    CUresult result =
        cuMemImportFromShareableHandle(&h, (void *)(intptr_t)fd, CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR);
    if (result == CUDA_SUCCESS)
        result = cuMemAddressReserve(address, bytes, 0, 0, 0);
    if (result == CUDA_SUCCESS)
        result = cuMemMap(*address, bytes, 0, h, 0);
    if (result == CUDA_SUCCESS)
        result = cuMemSetAccess(*address, bytes, &desc, 1);
    if (result == CUDA_SUCCESS)
        result = cuMemRelease(h); /* the mapping keeps it */
    return result;
}

static inline void serve_one(struct message *m, int fd)
{
    static CUevent event;
    static CUstream stream;
    static CUmemoryPool pool;
    static CUdeviceptr own;
    uint32_t value = 0;
    switch (m->what) {
    case 'o': /* open memory */
        m->result = cuIpcOpenMemHandle_v2(&m->address, m->handle.memory, (unsigned)m->number);
        break;
    case '1': /* by the function's first version */
        m->result = cuIpcOpenMemHandle(&m->address, m->handle.memory, (unsigned)m->number);
        break;
    case 'c':
        m->result = cuIpcCloseMemHandle(m->address);
        break;
    case 'r': /* read a word */
        m->result = cuMemcpyDtoH_v2(&value, m->address, 4);
        m->number = value;
        break;
    case 'w': /* write a word */
        value = (uint32_t)m->number;
        m->result = cuMemcpyHtoD_v2(m->address, &value, 4);
        break;
    case 'f':
        m->result = cuMemFree_v2(m->address);
        break;
    case 'F': /* in stream order */
        m->result = cuMemFreeAsync(m->address, NULL);
        cuCtxSynchronize();
        break;
    case 'x': { /* export memory of its own, and free it at 'y' */
        m->result = cuMemAlloc_v2(&own, m->bytes);
        if (m->result == CUDA_SUCCESS)
            m->result = cuIpcGetMemHandle(&m->handle.memory, own);
        break;
    }
    case 'y':
        m->result = cuMemFree_v2(own);
        break;
    case 'd': /* map a descriptor's memory */
        m->result = map_descriptor(fd, m->bytes, &m->address);
        break;
    case 'u':
        m->result = cuMemUnmap(m->address, m->bytes);
        if (m->result == CUDA_SUCCESS)
            m->result = cuMemAddressFree(m->address, m->bytes);
        break;
    case 'p': /* import a pool */
        m->result = cuMemPoolImportFromShareableHandle(&pool, (void *)(intptr_t)fd,
                                                       CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR, 0);
        break;
    case 'q': /* memory of that pool */
        m->result = cuMemPoolImportPointer(&m->address, pool, &m->handle.pointer);
        break;
    case 'a': /* the pool gives nothing out here */
        m->result = cuMemAllocFromPoolAsync(&m->address, 64, pool, NULL);
        break;
    case 's':
        m->result = cuDeviceSetMemPool(0, pool);
        break;
    case 'e': /* open an event */
        m->result = cuIpcOpenEventHandle(&event, m->handle.event);
        if (!stream)
            cuStreamCreate(&stream, CU_STREAM_NON_BLOCKING);
        break;
    case 'E': /* record it there, behind a fill */
        cuMemsetD32Async(m->address, (unsigned)m->number, 1, stream);
        m->result = cuEventRecord(event, stream);
        break;
    case 'W': /* wait for it there, then read */
        m->result = cuStreamWaitEvent(stream, event, 0);
        cuMemcpyDtoHAsync_v2(&value, m->address, 4, stream);
        cuStreamSynchronize(stream);
        m->number = value;
        break;
    case 'Q':
        m->result = cuEventQuery(event);
        break;
    case 'S':
        m->result = cuEventSynchronize(event);
        break;
    case 'D':
        m->result = cuEventDestroy_v2(event);
        break;
    case 'g': { /* hand an event on */
        m->result = cuIpcGetEventHandle(&m->handle.event, event);
        break;
    }
    default:
        m->result = CUDA_ERROR_UNKNOWN;
    }
    if (fd >= 0)
        close(fd);
}

static inline int serve(void)
{
    CUcontext c;
    struct message m;
    int fd;
    if (cuInit(0) != CUDA_SUCCESS || cuDevicePrimaryCtxRetain(&c, 0) != CUDA_SUCCESS ||
        cuCtxSetCurrent(c) != CUDA_SUCCESS)
        return 1;
    while (hear(&m, &fd)) {
        serve_one(&m, fd);
        if (!say(&m, -1))
            return 1;
    }
    return 0;
}

static inline int start(void **state)
{
    int ends[2];
    if (socketpair(AF_UNIX, SOCK_STREAM, 0, ends) != 0 || (other = fork()) < 0)
        return 1;
    line = ends[other == 0];
    close(ends[other != 0]);
    if (other == 0)
        _exit(serve());
    return use_primary_context(state);
}

static inline int stop(void **state)
{
    int status;
    close(line);
    return waitpid(other, &status, 0) != other || !WIFEXITED(status) || WEXITSTATUS(status);
}

/* The other process does it; its answer, with its result. */
static inline CUresult ask_with(struct message *m, int fd)
{
    int none;
    assert_true(say(m, fd));
    assert_true(hear(m, &none));
    return m->result;
}

static inline CUresult ask(struct message *m)
{
    return ask_with(m, -1);
}

static inline uint32_t word_there(CUdeviceptr a)
{
    struct message m = {.what = 'r', .address = a};
    ok(ask(&m));
    return (uint32_t)m.number;
}

static inline void put_there(CUdeviceptr a, uint32_t value)
{
    struct message m = {.what = 'w', .address = a, .number = value};
    ok(ask(&m));
}

static inline uint32_t word_here(CUdeviceptr a)
{
    uint32_t value = 0;
    ok(cuMemcpyDtoH_v2(&value, a, 4));
    return value;
}

static inline void put_here(CUdeviceptr a, uint32_t value)
{
    ok(cuMemsetD32_v2(a, value, 1));
    ok(cuCtxSynchronize());
}

static inline struct message opening(CUdeviceptr a)
{
    struct message m = {.what = 'o', .number = CU_IPC_MEM_LAZY_ENABLE_PEER_ACCESS};
    ok(cuIpcGetMemHandle(&m.handle.memory, a));
    return m;
}

/* Memory that may be exported as a descriptor. */
static inline CUresult create_shared(CUmemGenericAllocationHandle *h, size_t bytes, CUmemAllocationHandleType type)
{
    CUmemAllocationProp prop = {.type = CU_MEM_ALLOCATION_TYPE_PINNED,
                                .requestedHandleTypes = type,
                                .location = {.type = CU_MEM_LOCATION_TYPE_DEVICE, .id = 0}};
    return cuMemCreate(h, bytes, &prop, 0);
}

#endif
