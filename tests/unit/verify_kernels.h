/* verify_kernels.h - the small kernels that test_analyzer_verify.c plants faults with. */
#ifndef TESTS_VERIFY_KERNELS_H
#define TESTS_VERIFY_KERNELS_H

#define HEAD ".version 7.0\n.target sm_75\n.address_size 64\n.file 1 \"/src/scale.cu\"\n"

/* scale(out, in, n): out[i] = in[i] + 1 for i < n. The load is line 12, the store line 14. */
static const char scale_ptx[] =
    HEAD ".visible .entry scale(.param .u64 out, .param .u64 in, .param .u32 n)\n"
         "{\n"
         ".reg .pred %p<2>;\n.reg .f32 %f<3>;\n.reg .b32 %r<6>;\n.reg .b64 %rd<8>;\n"
         ".loc 1 10 5\n"
         "ld.param.u64 %rd1, [out];\nld.param.u64 %rd2, [in];\nld.param.u32 %r5, [n];\n"
         "mov.u32 %r1, %ctaid.x;\nmov.u32 %r2, %ntid.x;\nmov.u32 %r3, %tid.x;\n"
         "mad.lo.s32 %r4, %r1, %r2, %r3;\n"
         "setp.ge.u32 %p1, %r4, %r5;\n@%p1 bra DONE;\n"
         "mul.wide.u32 %rd3, %r4, 4;\nadd.s64 %rd4, %rd1, %rd3;\nadd.s64 %rd5, %rd2, %rd3;\n"
         ".loc 1 12 9\n"
         "ld.global.f32 %f1, [%rd5];\n"
         "add.f32 %f2, %f1, 0f3F800000;\n"
         ".loc 1 14 9\n"
         "st.global.f32 [%rd4], %f2;\n"
         "DONE:\nret;\n}\n";

/* turn(out, in, n): a block's elements reversed through shared memory; without the barrier a race. Store line 20, load
 * line 22. */
#define TURN(barrier)                                                                                                  \
    HEAD ".visible .entry turn(.param .u64 out, .param .u64 in, .param .u32 n)\n"                                      \
         "{\n"                                                                                                         \
         ".reg .b32 %r<8>;\n.reg .b64 %rd<8>;\n.shared .align 4 .b8 tile[512];\n"                                      \
         "ld.param.u64 %rd1, [out];\nld.param.u64 %rd2, [in];\n"                                                       \
         "mov.u32 %r1, %tid.x;\nmul.wide.u32 %rd3, %r1, 4;\nadd.s64 %rd4, %rd2, %rd3;\n"                               \
         "ld.global.u32 %r2, [%rd4];\nshl.b32 %r3, %r1, 2;\nmov.u32 %r4, tile;\nadd.s32 %r5, %r4, %r3;\n"              \
         ".loc 1 20 5\n"                                                                                               \
         "st.shared.u32 [%r5], %r2;\n" barrier "mov.u32 %r6, %ntid.x;\nsub.s32 %r6, %r6, 1;\n"                         \
         "sub.s32 %r6, %r6, %r1;\nshl.b32 %r6, %r6, 2;\nadd.s32 %r6, %r4, %r6;\n"                                      \
         ".loc 1 22 5\n"                                                                                               \
         "ld.shared.u32 %r7, [%r6];\n"                                                                                 \
         "add.s64 %rd5, %rd1, %rd3;\nst.global.u32 [%rd5], %r7;\nret;\n}\n"
static const char turn_ptx[] = TURN("bar.sync 0;\n");
static const char turn_race_ptx[] = TURN("");

/* wait(out, in, n): threads below n take the barrier of line 30, the others leave or take another one. */
static const char wait_ptx[] = HEAD ".visible .entry wait(.param .u64 out, .param .u64 in, .param .u32 n)\n"
                                    "{\n"
                                    ".reg .pred %p<2>;\n.reg .b32 %r<4>;\n"
                                    "ld.param.u32 %r1, [n];\nmov.u32 %r2, %tid.x;\n"
                                    "setp.ge.u32 %p1, %r2, %r1;\n@%p1 bra OTHER;\n"
                                    ".loc 1 30 5\n"
                                    "bar.sync 0;\nret;\n"
                                    "OTHER:\n.loc 1 32 5\nbar.sync 1;\nret;\n}\n";

/* slide(out, in, n): stores one word at out + n bytes, line 40. */
static const char slide_ptx[] = HEAD ".visible .entry slide(.param .u64 out, .param .u64 in, .param .u32 n)\n"
                                     "{\n"
                                     ".reg .b32 %r<3>;\n.reg .b64 %rd<4>;\n"
                                     "ld.param.u64 %rd1, [out];\nld.param.u32 %r1, [n];\ncvt.u64.u32 %rd2, "
                                     "%r1;\nadd.s64 %rd3, %rd1, %rd2;\nmov.u32 %r2, 7;\n"
                                     ".loc 1 40 5\n"
                                     "st.global.u32 [%rd3], %r2;\nret;\n}\n";

/* thrice(out, in, n): 4 bytes at out + n = the sum of three words from in + n on. Two loads on line 80, one on line 81;
 * the store is line 82. */
static const char thrice_ptx[] =
    HEAD ".visible .entry thrice(.param .u64 out, .param .u64 in, .param .u32 n)\n"
         "{\n"
         ".reg .b32 %r<5>;\n.reg .b64 %rd<6>;\n"
         "ld.param.u64 %rd1, [out];\nld.param.u64 %rd2, [in];\nld.param.u32 %r1, [n];\ncvt.u64.u32 %rd3, %r1;\n"
         "add.s64 %rd4, %rd1, %rd3;\nadd.s64 %rd5, %rd2, %rd3;\n"
         ".loc 1 80 5\nld.global.u32 %r2, [%rd5];\nld.global.u32 %r3, [%rd5+4];\nadd.u32 %r2, %r2, %r3;\n"
         ".loc 1 81 5\nld.global.u32 %r3, [%rd5+8];\nadd.u32 %r2, %r2, %r3;\n"
         ".loc 1 82 5\nst.global.u32 [%rd4], %r2;\nret;\n}\n";

/* chase(out, in, n): in holds a pointer; *pointer = 7, line 50. */
static const char chase_ptx[] = HEAD ".visible .entry chase(.param .u64 out, .param .u64 in, .param .u32 n)\n"
                                     "{\n"
                                     ".reg .b32 %r<3>;\n.reg .b64 %rd<4>;\n"
                                     "ld.param.u64 %rd1, [in];\nld.global.u64 %rd2, [%rd1];\nmov.u32 %r2, 7;\n"
                                     ".loc 1 50 5\n"
                                     "st.global.u32 [%rd2], %r2;\nret;\n}\n";

/* move(out, in, n): out[i] = in[i], untouched. The load is line 60. */
static const char move_ptx[] = HEAD ".visible .entry move(.param .u64 out, .param .u64 in, .param .u32 n)\n"
                                    "{\n"
                                    ".reg .b32 %r<3>;\n.reg .b64 %rd<6>;\n"
                                    "ld.param.u64 %rd1, [out];\nld.param.u64 %rd2, [in];\n"
                                    "mov.u32 %r1, %tid.x;\nmul.wide.u32 %rd3, %r1, 4;\nadd.s64 %rd4, %rd2, %rd3;\n"
                                    ".loc 1 60 5\nld.global.u32 %r2, [%rd4];\n.loc 1 61 5\n"
                                    "add.s64 %rd5, %rd1, %rd3;\nst.global.u32 [%rd5], %r2;\nret;\n}\n";

/* gather(out, in, n): out[1 + atomic counter out[0]++] = in[i]. */
static const char gather_ptx[] =
    HEAD ".visible .entry gather(.param .u64 out, .param .u64 in, .param .u32 n)\n"
         "{\n"
         ".reg .b32 %r<6>;\n.reg .b64 %rd<8>;\n"
         "ld.param.u64 %rd1, [out];\nld.param.u64 %rd2, [in];\n"
         "mov.u32 %r1, %tid.x;\nmul.wide.u32 %rd3, %r1, 4;\nadd.s64 %rd4, %rd2, %rd3;\nld.global.u32 %r2, [%rd4];\n"
         "atom.global.add.u32 %r3, [%rd1], 1;\nmul.wide.u32 %rd5, %r3, 4;\nadd.s64 %rd6, %rd1, %rd5;\n"
         "st.global.u32 [%rd6+4], %r2;\nret;\n}\n";

/* sum(out, in, n): out[0] += in[i], in any order. */
static const char sum_ptx[] =
    HEAD ".visible .entry sum(.param .u64 out, .param .u64 in, .param .u32 n)\n"
         "{\n"
         ".reg .f32 %f<3>;\n.reg .b32 %r<3>;\n.reg .b64 %rd<6>;\n"
         "ld.param.u64 %rd1, [out];\nld.param.u64 %rd2, [in];\n"
         "mov.u32 %r1, %tid.x;\nmul.wide.u32 %rd3, %r1, 4;\nadd.s64 %rd4, %rd2, %rd3;\nld.global.f32 %f1, [%rd4];\n"
         "red.global.add.f32 [%rd1], %f1;\nret;\n}\n";

#endif
