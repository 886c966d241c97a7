/* ast.h - the syntax tree of a PTX module: symbols, functions, statements, operands. Built by parse*.c,
 * completed by resolve.c, read by lower*.c, which look names up as they meet them. Everything lives in the module's
 * arena. */
#ifndef PTX_AST_H
#define PTX_AST_H

#include <stdbool.h>
#include "ptx/reader.h"

/* Fundamental types: name, bits, kind (b bits, u unsigned, s signed, f float, p predicate, x packed). */
#define TYPE_LIST(X)                                                                                                   \
    X(B8, "b8", 8, 'b')                                                                                                \
    X(B16, "b16", 16, 'b')                                                                                             \
    X(B32, "b32", 32, 'b')                                                                                             \
    X(B64, "b64", 64, 'b')                                                                                             \
    X(B128, "b128", 128, 'b')                                                                                          \
    X(U8, "u8", 8, 'u')                                                                                                \
    X(U16, "u16", 16, 'u')                                                                                             \
    X(U32, "u32", 32, 'u')                                                                                             \
    X(U64, "u64", 64, 'u')                                                                                             \
    X(S8, "s8", 8, 's')                                                                                                \
    X(S16, "s16", 16, 's')                                                                                             \
    X(S32, "s32", 32, 's')                                                                                             \
    X(S64, "s64", 64, 's')                                                                                             \
    X(F16, "f16", 16, 'f')                                                                                             \
    X(F16X2, "f16x2", 32, 'f')                                                                                         \
    X(BF16, "bf16", 16, 'f')                                                                                           \
    X(BF16X2, "bf16x2", 32, 'f')                                                                                       \
    X(F32, "f32", 32, 'f')                                                                                             \
    X(F64, "f64", 64, 'f')                                                                                             \
    X(U16X2, "u16x2", 32, 'x')                                                                                         \
    X(S16X2, "s16x2", 32, 'x')                                                                                         \
    X(E4M3X2, "e4m3x2", 16, 'x')                                                                                       \
    X(E5M2X2, "e5m2x2", 16, 'x')                                                                                       \
    X(E2M3X2, "e2m3x2", 16, 'x')                                                                                       \
    X(E3M2X2, "e3m2x2", 16, 'x')                                                                                       \
    X(E2M1X2, "e2m1x2", 8, 'x')                                                                                        \
    X(PRED, "pred", 1, 'p')                                                                                            \
    X(TEXREF, "texref", 64, 'o')                                                                                       \
    X(SAMPLERREF, "samplerref", 64, 'o')                                                                               \
    X(SURFREF, "surfref", 64, 'o')

#define TYPE_ENUM(id, name, bits, kind) TYPE_##id,
enum type { TYPE_NONE, TYPE_LIST(TYPE_ENUM) TYPE_COUNT };
#undef TYPE_ENUM

struct type_info {
    const char *name;
    uint8_t bits;
    char kind;
};
extern const struct type_info type_info[TYPE_COUNT];
enum type type_find(const char *name); /* without its dot; TYPE_NONE when unknown */

enum space { SPACE_NONE, SPACE_REG, SPACE_GLOBAL, SPACE_SHARED, SPACE_LOCAL, SPACE_CONST, SPACE_PARAM };
enum symbol_kind {
    SYMBOL_VARIABLE, /* any space but .reg; also parameters */
    SYMBOL_REGISTER,
    SYMBOL_FUNCTION,
    SYMBOL_LABEL,
    SYMBOL_PROTOTYPE,
    SYMBOL_TARGETS, /* .branchtargets or .calltargets */
};

struct function;
struct symbol;

/* One initialised element of a variable. */
struct initializer {
    uint64_t offset;
    uint8_t bytes;
    uint8_t mask_shift; /* a mask operator, 0xFF00(x): the bits shifted down; else 0 */
    bool masked;
    uint64_t value;          /* bits, or the addend of `symbol` */
    const struct name *name; /* names a variable or a function; bound by resolve.c */
    bool generic;
    struct symbol *symbol;
    struct place at;
};

struct symbol {
    enum symbol_kind kind;
    enum space space;
    enum type type;
    const struct name *name;
    struct place at;
    struct symbol *next; /* in declaration order within its list */
    /* variables, registers, parameters */
    uint8_t vector; /* 0, 2 or 4 */
    bool external, weak, managed, unsized, range;
    bool function_param; /* .param of a .func, or of a call in a body: lives in the frame's local memory */
    uint32_t align;
    uint64_t count; /* of elements; of a register range %r<n>: n */
    uint64_t bytes;
    uint64_t offset; /* in its space, by resolve.c */
    uint32_t id;     /* registers: unique in the module; .global, .const, .shared: index among their kind */
    struct initializer *init;
    uint32_t init_count, init_capacity;
    /* functions */
    struct function *function;
    /* labels */
    uint32_t statement; /* index of the statement it stands before */
    /* targets */
    const struct name **targets;
    uint32_t target_count, target_capacity;
    struct place *target_places;
    uint32_t target_place_capacity;
    /* prototypes */
    struct symbol *params, *returns;
};

enum operand_kind {
    OPERAND_NAME, /* register, special register, variable, label, function */
    OPERAND_INT,
    OPERAND_F32,
    OPERAND_F64,
    OPERAND_ADDRESS, /* [base + offset]; base a name or none */
    OPERAND_VECTOR,  /* { items } */
    OPERAND_LIST,    /* ( items ), of a call */
    OPERAND_SINK,    /* _ */
    OPERAND_TEXTURE, /* [name, items]: a texture, a sampler where one is named, coordinates */
};
struct operand {
    enum operand_kind kind;
    bool negated;                /* !p */
    bool minus;                  /* -r, of vmad */
    char component;              /* x y z w of %tid.x or of a vector register; 0 */
    const struct name *selector; /* h1, b3210: parts of a register, of video instructions; NULL */
    struct place at;
    const struct name *name;
    uint64_t value; /* literal bits, or the offset of an address or of `name + 4` */
    struct operand *items;
    uint32_t item_count, item_capacity;
    struct operand *pair; /* what follows `|` */
};

struct statement {
    const struct name *opcode;
    const struct name **mods; /* dotted words behind it */
    uint32_t mod_count, mod_capacity;
    struct operand *operands;
    uint32_t operand_count, operand_capacity;
    struct operand *guard; /* @p or @!p; NULL */
    uint32_t scope;
    struct place at;
};

struct scope {
    uint32_t parent; /* 0 is the module */
};

/* A .loc directive; holds for the statements behind it. */
struct location {
    uint32_t ptx_line, file, line, column;
    const struct name *label; /* function_name label + label_offset, in .debug_str */
    uint64_t label_offset;
    bool inlined;
    uint32_t at_file, at_line, at_column;
};

struct function {
    const struct name *name;
    struct symbol *symbol;
    bool entry, defined, noreturn;
    struct place at;
    uint32_t first_line, last_line;
    struct symbol *params, *returns; /* lists by `next` */
    uint32_t param_count, return_count;
    uint32_t maxntid[3], reqntid[3];
    struct statement *statements;
    uint32_t statement_count, statement_capacity;
    struct symbol **locals; /* every symbol declared in the body but registers */
    uint32_t local_count, local_capacity;
    struct location *locations;
    uint32_t location_count, location_capacity;
    uint32_t index;
    uint32_t local_bytes;       /* of one frame: .local variables, parameters, parameter blocks of calls */
    uint32_t param_bytes;       /* of an entry */
    const struct name *unknown; /* a directive that this executor does not know; NULL: none */
    struct place unknown_at;
};

/* A name that a statement at file scope declares, by its text. */
struct declarator {
    const struct name *name;
    const char *at;       /* the name */
    const char *head_end; /* behind a variable's size, a function's parameters */
    const char *end;      /* behind its value or body */
    bool value;           /* it has one, or a body */
};
/* A statement at file scope: all of the text, blanks and comments behind it included, lies in one. Linking works on
 * these (link.c). */
enum top_kind { TOP_OTHER, TOP_HEADER /* .version and its kind */, TOP_VARIABLES, TOP_FUNCTION, TOP_ENTRY, TOP_ALIAS };
struct linkage {
    bool external, weak, visible;
};
struct top {
    enum top_kind kind;
    struct linkage linkage;
    const char *start, *linkage_end, *end; /* linkage_end: behind .extern and its kind */
    struct declarator *declarators;
    uint32_t declarator_count, declarator_capacity;
};

struct debug_label {
    const struct name *name;
    uint32_t offset; /* in debug_str */
};
struct alias {
    const struct name *name, *target;
    struct place at;
};

struct ast {
    struct reader *reader;
    unsigned version_major, version_minor, target, address_size;
    struct symbol **variables; /* module-scope, all spaces */
    uint32_t variable_count, variable_capacity;
    struct function **functions;
    uint32_t function_count, function_capacity;
    struct scope *scopes;
    uint32_t scope_count, scope_capacity;
    void *symbols;             /* symbol_table of resolve.c: (scope, name) -> symbol */
    const struct name **files; /* by .file number */
    uint32_t file_count;
    struct debug_label *debug_labels;
    uint32_t debug_label_count, debug_label_capacity;
    char *debug_str;
    uint32_t debug_str_bytes, debug_str_capacity;
    struct alias *aliases;
    uint32_t alias_count, alias_capacity;
    struct top *tops; /* in the order of the text */
    uint32_t top_count, top_capacity;
    uint32_t register_count;          /* ids handed out */
    struct symbol **device_variables; /* .global and .const, in order of declaration; index is symbol.id */
    uint32_t device_variable_count, device_variable_capacity;
    struct symbol **shared; /* .shared, likewise */
    uint32_t shared_count, shared_capacity;
};

enum { PTX_MAX_FILES = 1 << 16 }; /* of a module: numbers of .file */

/* parse.c */
void parse_module(struct reader *reader, struct ast *ast);

/* symbols.c: the scoped symbol table */
struct symbol *symbols_find(const struct ast *ast, uint32_t scope,
                            const struct name *name); /* through parents; or NULL */
struct symbol *symbols_find_here(const struct ast *ast, uint32_t scope, const struct name *name);
void symbols_add(struct ast *ast, uint32_t scope, const struct name *name, struct symbol *symbol);
struct symbol_iterator {
    uint32_t at;
};
struct symbol *symbols_each(const struct ast *ast,
                            struct symbol_iterator *it); /* NULL at the end; zero-initialise `it` */
/* As symbols_find, and %r12 finds the range %r<n> with *index 12. */
struct symbol *symbols_find_register(const struct ast *ast, uint32_t scope, const struct name *name, uint32_t *index);

/* symbols.c: what two declarations of a function differ in: the second has "other parameters"; NULL: in nothing. */
const char *function_disagreement(const struct function *a, const struct function *b);

/* resolve.c: numbers registers, variables and shared variables, lays out parameters and locals, binds initialisers. */
void resolve_module(struct ast *ast);

#endif
