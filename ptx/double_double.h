/* double_double.h - numbers of about 106 bits as the sum of two doubles, for the shadow of f64: Dekker's and Knuth's
 * error-free transformations. `high` is the sum rounded to nearest. A result that is no finite number has `low` zero.
 * The same bits with or without FMA instructions: fma() is exact either way. */
#ifndef PTX_DOUBLE_DOUBLE_H
#define PTX_DOUBLE_DOUBLE_H

#include <math.h>
#include <stdbool.h>
#include <stdint.h>

struct dd {
    double high, low;
};

static inline struct dd dd_of(double x)
{
    return (struct dd){x, 0};
}

/* |a| >= |b|, or both of a kind that the sum cannot be told apart. */
static inline struct dd dd_normal(double a, double b)
{
    double s = a + b;
    if (b == 0 || !(fabs(s) < INFINITY)) /* keeps the sign of zero */
        return (struct dd){b == 0 ? a : s, 0};
    return (struct dd){s, b - (s - a)};
}

static inline struct dd dd_of_u64(uint64_t x)
{
    return dd_normal((double)(x & ~(uint64_t)0x7fffffff), (double)(x & 0x7fffffff));
}

static inline struct dd dd_of_s64(int64_t x)
{
    struct dd r = dd_of_u64(x < 0 ? 0 - (uint64_t)x : (uint64_t)x);
    return x < 0 ? (struct dd){-r.high, -r.low} : r;
}

static inline struct dd dd_two_sum(double a, double b)
{
    double s = a + b, part = s - a, low = (a - (s - part)) + (b - part);
    return (struct dd){s, fabs(s) < INFINITY ? low : 0};
}

static inline struct dd dd_two_product(double a, double b)
{
    double p = a * b, low = __builtin_fma(a, b, -p);
    return (struct dd){p, fabs(p) < INFINITY ? low : 0};
}

static inline struct dd dd_negative(struct dd a)
{
    return (struct dd){-a.high, -a.low};
}

static inline struct dd dd_add(struct dd a, struct dd b)
{
    struct dd s = dd_two_sum(a.high, b.high), t = dd_two_sum(a.low, b.low);
    if (!(fabs(s.high) < INFINITY))
        return s;
    s = dd_normal(s.high, s.low + t.high);
    return dd_normal(s.high, s.low + t.low);
}

static inline struct dd dd_subtract(struct dd a, struct dd b)
{
    return dd_add(a, dd_negative(b));
}

static inline struct dd dd_multiply(struct dd a, struct dd b)
{
    struct dd p = dd_two_product(a.high, b.high);
    if (!(fabs(p.high) < INFINITY))
        return p;
    return dd_normal(p.high, p.low + (a.high * b.low + a.low * b.high));
}

static inline struct dd dd_fma(struct dd a, struct dd b, struct dd c)
{
    return dd_add(dd_multiply(a, b), c);
}

static inline struct dd dd_divide(struct dd a, struct dd b)
{
    double q = a.high / b.high;
    if (!(fabs(q) < INFINITY) || q == 0 || !(fabs(b.high) < INFINITY))
        return dd_of(q);
    struct dd rest = dd_subtract(a, dd_multiply(b, dd_of(q)));
    double q2 = rest.high / b.high;
    rest = dd_subtract(rest, dd_multiply(b, dd_of(q2)));
    struct dd r = dd_normal(q, q2);
    return dd_add(r, dd_of(rest.high / b.high));
}

static inline struct dd dd_sqrt(struct dd a)
{
    double root = __builtin_sqrt(a.high);
    if (!(root > 0) || !(root < INFINITY))
        return dd_of(root);
    struct dd rest = dd_subtract(a, dd_two_product(root, root));
    return dd_normal(root, rest.high / (2 * root));
}

static inline struct dd dd_reciprocal_root(struct dd a)
{
    return dd_divide(dd_of(1), dd_sqrt(a));
}

static inline struct dd dd_clamp_unit(struct dd a)
{
    return a.high > 0 ? (a.high < 1 ? a : dd_of(1)) : dd_of(0);
}

/* |x - a|, with as many digits as there are. */
static inline double dd_distance(double x, struct dd a)
{
    return fabs((x - a.high) - a.low);
}

#endif
