/* softgpu_runtime_module.h - a module with kernels and variables, registered as nvcc's code registers it. */
#ifndef TESTS_UNIT_SOFTGPU_RUNTIME_MODULE_H
#define TESTS_UNIT_SOFTGPU_RUNTIME_MODULE_H

#include "tests/unit/softgpu_runtime.h"

/* crt/host_runtime.h is for C++ only. */
void **__cudaRegisterFatBinary(void *fatCubin);
void __cudaRegisterFatBinaryEnd(void **handle);
void __cudaUnregisterFatBinary(void **handle);
void __cudaRegisterFunction(void **handle, const char *hostFun, char *deviceFun, const char *deviceName,
                            int thread_limit, uint3 *tid, uint3 *bid, dim3 *bDim, dim3 *gDim, int *wSize);
void __cudaRegisterVar(void **handle, char *hostVar, char *deviceAddress, const char *deviceName, int ext, size_t size,
                       int constant, int global);
void __cudaRegisterManagedVar(void **handle, void **hostVarPtrAddress, char *deviceAddress, const char *deviceName,
                              int ext, size_t size, int constant, int global);
char __cudaInitModule(void **handle);

/* A test may bring PTX of its own, which it then registers itself. */
#ifndef MODULE_TEXT
#define MODULE_TEXT                                                                                                    \
    ".version 7.0\n.target sm_75\n.address_size 64\n"                                                                  \
    ".visible .global .align 4 .b8 table[64];\n"                                                                       \
    ".visible .global .attribute(.managed) .align 4 .u32 common = 11;\n"                                               \
    ".visible .entry store(.param .u64 p, .param .u32 v) {\n"                                                          \
    "  .reg .u64 %rd1; .reg .u32 %r1; ld.param.u64 %rd1, [p]; ld.param.u32 %r1, [v];\n"                                \
    "  st.global.u32 [%rd1], %r1; ret;\n}\n"                                                                           \
    ".visible .entry bump(.param .u64 p) {\n"                                                                          \
    "  .reg .u64 %rd1; .reg .u32 %r<3>; ld.param.u64 %rd1, [p]; mov.u32 %r1, 1;\n"                                     \
    "  atom.global.add.u32 %r2, [%rd1], %r1; atom.global.add.u32 %r2, [common], %r1; ret;\n}\n"
#endif
static const char MODULE[] = MODULE_TEXT;

/* A fat binary with the PTX as its only entry, not compressed. */
static struct {
    uint32_t magic;
    uint16_t version, header;
    uint64_t size;
    uint16_t kind, one;
    uint32_t entry_header;
    uint64_t payload;
    uint32_t zero[2];
    uint16_t minor, major;
    uint32_t sm;
    uint64_t name, flags, zeros[2];
    char text[(sizeof MODULE + 7) / 8 * 8];
} module_image = {
    0xba55ed50, 1,   16, sizeof module_image - 16, 1, 0x101, 64, sizeof module_image.text, {0}, 0, 7, 75, 0,
    0x11,       {0}, {0}};
static struct {
    uint32_t magic, version;
    void *data, *file;
} module_wrapper = {0x466243b1, 1, &module_image, NULL};

/* Host stubs and shadows: only their addresses matter. */
static char store_stub, bump_stub, table_shadow;
__attribute__((unused)) static char unknown_stub;
static unsigned *common_pointer;
static void **module_binary;

static inline int register_module(void **state)
{
    memcpy(module_image.text, MODULE, sizeof MODULE);
    module_binary = __cudaRegisterFatBinary(&module_wrapper);
    __cudaRegisterFunction(module_binary, &store_stub, NULL, "store", -1, NULL, NULL, NULL, NULL, NULL);
    __cudaRegisterFunction(module_binary, &bump_stub, NULL, "bump", -1, NULL, NULL, NULL, NULL, NULL);
    __cudaRegisterVar(module_binary, &table_shadow, NULL, "table", 0, 64, 0, 0);
    __cudaRegisterManagedVar(module_binary, (void **)&common_pointer, NULL, "common", 0, 4, 0, 0);
    __cudaRegisterFatBinaryEnd(module_binary);
    return 0;
}

static inline int unregister_module(void **state)
{
    __cudaUnregisterFatBinary(module_binary);
    return 0;
}

__attribute__((unused)) static const dim3 one = {1, 1, 1};

#endif
