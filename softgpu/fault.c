#include "softgpu/fault.h"

#include <errno.h>
#include <regex.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "softgpu/memory.h"

enum { WORD = 4, UNIT = 512, TAIL_WORDS = 4, NAN_WORD = 0x7fffffff, PATTERN_BYTES = 1024 };
#define MAX_FACTOR       1000000
#define TEXT_OF(literal) #literal
#define TEXT(macro)      TEXT_OF(macro)

struct rule {
    enum fault_kind kind;
    bool any; /* no pattern */
    regex_t pattern;
    uint64_t only; /* the n-th match, or 0 for all */
    double rate;
    uint64_t seed, matches;
};
static struct rule *rules;
static size_t rule_count;
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER; /* of the counters */
static pthread_once_t once = PTHREAD_ONCE_INIT;

/* The finaliser of SplitMix64: an even choice from a seed and a number. */
static uint64_t mix(uint64_t seed, uint64_t n)
{
    uint64_t x = seed * UINT64_C(0x9e3779b97f4a7c15) + n + 1;
    x = (x ^ x >> 30) * UINT64_C(0xbf58476d1ce4e5b9);
    x = (x ^ x >> 27) * UINT64_C(0x94d049bb133111eb);
    return x ^ x >> 31;
}

static bool chosen(double rate, uint64_t seed, uint64_t n)
{
    return rate >= 1 || (double)(mix(seed, n) >> 11) < rate * 0x1p53;
}

/* ---- SOFTGPU_FAULTS: rules separated by semicolons, fields by commas, both escaped by a backslash ---- */

/* Cuts the next piece off *text, up to an unescaped `end`; escapes of it are taken out. */
static char *cut(char **text, char end)
{
    char *start = *text, *out = start, *in = start;
    while (*in && *in != end) {
        if (*in == '\\' && in[1]) {
            /* Only the separators are escaped here; all else belongs to the pattern. */
            if (in[1] != ',' && in[1] != ';')
                *out++ = *in;
            else if (end == ';')
                *out++ = *in; /* still to be cut at commas */
            in++;
        }
        *out++ = *in++;
    }
    *text = *in ? in + 1 : in;
    *out = '\0';
    return start;
}

static bool parse_kind(const char *text, enum fault_kind *kind)
{
    static const char *const names[] = {
#define K(id, name) name,
        FAULT_KINDS(K)
#undef K
    };
    for (int i = 0; i < FAULT_COUNT; i++)
        if (!strcmp(text, names[i])) {
            *kind = (enum fault_kind)i;
            return true;
        }
    return false;
}

static bool parse_number(const char *text, uint64_t *number)
{
    char *end;
    errno = 0;
    *number = strtoull(text, &end, 10);
    return *text >= '0' && *text <= '9' && !errno && !*end;
}

/* NULL, or what is wrong with the field. */
static const char *parse_field(struct rule *r, char *field, bool *has_kind)
{
    char *value = strchr(field, '='), *end;
    if (!value)
        return "is no NAME=VALUE";
    *value++ = '\0';
    if (!strcmp(field, "kernel")) {
        if (!r->any)
            return "is there twice";
        /* glibc's compiler of patterns recurses. */
        if (strlen(value) > PATTERN_BYTES || regcomp(&r->pattern, value, REG_EXTENDED | REG_NOSUB) != 0)
            return "is no pattern";
        r->any = false;
        return NULL;
    }
    if (!strcmp(field, "kind"))
        return (*has_kind = parse_kind(value, &r->kind)) ? NULL : "is no kind of flaw";
    if (!strcmp(field, "launch"))
        return parse_number(value, &r->only) && r->only ? NULL : "is no number from 1";
    if (!strcmp(field, "seed"))
        return parse_number(value, &r->seed) ? NULL : "is no number";
    if (strcmp(field, "rate") != 0)
        return "is no field of a rule";
    r->rate = strtod(value, &end);
    return end != value && !*end && r->rate > 0 ? NULL : "is no number above 0";
}

/* NULL, or what is wrong with the rule; *culprit is set to the field that it is about. */
static const char *parse_rule(struct rule *r, char *text, const char **culprit)
{
    bool has_kind = false;
    *r = (struct rule){.any = true};
    while (*text) {
        char *field = cut(&text, ',');
        const char *wrong = parse_field(r, field, &has_kind);
        *culprit = field;
        if (wrong)
            return wrong;
    }
    *culprit = "kind";
    if (!has_kind)
        return "is missing";
    *culprit = "rate";
    if (r->kind == FAULT_SLOWMEM || r->kind == FAULT_SLOWLAUNCH)
        return r->rate <= MAX_FACTOR ? NULL : "is above " TEXT(MAX_FACTOR);
    return r->rate <= 1 ? NULL : "is a share, at most 1";
}

static void read_rules(void)
{
    const char *given = secure_getenv("SOFTGPU_FAULTS"), *culprit;
    char *copy = given && *given ? strdup(given) : NULL, *text = copy;
    while (text && *text) {
        struct rule r;
        const char *wrong = parse_rule(&r, cut(&text, ';'), &culprit);
        if (wrong) {
            config_problem("SOFTGPU_FAULTS: rule %zu: %.40s %s", rule_count + 1, culprit, wrong);
            break;
        }
        struct rule *more = realloc(rules, (rule_count + 1) * sizeof *rules);
        if (!more)
            break;
        rules = more;
        rules[rule_count++] = r;
    }
    free(copy);
}

void fault_read(void)
{
    pthread_once(&once, read_rules);
}

void fault_log_sticky(const char *name)
{
    char detail[256];
    snprintf(detail, sizeof detail, "%.200s: fails, as SOFTGPU_FAULTS asks for", name);
    log_unsupported_part("launch", detail);
}

/* ---- calls ---- */

/* Kinds whose rate is a share of calls. */
static bool rate_is_of_calls(enum fault_kind kind)
{
    return kind == FAULT_STALE || kind == FAULT_LAUNCHFAIL || kind == FAULT_STICKY || kind == FAULT_ALLOCFAIL;
}

/* Counts a match; whether the rule applies to this one. Needs the lock. */
static bool applies(struct rule *r, const char *name)
{
    if (!r->any && regexec(&r->pattern, name, 0, NULL, 0) != 0)
        return false;
    uint64_t n = ++r->matches;
    if (r->only)
        return n == r->only;
    return !rate_is_of_calls(r->kind) || r->rate == 0 || chosen(r->rate, r->seed, n);
}

void fault_on_call(const char *name, struct fault_plan *plan)
{
    *plan = (struct fault_plan){0};
    fault_read();
    if (!rule_count)
        return;
    pthread_mutex_lock(&lock);
    for (size_t i = 0; i < rule_count; i++) {
        struct rule *r = &rules[i];
        if (r->kind == FAULT_ALLOCFAIL || !applies(r, name))
            continue;
        plan->kinds |= 1u << r->kind;
        plan->rate[r->kind] = r->rate;
        plan->seed[r->kind] = mix(r->seed, r->matches);
    }
    pthread_mutex_unlock(&lock);
}

bool fault_changes_text(void)
{
    fault_read();
    for (size_t i = 0; i < rule_count; i++)
        if (FAULT_TEXT_KINDS >> rules[i].kind & 1)
            return true;
    return false;
}

bool fault_on_alloc(const char *function)
{
    bool fail = false;
    fault_read();
    if (!rule_count)
        return false;
    pthread_mutex_lock(&lock);
    for (size_t i = 0; i < rule_count; i++)
        if (rules[i].kind == FAULT_ALLOCFAIL && applies(&rules[i], function))
            fail = true;
    pthread_mutex_unlock(&lock);
    return fail;
}

/* ---- what a launch writes ---- */

struct watched {
    struct ptx_range range; /* `written` is ours */
    uint8_t *before;        /* contents when the launch first touched it */
    struct watched *next;
};

bool fault_needs_watch(const struct fault_plan *plan)
{
    return plan->kinds & (1u << FAULT_NAN | 1u << FAULT_BITFLIP | 1u << FAULT_DROPSTORE | 1u << FAULT_TAIL);
}

void fault_watch_begin(struct fault_watch *watch)
{
    pthread_mutex_init(&watch->lock, NULL);
    watch->list = NULL;
}

/* Narrows a run of pages to the allocation around `address`, or to one unit of padding: whole runs are too much to
 * copy. */
static void narrow(uint64_t address, struct ptx_range *range)
{
    struct allocation a;
    uint64_t low = address / UNIT * UNIT, high = low + UNIT;
    if (memory_lookup(low > range->address ? low : range->address, &a) || memory_lookup(address, &a)) {
        low = a.address / UNIT * UNIT;
        high = (a.address + a.bytes + UNIT - 1) / UNIT * UNIT;
    }
    low = low > range->address ? low : range->address;
    high = high < range->address + range->bytes ? high : range->address + range->bytes;
    range->host = (char *)range->host + (low - range->address);
    range->address = low;
    range->bytes = high - low;
}

static struct watched *watch_new(uint64_t address)
{
    struct watched *w = calloc(1, sizeof *w);
    if (w && memory_find(NULL, address, &w->range)) {
        narrow(address, &w->range);
        w->before = malloc(w->range.bytes);
        w->range.written = calloc(1, (w->range.bytes + 7) / 8);
        if (w->before && w->range.written) {
            memcpy(w->before, w->range.host, w->range.bytes);
            return w;
        }
        free(w->before);
        free(w->range.written);
    }
    free(w);
    return NULL;
}

bool fault_watch_find(void *context, uint64_t address, struct ptx_range *range)
{
    struct fault_watch *watch = context;
    pthread_mutex_lock(&watch->lock);
    struct watched *w = watch->list;
    while (w && address - w->range.address >= w->range.bytes)
        w = w->next;
    if (!w && (w = watch_new(address))) {
        w->next = watch->list;
        watch->list = w;
    }
    if (w)
        *range = w->range;
    pthread_mutex_unlock(&watch->lock);
    return w != NULL;
}

/* ---- damage ---- */

static bool word_written(const struct watched *w, uint64_t i)
{
    return w->range.written[i / 2] >> (i % 2 * 4) & 15;
}

static void restore(struct watched *w, uint64_t i)
{
    memcpy((char *)w->range.host + i * WORD, w->before + i * WORD, WORD);
}

static void damage_word(struct watched *w, uint64_t i, enum fault_kind kind, uint64_t random)
{
    uint32_t word;
    char *at = (char *)w->range.host + i * WORD;
    if (kind == FAULT_DROPSTORE) {
        restore(w, i);
        return;
    }
    memcpy(&word, at, WORD);
    word = kind == FAULT_NAN ? NAN_WORD : word ^ 1u << (20 + random % 11);
    memcpy(at, &word, WORD);
}

/* A share of the written words; without a rate exactly one. */
static void damage(struct watched *list, enum fault_kind kind, double rate, uint64_t seed)
{
    uint64_t total = 0, n = 0;
    for (struct watched *w = list; w; w = w->next)
        for (uint64_t i = 0; i < w->range.bytes / WORD; i++)
            total += word_written(w, i);
    uint64_t only = total ? mix(seed, 0) % total : 0;
    for (struct watched *w = list; w; w = w->next)
        for (uint64_t i = 0; i < w->range.bytes / WORD; i++) {
            if (!word_written(w, i))
                continue;
            if (rate > 0 ? chosen(rate, seed, n) : n == only)
                damage_word(w, i, kind, mix(seed, ~n));
            n++;
        }
}

static void damage_tail(struct watched *w, double rate)
{
    uint64_t words = w->range.bytes / WORD, total = 0;
    for (uint64_t i = 0; i < words; i++)
        total += word_written(w, i);
    uint64_t left = rate > 0 ? (uint64_t)((double)total * rate) + 1 : TAIL_WORDS;
    for (uint64_t i = words; i-- > 0 && left > 0;)
        if (word_written(w, i)) {
            restore(w, i);
            left--;
        }
}

void fault_watch_end(struct fault_watch *watch, const struct fault_plan *plan)
{
    for (struct watched *w = watch->list; w && fault_has(plan, FAULT_TAIL); w = w->next)
        damage_tail(w, plan->rate[FAULT_TAIL]);
    static const enum fault_kind kinds[] = {FAULT_DROPSTORE, FAULT_NAN, FAULT_BITFLIP};
    for (int i = 0; i < 3; i++)
        if (fault_has(plan, kinds[i]))
            damage(watch->list, kinds[i], plan->rate[kinds[i]], plan->seed[kinds[i]]);
    for (struct watched *w = watch->list, *next; w; w = next) {
        next = w->next;
        free(w->before);
        free(w->range.written);
        free(w);
    }
    pthread_mutex_destroy(&watch->lock);
}
