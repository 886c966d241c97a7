/* ptx_mutate.c - changes PTX text by its tokens, so that most of what the fuzzer tries gets past the parser:
 * instructions put together from the rows of opcodes.def and modifiers.def, other registers, lines moved about. A third
 * of the time libFuzzer's own mutations of bytes. */
#include <ctype.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "ptx/ast.h"
#include "ptx/lower.h"

size_t LLVMFuzzerMutate(uint8_t *data, size_t size, size_t max_size);
size_t LLVMFuzzerCustomMutator(uint8_t *data, size_t size, size_t max_size, unsigned seed);

static const struct {
    const char *word;
    uint64_t class_;
} modifiers[] = {
#define MODIFIER(word, class_, value) {word, UINT64_C(1) << CLASS_##class_},
#include "ptx/modifiers.def"
#undef MODIFIER
};
enum { MODIFIER_COUNT = sizeof modifiers / sizeof *modifiers };
enum { LONGEST_LINE = 400, MAX_LINES = 4096, MAX_TOKENS = 4096 };

struct span {
    size_t at, length;
};
struct text {
    char *bytes;
    size_t size, room;
    struct span lines[MAX_LINES], tokens[MAX_TOKENS]; /* tokens: registers, names, numbers, dotted words */
    size_t line_count, token_count;
};

static uint64_t random_state;
static size_t below(size_t bound)
{
    random_state = random_state * UINT64_C(6364136223846793005) + UINT64_C(1442695040888963407);
    return bound ? (size_t)((random_state >> 33) % bound) : 0;
}

static bool in_token(char c)
{
    return isalnum((unsigned char)c) || c == '_' || c == '$' || c == ':';
}

static void scan(struct text *t)
{
    t->line_count = t->token_count = 0;
    size_t start = 0;
    for (size_t i = 0; i < t->size && t->line_count < MAX_LINES; i++)
        if (t->bytes[i] == '\n') {
            t->lines[t->line_count++] = (struct span){start, i + 1 - start};
            start = i + 1;
        }
    for (size_t i = 0; i < t->size && t->token_count < MAX_TOKENS;) {
        size_t end = i + (t->bytes[i] == '%' || t->bytes[i] == '.');
        while (end < t->size && in_token(t->bytes[end]))
            end++;
        if (end > i)
            t->tokens[t->token_count++] = (struct span){i, end - i};
        i = end + (end == i);
    }
}

static void replace(struct text *t, size_t at, size_t length, const char *by, size_t bytes)
{
    if (t->size - length + bytes > t->room)
        return;
    memmove(t->bytes + at + bytes, t->bytes + at + length, t->size - at - length);
    memcpy(t->bytes + at, by, bytes);
    t->size = t->size - length + bytes;
}

/* A token that begins like this, or any when none does. */
static struct span some_token(const struct text *t, char first)
{
    if (t->token_count == 0)
        return (struct span){0, 0};
    size_t from = below(t->token_count);
    for (size_t i = 0; i < t->token_count; i++) {
        struct span s = t->tokens[(from + i) % t->token_count];
        if (t->bytes[s.at] == first)
            return s;
    }
    return t->tokens[from];
}

static const char *number(void)
{
    static const char *const numbers[] = {
        "0",  "1",  "2",   "3",    "4",    "7",          "8",          "16",
        "31", "32", "255", "0xff", "-1",   "0x80000000", "0xffffffff", "0f3F800000",
        "-4", "64", "63",  "33",   "1000", "0x7fffffff", "0f7FC00000", "0d7FF0000000000000"};
    return numbers[below(sizeof numbers / sizeof *numbers)];
}

static void put(char *line, const char *bytes, size_t length)
{
    size_t have = strlen(line);
    if (have + length + 2 < LONGEST_LINE) {
        memcpy(line + have, bytes, length);
        line[have + length] = 0;
    }
}

static void put_register(const struct text *t, char *line)
{
    struct span s = some_token(t, '%');
    put(line, t->bytes + s.at, s.length < 60 ? s.length : 60);
}

static void put_operand(const struct text *t, char *line)
{
    size_t kind = below(20);
    if (kind < 13) {
        put_register(t, line);
    } else if (kind < 15) {
        const char *n = number();
        put(line, n, strlen(n));
    } else if (kind < 18) {
        put(line, "[", 1);
        put_register(t, line);
        if (below(2)) {
            put(line, "+", 1);
            const char *n = number();
            put(line, n, strlen(n));
        }
        put(line, "]", 1);
    } else {
        put(line, "{", 1);
        for (size_t n = 1 + below(8); n; n--) {
            put_register(t, line);
            put(line, ",", n > 1);
        }
        put(line, "}", 1);
    }
}

/* Words that the row takes, mostly. */
static void put_words(char *line, uint64_t classes, uint64_t types)
{
    for (size_t n = below(5), tries = 200; n && tries; tries--) {
        size_t k = below(MODIFIER_COUNT);
        if (!(modifiers[k].class_ & classes) && below(100))
            continue;
        put(line, ".", 1);
        put(line, modifiers[k].word, strlen(modifiers[k].word));
        n--;
    }
    for (size_t n = 1 + below(2), tries = 200; n && tries; tries--) {
        size_t k = 1 + below(TYPE_COUNT - 1);
        if (!(types >> k & 1) && below(60))
            continue;
        put(line, ".", 1);
        put(line, type_info[k].name, strlen(type_info[k].name));
        n--;
    }
}

static void make_instruction(const struct text *t, char *line)
{
    size_t k = below(opcode_count);
    line[0] = 0;
    put(line, "\t", 1);
    if (below(8) == 0) {
        put(line, "@", 1);
        put_register(t, line);
        put(line, " ", 1);
    }
    put(line, opcodes[k].name, strlen(opcodes[k].name));
    put_words(line, opcodes[k].modifiers, opcodes[k].types);
    bool first = true;
    for (const char *p = opcodes[k].operands; *p; p++) {
        if (!isalpha((unsigned char)*p) || (p[1] == ']' && below(2)))
            continue;
        put(line, first ? " " : ", ", first ? 1 : 2);
        put_operand(t, line);
        first = false;
    }
    put(line, ";\n", 2);
}

static struct span some_line(const struct text *t)
{
    return t->line_count ? t->lines[below(t->line_count)] : (struct span){0, 0};
}

static const char next_module[] = "//link\n.version 7.0\n.target sm_75\n.address_size 64\n";

static void change(struct text *t)
{
    char line[LONGEST_LINE];
    struct span to = some_line(t), from = some_line(t), token;
    switch (below(9)) {
    case 0: /* a line again somewhere else */
        if (from.length < LONGEST_LINE) {
            memcpy(line, t->bytes + from.at, from.length);
            replace(t, to.at, 0, line, from.length);
        }
        return;
    case 1:
        replace(t, to.at, to.length, "", 0);
        return;
    case 2:
    case 3:
        make_instruction(t, line);
        replace(t, to.at, 0, line, strlen(line));
        return;
    case 4: /* a register for another one */
        token = some_token(t, '%');
        from = some_token(t, '%');
        if (from.length < LONGEST_LINE) {
            memcpy(line, t->bytes + from.at, from.length);
            replace(t, token.at, token.length, line, from.length);
        }
        return;
    case 5: /* another word behind an opcode, or one more */
        token = some_token(t, '.');
        line[0] = 0;
        put_words(line, UINT64_MAX, UINT64_MAX);
        replace(t, token.at, below(2) ? token.length : 0, line, strlen(line));
        return;
    case 6: {
        const char *n = number();
        token = some_token(t, (char)('0' + below(10)));
        replace(t, token.at, token.length, n, strlen(n));
        return;
    }
    case 8: /* what follows is a module of its own, to be linked (see fuzz_ptx.c) */
        if (below(8) == 0)
            replace(t, to.at, 0, next_module, sizeof next_module - 1);
        return;
    default: { /* a token for any other one */
        token = some_token(t, 0);
        from = some_token(t, 0);
        if (from.length < LONGEST_LINE) {
            memcpy(line, t->bytes + from.at, from.length);
            replace(t, token.at, token.length, line, from.length);
        }
    }
    }
}

size_t LLVMFuzzerCustomMutator(uint8_t *data, size_t size, size_t max_size, unsigned seed)
{
    static struct text t; /* libFuzzer runs one at a time */
    random_state = seed;
    if (below(3) == 0)
        return LLVMFuzzerMutate(data, size, max_size);
    t.bytes = (char *)data;
    t.size = size;
    t.room = max_size;
    for (size_t n = 1 + below(4); n; n--) {
        scan(&t);
        change(&t);
    }
    return t.size;
}
