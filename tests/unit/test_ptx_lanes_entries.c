/* Shadow entries of much memory, which lock-step writes past the cache: the same as one by one, and the same as those
 * of little memory. */
#include <stdlib.h>
#include <string.h>
#include "tests/unit/ptx_kit.h"

enum { MUCH = 1 << 20, LITTLE = 1 << 16, THREADS = 4096 };
enum { OUT, INPUT };

/* Each thread stores a product at element i + 1, so that rows begin in the middle of 8 bytes, reads what another warp
 * of its block stored, and stores what it makes of that far behind. */
static const char text[] =
    ".version 9.0\n.target sm_90\n.address_size 64\n.visible .entry k(.param .u64 out, .param .u64 in)\n{\n"
    ".reg .b64 %o, %a, %b; .reg .b32 %i, %t, %x, %y; .reg .f32 %f, %g; .reg .pred %p;\n"
    "ld.param.u64 %o, [out]; ld.param.u64 %a, [in]; mov.u32 %x, %ntid.x; mov.u32 %y, %tid.y; mov.u32 %t, %tid.x;\n"
    "mad.lo.u32 %t, %y, %x, %t; mov.u32 %i, %ctaid.x; mad.lo.u32 %i, %i, 128, %t;\n"
    "mul.wide.u32 %b, %i, 4; add.u64 %a, %a, %b; add.u64 %b, %o, %b; ld.global.f32 %f, [%a];\n"
    "mul.f32 %g, %f, 0f3f8ccccd; setp.gt.f32 %p, %f, 0f40a00000; @%p mul.f32 %g, %g, %g;\n"
    "st.global.f32 [%b+4], %g; bar.sync 0;\n"
    "xor.b32 %t, %i, 32; mul.wide.u32 %a, %t, 4; add.u64 %a, %a, %o; ld.global.f32 %f, [%a+4];\n"
    "sub.f32 %f, %f, %g; st.global.f32 [%b+32768], %f; ret;\n}\n";

struct outcome {
    float *values;
    struct ptx_shadow_value *entries;
};

static struct outcome run(size_t bytes, uint32_t columns, size_t shift, bool older)
{
    static float in[THREADS];
    static struct ptx_shadow_value in_entries[THREADS * 2];
    struct kit k;
    struct outcome o = {aligned_alloc(64, bytes), NULL};
    uint64_t random = 7;
    const size_t room_bytes = (bytes / 2 + 8) * sizeof *o.entries;
    char *room = calloc(1, room_bytes);
    assert_true(o.values && room);
    o.entries = (struct ptx_shadow_value *)(void *)(room + shift);
    memset(o.values, 0, bytes);
    for (int i = 0; i < THREADS; i++) {
        in[i] = (float)(kit_random(&random) >> 40) * 0x1p-20f;
        in_entries[2 * i] =
            (struct ptx_shadow_value){.wide = in[i] * (1 + (double)(kit_random(&random) >> 40) * 0x1p-46),
                                      .origin = (uint32_t)i % 3,
                                      .depth = (uint32_t)i % 5,
                                      .kind = PTX_SHADOW_F32,
                                      .flags = PTX_SHADOW_INEXACT};
    }
    for (size_t i = 0; older && i < LITTLE / 8; i++) { /* doubles lie there */
        o.entries[4 * i] = (struct ptx_shadow_value){.wide = 1.5, .depth = 1, .kind = PTX_SHADOW_F64};
        for (size_t part = 1; part < 4; part++)
            o.entries[4 * i + part].kind = PTX_SHADOW_REST;
    }
    kit_load(&k, text);
    (void)kit_buffer(&k, 0, o.values, bytes);
    (void)kit_buffer(&k, 1, in, sizeof in);
    k.ranges[OUT].shadow = o.entries;
    k.ranges[INPUT].shadow = in_entries;
    k.launch.shadow = true;
    k.launch.block[1] = 128 / columns;
    assert_int_equal(kit_run(&k, "k", THREADS / 128, columns), STATUS_OK);
    kit_free(&k);
    return o;
}

static void test_much_memory(void **state)
{
    (void)state;
    static const struct {
        uint32_t columns;
        size_t shift; /* entries that lie across 16 bytes are not written past the cache */
        bool older;
    } cases[] = {{128, 0, false}, {128, 0, true}, {16, 0, true}, {16, 0, false}, {128, 8, true}, {8, 8, false}};
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++)
        for (int round = 0; round < 3; round++) { /* so that each meets the handlers for AVX2 */
            const struct outcome much = run(MUCH, cases[i].columns, cases[i].shift, cases[i].older);
            const struct outcome little = run(LITTLE, cases[i].columns, cases[i].shift, cases[i].older);
            size_t floats = 0;
            for (size_t n = 0; n < LITTLE / 2; n++)
                floats += much.entries[n].kind == PTX_SHADOW_F32;
            assert_true(floats > THREADS);
            assert_memory_equal(much.values, little.values, LITTLE);
            assert_memory_equal(much.entries, little.entries, LITTLE / 2 * sizeof *much.entries);
            free(much.values);
            free(little.values);
            free((char *)much.entries - cases[i].shift);
            free((char *)little.entries - cases[i].shift);
        }
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_much_memory)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
