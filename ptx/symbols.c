/* symbols.c - (scope, name) to symbol, open addressing in the arena; and the table of types. */
#include <string.h>
#include <ctype.h>
#include "ptx/ast.h"

#define TYPE_ROW(id, name, bits, kind) [TYPE_##id] = {name, bits, kind},
const struct type_info type_info[TYPE_COUNT] = {[TYPE_NONE] = {"none", 0, ' '}, TYPE_LIST(TYPE_ROW)};

enum type type_find(const char *name)
{
    for (int t = 1; t < TYPE_COUNT; t++)
        if (strcmp(type_info[t].name, name) == 0)
            return (enum type)t;
    return TYPE_NONE;
}

struct slot {
    uint32_t scope;
    const struct name *name;
    struct symbol *symbol;
};
struct symbol_table {
    struct slot *slots;
    uint32_t capacity, count;
};

static uint32_t hash_slot(uint32_t scope, const struct name *name)
{
    uint64_t h = ((uint64_t)scope << 32 | name->id) * UINT64_C(0x9e3779b97f4a7c15);
    return (uint32_t)(h >> 32);
}

static struct slot *find_slot(const struct symbol_table *t, uint32_t scope, const struct name *name)
{
    uint32_t i = hash_slot(scope, name) & (t->capacity - 1);
    while (t->slots[i].name && (t->slots[i].name != name || t->slots[i].scope != scope))
        i = (i + 1) & (t->capacity - 1);
    return &t->slots[i];
}

struct symbol *symbols_find_here(const struct ast *ast, uint32_t scope, const struct name *name)
{
    const struct symbol_table *t = ast->symbols;
    return t ? find_slot(t, scope, name)->symbol : NULL;
}

struct symbol *symbols_find(const struct ast *ast, uint32_t scope, const struct name *name)
{
    for (;;) {
        struct symbol *s = symbols_find_here(ast, scope, name);
        if (s || scope == 0)
            return s;
        scope = ast->scopes[scope].parent;
    }
}

void symbols_add(struct ast *ast, uint32_t scope, const struct name *name, struct symbol *symbol)
{
    struct symbol_table *t = ast->symbols;
    if (!t)
        t = ast->symbols = reader_alloc(ast->reader, 1, sizeof *t);
    if (t->count * 2 >= t->capacity) {
        struct symbol_table fresh = {.capacity = t->capacity ? t->capacity * 2 : 256, .count = t->count};
        fresh.slots = reader_alloc(ast->reader, fresh.capacity, sizeof *fresh.slots);
        for (uint32_t i = 0; i < t->capacity; i++)
            if (t->slots[i].name)
                *find_slot(&fresh, t->slots[i].scope, t->slots[i].name) = t->slots[i];
        *t = fresh;
    }
    struct slot *s = find_slot(t, scope, name);
    if (!s->name)
        t->count++;
    *s = (struct slot){scope, name, symbol};
}

struct symbol *symbols_each(const struct ast *ast, struct symbol_iterator *it)
{
    const struct symbol_table *t = ast->symbols;
    while (t && it->at < t->capacity) {
        struct symbol *s = t->slots[it->at++].symbol;
        if (s)
            return s;
    }
    return NULL;
}

/* %r12 may be element 12 of %r<n>; the base may itself end in digits, so each split is tried, shortest number first. */
static struct symbol *find_element(const struct ast *ast, uint32_t scope, const struct name *name, uint32_t *index)
{
    uint32_t start = name->length;
    uint64_t value = 0, scale = 1;
    while (start > 1 && isdigit((unsigned char)name->text[start - 1]) && scale < 1000000000) {
        start--;
        value += (uint64_t)(name->text[start] - '0') * scale;
        scale *= 10;
        if (name->text[start] == '0' && start + 1 < name->length)
            continue; /* %r01 is no element of %r<n> */
        const struct name *base = arena_intern(ast->reader->arena, name->text, start);
        if (!base)
            return NULL;
        struct symbol *s = symbols_find_here(ast, scope, base);
        if (s && s->kind == SYMBOL_REGISTER && s->range && value < s->count) {
            *index = (uint32_t)value;
            return s;
        }
    }
    return NULL;
}

struct symbol *symbols_find_register(const struct ast *ast, uint32_t scope, const struct name *name, uint32_t *index)
{
    *index = 0;
    for (;;) { /* what is declared further in counts, be it a name or a range that has it */
        struct symbol *s = symbols_find_here(ast, scope, name);
        if (!s)
            s = find_element(ast, scope, name, index);
        if (s || scope == 0)
            return s;
        scope = ast->scopes[scope].parent;
    }
}

static bool same_list(const struct symbol *a, const struct symbol *b)
{
    for (; a && b; a = a->next, b = b->next)
        if (a->kind != b->kind || a->unsized != b->unsized ||
            (a->kind == SYMBOL_REGISTER ? type_info[a->type].bits != type_info[b->type].bits : a->bytes != b->bytes))
            return false;
    return !a && !b;
}

const char *function_disagreement(const struct function *a, const struct function *b)
{
    if (!same_list(a->params, b->params))
        return "other parameters";
    return same_list(a->returns, b->returns) ? NULL : "another return value";
}
