/* runtime_doors.h - which of several cudarts in one process a call is meant for.
 *
 * A program or library is linked with cudaMalloc of a version that is named as its library
 * (cudaMalloc@libcudart.so.12). One cudart's streams and kernels mean nothing to another one, so a wrapper that took
 * the first it finds would break whoever brought the second. The shim therefore exports each entry point of cudart once
 * per version.
 */
#ifndef SHIM_RUNTIME_DOORS_H
#define SHIM_RUNTIME_DOORS_H

#include <stdint.h>

#include "shim/hooks.h"

/* Set by the entry that the caller was bound to, taken (and set to 0) by the wrapper's look for the real function; 0:
 * bound without a version. */
extern __thread uint32_t runtime_doors_asked __attribute__((tls_model("initial-exec")));

/* The function of the version `asked`; NULL when there is none. */
void *runtime_doors_real(enum hook hook, uint32_t asked);

/* An entry for one version of a function, exported as symbol@node: notes which one was asked for and jumps to the
 * wrapper, with all arguments as they are. r11 is nobody's at a call. */
#define VERSIONED_ENTRY(symbol, number, node)                                                                          \
    __asm__(".text\n"                                                                                                  \
            ".globl opsdebug_" #number "_" #symbol "\n"                                                                \
            ".type opsdebug_" #number "_" #symbol ", @function\n"                                                      \
            "opsdebug_" #number "_" #symbol ":\n"                                                                      \
            ".cfi_startproc\n"                                                                                         \
            "endbr64\n"                                                                                                \
            "movq runtime_doors_asked@GOTTPOFF(%rip), %r11\n"                                                          \
            "movl $" #number ", %fs:(%r11)\n"                                                                          \
            "jmp " #symbol "@PLT\n"                                                                                    \
            ".cfi_endproc\n"                                                                                           \
            ".size opsdebug_" #number "_" #symbol ", .-opsdebug_" #number "_" #symbol "\n"                             \
            ".symver opsdebug_" #number "_" #symbol ", " #symbol "@" node ", remove\n");

#endif
