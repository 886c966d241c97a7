/* nvtx.h - the binary interface between NVTX version 3 and a tool, as NVTX's public headers (nvtxDetail/nvtxTypes.h)
 * define it. Declared here, because a toolkit need not bring them.
 */
#ifndef SHIM_NVTX_H
#define SHIM_NVTX_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <wchar.h>

enum { NVTX_TABLE_CALLBACKS = 1 };
enum { NVTX_MODULE_CORE = 1, NVTX_MODULE_CORE2 = 5 };
enum {
    NVTX_CORE_MARK_EX = 1,
    NVTX_CORE_MARK_A,
    NVTX_CORE_MARK_W,
    NVTX_CORE_START_EX,
    NVTX_CORE_START_A,
    NVTX_CORE_START_W,
    NVTX_CORE_END,
    NVTX_CORE_PUSH_EX,
    NVTX_CORE_PUSH_A,
    NVTX_CORE_PUSH_W,
    NVTX_CORE_POP,
};
enum {
    NVTX_CORE2_MARK_EX = 1,
    NVTX_CORE2_START_EX,
    NVTX_CORE2_END,
    NVTX_CORE2_PUSH_EX,
    NVTX_CORE2_POP,
    NVTX_CORE2_REGISTER_A = 10,
    NVTX_CORE2_REGISTER_W,
    NVTX_CORE2_CREATE_A,
    NVTX_CORE2_CREATE_W,
};
enum { NVTX_NO_TRACKING = -2 }; /* NVTX_NO_PUSH_POP_TRACKING */

union nvtx_message {
    const char *ascii;
    const wchar_t *unicode;
    const char *registered; /* a handle of ours */
};
enum nvtx_message_type { NVTX_ASCII = 1, NVTX_UNICODE = 2, NVTX_REGISTERED = 3 };
struct nvtx_attributes { /* nvtxEventAttributes_v2 */
    uint16_t version, size;
    uint32_t category;
    int32_t color_type;
    uint32_t color;
    int32_t payload_type, reserved;
    uint64_t payload;
    int32_t message_type;
    union nvtx_message message;
};
_Static_assert(sizeof(struct nvtx_attributes) == 48, "nvtxEventAttributes_v2");

struct nvtx_callbacks { /* NvtxExportTableCallbacks */
    size_t bytes;
    int (*module_table)(uint32_t module, void (****table)(void), unsigned *count);
};
typedef const void *nvtx_export_table(uint32_t id);
typedef int nvtx_initialize(nvtx_export_table *export_table);

__attribute__((visibility("default"))) int InitializeInjectionNvtx2(nvtx_export_table *export_table);
extern __attribute__((visibility("default"))) nvtx_initialize *InitializeInjectionNvtx2_fnptr;

/* Extensions, as nvtxDetail/nvtxExtTypes.h defines them. */
struct nvtx_segment {
    size_t id, count;
    intptr_t *slots;
};
struct nvtx_extension { /* nvtxExtModuleInfo_t */
    uint16_t version, bytes, module, compatible;
    size_t segment_count;
    struct nvtx_segment *segments;
    intptr_t (*get_export)(uint32_t id);
    const void *extension_info;
};
typedef int nvtx_initialize_extension(struct nvtx_extension *extension);
__attribute__((visibility("default"))) int InitializeInjectionNvtxExtension(struct nvtx_extension *extension);
extern __attribute__((visibility("default"))) nvtx_initialize_extension *InitializeInjectionNvtxExtension_fnptr;

/* A message as UTF-8: NULL, the program's own text, or `space` filled with it. */
const char *nvtx_message(int32_t type, union nvtx_message message, char *space, size_t bytes);
void nvtx_utf8(char *out, size_t bytes, const wchar_t *wide);

/* The user, or another tool, has claimed NVTX for something else. */
bool nvtx_other_tool(const char **which);

#endif
