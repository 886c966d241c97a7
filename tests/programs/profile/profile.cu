/* A program that profiles itself with CUPTI, as tools do: kernels, copies and calls of two streams,
 * put together by their correlation ids, with its own phases as external ids. Prints the same in
 * every run; exit 1 when something is wrong. */
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <map>
#include <set>
#include <string>
#include <vector>

#include <cupti.h>

enum { N = 1000, PHASE_LOAD = 1, PHASE_WORK, PHASE_STORE };

static int wrong;
#define CHECK(condition)                                                                           \
    do {                                                                                           \
        if (!(condition)) {                                                                        \
            printf("line %d: %s\n", __LINE__, #condition);                                         \
            wrong = 1;                                                                             \
        }                                                                                          \
    } while (0)

__global__ void scale(float *x, float by, int n)
{
    __shared__ float tile[64];
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    tile[threadIdx.x] = i < n ? x[i] : 0;
    __syncthreads();
    if (i < n)
        x[i] = tile[threadIdx.x] * by;
}

template <typename T> __global__ void shift(T *x, T by, int n)
{
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n)
        x[i] += by;
}

struct Kernel {
    std::string name;
    int grid, block, static_shared;
    uint32_t stream, correlation;
    uint64_t start, end;
};
static std::vector<Kernel> kernels;
static std::vector<CUpti_ActivityMemcpy6> copies;
static std::map<uint32_t, CUpti_ActivityAPI> calls;
static std::map<uint32_t, uint64_t> phases;
static unsigned launches_seen, names_seen;

static void CUPTIAPI requested(uint8_t **buffer, size_t *size, size_t *maxNumRecords)
{
    *size = 16 << 10;
    *buffer = (uint8_t *)malloc(*size);
    *maxNumRecords = 0;
}

static void take(const CUpti_Activity *record)
{
    switch (record->kind) {
    case CUPTI_ACTIVITY_KIND_CONCURRENT_KERNEL: {
        const CUpti_ActivityKernel10 *k = (const CUpti_ActivityKernel10 *)record;
        kernels.push_back({k->name, k->gridX, k->blockX, k->staticSharedMemory, k->streamId,
                           k->correlationId, k->start, k->end});
        break;
    }
    case CUPTI_ACTIVITY_KIND_MEMCPY:
        copies.push_back(*(const CUpti_ActivityMemcpy6 *)record);
        break;
    case CUPTI_ACTIVITY_KIND_RUNTIME:
        calls[((const CUpti_ActivityAPI *)record)->correlationId] =
            *(const CUpti_ActivityAPI *)record;
        break;
    case CUPTI_ACTIVITY_KIND_EXTERNAL_CORRELATION: {
        const CUpti_ActivityExternalCorrelation *e =
            (const CUpti_ActivityExternalCorrelation *)record;
        phases[e->correlationId] = e->externalId;
        break;
    }
    default:
        break;
    }
}

static void CUPTIAPI completed(CUcontext context, uint32_t streamId, uint8_t *buffer, size_t size,
                               size_t validSize)
{
    CUpti_Activity *record = NULL;
    (void)context, (void)streamId, (void)size;
    while (cuptiActivityGetNextRecord(buffer, validSize, &record) == CUPTI_SUCCESS)
        take(record);
    free(buffer);
}

static void CUPTIAPI called(void *userdata, CUpti_CallbackDomain domain, CUpti_CallbackId cbid,
                            const void *cbdata)
{
    const CUpti_CallbackData *d = (const CUpti_CallbackData *)cbdata;
    (void)userdata, (void)cbid;
    if (domain != CUPTI_CB_DOMAIN_RUNTIME_API || d->callbackSite != CUPTI_API_ENTER ||
        !strstr(d->functionName, "LaunchKernel"))
        return;
    launches_seen++;
    names_seen +=
        d->symbolName && (strstr(d->symbolName, "scale") || strstr(d->symbolName, "shift"));
}

static void phase(uint64_t id)
{
    CHECK(cuptiActivityPushExternalCorrelationId(CUPTI_EXTERNAL_CORRELATION_KIND_CUSTOM0, id) ==
          CUPTI_SUCCESS);
}

static void phase_end(void)
{
    CHECK(cuptiActivityPopExternalCorrelationId(CUPTI_EXTERNAL_CORRELATION_KIND_CUSTOM0, NULL) ==
          CUPTI_SUCCESS);
}

static const char *call_name(uint32_t correlation)
{
    const char *name = "none";
    auto call = calls.find(correlation);
    if (call != calls.end())
        cuptiGetCallbackName(CUPTI_CB_DOMAIN_RUNTIME_API, call->second.cbid, &name);
    return name;
}

/* The program's own kernels: a tool around it may add some. */
static void report(void)
{
    int own = 0;
    for (const Kernel &k : kernels) {
        bool first = k.name == "_Z5scalePffi", second = k.name == "_Z5shiftIfEvPT_S0_i";
        if (!first && !second)
            continue;
        own++;
        CHECK(k.start && k.start <= k.end);
        CHECK(calls.count(k.correlation) && calls[k.correlation].start <= k.start);
        CHECK(strstr(call_name(k.correlation), "LaunchKernel"));
        CHECK(phases[k.correlation] == PHASE_WORK);
        printf("%s <<<%d, %d>>> shared %d\n", k.name.c_str(), k.grid, k.block, k.static_shared);
    }
    CHECK(own == 4);
    std::set<uint32_t> in, out; /* calls: a tool around it may copy more, in other calls, too */
    for (const CUpti_ActivityMemcpy6 &c : copies) {
        uint64_t p = phases.count(c.correlationId) ? phases[c.correlationId] : 0;
        CHECK(c.start <= c.end);
        if (c.bytes != N * sizeof(float) || !strstr(call_name(c.correlationId), "Memcpy"))
            continue;
        if (c.copyKind == CUPTI_ACTIVITY_MEMCPY_KIND_HTOD && p == PHASE_LOAD)
            in.insert(c.correlationId);
        if (c.copyKind == CUPTI_ACTIVITY_MEMCPY_KIND_DTOH && p == PHASE_STORE)
            out.insert(c.correlationId);
    }
    CHECK(in.size() == 2 && out.size() == 2);
    printf("copies: %zu in, %zu out\n", in.size(), out.size());
    printf("launches: %u, with a name: %u\n", launches_seen, names_seen);
    CHECK(launches_seen == 4 && names_seen == 4);
}

static void work(void)
{
    static float host[2][N];
    float *memory[2];
    cudaStream_t streams[2];
    for (int i = 0; i < N; i++)
        host[0][i] = host[1][i] = (float)i;
    phase(PHASE_LOAD);
    for (int i = 0; i < 2; i++) {
        CHECK(cudaStreamCreate(&streams[i]) == cudaSuccess);
        CHECK(cudaMalloc((void **)&memory[i], sizeof host[i]) == cudaSuccess);
        CHECK(cudaMemcpyAsync(memory[i], host[i], sizeof host[i], cudaMemcpyHostToDevice,
                              streams[i]) == cudaSuccess);
        CHECK(cudaStreamSynchronize(streams[i]) == cudaSuccess);
    }
    phase_end();
    phase(PHASE_WORK);
    for (int i = 0; i < 2; i++) {
        scale<<<(N + 63) / 64, 64, 0, streams[i]>>>(memory[i], 2.0f, N);
        shift<float><<<(N + 31) / 32, 32, 0, streams[i]>>>(memory[i], 1.0f, N);
        CHECK(cudaStreamSynchronize(streams[i]) == cudaSuccess);
    }
    phase_end();
    phase(PHASE_STORE);
    for (int i = 0; i < 2; i++)
        CHECK(cudaMemcpy(host[i], memory[i], sizeof host[i], cudaMemcpyDeviceToHost) ==
              cudaSuccess);
    phase_end();
    for (int i = 0; i < N; i++)
        CHECK(host[0][i] == 2.0f * i + 1 && host[1][i] == host[0][i]);
    for (int i = 0; i < 2; i++) {
        CHECK(cudaFree(memory[i]) == cudaSuccess);
        CHECK(cudaStreamDestroy(streams[i]) == cudaSuccess);
    }
    CHECK(cudaDeviceSynchronize() == cudaSuccess);
}

int main(void)
{
    static const CUpti_ActivityKind kinds[] = {
        CUPTI_ACTIVITY_KIND_CONCURRENT_KERNEL, CUPTI_ACTIVITY_KIND_MEMCPY,
        CUPTI_ACTIVITY_KIND_RUNTIME, CUPTI_ACTIVITY_KIND_EXTERNAL_CORRELATION};
    CUpti_SubscriberHandle subscriber, second;
    CHECK(cuptiSubscribe(&subscriber, called, NULL) == CUPTI_SUCCESS);
    CHECK(cuptiSubscribe(&second, called, NULL) == CUPTI_ERROR_MULTIPLE_SUBSCRIBERS_NOT_SUPPORTED);
    CHECK(cuptiEnableDomain(1, subscriber, CUPTI_CB_DOMAIN_RUNTIME_API) == CUPTI_SUCCESS);
    CHECK(cuptiActivityRegisterCallbacks(requested, completed) == CUPTI_SUCCESS);
    for (CUpti_ActivityKind kind : kinds)
        CHECK(cuptiActivityEnable(kind) == CUPTI_SUCCESS);
    work();
    CHECK(cuptiActivityFlushAll(CUPTI_ACTIVITY_FLAG_FLUSH_FORCED) == CUPTI_SUCCESS);
    CHECK(cuptiFinalize() == CUPTI_SUCCESS);
    report();
    puts(wrong ? "FAILED" : "PASSED");
    return wrong;
}
