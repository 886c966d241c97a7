/* cuGetProcAddress, and the export tables that are not here. */
#include <string.h>

#include "softgpu/driver.h"
#include "softgpu/procaddr.h"

CUresult cuGetProcAddress_v2(const char *symbol, void **pfn, int cudaVersion, cuuint64_t flags,
                             CUdriverProcAddressQueryResult *symbolStatus)
{
    static const CUdriverProcAddressQueryResult results[] = {
        [PROCADDR_FOUND] = CU_GET_PROC_ADDRESS_SUCCESS,
        [PROCADDR_UNKNOWN] = CU_GET_PROC_ADDRESS_SYMBOL_NOT_FOUND,
        [PROCADDR_TOO_NEW] = CU_GET_PROC_ADDRESS_VERSION_NOT_SUFFICIENT,
    };
    const cuuint64_t known = CU_GET_PROC_ADDRESS_LEGACY_STREAM | CU_GET_PROC_ADDRESS_PER_THREAD_DEFAULT_STREAM;
    if (!symbol || !pfn || (flags & ~known) || cudaVersion > CUDA_VERSION)
        return CUDA_ERROR_INVALID_VALUE;
    enum procaddr_status status;
    proc_function function =
        procaddr_find(symbol, cudaVersion, (flags & CU_GET_PROC_ADDRESS_PER_THREAD_DEFAULT_STREAM) != 0, &status);
    memcpy(pfn, &function, sizeof *pfn);
    if (symbolStatus)
        *symbolStatus = results[status];
    return CUDA_SUCCESS;
}

/* The older form has no place but its result to say that nothing was found. */
CUresult cuGetProcAddress(const char *symbol, void **pfn, int cudaVersion, cuuint64_t flags)
{
    CUdriverProcAddressQueryResult status = CU_GET_PROC_ADDRESS_SUCCESS;
    CUresult result = cuGetProcAddress_v2(symbol, pfn, cudaVersion, flags, &status);
    return result == CUDA_SUCCESS && status != CU_GET_PROC_ADDRESS_SUCCESS ? CUDA_ERROR_NOT_FOUND : result;
}

/* No table is known. Among those that the vendor's libraries ask for is an authenticity check of the driver, which this
 * is not: they are refused, whatever they are. A refusal, and never success with an empty table, is also what NVRTC
 * needs. */
CUresult cuGetExportTable(const void **ppExportTable, const CUuuid *pExportTableId)
{
    if (!ppExportTable || !pExportTableId)
        return CUDA_ERROR_INVALID_VALUE;
    *ppExportTable = NULL;
    return log_unsupported("cuGetExportTable");
}
