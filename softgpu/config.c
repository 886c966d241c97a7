#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <pthread.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "common/hash.h"
#include "common/map.h"
#include "softgpu/driver.h"
#include "softgpu/pages.h"

static struct config config;
static char problem[256]; /* the first thing in the environment that cannot be read */
static char *log_path;
static pthread_once_t config_once = PTHREAD_ONCE_INIT;

void config_problem(const char *format, ...)
{
    if (*problem)
        return;
    va_list list;
    va_start(list, format);
    vsnprintf(problem, sizeof problem, format, list);
    va_end(list);
}

const char *config_error(void)
{
    return *problem ? problem : NULL;
}

/* The variable's value, NULL when it is unset or empty. */
static const char *config_text(const char *name)
{
    const char *text = secure_getenv(name);
    return text && *text ? text : NULL;
}

/* A number with an optional suffix K, M, G or T (powers of 1024); `fallback` when unset. */
static uint64_t config_number(const char *name, uint64_t fallback, uint64_t low, uint64_t high)
{
    const char *text = config_text(name);
    if (!text)
        return fallback;
    char *end;
    errno = 0;
    uint64_t value = strtoull(text, &end, 10);
    static const char suffixes[] = "KMGT";
    const char *suffix = *end ? strchr(suffixes, *end & ~0x20) : NULL;
    unsigned shift = suffix ? 10 * (unsigned)(suffix - suffixes + 1) : 0;
    bool number = *text >= '0' && *text <= '9' && !errno && (!*end || (suffix && !end[1]));
    if (number && (value << shift) >> shift == value && value << shift >= low && value << shift <= high)
        return value << shift;
    config_problem("%s=%.40s is no number from %" PRIu64 " to %" PRIu64, name, text, low, high);
    return fallback;
}

/* "8.6" or "86". */
static uint32_t config_capability(uint32_t fallback)
{
    const char *text = config_text("SOFTGPU_CC");
    if (!text)
        return fallback;
    unsigned major = 0, minor = 0;
    int dotted = 0, whole = 0;
    if (sscanf(text, "%2u.%1u%n", &major, &minor, &dotted) == 2 && !text[dotted])
        major = major * 10 + minor;
    else if (sscanf(text, "%3u%n", &major, &whole) != 1 || text[whole])
        major = 0;
    if (major >= 50 && major <= 129)
        return major;
    config_problem("SOFTGPU_CC=%.40s is no compute capability from 5.0 to 12.9", text);
    return fallback;
}

/* CUDA_VISIBLE_DEVICES counts only where SOFTGPU_DEVICES is set: on machines without a GPU it is often left from
 * elsewhere. As documented, a number that is none, or comes twice, ends the list. */
static void config_devices(void)
{
    uint32_t all = (uint32_t)config_number("SOFTGPU_DEVICES", 1, 1, PAGE_DEVICES);
    const char *at = secure_getenv("SOFTGPU_DEVICES") ? secure_getenv("CUDA_VISIBLE_DEVICES") : NULL;
    _Static_assert(sizeof config.number == PAGE_DEVICES, "a number for each device");
    if (!at) {
        for (config.devices = 0; config.devices < all; config.devices++)
            config.number[config.devices] = (uint8_t)config.devices;
        return;
    }
    for (uint32_t seen = 0;; at++) {
        char *end;
        unsigned long number = strtoul(at, &end, 10);
        if (end == at || *at == '-' || (*end && *end != ',') || number >= all || seen >> number & 1)
            return;
        seen |= 1u << number;
        config.number[config.devices++] = (uint8_t)number;
        at = end;
        if (!*at)
            return;
    }
}

static void config_read(void)
{
    config.memory_bytes = config_number("SOFTGPU_MEMORY", UINT64_C(16) << 30, UINT64_C(64) << 20, UINT64_C(1) << 40);
    config.memory_bytes &= ~((UINT64_C(2) << 20) - 1);
    config_devices();
    const char *name = secure_getenv("SOFTGPU_NAME");
    snprintf(config.name, sizeof config.name, "%s", name && *name ? name : "softgpu");
    config.sm_count = (uint32_t)config_number("SOFTGPU_SMS", 16, 1, 1024);
    config.workers = (uint32_t)config_number("SOFTGPU_WORKERS", 1, 1, 256);
    config.capability = config_capability(86);
    const char *variant = secure_getenv("SOFTGPU_VARIANT");
    if (variant && *variant) {
        config.variant = hash_bytes64(variant, strlen(variant));
        config.variant += !config.variant;
    }
    const char *path = secure_getenv("SOFTGPU_LOG");
    log_path = path && *path ? strdup(path) : NULL;
}

const struct config *config_get(void)
{
    pthread_once(&config_once, config_read);
    return &config;
}

CUresult log_unsupported_part(const char *name, const char *detail)
{
    static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
    static struct map seen;
    config_get();
    logs_note(name, detail);
    if (!log_path)
        return CUDA_ERROR_NOT_SUPPORTED;
    char line[512];
    int bytes = snprintf(line, sizeof line, "%s%s%s\n", name, *detail ? ": " : "", detail);
    if (bytes >= (int)sizeof line)
        bytes = sizeof line - 1;
    uint64_t hash = hash_bytes64(line, (size_t)bytes), once;
    pthread_mutex_lock(&lock);
    bool fresh = !map_get(&seen, hash, &once) && map_put(&seen, hash, 1);
    pthread_mutex_unlock(&lock);
    if (fresh) {
        int fd = open(log_path, O_WRONLY | O_APPEND | O_CREAT | O_CLOEXEC, 0666);
        if (fd >= 0) {
            ssize_t written = write(fd, line, (size_t)bytes);
            (void)written;
            close(fd);
        }
    }
    return CUDA_ERROR_NOT_SUPPORTED;
}

CUresult log_unsupported(const char *name)
{
    return log_unsupported_part(name, "");
}
