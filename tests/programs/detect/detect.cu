/* detect.cu - one memory error, chosen by the arguments:
 *
 *     detect KIND ERROR SIDE DISTANCE [sound] [aside] [crowd]
 *
 * KIND      plain pitched managed async pool mapped host
 * ERROR     write read atomic: an access outside of an allocation among others of its kind, SIDE `before` its start or
 *           `past` its end; DISTANCE 1 is the byte next to it. An atomic takes the aligned word that holds that byte.
 *           stale-write stale-read stale-atomic: an access at offset DISTANCE of an allocation that was freed
 *           free-twice free-inside free-host free-other free-nowhere: a free that is none, or by the wrong function
 *           (SIDE and DISTANCE say nothing)
 * sound     the same program with the access inside, or the free where it belongs
 * aside     the access is made in another stream, ordered by events
 * crowd     among 6000 further allocations
 *
 * The faulty access is in launch 8. Nothing but the device's own errors is reported: the exit code is 0, or 3 when a
 * call failed.
 */
#include "detect_memory.cuh"

enum { NEIGHBOURS = 3, BLOCK = 128, CROWD = 6000 };

/* Both ends, that is all of a small one. */
__global__ void count_up(unsigned char *bytes, size_t count)
{
    size_t ends = count < 8192 ? count : 8192;
    for (size_t i = blockIdx.x * blockDim.x + threadIdx.x; i < ends; i += gridDim.x * blockDim.x)
        bytes[i < 4096 ? i : count - ends + i] = (unsigned char)(i * 7 + 1);
}

__global__ void store_one(unsigned char *bytes, size_t count, long long at)
{
    size_t i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < count)
        bytes[i] = (unsigned char)i;
    if (i == 17)
        bytes[at] = 0x5a; /* FAULT: write */
}

__global__ void load_one(unsigned char *bytes, size_t count, long long at)
{
    size_t i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i == 17)
        bytes[3] = (unsigned char)(bytes[at] + 1); /* FAULT: read */
    else if (i >= 64 && i < count)
        bytes[i] = (unsigned char)i;
}

__global__ void add_one(unsigned char *bytes, size_t count, long long at)
{
    size_t i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < count)
        bytes[i] = (unsigned char)i;
    if (i == 17)
        atomicAdd((unsigned *)(bytes + at), 1u); /* FAULT: atomic */
}

static void launch(const char *error, const struct memory *m, long long at, cudaStream_t in)
{
    size_t count = strncmp(error, "stale", 5) == 0 ? 0 : 2 * BLOCK; /* far from both ends of the allocation */
    if (strstr(error, "write"))
        store_one<<<2, BLOCK, 0, in>>>(m->device, count, at);
    else if (strstr(error, "read"))
        load_one<<<2, BLOCK, 0, in>>>(m->device, count, at);
    else
        add_one<<<2, BLOCK, 0, in>>>(m->device, count, at);
    CHECK(cudaGetLastError());
}

/* Where, counted from the allocation's start. */
static long long offset_of(const struct memory *m, const char *error, bool past, long long distance, bool sound)
{
    long long at = past ? (long long)m->bytes - 1 + distance : -distance;
    if (strncmp(error, "stale", 5) == 0)
        at = distance;
    else if (sound)
        at = past ? (long long)m->bytes - 5 : 4;
    return strstr(error, "atomic") ? at & ~3LL : at; /* rounds down, also below 0 */
}

static void wrong_free(enum kind kind, const char *error, struct memory *m, bool sound)
{
    void *address = address_to_free(m), *own = malloc(64);
    CHECK(cudaDeviceSynchronize());
    if (sound || strcmp(error, "free-twice") == 0) {
        int result = give_back(kind, address);
        if (result != 0)
            exit(3);
        m->bytes = 0; /* it is gone */
    }
    if (sound)
        printf("freed\n");
    else if (strcmp(error, "free-twice") == 0)
        printf("second free: %d\n", give_back(kind, address)); /* FAULT: free-twice */
    else if (strcmp(error, "free-inside") == 0)
        printf("inner free: %d\n", give_back(kind, (char *)address + 256)); /* FAULT: free-inside */
    else if (strcmp(error, "free-other") == 0)
        printf("other free: %d\n", give_back(kind == HOST ? PLAIN : HOST, address)); /* FAULT: free-other */
    else if (strcmp(error, "free-host") == 0)
        printf("free of host memory: %d\n", give_back(kind, own)); /* FAULT: free-host */
    else
        printf("free of nothing: %d\n", give_back(kind, (void *)0x7e5ull)); /* FAULT: free-nowhere */
    (void)cudaGetLastError();
    free(own);
}

int main(int argc, char **argv)
{
    int kind = 0;
    bool sound = false, aside = false, crowd = false;
    while (argc > 4 && kind < KINDS && strcmp(argv[1], kind_names[kind]) != 0)
        kind++;
    if (argc < 5 || kind == KINDS) {
        printf("usage: detect KIND ERROR before|past DISTANCE [sound] [aside] [crowd]\n");
        return 2;
    }
    for (int i = 5; i < argc; i++) {
        sound = sound || strcmp(argv[i], "sound") == 0;
        aside = aside || strcmp(argv[i], "aside") == 0;
        crowd = crowd || strcmp(argv[i], "crowd") == 0;
    }
    const char *error = argv[2];
    bool past = strcmp(argv[3], "past") == 0, stale = strncmp(error, "stale", 5) == 0;
    prepare((enum kind)kind);

    void *bystanders[CROWD];
    for (int i = 0; crowd && i < CROWD; i++)
        CHECK(cudaMalloc(&bystanders[i], 64));
    struct memory others[2 * NEIGHBOURS], victim;
    for (int i = 0; i < NEIGHBOURS; i++)
        others[i] = allocate((enum kind)kind);
    victim = allocate((enum kind)kind); /* VICTIM */
    for (int i = NEIGHBOURS; i < 2 * NEIGHBOURS; i++)
        others[i] = allocate((enum kind)kind);
    for (int i = 0; i < 2 * NEIGHBOURS; i++)
        count_up<<<2, BLOCK, 0, stream>>>(others[i].device, others[i].bytes);
    count_up<<<2, BLOCK, 0, stream>>>(victim.device, victim.bytes);

    if (strncmp(error, "free-", 5) == 0) {
        wrong_free((enum kind)kind, error, &victim, sound);
    } else {
        cudaStream_t in = stream;
        cudaEvent_t event;
        if (aside) {
            CHECK(cudaStreamCreateWithFlags(&in, cudaStreamNonBlocking));
            CHECK(cudaEventCreateWithFlags(&event, cudaEventDisableTiming));
            CHECK(cudaEventRecord(event, stream));
            CHECK(cudaStreamWaitEvent(in, event, 0));
        }
        long long at = offset_of(&victim, error, past, atoll(argv[4]), sound);
        if (stale && !sound) {
            CHECK(cudaDeviceSynchronize());
            if (give_back((enum kind)kind, address_to_free(&victim)) != 0) /* FREED */
                return 3;
        }
        launch(error, &victim, at, in); /* GUILTY */
        if (aside) {
            CHECK(cudaEventRecord(event, in));
            CHECK(cudaStreamWaitEvent(stream, event, 0));
        }
        if (stale)
            victim.bytes = sound ? victim.bytes : 0;
    }
    for (int i = 0; i < 2 * NEIGHBOURS; i++)
        count_up<<<2, BLOCK, 0, stream>>>(others[i].device, others[i].bytes);
    if (stream)
        CHECK(cudaStreamSynchronize(stream));
    CHECK(cudaDeviceSynchronize());
    if (victim.bytes && give_back((enum kind)kind, address_to_free(&victim)) != 0)
        return 3;
    for (int i = 0; i < 2 * NEIGHBOURS; i++)
        if (give_back((enum kind)kind, address_to_free(&others[i])) != 0)
            return 3;
    for (int i = 0; crowd && i < CROWD; i++)
        CHECK(cudaFree(bystanders[i]));
    if (pool) {
        CHECK(cudaStreamSynchronize(stream));
        CHECK(cudaMemPoolDestroy(pool));
    }
    printf("done\n");
    return 0;
}
