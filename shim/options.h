/* options.h - the effective configuration, read once when the capture starts, from the environment that the process
 * began with. Read-only afterwards. */
#ifndef SHIM_OPTIONS_H
#define SHIM_OPTIONS_H

#include <regex.h>
#include <stdbool.h>
#include <stdint.h>

#include "shim/guard_choice.h"

enum preset { PRESET_WATCH, PRESET_CHECK, PRESET_DEEP };
enum sentinels { SENTINELS_OFF, SENTINELS_TAIL, SENTINELS_BOTH, SENTINELS_CAREFUL };
enum health { HEALTH_OFF, HEALTH_SAMPLE, HEALTH_FULL };
enum graphs { GRAPHS_WHOLE, GRAPHS_EXPLODE };
enum check_when { CHECK_OFF, CHECK_EXIT, CHECK_SYNC, CHECK_BATCH, CHECK_LAUNCH };

struct options {
    const char *out;
    enum preset preset;
    enum sentinels sentinels;
    enum check_when check;
    uint64_t check_batch;
    uint64_t quarantine; /* bytes, 0: off */
    bool poison;
    struct guard_choice guard;
    enum health health;
    uint32_t health_threshold; /* bits of a positive fp32 number */
    uint64_t snapshots_first;  /* launches of each kernel and shape; UINT64_MAX: all */
    uint64_t snapshot_budget;
    enum graphs graphs;
    bool stacks, times;
    bool leak_check;      /* for the analyzer, which finds it among the recorded options */
    uint64_t max_capture; /* bytes on disk, 0: no limit */
    uint64_t max_memory;  /* bytes that we may hold, 0: no limit */
    double budget;        /* share of the program's time that is ours; 0: no budget */
    double look_share;    /* of the device's time, for each kind of looks (pace.h); 0: no limit */
    bool kernel_filter;   /* `kernel` is compiled */
    regex_t kernel;
    uint64_t launch_skip, launch_count;
};
extern struct options options;

/* Copies OPSDEBUG_*, by secure_getenv (a setuid program is not steered from outside). Runs when the library is loaded,
 * in every process: it only copies what is set. */
void options_take_environment(void);
/* Makes `options` of it. Bad values leave the default. In one thread. */
void options_read(void);
/* The rows of options.def as options_read() took them. The launcher asks for them before the program starts, too
 * (analyzer/check_options.c): options.c links without the rest of the shim. */
struct option_taken {
    const char *name;  /* without OPSDEBUG_ */
    const char *value; /* as it takes effect; "" when nothing says */
    const char *given; /* what was not understood, else "" */
};
unsigned options_count(void);
struct option_taken options_taken(unsigned row);
/* Writes one CAP_OPTION per row, and a note for every value that was not understood (options_record.c). */
void options_record(void);

/* A decimal number; with `suffixes` k, M, G may follow. */
bool options_number(const char *text, bool suffixes, uint64_t *out);

#endif
