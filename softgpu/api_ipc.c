/* Handles of memory for other processes, and those of others opened here. Events' are in api_event.c. */
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "softgpu/ipc.h"

/* What this process opened, by context: opened again it is the same memory, with one more use. */
struct opened {
    struct context *context;
    uint64_t file, export_; /* what was opened */
    uint64_t address, id;   /* of the allocation here */
    unsigned uses;
    struct opened *next;
};
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER; /* before context's */
static struct opened *list;

CUresult cuIpcGetMemHandle(CUipcMemHandle *pHandle, CUdeviceptr dptr)
{
    struct context *c;
    struct allocation a;
    struct share_handle h;
    CUresult result = enter_context(&c);
    if (result != CUDA_SUCCESS)
        return result;
    if (!pHandle || !memory_lookup(dptr, &a) || a.kind != MEMORY_DEVICE)
        return CUDA_ERROR_INVALID_VALUE;
    result = ipc_export(&a, &h);
    if (result == CUDA_SUCCESS) {
        memset(pHandle, 0, sizeof *pHandle);
        memcpy(pHandle, &h, sizeof h);
    }
    return result;
}

/* With the lock: the entry of what is still open; others are forgotten, since their contexts have ended. */
static struct opened **find(const struct context *context, uint64_t file, uint64_t export_id, uint64_t address)
{
    struct opened **at = &list;
    while (*at) {
        struct opened *o = *at;
        struct allocation a;
        if (!memory_lookup(o->address, &a) || a.id != o->id) {
            *at = o->next;
            free(o);
            continue;
        }
        if (address ? o->address == address : o->context == context && o->file == file && o->export_ == export_id)
            break;
        at = &o->next;
    }
    return at;
}

static CUresult open_new(struct context *c, const struct share_handle *h, uint64_t *address)
{
    struct allocation a;
    struct opened *o = calloc(1, sizeof *o);
    if (!o)
        return CUDA_ERROR_OUT_OF_MEMORY;
    CUresult result = ipc_import(c, NULL, h, address);
    if (result != CUDA_SUCCESS || !memory_lookup(*address, &a)) {
        free(o);
        return result;
    }
    *o = (struct opened){c, h->id, h->export_, *address, a.id, 1, list};
    list = o;
    return CUDA_SUCCESS;
}

CUresult cuIpcOpenMemHandle_v2(CUdeviceptr *pdptr, CUipcMemHandle handle, unsigned int Flags)
{
    struct context *c;
    struct share_handle h;
    uint64_t address = 0;
    CUresult result = enter_context(&c);
    if (result != CUDA_SUCCESS)
        return result;
    if (!pdptr || Flags != CU_IPC_MEM_LAZY_ENABLE_PEER_ACCESS)
        return CUDA_ERROR_INVALID_VALUE;
    memcpy(&h, &handle, sizeof h);
    if (h.kind != SHARE_MEMORY || !h.export_)
        return CUDA_ERROR_INVALID_HANDLE;
    if (h.pid == getpid())
        return CUDA_ERROR_INVALID_CONTEXT; /* handles are for other processes */
    pthread_mutex_lock(&lock);
    struct opened *o = *find(c, h.id, h.export_, 0);
    if (o) {
        o->uses++;
        address = o->address;
    } else {
        result = open_new(c, &h, &address);
    }
    pthread_mutex_unlock(&lock);
    if (result == CUDA_SUCCESS)
        *pdptr = address;
    return result;
}

/* The first version, of before there were flags that had to be given. */
CUresult cuIpcOpenMemHandle(CUdeviceptr *pdptr, CUipcMemHandle handle, unsigned int Flags)
{
    return cuIpcOpenMemHandle_v2(pdptr, handle, Flags);
}

CUresult cuIpcCloseMemHandle(CUdeviceptr dptr)
{
    struct context *c;
    CUresult result = enter_context(&c);
    if (result != CUDA_SUCCESS)
        return result;
    result = engine_wait_device(); /* what may still use it */
    if (result != CUDA_SUCCESS)
        return result;
    pthread_mutex_lock(&lock);
    struct opened **at = dptr ? find(NULL, 0, 0, dptr) : NULL, *o = at ? *at : NULL;
    if (!o) {
        result = CUDA_ERROR_INVALID_VALUE;
    } else if (--o->uses == 0) {
        *at = o->next;
        free(o);
        result = memory_free(dptr, 1u << MEMORY_IMPORTED);
    }
    pthread_mutex_unlock(&lock);
    return result;
}
