/* Names in records outlive what they name. */
#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#include "softgpu/cupti/tracer.h"

enum { BUCKETS = 1024 };
struct name {
    struct name *next;
    char text[];
};
static struct name *names[BUCKETS];
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;

static size_t bucket_of(const char *text)
{
    uint64_t h = 14695981039346656037u; /* FNV-1a */
    for (; *text; text++)
        h = (h ^ (unsigned char)*text) * 1099511628211u;
    return h % BUCKETS;
}

const char *intern(const char *text)
{
    if (!text)
        return NULL;
    struct name **bucket = &names[bucket_of(text)];
    pthread_mutex_lock(&lock);
    struct name *n = *bucket;
    while (n && strcmp(n->text, text) != 0)
        n = n->next;
    size_t bytes = strlen(text) + 1;
    if (!n && (n = malloc(sizeof *n + bytes))) {
        memcpy(n->text, text, bytes);
        n->next = *bucket;
        *bucket = n;
    }
    pthread_mutex_unlock(&lock);
    return n ? n->text : NULL;
}
