#include <pthread.h>

#include "common/map.h"
#include "softgpu/driver.h"

static struct map handles;
static pthread_rwlock_t handles_lock = PTHREAD_RWLOCK_INITIALIZER;

bool handle_add(const void *pointer, enum handle_kind kind)
{
    pthread_rwlock_wrlock(&handles_lock);
    bool ok = map_put(&handles, (uintptr_t)pointer, kind);
    pthread_rwlock_unlock(&handles_lock);
    return ok;
}

bool handle_remove(const void *pointer, enum handle_kind kind)
{
    uint64_t found = HANDLE_NONE;
    pthread_rwlock_wrlock(&handles_lock);
    bool ok =
        map_get(&handles, (uintptr_t)pointer, &found) && found == kind && map_remove(&handles, (uintptr_t)pointer);
    pthread_rwlock_unlock(&handles_lock);
    return ok;
}

enum handle_kind handle_of(const void *pointer)
{
    uint64_t found = HANDLE_NONE;
    pthread_rwlock_rdlock(&handles_lock);
    if (!map_get(&handles, (uintptr_t)pointer, &found))
        found = HANDLE_NONE;
    pthread_rwlock_unlock(&handles_lock);
    return (enum handle_kind)found;
}
