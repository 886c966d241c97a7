/* guard_choice.h - which allocations get guard pages: OPSDEBUG_GUARD as text and as a decision.
 *
 * The text is a list of words, separated by commas, all of which must hold:
 *     off             none (alone)
 *     all             every one
 *     sample=1/N      a random one of N; seed=S makes the choice repeatable
 *     min=B, max=B    of at least, at most so many bytes (suffixes k, M, G)
 *     order=A-B       numbers A to B of the allocations, as reports count them; order=A just that one
 *     call=REGEX      made by a function of this name (cudaMallocPitch, cuMemAlloc_v2; extended, no commas)
 * and how:
 *     side=over|under the far end of the allocation lies at the end of its mapping, or its start at the start
 *     budget=B        bytes of device memory in guarded mappings at once (default: a quarter of the device)
 *     reach=B         unmapped bytes on either side (default: 32M)
 *     careful         not where the program may hand memory to other processes or devices
 */
#ifndef SHIM_GUARD_CHOICE_H
#define SHIM_GUARD_CHOICE_H

#include <regex.h>
#include <stdbool.h>
#include <stdint.h>

struct guard_choice {
    bool on, under, careful;
    uint64_t sample; /* one of so many */
    uint64_t seed;   /* 0: none given */
    uint64_t min, max;
    uint64_t first, last; /* allocation numbers */
    uint64_t budget;      /* 0: none given */
    uint64_t reach;
    bool by_call; /* `call` is compiled; for regfree() */
    regex_t call;
};

/* False when the text is not understood; then `out` says off. */
bool guard_choice_parse(const char *text, struct guard_choice *out);

/* `seed` is choice->seed, or what stands for it in this run. `call` and `scope` name the driver's function and the
 * outermost one that the program called; they may be the same. */
bool guard_choice_takes(const struct guard_choice *choice, uint64_t seed, uint32_t number, uint64_t bytes,
                        const char *call, const char *scope);

#endif
