#include "shim/staging.h"

#include <pthread.h>
#include <stdlib.h>

#include "shim/device_work.h"

enum { CLASSES = 15, SMALLEST_SHIFT = 16 }; /* 64 KiB to 1 GiB */

struct staging_buffer {
    void *data;
    unsigned size_class;
    struct staging_buffer *next;
};

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static struct staging_buffer *unused[CLASSES];
static uint64_t made_bytes;
static unsigned in_use;

static size_t class_bytes(unsigned size_class)
{
    return (size_t)1 << (SMALLEST_SHIFT + size_class);
}

static struct staging_buffer *make(unsigned size_class)
{
    struct staging_buffer *buffer = calloc(1, sizeof *buffer);
    if (!buffer)
        return NULL;
    buffer->size_class = size_class;
    buffer->data = device_host_memory(class_bytes(size_class), NULL);
    if (!buffer->data) {
        free(buffer);
        return NULL;
    }
    return buffer;
}

/* Behind the lock. */
static struct staging_buffer *take_bigger(unsigned size_class)
{
    for (unsigned bigger = size_class + 1; bigger < CLASSES; bigger++) {
        struct staging_buffer *buffer = unused[bigger];
        if (buffer) {
            unused[bigger] = buffer->next;
            return buffer;
        }
    }
    return NULL;
}

struct staging_buffer *staging_take(size_t bytes)
{
    unsigned size_class = 0;
    while (size_class < CLASSES && class_bytes(size_class) < bytes)
        size_class++;
    if (size_class == CLASSES)
        return NULL;
    pthread_mutex_lock(&lock);
    struct staging_buffer *buffer = unused[size_class];
    bool may_make = false;
    if (buffer)
        unused[size_class] = buffer->next;
    else if (made_bytes + class_bytes(size_class) <= STAGING_BYTES_MAX) {
        made_bytes += class_bytes(size_class);
        may_make = true;
    } else
        buffer = take_bigger(size_class);
    if (buffer || may_make)
        in_use++;
    pthread_mutex_unlock(&lock);
    if (buffer || !may_make)
        return buffer;
    buffer = make(size_class); /* a driver call: not under the lock */
    if (!buffer) {
        pthread_mutex_lock(&lock);
        made_bytes -= class_bytes(size_class);
        buffer = take_bigger(size_class);
        if (!buffer)
            in_use--;
        pthread_mutex_unlock(&lock);
    }
    return buffer;
}

void staging_release(struct staging_buffer *buffer)
{
    pthread_mutex_lock(&lock);
    buffer->next = unused[buffer->size_class];
    unused[buffer->size_class] = buffer;
    in_use--;
    pthread_mutex_unlock(&lock);
}

void *staging_data(const struct staging_buffer *buffer)
{
    return buffer->data;
}

bool staging_in_use(void)
{
    pthread_mutex_lock(&lock);
    bool some = in_use > 0;
    pthread_mutex_unlock(&lock);
    return some;
}
