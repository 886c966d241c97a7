#include <math.h>
#include <stdio.h>
#include <string.h>
#include "tests/unit/ptx_shadow_kit.h"

float x[N], y[N], z[N], out[N];
static float again[N];
struct ptx_shadow_value in_shadow[3][N * 2], out_shadow[N * 2];

static const char head[] =
    ".version 9.0\n.target sm_90\n.address_size 64\n.visible .entry k(.param .u64 px, .param .u64 py, .param .u64 pz, "
    ".param .u64 po) { "
    ".reg .f32 %f<20>; .reg .f64 %d<10>; .reg .b32 %r<20>; .reg .b16 %h<10>; .reg .b64 %x<20>; .reg .pred %p<5>; "
    "ld.param.u64 %x1, [px]; ld.param.u64 %x2, [py]; ld.param.u64 %x3, [pz]; ld.param.u64 %x4, [po]; mov.u32 %r0, "
    "%tid.x; "
    "mul.wide.u32 %x0, %r0, 4; add.s64 %x1, %x1, %x0; add.s64 %x2, %x2, %x0; add.s64 %x3, %x3, %x0; add.s64 %x4, %x4, "
    "%x0; "
    "ld.global.f32 %f1, [%x1]; ld.global.f32 %f2, [%x2]; ld.global.f32 %f3, [%x3];\n";
static const char tail[] = "\nst.global.f32 [%x4], %f0;\nret;\n}\n";

void shadow_start(struct kit *k, const char *body)
{
    static char text[1 << 14];
    snprintf(text, sizeof text, "%s%s%s", head, body, tail);
    kit_load(k, text);
    memset(in_shadow, 0, sizeof in_shadow);
    memset(out_shadow, 0, sizeof out_shadow);
    memset(out, 0, sizeof out);
    float *const hosts[] = {x, y, z};
    for (int i = 0; i < 3; i++) {
        kit_buffer(k, i, hosts[i], sizeof x);
        k->ranges[i].shadow = in_shadow[i];
    }
    kit_buffer(k, 3, out, sizeof out);
    k->ranges[3].shadow = out_shadow;
    k->launch.shadow = true;
}

void shadow_run(struct kit *k, uint32_t threads)
{
    assert_int_equal(kit_run(k, "k", 1, threads), STATUS_OK);
    memcpy(again, out, sizeof out);
    struct ptx_result kept = k->result;
    memset(&k->result, 0, sizeof k->result);
    k->launch.shadow = false;
    k->launch.one_by_one = true; /* as in shadow mode: some texts have all threads use one place */
    memset(out, 0, sizeof out);
    assert_int_equal(kit_run(k, "k", 1, threads), STATUS_OK);
    ptx_result_free(&k->result);
    assert_memory_equal(out, again, sizeof out);
    k->result = kept;
    k->launch.one_by_one = false;
    k->launch.shadow = true;
}

void shadow_go(struct kit *k, const char *body, uint32_t threads)
{
    shadow_start(k, body);
    shadow_run(k, threads);
}

const struct ptx_number_event *shadow_event(const struct kit *k, enum ptx_number_kind kind, uint32_t line)
{
    for (size_t i = 0; i < k->result.event_count; i++)
        if (k->result.events[i].kind == kind && k->result.events[i].access.ptx_line == line)
            return &k->result.events[i];
    return NULL;
}

void assert_close(double got, double want, double tolerance, const char *what)
{
    if (got == want || (isnan(got) && isnan(want)) || fabs(got - want) <= tolerance * fabs(want))
        return;
    fail_msg("%s: %.17g, wanted %.17g", what, got, want);
}

void fill(double low, double high, uint64_t seed)
{
    for (int i = 0; i < N; i++) {
        float *const to[] = {x, y, z};
        for (int j = 0; j < 3; j++)
            to[j][i] = (float)(low + (high - low) * (double)(kit_random(&seed) >> 11) * 0x1p-53);
    }
}
