#include "shim/ptx_scan.h"

#include <stdlib.h>
#include <string.h>

struct cursor {
    const char *at, *end;
    const char *token; /* the current token: a word, or one character */
    size_t token_bytes;
};

static bool word_character(char c)
{
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '_' || c == '$' ||
           c == '%' || c == '.';
}

static void skip_blank(struct cursor *c)
{
    while (c->at < c->end) {
        if (*c->at == ' ' || *c->at == '\t' || *c->at == '\n' || *c->at == '\r')
            c->at++;
        else if (c->end - c->at >= 2 && c->at[0] == '/' && c->at[1] == '/')
            while (c->at < c->end && *c->at != '\n')
                c->at++;
        else if (c->end - c->at >= 2 && c->at[0] == '/' && c->at[1] == '*') {
            c->at += 2;
            while (c->end - c->at >= 2 && !(c->at[0] == '*' && c->at[1] == '/'))
                c->at++;
            c->at = c->end - c->at >= 2 ? c->at + 2 : c->end;
        } else
            return;
    }
}

static bool next(struct cursor *c)
{
    skip_blank(c);
    c->token = c->at;
    c->token_bytes = 0;
    if (c->at >= c->end)
        return false;
    if (*c->at == '"') { /* a file name or a pragma: one token, may hold anything */
        c->at++;
        while (c->at < c->end && *c->at != '"')
            c->at++;
        if (c->at < c->end)
            c->at++;
    } else if (word_character(*c->at))
        while (c->at < c->end && word_character(*c->at))
            c->at++;
    else
        c->at++;
    c->token_bytes = (size_t)(c->at - c->token);
    return true;
}

static bool is(const struct cursor *c, const char *text)
{
    return c->token_bytes == strlen(text) && memcmp(c->token, text, c->token_bytes) == 0;
}

static char *copy_token(const struct cursor *c)
{
    char *text = malloc(c->token_bytes + 1);
    if (text) {
        memcpy(text, c->token, c->token_bytes);
        text[c->token_bytes] = '\0';
    }
    return text;
}

/* Size of a fundamental type token (".u64"), 0 when it is none. */
static uint32_t type_bytes(const struct cursor *c)
{
    static const struct {
        const char *name;
        uint32_t bytes;
    } types[] = {{".b8", 1},    {".u8", 1},     {".s8", 1},      {".b16", 2},       {".u16", 2}, {".s16", 2},
                 {".f16", 2},   {".bf16", 2},   {".b32", 4},     {".u32", 4},       {".s32", 4}, {".f32", 4},
                 {".f16x2", 4}, {".bf16x2", 4}, {".b64", 8},     {".u64", 8},       {".s64", 8}, {".f64", 8},
                 {".b128", 16}, {".texref", 8}, {".surfref", 8}, {".samplerref", 8}};
    for (size_t i = 0; i < sizeof types / sizeof *types; i++)
        if (is(c, types[i].name))
            return types[i].bytes;
    return 0;
}

static bool number(const struct cursor *c, uint64_t *out)
{
    char digits[24];
    if (c->token_bytes == 0 || c->token_bytes >= sizeof digits || *c->token < '0' || *c->token > '9')
        return false;
    memcpy(digits, c->token, c->token_bytes);
    digits[c->token_bytes] = '\0';
    *out = strtoull(digits, NULL, 0);
    return true;
}

/* One element of an array that is about to hold count + 1; doubles at powers of two. */
static bool room(void **array, size_t count, size_t element)
{
    if (count & (count - 1) && count)
        return true;
    size_t capacity = count ? count * 2 : 1;
    void *bigger = realloc(*array, capacity * element);
    if (!bigger)
        return false;
    *array = bigger;
    return true;
}

/* One parameter: `.param .align 8 .b8 name[24]`, `.param .u64 .ptr .global .align 4 name`. Stops before `,` or `)`. */
static bool scan_param(struct cursor *c, struct ptx_entry *entry)
{
    uint64_t align = 0, elements = 1;
    uint32_t element = 0;
    bool pointer = false;
    do {
        uint32_t bytes = type_bytes(c);
        if (is(c, ",") || is(c, ")"))
            break;
        if (bytes)
            element = bytes;
        else if (is(c, ".ptr"))
            pointer = true; /* an .align behind it is that of the memory pointed to */
        else if (is(c, ".align")) {
            uint64_t value;
            if (next(c) && number(c, &value) && !pointer)
                align = value;
        } else if (is(c, "[")) {
            uint64_t value;
            if (next(c) && number(c, &value))
                elements = value > PTX_PARAM_BYTES_MAX || elements > PTX_PARAM_BYTES_MAX ? PTX_PARAM_BYTES_MAX + 1
                                                                                         : elements * value;
        }
    } while (next(c));
    if (!align || align > 4096 || (align & (align - 1)))
        align = element;
    if (!element || elements * element > PTX_PARAM_BYTES_MAX)
        return false;
    uint64_t offset = (entry->param_bytes + align - 1) / align * align;
    if (offset + elements * element > PTX_PARAM_BYTES_MAX)
        return false;
    if (!room((void **)&entry->params, entry->param_count, sizeof *entry->params))
        return false;
    entry->params[entry->param_count++] = (struct ptx_param){(uint32_t)offset, (uint32_t)(elements * element)};
    entry->param_bytes = (uint32_t)(offset + elements * element);
    return true;
}

static void entry_free(struct ptx_entry *entry)
{
    free(entry->name);
    free(entry->params);
}

/* Behind `.entry`. An entry whose parameters are not understood is left out: no layout is better than a wrong one. */
static bool scan_entry(struct cursor *c, struct ptx_scan *out)
{
    struct ptx_entry entry = {0};
    bool good = true;
    if (!next(c) || !word_character(*c->token))
        return true;
    entry.name = copy_token(c);
    if (!entry.name)
        return false;
    bool more = next(c);
    if (more && is(c, "(")) {
        more = next(c);
        while (more && !is(c, ")")) {
            if (is(c, ".param"))
                good = next(c) && scan_param(c, &entry) && good;
            else
                next(c);
            more = c->token_bytes > 0; /* else the text has ended */
        }
    }
    if (!more || !good || !room((void **)&out->entries, out->entry_count, sizeof *out->entries)) {
        entry_free(&entry);
        return true;
    }
    out->entries[out->entry_count++] = entry;
    return true;
}

/* Behind `.global` or `.const` at module level: attributes, type, then the name. */
static bool scan_variable(struct cursor *c, struct ptx_scan *out, bool constant)
{
    bool typed = false;
    while (next(c) && !is(c, ";") && !is(c, "=") && !is(c, "{")) {
        if (type_bytes(c)) {
            typed = !(is(c, ".texref") || is(c, ".surfref") || is(c, ".samplerref"));
            continue;
        }
        if (*c->token == '.' || *c->token == '(' || *c->token == ')' || !typed || !word_character(*c->token) ||
            (*c->token >= '0' && *c->token <= '9'))
            continue;
        char *name = copy_token(c);
        if (!name || !room((void **)&out->variables, out->variable_count, sizeof *out->variables)) {
            free(name);
            return false;
        }
        out->variables[out->variable_count++] = (struct ptx_variable){name, constant};
        break;
    }
    return true;
}

bool ptx_scan_text(const char *text, size_t bytes, struct ptx_scan *out)
{
    struct cursor c = {.at = text, .end = text + strnlen(text, bytes)};
    unsigned depth = 0;
    bool external = false, ok = true;
    *out = (struct ptx_scan){0};
    while (ok && next(&c)) {
        if (is(&c, "{"))
            depth++;
        else if (is(&c, "}"))
            depth -= depth > 0;
        else if (depth)
            continue;
        else if (is(&c, ";"))
            external = false;
        else if (is(&c, ".extern"))
            external = true;
        else if (is(&c, ".entry"))
            ok = scan_entry(&c, out);
        else if ((is(&c, ".global") || is(&c, ".const")) && !external)
            ok = scan_variable(&c, out, is(&c, ".const"));
        if (is(&c, "{") && depth == 0)
            depth++; /* one of the scans stopped at it */
    }
    return ok;
}

bool ptx_scan_take(struct ptx_scan *to, struct ptx_scan *from)
{
    size_t entries = to->entry_count + from->entry_count, variables = to->variable_count + from->variable_count;
    struct ptx_entry *e = realloc(to->entries, (entries + 1) * sizeof *e);
    if (!e)
        return false;
    to->entries = e;
    struct ptx_variable *v = realloc(to->variables, (variables + 1) * sizeof *v);
    if (!v)
        return false;
    to->variables = v;
    if (from->entry_count)
        memcpy(e + to->entry_count, from->entries, from->entry_count * sizeof *e);
    if (from->variable_count)
        memcpy(v + to->variable_count, from->variables, from->variable_count * sizeof *v);
    to->entry_count = entries;
    to->variable_count = variables;
    free(from->entries);
    free(from->variables);
    *from = (struct ptx_scan){0};
    return true;
}

void ptx_scan_free(struct ptx_scan *scan)
{
    for (size_t i = 0; i < scan->entry_count; i++)
        entry_free(&scan->entries[i]);
    for (size_t i = 0; i < scan->variable_count; i++)
        free(scan->variables[i].name);
    free(scan->entries);
    free(scan->variables);
    *scan = (struct ptx_scan){0};
}

size_t ptx_scan_bytes(const struct ptx_scan *scan)
{
    size_t bytes = scan->entry_count * sizeof *scan->entries + scan->variable_count * sizeof *scan->variables;
    for (size_t i = 0; i < scan->entry_count; i++)
        bytes += strlen(scan->entries[i].name) + 1 + scan->entries[i].param_count * sizeof *scan->entries[i].params;
    for (size_t i = 0; i < scan->variable_count; i++)
        bytes += strlen(scan->variables[i].name) + 1;
    return bytes;
}

const struct ptx_entry *ptx_scan_entry(const struct ptx_scan *scan, const char *name)
{
    for (size_t i = 0; i < scan->entry_count; i++)
        if (strcmp(scan->entries[i].name, name) == 0)
            return &scan->entries[i];
    return NULL;
}
