#include "ptx/token.h"
#include <ctype.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static bool is_name_start(char c)
{
    return isalpha((unsigned char)c) || c == '_' || c == '$' || c == '%';
}

static bool is_name_char(char c)
{
    return isalnum((unsigned char)c) || c == '_' || c == '$';
}

static struct place place_here(const struct lexer *lx)
{
    return (struct place){lx->line, (uint32_t)(lx->at - lx->line_start) + 1};
}

static void skip_blanks(struct lexer *lx)
{
    for (;;) {
        char c = *lx->at;
        if (c == '\n') {
            lx->at++;
            lx->line++;
            lx->line_start = lx->at;
        } else if (c == ' ' || c == '\t' || c == '\r' || c == '\f' || c == '\v') {
            lx->at++;
        } else if (c == '/' && lx->at[1] == '/') {
            lx->at += strcspn(lx->at, "\n");
        } else if (c == '/' && lx->at[1] == '*') {
            struct place at = place_here(lx);
            lx->at += 2;
            while (*lx->at && !(lx->at[0] == '*' && lx->at[1] == '/')) {
                if (*lx->at++ == '\n') {
                    lx->line++;
                    lx->line_start = lx->at;
                }
            }
            if (!*lx->at)
                reader_fail(lx->reader, STATUS_BAD_INPUT, at, "comment is not closed: expected `*/`");
            lx->at += 2;
        } else {
            return;
        }
    }
}

/* Exactly `digits` hexadecimal digits, as in 0f3F800000. */
static uint64_t read_hex_float(struct lexer *lx, int digits, struct place at)
{
    uint64_t value = 0;
    for (int i = 0; i < digits; i++, lx->at++) {
        char c = *lx->at;
        if (!isxdigit((unsigned char)c))
            reader_fail(lx->reader, STATUS_BAD_INPUT, at, "expected %d hexadecimal digits in a floating-point literal",
                        digits);
        value = value * 16 + (uint64_t)(isdigit((unsigned char)c) ? c - '0' : (c | 32) - 'a' + 10);
    }
    return value;
}

static uint64_t read_digits(struct lexer *lx, unsigned base, struct place at)
{
    uint64_t value = 0;
    const char *first = lx->at;
    for (;; lx->at++) {
        char c = *lx->at;
        unsigned digit = isdigit((unsigned char)c)    ? (unsigned)(c - '0')
                         : isxdigit((unsigned char)c) ? (unsigned)((c | 32) - 'a' + 10)
                                                      : 99;
        if (digit >= base)
            break;
        if (__builtin_mul_overflow(value, base, &value) || __builtin_add_overflow(value, digit, &value))
            reader_fail(lx->reader, STATUS_BAD_INPUT, at, "integer literal does not fit 64 bits");
    }
    if (lx->at == first)
        reader_fail(lx->reader, STATUS_BAD_INPUT, at, "expected digits of an integer literal");
    return value;
}

static void read_number(struct lexer *lx)
{
    struct token *t = &lx->token;
    const char *s = lx->at;
    t->kind = TOKEN_INT;
    if (s[0] == '0' && (s[1] == 'f' || s[1] == 'F' || s[1] == 'd' || s[1] == 'D')) {
        bool wide = (s[1] | 32) == 'd';
        lx->at += 2;
        t->kind = wide ? TOKEN_F64 : TOKEN_F32;
        t->value = read_hex_float(lx, wide ? 16 : 8, t->at);
        return;
    }
    const char *end = s + strspn(s, "0123456789");
    if (*end == '.' || ((*end == 'e' || *end == 'E') && s[1] != 'x')) {
        if (*end == '.' && !isdigit((unsigned char)end[1]) && (end[1] | 32) != 'e' && is_name_start(end[1]))
            goto integer;
        char *stop;
        double value = strtod(s, &stop);
        memcpy(&t->value, &value, sizeof value);
        t->kind = TOKEN_F64;
        lx->at = stop;
        return;
    }
integer:
    if (s[0] == '0' && (s[1] == 'x' || s[1] == 'X')) {
        lx->at += 2;
        t->value = read_digits(lx, 16, t->at);
    } else if (s[0] == '0' && (s[1] == 'b' || s[1] == 'B')) {
        lx->at += 2;
        t->value = read_digits(lx, 2, t->at);
    } else {
        t->value = read_digits(lx, s[0] == '0' ? 8 : 10, t->at);
    }
    if (*lx->at == 'U' || *lx->at == 'u')
        lx->at++;
    if (is_name_char(*lx->at))
        reader_fail(lx->reader, STATUS_BAD_INPUT, t->at, "malformed number");
}

static void read_dot(struct lexer *lx)
{
    const char *s = ++lx->at;
    while (is_name_char(*lx->at) || (lx->at[0] == ':' && lx->at[1] == ':' && is_name_char(lx->at[2])))
        lx->at += *lx->at == ':' ? 2 : 1;
    if (lx->at == s)
        reader_fail(lx->reader, STATUS_BAD_INPUT, lx->token.at, "expected a word after `.`");
    lx->token.kind = TOKEN_DOT;
    lx->token.name = reader_intern(lx->reader, s, (size_t)(lx->at - s));
}

void lexer_next(struct lexer *lx)
{
    skip_blanks(lx);
    struct token *t = &lx->token;
    memset(t, 0, sizeof *t);
    t->at = place_here(lx);
    t->start = lx->at;
    char c = *lx->at;
    if (c == 0) {
        t->kind = TOKEN_END;
    } else if (is_name_start(c)) {
        const char *s = lx->at++;
        while (is_name_char(*lx->at))
            lx->at++;
        t->kind = TOKEN_NAME;
        t->name = reader_intern(lx->reader, s, (size_t)(lx->at - s));
    } else if (isdigit((unsigned char)c)) {
        read_number(lx);
    } else if (c == '.') {
        read_dot(lx);
    } else if (c == '"') {
        const char *s = ++lx->at;
        lx->at += strcspn(lx->at, "\"\n");
        if (*lx->at != '"')
            reader_fail(lx->reader, STATUS_BAD_INPUT, t->at, "string is not closed: expected `\"`");
        t->kind = TOKEN_STRING;
        t->name = reader_intern(lx->reader, s, (size_t)(lx->at - s));
        lx->at++;
    } else if (c != '\'' && c != '`' && ispunct((unsigned char)c)) {
        t->kind = TOKEN_PUNCT;
        t->punct = c;
        lx->at++;
    } else {
        reader_fail(lx->reader, STATUS_BAD_INPUT, t->at, "character 0x%02x does not belong in PTX", (unsigned char)c);
    }
}

void lexer_start(struct lexer *lx, struct reader *reader)
{
    memset(lx, 0, sizeof *lx);
    lx->reader = reader;
    lx->at = lx->line_start = reader->text;
    lx->line = 1;
    lexer_next(lx);
}

char lexer_peek(struct lexer *lx)
{
    skip_blanks(lx);
    return *lx->at;
}

void lexer_skip_braces(struct lexer *lx)
{
    struct place open = lx->token.at;
    int depth = 0;
    do {
        if (token_is(&lx->token, '{'))
            depth++;
        else if (token_is(&lx->token, '}'))
            depth--;
        else if (lx->token.kind == TOKEN_END)
            reader_fail(lx->reader, STATUS_BAD_INPUT, open, "`{` is not closed: expected `}`");
        lexer_next(lx);
    } while (depth > 0);
}

bool token_is(const struct token *t, char punct)
{
    return t->kind == TOKEN_PUNCT && t->punct == punct;
}

bool token_is_dot(const struct token *t, const char *word)
{
    return t->kind == TOKEN_DOT && strcmp(t->name->text, word) == 0;
}

bool token_is_name(const struct token *t, const char *word)
{
    return t->kind == TOKEN_NAME && strcmp(t->name->text, word) == 0;
}

const char *token_describe(const struct token *t, char *buffer, size_t bytes)
{
    switch (t->kind) {
    case TOKEN_END:
        return "the end of the text";
    case TOKEN_NAME:
        snprintf(buffer, bytes, "`%.60s`", t->name->text);
        break;
    case TOKEN_DOT:
        snprintf(buffer, bytes, "`.%.60s`", t->name->text);
        break;
    case TOKEN_STRING:
        return "a string";
    case TOKEN_PUNCT:
        snprintf(buffer, bytes, "`%c`", t->punct);
        break;
    default:
        return "a number";
    }
    return buffer;
}
