/* stack.h - the host stack of the current call, interned. libunwind is opened lazily; without it there are no stacks.
 */
#ifndef SHIM_STACK_H
#define SHIM_STACK_H

#include <stdint.h>

void stack_load(void); /* once, at the first CUDA call */
uint32_t
stack_here(void); /* id of the interned stack without our own frames; 0 without libunwind or when switched off */
uint32_t stack_sampled(void); /* of calls that come often: 0 when the budget leaves it out */

#endif
