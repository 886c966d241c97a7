/* nccl_stub.c - a libnccl.so.2 for tests: all ranks in one process, data moved through the host by driver calls.
 *
 * Written from NCCL's public documentation; prototypes from shim/nccl_api.h. As with the real library a call inside a
 * group only notes what is wanted; the group's end does it, for all ranks at once. Sums, products, minima and maxima of
 * float, double and int32.
 */
#include <cuda.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "shim/nccl_api.h"

ncclResult_t ncclGetVersion(int *version);
ncclResult_t ncclGetUniqueId(ncclUniqueId *id);
ncclResult_t ncclCommUserRank(ncclComm_t comm, int *rank);

enum { INVALID = 4 /* ncclInvalidArgument */, CUDA_FAILED = 1, QUEUE = 64, RANKS = 16 };
enum kind { ALL_REDUCE, BROADCAST, REDUCE, ALL_GATHER, REDUCE_SCATTER, SEND, RECEIVE };

struct ncclComm {
    int rank, ranks;
    struct ncclComm **clique; /* all ranks of it */
};
struct operation {
    enum kind kind;
    const void *send;
    void *receive;
    size_t count;
    int type, reduction, peer; /* peer: or root */
    struct ncclComm *comm;
    CUstream stream;
    bool done;
};

static _Thread_local struct operation queue[QUEUE];
static _Thread_local int queued, depth;

static size_t type_bytes(int type)
{
    static const size_t bytes[] = {1, 1, 4, 4, 8, 8, 2, 4, 8, 2};
    return type >= 0 && type < 10 ? bytes[type] : 0;
}

static bool fetch(void *to, const void *from, size_t bytes, CUstream stream)
{
    return cuMemcpyDtoHAsync(to, (CUdeviceptr)(uintptr_t)from, bytes, stream) == CUDA_SUCCESS &&
           cuStreamSynchronize(stream) == CUDA_SUCCESS;
}

static bool put(void *to, const void *from, size_t bytes, CUstream stream)
{
    return cuMemcpyHtoDAsync((CUdeviceptr)(uintptr_t)to, from, bytes, stream) == CUDA_SUCCESS &&
           cuStreamSynchronize(stream) == CUDA_SUCCESS;
}

#define COMBINE(type)                                                                                                  \
    do {                                                                                                               \
        type *a = into;                                                                                                \
        const type *b = from;                                                                                          \
        for (size_t i = 0; i < count; i++)                                                                             \
            a[i] = reduction == 0   ? a[i] + b[i]                                                                      \
                   : reduction == 1 ? a[i] * b[i]                                                                      \
                   : reduction == 2 ? (a[i] > b[i] ? a[i] : b[i])                                                      \
                                    : (a[i] < b[i] ? a[i] : b[i]);                                                     \
    } while (0)

static bool combine(void *into, const void *from, size_t count, int type, int reduction)
{
    if (reduction < 0 || reduction > 3)
        return false;
    if (type == 7)
        COMBINE(float);
    else if (type == 8)
        COMBINE(double);
    else if (type == 2)
        COMBINE(int32_t);
    else
        return false;
    return true;
}

/* What each rank sends, one behind the other: `count` elements of each. Owned by the caller. */
static uint8_t *gather(struct operation *const *all, int ranks, size_t bytes)
{
    uint8_t *data = calloc((size_t)ranks + 1, bytes + 1); /* a rank may send nothing */
    for (int r = 0; data && r < ranks; r++)
        if (all[r]->send && !fetch(data + bytes * (size_t)r, all[r]->send, bytes, all[r]->stream)) {
            free(data);
            return NULL;
        }
    return data;
}

static bool together(struct operation *const *all, int ranks)
{
    const struct operation *first = all[0];
    if (!first)
        return false;
    size_t one = first->count * type_bytes(first->type), n = (size_t)ranks;
    bool scatters = first->kind == REDUCE_SCATTER, ok = true;
    uint8_t *data = gather(all, ranks, scatters ? one * n : one);
    if (!data)
        return false;
    bool reduces = first->kind == ALL_REDUCE || first->kind == REDUCE || scatters;
    for (size_t r = 1; reduces && ok && r < n; r++)
        ok = combine(data, data + r * one * (scatters ? n : 1), first->count * (scatters ? n : 1), first->type,
                     first->reduction);
    for (int r = 0; ok && r < ranks; r++) {
        const uint8_t *from = first->kind == BROADCAST ? data + one * (size_t)first->peer
                              : scatters               ? data + one * (size_t)r
                                                       : data;
        if (first->kind == REDUCE && r != first->peer)
            continue;
        ok = put(all[r]->receive, from, first->kind == ALL_GATHER ? one * n : one, all[r]->stream);
    }
    free(data);
    for (int r = 0; r < ranks; r++)
        all[r]->done = true;
    return ok;
}

/* The first undone operation of a rank of the clique. */
static struct operation *next_of(const struct ncclComm *comm)
{
    for (int i = 0; i < queued; i++)
        if (!queue[i].done && queue[i].comm == comm)
            return &queue[i];
    return NULL;
}

static bool exchange(struct operation *send)
{
    for (int i = 0; i < queued; i++) {
        struct operation *r = &queue[i];
        if (r->done || r->kind != RECEIVE || r->comm != send->comm->clique[send->peer] || r->peer != send->comm->rank)
            continue;
        size_t bytes = send->count * type_bytes(send->type);
        void *data = malloc(bytes + 1);
        bool ok = data && fetch(data, send->send, bytes, send->stream) && put(r->receive, data, bytes, r->stream);
        free(data);
        send->done = r->done = true;
        return ok;
    }
    return false;
}

static ncclResult_t run(void)
{
    bool ok = true;
    for (int i = 0; ok && i < queued; i++)
        if (!queue[i].done && queue[i].kind == SEND)
            ok = exchange(&queue[i]);
    for (int i = 0; ok && i < queued; i++) {
        struct operation *all[RANKS] = {NULL}, *op = &queue[i];
        if (op->done)
            continue;
        for (int r = 0; ok && r < op->comm->ranks; r++)
            ok = (all[r] = next_of(op->comm->clique[r])) && all[r]->kind == op->kind && all[r]->count == op->count;
        ok = ok && together(all, op->comm->ranks);
    }
    queued = 0;
    return ok ? ncclSuccess : (ncclResult_t)INVALID;
}

static ncclResult_t want(struct operation op)
{
    if (!op.comm || queued == QUEUE || !type_bytes(op.type))
        return (ncclResult_t)INVALID;
    queue[queued++] = op;
    return depth ? ncclSuccess : run();
}

ncclResult_t ncclAllReduce(const void *sendbuff, void *recvbuff, size_t count, ncclDataType_t datatype, ncclRedOp_t op,
                           ncclComm_t comm, cudaStream_t stream)
{
    return want(
        (struct operation){ALL_REDUCE, sendbuff, recvbuff, count, datatype, op, 0, comm, (CUstream)stream, false});
}

ncclResult_t ncclBroadcast(const void *sendbuff, void *recvbuff, size_t count, ncclDataType_t datatype, int root,
                           ncclComm_t comm, cudaStream_t stream)
{
    return want(
        (struct operation){BROADCAST, sendbuff, recvbuff, count, datatype, 0, root, comm, (CUstream)stream, false});
}

ncclResult_t ncclReduce(const void *sendbuff, void *recvbuff, size_t count, ncclDataType_t datatype, ncclRedOp_t op,
                        int root, ncclComm_t comm, cudaStream_t stream)
{
    return want(
        (struct operation){REDUCE, sendbuff, recvbuff, count, datatype, op, root, comm, (CUstream)stream, false});
}

ncclResult_t ncclAllGather(const void *sendbuff, void *recvbuff, size_t sendcount, ncclDataType_t datatype,
                           ncclComm_t comm, cudaStream_t stream)
{
    return want(
        (struct operation){ALL_GATHER, sendbuff, recvbuff, sendcount, datatype, 0, 0, comm, (CUstream)stream, false});
}

ncclResult_t ncclReduceScatter(const void *sendbuff, void *recvbuff, size_t recvcount, ncclDataType_t datatype,
                               ncclRedOp_t op, ncclComm_t comm, cudaStream_t stream)
{
    return want((struct operation){REDUCE_SCATTER, sendbuff, recvbuff, recvcount, datatype, op, 0, comm,
                                   (CUstream)stream, false});
}

ncclResult_t ncclSend(const void *sendbuff, size_t count, ncclDataType_t datatype, int peer, ncclComm_t comm,
                      cudaStream_t stream)
{
    return want((struct operation){SEND, sendbuff, NULL, count, datatype, 0, peer, comm, (CUstream)stream, false});
}

ncclResult_t ncclRecv(void *recvbuff, size_t count, ncclDataType_t datatype, int peer, ncclComm_t comm,
                      cudaStream_t stream)
{
    return want((struct operation){RECEIVE, NULL, recvbuff, count, datatype, 0, peer, comm, (CUstream)stream, false});
}

ncclResult_t ncclGroupStart(void)
{
    depth++;
    return ncclSuccess;
}

ncclResult_t ncclGroupEnd(void)
{
    if (!depth)
        return (ncclResult_t)INVALID;
    return --depth ? ncclSuccess : run();
}

ncclResult_t ncclCommInitAll(ncclComm_t *comm, int ndev, const int *devlist)
{
    if (!comm || ndev < 1 || ndev > RANKS || cuInit(0) != CUDA_SUCCESS) /* the real one uses the driver here, too */
        return (ncclResult_t)INVALID;
    struct ncclComm **clique = calloc((size_t)ndev, sizeof(void *)), *all = calloc((size_t)ndev, sizeof *all);
    if (!clique || !all) {
        free(clique);
        free(all);
        return (ncclResult_t)INVALID;
    }
    for (int r = 0; r < ndev; r++) {
        all[r] = (struct ncclComm){r, ndev, clique};
        comm[r] = clique[r] = &all[r];
    }
    return ncclSuccess;
}

/* The communicator of a lone rank; more processes are not this stub's business. */
ncclResult_t ncclCommInitRank(ncclComm_t *comm, int nranks, ncclUniqueId commId, int rank)
{
    return nranks == 1 && rank == 0 ? ncclCommInitAll(comm, 1, NULL) : (ncclResult_t)INVALID;
}

ncclResult_t ncclCommDestroy(ncclComm_t comm)
{
    if (comm && comm->rank == 0) { /* all ranks' memory is one */
        free(comm->clique);
        free(comm);
    }
    return ncclSuccess;
}

ncclResult_t ncclCommUserRank(ncclComm_t comm, int *rank)
{
    *rank = comm->rank;
    return ncclSuccess;
}

ncclResult_t ncclGetUniqueId(ncclUniqueId *id)
{
    memset(id, 7, sizeof *id);
    return ncclSuccess;
}

ncclResult_t ncclGetVersion(int *version)
{
    *version = 22700;
    return ncclSuccess;
}
