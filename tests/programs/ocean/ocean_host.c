/*
 * ocean_host.c - the ocean model in plain C: the oracle that the device side is checked against.
 *
 * One function per stage, in double where the stage sums or cancels; nothing shared with the
 * kernels.
 */
#include "ocean.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

void *must_alloc(size_t bytes)
{
    void *p = calloc(1, bytes);

    if (!p) {
        fprintf(stderr, "out of memory\n");
        exit(1);
    }
    return p;
}

/* xorshift64*: all randomness comes from the seed through here. */
static uint64_t draw(uint64_t *state)
{
    *state ^= *state >> 12;
    *state ^= *state << 25;
    *state ^= *state >> 27;
    return *state * 0x2545F4914F6CDD1Du;
}

/* Uniform in [0, 1), a multiple of 2^-24. */
static float draw_unit(uint64_t *state)
{
    return (float)(draw(state) >> 40) * 0x1p-24f;
}

/* Three belts of wind. */
void wind_table(float profile[MAX_HEIGHT], int height)
{
    memset(profile, 0, MAX_HEIGHT * sizeof(float));
    for (int y = 0; y < height; y++)
        profile[y] = (float)(0.4 * cos(3.0 * M_PI * (y + 0.5) / height));
}

/* The band under the ice is almost constant: one unit up, one unit down. */
static void init_ice_band(float *row, int width)
{
    for (int x = 0; x < width; x++)
        row[x] = ICE_SALINITY + (x % 2 ? SALT_UNIT : -SALT_UNIT);
    if (width % 2)
        row[width - 1] = ICE_SALINITY;
}

void host_ocean_open(struct host_ocean *o, const struct basin *b, uint64_t seed)
{
    const size_t cells = (size_t)b->width * b->height, bytes = cells * sizeof(float);
    uint64_t state = seed * 0x9E3779B97F4A7C15u + 0x1234567;
    float **const fields[] = {&o->depth, &o->salinity,  &o->anomaly,   &o->curl,  &o->psi,
                              &o->heat,  &o->heat_next, &o->transport, &o->phase, &o->psi_next};

    memset(o, 0, sizeof(*o));
    o->basin = *b;
    for (size_t f = 0; f < sizeof(fields) / sizeof(*fields); f++)
        *fields[f] = must_alloc(bytes);
    o->sediment = must_alloc(cells);
    o->modal = must_alloc(cells);
    o->position = must_alloc(2 * b->drifters * sizeof(float));
    o->age = must_alloc(b->drifters * sizeof(int));

    for (size_t i = 0; i < cells; i++) {
        const int x = i % b->width, y = i / b->width;
        const float shelf = x < b->width / 5 ? 0.02f : 1.0f;
        o->depth[i] = shelf * (3000.0f + 2500.0f * draw_unit(&state));
        o->salinity[i] = 33.0f + SALT_UNIT * (float)(draw(&state) >> 52);
        o->heat[i] = 5.0f + 20.0f * (float)y / b->height + draw_unit(&state);
        o->sediment[i] = (uint8_t)((x / 3 + y / 5 + (draw(&state) >> 62)) % SEDIMENTS);
    }
    init_ice_band(o->salinity, b->width);
    for (int i = 0; i < b->drifters; i++) {
        o->position[2 * i] = draw_unit(&state) * (b->width - 1);
        o->position[2 * i + 1] = draw_unit(&state) * (b->height - 1);
        o->age[i] = (int)(draw(&state) >> 58);
    }
}

void host_ocean_close(struct host_ocean *o)
{
    free(o->depth);
    free(o->salinity);
    free(o->anomaly);
    free(o->curl);
    free(o->psi);
    free(o->psi_next);
    free(o->heat);
    free(o->heat_next);
    free(o->transport);
    free(o->phase);
    free(o->sediment);
    free(o->modal);
    free(o->position);
    free(o->age);
}

/* Anomaly of every latitude band, in its own standard deviations. */
static void standardise(struct host_ocean *o)
{
    const int width = o->basin.width;

    for (int y = 0; y < o->basin.height; y++) {
        const float *row = o->salinity + y * width;
        double mean = 0.0, square = 0.0;
        for (int x = 0; x < width; x++)
            mean += row[x];
        mean /= width;
        for (int x = 0; x < width; x++)
            square += (row[x] - mean) * (row[x] - mean);
        const double sdev = sqrt(square / (width - 1));
        for (int x = 0; x < width; x++)
            o->anomaly[y * width + x] = (float)((row[x] - mean) / (sdev + SDEV_FLOOR));
    }
}

/* The most frequent class among the 25 cells around; of equals the lowest. */
static void find_modes(struct host_ocean *o)
{
    const int width = o->basin.width, height = o->basin.height;

    for (int y = 0; y < height; y++)
        for (int x = 0; x < width; x++) {
            int tally[SEDIMENTS] = {0}, best = 0;
            for (int dy = -2; dy <= 2; dy++)
                for (int dx = -2; dx <= 2; dx++)
                    if (x + dx >= 0 && x + dx < width && y + dy >= 0 && y + dy < height)
                        tally[o->sediment[(y + dy) * width + x + dx]]++;
            for (int kind = 1; kind < SEDIMENTS; kind++)
                if (tally[kind] > tally[best])
                    best = kind;
            o->modal[y * width + x] = (uint8_t)best;
        }
}

void host_ocean_prepare(struct host_ocean *o)
{
    standardise(o);
    find_modes(o);
}

static double drag(int kind, double s)
{
    switch (kind) {
    case 0:
        return 1.0;
    case 1:
        return 0.9 - 0.01 * s;
    case 2:
        return 1.0 / (1.0 + 0.1 * s * s);
    case 3:
        return 0.8 + 0.05 * fabs(s);
    case 4:
        return 0.7 * sqrt(1.0 + 0.1 * s * s);
    case 5:
        return 0.95;
    case 6:
        return exp(-0.05 * s * s);
    default:
        return 0.5 + 0.1 * s / (1.0 + fabs(s));
    }
}

static void blow(struct host_ocean *o, int day)
{
    const int width = o->basin.width, height = o->basin.height;
    float profile[MAX_HEIGHT];

    wind_table(profile, height);
    for (int y = 0; y < height; y++)
        for (int x = 0; x < width; x++) {
            const size_t i = (size_t)y * width + x;
            const double gust = sin(0.37 * x + day) * cos(0.11 * y);
            o->curl[i] =
                (float)(profile[y] * (1.0 + 0.3 * gust) * drag(o->modal[i], o->anomaly[i]));
        }
}

/* Even sweeps use the five-point stencil, odd ones the nine-point stencil. */
static void relax(struct host_ocean *o)
{
    const int width = o->basin.width, height = o->basin.height;

    for (int sweep = 0; sweep < RELAX_SWEEPS; sweep++) {
        for (int y = 1; y < height - 1; y++)
            for (int x = 1; x < width - 1; x++) {
                const float *p = o->psi + y * width + x;
                const double curl = o->curl[y * width + x];
                const double side = (double)p[-1] + p[1] + p[-width] + p[width];
                const double corner =
                    (double)p[-width - 1] + p[-width + 1] + p[width - 1] + p[width + 1];
                o->psi_next[y * width + x] =
                    (float)(sweep % 2 ? 0.2 * side + 0.05 * corner - 0.3 * curl
                                      : 0.25 * (side - curl));
            }
        float *swap = o->psi;
        o->psi = o->psi_next;
        o->psi_next = swap;
    }
}

static double sample(const float *field, const struct basin *b, double x, double y)
{
    x = fmin(fmax(x, 0.0), b->width - 1);
    y = fmin(fmax(y, 0.0), b->height - 1);
    const int x0 = (int)fmin(x, b->width - 2), y0 = (int)fmin(y, b->height - 2);
    const double fx = x - x0, fy = y - y0;
    const float *p = field + y0 * b->width + x0;
    const double top = p[0] + fx * ((double)p[1] - p[0]);
    const double bottom = p[b->width] + fx * ((double)p[b->width + 1] - p[b->width]);
    return top + fy * (bottom - top);
}

static void current(const struct host_ocean *o, double x, double y, double *u, double *v)
{
    const struct basin *b = &o->basin;

    *u = MEAN_U - (sample(o->psi, b, x, y + 0.5) - sample(o->psi, b, x, y - 0.5));
    *v = MEAN_V + (sample(o->psi, b, x + 0.5, y) - sample(o->psi, b, x - 0.5, y));
}

static void drift(struct host_ocean *o)
{
    for (int i = 0; i < o->basin.drifters; i++) {
        float *p = o->position + 2 * i;
        double u, v;
        current(o, p[0], p[1], &u, &v);
        current(o, p[0] + 0.5 * TIME_STEP * u, p[1] + 0.5 * TIME_STEP * v, &u, &v);
        p[0] = (float)fmin(fmax(p[0] + TIME_STEP * u, 0.0), o->basin.width - 1);
        p[1] = (float)fmin(fmax(p[1] + TIME_STEP * v, 0.0), o->basin.height - 1);
    }
}

static void advect(struct host_ocean *o)
{
    const int width = o->basin.width;
    float *swap = o->heat;

    for (int y = 0; y < o->basin.height; y++)
        for (int x = 0; x < width; x++) {
            double u, v;
            current(o, x, y, &u, &v);
            o->heat_next[y * width + x] =
                (float)sample(o->heat, &o->basin, x - TIME_STEP * u, y - TIME_STEP * v);
        }
    o->heat = o->heat_next;
    o->heat_next = swap;
}

static void measure(struct host_ocean *o)
{
    const int width = o->basin.width, height = o->basin.height;
    double band = 0.0;

    o->energy = 0.0;
    for (int y = 0; y < height; y++) {
        double sum = 0.0;
        for (int x = 0; x < width; x++) {
            const size_t i = (size_t)y * width + x;
            const double height_now = WAVE_HEIGHT * o->heat[i], depth = o->depth[i];
            o->phase[i] = (float)(WAVE_NUMBER *
                                  (sqrt(GRAVITY * (depth + height_now)) - sqrt(GRAVITY * depth)));
            o->transport[i] = (float)(sum += o->heat[i]);
            if (x > 0 && x < width - 1 && y > 0 && y < height - 1) {
                const double dx = 0.5 * ((double)o->psi[i + 1] - o->psi[i - 1]);
                const double dy = 0.5 * ((double)o->psi[i + width] - o->psi[i - width]);
                o->energy += 0.5 * (dx * dx + dy * dy);
            }
        }
    }
    for (int x = 0; x < width; x++)
        band += o->heat[WATCHED_BAND * width + x];
    o->band_mean = (float)(band / width);
}

void host_ocean_day(struct host_ocean *o, int day)
{
    blow(o, day);
    relax(o);
    drift(o);
    for (int i = 0; i < o->basin.drifters; i++)
        o->age[i] += 1 + (i * 2654435761u >> 30);
    advect(o);
    measure(o);
}

static int bins_across(int cells)
{
    return (cells + BIN_SIDE - 1) / BIN_SIDE;
}

int host_bins(const struct basin *b)
{
    return bins_across(b->width) * bins_across(b->height);
}

int host_bin_of(const struct basin *b, float x, float y)
{
    return (int)(y / BIN_SIDE) * bins_across(b->width) + (int)(x / BIN_SIDE);
}
