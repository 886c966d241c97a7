/* parse.c - module scope: directives, declarations, initialisers. */
#include "ptx/parse.h"
#include <string.h>

#define PUSH(p, type, items, count, capacity)                                                                          \
    ((type *)reader_push((p)->reader, (void **)&(items), &(count), &(capacity), sizeof(type)))

enum { MAX_NESTING = 16 };
#define MAX_VARIABLE_BYTES (UINT64_C(1) << 46)

__attribute__((noreturn)) void parse_unexpected(struct parser *p, const char *expected)
{
    char text[80];
    reader_fail(p->reader, STATUS_BAD_INPUT, p->lx.token.at, "expected %s, found %s", expected,
                token_describe(&p->lx.token, text, sizeof text));
}

void parse_expect(struct parser *p, char punct, const char *where)
{
    char text[96];
    if (!token_is(&p->lx.token, punct)) {
        char found[80];
        (void)text;
        reader_fail(p->reader, STATUS_BAD_INPUT, p->lx.token.at, "expected `%c` %s, found %s", punct, where,
                    token_describe(&p->lx.token, found, sizeof found));
    }
    lexer_next(&p->lx);
}

bool parse_accept(struct parser *p, char punct)
{
    if (!token_is(&p->lx.token, punct))
        return false;
    lexer_next(&p->lx);
    return true;
}

uint64_t parse_integer(struct parser *p, const char *what)
{
    bool negative = false;
    while (token_is(&p->lx.token, '-') || token_is(&p->lx.token, '+')) {
        negative ^= token_is(&p->lx.token, '-');
        lexer_next(&p->lx);
    }
    if (p->lx.token.kind != TOKEN_INT)
        parse_unexpected(p, what);
    uint64_t v = p->lx.token.value;
    lexer_next(&p->lx);
    return negative ? 0 - v : v;
}

const struct name *parse_name(struct parser *p, const char *what)
{
    if (p->lx.token.kind != TOKEN_NAME)
        parse_unexpected(p, what);
    const struct name *n = p->lx.token.name;
    lexer_next(&p->lx);
    return n;
}

static enum space space_of(const struct token *t)
{
    static const struct {
        const char *word;
        enum space space;
    } spaces[] = {{"reg", SPACE_REG},     {"global", SPACE_GLOBAL}, {"shared", SPACE_SHARED},
                  {"local", SPACE_LOCAL}, {"const", SPACE_CONST},   {"param", SPACE_PARAM}};
    if (t->kind == TOKEN_DOT)
        for (size_t i = 0; i < sizeof spaces / sizeof *spaces; i++)
            if (strcmp(t->name->text, spaces[i].word) == 0)
                return spaces[i].space;
    return SPACE_NONE;
}

static struct symbol *new_symbol(struct parser *p, enum symbol_kind kind)
{
    struct symbol *s = reader_alloc(p->reader, 1, sizeof *s);
    s->kind = kind;
    s->at = p->lx.token.at;
    s->count = 1;
    return s;
}

static uint64_t type_bytes(enum type type)
{
    return type == TYPE_PRED ? 1 : type_info[type].bits / 8u;
}

/* .attribute(.managed, .unified(a, b)): only .managed matters here. */
static void parse_attribute(struct parser *p, struct symbol *s)
{
    lexer_next(&p->lx);
    parse_expect(p, '(', "after .attribute");
    int depth = 1;
    while (depth > 0) {
        if (token_is(&p->lx.token, '('))
            depth++;
        else if (token_is(&p->lx.token, ')'))
            depth--;
        else if (token_is_dot(&p->lx.token, "managed"))
            s->managed = true;
        else if (p->lx.token.kind == TOKEN_END)
            parse_unexpected(p, "`)` of .attribute");
        lexer_next(&p->lx);
    }
}

/* .align N, .vN, .type, .attribute(...), .ptr ... in any order up to the name; TYPE_NONE is an error. */
static void parse_properties(struct parser *p, struct symbol *s)
{
    for (; p->lx.token.kind == TOKEN_DOT;) {
        const struct token *t = &p->lx.token;
        if (token_is_dot(t, "align")) {
            lexer_next(&p->lx);
            struct place at = p->lx.token.at;
            uint64_t align = parse_integer(p, "an alignment");
            if (align == 0 || (align & (align - 1)) || align > 1u << 20)
                reader_fail(p->reader, STATUS_BAD_INPUT, at, "an alignment must be a power of two, at most 1048576");
            if (!s->align || align > s->align)
                s->align = (uint32_t)align;
        } else if (token_is_dot(t, "v2") || token_is_dot(t, "v4")) {
            s->vector = (uint8_t)(t->name->text[1] - '0');
            lexer_next(&p->lx);
        } else if (token_is_dot(t, "attribute")) {
            parse_attribute(p, s);
        } else if (token_is_dot(t, "ptr")) { /* .ptr .global .align 4: facts about what a pointer parameter points to */
            lexer_next(&p->lx);
            while (p->lx.token.kind == TOKEN_DOT) {
                bool align = token_is_dot(&p->lx.token, "align");
                if (!align && !space_of(&p->lx.token))
                    break;
                lexer_next(&p->lx);
                if (align)
                    (void)parse_integer(p, "an alignment");
            }
        } else {
            enum type type = type_find(t->name->text);
            if (type == TYPE_NONE)
                parse_unexpected(p, "a type such as .u32");
            s->type = type;
            lexer_next(&p->lx);
        }
    }
    if (s->type == TYPE_NONE)
        parse_unexpected(p, "a type such as .u32");
}

/* Dimensions behind the name; then count and bytes. The first may be empty. dims[] gets the element count below each
 * level. */
static uint32_t parse_dimensions(struct parser *p, struct symbol *s, uint64_t *dims)
{
    uint32_t n = 0;
    struct place at = p->lx.token.at;
    while (parse_accept(p, '[')) {
        if (n == MAX_NESTING)
            reader_fail(p->reader, STATUS_BAD_INPUT, at, "more than %d array dimensions", MAX_NESTING);
        if (token_is(&p->lx.token, ']')) {
            if (n > 0)
                parse_unexpected(p, "an array size: only the first may be left out");
            dims[n] = 0;
            s->unsized = true;
        } else {
            dims[n] = parse_integer(p, "an array size");
            if (dims[n] == 0 && n == 0)
                s->unsized = true;
        }
        n++;
        parse_expect(p, ']', "after an array size");
    }
    uint64_t bytes = type_bytes(s->type) * (s->vector ? s->vector : 1);
    if (!s->align)
        s->align = (uint32_t)bytes;
    s->count = 1;
    for (uint32_t i = 0; i < n; i++)
        if (__builtin_mul_overflow(s->count, dims[i], &s->count))
            s->count = UINT64_MAX;
    if (__builtin_mul_overflow(s->count, bytes, &s->bytes) || s->bytes > MAX_VARIABLE_BYTES)
        reader_fail(p->reader, STATUS_BAD_INPUT, at, "`%s` is larger than any device's memory", s->name->text);
    return n;
}

/* One element: a literal, or an address: name, name+4, generic(name)+4, and a mask around it, 0xFF00(name). */
static void parse_init_element(struct parser *p, struct symbol *s, uint64_t offset)
{
    struct initializer *e = PUSH(p, struct initializer, s->init, s->init_count, s->init_capacity);
    e->offset = offset;
    e->at = p->lx.token.at;
    e->bytes = (uint8_t)type_bytes(s->type);
    bool close = false, negative = false;
    while (token_is(&p->lx.token, '-') || token_is(&p->lx.token, '+')) {
        negative ^= token_is(&p->lx.token, '-');
        lexer_next(&p->lx);
    }
    struct token t = p->lx.token;
    if (t.kind == TOKEN_INT && lexer_peek(&p->lx) == '(') {
        if (t.value == 0 || t.value % 255 || (t.value / (t.value & (0 - t.value))) != 255)
            parse_unexpected(p, "a mask of one byte, such as 0xFF00");
        e->masked = true;
        e->mask_shift = (uint8_t)__builtin_ctzll(t.value);
        lexer_next(&p->lx);
        lexer_next(&p->lx);
        close = true;
        t = p->lx.token;
    }
    if (t.kind == TOKEN_NAME) {
        lexer_next(&p->lx);
        if (strcmp(t.name->text, "generic") == 0 && parse_accept(p, '(')) {
            e->generic = true;
            e->name = parse_name(p, "a variable");
            parse_expect(p, ')', "after the name");
        } else {
            e->name = t.name;
        }
        if (token_is(&p->lx.token, '+') || token_is(&p->lx.token, '-'))
            e->value = parse_integer(p, "an offset");
    } else if (t.kind == TOKEN_INT) {
        e->value = negative ? 0 - t.value : t.value;
        if (s->type == TYPE_F32) {
            float f = (float)(int64_t)e->value;
            e->value = 0;
            memcpy(&e->value, &f, sizeof f);
        } else if (s->type == TYPE_F64) {
            double d = (double)(int64_t)e->value;
            memcpy(&e->value, &d, sizeof d);
        }
        lexer_next(&p->lx);
    } else if (t.kind == TOKEN_F32 || t.kind == TOKEN_F64) {
        uint64_t bits = t.value;
        bool wide = t.kind == TOKEN_F64;
        if (wide && s->type == TYPE_F32) {
            double d;
            memcpy(&d, &bits, sizeof d);
            float f = (float)d;
            bits = 0;
            memcpy(&bits, &f, sizeof f);
            wide = false;
        } else if (!wide && s->type == TYPE_F64) {
            parse_unexpected(p, "a 64-bit literal for .f64");
        }
        if (negative)
            bits ^= wide ? UINT64_C(1) << 63 : UINT64_C(1) << 31;
        e->value = bits;
        lexer_next(&p->lx);
    } else {
        parse_unexpected(p, "an initial value");
    }
    if (close)
        parse_expect(p, ')', "after a masked address");
}

/* { a, b, { c, d } }: missing elements are zero, inner braces fill one element of the level above. */
static void parse_init_list(struct parser *p, struct symbol *s, const uint64_t *dims, uint32_t levels, uint64_t first)
{
    uint64_t element = type_bytes(s->type), below = s->vector ? s->vector : 1;
    for (uint32_t i = 1; i < levels; i++)
        below *= dims[i];
    uint64_t limit = levels == 0 ? below : s->unsized && first == 0 ? UINT64_MAX : below * dims[0];
    if (levels == 0)
        below = 1;
    struct place open = p->lx.token.at;
    parse_expect(p, '{', "of an initialiser");
    uint64_t at = 0;
    while (!token_is(&p->lx.token, '}')) {
        if (at >= limit)
            reader_fail(p->reader, STATUS_BAD_INPUT, p->lx.token.at, "more initial values than `%s` has elements",
                        s->name->text);
        if (token_is(&p->lx.token, '{')) {
            if (levels == 0)
                parse_unexpected(p, "an initial value");
            parse_init_list(p, s, dims + 1, levels - 1, first + at);
            at += below;
        } else {
            parse_init_element(p, s, (first + at) * element);
            at += 1;
        }
        if (!parse_accept(p, ','))
            break;
    }
    if (s->unsized && first == 0 && levels > 0 && s->bytes == 0) {
        s->count = (at + below - 1) / below;
        s->bytes = s->count * below * element;
    }
    if (p->lx.token.kind == TOKEN_END)
        reader_fail(p->reader, STATUS_BAD_INPUT, open, "`{` is not closed: expected `}`");
    parse_expect(p, '}', "after the initial values");
}

static void declare(struct parser *p, struct symbol *s)
{
    struct symbol *old = symbols_find_here(p->ast, p->scope, s->name);
    if (old) {
        /* The same variable may be declared .extern and defined later. */
        if (old->kind == SYMBOL_VARIABLE && s->kind == SYMBOL_VARIABLE && old->space == s->space && p->scope == 0 &&
            (old->external || s->external)) {
            if (old->external && !s->external) {
                struct symbol *next = old->next;
                uint32_t align = old->align;
                *old = *s;
                old->next = next;
                if (align > old->align)
                    old->align = align;
            }
            return;
        }
        /* nvcc declares `temp_param_reg` twice in one scope for some calls; an equal register is the same register. */
        if (old->kind == SYMBOL_REGISTER && s->kind == SYMBOL_REGISTER && old->type == s->type &&
            old->count == s->count)
            return;
        reader_fail(p->reader, STATUS_BAD_INPUT, s->at, "`%s` is already declared at line %u", s->name->text,
                    old->at.line);
    }
    symbols_add(p->ast, p->scope, s->name, s);
    if (s->kind == SYMBOL_VARIABLE && p->scope == 0)
        *PUSH(p, struct symbol *, p->ast->variables, p->ast->variable_count, p->ast->variable_capacity) = s;
    else if (s->kind == SYMBOL_VARIABLE && p->function)
        *PUSH(p, struct symbol *, p->function->locals, p->function->local_count, p->function->local_capacity) = s;
}

/* The current token is what it declares. Of what a function's body declares, nothing is kept. */
static struct declarator *note_declarator(struct parser *p, enum top_kind kind)
{
    struct top *top = p->top;
    if (p->function)
        return &p->local;
    struct declarator *d =
        PUSH(p, struct declarator, top->declarators, top->declarator_count, top->declarator_capacity);
    top->kind = kind;
    d->at = p->lx.token.start;
    return d;
}

void parse_variables(struct parser *p, struct linkage linkage)
{
    struct symbol shape = {.kind = SYMBOL_VARIABLE, .space = space_of(&p->lx.token)};
    lexer_next(&p->lx);
    if (shape.space == SPACE_CONST && parse_accept(p, '[')) { /* .const[bank], of old PTX */
        if (parse_integer(p, "a bank number") != 0)
            reader_fail(p->reader, STATUS_NOT_SUPPORTED, p->lx.token.at, ".const banks other than 0 are not supported");
        parse_expect(p, ']', "after the bank number");
    }
    parse_properties(p, &shape);
    do {
        struct symbol *s = new_symbol(p, SYMBOL_VARIABLE);
        struct declarator *d = note_declarator(p, TOP_VARIABLES);
        struct place at = s->at;
        *s = shape;
        s->at = at;
        d->name = s->name = parse_name(p, "a variable's name");
        s->external = linkage.external;
        s->weak = linkage.weak;
        uint64_t dims[MAX_NESTING + 1] = {0};
        uint32_t levels = parse_dimensions(p, s, dims);
        d->head_end = p->lx.token.start;
        d->value = parse_accept(p, '=');
        if (d->value) {
            if (s->space == SPACE_SHARED || s->space == SPACE_LOCAL || s->space == SPACE_PARAM)
                reader_fail(p->reader, STATUS_BAD_INPUT, s->at,
                            "only .global and .const variables may have an initial value");
            if (token_is(&p->lx.token, '{'))
                parse_init_list(p, s, dims, levels, 0);
            else
                parse_init_element(p, s, 0);
        }
        d->end = p->lx.token.start;
        declare(p, s);
    } while (parse_accept(p, ','));
    parse_expect(p, ';', "after a declaration");
}

void parse_registers(struct parser *p)
{
    struct symbol shape = {.kind = SYMBOL_REGISTER, .space = SPACE_REG};
    lexer_next(&p->lx);
    parse_properties(p, &shape);
    do {
        struct symbol *s = new_symbol(p, SYMBOL_REGISTER);
        struct place at = s->at;
        *s = shape;
        s->at = at;
        s->count = 1;
        s->name = parse_name(p, "a register's name");
        if (parse_accept(p, '<')) {
            s->range = true;
            s->count = parse_integer(p, "the number of registers");
            if (s->count > UINT32_MAX)
                reader_fail(p->reader, STATUS_BAD_INPUT, at, "too many registers");
            parse_expect(p, '>', "after the number of registers");
        }
        declare(p, s);
    } while (parse_accept(p, ','));
    parse_expect(p, ';', "after a declaration");
}

struct symbol *parse_params(struct parser *p, uint32_t *count, bool prototype)
{
    struct symbol *first = NULL, **last = &first;
    *count = 0;
    parse_expect(p, '(', "of a parameter list");
    while (!token_is(&p->lx.token, ')')) {
        enum space space = space_of(&p->lx.token);
        if (space != SPACE_PARAM && space != SPACE_REG)
            parse_unexpected(p, ".param or .reg");
        struct symbol *s = new_symbol(p, space == SPACE_REG ? SYMBOL_REGISTER : SYMBOL_VARIABLE);
        s->space = space;
        lexer_next(&p->lx);
        parse_properties(p, s);
        s->name = parse_name(p, "a parameter's name");
        uint64_t dims[MAX_NESTING + 1] = {0};
        (void)parse_dimensions(p, s, dims);
        if (s->bytes > 1u << 20)
            reader_fail(p->reader, STATUS_BAD_INPUT, s->at, "parameter `%s` is larger than 1 MiB", s->name->text);
        if (!prototype) {
            if (symbols_find_here(p->ast, p->scope, s->name))
                reader_fail(p->reader, STATUS_BAD_INPUT, s->at, "parameter `%s` is declared twice", s->name->text);
            symbols_add(p->ast, p->scope, s->name, s);
        }
        *last = s;
        last = &s->next;
        ++*count;
        if (!parse_accept(p, ','))
            break;
    }
    parse_expect(p, ')', "after the parameters");
    return first;
}

void parse_loc(struct parser *p)
{
    struct location l = {.ptx_line = p->lx.token.at.line};
    lexer_next(&p->lx);
    l.file = (uint32_t)parse_integer(p, "a file number");
    l.line = (uint32_t)parse_integer(p, "a line number");
    l.column = (uint32_t)parse_integer(p, "a column");
    while (parse_accept(p, ',')) {
        if (token_is_name(&p->lx.token, "function_name")) {
            lexer_next(&p->lx);
            l.label = parse_name(p, "a label of .debug_str");
            if (token_is(&p->lx.token, '+'))
                l.label_offset = parse_integer(p, "an offset");
        } else if (token_is_name(&p->lx.token, "inlined_at")) {
            lexer_next(&p->lx);
            l.inlined = true;
            l.at_file = (uint32_t)parse_integer(p, "a file number");
            l.at_line = (uint32_t)parse_integer(p, "a line number");
            l.at_column = (uint32_t)parse_integer(p, "a column");
        } else {
            parse_unexpected(p, "function_name or inlined_at");
        }
    }
    if (p->function)
        *PUSH(p, struct location, p->function->locations, p->function->location_count, p->function->location_capacity) =
            l;
}

void parse_file(struct parser *p)
{
    lexer_next(&p->lx);
    struct place at = p->lx.token.at;
    uint64_t number = parse_integer(p, "a file number");
    if (p->lx.token.kind != TOKEN_STRING)
        parse_unexpected(p, "a file name in quotes");
    const struct name *name = p->lx.token.name;
    lexer_next(&p->lx);
    while (parse_accept(p, ',')) /* time stamp and size */
        (void)parse_integer(p, "a number");
    if (number >= PTX_MAX_FILES)
        reader_fail(p->reader, STATUS_BAD_INPUT, at, "file number above %d", PTX_MAX_FILES - 1);
    if (number >= p->ast->file_count) {
        uint32_t count = (uint32_t)number + 16;
        const struct name **files = reader_alloc(p->reader, count, sizeof(void *));
        if (p->ast->file_count)
            memcpy((void *)files, (const void *)p->ast->files, p->ast->file_count * sizeof(void *));
        p->ast->files = files;
        p->ast->file_count = count;
    }
    p->ast->files[number] = name;
}

void parse_pragma(struct parser *p)
{
    do {
        lexer_next(&p->lx);
        if (p->lx.token.kind != TOKEN_STRING)
            parse_unexpected(p, "a pragma in quotes");
        lexer_next(&p->lx);
    } while (token_is(&p->lx.token, ','));
    parse_expect(p, ';', "after .pragma");
}

/* Only .debug_str is kept (function names of inlined code); other sections are DWARF and are skipped. */
void parse_section(struct parser *p)
{
    struct ast *ast = p->ast;
    lexer_next(&p->lx);
    bool strings = token_is_dot(&p->lx.token, "debug_str");
    if (p->lx.token.kind != TOKEN_DOT && p->lx.token.kind != TOKEN_NAME)
        parse_unexpected(p, "a section's name");
    lexer_next(&p->lx);
    if (!token_is(&p->lx.token, '{'))
        parse_unexpected(p, "`{` of a section");
    if (!strings) {
        lexer_skip_braces(&p->lx);
        return;
    }
    lexer_next(&p->lx);
    while (!token_is(&p->lx.token, '}')) {
        if (p->lx.token.kind == TOKEN_NAME) {
            struct debug_label *l =
                PUSH(p, struct debug_label, ast->debug_labels, ast->debug_label_count, ast->debug_label_capacity);
            l->name = p->lx.token.name;
            l->offset = ast->debug_str_bytes;
            lexer_next(&p->lx);
            parse_expect(p, ':', "after a label");
        } else if (token_is_dot(&p->lx.token, "b8")) {
            do {
                lexer_next(&p->lx);
                uint64_t v = parse_integer(p, "a byte");
                *PUSH(p, char, ast->debug_str, ast->debug_str_bytes, ast->debug_str_capacity) = (char)v;
            } while (token_is(&p->lx.token, ','));
        } else {
            parse_unexpected(p, "a label or .b8");
        }
    }
    *PUSH(p, char, ast->debug_str, ast->debug_str_bytes, ast->debug_str_capacity) = 0;
    lexer_next(&p->lx);
}

/* .maxntid x, y, z and its kind, between the parameter list and the body. */
static void parse_performance(struct parser *p, struct function *f)
{
    bool one_block = false; /* .reqnctapercluster 1, 1, 1 */
    while (p->lx.token.kind == TOKEN_DOT) {
        const struct token t = p->lx.token;
        bool maxntid = token_is_dot(&t, "maxntid"), reqntid = token_is_dot(&t, "reqntid");
        if (token_is_dot(&t, "pragma")) {
            parse_pragma(p);
        } else if (maxntid || reqntid || token_is_dot(&t, "minnctapersm") || token_is_dot(&t, "maxnctapersm") ||
                   token_is_dot(&t, "maxnreg") || token_is_dot(&t, "abi_preserve") ||
                   token_is_dot(&t, "abi_preserve_control")) {
            uint32_t v[3] = {1, 1, 1};
            lexer_next(&p->lx);
            for (int i = 0; i < 3; i++) {
                v[i] = (uint32_t)parse_integer(p, "a number");
                if (!parse_accept(p, ','))
                    break;
            }
            if (maxntid)
                memcpy(f->maxntid, v, sizeof v);
            if (reqntid)
                memcpy(f->reqntid, v, sizeof v);
        } else if (token_is_dot(&t, "noreturn")) {
            f->noreturn = true;
            lexer_next(&p->lx);
        } else if (token_is_dot(&t, "unified")) {
            lexer_next(&p->lx);
            parse_expect(p, '(', "after .unified");
            (void)parse_integer(p, "a number");
            parse_expect(p, ',', "between the numbers");
            (void)parse_integer(p, "a number");
            parse_expect(p, ')', "after .unified");
        } else if (token_is_dot(&t, "attribute")) {
            struct symbol unused = {.kind = SYMBOL_FUNCTION};
            parse_attribute(p, &unused);
        } else if (token_is_dot(&t, "explicitcluster") || token_is_dot(&t, "reqnctapercluster") ||
                   token_is_dot(&t, "maxclusterrank") || token_is_dot(&t, "blocksareclusters")) {
            /* A cluster of one block is a block, and .maxclusterrank only a bound. */
            bool dims = token_is_dot(&t, "reqnctapercluster"), bound = token_is_dot(&t, "maxclusterrank"), ones = dims;
            lexer_next(&p->lx);
            for (; p->lx.token.kind == TOKEN_INT || token_is(&p->lx.token, ','); lexer_next(&p->lx))
                ones &= p->lx.token.kind != TOKEN_INT || p->lx.token.value == 1;
            one_block |= ones;
            if (!ones && !bound) {
                f->unknown = t.name;
                f->unknown_at = t.at;
            }
        } else {
            parse_unexpected(p, "a performance directive, `{` or `;`");
        }
    }
    if (one_block)
        f->unknown = NULL;
}

static uint32_t open_scope(struct parser *p, uint32_t parent)
{
    struct ast *a = p->ast;
    PUSH(p, struct scope, a->scopes, a->scope_count, a->scope_capacity)->parent = parent;
    return a->scope_count - 1;
}

static void parse_function(struct parser *p, bool entry, struct linkage linkage)
{
    struct function *f = reader_alloc(p->reader, 1, sizeof *f);
    f->entry = entry;
    f->at = p->lx.token.at;
    f->first_line = f->at.line;
    lexer_next(&p->lx);
    if (token_is_dot(&p->lx.token, "attribute")) {
        struct symbol unused = {.kind = SYMBOL_FUNCTION};
        parse_attribute(p, &unused);
    }
    uint32_t outer = p->scope;
    p->scope = open_scope(p, 0);
    if (!entry && token_is(&p->lx.token, '('))
        f->returns = parse_params(p, &f->return_count, false);
    struct place at = p->lx.token.at;
    struct declarator *d = note_declarator(p, entry ? TOP_ENTRY : TOP_FUNCTION);
    d->name = f->name = parse_name(p, "a function's name");
    if (token_is(&p->lx.token, '('))
        f->params = parse_params(p, &f->param_count, false);
    d->head_end = p->lx.token.start;
    parse_performance(p, f);

    struct symbol *s = symbols_find_here(p->ast, 0, f->name);
    if (s && (s->kind != SYMBOL_FUNCTION || (s->function->defined && token_is(&p->lx.token, '{'))))
        reader_fail(p->reader, STATUS_BAD_INPUT, at, "`%s` is already defined at line %u", f->name->text, s->at.line);
    const char *other = s ? function_disagreement(s->function, f) : NULL;
    if (other)
        reader_fail(p->reader, STATUS_BAD_INPUT, at, "`%s` has %s than at line %u", f->name->text, other, s->at.line);
    const bool body = d->value = token_is(&p->lx.token, '{');
    if (!s) {
        s = reader_alloc(p->reader, 1, sizeof *s);
        s->kind = SYMBOL_FUNCTION;
        s->name = f->name;
        s->at = at;
        s->function = f;
        s->external = linkage.external;
        symbols_add(p->ast, 0, f->name, s);
        f->index = p->ast->function_count;
        *PUSH(p, struct function *, p->ast->functions, p->ast->function_count, p->ast->function_capacity) = f;
    } else if (body) { /* the definition replaces its earlier declaration */
        f->index = s->function->index;
        p->ast->functions[f->index] = f;
        s->function = f;
        s->at = at;
    }
    f->symbol = s;
    if (body) {
        f->defined = true;
        p->function = f;
        parse_body(p);
        p->function = NULL;
    } else {
        parse_expect(p, ';', "after a function's declaration");
    }
    d->end = p->lx.token.start;
    p->scope = outer;
}

static void parse_target(struct parser *p)
{
    do {
        lexer_next(&p->lx);
        struct place at = p->lx.token.at;
        const struct name *n = parse_name(p, "a target such as sm_75");
        if (strncmp(n->text, "sm_", 3) == 0) {
            unsigned v = 0;
            for (const char *c = n->text + 3; *c >= '0' && *c <= '9' && v < 100000; c++)
                v = v * 10 + (unsigned)(*c - '0');
            p->ast->target = v;
        } else if (strcmp(n->text, "texmode_independent") == 0) {
            reader_fail(p->reader, STATUS_NOT_SUPPORTED, at, "texmode_independent is not supported");
        }
    } while (token_is(&p->lx.token, ','));
}

static void parse_alias(struct parser *p)
{
    struct alias *a = PUSH(p, struct alias, p->ast->aliases, p->ast->alias_count, p->ast->alias_capacity);
    a->at = p->lx.token.at;
    lexer_next(&p->lx);
    struct declarator *d = note_declarator(p, TOP_ALIAS);
    d->value = true;
    d->name = a->name = parse_name(p, "a function's name");
    d->head_end = d->end = p->lx.token.start;
    parse_expect(p, ',', "between the names");
    a->target = parse_name(p, "a function's name");
    parse_expect(p, ';', "after .alias");
}

static void parse_version(struct parser *p)
{
    lexer_next(&p->lx);
    /* "9.0" is read as a decimal literal; its text tells 8.10 from 8.1. */
    const char *s = p->lx.token.start;
    if (p->lx.token.kind != TOKEN_F64 && p->lx.token.kind != TOKEN_INT)
        parse_unexpected(p, "a version such as 9.0");
    unsigned part[2] = {0, 0};
    for (int i = 0; i < 2; i++) {
        while (*s >= '0' && *s <= '9' && part[i] < 10000)
            part[i] = part[i] * 10 + (unsigned)(*s++ - '0');
        if (*s != '.')
            break;
        s++;
    }
    p->ast->version_major = part[0];
    p->ast->version_minor = part[1];
    lexer_next(&p->lx);
}

static void parse_top(struct parser *p)
{
    struct linkage linkage = {0};
    for (;; lexer_next(&p->lx)) {
        if (token_is_dot(&p->lx.token, "extern"))
            linkage.external = true;
        else if (token_is_dot(&p->lx.token, "visible"))
            linkage.visible = true;
        else if (token_is_dot(&p->lx.token, "weak") || token_is_dot(&p->lx.token, "common"))
            linkage.weak = true;
        else
            break;
    }
    const struct token *t = &p->lx.token;
    bool header = token_is_dot(t, "version") || token_is_dot(t, "target") || token_is_dot(t, "address_size");
    p->top->kind = header ? TOP_HEADER : TOP_OTHER;
    p->top->linkage_end = t->start;
    p->top->linkage = linkage;
    if (token_is_dot(t, "entry"))
        parse_function(p, true, linkage);
    else if (token_is_dot(t, "func"))
        parse_function(p, false, linkage);
    else if (space_of(t) == SPACE_REG || space_of(t) == SPACE_LOCAL || space_of(t) == SPACE_PARAM)
        reader_fail(p->reader, STATUS_NOT_SUPPORTED, t->at, "module-scope .%s variables are not supported",
                    t->name->text);
    else if (space_of(t) != SPACE_NONE)
        parse_variables(p, linkage);
    else if (token_is_dot(t, "version"))
        parse_version(p);
    else if (token_is_dot(t, "target"))
        parse_target(p);
    else if (token_is_dot(t, "address_size")) {
        lexer_next(&p->lx);
        struct place at = p->lx.token.at;
        p->ast->address_size = (unsigned)parse_integer(p, "64");
        if (p->ast->address_size != 64)
            reader_fail(p->reader, STATUS_NOT_SUPPORTED, at, "only .address_size 64 is supported");
    } else if (token_is_dot(t, "file"))
        parse_file(p);
    else if (token_is_dot(t, "loc"))
        parse_loc(p);
    else if (token_is_dot(t, "section"))
        parse_section(p);
    else if (token_is_dot(t, "pragma"))
        parse_pragma(p);
    else if (token_is_dot(t, "alias"))
        parse_alias(p);
    else
        parse_unexpected(p, "a directive such as .entry, .func, .global");
}

void parse_module(struct reader *reader, struct ast *ast)
{
    struct parser p = {.reader = reader, .ast = ast};
    ast->reader = reader;
    ast->address_size = 64;
    open_scope(&p, 0); /* the module's */
    lexer_start(&p.lx, reader);
    if (!token_is_dot(&p.lx.token, "version"))
        parse_unexpected(&p, ".version at the start of PTX text");
    while (p.lx.token.kind != TOKEN_END) {
        p.top = PUSH(&p, struct top, ast->tops, ast->top_count, ast->top_capacity);
        p.top->start = p.lx.token.start;
        parse_top(&p);
        p.top->end = p.lx.token.start;
    }
    if (ast->target == 0)
        reader_fail(reader, STATUS_BAD_INPUT, p.lx.token.at, "expected a .target directive");
}
