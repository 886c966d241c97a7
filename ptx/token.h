/* token.h - PTX text to tokens, one at a time. A dotted word (`.global`, `.shared::cta`, `.2d`) is one token; the
 * opcode in front of it is another, so that `ld.global.u32` is a name and two dotted words. */
#ifndef PTX_TOKEN_H
#define PTX_TOKEN_H

#include <stdbool.h>
#include "ptx/reader.h"

enum token_kind {
    TOKEN_END,
    TOKEN_NAME,   /* identifier, opcode, %register, or `_` */
    TOKEN_DOT,    /* `.word`; `name` is the word without its dot */
    TOKEN_INT,    /* `value` */
    TOKEN_F32,    /* 0fXXXXXXXX: `value` holds the bits */
    TOKEN_F64,    /* 0dX{16}, or a decimal literal: `value` holds the bits */
    TOKEN_STRING, /* `name` is the text between the quotes */
    TOKEN_PUNCT,  /* `punct` */
};
struct token {
    enum token_kind kind;
    char punct;
    struct place at;
    const char *start; /* in the text */
    const struct name *name;
    uint64_t value;
};
struct lexer {
    struct reader *reader;
    const char *at, *line_start;
    uint32_t line;
    struct token token; /* the current one */
};

void lexer_start(struct lexer *lx, struct reader *reader); /* then the first token is current */
void lexer_next(struct lexer *lx);
/* The first character after the current token and any blanks and comments: enough look-ahead for `label :`. */
char lexer_peek(struct lexer *lx);
/* Skips to the matching `}` of the `{` that is current; afterwards the token behind it is current. */
void lexer_skip_braces(struct lexer *lx);

bool token_is(const struct token *t, char punct);
bool token_is_dot(const struct token *t, const char *word);
bool token_is_name(const struct token *t, const char *word);
/* What the token is, for "expected X, found Y"; `buffer` is used for short texts. */
const char *token_describe(const struct token *t, char *buffer, size_t bytes);

#endif
