/* exec_product.c - the values of matrix products, the plain way: element by element, for any sum. matrix_fast.inc does
 * the usual ones on vectors, with the same results. */
#include <limits.h>
#include "ptx/exec_rounding.h"
#include "ptx/exec_tile.h"

static int32_t decode_integer(enum matrix_type type, uint64_t bits)
{
    switch (type) {
    case MATRIX_S8:
        return (int8_t)bits;
    case MATRIX_S4:
        return (int32_t)(bits ^ 8) - 8;
    default:
        return (int32_t)(uint32_t)bits;
    }
}

static void add(struct sum *s, double x)
{
    double t = s->sum + x, part = t - s->sum;
    s->error += (s->sum - (t - part)) + (x - part);
    s->sum = t;
}

enum { MAX_FLOATS = 512 }; /* floats of one a or b */

/* Devices add a few products at a time, cut off below the largest of them: what that may make of an element whose
 * largest product or partial sum is `largest`. */
static double cut_off(const struct product *p, double largest)
{
    const uint32_t steps = p->k / 4 + 1;
    return steps * 0x1p-22 * largest;
}

/* Rounding by chance: the element's sum in the order of k, as multiply_floats() makes it. `a` is a row, `b` a column
 * with steps of n. */
static uint64_t multiply_by_chance(const struct warp *w, const struct product *p, const double *a, const double *b,
                                   uint64_t c)
{
    const struct matrix *x = w->matrix;
    struct sum s = {decode(x->c.type, c), 0};
    double largest = fabs(s.sum);
    for (unsigned k = 0; k < p->k; k++) {
        double f = a[k], g = b[k * p->n];
        if (x->d.type == MATRIX_F64) {
            struct dd exact = dd_fma(dd_of(f), dd_of(g), dd_of(s.sum));
            s.sum = float64(rounding_double(w->first, bits64(__builtin_fma(f, g, s.sum)), exact, 0));
            continue;
        }
        add(&s, f * g);
        largest = fmax(largest, fmax(fabs(f * g), fabs(s.sum)));
    }
    if (x->d.type == MATRIX_F64)
        return bits64(s.sum);
    /* A device that cuts off errs to one side in all its products: half of the noise has one direction for the launch.
     */
    double noise = largest < INFINITY ? cut_off(p, largest) / 2 : 0, exact = s.sum + s.error;
    exact += copysign(noise, w->worker->launch->config->rounding_seed & 1 ? -s.sum : s.sum);
    if (x->d.type == MATRIX_F16)
        return rounding_half(w->first, (uint16_t)encode(x->d.type, s), false, exact, noise);
    return rounding_single(w->first, (uint32_t)encode(x->d.type, s), exact, noise);
}

/* ---- other sums (enum ptx_matrix_sum); `a` is a row, `b` a column with steps of n ---- */

static double sequential(const struct product *p, const double *a, const double *b, double sum)
{
    for (unsigned k = 0; k < p->k; k++) /* products of what is multiplied here are exact in double */
        sum = (double)narrow_sum32(a[k] * b[k * p->n], sum, ROUND_RN);
    return sum;
}

/* So many products and the sum so far, cut off below the 25th bit of the largest; the result is cut to 24 bits. */
static double cut_sum(const double *terms, unsigned count)
{
    int top = INT_MIN;
    double sum = 0, plain = 0;
    for (unsigned i = 0; i < count; i++) {
        plain += terms[i];
        if (terms[i] != 0 && isfinite(terms[i]) && ilogb(terms[i]) > top)
            top = ilogb(terms[i]);
    }
    if (!isfinite(plain) || top == INT_MIN)
        return plain;
    for (unsigned i = 0; i < count; i++)
        sum += trunc(ldexp(terms[i], 24 - top)); /* integers below 2^25: exact */
    return (double)narrow_rounded32(ldexp(sum, top - 24), ROUND_RZ);
}

static double by_chunks(const struct product *p, const double *a, const double *b, double sum, unsigned size)
{
    double terms[17];
    for (unsigned k = 0; k < p->k; k += size) {
        unsigned count = 0;
        terms[count++] = sum;
        for (unsigned i = k; i < k + size && i < p->k; i++)
            terms[count++] = a[i] * b[i * p->n];
        sum = cut_sum(terms, count);
    }
    return sum;
}

static uint64_t multiply_otherwise(const struct warp *w, const struct product *p, const double *a, const double *b,
                                   uint64_t c)
{
    const struct matrix *x = w->matrix;
    enum ptx_matrix_sum how = w->worker->launch->matrix_sum;
    double sum = decode(x->c.type, c);
    if (x->d.type == MATRIX_F64) {
        for (unsigned k = p->k; k-- > 0;)
            sum = __builtin_fma(a[k], b[k * p->n], sum);
        return bits64(sum);
    }
    sum = how == PTX_MATRIX_SEQUENTIAL ? sequential(p, a, b, sum)
                                       : by_chunks(p, a, b, sum, 4u << (how - PTX_MATRIX_BY_4));
    return encode(x->d.type, (struct sum){sum, 0});
}

double matrix_sum_f64(const double *a, const double *b, unsigned n, unsigned k, double c)
{
    for (unsigned i = 0; i < k; i++)
        c = __builtin_fma(a[i], b[i * n], c);
    return c;
}

static void multiply_floats(const struct warp *w, const struct product *p)
{
    const struct matrix *x = w->matrix;
    const bool by_chance = w->worker->launch->rounding;
    double a[MAX_FLOATS] = {0}, b[MAX_FLOATS] = {0};
    for (unsigned i = 0; i < p->m * p->k; i++)
        a[i] = decode(x->a.type, p->a->bits[p->batch * p->m * p->k + i]);
    for (unsigned i = 0; i < p->k * p->n; i++)
        b[i] = decode(x->b.type, p->b->bits[p->batch * p->k * p->n + i]);
    for (unsigned i = 0; i < p->m; i++)
        for (unsigned j = 0; j < p->n; j++) {
            unsigned at = cell_c(p, i, j);
            if (by_chance) {
                p->d->bits[at] = multiply_by_chance(w, p, a + i * p->k, b + j, p->c->bits[at]);
                continue;
            }
            if (w->worker->launch->matrix_sum != PTX_MATRIX_EXACT) {
                p->d->bits[at] = multiply_otherwise(w, p, a + i * p->k, b + j, p->c->bits[at]);
                continue;
            }
            struct sum s = {decode(x->c.type, p->c->bits[at]), 0};
            if (x->d.type == MATRIX_F64) {
                p->d->bits[at] = bits64(matrix_sum_f64(a + i * p->k, b + j, p->n, p->k, s.sum));
                continue;
            }
            for (unsigned k = 0; k < p->k; k++)
                add(&s, a[i * p->k + k] * b[k * p->n + j]);
            p->d->bits[at] = encode(x->d.type, s);
        }
}

static void multiply_integers(const struct matrix *x, const struct product *p)
{
    int32_t a[TILE_ELEMENTS] = {0}, b[TILE_ELEMENTS] = {0};
    for (unsigned i = 0; i < p->m * p->k; i++)
        a[i] = decode_integer(x->a.type, p->a->bits[i]);
    for (unsigned i = 0; i < p->k * p->n; i++)
        b[i] = decode_integer(x->b.type, p->b->bits[i]);
    for (unsigned i = 0; i < p->m; i++)
        for (unsigned j = 0; j < p->n; j++) {
            int64_t s = (int32_t)(uint32_t)p->c->bits[cell_c(p, i, j)];
            for (unsigned k = 0; k < p->k; k++)
                s += a[i * p->k + k] * b[k * p->n + j];
            if (x->satfinite)
                s = s > INT32_MAX ? INT32_MAX : s < INT32_MIN ? INT32_MIN : s;
            p->d->bits[cell_c(p, i, j)] = (uint32_t)s;
        }
}

/* b1: how many ones the words of a row and a column have together. */
static void multiply_bits(const struct matrix *x, const struct product *p)
{
    for (unsigned i = 0; i < p->m; i++)
        for (unsigned j = 0; j < p->n; j++) {
            uint32_t s = (uint32_t)p->c->bits[cell_c(p, i, j)];
            for (unsigned k = 0; k < p->k; k++) {
                uint64_t a = p->a->bits[cell_a(p, i, k)], b = p->b->bits[cell_b(p, k, j)];
                s += (uint32_t)__builtin_popcountll(x->bits == MATRIX_BITS_XOR ? a ^ b : a & b);
            }
            p->d->bits[cell_c(p, i, j)] = s;
        }
}

void product_values(const struct warp *w, const struct product *p)
{
    if (w->matrix->bits)
        multiply_bits(w->matrix, p);
    else if (w->matrix->d.type == MATRIX_S32)
        multiply_integers(w->matrix, p);
    else
        multiply_floats(w, p);
}
