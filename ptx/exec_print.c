/* exec_print.c - printf and assert of kernels: the format is read from device memory, the arguments lie packed as C
 * would pass them in memory, each aligned to its size. */
#include <stdio.h>
#include <string.h>
#include "common/buf.h"
#include "ptx/exec.h"

enum { MAX_TEXT = 1 << 16, MAX_WIDTH = 4096 };

static bool read_string(struct worker *w, struct block *b, struct thread *t, uint64_t address, struct buf *out)
{
    for (uint32_t i = 0; i < MAX_TEXT; i++) {
        const uint8_t *p = peek(w, b, t, address + i, 1);
        if (!p)
            return false;
        if (*p == 0)
            return true;
        buf_append(out, p, 1);
    }
    return true;
}

struct arguments {
    struct worker *w;
    struct block *b;
    struct thread *t;
    uint64_t at;
    bool missing;
};

static uint64_t next_argument(struct arguments *a, uint32_t bytes)
{
    uint64_t v = 0;
    a->at = (a->at + bytes - 1) & ~(uint64_t)(bytes - 1);
    const uint8_t *p = peek(a->w, a->b, a->t, a->at, bytes);
    if (p)
        memcpy(&v, p, bytes);
    else
        a->missing = true;
    a->at += bytes;
    return v;
}

/* One conversion specification from `spec` (behind its %); returns what follows it. */
static const char *convert(struct arguments *a, const char *spec, struct buf *out)
{
    char format[32] = "%";
    size_t n = 1;
    while (*spec && strchr("-+ #0", *spec) && n < 8)
        format[n++] = *spec++;
    int width = -1, precision = -1;
    for (int part = 0; part < 2; part++) {
        if (part == 1) {
            if (*spec != '.')
                break;
            spec++;
            precision = 0;
        }
        int value = -1;
        if (*spec == '*') {
            value = (int)(int32_t)next_argument(a, 4);
            spec++;
        } else {
            while (*spec >= '0' && *spec <= '9') {
                value = (value < 0 ? 0 : value) * 10 + (*spec++ - '0');
                if (value > MAX_WIDTH)
                    value = MAX_WIDTH;
            }
        }
        if (part == 0 && value < -1 && value > -MAX_WIDTH) { /* a negative * width: left-aligned */
            format[n++] = '-';
            value = -value;
        }
        if (value > MAX_WIDTH || value < -1)
            value = MAX_WIDTH;
        if (part == 0)
            width = value;
        else
            precision = value < 0 ? 0 : value;
    }
    bool wide = false;
    while (*spec && strchr("hljztL", *spec)) {
        wide |= *spec != 'h';
        spec++;
    }
    char c = *spec;
    if (c == 0)
        return spec;
    spec++;
    for (const char *s = "*.*"; *s; s++)
        format[n++] = *s;
    if (width < 0)
        width = 0;
    switch (c) {
    case 'd':
    case 'i':
    case 'o':
    case 'u':
    case 'x':
    case 'X': {
        uint64_t v = next_argument(a, wide ? 8 : 4);
        format[n] = format[n + 1] = 'l';
        format[n + 2] = c;
        long long value = c == 'd' || c == 'i' ? (wide ? (long long)v : (long long)(int32_t)v) : (long long)v;
        buf_printf(out, format, width, precision, value);
        break;
    }
    case 'a':
    case 'A':
    case 'e':
    case 'E':
    case 'f':
    case 'F':
    case 'g':
    case 'G': {
        uint64_t v = next_argument(a, 8);
        double value;
        memcpy(&value, &v, sizeof value);
        format[n] = c;
        buf_printf(out, format, width, precision, value);
        break;
    }
    case 'c':
        buf_printf(out, "%*c", width, (int)next_argument(a, 4));
        break;
    case 'p':
        buf_printf(out, "0x%llx", (unsigned long long)next_argument(a, 8));
        break;
    case 's': {
        uint64_t address = next_argument(a, 8);
        struct buf text = {0};
        if (!read_string(a->w, a->b, a->t, address, &text))
            a->missing = true;
        format[n] = 's';
        buf_printf(out, format, width, precision, text.data ? text.data : "");
        buf_free(&text);
        break;
    }
    case '%':
        buf_text(out, "%");
        break;
    default: /* as the device's printf: copied as it stands */
        buf_printf(out, "%%%c", c);
    }
    return spec;
}

static void emit_text(struct worker *w, const struct buf *text)
{
    struct launch *l = w->launch;
    if (!l->config->print || !text->size)
        return;
    pthread_mutex_lock(&l->lock);
    l->config->print(l->config->print_context, text->data, text->size);
    pthread_mutex_unlock(&l->lock);
}

/* Returns what the kernel's printf returns: the number of arguments, or -1 when the format cannot be read. */
uint32_t device_printf(struct worker *w, struct block *b, struct thread *t, uint64_t format, uint64_t arguments)
{
    struct buf spec = {0}, out = {0};
    struct arguments a = {.w = w, .b = b, .t = t, .at = arguments};
    uint32_t conversions = 0;
    if (!read_string(w, b, t, format, &spec) || spec.failed) {
        buf_free(&spec);
        return UINT32_MAX;
    }
    for (const char *c = spec.data ? spec.data : ""; *c && out.size < MAX_TEXT;) {
        const char *percent = strchr(c, '%');
        size_t plain = percent ? (size_t)(percent - c) : strlen(c);
        buf_append(&out, c, plain);
        c += plain;
        if (*c == '%') {
            conversions += c[1] != '%';
            c = convert(&a, c + 1, &out);
        }
    }
    emit_text(w, &out);
    buf_free(&spec);
    buf_free(&out);
    return conversions;
}

/* __assertfail(message, file, line, function, size of a character) */
void device_assert(struct worker *w, struct block *b, struct thread *t, const uint64_t values[5])
{
    struct buf text[3] = {{0}}, out = {0};
    const uint64_t strings[3] = {values[1], values[3], values[0]};
    for (int i = 0; i < 3; i++)
        (void)read_string(w, b, t, strings[i], &text[i]);
    buf_printf(&out, "%s:%u: %s: block: [%u,%u,%u], thread: [%u,%u,%u] Assertion `%s` failed.\n",
               text[0].data ? text[0].data : "?", (unsigned)values[2], text[1].data ? text[1].data : "?", b->ctaid[0],
               b->ctaid[1], b->ctaid[2], t->tid[0], t->tid[1], t->tid[2], text[2].data ? text[2].data : "?");
    emit_text(w, &out);
    for (int i = 0; i < 3; i++)
        buf_free(&text[i]);
    buf_free(&out);
    t->pc = t->pc ? t->pc - 1 : 0; /* the call, which thread_line() is about */
    fault_simple(w, b, t, PTX_FAULT_ASSERT);
}
