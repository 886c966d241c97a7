/* parse_body.c - the inside of a function: scopes, labels, declarations, instructions and their operands. */
#include "ptx/parse.h"
#include <string.h>

#define PUSH(p, type, items, count, capacity)                                                                          \
    ((type *)reader_push((p)->reader, (void **)&(items), &(count), &(capacity), sizeof(type)))

enum { MAX_DEPTH = 200 };

static void parse_operand(struct parser *p, struct operand *o, int depth);

static void parse_items(struct parser *p, struct operand *o, char close, int depth)
{
    if (depth > 4)
        parse_unexpected(p, "fewer nested braces");
    lexer_next(&p->lx);
    while (!token_is(&p->lx.token, close)) {
        struct operand *item = PUSH(p, struct operand, o->items, o->item_count, o->item_capacity);
        parse_operand(p, item, depth + 1);
        if (!parse_accept(p, ','))
            break;
    }
    parse_expect(p, close, "after the operands");
}

static void parse_address(struct parser *p, struct operand *o)
{
    o->kind = OPERAND_ADDRESS;
    lexer_next(&p->lx);
    if (p->lx.token.kind == TOKEN_NAME) {
        o->name = p->lx.token.name;
        lexer_next(&p->lx);
        if (p->lx.token.kind == TOKEN_DOT && p->lx.token.name->length == 1) {
            o->component = p->lx.token.name->text[0];
            lexer_next(&p->lx);
        }
        if (token_is(&p->lx.token, '+') || token_is(&p->lx.token, '-'))
            o->value = parse_integer(p, "an offset");
    } else {
        o->value = parse_integer(p, "a register, a variable or an address");
    }
    while (parse_accept(p, ',')) {
        o->kind = OPERAND_TEXTURE;
        parse_operand(p, PUSH(p, struct operand, o->items, o->item_count, o->item_capacity), 1);
    }
    parse_expect(p, ']', "after an address");
}

/* .x of a vector; .h1, .b3210: parts of a register, which video instructions take. */
static void parse_component(struct parser *p, struct operand *o)
{
    const struct token *t = &p->lx.token;
    if (t->kind != TOKEN_DOT)
        return;
    if (t->name->length == 1)
        o->component = t->name->text[0];
    else if (strchr("bh", t->name->text[0]) && strspn(t->name->text + 1, "01234567") == t->name->length - 1)
        o->selector = t->name;
    else
        return;
    lexer_next(&p->lx);
}

static void parse_operand(struct parser *p, struct operand *o, int depth)
{
    memset(o, 0, sizeof *o);
    o->at = p->lx.token.at;
    if (parse_accept(p, '!'))
        o->negated = true;
    const struct token t = p->lx.token;
    if (token_is(&t, '{')) {
        o->kind = OPERAND_VECTOR;
        parse_items(p, o, '}', depth);
    } else if (token_is(&t, '(')) {
        o->kind = OPERAND_LIST;
        parse_items(p, o, ')', depth);
    } else if (token_is(&t, '[')) {
        parse_address(p, o);
    } else if (token_is_name(&t, "_")) {
        o->kind = OPERAND_SINK;
        lexer_next(&p->lx);
    } else if (t.kind == TOKEN_NAME) {
        o->kind = OPERAND_NAME;
        o->name = t.name;
        lexer_next(&p->lx);
        parse_component(p, o);
        if (token_is(&p->lx.token, '+') || token_is(&p->lx.token, '-'))
            o->value = parse_integer(p, "an offset");
    } else if (t.kind == TOKEN_F32 || t.kind == TOKEN_F64) {
        o->kind = t.kind == TOKEN_F32 ? OPERAND_F32 : OPERAND_F64;
        o->value = t.value;
        lexer_next(&p->lx);
    } else if (token_is(&t, '-')) {
        lexer_next(&p->lx);
        if (p->lx.token.kind == TOKEN_F32 || p->lx.token.kind == TOKEN_F64) {
            bool wide = p->lx.token.kind == TOKEN_F64;
            o->kind = wide ? OPERAND_F64 : OPERAND_F32;
            o->value = p->lx.token.value ^ (wide ? UINT64_C(1) << 63 : UINT64_C(1) << 31);
            lexer_next(&p->lx);
        } else if (p->lx.token.kind == TOKEN_NAME) {
            o->kind = OPERAND_NAME;
            o->minus = true;
            o->name = p->lx.token.name;
            lexer_next(&p->lx);
            parse_component(p, o);
        } else {
            o->kind = OPERAND_INT;
            o->value = 0 - parse_integer(p, "a number");
        }
    } else {
        o->kind = OPERAND_INT;
        o->value = parse_integer(p, "an operand");
    }
    if (depth == 0 && parse_accept(p, '|')) {
        o->pair = reader_alloc(p->reader, 1, sizeof *o->pair);
        parse_operand(p, o->pair, 1);
    }
}

static void parse_instruction(struct parser *p)
{
    struct function *f = p->function;
    struct operand *guard = NULL;
    if (token_is(&p->lx.token, '@')) {
        guard = reader_alloc(p->reader, 1, sizeof *guard);
        lexer_next(&p->lx);
        guard->at = p->lx.token.at;
        guard->negated = parse_accept(p, '!');
        guard->kind = OPERAND_NAME;
        guard->name = parse_name(p, "a predicate register");
    }
    struct statement *s = PUSH(p, struct statement, f->statements, f->statement_count, f->statement_capacity);
    s->guard = guard;
    s->at = p->lx.token.at;
    s->scope = p->scope;
    s->opcode = parse_name(p, "an instruction");
    while (p->lx.token.kind == TOKEN_DOT) {
        *PUSH(p, const struct name *, s->mods, s->mod_count, s->mod_capacity) = p->lx.token.name;
        lexer_next(&p->lx);
    }
    while (!token_is(&p->lx.token, ';')) {
        parse_operand(p, PUSH(p, struct operand, s->operands, s->operand_count, s->operand_capacity), 0);
        if (parse_accept(p, ','))
            continue;
        if (!token_is(&p->lx.token, ';'))
            parse_unexpected(p, "`,` or `;` after an operand");
    }
    lexer_next(&p->lx);
}

/* label : [ .branchtargets a, b; | .calltargets f, g; | .callprototype (r) _ (p); ] */
static void parse_label(struct parser *p)
{
    struct symbol *s = reader_alloc(p->reader, 1, sizeof *s);
    s->kind = SYMBOL_LABEL;
    s->at = p->lx.token.at;
    s->name = parse_name(p, "a label");
    s->statement = p->function->statement_count;
    parse_expect(p, ':', "after a label");
    struct symbol *old = symbols_find_here(p->ast, p->scope, s->name);
    if (old)
        reader_fail(p->reader, STATUS_BAD_INPUT, s->at, "`%s` is already declared at line %u", s->name->text,
                    old->at.line);
    symbols_add(p->ast, p->scope, s->name, s);
    bool branch = token_is_dot(&p->lx.token, "branchtargets");
    if (branch || token_is_dot(&p->lx.token, "calltargets")) {
        s->kind = SYMBOL_TARGETS;
        do {
            lexer_next(&p->lx);
            uint32_t places = s->target_count;
            *PUSH(p, struct place, s->target_places, places, s->target_place_capacity) = p->lx.token.at;
            *PUSH(p, const struct name *, s->targets, s->target_count, s->target_capacity) = parse_name(p, "a target");
        } while (token_is(&p->lx.token, ','));
        parse_expect(p, ';', "after the targets");
    } else if (token_is_dot(&p->lx.token, "callprototype")) {
        s->kind = SYMBOL_PROTOTYPE;
        lexer_next(&p->lx);
        uint32_t count;
        if (token_is(&p->lx.token, '('))
            s->returns = parse_params(p, &count, true);
        (void)parse_name(p, "`_`");
        if (token_is(&p->lx.token, '('))
            s->params = parse_params(p, &count, true);
        while (p->lx.token.kind == TOKEN_DOT) { /* .noreturn, .abi_preserve n */
            lexer_next(&p->lx);
            if (p->lx.token.kind == TOKEN_INT)
                lexer_next(&p->lx);
        }
        parse_expect(p, ';', "after .callprototype");
    }
}

void parse_body(struct parser *p)
{
    struct ast *a = p->ast;
    struct place open = p->lx.token.at;
    uint32_t outer = p->scope;
    int depth = 1;
    parse_expect(p, '{', "of a function's body");
    while (depth > 0) {
        const struct token *t = &p->lx.token;
        if (token_is(t, '}')) {
            p->function->last_line = t->at.line;
            if (--depth > 0)
                p->scope = a->scopes[p->scope].parent;
            lexer_next(&p->lx);
        } else if (token_is(t, '{')) {
            if (++depth > MAX_DEPTH)
                parse_unexpected(p, "fewer nested braces");
            PUSH(p, struct scope, a->scopes, a->scope_count, a->scope_capacity)->parent = p->scope;
            p->scope = a->scope_count - 1;
            lexer_next(&p->lx);
        } else if (t->kind == TOKEN_END) {
            reader_fail(p->reader, STATUS_BAD_INPUT, open, "the function's `{` is not closed: expected `}`");
        } else if (token_is_dot(t, "reg")) {
            parse_registers(p);
        } else if (token_is_dot(t, "local") || token_is_dot(t, "shared") || token_is_dot(t, "param") ||
                   token_is_dot(t, "global") || token_is_dot(t, "const")) {
            parse_variables(p, (struct linkage){0});
        } else if (token_is_dot(t, "extern")) {
            lexer_next(&p->lx);
            if (!token_is_dot(t, "shared"))
                parse_unexpected(p, ".shared");
            parse_variables(p, (struct linkage){.external = true});
        } else if (token_is_dot(t, "loc")) {
            parse_loc(p);
        } else if (token_is_dot(t, "file")) {
            parse_file(p);
        } else if (token_is_dot(t, "pragma")) {
            parse_pragma(p);
        } else if (t->kind == TOKEN_DOT) {
            parse_unexpected(p, "an instruction, a declaration or a label");
        } else if (t->kind == TOKEN_NAME && lexer_peek(&p->lx) == ':') {
            parse_label(p);
        } else if (token_is(t, ';')) {
            lexer_next(&p->lx);
        } else {
            parse_instruction(p);
        }
    }
    p->scope = outer;
}
