/*
 * ocean_run.cuh - buffers, launches and the self-check of the ocean model.
 *
 * Two streams that do not wait for the default stream: `flow` carries wind, stream function and
 * heat, `ships` the fleet, which follows the stream function of the same day.
 */
#ifndef OCEAN_RUN_CUH
#define OCEAN_RUN_CUH

#include "ocean_must.cuh"

struct ocean {
    basin size;
    int bins, across;
    field_view psi, psi_next, heat, heat_next, curl, anomaly, transport, phase, log;
    float *depth, *salinity;
    uint8_t *sediment, *modal;
    fleet_view fleet;
    fleet_view watched; /* the fleet as the summaries see it */
    int *bin_of, *previous, *sorted;
    unsigned int *bin_count, *begin, *taken;
    double *energy, *partial;                 /* managed [MAX_DAYS]; [ENERGY_BLOCKS] */
    bin_summary *summary, *summary_on_device; /* mapped host memory, and its device address */
    int *bin_history;                         /* pinned [days][drifters] */
    cudaStream_t flow, ships;
    cudaEvent_t streamed, drifted;
};

static field_view new_field(int width, int height)
{
    field_view view = {NULL, 0, width, height};
    void *data;

    MUST(cudaMallocPitch(&data, &view.pitch, width * sizeof(float), height));
    view.data = (float *)data;
    return view;
}

static void clear_field(field_view view, cudaStream_t stream)
{
    MUST(cudaMemset2DAsync(view.data, view.pitch, 0, view.width * sizeof(float), view.height,
                           stream));
}

template <typename T> static T *new_array(size_t count)
{
    void *data;

    MUST(cudaMalloc(&data, count * sizeof(T)));
    return (T *)data;
}

template <typename T> static T *upload(const T *from, size_t count)
{
    T *to = new_array<T>(count);

    MUST(cudaMemcpy(to, from, count * sizeof(T), cudaMemcpyHostToDevice));
    return to;
}

/* Through pinned memory, as the copy is asynchronous. */
static void upload_field(field_view to, const float *from, cudaStream_t stream)
{
    const size_t row = to.width * sizeof(float);
    void *staging;

    MUST(cudaHostAlloc(&staging, row * to.height, cudaHostAllocDefault));
    memcpy(staging, from, row * to.height);
    MUST(cudaMemcpy2DAsync(to.data, to.pitch, staging, row, row, to.height, cudaMemcpyHostToDevice,
                           stream));
    MUST(cudaStreamSynchronize(stream));
    MUST(cudaFreeHost(staging));
}

static void open_fields(ocean *o, const host_ocean *host)
{
    const int width = o->size.width, height = o->size.height, cells = width * height;
    field_view *const fields[] = {&o->psi,  &o->psi_next, &o->heat,      &o->heat_next,
                                  &o->curl, &o->anomaly,  &o->transport, &o->phase};

    for (field_view *field : fields)
        *field = new_field(width, height);
    o->log = new_field(LOG_DAYS, BAND_ROWS);
    clear_field(o->psi, o->flow);
#ifndef FAULT_UNINIT /* FAULT-OTHER: uninit */
    clear_field(o->psi_next, o->flow);
#endif
    clear_field(o->log, o->flow);
    upload_field(o->heat, host->heat, o->flow);
    o->depth = upload(host->depth, cells);
    o->salinity = upload(host->salinity, cells);
    o->sediment = upload(host->sediment, cells);
    o->modal = new_array<uint8_t>(cells);
}

static void open_fleet(ocean *o, const host_ocean *host, int days)
{
    const int count = o->size.drifters;
    void *pinned;

    o->fleet.position = (float2 *)upload(host->position, 2 * count);
    o->fleet.age = upload(host->age, count);
    o->fleet.count = count;
    o->watched = o->fleet;
    o->bin_of = new_array<int>(count);
    o->sorted = new_array<int>(count);
    o->bin_count = new_array<unsigned int>(o->bins);
    o->taken = new_array<unsigned int>(o->bins);
    o->begin = new_array<unsigned int>(o->bins + 1);
    MUST(cudaHostAlloc(&pinned, o->bins * sizeof(bin_summary), cudaHostAllocMapped));
    o->summary = (bin_summary *)pinned;
    MUST(cudaHostGetDevicePointer(&pinned, o->summary, 0));
    o->summary_on_device = (bin_summary *)pinned;
    MUST(cudaHostAlloc(&pinned, (size_t)days * count * sizeof(int), cudaHostAllocDefault));
    o->bin_history = (int *)pinned;
}

static void open_ocean(ocean *o, const host_ocean *host, int days)
{
    float profile[MAX_HEIGHT];
    const int no_ships[MAX_DAYS] = {0};
    const unsigned int none = 0;

    memset(o, 0, sizeof(*o));
    o->size = host->basin;
    o->bins = host_bins(&o->size);
    o->across = (o->size.width + BIN_SIDE - 1) / BIN_SIDE;
    MUST(cudaStreamCreateWithFlags(&o->flow, cudaStreamNonBlocking));
    MUST(cudaStreamCreateWithFlags(&o->ships, cudaStreamNonBlocking));
    MUST(cudaEventCreateWithFlags(&o->streamed, cudaEventDisableTiming));
    MUST(cudaEventCreateWithFlags(&o->drifted, cudaEventDisableTiming));
    open_fields(o, host);
    open_fleet(o, host, days);
    MUST(cudaMallocManaged(&o->energy, MAX_DAYS * sizeof(double)));
    memset(o->energy, 0, MAX_DAYS * sizeof(double));
    o->partial = new_array<double>(ENERGY_BLOCKS);
    wind_table(profile, o->size.height);
    MUST(cudaMemcpyToSymbol(wind_profile, profile, sizeof(profile)));
    MUST(cudaMemcpyToSymbol(stranded, no_ships, sizeof(no_ships)));
    MUST(cudaMemcpyToSymbol(movers, &none, sizeof(none)));
    MUST(cudaDeviceSynchronize());
}

static void close_ocean(ocean *o)
{
    void *const device[] = {o->psi.data,  o->psi_next.data,  o->heat.data,      o->heat_next.data,
                            o->curl.data, o->anomaly.data,   o->transport.data, o->phase.data,
                            o->log.data,  o->depth,          o->salinity,       o->sediment,
                            o->modal,     o->fleet.position, o->fleet.age,      o->bin_of,
                            o->previous,  o->sorted,         o->bin_count,      o->begin,
                            o->taken,     o->energy,         o->partial};

    for (void *p : device)
        MUST(cudaFree(p));
    MUST(cudaFreeHost(o->summary));
    MUST(cudaFreeHost(o->bin_history));
    MUST(cudaEventDestroy(o->streamed));
    MUST(cudaEventDestroy(o->drifted));
    MUST(cudaStreamDestroy(o->flow));
    MUST(cudaStreamDestroy(o->ships));
}

/* ---- one day ---- */

static dim3 cell_blocks(const ocean *o)
{
    return dim3((o->size.width + TILE_X - 1) / TILE_X, (o->size.height + TILE_Y - 1) / TILE_Y);
}

static const dim3 cell_threads(TILE_X, TILE_Y);
static const dim3 warp_rows(32, 4); /* one warp per row or bin */

static int warp_blocks(int rows)
{
    return (rows + (int)warp_rows.y - 1) / (int)warp_rows.y;
}

static void swap_views(field_view *a, field_view *b)
{
    const field_view kept = *a;

    *a = *b;
    *b = kept;
}

static void prepare(ocean *o)
{
    standardise_bands<<<warp_blocks(o->size.height), warp_rows, 0, o->flow>>>(o->anomaly,
                                                                              o->salinity);
    MUST(cudaGetLastError());
    modal_sediment<<<cell_blocks(o), cell_threads, 0, o->flow>>>(o->modal, o->sediment,
                                                                 o->size.width, o->size.height);
    MUST(cudaGetLastError());
}

static void stream_function(ocean *o, int day)
{
    cudaLaunchAttribute urgent = {};
    cudaLaunchConfig_t config = {};

    /* The fleet may still be reading yesterday's. */
    MUST(cudaStreamWaitEvent(o->flow, o->drifted, 0));
    urgent.id = cudaLaunchAttributePriority;
    urgent.val.priority = 0;
    config.gridDim = cell_blocks(o);
    config.blockDim = cell_threads;
    config.stream = o->flow;
    config.attrs = &urgent;
    config.numAttrs = 1;
    MUST(cudaLaunchKernelEx(&config, blow_wind, o->curl, o->anomaly, (const uint8_t *)o->modal,
                            day));
    for (int sweep = 0; sweep < RELAX_SWEEPS; sweep++) {
        if (sweep % 2)
            relax_stream<true>
                <<<cell_blocks(o), cell_threads, 0, o->flow>>>(o->psi_next, o->psi, o->curl);
        else
            relax_stream<false>
                <<<cell_blocks(o), cell_threads, 0, o->flow>>>(o->psi_next, o->psi, o->curl);
        MUST(cudaGetLastError());
        swap_views(&o->psi, &o->psi_next);
    }
    MUST(cudaEventRecord(o->streamed, o->flow));
}

/* The ages move to a longer array; the bins of yesterday get one of the old length. */
static void grow_fleet(ocean *o)
{
    const size_t bytes = o->fleet.count * sizeof(int);
    int *longer = new_array<int>(o->fleet.count * 2);

    MUST(cudaMemcpyAsync(longer, o->fleet.age, bytes, cudaMemcpyDeviceToDevice, o->ships));
    MUST(cudaStreamSynchronize(o->ships));
    MUST(cudaFree(o->fleet.age)); /* FAULT-OTHER: uaf */
    o->fleet.age = longer;
    o->previous = new_array<int>(o->fleet.count);
#ifndef FAULT_UAF
    o->watched = o->fleet;
#endif
}

static void move_fleet(ocean *o, int day)
{
    const int count = o->fleet.count, blocks = (count + FLEET_THREADS - 1) / FLEET_THREADS;
    const size_t bytes = count * sizeof(int), bin_bytes = o->bins * sizeof(unsigned int);
    const int scan_threads = (o->bins + 63) / 64 * 64;

    if (day == 1)
        grow_fleet(o);
    MUST(cudaStreamWaitEvent(o->ships, o->streamed, 0));
    drift_fleet<<<blocks, FLEET_THREADS, 0, o->ships>>>(o->fleet, o->psi, day);
    MUST(cudaGetLastError());
    age_fleet<<<blocks, FLEET_THREADS, 0, o->ships>>>(o->fleet);
    MUST(cudaGetLastError());

    if (day > 0)
        MUST(cudaMemcpyAsync(o->previous, o->bin_of, bytes, cudaMemcpyDeviceToDevice, o->ships));
    locate_fleet<<<(count + 4 * FLEET_THREADS - 1) / (4 * FLEET_THREADS), FLEET_THREADS, 0,
                   o->ships>>>(o->bin_of, o->fleet, o->across);
    MUST(cudaGetLastError());
    if (day > 0) {
        count_movers<<<blocks, FLEET_THREADS, 0, o->ships>>>(o->bin_of, o->previous, count);
        MUST(cudaGetLastError());
    }

    MUST(cudaMemsetAsync(o->bin_count, 0, bin_bytes, o->ships));
    MUST(cudaMemsetAsync(o->taken, 0, bin_bytes, o->ships));
    /* A slot that stayed empty would send summarise_fleet() astray. */
    MUST(cudaMemsetAsync(o->sorted, 0, bytes, o->ships));
    count_bins<<<4, FLEET_THREADS, bin_bytes, o->ships>>>(o->bin_count, o->bin_of, count, o->bins);
    MUST(cudaGetLastError());
    scan_bins<<<1, scan_threads, scan_threads * sizeof(unsigned int), o->ships>>>(
        o->begin, o->bin_count, o->bins);
    MUST(cudaGetLastError());
    sort_fleet<<<blocks, FLEET_THREADS, 0, o->ships>>>(o->sorted, o->taken, o->begin, o->bin_of,
                                                       count);
    MUST(cudaGetLastError());
    summarise_fleet<<<warp_blocks(o->bins), warp_rows, 0, o->ships>>>(
        o->summary_on_device, o->watched, o->sorted, o->begin, o->bins);
    MUST(cudaGetLastError());
    MUST(cudaMemcpyAsync(o->bin_history + (size_t)day * count, o->bin_of, bytes,
                         cudaMemcpyDeviceToHost, o->ships));
    MUST(cudaEventRecord(o->drifted, o->ships));
}

static void move_heat(ocean *o, int day)
{
    advect_heat<<<cell_blocks(o), cell_threads, 0, o->flow>>>(o->heat_next, o->heat, o->psi);
    MUST(cudaGetLastError());
    swap_views(&o->heat, &o->heat_next);
    wave_phase<<<cell_blocks(o), cell_threads, 0, o->flow>>>(o->phase, o->depth, o->heat);
    MUST(cudaGetLastError());
    cumulative_transport<<<warp_blocks(o->size.height), warp_rows, 0, o->flow>>>(o->transport,
                                                                                 o->heat);
    MUST(cudaGetLastError());
    kinetic_energy<<<ENERGY_BLOCKS, ENERGY_THREADS, 0, o->flow>>>(o->energy, o->partial, o->psi,
                                                                  day);
    MUST(cudaGetLastError());
    record_band<<<1, 32, 0, o->flow>>>(o->log, o->heat, day);
    MUST(cudaGetLastError());
}

/* ---- self-check ---- */

/* Close: within a thousandth of the largest element; a NaN is never close. */
static bool near_host(const char *name, const float *got, const float *expected, size_t count)
{
    float top = 0.0f;

    for (size_t i = 0; i < count; i++)
        top = fmaxf(top, fabsf(expected[i]));
    for (size_t i = 0; i < count; i++)
        if (!(fabsf(got[i] - expected[i]) <= 1e-3f * top + 1e-6f)) {
            printf("self-check: %s[%zu] is %.6g, expected %.6g\n", name, i, got[i], expected[i]);
            return false;
        }
    return true;
}

static bool field_near_host(const char *name, field_view field, const float *expected)
{
    const size_t row = field.width * sizeof(float), cells = (size_t)field.width * field.height;
    float *got = (float *)must_alloc(cells * sizeof(float));
    bool same;

    MUST(
        cudaMemcpy2D(got, row, field.data, field.pitch, row, field.height, cudaMemcpyDeviceToHost));
    same = near_host(name, got, expected, cells);
    free(got);
    return same;
}

static bool equal_counts(const char *name, long long got, long long expected)
{
    if (got == expected)
        return true;
    printf("self-check: %s is %lld, expected %lld\n", name, got, expected);
    return false;
}

/* Whole numbers are held against the device's own positions: a drifter whose last bit differs from
   the host's may lie in another bin, and that is no fault. */
static bool fleet_right(const ocean *o, const host_ocean *host, int days)
{
    const int count = o->size.drifters;
    const float east = o->size.width - 1, north = o->size.height - 1;
    const int *bin_of = o->bin_history + (size_t)(days - 1) * count;
    float *position = (float *)must_alloc(2 * count * sizeof(float));
    bin_summary *expected = (bin_summary *)must_alloc(o->bins * sizeof(bin_summary));
    int stranded_by_day[MAX_DAYS], on_coast = 0;
    unsigned int moved, expected_moved = 0;
    bool right = true;

    MUST(
        cudaMemcpy(position, o->fleet.position, 2 * count * sizeof(float), cudaMemcpyDeviceToHost));
    MUST(cudaMemcpyFromSymbol(stranded_by_day, stranded, sizeof(stranded_by_day)));
    MUST(cudaMemcpyFromSymbol(&moved, movers, sizeof(moved)));
    for (int i = 0; i < count; i++) {
        const float x = position[2 * i], y = position[2 * i + 1];
        bin_summary *bin = &expected[host_bin_of(&o->size, x, y)];
        on_coast += x == 0.0f || x == east || y == 0.0f || y == north;
        right = right && equal_counts("bin of a drifter", bin_of[i], bin - expected);
        bin->drifters++;
        bin->age_sum += host->age[i];
        bin->oldest = bin->oldest > host->age[i] ? bin->oldest : host->age[i];
        for (int day = 1; day < days; day++)
            expected_moved += o->bin_history[(size_t)day * count + i] !=
                              o->bin_history[(size_t)(day - 1) * count + i];
    }
    right = right && near_host("position", position, host->position, 2 * count) &&
            equal_counts("stranded", stranded_by_day[days - 1], on_coast) &&
            equal_counts("movers", moved, expected_moved);
    for (int bin = 0; bin < o->bins && right; bin++)
        right =
            equal_counts("drifters of a bin", o->summary[bin].drifters, expected[bin].drifters) &&
            equal_counts("oldest of a bin", o->summary[bin].oldest, expected[bin].oldest) &&
            equal_counts("ages of a bin", o->summary[bin].age_sum, expected[bin].age_sum);
    free(position);
    free(expected);
    return right;
}

static bool sediment_right(const ocean *o, const host_ocean *host)
{
    const size_t cells = (size_t)o->size.width * o->size.height;
    uint8_t *got = (uint8_t *)must_alloc(cells);
    bool right = true;

    MUST(cudaMemcpy(got, o->modal, cells, cudaMemcpyDeviceToHost));
    for (size_t i = 0; i < cells && right; i++)
        right = equal_counts("modal sediment", got[i], host->modal[i]);
    free(got);
    return right;
}

/* Runs the days on the device and on the host; prints the results and whether the two agree. */
static bool run_ocean(const basin *size, uint64_t seed, int days)
{
    host_ocean host;
    ocean o;
    float log[MAX_DAYS];
    bool right = true;

    host_ocean_open(&host, size, seed);
    open_ocean(&o, &host, days);
    prepare(&o);
    for (int day = 0; day < days; day++) {
        stream_function(&o, day);
        move_fleet(&o, day);
        move_heat(&o, day);
    }
    MUST(cudaDeviceSynchronize());
    MUST(cudaMemcpy(log, (char *)o.log.data + WATCHED_BAND * o.log.pitch, days * sizeof(float),
                    cudaMemcpyDeviceToHost));

    host_ocean_prepare(&host);
    for (int day = 0; day < days; day++) {
        host_ocean_day(&host, day);
        printf("day %d: energy %.2f, band %.2f\n", day, o.energy[day], log[day]);
        right = right && fabs(o.energy[day] - host.energy) <= 1e-4 * host.energy &&
                fabsf(log[day] - host.band_mean) <= 1e-4f * host.band_mean;
    }
    if (!right)
        printf("self-check: energy or band of a day differs\n");
    right = right && field_near_host("anomaly", o.anomaly, host.anomaly) &&
            sediment_right(&o, &host) && field_near_host("curl", o.curl, host.curl) &&
            field_near_host("psi", o.psi, host.psi) && field_near_host("heat", o.heat, host.heat) &&
            field_near_host("phase", o.phase, host.phase) &&
            field_near_host("transport", o.transport, host.transport) &&
            fleet_right(&o, &host, days);
    if (right)
        printf("self-check: ok\n");
    close_ocean(&o);
    host_ocean_close(&host);
    return right;
}

#endif
