/* link.c - several PTX modules as one, by their text: what a device linker does with machine code.
 *
 * First each module's statements at file scope are read (scan_module), then every name that is not a module's own gets
 * the one definition that counts, with which all that the modules say of the name has to agree; then the texts are
 * written one behind the other: own names that another module has, too, with a suffix, surplus weak definitions as
 * declarations, numbers of source files shifted. */
#include <ctype.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "common/buf.h"
#include "common/map.h"
#include "ptx/ast.h"
#include "ptx/link_agree.h"

enum { MAX_MODULES = 255 };

enum token_kind { TOKEN_END, TOKEN_SPACE, TOKEN_NAME, TOKEN_DIRECTIVE, TOKEN_NUMBER, TOKEN_STRING, TOKEN_OTHER };
struct token {
    enum token_kind kind;
    const char *at;
    size_t bytes;
};

enum linkage { OWN, VISIBLE, WEAK, EXTERNAL };
enum what { WHAT_NONE, WHAT_VARIABLE, WHAT_FUNCTION, WHAT_KERNEL };

/* A statement at file scope that names something. */
struct entity {
    struct token name, linkage_word; /* linkage_word: TOKEN_END when it has none */
    const char *start, *end;
    const char *head_end; /* where a declaration would end: before the value or body, behind the parameters */
    enum linkage linkage;
    enum what what;
    bool defines, used, unsized_shared;
};
struct module {
    const char *text, *name;
    struct entity *entities;
    uint32_t count, capacity;
    struct map index; /* hash of a name -> number of its entity in this module that matters most, + 1 */
    struct link_tree *tree;
    uint32_t file_shift; /* added to its numbers of source files: room for those of the modules before it */
};
/* A name that several modules may know. */
struct global {
    uint32_t strong, weak; /* module + 1 whose definition it is */
    uint32_t modules;      /* that have the name at file scope */
    uint32_t last;         /* module + 1, of these */
    enum what what;
    const struct symbol *first; /* what module `first_in`, the first that shares the name, says of it */
    uint32_t first_in;
};
struct link {
    struct module *modules;
    size_t count;
    struct map names; /* hash -> number in `globals` */
    struct global *globals;
    uint32_t global_count, global_capacity;
    struct diag *diag;
    enum status status;
};

/* ---- tokens ---- */

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
    } else if (isspace((unsigned char)*p)) {
        kind = TOKEN_SPACE;
        p++;
    } else if (p[0] == '/' && p[1] == '/') {
        kind = TOKEN_SPACE;
        p += strcspn(p, "\n");
    } else if (p[0] == '/' && p[1] == '*') {
        const char *end = strstr(p + 2, "*/");
        kind = TOKEN_SPACE;
        p = end ? end + 2 : p + strlen(p);
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

static uint64_t hash(struct token t) /* FNV-1a */
{
    uint64_t h = UINT64_C(0xcbf29ce484222325);
    for (size_t i = 0; i < t.bytes; i++)
        h = (h ^ (unsigned char)t.at[i]) * UINT64_C(0x100000001b3);
    return h;
}

/* ---- reading ---- */

static void no_memory(struct link *l)
{
    if (l->status == STATUS_OK) {
        l->status = STATUS_NO_MEMORY;
        snprintf(l->diag->text, sizeof l->diag->text, "out of memory while linking PTX");
    }
}

static void fail(struct link *l, const struct module *m, const struct entity *e, const char *format, const char *other)
{
    unsigned line = 1;
    if (l->status != STATUS_OK)
        return;
    l->status = STATUS_BAD_INPUT;
    for (const char *p = m->text; p < e->name.at; p++)
        line += *p == '\n';
    char name[200];
    snprintf(name, sizeof name, "%.*s", (int)e->name.bytes, e->name.at);
    snprintf(l->diag->where, sizeof l->diag->where, "%s", m->name);
    snprintf(l->diag->text, sizeof l->diag->text, format, name, m->name, other);
    l->diag->line = line;
    l->diag->column = 1;
}

static struct entity *find(const struct module *m, uint64_t key)
{
    uint64_t at;
    return map_get(&m->index, key, &at) ? &m->entities[at - 1] : NULL;
}

static void keep(struct link *l, struct module *m, const struct entity *e)
{
    if (m->count == m->capacity) {
        uint32_t want = m->capacity ? m->capacity * 2 : 64;
        struct entity *fresh = realloc(m->entities, want * sizeof *fresh);
        if (!fresh) {
            no_memory(l);
            return;
        }
        m->entities = fresh;
        m->capacity = want;
    }
    m->entities[m->count++] = *e;
    const struct entity *old = find(m, hash(e->name));
    if ((!old || (e->defines && !old->defines)) && !map_put(&m->index, hash(e->name), m->count))
        no_memory(l);
}

static bool is_header(struct token t)
{
    return t.kind == TOKEN_DIRECTIVE && (is(t, ".version") || is(t, ".target") || is(t, ".address_size"));
}

static struct token next_word(const char **text)
{
    struct token t = next_token(text);
    while (t.kind == TOKEN_SPACE)
        t = next_token(text);
    return t;
}

/* Where a directive ends that no semicolon ends; `rest` is what follows its first word. */
static const char *directive_end(struct token directive, const char *rest)
{
    const char *end = rest, *p = rest;
    struct token t = next_word(&p);
    if (is(directive, ".version") || is(directive, ".address_size")) {
        char *number_end;
        (void)strtod(t.at, &number_end); /* 7.0 is several tokens here */
        end = number_end > p ? number_end : p;
        while (name_char(*end))
            end++;
        return end;
    }
    if (is(directive, ".file")) /* number "name" [, time stamp [, size]] */
        (void)next_word(&p);
    end = p;
    while (is(next_word(&p), ",")) {
        (void)next_word(&p);
        end = p;
    }
    return end;
}

struct scan {
    struct entity e;
    bool fixed;   /* the name is known: what follows is size, value or parameters */
    bool unsized; /* a variable's size is empty: [] */
    bool shared, alias;
    int braces, parentheses;
};

/* Of a word outside of braces and parentheses. */
static void take_word(struct scan *s, struct token t)
{
    static const struct {
        const char *word;
        enum linkage linkage;
    } linkages[] = {{".visible", VISIBLE}, {".extern", EXTERNAL}, {".weak", WEAK}, {".common", WEAK}};
    for (size_t i = 0; i < sizeof linkages / sizeof *linkages; i++)
        if (is(t, linkages[i].word)) {
            s->e.linkage = linkages[i].linkage;
            s->e.linkage_word = t;
        }
    if (is(t, ".global") || is(t, ".const") || is(t, ".shared"))
        s->e.what = WHAT_VARIABLE;
    if (is(t, ".func") || is(t, ".entry"))
        s->e.what = is(t, ".func") ? WHAT_FUNCTION : WHAT_KERNEL;
    s->shared = s->shared || is(t, ".shared");
    /* A variable's name is the last one before its size, value or end; a function's the last one before its parameters
     * or body: those before it, in parentheses, hold what it returns. */
    if (t.kind == TOKEN_NAME && !s->fixed) {
        s->e.name = t;
        s->e.head_end = t.at + t.bytes;
    }
    s->fixed = s->fixed || is(t, "[") || is(t, "=") || (s->alias && t.kind == TOKEN_NAME);
    if (is(t, ".alias")) { /* .alias name, target; defines a function */
        s->alias = s->e.defines = true;
        s->e.what = WHAT_FUNCTION;
        s->e.linkage = VISIBLE;
    }
    if (s->e.what == WHAT_VARIABLE && is(t, "]"))
        s->e.head_end = t.at + 1;
    s->e.defines = s->e.defines || is(t, "=");
}

static void scan_module(struct link *l, struct module *m)
{
    struct scan s = {0};
    const char *text = m->text, *last = NULL;
    for (struct token t = next_token(&text); t.kind != TOKEN_END && l->status == STATUS_OK; t = next_token(&text)) {
        if (t.kind == TOKEN_SPACE)
            continue;
        if (!s.e.start)
            s.e.start = t.at;
        if (s.braces == 0 && s.parentheses == 0) {
            if (is_header(t) || is(t, ".file")) {
                text = directive_end(t, text);
                s = (struct scan){0};
                continue;
            }
            take_word(&s, t);
            s.unsized = s.unsized || (is(t, "]") && last && *last == '[');
        }
        bool body = is(t, "{") && s.braces == 0 && s.e.what >= WHAT_FUNCTION;
        bool body_ends = is(t, "}") && s.braces == 1 && !s.fixed;
        s.e.defines = s.e.defines || body;
        s.braces += is(t, "{") - is(t, "}");
        s.parentheses += is(t, "(") - is(t, ")");
        if (s.e.what >= WHAT_FUNCTION && is(t, ")") && s.parentheses == 0 && s.braces == 0)
            s.e.head_end = t.at + 1;
        last = t.at;
        if (s.braces > 0 || s.parentheses > 0 || !(is(t, ";") || body_ends))
            continue;
        s.e.end = t.at + 1;
        if (s.e.what == WHAT_VARIABLE)
            s.e.defines = s.e.defines || s.e.linkage != EXTERNAL;
        s.e.unsized_shared = s.shared && s.unsized;
        if (s.e.what && s.e.name.bytes)
            keep(l, m, &s.e);
        s = (struct scan){0};
    }
}

/* ---- resolving ---- */

static struct global *global_of(struct link *l, struct token name)
{
    uint64_t at;
    if (l->globals && map_get(&l->names, hash(name), &at))
        return &l->globals[at];
    if (l->global_count == l->global_capacity) {
        uint32_t want = l->global_capacity ? l->global_capacity * 2 : 64;
        struct global *fresh = realloc(l->globals, want * sizeof *fresh);
        if (!fresh) {
            no_memory(l);
            return NULL;
        }
        l->globals = fresh;
        l->global_capacity = want;
    }
    l->globals[l->global_count] = (struct global){0};
    if (!map_put(&l->names, hash(name), l->global_count)) {
        no_memory(l);
        return NULL;
    }
    return &l->globals[l->global_count++];
}

static const char *const what_names[] = {"", "a variable", "a function", "a kernel"};

/* As nvlink's "Prototype doesn't match" and its kind. */
static void check_agreement(struct link *l, struct global *g, uint32_t i, const struct entity *e)
{
    struct module *m = &l->modules[i];
    const struct symbol *s = link_tree_find(m->tree, e->name.at, e->name.bytes);
    const char *other = s && g->first ? link_disagreement(g->first, s) : NULL;
    if (other) {
        char words[300];
        snprintf(words, sizeof words, "%s than in `%.200s`", other, l->modules[g->first_in].name);
        fail(l, m, e, "symbol `%s` of `%s` has %s", words);
    }
    if (s && !g->first) {
        g->first = s;
        g->first_in = i;
    }
}

static void note_definition(struct link *l, uint32_t i, const struct entity *e)
{
    const struct module *m = &l->modules[i];
    struct global *g = global_of(l, e->name);
    if (!g)
        return;
    if (g->last != i + 1) {
        g->modules++;
        g->last = i + 1;
    }
    if (e->linkage == OWN)
        return;
    if (g->what && g->what != e->what) {
        char other[100];
        snprintf(other, sizeof other, "%s there, and %s in another module", what_names[e->what], what_names[g->what]);
        fail(l, m, e, "symbol `%s` of `%s` is %s", other);
    }
    g->what = e->what;
    check_agreement(l, g, i, e);
    if (!e->defines || e->linkage == EXTERNAL || e->unsized_shared)
        return;
    if (e->linkage == WEAK) {
        g->weak = g->weak ? g->weak : i + 1;
        return;
    }
    if (g->strong)
        fail(l, m, e, "symbol `%s` is defined in `%s`, and already in `%s`", l->modules[g->strong - 1].name);
    g->strong = i + 1;
}

/* Which declarations a module uses: those that are named outside of themselves. */
static void note_uses(struct module *m)
{
    const char *text = m->text;
    uint32_t at = 0; /* entities lie in the order of the text */
    for (struct token t = next_token(&text); t.kind != TOKEN_END; t = next_token(&text)) {
        while (at < m->count && m->entities[at].end <= t.at)
            at++;
        if (t.kind != TOKEN_NAME)
            continue;
        struct entity *e = find(m, hash(t));
        bool inside = at < m->count && m->entities[at].start <= t.at && hash(m->entities[at].name) == hash(t);
        if (e && !inside)
            e->used = true;
    }
}

/* CUDA's own libraries: the executor has some of their functions, and refuses what needs the others. */
static bool is_system(struct token name)
{
    return starts(name, "cuda") || starts(name, "__cuda") || is(name, "vprintf") || is(name, "malloc") ||
           is(name, "free") || is(name, "__assertfail");
}

static void check_uses(struct link *l, struct module *m)
{
    note_uses(m);
    for (uint32_t i = 0; i < m->count && l->status == STATUS_OK; i++) {
        const struct entity *e = &m->entities[i];
        const struct global *g = global_of(l, e->name);
        if (g && e->linkage == EXTERNAL && e->used && !g->strong && !g->weak && !e->unsized_shared &&
            !is_system(e->name))
            fail(l, m, e, "symbol `%s`, which `%s` uses, is defined in no module%s", "");
    }
}

/* ---- writing ---- */

/* Statement `e` of module `i` is a weak definition that does not count. */
static bool is_surplus(struct link *l, uint32_t i, const struct entity *e)
{
    if (e->linkage != WEAK || !e->defines)
        return false;
    const struct global *g = global_of(l, e->name);
    return g && (g->strong || g->weak != i + 1);
}

static bool is_renamed(struct link *l, const struct module *m, struct token t)
{
    const struct entity *e = find(m, hash(t));
    const struct global *g = e && e->linkage == OWN ? global_of(l, t) : NULL;
    return g && g->modules > 1;
}

static void write_token(struct link *l, struct buf *out, uint32_t i, struct token t)
{
    buf_append(out, t.at, t.bytes);
    if (t.kind == TOKEN_NAME && (i && starts(t, "$L__info_string") ? true : is_renamed(l, &l->modules[i], t)))
        buf_printf(out, "$m%u", i);
}

static void write_declaration(struct link *l, struct buf *out, uint32_t i, const struct entity *e)
{
    const char *text = e->start;
    for (struct token t = next_token(&text); t.kind != TOKEN_END && t.at < e->head_end; t = next_token(&text)) {
        if (t.at == e->linkage_word.at)
            buf_text(out, ".extern");
        else
            write_token(l, out, i, t);
    }
    buf_text(out, ";");
    for (const char *p = e->head_end; p < e->end; p++) /* lines stay countable */
        if (*p == '\n')
            buf_text(out, "\n");
}

static void write_header(struct link *l, struct buf *out)
{
    struct ptx_version newest = link_tree_version(l->modules[0].tree);
    for (size_t i = 1; i < l->count; i++) {
        struct ptx_version v = link_tree_version(l->modules[i].tree);
        unsigned target = v.target > newest.target ? v.target : newest.target;
        if (v.major > newest.major || (v.major == newest.major && v.minor > newest.minor))
            newest = v;
        newest.target = target;
    }
    buf_printf(out, ".version %u.%u\n.target sm_%u\n.address_size 64\n", newest.major, newest.minor, newest.target);
}

static void write_module(struct link *l, struct buf *out, uint32_t i)
{
    const struct module *m = &l->modules[i];
    const char *text = m->text;
    bool shift = false; /* the next number counts source files */
    uint32_t at = 0;
    for (struct token t = next_token(&text); t.kind != TOKEN_END; t = next_token(&text)) {
        while (at < m->count && m->entities[at].end <= t.at)
            at++;
        if (at < m->count && t.at == m->entities[at].start && is_surplus(l, i, &m->entities[at])) {
            write_declaration(l, out, i, &m->entities[at]);
            text = m->entities[at].end;
            continue;
        }
        if (is_header(t)) {
            text = directive_end(t, text);
            continue;
        }
        if (shift && t.kind == TOKEN_NUMBER) {
            buf_printf(out, "%lu", strtoul(t.at, NULL, 0) + m->file_shift);
            shift = false;
            continue;
        }
        write_token(l, out, i, t);
        if (t.kind != TOKEN_SPACE)
            shift = i && (is(t, ".file") || is(t, ".loc") || is(t, "inlined_at"));
    }
    buf_text(out, "\n");
}

/* ---- all of it ---- */

static void read_modules(struct link *l)
{
    uint32_t files = 0;
    for (uint32_t i = 0; i < l->count && l->status == STATUS_OK; i++) {
        struct module *m = &l->modules[i];
        l->status = link_tree_read(m->text, m->name, &m->tree, l->diag);
        if (l->status != STATUS_OK)
            return;
        m->file_shift = files;
        files += link_tree_files(m->tree);
        if (files > PTX_MAX_FILES) {
            l->status = STATUS_BAD_INPUT;
            snprintf(l->diag->where, sizeof l->diag->where, "%s", m->name);
            snprintf(l->diag->text, sizeof l->diag->text, "more than %d source files in the modules that are linked",
                     PTX_MAX_FILES);
        }
    }
}

static void link_all(struct link *l, struct buf *out)
{
    read_modules(l);
    for (uint32_t i = 0; i < l->count && l->status == STATUS_OK; i++)
        scan_module(l, &l->modules[i]);
    for (uint32_t i = 0; i < l->count; i++)
        for (uint32_t k = 0; k < l->modules[i].count && l->status == STATUS_OK; k++)
            note_definition(l, i, &l->modules[i].entities[k]);
    for (uint32_t i = 0; i < l->count && l->status == STATUS_OK; i++)
        check_uses(l, &l->modules[i]);
    if (l->status != STATUS_OK)
        return;
    write_header(l, out);
    for (uint32_t i = 0; i < l->count; i++)
        write_module(l, out, i);
    if (out->failed)
        no_memory(l);
}

enum status ptx_link(const struct ptx_link_input *inputs, size_t count, char **out, struct diag *diag)
{
    struct buf text = {0};
    struct link l = {.count = count, .diag = diag};
    *out = NULL;
    memset(diag, 0, sizeof *diag);
    diag->offset = -1;
    if (count == 0 || count > MAX_MODULES) {
        snprintf(diag->where, sizeof diag->where, "link");
        snprintf(diag->text, sizeof diag->text, "%zu modules to be linked: expected 1 to %d", count, MAX_MODULES);
        return STATUS_BAD_INPUT;
    }
    l.modules = calloc(count, sizeof *l.modules);
    if (!l.modules)
        return STATUS_NO_MEMORY;
    for (size_t i = 0; i < count; i++) {
        l.modules[i].text = inputs[i].text;
        l.modules[i].name = inputs[i].name ? inputs[i].name : "PTX";
    }
    link_all(&l, &text);
    for (size_t i = 0; i < count; i++) {
        free(l.modules[i].entities);
        link_tree_free(l.modules[i].tree);
        map_free(&l.modules[i].index);
    }
    free(l.modules);
    free(l.globals);
    map_free(&l.names);
    if (l.status == STATUS_OK)
        *out = text.data;
    else
        buf_free(&text);
    return l.status;
}
