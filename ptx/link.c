/* link.c - several PTX modules as one, by their text: what a device linker does with machine code.
 *
 * The parser tells what each module's statements at file scope declare, and where they lie in its text. Every name that
 * is not a module's own gets the one definition that counts, with which all that the modules say of it has to agree;
 * then the texts are written one behind the other: own names that another module has, too, with a suffix, surplus weak
 * definitions as declarations, numbers of source files shifted. */
#include <ctype.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "common/buf.h"
#include "common/map.h"
#include "ptx/link_agree.h"
#include "ptx/opsptx.h"
#include "ptx/token.h"

enum { MAX_MODULES = 255 };
enum binding { OWN, VISIBLE, WEAK, EXTERNAL };

/* A name that a statement declares. */
struct entity {
    const struct top *top;
    const struct declarator *declarator;
    bool used; /* outside of statements that declare it */
};
struct module {
    const char *text, *name;
    struct link_tree *tree;
    struct entity *entities; /* in the order of the text */
    uint32_t count;
    struct map index;    /* hash of a name -> number of its entity in this module that matters most, + 1 */
    uint32_t file_shift; /* added to its numbers of source files: room for those of the modules before it */
};
/* A name that several modules may know. */
struct global {
    uint32_t strong, weak;      /* module + 1 whose definition it is */
    uint32_t modules;           /* that have the name at file scope */
    uint32_t last;              /* module + 1, of these */
    enum top_kind what;         /* TOP_OTHER: no module shares it */
    const struct symbol *first; /* what module `first_in`, the first that shares it, says of it */
    uint32_t first_in;
};
struct link {
    struct module *modules;
    size_t count;
    struct map names; /* hash -> number in `globals` */
    struct global *globals;
    uint32_t global_count, global_capacity;
    char suffix[16]; /* of own names, before the module's number; in no module's text */
    struct diag *diag;
    enum status status;
};

static uint64_t hash_text(const char *text, uint32_t length) /* FNV-1a */
{
    uint64_t h = UINT64_C(0xcbf29ce484222325);
    for (uint32_t i = 0; i < length; i++)
        h = (h ^ (unsigned char)text[i]) * UINT64_C(0x100000001b3);
    return h;
}

static uint64_t hash(const struct name *n) /* of names of several modules, each with its own table of them */
{
    return hash_text(n->text, n->length);
}

static enum binding binding_of(const struct top *t)
{
    /* NOLINTNEXTLINE(clang-analyzer-core.NullDereference): it does not see that list_entities() sets it in each */
    return t->linkage.external                          ? EXTERNAL
           : t->linkage.weak                            ? WEAK
           : t->linkage.visible || t->kind == TOP_ALIAS ? VISIBLE
                                                        : OWN;
}

static bool defines(const struct entity *e)
{
    return e->declarator->value || (e->top->kind == TOP_VARIABLES && !e->top->linkage.external);
}

/* .extern .shared x[]: each launch gives it its size. */
static bool is_dynamic_shared(const struct symbol *s)
{
    return s && s->kind == SYMBOL_VARIABLE && s->space == SPACE_SHARED && s->unsized;
}

/* ---- errors ---- */

static void no_memory(struct link *l)
{
    if (l->status == STATUS_OK) {
        l->status = STATUS_NO_MEMORY;
        snprintf(l->diag->text, sizeof l->diag->text, "out of memory while linking PTX");
    }
}

static void fail_as(struct link *l, enum status status, const struct module *m, const struct entity *e,
                    const char *format, const char *other)
{
    unsigned line = 1;
    if (l->status != STATUS_OK)
        return;
    l->status = status;
    for (const char *p = m->text; p < e->declarator->at; p++)
        line += *p == '\n';
    snprintf(l->diag->where, sizeof l->diag->where, "%s", m->name);
    snprintf(l->diag->text, sizeof l->diag->text, format, e->declarator->name->text, m->name, other);
    l->diag->line = line;
    l->diag->column = 1;
}

static void fail(struct link *l, const struct module *m, const struct entity *e, const char *format, const char *other)
{
    fail_as(l, STATUS_BAD_INPUT, m, e, format, other);
}

static void refuse(struct link *l, const struct module *m, const struct entity *e, const char *format,
                   const char *other)
{
    fail_as(l, STATUS_NOT_SUPPORTED, m, e, format, other);
}

/* ---- reading ---- */

static struct entity *find(const struct module *m, const struct name *name)
{
    uint64_t at;
    return map_get(&m->index, hash(name), &at) ? &m->entities[at - 1] : NULL;
}

static void list_entities(struct link *l, struct module *m)
{
    const struct ast *ast = &m->tree->ast;
    uint32_t total = 0;
    for (uint32_t i = 0; i < ast->top_count; i++)
        total += ast->tops[i].declarator_count;
    m->entities = calloc(total + 1u, sizeof *m->entities);
    if (!m->entities) {
        no_memory(l);
        return;
    }
    for (uint32_t i = 0; i < ast->top_count; i++)
        for (uint32_t k = 0; k < ast->tops[i].declarator_count; k++) {
            struct entity *e = &m->entities[m->count++];
            *e = (struct entity){.top = &ast->tops[i], .declarator = &ast->tops[i].declarators[k]};
            /* Another module may use it as a special register, one that is not known here included. */
            if (l->count > 1 && e->declarator->name->text[0] == '%')
                refuse(l, m, e, "`%s` of %s: names at file scope that begin with %% are not supported in linking%s",
                       "");
            const struct entity *old = find(m, e->declarator->name);
            if ((!old || (defines(e) && !defines(old))) && !map_put(&m->index, hash(e->declarator->name), m->count))
                no_memory(l);
        }
}

static void read_modules(struct link *l)
{
    uint32_t files = 0;
    for (uint32_t i = 0; i < l->count && l->status == STATUS_OK; i++) {
        struct module *m = &l->modules[i];
        l->status = link_tree_read(m->text, m->name, &m->tree, l->diag);
        if (l->status != STATUS_OK)
            return;
        list_entities(l, m);
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

static void choose_suffix(struct link *l)
{
    size_t length = 2;
    memcpy(l->suffix, "$m", 3);
    for (size_t i = 0; i < l->count; i++)
        while (length < sizeof l->suffix - 1 && strstr(l->modules[i].text, l->suffix)) {
            l->suffix[length++] = 'm'; /* what had the shorter one not, has not the longer one */
            l->suffix[length] = 0;
        }
}

/* The module's tokens from `from` on: the text is known to be good. */
static struct lexer lexer_at(const struct module *m, const char *from)
{
    struct lexer lx = {.reader = &m->tree->reader, .at = from, .line_start = from, .line = 1};
    lexer_next(&lx);
    return lx;
}

/* ---- resolving ---- */

static struct global *global_of(struct link *l, const struct name *name)
{
    uint64_t at;
    if (l->globals && map_get(&l->names, hash(name), &at))
        return &l->globals[at];
    if (!l->globals || l->global_count == l->global_capacity) {
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

/* As nvlink's "Prototype doesn't match" and its kind. */
static void check_agreement(struct link *l, struct global *g, uint32_t i, const struct entity *e)
{
    struct module *m = &l->modules[i];
    const struct symbol *s = link_tree_find(m->tree, e->declarator->name);
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

static void check_kind(struct link *l, struct global *g, const struct module *m, const struct entity *e)
{
    static const char *const names[] = {
        [TOP_VARIABLES] = "a variable", [TOP_FUNCTION] = "a function", [TOP_ENTRY] = "a kernel"};
    enum top_kind what = e->top->kind == TOP_ALIAS ? TOP_FUNCTION : e->top->kind;
    if (g->what && g->what != what) {
        char other[100];
        snprintf(other, sizeof other, "%s there, and %s in another module", names[what], names[g->what]);
        fail(l, m, e, "symbol `%s` of `%s` is %s", other);
    }
    g->what = what;
}

static void note_definition(struct link *l, uint32_t i, const struct entity *e)
{
    const struct module *m = &l->modules[i];
    const enum binding binding = binding_of(e->top);
    struct global *g = global_of(l, e->declarator->name);
    if (!g)
        return;
    if (g->last != i + 1) {
        g->modules++;
        g->last = i + 1;
    }
    if (binding == OWN)
        return;
    check_kind(l, g, m, e);
    check_agreement(l, g, i, e);
    if (!defines(e) || binding == EXTERNAL || is_dynamic_shared(link_tree_find(m->tree, e->declarator->name)))
        return;
    if (binding == WEAK) {
        g->weak = g->weak ? g->weak : i + 1;
        return;
    }
    if (g->strong)
        fail(l, m, e, "symbol `%s` is defined in `%s`, and already in `%s`", l->modules[g->strong - 1].name);
    g->strong = i + 1;
}

static bool declares(const struct top *t, const struct name *name)
{
    for (uint32_t i = 0; i < t->declarator_count; i++)
        if (t->declarators[i].name == name)
            return true;
    return false;
}

static void note_uses(struct module *m)
{
    const struct ast *ast = &m->tree->ast;
    uint32_t at = 0;
    for (struct lexer lx = lexer_at(m, m->text); lx.token.kind != TOKEN_END; lexer_next(&lx)) {
        while (at < ast->top_count && ast->tops[at].end <= lx.token.start)
            at++;
        struct entity *e = lx.token.kind == TOKEN_NAME ? find(m, lx.token.name) : NULL;
        if (e && !(at < ast->top_count && declares(&ast->tops[at], lx.token.name)))
            e->used = true;
    }
}

/* CUDA's own libraries: the executor has some of their functions, and refuses what needs the others. */
static bool is_system(const char *name)
{
    static const char *const others[] = {"vprintf", "malloc", "free", "__assertfail"};
    for (size_t i = 0; i < sizeof others / sizeof *others; i++)
        if (strcmp(name, others[i]) == 0)
            return true;
    return strncmp(name, "cuda", 4) == 0 || strncmp(name, "__cuda", 6) == 0;
}

static void check_uses(struct link *l, struct module *m)
{
    note_uses(m);
    for (uint32_t i = 0; i < m->count && l->status == STATUS_OK; i++) {
        const struct entity *e = &m->entities[i];
        const struct global *g = global_of(l, e->declarator->name);
        if (g && binding_of(e->top) == EXTERNAL && e->used && !g->strong && !g->weak &&
            !is_dynamic_shared(link_tree_find(m->tree, e->declarator->name)) && !is_system(e->declarator->name->text))
            fail(l, m, e, "symbol `%s`, which `%s` uses, is defined in no module%s", "");
    }
}

/* ---- writing ---- */

/* A weak definition of module `i` that does not count. */
static bool is_surplus(struct link *l, uint32_t i, const struct top *t, const struct declarator *d)
{
    const struct entity e = {.top = t, .declarator = d};
    if (binding_of(t) != WEAK || !defines(&e))
        return false;
    const struct global *g = global_of(l, d->name);
    return g && (g->strong || g->weak != i + 1);
}

static bool is_renamed(struct link *l, uint32_t i, const struct name *name)
{
    if (i && strncmp(name->text, "$L__info_string", 15) == 0)
        return true;
    const struct entity *e = find(&l->modules[i], name);
    const struct global *g = e && binding_of(e->top) == OWN ? global_of(l, name) : NULL;
    return g && g->modules > 1;
}

/* Renaming goes by tokens: a name that some function of the module has as a range of registers, or as an element of
 * one, would be renamed there, too. */
static void check_ranges(struct link *l, uint32_t i)
{
    struct module *m = &l->modules[i];
    struct symbol_iterator it = {0};
    struct map ranges = {0};
    for (const struct symbol *s; (s = symbols_each(&m->tree->ast, &it));)
        if (s->kind == SYMBOL_REGISTER && s->range && !map_put(&ranges, hash(s->name), 1))
            no_memory(l);
    for (uint32_t k = 0; ranges.count && k < m->count && l->status == STATUS_OK; k++) {
        const struct entity *e = &m->entities[k];
        const char *text = e->declarator->name->text;
        if (!is_renamed(l, i, e->declarator->name))
            continue;
        uint32_t length = e->declarator->name->length;
        bool taken = false;
        for (bool digit = true; digit && length; length--) {
            uint64_t any;
            taken |= map_get(&ranges, hash_text(text, length), &any);
            digit = isdigit((unsigned char)text[length - 1]);
        }
        if (taken)
            refuse(l, m, e,
                   "`%s` of %s is a name of its own, which another module has, too, and a register: that is not "
                   "supported in linking%s",
                   "");
    }
    map_free(&ranges);
}

/* The text of module `i` from `from` up to the token that begins at or behind `to`. */
static void write_range(struct link *l, struct buf *out, uint32_t i, const char *from, const char *to)
{
    const struct module *m = &l->modules[i];
    bool shift = false; /* the next number counts source files */
    for (struct lexer lx = lexer_at(m, from); lx.token.kind != TOKEN_END && lx.token.start < to; lexer_next(&lx)) {
        const struct token *t = &lx.token;
        buf_append(out, from, (size_t)(t->start - from));
        from = lx.at;
        if (shift && t->kind == TOKEN_INT)
            buf_printf(out, "%" PRIu64, t->value + m->file_shift);
        else
            buf_append(out, t->start, (size_t)(lx.at - t->start));
        if (t->kind == TOKEN_NAME && is_renamed(l, i, t->name))
            buf_printf(out, "%s%u", l->suffix, i);
        shift = m->file_shift && (token_is_dot(t, "file") || token_is_dot(t, "loc") || token_is_name(t, "inlined_at"));
    }
    if (from < to)
        buf_append(out, from, (size_t)(to - from));
}

/* Lines stay countable. */
static void write_lines(struct buf *out, size_t since, const char *from, const char *to)
{
    size_t missing = 0;
    for (const char *p = from; p < to; p++)
        missing += *p == '\n';
    for (size_t i = since; !out->failed && i < out->size; i++)
        missing -= missing && out->data[i] == '\n';
    while (missing--)
        buf_text(out, "\n");
}

/* Each declarator as a statement of its own, surplus ones without their values. */
static void write_apart(struct link *l, struct buf *out, uint32_t i, const struct top *t)
{
    const char *names = t->declarators[0].at;
    for (uint32_t k = 0; k < t->declarator_count; k++) {
        const struct declarator *d = &t->declarators[k];
        const bool surplus = is_surplus(l, i, t, d);
        if (surplus)
            buf_text(out, ".extern ");
        write_range(l, out, i, surplus ? t->linkage_end : t->start, names);
        write_range(l, out, i, d->at, surplus ? d->head_end : d->end);
        buf_text(out, "; ");
    }
}

static void write_module(struct link *l, struct buf *out, uint32_t i)
{
    const struct module *m = &l->modules[i];
    const struct ast *ast = &m->tree->ast;
    if (ast->top_count)
        buf_append(out, m->text, (size_t)(ast->tops[0].start - m->text));
    for (uint32_t k = 0; k < ast->top_count; k++) {
        const struct top *t = &ast->tops[k];
        const size_t since = out->size;
        bool surplus = false;
        for (uint32_t n = 0; n < t->declarator_count; n++)
            surplus = surplus || is_surplus(l, i, t, &t->declarators[n]);
        if (surplus)
            write_apart(l, out, i, t);
        else if (t->kind != TOP_HEADER)
            write_range(l, out, i, t->start, t->end);
        if (surplus || t->kind == TOP_HEADER)
            write_lines(out, since, t->start, t->end);
    }
    buf_text(out, "\n");
}

static void write_header(struct link *l, struct buf *out)
{
    const struct ast *newest = &l->modules[0].tree->ast;
    unsigned target = newest->target;
    for (size_t i = 1; i < l->count; i++) {
        const struct ast *a = &l->modules[i].tree->ast;
        target = a->target > target ? a->target : target;
        if (a->version_major > newest->version_major ||
            (a->version_major == newest->version_major && a->version_minor > newest->version_minor))
            newest = a;
    }
    buf_printf(out, ".version %u.%u\n.target sm_%u\n.address_size 64\n", newest->version_major, newest->version_minor,
               target);
}

/* ---- all of it ---- */

static void resolve(struct link *l)
{
    for (uint32_t i = 0; i < l->count; i++)
        for (uint32_t k = 0; k < l->modules[i].count && l->status == STATUS_OK; k++)
            note_definition(l, i, &l->modules[i].entities[k]);
    for (uint32_t i = 0; i < l->count && l->status == STATUS_OK; i++)
        check_uses(l, &l->modules[i]);
    for (uint32_t i = 0; i < l->count && l->status == STATUS_OK; i++)
        check_ranges(l, i);
}

/* Reading a text again finds no error in it, but memory can run out. */
static void link_all(struct link *l, struct buf *out)
{
    jmp_buf fail;
    read_modules(l);
    if (l->status != STATUS_OK)
        return;
    for (size_t i = 0; i < l->count; i++)
        l->modules[i].tree->reader.fail = &fail;
    if (setjmp(fail)) {
        l->status = STATUS_NO_MEMORY;
        return;
    }
    resolve(l);
    if (l->status != STATUS_OK)
        return;
    choose_suffix(l);
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
