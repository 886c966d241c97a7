/* run_kernel - a kernel from a string of PTX on the CPU, every access checked; all there is to know to use libopsptx.
 *
 *     cc run_kernel.c $(pkg-config --cflags --libs opsptx) -o run_kernel && ./run_kernel
 *
 * The kernel scales a vector, and its last thread writes one element too far. */
#include <opsdebug/opsptx.h>
#include <stdio.h>

static const char ptx[] = ".version 9.0\n"
                          ".target sm_75\n"
                          ".address_size 64\n"
                          ".visible .entry scale(.param .u64 x, .param .f32 by, .param .u32 n)\n"
                          "{\n"
                          "    .reg .pred %p;\n"
                          "    .reg .b32 %i, %n;\n"
                          "    .reg .f32 %f, %by;\n"
                          "    .reg .b64 %at, %step;\n"
                          "    mov.u32 %i, %tid.x;\n"
                          "    ld.param.u32 %n, [n];\n"
                          "    setp.gt.u32 %p, %i, %n;\n" /* should be .ge */
                          "    @%p ret;\n"
                          "    ld.param.u64 %at, [x];\n"
                          "    mul.wide.u32 %step, %i, 4;\n"
                          "    add.u64 %at, %at, %step;\n"
                          "    ld.param.f32 %by, [by];\n"
                          "    ld.global.f32 %f, [%at];\n"
                          "    mul.f32 %f, %f, %by;\n"
                          "    st.global.f32 [%at], %f;\n"
                          "    ret;\n"
                          "}\n";

int main(void)
{
    struct diag diag;
    struct ptx_module *module;
    if (ptx_module_load(ptx, sizeof ptx, "scale.ptx", &module, &diag) != STATUS_OK) {
        fprintf(stderr, "%s:%u:%u: %s\n%s\n", diag.where, diag.line, diag.column, diag.text, diag.excerpt);
        return 2;
    }
    /* "Device" memory: addresses of our choice, backed by memory of ours. */
    float x[20];
    for (int i = 0; i < 20; i++)
        x[i] = (float)i;
    const struct ptx_range range = {.address = 0x10000, .bytes = sizeof x, .host = x, .id = 1};
    const struct ptx_memory memory = {.ranges = &range, .range_count = 1};
    /* Parameters, packed as the kernel's ptx_param offsets say. */
    struct {
        uint64_t x;
        float by;
        uint32_t n;
    } params = {range.address, 2.0f, 20};
    const struct ptx_launch launch = {.module = module,
                                      .kernel = ptx_module_find_kernel(module, "scale"),
                                      .grid = {1, 1, 1},
                                      .block = {64, 1, 1},
                                      .params = &params,
                                      .memory = &memory,
                                      .checked = true,
                                      .time_limit_ns = UINT64_C(10000000000)};
    struct ptx_result result;
    if (ptx_run(&launch, &result, &diag) != STATUS_OK) {
        fprintf(stderr, "not run: %s\n", diag.text);
        return 2;
    }
    printf("x[19] = %g\n", (double)x[19]);
    for (size_t i = 0; i < result.fault_count; i++) {
        const struct ptx_fault *f = &result.faults[i];
        printf("scale.ptx:%u: %s, %s of %u bytes at offset %lld of range %u, thread %u\n", f->access.ptx_line,
               ptx_fault_kind_name(f->kind), f->access.write ? "write" : "read", f->bytes, (long long)f->offset,
               f->range_id, f->access.thread[0]);
    }
    ptx_result_free(&result);
    ptx_module_free(module);
    return 0;
}
