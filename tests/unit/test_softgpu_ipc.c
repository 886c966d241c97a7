/* Memory, pools and events between processes. Each test has a second process, started before the device is used here,
 * that does what it is told through a socket: a letter, a handle, perhaps a descriptor. */
#include <sys/socket.h>
#include <sys/wait.h>

#include "tests/unit/softgpu_gate.h"

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

static bool say(const struct message *m, int fd)
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

static bool hear(struct message *m, int *fd)
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

static CUresult map_descriptor(int fd, uint64_t bytes, CUdeviceptr *address)
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

static void serve_one(struct message *m, int fd)
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

static int serve(void)
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

static int start(void **state)
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

static int stop(void **state)
{
    int status;
    close(line);
    return waitpid(other, &status, 0) != other || !WIFEXITED(status) || WEXITSTATUS(status);
}

/* The other process does it; its answer, with its result. */
static CUresult ask_with(struct message *m, int fd)
{
    int none;
    assert_true(say(m, fd));
    assert_true(hear(m, &none));
    return m->result;
}

static CUresult ask(struct message *m)
{
    return ask_with(m, -1);
}

static uint32_t word_there(CUdeviceptr a)
{
    struct message m = {.what = 'r', .address = a};
    ok(ask(&m));
    return (uint32_t)m.number;
}

static void put_there(CUdeviceptr a, uint32_t value)
{
    struct message m = {.what = 'w', .address = a, .number = value};
    ok(ask(&m));
}

static uint32_t word_here(CUdeviceptr a)
{
    uint32_t value = 0;
    ok(cuMemcpyDtoH_v2(&value, a, 4));
    return value;
}

static void put_here(CUdeviceptr a, uint32_t value)
{
    ok(cuMemsetD32_v2(a, value, 1));
    ok(cuCtxSynchronize());
}

static struct message opening(CUdeviceptr a)
{
    struct message m = {.what = 'o', .number = CU_IPC_MEM_LAZY_ENABLE_PEER_ACCESS};
    ok(cuIpcGetMemHandle(&m.handle.memory, a));
    return m;
}

/* ---- memory ----------------------------------------------------------------------------------------------------- */

/* Small, large, and larger than a page; what was there before the export stays; both see what either writes. */
static void test_memory_is_the_same_in_both(void **state)
{
    static const size_t sizes[] = {64, 3000, MIB, 5 * MIB};
    for (size_t i = 0; i < sizeof sizes / sizeof *sizes; i++) {
        CUdeviceptr pad, a;
        ok(cuMemAlloc_v2(&pad, 1000));
        ok(cuMemAlloc_v2(&a, sizes[i]));
        size_t end = sizes[i] - 4;
        put_here(a, 11);
        put_here(a + end, 12);
        put_here(pad, 13);
        struct message m = opening(a);
        ok(ask(&m));
        assert_int_equal(word_there(m.address), 11);
        assert_int_equal(word_there(m.address + end), 12);
        put_there(m.address + end, 21);
        assert_int_equal(word_here(a + end), 21);
        put_here(a, 22);
        assert_int_equal(word_there(m.address), 22);
        assert_int_equal(word_here(pad), 13);
        struct message past = {.what = 'w', .address = m.address + sizes[i]};
        fails(CUDA_ERROR_INVALID_VALUE, ask(&past)); /* its end is known there, too */
        m.what = 'c';
        ok(ask(&m));
        fails(CUDA_ERROR_INVALID_VALUE, ask(&m)); /* closed twice */
        struct message gone = {.what = 'r', .address = m.address};
        fails(CUDA_ERROR_INVALID_VALUE, ask(&gone));
        assert_int_equal(word_here(a), 22);
        ok(cuMemFree_v2(a));
        ok(cuMemFree_v2(pad));
    }
}

static void test_opened_again_is_the_same_address(void **state)
{
    CUdeviceptr a;
    ok(cuMemAlloc_v2(&a, 64));
    struct message m = opening(a), again = m;
    again.what = '1';
    ok(ask(&m));
    ok(ask(&again));
    assert_int_equal(again.address, m.address);
    m.what = again.what = 'c';
    ok(ask(&again));
    put_here(a, 5);
    assert_int_equal(word_there(m.address), 5); /* one use is left */
    ok(ask(&m));
    fails(CUDA_ERROR_INVALID_VALUE, ask(&m));
    ok(cuMemFree_v2(a));
}

/* The bytes move while streams are busy with them, and none is lost. */
static void test_export_amid_work_loses_nothing(void **state)
{
    enum { WORDS = 3 * MIB / 4, ROUNDS = 20, FILLS = 30 };
    static uint32_t out[WORDS];
    CUstream s[2];
    for (int i = 0; i < 2; i++)
        ok(cuStreamCreate(&s[i], CU_STREAM_NON_BLOCKING));
    for (int round = 0; round < ROUNDS; round++) {
        CUdeviceptr a;
        CUipcMemHandle h;
        ok(cuMemAlloc_v2(&a, sizeof out));
        for (unsigned i = 1; i <= FILLS; i++)
            for (int k = 0; k < 2; k++)
                ok(cuMemsetD32Async(a + (CUdeviceptr)k * WORDS * 2, i, WORDS / 2, s[k]));
        ok(cuIpcGetMemHandle(&h, a));
        for (int k = 0; k < 2; k++)
            ok(cuStreamSynchronize(s[k]));
        ok(cuMemcpyDtoH_v2(out, a, sizeof out));
        for (unsigned i = 0; i < WORDS; i++)
            if (out[i] != FILLS)
                fail_msg("round %d: word %u is %u", round, i, out[i]);
        ok(cuMemFree_v2(a));
    }
    for (int i = 0; i < 2; i++)
        ok(cuStreamDestroy_v2(s[i]));
}

/* An exporter may go on with what it freed, and nobody else sees it. */
static void test_freed_memory_is_private_again(void **state)
{
    CUdeviceptr a, b;
    ok(cuMemAlloc_v2(&a, 4 * MIB));
    put_here(a, 1);
    struct message m = opening(a);
    ok(ask(&m));
    ok(cuMemFree_v2(a));
    ok(cuMemAlloc_v2(&b, 4 * MIB));
    put_here(b, 99);
    assert_int_equal(word_there(m.address), 1);
    m.what = 'c';
    ok(ask(&m));
    ok(cuMemFree_v2(b));
}

static void test_handle_of_freed_memory_opens_nothing(void **state)
{
    static const size_t sizes[] = {64, 4 * MIB};
    for (int i = 0; i < 2; i++) {
        CUdeviceptr keep, a, b;
        ok(cuMemAlloc_v2(&keep, 64)); /* its page stays in use */
        ok(cuMemAlloc_v2(&a, sizes[i]));
        struct message m = opening(a);
        CUipcMemHandle before = m.handle.memory;
        ok(cuMemFree_v2(a));
        fails(CUDA_ERROR_INVALID_HANDLE, ask(&m));
        ok(cuMemAlloc_v2(&b, sizes[i])); /* perhaps at the same address: another handle */
        m = opening(b);
        assert_memory_not_equal(&before, &m.handle.memory, sizeof before);
        ok(ask(&m));
        m.what = 'c';
        ok(ask(&m));
        m.what = 'o';
        m.handle.memory = before;
        m.number = CU_IPC_MEM_LAZY_ENABLE_PEER_ACCESS;
        fails(CUDA_ERROR_INVALID_HANDLE, ask(&m));
        ok(cuMemFree_v2(b));
        ok(cuMemFree_v2(keep));
    }
}

static void test_memory_refuses(void **state)
{
    CUdeviceptr a, managed, opened;
    CUipcMemHandle h;
    CUmemoryPool pool;
    CUdeviceptr pooled;
    ok(cuMemAlloc_v2(&a, 256));
    ok(cuMemAllocManaged(&managed, 64, CU_MEM_ATTACH_GLOBAL));
    ok(cuDeviceGetDefaultMemPool(&pool, 0));
    ok(cuMemAllocAsync(&pooled, 64, NULL));
    fails(CUDA_ERROR_INVALID_VALUE, cuIpcGetMemHandle(NULL, a));
    fails(CUDA_ERROR_INVALID_VALUE, cuIpcGetMemHandle(&h, managed));
    fails(CUDA_ERROR_INVALID_VALUE, cuIpcGetMemHandle(&h, pooled));
    fails(CUDA_ERROR_INVALID_VALUE, cuIpcGetMemHandle(&h, 0));
    ok(cuIpcGetMemHandle(&h, a));
    fails(CUDA_ERROR_INVALID_CONTEXT, cuIpcOpenMemHandle_v2(&opened, h, 1)); /* in the same process */
    fails(CUDA_ERROR_INVALID_VALUE, cuIpcOpenMemHandle_v2(&opened, h, 0));
    fails(CUDA_ERROR_INVALID_VALUE, cuIpcOpenMemHandle_v2(NULL, h, 1));
    fails(CUDA_ERROR_INVALID_VALUE, cuIpcCloseMemHandle(a)); /* its own */
    fails(CUDA_ERROR_INVALID_VALUE, cuIpcCloseMemHandle(0));
    struct message m = opening(a);
    m.number = 0;
    fails(CUDA_ERROR_INVALID_VALUE, ask(&m));
    m = opening(a);
    memset(&m.handle, 0x5a, sizeof m.handle);
    fails(CUDA_ERROR_INVALID_HANDLE, ask(&m));
    m = opening(a);
    ok(ask(&m));
    m.what = 'f'; /* is closed, not freed */
    fails(CUDA_ERROR_INVALID_VALUE, ask(&m));
    m.what = 'c';
    ok(ask(&m));
    ok(cuMemFree_v2(a));
    ok(cuMemFree_v2(managed));
    ok(cuMemFreeAsync(pooled, NULL));
}

/* The other way round, with a kernel's view: what this process imported ends with the context it was opened in. */
static void test_imported_memory_ends_with_its_context(void **state)
{
    struct message m = {.what = 'x', .bytes = 4 * MIB};
    CUcontext c;
    CUdeviceptr a, again;
    ok(ask(&m));
    ok(cuCtxCreate_v2(&c, 0, 0));
    ok(cuIpcOpenMemHandle_v2(&a, m.handle.memory, CU_IPC_MEM_LAZY_ENABLE_PEER_ACCESS));
    ok(cuMemsetD32_v2(a, 7, MIB));
    ok(cuCtxSynchronize());
    ok(cuCtxDestroy_v2(c));
    fails(CUDA_ERROR_INVALID_VALUE, cuMemcpyDtoH_v2(&c, a, 4));
    fails(CUDA_ERROR_INVALID_VALUE, cuIpcCloseMemHandle(a));
    ok(cuIpcOpenMemHandle_v2(&again, m.handle.memory, CU_IPC_MEM_LAZY_ENABLE_PEER_ACCESS));
    assert_int_equal(word_here(again + 4 * MIB - 4), 7);
    ok(cuIpcCloseMemHandle(again));
    struct message y = {.what = 'y'};
    ok(ask(&y));
    fails(CUDA_ERROR_INVALID_HANDLE,
          cuIpcOpenMemHandle_v2(&again, m.handle.memory, CU_IPC_MEM_LAZY_ENABLE_PEER_ACCESS));
}

/* ---- descriptors ------------------------------------------------------------------------------------------------ */

static CUresult create_shared(CUmemGenericAllocationHandle *h, size_t bytes, CUmemAllocationHandleType type)
{
    CUmemAllocationProp prop = {.type = CU_MEM_ALLOCATION_TYPE_PINNED,
                                .requestedHandleTypes = type,
                                .location = {.type = CU_MEM_LOCATION_TYPE_DEVICE, .id = 0}};
    return cuMemCreate(h, bytes, &prop, 0);
}

static void test_descriptor_of_mapped_memory(void **state)
{
    const CUmemAccessDesc desc = {{.type = CU_MEM_LOCATION_TYPE_DEVICE, .id = 0}, CU_MEM_ACCESS_FLAGS_PROT_READWRITE};
    CUmemGenericAllocationHandle h;
    CUdeviceptr a;
    int fd = -1;
    ok(create_shared(&h, 4 * MIB, CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR));
    ok(cuMemAddressReserve(&a, 4 * MIB, 0, 0, 0));
    ok(cuMemMap(a, 4 * MIB, 0, h, 0));
    ok(cuMemSetAccess(a, 4 * MIB, &desc, 1));
    put_here(a + 4 * MIB - 4, 31);
    ok(cuMemExportToShareableHandle(&fd, h, CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR, 0));
    struct message m = {.what = 'd', .bytes = 4 * MIB};
    ok(ask_with(&m, fd));
    close(fd);
    assert_int_equal(word_there(m.address + 4 * MIB - 4), 31);
    put_there(m.address, 32);
    assert_int_equal(word_here(a), 32);
    /* The memory lives as long as either has it. */
    ok(cuMemUnmap(a, 4 * MIB));
    ok(cuMemRelease(h));
    assert_int_equal(word_there(m.address), 32);
    m.what = 'u';
    ok(ask(&m));
    ok(cuMemAddressFree(a, 4 * MIB));
}

static void test_descriptor_may_be_imported_here(void **state)
{
    CUmemGenericAllocationHandle h, same;
    CUmemAllocationProp prop;
    int fd, second;
    ok(create_shared(&h, 2 * MIB, CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR));
    ok(cuMemExportToShareableHandle(&fd, h, CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR, 0));
    ok(cuMemImportFromShareableHandle(&same, (void *)(intptr_t)fd, CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR));
    ok(cuMemGetAllocationPropertiesFromHandle(&prop, same));
    assert_int_equal(prop.requestedHandleTypes, CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR);
    assert_int_equal(prop.location.id, 0);
    ok(cuMemExportToShareableHandle(&second, same, CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR, 0)); /* and passed on */
    close(second);
    close(fd);
    ok(cuMemRelease(same));
    ok(cuMemRelease(h));
}

static void test_descriptor_refuses(void **state)
{
    CUmemGenericAllocationHandle plain, shared, h;
    int fd, pipe_ends[2];
    ok(create_shared(&plain, 2 * MIB, CU_MEM_HANDLE_TYPE_NONE));
    ok(create_shared(&shared, 2 * MIB, CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR));
    const CUmemAllocationHandleType type = CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR;
    fails(CUDA_ERROR_NOT_SUPPORTED, create_shared(&h, 2 * MIB, CU_MEM_HANDLE_TYPE_FABRIC));
    fails(CUDA_ERROR_INVALID_VALUE, cuMemExportToShareableHandle(&fd, plain, type, 0));
    fails(CUDA_ERROR_INVALID_VALUE, cuMemExportToShareableHandle(NULL, shared, type, 0));
    fails(CUDA_ERROR_INVALID_VALUE, cuMemExportToShareableHandle(&fd, shared, type, 1));
    fails(CUDA_ERROR_INVALID_VALUE, cuMemExportToShareableHandle(&fd, 1234, type, 0));
    fails(CUDA_ERROR_NOT_SUPPORTED, cuMemExportToShareableHandle(&fd, shared, CU_MEM_HANDLE_TYPE_FABRIC, 0));
    assert_int_equal(pipe(pipe_ends), 0);
    fails(CUDA_ERROR_INVALID_VALUE, cuMemImportFromShareableHandle(&h, (void *)(intptr_t)pipe_ends[0], type));
    fails(CUDA_ERROR_INVALID_VALUE, cuMemImportFromShareableHandle(&h, (void *)(intptr_t)-1, type));
    fails(CUDA_ERROR_INVALID_VALUE, cuMemImportFromShareableHandle(NULL, (void *)(intptr_t)pipe_ends[0], type));
    fails(CUDA_ERROR_NOT_SUPPORTED, cuMemImportFromShareableHandle(&h, NULL, CU_MEM_HANDLE_TYPE_FABRIC));
    close(pipe_ends[0]);
    close(pipe_ends[1]);
    ok(cuMemRelease(plain));
    ok(cuMemRelease(shared));
}

/* ---- pools ------------------------------------------------------------------------------------------------------ */

static CUmemoryPool shared_pool(void)
{
    CUmemoryPool pool;
    CUmemPoolProps props = {.allocType = CU_MEM_ALLOCATION_TYPE_PINNED,
                            .handleTypes = CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR,
                            .location = {.type = CU_MEM_LOCATION_TYPE_DEVICE, .id = 0}};
    ok(cuMemPoolCreate(&pool, &props));
    return pool;
}

static void test_pool_and_its_memory(void **state)
{
    CUmemoryPool pool = shared_pool();
    CUdeviceptr a;
    int fd;
    ok(cuMemAllocFromPoolAsync(&a, 3000, pool, NULL));
    put_here(a + 2996, 41);
    ok(cuMemPoolExportToShareableHandle(&fd, pool, CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR, 0));
    struct message p = {.what = 'p'};
    ok(ask_with(&p, fd));
    close(fd);
    for (int i = 0; i < 2; i++) { /* freed at once, and in stream order */
        struct message m = {.what = 'q'};
        ok(cuMemPoolExportPointer(&m.handle.pointer, a));
        ok(ask(&m));
        assert_int_equal(word_there(m.address + 2996), 41);
        put_there(m.address, 42);
        assert_int_equal(word_here(a), 42);
        m.what = i ? 'F' : 'f';
        ok(ask(&m));
        fails(CUDA_ERROR_INVALID_VALUE, ask(&m));
        assert_int_equal(word_here(a), 42);
    }
    struct message m = {.what = 'a'};
    fails(CUDA_ERROR_INVALID_VALUE, ask(&m)); /* an imported pool gives nothing out */
    m.what = 's';
    fails(CUDA_ERROR_INVALID_VALUE, ask(&m));
    m = (struct message){.what = 'q'};
    ok(cuMemPoolExportPointer(&m.handle.pointer, a));
    ok(cuMemFreeAsync(a, NULL));
    ok(cuCtxSynchronize());
    fails(CUDA_ERROR_INVALID_VALUE, ask(&m)); /* freed memory */
    ok(cuMemPoolDestroy(pool));
}

static void test_pool_refuses(void **state)
{
    const CUmemAllocationHandleType type = CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR;
    CUmemoryPool pool = shared_pool(), second = shared_pool(), plain, imported;
    CUmemPoolPtrExportData data;
    CUdeviceptr a, b, out;
    int fd, fd2;
    ok(cuDeviceGetDefaultMemPool(&plain, 0));
    fails(CUDA_ERROR_INVALID_VALUE, cuMemPoolExportToShareableHandle(&fd, plain, type, 0));
    fails(CUDA_ERROR_INVALID_VALUE, cuMemPoolExportToShareableHandle(&fd, pool, type, 1));
    fails(CUDA_ERROR_INVALID_VALUE, cuMemPoolExportToShareableHandle(NULL, pool, type, 0));
    fails(CUDA_ERROR_INVALID_VALUE, cuMemPoolExportToShareableHandle(&fd, pool, CU_MEM_HANDLE_TYPE_FABRIC, 0));
    ok(cuMemAllocFromPoolAsync(&a, 64, pool, NULL));
    ok(cuMemAllocAsync(&b, 64, NULL));
    fails(CUDA_ERROR_INVALID_VALUE, cuMemPoolExportPointer(&data, a)); /* the pool comes first */
    ok(cuMemPoolExportToShareableHandle(&fd, pool, type, 0));
    ok(cuMemPoolExportToShareableHandle(&fd2, second, type, 0));
    fails(CUDA_ERROR_INVALID_VALUE, cuMemPoolExportPointer(&data, b));
    fails(CUDA_ERROR_INVALID_VALUE, cuMemPoolExportPointer(NULL, a));
    ok(cuMemPoolExportPointer(&data, a));
    fails(CUDA_ERROR_INVALID_VALUE, cuMemPoolImportFromShareableHandle(&imported, (void *)(intptr_t)fd, type, 1));
    fails(CUDA_ERROR_INVALID_VALUE, cuMemPoolImportFromShareableHandle(NULL, (void *)(intptr_t)fd, type, 0));
    fails(CUDA_ERROR_INVALID_VALUE, cuMemPoolImportFromShareableHandle(&imported, (void *)(intptr_t)-1, type, 0));
    ok(cuMemPoolImportFromShareableHandle(&imported, (void *)(intptr_t)fd2, type, 0));
    fails(CUDA_ERROR_INVALID_VALUE, cuMemPoolImportPointer(&out, imported, &data)); /* of the other pool */
    fails(CUDA_ERROR_INVALID_VALUE, cuMemPoolImportPointer(&out, pool, &data));     /* not imported */
    fails(CUDA_ERROR_INVALID_VALUE, cuMemPoolImportPointer(NULL, imported, &data));
    fails(CUDA_ERROR_INVALID_VALUE, cuMemPoolImportPointer(&out, imported, NULL));
    close(fd);
    close(fd2);
    ok(cuMemFreeAsync(a, NULL));
    ok(cuMemFreeAsync(b, NULL));
    ok(cuCtxSynchronize());
    ok(cuMemPoolDestroy(imported));
    ok(cuMemPoolDestroy(second));
    ok(cuMemPoolDestroy(pool));
}

/* ---- events ----------------------------------------------------------------------------------------------------- */

static CUevent shared_event(struct message *m)
{
    CUevent e;
    ok(cuEventCreate(&e, CU_EVENT_DISABLE_TIMING | CU_EVENT_INTERPROCESS));
    *m = (struct message){.what = 'e'};
    ok(cuIpcGetEventHandle(&m->handle.event, e));
    ok(ask(m));
    return e;
}

/* What the other process recorded is waited for here, and what is recorded here is waited for there. */
static void test_event_orders_both_ways(void **state)
{
    struct message m, memory;
    struct gate g = {0};
    atomic_bool flag = false;
    CUdeviceptr a;
    CUstream s;
    ok(cuMemAlloc_v2(&a, 64));
    memory = opening(a);
    ok(ask(&memory));
    CUevent e = shared_event(&m);
    ok(cuEventQuery(e)); /* never recorded */
    m = (struct message){.what = 'E', .address = memory.address, .number = 51};
    ok(ask(&m));
    ok(cuStreamCreate(&s, CU_STREAM_NON_BLOCKING));
    ok(cuStreamWaitEvent(s, e, 0));
    uint32_t value = 0;
    ok(cuMemcpyDtoHAsync_v2(&value, a, 4, s));
    ok(cuStreamSynchronize(s));
    assert_int_equal(value, 51);
    ok(cuEventSynchronize(e));
    /* Now from here, held up. */
    ok(cuLaunchHostFunc(s, wait_at, &g));
    ok(cuMemsetD32Async(a, 52, 1, s));
    ok(cuEventRecord(e, s));
    fails(CUDA_ERROR_NOT_READY, cuEventQuery(e));
    m = (struct message){.what = 'Q'};
    fails(CUDA_ERROR_NOT_READY, ask(&m));
    CUstream t;
    ok(cuStreamCreate(&t, CU_STREAM_NON_BLOCKING));
    ok(cuStreamWaitEvent(t, e, 0));
    ok(cuLaunchHostFunc(t, set_flag, &flag));
    assert_true(not_yet(&flag));
    m = (struct message){.what = 'W', .address = memory.address};
    assert_true(say(&m, -1)); /* it waits there, while this process lets go */
    sleep_ms(10);
    atomic_store(&g.open, true);
    int none;
    assert_true(hear(&m, &none));
    ok(m.result);
    assert_int_equal(m.number, 52);
    m = (struct message){.what = 'S'};
    ok(ask(&m));
    ok(cuEventSynchronize(e));
    assert_true(soon(&flag));
    m = (struct message){.what = 'D'};
    ok(ask(&m));
    ok(cuEventDestroy_v2(e));
    memory.what = 'c';
    ok(ask(&memory));
    ok(cuStreamDestroy_v2(s));
    ok(cuStreamDestroy_v2(t));
    ok(cuMemFree_v2(a));
}

/* An event may be destroyed while work waits for it. */
static void test_event_destroyed_with_waits(void **state)
{
    struct gate g = {0};
    atomic_bool flag = false;
    CUstream s, t;
    CUevent e;
    ok(cuStreamCreate(&s, CU_STREAM_NON_BLOCKING));
    ok(cuStreamCreate(&t, CU_STREAM_NON_BLOCKING));
    ok(cuEventCreate(&e, CU_EVENT_DISABLE_TIMING | CU_EVENT_INTERPROCESS));
    ok(cuLaunchHostFunc(s, wait_at, &g));
    ok(cuEventRecord(e, s));
    ok(cuStreamWaitEvent(t, e, 0));
    ok(cuLaunchHostFunc(t, set_flag, &flag));
    ok(cuEventDestroy_v2(e));
    assert_true(not_yet(&flag));
    atomic_store(&g.open, true);
    assert_true(soon(&flag));
    ok(cuCtxSynchronize());
    ok(cuStreamDestroy_v2(s));
    ok(cuStreamDestroy_v2(t));
}

static void test_event_refuses(void **state)
{
    CUevent plain, e, opened;
    CUipcEventHandle h;
    float ms;
    ok(cuEventCreate(&plain, CU_EVENT_DISABLE_TIMING));
    fails(CUDA_ERROR_INVALID_VALUE, cuEventCreate(&e, CU_EVENT_INTERPROCESS)); /* only without timing */
    ok(cuEventCreate(&e, CU_EVENT_DISABLE_TIMING | CU_EVENT_INTERPROCESS));
    fails(CUDA_ERROR_INVALID_HANDLE, cuIpcGetEventHandle(&h, plain));
    fails(CUDA_ERROR_INVALID_HANDLE, cuIpcGetEventHandle(&h, (CUevent)&h));
    fails(CUDA_ERROR_INVALID_VALUE, cuIpcGetEventHandle(NULL, e));
    ok(cuIpcGetEventHandle(&h, e));
    fails(CUDA_ERROR_INVALID_CONTEXT, cuIpcOpenEventHandle(&opened, h)); /* in the same process */
    fails(CUDA_ERROR_INVALID_VALUE, cuIpcOpenEventHandle(NULL, h));
    fails(CUDA_ERROR_INVALID_HANDLE, cuEventElapsedTime(&ms, e, e));
    struct message m = {.what = 'e', .handle.event = h};
    ok(ask(&m));
    m.what = 'g';
    fails(CUDA_ERROR_INVALID_HANDLE, ask(&m)); /* handed on only by its maker */
    m.what = 'D';
    ok(ask(&m));
    ok(cuEventDestroy_v2(e));
    m = (struct message){.what = 'e', .handle.event = h};
    fails(CUDA_ERROR_INVALID_HANDLE, ask(&m));
    memset(&m.handle, 0x11, sizeof m.handle);
    fails(CUDA_ERROR_INVALID_HANDLE, ask(&m));
    ok(cuEventDestroy_v2(plain));
}

static void test_pointer_attributes(void **state)
{
    unsigned capable = 42;
    int value;
    CUdeviceptr a, pooled;
    ok(cuMemAlloc_v2(&a, 64));
    ok(cuMemAllocAsync(&pooled, 64, NULL));
    ok(cuPointerGetAttribute(&capable, CU_POINTER_ATTRIBUTE_IS_LEGACY_CUDA_IPC_CAPABLE, a));
    assert_int_equal(capable, 1);
    ok(cuPointerGetAttribute(&capable, CU_POINTER_ATTRIBUTE_IS_LEGACY_CUDA_IPC_CAPABLE, pooled));
    assert_int_equal(capable, 0);
    CUmemAccessDesc desc = {{.type = CU_MEM_LOCATION_TYPE_DEVICE, .id = 0}, CU_MEM_ACCESS_FLAGS_PROT_READ};
    CUmemGenericAllocationHandle h;
    CUmemoryPool pool = shared_pool();
    unsigned long long types = 42;
    CUdeviceptr va, in_pool;
    ok(cuPointerGetAttribute(&types, CU_POINTER_ATTRIBUTE_ALLOWED_HANDLE_TYPES, a));
    assert_int_equal(types, 0);
    ok(cuMemAllocFromPoolAsync(&in_pool, 64, pool, NULL));
    ok(cuPointerGetAttribute(&types, CU_POINTER_ATTRIBUTE_ALLOWED_HANDLE_TYPES, in_pool));
    assert_int_equal(types, CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR);
    ok(create_shared(&h, 2 * MIB, CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR));
    ok(cuMemAddressReserve(&va, 2 * MIB, 0, 0, 0));
    ok(cuMemMap(va, 2 * MIB, 0, h, 0));
    ok(cuPointerGetAttribute(&types, CU_POINTER_ATTRIBUTE_ALLOWED_HANDLE_TYPES, va));
    assert_int_equal(types, CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR);
    ok(cuPointerGetAttribute(&value, CU_POINTER_ATTRIBUTE_ACCESS_FLAGS, va));
    assert_int_equal(value, CU_POINTER_ATTRIBUTE_ACCESS_FLAG_NONE);
    ok(cuMemSetAccess(va, 2 * MIB, &desc, 1));
    ok(cuPointerGetAttribute(&value, CU_POINTER_ATTRIBUTE_ACCESS_FLAGS, va));
    assert_int_equal(value, CU_POINTER_ATTRIBUTE_ACCESS_FLAG_READ);
    ok(cuPointerGetAttribute(&value, CU_POINTER_ATTRIBUTE_ACCESS_FLAGS, a));
    assert_int_equal(value, CU_POINTER_ATTRIBUTE_ACCESS_FLAG_READWRITE);
    ok(cuMemUnmap(va, 2 * MIB));
    ok(cuMemAddressFree(va, 2 * MIB));
    ok(cuMemRelease(h));
    ok(cuMemFreeAsync(in_pool, NULL));
    ok(cuCtxSynchronize());
    ok(cuMemPoolDestroy(pool));
    ok(cuDeviceGetAttribute(&value, CU_DEVICE_ATTRIBUTE_IPC_EVENT_SUPPORTED, 0));
    assert_int_equal(value, 1);
    ok(cuDeviceGetAttribute(&value, CU_DEVICE_ATTRIBUTE_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR_SUPPORTED, 0));
    assert_int_equal(value, 1);
    ok(cuDeviceGetAttribute(&value, CU_DEVICE_ATTRIBUTE_MEMPOOL_SUPPORTED_HANDLE_TYPES, 0));
    assert_int_equal(value, CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR);
    ok(cuMemFree_v2(a));
    ok(cuMemFreeAsync(pooled, NULL));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_memory_is_the_same_in_both),
        cmocka_unit_test(test_opened_again_is_the_same_address),
        cmocka_unit_test(test_export_amid_work_loses_nothing),
        cmocka_unit_test(test_freed_memory_is_private_again),
        cmocka_unit_test(test_handle_of_freed_memory_opens_nothing),
        cmocka_unit_test(test_memory_refuses),
        cmocka_unit_test(test_imported_memory_ends_with_its_context),
        cmocka_unit_test(test_descriptor_of_mapped_memory),
        cmocka_unit_test(test_descriptor_may_be_imported_here),
        cmocka_unit_test(test_descriptor_refuses),
        cmocka_unit_test(test_pool_and_its_memory),
        cmocka_unit_test(test_pool_refuses),
        cmocka_unit_test(test_event_orders_both_ways),
        cmocka_unit_test(test_event_destroyed_with_waits),
        cmocka_unit_test(test_event_refuses),
        cmocka_unit_test(test_pointer_attributes),
    };
    return cmocka_run_group_tests(tests, start, stop);
}
