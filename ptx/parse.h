/* parse.h - what the two halves of the parser share: parse.c reads directives and declarations, parse_body.c the inside
 * of a function. */
#ifndef PTX_PARSE_H
#define PTX_PARSE_H

#include "ptx/ast.h"
#include "ptx/token.h"

struct parser {
    struct lexer lx;
    struct reader *reader;
    struct ast *ast;
    struct function *function; /* NULL at module scope */
    struct top *top;           /* the statement at file scope that is being read */
    struct declarator local;   /* of what a function's body declares: nobody asks for it */
    uint32_t scope;
};

void parse_expect(struct parser *p, char punct, const char *where); /* and moves on */
bool parse_accept(struct parser *p, char punct);
uint64_t parse_integer(struct parser *p, const char *what); /* with an optional sign */
const struct name *parse_name(struct parser *p, const char *what);
__attribute__((noreturn)) void parse_unexpected(struct parser *p, const char *expected);

/* [linkage] .space declaration [, declaration]... ; the space's token is current. */
void parse_variables(struct parser *p, struct linkage linkage);
void parse_registers(struct parser *p);
/* ( .param ... , .reg ... ): a parameter list; the opening parenthesis is current. Declared in the current scope. */
struct symbol *parse_params(struct parser *p, uint32_t *count, bool prototype);
void parse_loc(struct parser *p);
void parse_pragma(struct parser *p);
void parse_section(struct parser *p);
void parse_file(struct parser *p);

void parse_body(struct parser *p); /* `{` is current */

#endif
