#include "shim/poison.h"

#include <pthread.h>
#include <stdlib.h>

#include <opsdebug/capture.h>

#include "shim/driver.h"
#include "shim/options.h"
#include "shim/touch.h"

enum { LINE_BYTES = 1 << 20 };

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;

/* A piece of memory full of the pattern, pinned where that can be had; made once, never freed. */
static const char *pattern(void)
{
    static uint32_t *line;
    pthread_mutex_lock(&lock);
    bool made = !line && ((line = device_host_memory(LINE_BYTES, NULL)) || (line = malloc(LINE_BYTES)));
    if (made)
        for (unsigned i = 0; i < LINE_BYTES / sizeof *line; i++)
            line[i] = POISON_PATTERN;
    pthread_mutex_unlock(&lock);
    return (const char *)line;
}

/* By copies and not by a memset, which is a kernel: it might never start beside one of the program's that fills the
 * device and waits for the host, and the host is in here. */
void poison_fill(const struct allocation *a)
{
    struct device_work *work = options.poison ? device_work(track_current_context()) : NULL;
    if (!work || !driver.cuMemcpyHtoDAsync_v2 || !driver.cuStreamSynchronize ||
        (a->kind != CAP_ALLOC_DEVICE && a->kind != CAP_ALLOC_PITCHED))
        return;
    CUstreamCaptureMode mode = device_relax();
    const char *line = pattern();
    bool ok = line != NULL;
    for (uint64_t done = 0; ok && done < a->bytes; done += LINE_BYTES) {
        uint64_t bytes = a->bytes - done < LINE_BYTES ? a->bytes - done : LINE_BYTES;
        ok = driver.cuMemcpyHtoDAsync_v2(a->address + done, line, bytes, work->stream) == CUDA_SUCCESS;
    }
    driver.cuStreamSynchronize(work->stream);
    device_unrelax(mode);
}

void poison_fill_on(const struct allocation *a, struct tracked_stream *stream)
{
    if (options.poison && !touch_only_behind_launches() && stream && device_work(stream->context) &&
        driver.cuMemsetD32Async && a->address % 4 == 0 && a->bytes >= 4 && !device_stream_captures(stream))
        driver.cuMemsetD32Async(a->address, POISON_PATTERN, a->bytes / 4, stream->handle);
}
