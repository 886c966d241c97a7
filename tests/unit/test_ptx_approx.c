/* The approximate functions of ptx/arith.h over all of single precision, against MPFR: the error in units in the last
 * place and the share of results that are not the correctly rounded ones. Every 20,011th number here; by hand, every
 * one:
 *     test_ptx_approx all [NAME]        2^32 arguments of each function, or of one (about two minutes each)
 * prints the figures that docs/arithmetic.md states. Arguments far from a tie are judged by libm's double precision,
 * the others by MPFR. */
#include <math.h>
#include <mpfr.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "ptx/arith.h"
#include "tests/unit/ptx_kit.h"

static uint32_t step = 20011;

struct function {
    const char *name;
    float (*ours)(float);
    double (*rough)(double);
    int (*exact)(mpfr_t, const mpfr_t, mpfr_rnd_t);
    double limit; /* ulp */
};

static float ours_ex2(float x)
{
    return exp2_32(x);
}

static float ours_lg2(float x)
{
    return log2_32(x);
}

static float ours_sin(float x)
{
    return sin_32(x);
}

static float ours_cos(float x)
{
    return cos_32(x);
}

static float ours_tanh(float x)
{
    return tanh_32(x);
}

static float ours_rsqrt(float x)
{
    return rsqrt32(x);
}

static double rough_rsqrt(double x)
{
    return 1 / sqrt(x);
}

static const struct function functions[] = {
    {"ex2", ours_ex2, exp2, mpfr_exp2, 0.5001},   {"lg2", ours_lg2, log2, mpfr_log2, 0.5001},
    {"sin", ours_sin, sin, mpfr_sin, 0.501},      {"cos", ours_cos, cos, mpfr_cos, 0.501},
    {"tanh", ours_tanh, tanh, mpfr_tanh, 0.5001}, {"rsqrt", ours_rsqrt, rough_rsqrt, mpfr_rec_sqrt, 0.5001},
};
enum { FUNCTIONS = sizeof functions / sizeof *functions };

static double unit_of(double x)
{
    double binade = float64(bits64(x) & UINT64_C(0x7ff0000000000000));
    return fmax(binade, 0x1p-126) * 0x1p-23;
}

static double error_by_mpfr(const struct function *f, float x, float r)
{
    static mpfr_t v, y;
    static bool ready;
    if (!ready) {
        mpfr_init2(v, 24);
        mpfr_init2(y, 120);
        ready = true;
    }
    mpfr_set_flt(v, x, MPFR_RNDN);
    f->exact(y, v, MPFR_RNDN);
    double unit = unit_of(mpfr_get_d(y, MPFR_RNDZ));
    mpfr_sub_d(y, y, (double)r, MPFR_RNDN);
    return fabs(mpfr_get_d(y, MPFR_RNDN)) / unit;
}

/* In units; results that are NaN, zero or infinite where the exact one is not are caught by the limit. */
static double error_of(const struct function *f, float x, float r)
{
    double rough = f->rough((double)x);
    if (isnan(rough) || isnan(r))
        return isnan(rough) && isnan(r) && bits32(r) == 0x7fffffff ? 0 : INFINITY;
    if (isinf(rough) || rough == 0 || fabs(rough) > 0x1.ffffffp127)
        return r == (float)rough && !signbit(r) == !signbit(rough) ? 0 : INFINITY;
    double error = fabs((double)r - rough) / unit_of(rough);
    return error < 0.4999999 ? error : error_by_mpfr(f, x, r);
}

static void test_function(void **state)
{
    const struct function *f = *state;
    double worst = 0;
    uint32_t worst_at = 0;
    uint64_t count = 0, misrounded = 0;
    for (uint64_t u = 0; u <= UINT32_MAX; u += step) {
        float x = float32((uint32_t)u), r = f->ours(x);
        double error = error_of(f, x, r);
        count++;
        misrounded += error > 0.5;
        if (error > worst) {
            worst = error;
            worst_at = (uint32_t)u;
        }
    }
    print_message("%s: at most %.7f ulp, at %a; %llu of %llu results are not the nearest\n", f->name, worst,
                  (double)float32(worst_at), (unsigned long long)misrounded, (unsigned long long)count);
    assert_true(worst <= f->limit);
}

int main(int argc, char **argv)
{
    static struct CMUnitTest tests[FUNCTIONS];
    static char names[FUNCTIONS][40];
    if (argc > 1 && strcmp(argv[1], "all") == 0)
        step = 1;
    size_t n = 0;
    for (size_t i = 0; i < FUNCTIONS; i++) {
        if (argc > 2 && strcmp(argv[2], functions[i].name) != 0)
            continue;
        snprintf(names[i], sizeof names[i], "test_accuracy_of_%s", functions[i].name);
        tests[n++] = (struct CMUnitTest){
            .name = names[i], .test_func = test_function, .initial_state = (void *)(uintptr_t)&functions[i]};
    }
    return _cmocka_run_group_tests("approx", tests, n, NULL, NULL);
}
