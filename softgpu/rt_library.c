/* Libraries loaded by the program itself. */
#include "softgpu/rt.h"

cudaError_t cudaLibraryLoadData(cudaLibrary_t *library, const void *code, enum cudaJitOption *jitOptions,
                                void **jitOptionsValues, unsigned int numJitOptions,
                                enum cudaLibraryOption *libraryOptions, void **libraryOptionValues,
                                unsigned int numLibraryOptions)
{
    CUresult result = rt_enter();
    if (result == CUDA_SUCCESS)
        result = driver.cuLibraryLoadData(library, code, (CUjit_option *)jitOptions, jitOptionsValues, numJitOptions,
                                          (CUlibraryOption *)libraryOptions, libraryOptionValues, numLibraryOptions);
    return rt_end(result);
}

cudaError_t cudaLibraryLoadFromFile(cudaLibrary_t *library, const char *fileName, enum cudaJitOption *jitOptions,
                                    void **jitOptionsValues, unsigned int numJitOptions,
                                    enum cudaLibraryOption *libraryOptions, void **libraryOptionValues,
                                    unsigned int numLibraryOptions)
{
    CUresult result = rt_enter();
    if (result == CUDA_SUCCESS)
        result =
            driver.cuLibraryLoadFromFile(library, fileName, (CUjit_option *)jitOptions, jitOptionsValues, numJitOptions,
                                         (CUlibraryOption *)libraryOptions, libraryOptionValues, numLibraryOptions);
    return rt_end(result);
}

cudaError_t cudaLibraryUnload(cudaLibrary_t library)
{
    CUresult result = rt_enter();
    if (result == CUDA_SUCCESS)
        result = driver.cuLibraryUnload(library);
    return rt_end(result);
}

cudaError_t cudaLibraryGetGlobal(void **dptr, size_t *bytes, cudaLibrary_t library, const char *name)
{
    CUresult result = rt_enter();
    if (result == CUDA_SUCCESS)
        result = driver.cuLibraryGetGlobal((CUdeviceptr *)dptr, bytes, library, name);
    return rt_end(result);
}

cudaError_t cudaLibraryGetManaged(void **dptr, size_t *bytes, cudaLibrary_t library, const char *name)
{
    CUresult result = rt_enter();
    if (result == CUDA_SUCCESS)
        result = driver.cuLibraryGetManaged((CUdeviceptr *)dptr, bytes, library, name);
    return rt_end(result);
}

cudaError_t cudaLibraryGetUnifiedFunction(void **fptr, cudaLibrary_t library, const char *symbol)
{
    CUresult result = rt_enter();
    if (result == CUDA_SUCCESS)
        result = driver.cuLibraryGetUnifiedFunction(fptr, library, symbol);
    return rt_end(result);
}

cudaError_t cudaLibraryGetKernelCount(unsigned int *count, cudaLibrary_t lib)
{
    CUresult result = rt_enter();
    if (result == CUDA_SUCCESS)
        result = driver.cuLibraryGetKernelCount(count, lib);
    return rt_end(result);
}

cudaError_t cudaKernelSetAttributeForDevice(cudaKernel_t kernel, enum cudaFuncAttribute attr, int value, int device)
{
    CUresult result = rt_enter();
    if (result == CUDA_SUCCESS)
        result = driver.cuKernelSetAttribute((CUfunction_attribute)attr, value, kernel, device);
    return rt_end(result);
}

cudaError_t cudaLibraryGetKernel(cudaKernel_t *pKernel, cudaLibrary_t library, const char *name)
{
    CUresult result = rt_enter();
    if (result == CUDA_SUCCESS)
        result = driver.cuLibraryGetKernel(pKernel, library, name);
    if (result == CUDA_SUCCESS)
        rt_known_kernel(*pKernel);
    return rt_end(result);
}

cudaError_t cudaLibraryEnumerateKernels(cudaKernel_t *kernels, unsigned int numKernels, cudaLibrary_t lib)
{
    unsigned count = 0;
    CUresult result = rt_enter();
    if (result == CUDA_SUCCESS)
        result = driver.cuLibraryGetKernelCount(&count, lib);
    if (result == CUDA_SUCCESS)
        result = driver.cuLibraryEnumerateKernels(kernels, numKernels, lib);
    for (unsigned i = 0; result == CUDA_SUCCESS && i < numKernels && i < count; i++)
        rt_known_kernel(kernels[i]);
    return rt_end(result);
}

cudaError_t cudaGetKernel(cudaKernel_t *kernelPtr, const void *entryFuncAddr)
{
    CUresult result = rt_enter();
    if (result == CUDA_SUCCESS)
        result = kernelPtr ? rt_kernel(entryFuncAddr, kernelPtr) : CUDA_ERROR_INVALID_VALUE;
    return rt_end(result);
}

cudaError_t cudaGetFuncBySymbol(cudaFunction_t *functionPtr, const void *symbolPtr)
{
    CUkernel kernel;
    CUresult result = rt_enter();
    if (result == CUDA_SUCCESS)
        result = functionPtr ? rt_kernel(symbolPtr, &kernel) : CUDA_ERROR_INVALID_VALUE;
    if (result == CUDA_SUCCESS)
        result = driver.cuKernelGetFunction(functionPtr, kernel);
    return rt_end(result);
}
