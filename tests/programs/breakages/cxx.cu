/* cxx.cu - C++ with all its beginnings and ends: objects that use the device before main and after it, in other threads' ends,
 * through exceptions, and in handlers of exit. */
#include <cstdio>
#include <cstdlib>
#include <stdexcept>
#include <thread>
#include <vector>

__global__ void scale(float *p, float factor)
{
    p[threadIdx.x] *= factor;
}

template <typename T> class buffer {
  public:
    explicit buffer(const char *name) : name_(name)
    {
        if (cudaMalloc(&data_, 64 * sizeof(T)))
            throw std::runtime_error("no memory");
        cudaMemset(data_, 0, 64 * sizeof(T));
    }
    ~buffer()
    {
        const cudaError_t answer = cudaFree(data_);
        /* Behind main the runtime may be gone, which is an answer, not an accident. */
        printf("%s: %s\n", name_, answer == cudaSuccess || answer == cudaErrorCudartUnloading ? "freed" : cudaGetErrorName(answer));
    }
    T *get()
    {
        return data_;
    }

  private:
    T *data_;
    const char *name_;
};

static buffer<float> before_main("before main");

static void at_exit()
{
    int count = -1;
    printf("at exit: %d\n", (int)cudaGetDeviceCount(&count));
}

static void throwing(int depth)
{
    buffer<float> local("on the way");
    scale<<<1, 64>>>(local.get(), 2.0f);
    if (depth == 0)
        throw std::out_of_range("as meant");
    throwing(depth - 1);
}

int main()
{
    static buffer<double> in_main("static of main");

    atexit(at_exit);
    try {
        throwing(2);
    } catch (const std::out_of_range &e) {
        printf("caught: %s\n", e.what());
    }
    std::thread([] {
        static thread_local buffer<float> mine("of a thread");
        scale<<<1, 64>>>(mine.get(), 2.0f);
    }).join();
    std::vector<std::thread> threads;
    for (int i = 0; i < 8; i++)
        threads.emplace_back([] {
            cudaStream_t stream;
            cudaStreamCreate(&stream);
            scale<<<1, 64, 0, stream>>>(before_main.get(), 1.0f);
            cudaStreamSynchronize(stream);
            cudaStreamDestroy(stream);
        });
    for (std::thread &t : threads)
        t.join();
    printf("end of main: %d\n", (int)cudaDeviceSynchronize());
    return 0;
}
