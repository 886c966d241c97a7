#include "softgpu/link_text.h"

#include <ctype.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "common/hash.h"
#include "common/map.h"

enum { FILES_PER_MODULE = 256 }; /* the reader takes file numbers up to 65535 */

enum token_kind { TOKEN_END, TOKEN_SPACE, TOKEN_NAME, TOKEN_DIRECTIVE, TOKEN_NUMBER, TOKEN_STRING, TOKEN_OTHER };
struct token {
    enum token_kind kind;
    const char *at;
    size_t bytes;
};

static bool name_char(char c)
{
    return isalnum((unsigned char)c) || c == '_' || c == '$' || c == '%';
}

/* White space and comments are one token, so that all tokens together are the text. */
static struct token next_token(const char **text)
{
    const char *start = *text, *p = start;
    enum token_kind kind = TOKEN_OTHER;
    if (!*p) {
        return (struct token){TOKEN_END, p, 0};
    } else if (isspace((unsigned char)*p) || (p[0] == '/' && (p[1] == '/' || p[1] == '*'))) {
        kind = TOKEN_SPACE;
        if (isspace((unsigned char)*p)) {
            p++;
        } else if (p[1] == '/') {
            p += strcspn(p, "\n");
        } else {
            const char *end = strstr(p + 2, "*/");
            p = end ? end + 2 : p + strlen(p);
        }
    } else if (*p == '"') {
        kind = TOKEN_STRING;
        p++;
        p += strcspn(p, "\"\n");
        p += *p == '"';
    } else if (isdigit((unsigned char)*p)) {
        kind = TOKEN_NUMBER;
        while (name_char(*p))
            p++;
    } else if (*p == '.' || name_char(*p)) {
        kind = *p == '.' ? TOKEN_DIRECTIVE : TOKEN_NAME;
        p++;
        while (name_char(*p))
            p++;
    } else {
        p++;
    }
    *text = p;
    return (struct token){kind, start, (size_t)(p - start)};
}

static bool is(struct token t, const char *text)
{
    return t.bytes == strlen(text) && !memcmp(t.at, text, t.bytes);
}

static bool starts(struct token t, const char *text)
{
    size_t n = strlen(text);
    return t.bytes >= n && !memcmp(t.at, text, n);
}

/* ---- which names are the module's own ---- */

/* What is known of the statement at file scope that is being read. */
struct statement {
    bool declares, shared_name, named;
    struct token name;
};

static void take_name(struct map *own, struct statement *s)
{
    if (s->declares && s->named && !s->shared_name)
        map_put(own, hash_bytes64(s->name.at, s->name.bytes), 1);
    *s = (struct statement){0};
}

/* A variable's name is the last one before its size, value or end; a function's the last one before its parameters or
 * body, outside of parentheses (those before it hold what it returns). */
static void collect_own_names(struct map *own, const char *text)
{
    struct statement s = {0};
    int braces = 0, parentheses = 0;
    bool fixed = false;
    for (struct token t = next_token(&text); t.kind != TOKEN_END; t = next_token(&text)) {
        if (t.kind == TOKEN_SPACE)
            continue;
        braces += is(t, "{");
        parentheses += is(t, "(");
        if (!braces && !parentheses) {
            s.declares = s.declares || is(t, ".global") || is(t, ".const") || is(t, ".shared") || is(t, ".func") ||
                         is(t, ".entry");
            s.shared_name = s.shared_name || is(t, ".visible") || is(t, ".extern") || is(t, ".common");
            if (t.kind == TOKEN_NAME && !fixed) {
                s.name = t;
                s.named = true;
            }
            fixed = fixed || is(t, "[") || is(t, "=");
        }
        bool body_ends = is(t, "}") && braces == 1;
        braces -= is(t, "}");
        parentheses -= is(t, ")");
        /* The braces of an initialiser do not end the statement, those of a body do. */
        if (!braces && !parentheses && (is(t, ";") || (body_ends && !fixed))) {
            take_name(own, &s);
            fixed = false;
        }
    }
}

/* ---- writing ---- */

/* Header lines of later modules are left out, each up to the end of its line. */
static bool header_directive(struct token t)
{
    return is(t, ".version") || is(t, ".target") || is(t, ".address_size");
}

void link_text_append(struct buf *out, const char *text, unsigned index)
{
    struct map own = {0};
    bool shift = false; /* the next number counts source files */
    if (index)
        collect_own_names(&own, text);
    buf_text(out, index ? "\n" : "");
    for (struct token t = next_token(&text); t.kind != TOKEN_END; t = next_token(&text)) {
        uint64_t found;
        if (index && t.kind == TOKEN_DIRECTIVE && header_directive(t)) {
            text += strcspn(text, "\n");
            continue;
        }
        if (shift && t.kind == TOKEN_NUMBER) {
            buf_printf(out, "%lu", strtoul(t.at, NULL, 10) + (unsigned long)index * FILES_PER_MODULE);
            shift = false;
            continue;
        }
        buf_append(out, t.at, t.bytes);
        if (!index || t.kind == TOKEN_SPACE)
            continue;
        shift = is(t, ".file") || is(t, ".loc") || is(t, "inlined_at");
        if (t.kind == TOKEN_NAME &&
            (starts(t, "$L__info_string") || map_get(&own, hash_bytes64(t.at, t.bytes), &found)))
            buf_printf(out, "$m%u", index);
    }
    map_free(&own);
}
