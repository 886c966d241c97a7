/* resolve.c - what must be known of all names before code is made: numbers, layouts, bound initialisers. */
#include <string.h>
#include "ptx/ast.h"

#define PUSH(a, type, items, count, capacity)                                                                          \
    ((type *)reader_push((a)->reader, (void **)&(items), &(count), &(capacity), sizeof(type)))

#define MAX_LOCAL_BYTES  (UINT64_C(1) << 24)
#define MAX_SHARED_BYTES (UINT64_C(1) << 28)
#define MAX_PARAM_BYTES  (UINT64_C(1) << 20)

static uint64_t align_up(uint64_t x, uint64_t align)
{
    return (x + align - 1) / align * align;
}

static void number_registers(struct ast *ast)
{
    struct symbol_iterator it = {0};
    for (struct symbol *s; (s = symbols_each(ast, &it));)
        if (s->kind == SYMBOL_REGISTER)
            s->id = ast->register_count++;
}

static void add_device_variable(struct ast *ast, struct symbol *s)
{
    s->id = ast->device_variable_count;
    if (s->unsized && !s->external && s->bytes == 0)
        reader_fail(ast->reader, STATUS_BAD_INPUT, s->at, "`%s` has no size", s->name->text);
    *PUSH(ast, struct symbol *, ast->device_variables, ast->device_variable_count, ast->device_variable_capacity) = s;
}

static void add_shared(struct ast *ast, struct symbol *s)
{
    if (s->bytes > MAX_SHARED_BYTES)
        reader_fail(ast->reader, STATUS_BAD_INPUT, s->at, "`%s` is larger than any device's shared memory",
                    s->name->text);
    s->id = ast->shared_count;
    *PUSH(ast, struct symbol *, ast->shared, ast->shared_count, ast->shared_capacity) = s;
}

static uint64_t place_in(struct ast *ast, struct symbol *s, uint64_t at, uint64_t limit, const char *what)
{
    s->offset = align_up(at, s->align ? s->align : 1);
    if (s->bytes > limit || s->offset + s->bytes > limit)
        reader_fail(ast->reader, STATUS_BAD_INPUT, s->at, "`%s` makes %s larger than %llu bytes", s->name->text, what,
                    (unsigned long long)limit);
    return s->offset + s->bytes;
}

/* A last parameter without a size holds what a caller gives beyond the others: room for the largest of all calls. */
static void size_variable_arguments(struct ast *ast, const struct statement *call)
{
    const struct operand *o = call->operands;
    uint32_t count = call->operand_count, results = count && o->kind == OPERAND_LIST;
    if (count - results < 2)
        return;
    o += results;
    if (o->kind != OPERAND_NAME || o[1].kind != OPERAND_LIST || o[1].item_count == 0)
        return;
    uint32_t index;
    const struct symbol *callee = symbols_find_register(ast, call->scope, o->name, &index);
    if (!callee || callee->kind != SYMBOL_FUNCTION || callee->function->entry)
        return;
    struct symbol *last = callee->function->params;
    while (last && last->next)
        last = last->next;
    const struct operand *given = &o[1].items[o[1].item_count - 1];
    const struct symbol *block =
        given->kind == OPERAND_NAME ? symbols_find_register(ast, call->scope, given->name, &index) : NULL;
    if (last && last->unsized && block && block->kind == SYMBOL_VARIABLE && block->space == SPACE_PARAM &&
        block->bytes > last->bytes)
        last->bytes = block->bytes;
}

static void lay_out_function(struct ast *ast, struct function *f)
{
    uint64_t at = 0;
    if (f->entry) {
        for (struct symbol *s = f->params; s; s = s->next) {
            if (s->kind == SYMBOL_REGISTER)
                reader_fail(ast->reader, STATUS_BAD_INPUT, s->at, "parameters of an entry must be .param");
            at = place_in(ast, s, at, MAX_PARAM_BYTES, "the parameters");
        }
        f->param_bytes = (uint32_t)at;
        at = 0;
    } else {
        for (int list = 0; list < 2; list++) {
            for (struct symbol *s = list ? f->params : f->returns; s; s = s->next) {
                if (s->kind == SYMBOL_REGISTER)
                    continue;
                s->function_param = true;
                at = place_in(ast, s, at, MAX_LOCAL_BYTES, "the frame");
            }
        }
    }
    for (uint32_t i = 0; i < f->local_count; i++) {
        struct symbol *s = f->locals[i];
        if (s->space == SPACE_LOCAL || s->space == SPACE_PARAM) {
            s->function_param = s->space == SPACE_PARAM;
            at = place_in(ast, s, at, MAX_LOCAL_BYTES, "the frame");
        } else if (s->space == SPACE_SHARED) {
            add_shared(ast, s);
        } else {
            add_device_variable(ast, s);
        }
    }
    f->local_bytes = (uint32_t)align_up(at, 16);
}

static void bind_initializers(struct ast *ast, struct symbol *s)
{
    for (uint32_t i = 0; i < s->init_count; i++) {
        struct initializer *e = &s->init[i];
        if (!e->name)
            continue;
        e->symbol = symbols_find(ast, 0, e->name);
        for (uint32_t k = 0; !e->symbol && k < ast->device_variable_count; k++) /* a function's own static */
            if (ast->device_variables[k]->name == e->name)
                e->symbol = ast->device_variables[k];
        if (!e->symbol)
            reader_fail(ast->reader, STATUS_BAD_INPUT, e->at, "`%s` is not declared", e->name->text);
        bool function = e->symbol->kind == SYMBOL_FUNCTION;
        if (!function && !(e->symbol->kind == SYMBOL_VARIABLE &&
                           (e->symbol->space == SPACE_GLOBAL || e->symbol->space == SPACE_CONST)))
            reader_fail(ast->reader, STATUS_BAD_INPUT, e->at, "`%s` has no address that an initial value may use",
                        e->name->text);
        if (!e->masked && e->bytes != 8)
            reader_fail(ast->reader, STATUS_BAD_INPUT, e->at, "an address needs a 64-bit element");
    }
}

static void resolve_aliases(struct ast *ast)
{
    for (uint32_t i = 0; i < ast->alias_count; i++) {
        const struct alias *a = &ast->aliases[i];
        struct symbol *target = symbols_find(ast, 0, a->target), *old = symbols_find(ast, 0, a->name);
        if (!target || target->kind != SYMBOL_FUNCTION)
            reader_fail(ast->reader, STATUS_BAD_INPUT, a->at, "`%s` is no function", a->target->text);
        if (old && old->kind != SYMBOL_FUNCTION)
            reader_fail(ast->reader, STATUS_BAD_INPUT, a->at, "`%s` is no function", a->name->text);
        const char *other = old ? function_disagreement(target->function, old->function) : NULL;
        if (other)
            reader_fail(ast->reader, STATUS_BAD_INPUT, a->at, "`%s` has %s than `%s`, whose alias it is", a->name->text,
                        other, a->target->text);
        symbols_add(ast, 0, a->name, target);
    }
}

void resolve_module(struct ast *ast)
{
    resolve_aliases(ast);
    number_registers(ast);
    for (uint32_t i = 0; i < ast->variable_count; i++) {
        struct symbol *s = ast->variables[i];
        if (s->space == SPACE_SHARED)
            add_shared(ast, s);
        else
            add_device_variable(ast, s);
    }
    for (uint32_t i = 0; i < ast->function_count; i++)
        for (uint32_t k = 0; k < ast->functions[i]->statement_count; k++)
            if (strcmp(ast->functions[i]->statements[k].opcode->text, "call") == 0)
                size_variable_arguments(ast, &ast->functions[i]->statements[k]);
    for (uint32_t i = 0; i < ast->function_count; i++)
        lay_out_function(ast, ast->functions[i]);
    for (uint32_t i = 0; i < ast->device_variable_count; i++)
        bind_initializers(ast, ast->device_variables[i]);
}
