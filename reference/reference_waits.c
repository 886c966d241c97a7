/* reference_waits.c - may a kernel wait for memory that others write while it runs?
 *
 * It takes a loop around a load that must be done again each time: a volatile, relaxed or acquiring one, or an atomic
 * whose result is used. Found by looking at the text, so the answer may be yes for a loop that waits for nobody.
 */
#include <ctype.h>
#include <stdlib.h>
#include <string.h>

#include "reference/reference_module.h"

/* An instruction without its guard and semicolon, or a label without its colon. */
struct statement {
    const char *at;
    size_t bytes;
    bool label;
};
struct statements {
    struct statement *items; /* owned */
    size_t count;
};

static bool in_word(char c)
{
    return isalnum((unsigned char)c) || c == '_' || c == '$' || c == '%';
}

static size_t word_bytes(const char *at, const char *end)
{
    size_t n = 0;
    while (at + n < end && in_word(at[n]))
        n++;
    return n;
}

static const char *skip_blank(const char *at, const char *end)
{
    while (at < end && isspace((unsigned char)*at))
        at++;
    return at;
}

static const char *skip_line(const char *at, const char *end)
{
    const char *stop = memchr(at, '\n', (size_t)(end - at));
    return stop ? stop + 1 : end;
}

/* Behind a comment, a brace or a directive that ends with its line; `at` itself when there is none. */
static const char *skip_dressing(const char *at, const char *end)
{
    size_t left = (size_t)(end - at);
    if (left >= 2 && at[0] == '/' && at[1] == '/')
        return skip_line(at, end);
    if (left >= 2 && at[0] == '/' && at[1] == '*') {
        for (at += 2; at + 2 <= end && !(at[0] == '*' && at[1] == '/'); at++)
            ;
        return at + 2 < end ? at + 2 : end;
    }
    if (left >= 1 && (*at == '{' || *at == '}'))
        return at + 1;
    if (left >= 5 && (memcmp(at, ".loc ", 5) == 0 || memcmp(at, ".loc\t", 5) == 0))
        return skip_line(at, end);
    return at;
}

static struct statements split(const char *at, const char *end)
{
    size_t most = 1;
    for (const char *p = at; p < end; p++)
        most += *p == ';' || *p == ':';
    struct statements out = {calloc(most, sizeof *out.items), 0};
    while (out.items && at < end) {
        const char *next = skip_dressing(at = skip_blank(at, end), end);
        if (next != at) {
            at = next;
            continue;
        }
        if (at < end && *at == '@') { /* a guard */
            for (at++; at < end && !isspace((unsigned char)*at);)
                at++;
            continue;
        }
        size_t n = word_bytes(at, end);
        const char *stop = at + n;
        bool label = n && stop < end && *stop == ':';
        if (!label && !(stop = memchr(at, ';', (size_t)(end - at))))
            stop = end;
        if (out.count < most)
            out.items[out.count++] = (struct statement){at, (size_t)(stop - at), label};
        at = stop < end ? stop + 1 : end;
    }
    return out;
}

static bool begins(const struct statement *s, const char *text)
{
    size_t n = strlen(text);
    return !s->label && s->bytes >= n && memcmp(s->at, text, n) == 0;
}

/* Is `part` in the operation's name? */
static bool named(const struct statement *s, const char *part)
{
    size_t n = strlen(part);
    for (size_t at = 0; at + n <= s->bytes && !isspace((unsigned char)s->at[at]); at++)
        if (memcmp(s->at + at, part, n) == 0)
            return true;
    return false;
}

/* The first operand's first word: a label, a register. */
static struct statement operand(const struct statement *s)
{
    const char *at = s->at, *end = s->at + s->bytes;
    while (at < end && !isspace((unsigned char)*at))
        at++;
    while (at < end && !in_word(*at))
        at++;
    return (struct statement){at, word_bytes(at, end), false};
}

static size_t count_word(const struct statement *s, const struct statement *word)
{
    size_t n = 0;
    for (const char *at = s->at, *end = s->at + s->bytes; at < end;) {
        size_t bytes = word_bytes(at, end);
        n += bytes && bytes == word->bytes && memcmp(at, word->at, bytes) == 0;
        at += bytes ? bytes : 1;
    }
    return n;
}

static bool ordered_load(const struct statement *s)
{
    static const char *const kinds[] = {".volatile", ".relaxed", ".acquire", ".mmio", ".cv"};
    if (begins(s, "multimem.ld_reduce"))
        return true;
    if (!begins(s, "ld.") || named(s, ".shared") || named(s, ".local") || named(s, ".param"))
        return false;
    for (size_t i = 0; i < sizeof kinds / sizeof *kinds; i++)
        if (named(s, kinds[i]))
            return true;
    return false;
}

/* An atomic on memory that others reach. */
static bool shared_atomic(const struct statement *s)
{
    return begins(s, "atom.") && !named(s, ".shared");
}

static bool result_used(const struct statements *all, const struct statement *s)
{
    struct statement word = operand(s);
    size_t uses = 0;
    for (size_t i = 0; i < all->count && uses < 2; i++)
        uses += count_word(&all->items[i], &word);
    return uses > 1;
}

/* Does a branch at `i` or behind it lead to a label before it? */
static bool inside_loop(const struct statements *all, size_t i)
{
    for (size_t b = i; b < all->count; b++) {
        if (begins(&all->items[b], "brx"))
            return true;
        if (!begins(&all->items[b], "bra"))
            continue;
        struct statement label = operand(&all->items[b]);
        for (size_t k = 0; k < i; k++) {
            const struct statement *s = &all->items[k];
            if (s->label && s->bytes == label.bytes && memcmp(s->at, label.at, label.bytes) == 0)
                return true;
        }
    }
    return false;
}

static const char *line_start(const struct reference_module *m, uint32_t line)
{
    const char *at = m->text, *end = m->text + m->bytes;
    while (--line && at < end)
        at = skip_line(at, end);
    return at;
}

bool reference_may_wait(const struct reference_module *m, const struct ptx_kernel *kernel)
{
    const char *end = m->text + m->bytes;
    struct statements own = split(line_start(m, kernel->first_line), skip_line(line_start(m, kernel->last_line), end));
    bool waits = !own.items, calls = false;
    for (size_t i = 0; i < own.count && !waits; i++) {
        const struct statement *s = &own.items[i];
        calls = calls || begins(s, "call");
        bool again = ordered_load(s) || (shared_atomic(s) && result_used(&own, s));
        waits = again && inside_loop(&own, i);
    }
    free(own.items);
    if (waits || !calls)
        return waits;
    /* A function that it calls may wait, or the loop may be here and the load there. */
    struct statements all = split(m->text, end);
    waits = !all.items;
    for (size_t i = 0; i < all.count && !waits; i++)
        waits = ordered_load(&all.items[i]) || shared_atomic(&all.items[i]);
    free(all.items);
    return waits;
}
