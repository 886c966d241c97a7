#include "shim/guard_choice.h"

#include <stdio.h>
#include <string.h>

#include "shim/options.h"

enum { WORD_BYTES = 256 };
static const uint64_t reach_default = UINT64_C(32) << 20;

/* "A" or "A-B". */
static bool parse_order(char *text, struct guard_choice *c)
{
    char *dash = strchr(text, '-');
    if (dash)
        *dash = '\0';
    if (!options_number(text, false, &c->first) || !c->first)
        return false;
    c->last = c->first;
    return !dash || (options_number(dash + 1, false, &c->last) && c->last >= c->first);
}

static bool parse_call(const char *text, struct guard_choice *c)
{
    if (c->by_call || !*text)
        return false;
    c->by_call = regcomp(&c->call, text, REG_EXTENDED | REG_NOSUB) == 0;
    return c->by_call;
}

static bool parse_side(const char *text, struct guard_choice *c)
{
    c->under = strcmp(text, "under") == 0;
    return c->under || strcmp(text, "over") == 0;
}

static bool parse_word(char *word, struct guard_choice *c)
{
    char *value = strchr(word, '=');
    if (!value) {
        c->careful = c->careful || strcmp(word, "careful") == 0;
        return strcmp(word, "all") == 0 || strcmp(word, "careful") == 0;
    }
    *value++ = '\0';
    if (strcmp(word, "sample") == 0)
        return strncmp(value, "1/", 2) == 0 && options_number(value + 2, false, &c->sample) && c->sample;
    if (strcmp(word, "seed") == 0)
        return options_number(value, false, &c->seed) && c->seed;
    if (strcmp(word, "min") == 0)
        return options_number(value, true, &c->min);
    if (strcmp(word, "max") == 0)
        return options_number(value, true, &c->max);
    if (strcmp(word, "budget") == 0)
        return options_number(value, true, &c->budget) && c->budget;
    if (strcmp(word, "reach") == 0)
        return options_number(value, true, &c->reach);
    if (strcmp(word, "order") == 0)
        return parse_order(value, c);
    if (strcmp(word, "side") == 0)
        return parse_side(value, c);
    return strcmp(word, "call") == 0 && parse_call(value, c);
}

bool guard_choice_parse(const char *text, struct guard_choice *out)
{
    struct guard_choice c = {.sample = 1, .max = UINT64_MAX, .first = 1, .last = UINT64_MAX, .reach = reach_default};
    char word[WORD_BYTES];
    *out = c;
    if (strcmp(text, "off") == 0)
        return true;
    for (const char *at = text;; at++) {
        const char *end = strchrnul(at, ',');
        if (end == at || end - at >= WORD_BYTES)
            break;
        memcpy(word, at, (size_t)(end - at));
        word[end - at] = '\0';
        if (!parse_word(word, &c))
            break;
        at = end;
        if (*at)
            continue;
        if (c.min > c.max)
            break;
        c.on = true;
        *out = c;
        return true;
    }
    if (c.by_call)
        regfree(&c.call);
    return false;
}

/* splitmix64 (Steele, Lea, Flood 2014): neighbouring numbers give unrelated ones. */
static uint64_t scramble(uint64_t x)
{
    x += UINT64_C(0x9e3779b97f4a7c15);
    x = (x ^ x >> 30) * UINT64_C(0xbf58476d1ce4e5b9);
    x = (x ^ x >> 27) * UINT64_C(0x94d049bb133111eb);
    return x ^ x >> 31;
}

static bool called_by(const struct guard_choice *c, const char *call, const char *scope)
{
    return !c->by_call || regexec(&c->call, call, 0, NULL, 0) == 0 || regexec(&c->call, scope, 0, NULL, 0) == 0;
}

bool guard_choice_takes(const struct guard_choice *c, uint64_t seed, uint32_t number, uint64_t bytes, const char *call,
                        const char *scope)
{
    return c->on && bytes >= c->min && bytes <= c->max && number >= c->first && number <= c->last &&
           scramble(scramble(seed) + number) % c->sample == 0 && called_by(c, call, scope);
}
