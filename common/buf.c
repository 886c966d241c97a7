#include "common/buf.h"

#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

bool buf_reserve(struct buf *b, size_t more)
{
    if (b->failed || more > SIZE_MAX - b->size - 1) {
        b->failed = true;
        return false;
    }
    size_t need = b->size + more + 1;
    if (need <= b->capacity)
        return true;
    size_t capacity = b->capacity < 64 ? 64 : b->capacity;
    while (capacity < need)
        capacity = capacity > SIZE_MAX / 2 ? need : capacity * 2;
    char *data = realloc(b->data, capacity);
    if (!data) {
        b->failed = true;
        return false;
    }
    b->data = data;
    b->capacity = capacity;
    return true;
}

void buf_append(struct buf *b, const void *data, size_t bytes)
{
    if (!buf_reserve(b, bytes))
        return;
    if (bytes)
        memcpy(b->data + b->size, data, bytes);
    b->size += bytes;
    b->data[b->size] = '\0';
}

void buf_text(struct buf *b, const char *text)
{
    buf_append(b, text, strlen(text));
}

void buf_printf(struct buf *b, const char *format, ...)
{
    va_list args;
    va_start(args, format);
    va_list again;
    va_copy(again, args);
    int need = vsnprintf(NULL, 0, format, args);
    va_end(args);
    if (need >= 0 && buf_reserve(b, (size_t)need)) {
        vsnprintf(b->data + b->size, (size_t)need + 1, format, again);
        b->size += (size_t)need;
    }
    va_end(again);
}

void buf_free(struct buf *b)
{
    free(b->data);
    *b = (struct buf){0};
}
