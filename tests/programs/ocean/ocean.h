/*
 * ocean.h - what the device side and the host side of the ocean model share.
 *
 * The host's fields are dense, row-major [height][width]; the device's are pitched.
 */
#ifndef OCEAN_H
#define OCEAN_H

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

#define MAX_HEIGHT   128
#define MAX_DAYS     16
#define RELAX_SWEEPS 10 /* even: the stream function ends up where it started */
#define MEAN_U       0.35f
#define MEAN_V       (-0.25f)
#define TIME_STEP    0.5f
#define GRAVITY      9.81f
#define SHELF_DEPTH  500.0f
#define WAVE_HEIGHT  0.002f /* metres of elevation per degree */
#define WAVE_NUMBER  120.0f
#define SEDIMENTS    8
#define BIN_SIDE     8 /* cells, a power of two: the division is exact */
#define MAX_BINS     512
#define SDEV_FLOOR   0.01f
#define ICE_SALINITY (34279.0f / 1024.0f)
#define SALT_UNIT    (1.0f / 1024.0f)
#define BAND_ROWS    12  /* rows of the log, of which WATCHED_BAND is filled */
#define LOG_DAYS     128 /* 512 bytes a row */
#define WATCHED_BAND 9

struct basin {
    int width, height, drifters;
};

/* Per bin of the fleet; integers, so that the order of the drifters does not show. */
struct bin_summary {
    uint32_t drifters;
    int32_t oldest;
    int64_t age_sum;
};

struct host_ocean {
    struct basin basin;
    float *depth, *salinity, *anomaly, *curl, *psi, *psi_next;
    float *heat, *heat_next, *transport, *phase;
    uint8_t *sediment, *modal; /* [height][width], classes below SEDIMENTS */
    float *position;           /* [drifters][2] */
    int *age;                  /* [drifters] */
    double energy;             /* of the last day */
    float band_mean;           /* heat of row WATCHED_BAND, last day */
};

/* ocean_host.c: the plain C version. */
void *must_alloc(size_t bytes); /* zeroed; exits when memory runs out */
void wind_table(float profile[MAX_HEIGHT], int height);
void host_ocean_open(struct host_ocean *o, const struct basin *b, uint64_t seed);
void host_ocean_close(struct host_ocean *o);
void host_ocean_prepare(struct host_ocean *o); /* before the first day */
void host_ocean_day(struct host_ocean *o, int day);
int host_bins(const struct basin *b);
int host_bin_of(const struct basin *b, float x, float y);

/* bits_host.c: what ocean_bits.cuh must give, bit for bit. */
#define BIT_ROWS   480 /* whole warps */
#define BIT_WORDS  10
#define BIT_CHAINS 5
void crc_table(uint32_t table[16]);
void host_bit_words(uint64_t *out, size_t index, uint64_t seed);
void host_bit_chains(double *out, size_t index, uint64_t seed);

#ifdef __cplusplus
}
#endif

#endif
