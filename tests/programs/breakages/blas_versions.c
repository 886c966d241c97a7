/* Two versions of cuBLAS in one process, as when one framework brings CUDA 12's and another one
 * CUDA 13's: a handle of one means nothing to the other. In one file: a stand-in for a version of
 * the library (-DLIBRARY=12), a library that is linked with it
 * (-DUSER=12), and the program. */
#include <stdio.h>
#include <stdlib.h>

int cublasCreate_v2(void **handle);
int cublasDestroy_v2(void *handle);
int cublasGetVersion_v2(void *handle, int *version);
int cublasGetPointerMode_v2(void *handle, int *mode);
int cublasSscal_v2(void *handle, int n, const float *alpha, float *x, int incx);

#if defined LIBRARY

struct handle {
    int version;
};

/* What a handle of another version leads to is anybody's guess. */
static struct handle *own(void *handle)
{
    struct handle *h = handle;
    if (h->version != LIBRARY)
        abort();
    return h;
}

int cublasCreate_v2(void **handle)
{
    struct handle *h = malloc(sizeof *h);
    h->version = LIBRARY;
    *handle = h;
    return 0;
}

int cublasDestroy_v2(void *handle)
{
    free(own(handle));
    return 0;
}

int cublasGetVersion_v2(void *handle, int *version)
{
    *version = own(handle)->version;
    return 0;
}

int cublasGetPointerMode_v2(void *handle, int *mode)
{
    *mode = own(handle)->version == 0;
    return 0;
}

int cublasSscal_v2(void *handle, int n, const float *alpha, float *x, int incx)
{
    for (int i = 0; own(handle) && i < n; i++)
        x[i * incx] *= *alpha;
    return 0;
}

#elif defined USER

#define NAME_OF(version) use_##version
#define NAME(version)    NAME_OF(version)

int NAME(USER)(void)
{
    void *handle;
    float x = 3, twice = 2;
    int version = 0;
    if (cublasCreate_v2(&handle) || cublasGetVersion_v2(handle, &version) ||
        cublasSscal_v2(handle, 1, &twice, &x, 1) || cublasDestroy_v2(handle))
        return -1;
    return x == 6 ? version : -2;
}

#else

int use_12(void);
int use_13(void);
int cuInit(unsigned flags);

int main(int argc, char **argv)
{
    for (int i = 0; i < 2; i++) {
        printf("%d %d\n", use_13(), use_12());
        if (argc > 1 && cuInit(0)) /* from here on there is a capture */
            return 1;
    }
    return 0;
}

#endif
