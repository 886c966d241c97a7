/* scan_judge.c - the part of scan.h that tells floats from other things. */
#include "shim/scan.h"

enum {
    ENOUGH = 16,     /* plausible words below which nothing is said */
    IMPLAUSIBLE = 31 /* at most one word in this many + 1 may be implausible; scan.ptx knows this number too */
};

/* Small integers have the exponent of a denormal, negative ones that of NaN, text and random bits are spread over all
 * exponents. What would still pass: pairs of 16-bit numbers (fp16, bf16, samples of sound) and neighbouring pixels,
 * whose halves look alike; and fp64, where the upper words (at odd places) look like what they are, and the lower do
 * not. Their NaN are other patterns. */
bool scan_looks_float(const struct scan_look *look)
{
    uint64_t plausible = look->plausible;
    if (plausible < ENOUGH || (uint64_t)look->other * IMPLAUSIBLE > plausible || (uint64_t)look->alike * 2 > plausible)
        return false;
    return look->upper_odd < ENOUGH / 2 || look->upper_odd <= 4 * (uint64_t)look->upper_even;
}
