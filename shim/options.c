#include "shim/options.h"

#include <ctype.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum option_id {
#define OPTION(option, type, initial, help) OPTION_##option,
#include "shim/options.def"
#undef OPTION
    OPTION_COUNT
};

enum { VALUE_BYTES = 4096 };
static const struct {
    const char *name, *initial;
} defaults[OPTION_COUNT] = {
#define OPTION(option, type, initial, help) {#option, initial},
#include "shim/options.def"
#undef OPTION
};

static struct {
    char value[VALUE_BYTES]; /* as it took effect */
    char given[VALUE_BYTES]; /* what was not understood, else empty */
} rows[OPTION_COUNT];

/* The environment as it was when the process began. Pages of what nobody set are never touched. */
static struct {
    char text[VALUE_BYTES]; /* empty: not set */
    bool too_long;
} environment[OPTION_COUNT];
static bool environment_taken;

struct options options;

bool options_number(const char *text, bool suffixes, uint64_t *out)
{
    char *end;
    if (!isdigit((unsigned char)*text))
        return false;
    unsigned long long value = strtoull(text, &end, 10);
    unsigned shift = 0;
    if (suffixes && *end) {
        switch (tolower((unsigned char)*end)) {
        case 'k':
            shift = 10;
            break;
        case 'm':
            shift = 20;
            break;
        case 'g':
            shift = 30;
            break;
        default:
            return false;
        }
        end++;
    }
    if (*end || value > UINT64_MAX >> shift)
        return false;
    *out = (uint64_t)value << shift;
    return true;
}

static bool parse_word(const char *text, const char *const *words, const int *values, int *out)
{
    for (int i = 0; words[i]; i++)
        if (strcmp(text, words[i]) == 0) {
            *out = values[i];
            return true;
        }
    return false;
}

static bool parse_switch(const char *text, bool *out)
{
    static const char *const words[] = {"on", "off", "1", "0", "yes", "no", NULL};
    static const int values[] = {1, 0, 1, 0, 1, 0};
    int value;
    if (!parse_word(text, words, values, &value))
        return false;
    *out = value;
    return true;
}

static bool parse_preset(const char *text)
{
    static const char *const words[] = {"watch", "check", "deep", NULL};
    static const int values[] = {PRESET_WATCH, PRESET_CHECK, PRESET_DEEP};
    int value;
    if (!parse_word(text, words, values, &value))
        return false;
    options.preset = (enum preset)value;
    return true;
}

static bool parse_sentinels(const char *text)
{
    static const char *const words[] = {"off", "tail", "both", "careful", NULL};
    static const int values[] = {SENTINELS_OFF, SENTINELS_TAIL, SENTINELS_BOTH, SENTINELS_CAREFUL};
    int value;
    if (!parse_word(text, words, values, &value))
        return false;
    options.sentinels = (enum sentinels)value;
    return true;
}

static bool parse_check(const char *text)
{
    static const char *const words[] = {"off", "exit", "sync", "batch", "launch", NULL};
    static const int values[] = {CHECK_OFF, CHECK_EXIT, CHECK_SYNC, CHECK_BATCH, CHECK_LAUNCH};
    int value;
    if (!parse_word(text, words, values, &value))
        return false;
    options.check = (enum check_when)value;
    return true;
}

static bool parse_health(const char *text)
{
    static const char *const words[] = {"off", "sample", "full", NULL};
    static const int values[] = {HEALTH_OFF, HEALTH_SAMPLE, HEALTH_FULL};
    int value;
    if (!parse_word(text, words, values, &value))
        return false;
    options.health = (enum health)value;
    return true;
}

static bool parse_threshold(const char *text)
{
    char *end;
    float value = strtof(text, &end);
    if (end == text || *end || !(value > 0))
        return false;
    memcpy(&options.health_threshold, &value, sizeof value);
    return true;
}

static bool parse_snapshots(const char *text)
{
    if (strcmp(text, "none") == 0)
        options.snapshots_first = 0;
    else if (strcmp(text, "all") == 0)
        options.snapshots_first = UINT64_MAX;
    else
        return strncmp(text, "first=", 6) == 0 && options_number(text + 6, false, &options.snapshots_first);
    return true;
}

/* "5%" or "5": a share; "off": 0. */
static bool parse_share(const char *text, double *out)
{
    if (strcmp(text, "off") == 0) {
        *out = 0;
        return true;
    }
    char *end;
    double value = strtod(text, &end);
    if (end == text || (*end && strcmp(end, "%") != 0) || !(value > 0) || value > 100)
        return false;
    *out = value / 100;
    return true;
}

static bool parse_graphs(const char *text)
{
    static const char *const words[] = {"whole", "explode", NULL};
    static const int values[] = {GRAPHS_WHOLE, GRAPHS_EXPLODE};
    int value;
    if (!parse_word(text, words, values, &value))
        return false;
    options.graphs = (enum graphs)value;
    return true;
}

static bool apply(enum option_id id, const char *text)
{
    switch (id) {
    case OPTION_OUT:
        options.out = rows[OPTION_OUT].value;
        return true;
    case OPTION_PRESET:
        return parse_preset(text);
    case OPTION_SENTINELS:
        return parse_sentinels(text);
    case OPTION_CHECK:
        return parse_check(text);
    case OPTION_CHECK_BATCH:
        return options_number(text, false, &options.check_batch) && options.check_batch > 0;
    case OPTION_QUARANTINE:
        return options_number(text, true, &options.quarantine);
    case OPTION_GUARD:
        return guard_choice_parse(text, &options.guard);
    case OPTION_POISON:
        return parse_switch(text, &options.poison);
    case OPTION_HEALTH:
        return parse_health(text);
    case OPTION_HEALTH_THRESHOLD:
        return parse_threshold(text);
    case OPTION_SNAPSHOTS:
        return parse_snapshots(text);
    case OPTION_SNAPSHOT_BUDGET:
        return options_number(text, true, &options.snapshot_budget);
    case OPTION_GRAPHS:
        return parse_graphs(text);
    case OPTION_MAX_CAPTURE:
        return options_number(text, true, &options.max_capture);
    case OPTION_BUDGET:
        return parse_share(text, &options.budget);
    case OPTION_LOOK_SHARE:
        return parse_share(text, &options.look_share);
    case OPTION_MAX_MEMORY:
        return options_number(text, true, &options.max_memory);
    case OPTION_STACKS:
        return parse_switch(text, &options.stacks);
    case OPTION_TIMES:
        return parse_switch(text, &options.times);
    case OPTION_LEAK_CHECK:
        return parse_switch(text, &options.leak_check);
    case OPTION_KERNEL:
        if (!*text)
            return true;
        options.kernel_filter = regcomp(&options.kernel, text, REG_EXTENDED | REG_NOSUB) == 0;
        return options.kernel_filter;
    case OPTION_LAUNCH_SKIP:
        return options_number(text, false, &options.launch_skip);
    case OPTION_LAUNCH_COUNT:
        return options_number(text, false, &options.launch_count);
    case OPTION_COUNT:
        break;
    }
    return false;
}

static void set_value(enum option_id id, const char *text)
{
    snprintf(rows[id].value, VALUE_BYTES, "%s", text);
}

/* What the preset means for the options that leave it open. */
static void apply_preset(void)
{
    static const char *const by_preset[3][8] = {
        [PRESET_WATCH] = {"tail", "sync", "none", "256M", "0", "off", "sample=1/1000,budget=64M,careful", "0.3%"},
        [PRESET_CHECK] = {"tail", "batch", "first=2", "256M", "0", "off", "off", "1%"},
        [PRESET_DEEP] = {"careful", "launch", "all", "8G", "1G", "on", "off", "off"},
    };
    const char *const *values = by_preset[options.preset];
    set_value(OPTION_SENTINELS, values[0]);
    set_value(OPTION_CHECK, values[1]);
    set_value(OPTION_SNAPSHOTS, values[2]);
    set_value(OPTION_SNAPSHOT_BUDGET, values[3]);
    set_value(OPTION_QUARANTINE, values[4]);
    set_value(OPTION_POISON, values[5]);
    set_value(OPTION_GUARD, values[6]);
    set_value(OPTION_LOOK_SHARE, values[7]);
    set_value(OPTION_HEALTH, "sample"); /* of which launches says the preset: see scan.c */
}

static int option_named(const char *name, size_t length)
{
    for (int i = 0; i < OPTION_COUNT; i++)
        if (strncmp(defaults[i].name, name, length) == 0 && !defaults[i].name[length])
            return i;
    return -1;
}

void options_take_environment(void)
{
    static const char prefix[] = "OPSDEBUG_";
    enum { PREFIX_BYTES = sizeof prefix - 1 };
    for (int i = 0; environment_taken && i < OPTION_COUNT; i++)
        environment[i].text[0] = '\0';
    environment_taken = true;
    for (char **at = environ; at && *at; at++) {
        const char *equals = strncmp(*at, prefix, PREFIX_BYTES) == 0 ? strchr(*at, '=') : NULL;
        int id = equals ? option_named(*at + PREFIX_BYTES, (size_t)(equals - *at) - PREFIX_BYTES) : -1;
        char variable[64];
        if (id < 0)
            continue;
        snprintf(variable, sizeof variable, "%s%s", prefix, defaults[id].name);
        const char *given = secure_getenv(variable);
        if (given)
            environment[id].too_long = snprintf(environment[id].text, VALUE_BYTES, "%s", given) >= VALUE_BYTES;
    }
}

/* Programs clear their environment, or overwrite it, before they come to their first CUDA call. */
__attribute__((constructor)) static void at_load(void)
{
    options_take_environment();
}

static void take(enum option_id id)
{
    static char kept[VALUE_BYTES];
    const char *given = environment[id].text;
    snprintf(kept, sizeof kept, "%s", rows[id].value);
    if (*given) {
        set_value(id, given);
        if (!environment[id].too_long && apply(id, rows[id].value))
            return;
        snprintf(rows[id].given, VALUE_BYTES, "%s", given);
        set_value(id, kept);
    }
    if (*kept || id == OPTION_OUT)
        apply(id, rows[id].value);
}

void options_read(void)
{
    if (!environment_taken) /* a library that was initialised before us makes the first call */
        options_take_environment();
    options = (struct options){.launch_count = UINT64_MAX};
    for (unsigned i = 0; i < OPTION_COUNT; i++) {
        set_value(i, defaults[i].initial);
        rows[i].given[0] = '\0';
    }
    take(OPTION_PRESET);
    apply_preset();
    for (unsigned i = 0; i < OPTION_COUNT; i++)
        if (i != OPTION_PRESET)
            take(i);
}

unsigned options_count(void)
{
    return OPTION_COUNT;
}

struct option_taken options_taken(unsigned row)
{
    return (struct option_taken){defaults[row].name, rows[row].value, rows[row].given};
}
