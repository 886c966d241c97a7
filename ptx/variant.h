/* variant.h - launches that make the choices which PTX leaves open otherwise than by default: struct ptx_launch's
 * `variant`. The code that the kernel can reach is copied and rewritten, so that engines need to know nothing of it.
 * What lies outside the code (sums of matrix instructions, atomics, orders) asks the functions below.
 * docs/arithmetic.md. */
#ifndef PTX_VARIANT_H
#define PTX_VARIANT_H

#include "ptx/code.h"
#include "ptx/opsptx.h"

/* A copy of the module for `entry`, with every reachable function rewritten; *entry becomes the copy's. NULL: no
 * memory. Everything else is shared with the original, which must live longer. */
struct ptx_module *variant_module(const struct ptx_module *module, const struct code **entry, uint64_t variant);
void variant_module_free(struct ptx_module *copy, const struct ptx_module *module); /* NULL is fine */

/* What the seed chooses, 0 for the default. */
uint64_t variant_choice(uint64_t variant, uint64_t which, uint64_t choices);
enum { VARIANT_MATRIX = 1, VARIANT_ATOMICS, VARIANT_NAN, VARIANT_SITE };

#endif
