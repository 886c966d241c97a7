/* User objects: things of the program that live as long as graphs, executable graphs and launches that use them. */
#include <limits.h>
#include <stdlib.h>

#include "softgpu/graph.h"

struct user_object {
    void *pointer;
    CUhostFn destroy;
    uint64_t refs;
    struct user_object *next_due;
};
struct user_reference {
    struct user_object *object;
    uint64_t count;
    struct user_reference *next;
};

/* After graph_lock(). Destructors run without any lock. */
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static struct user_object *due;

/* Needs the lock. */
static void release(struct user_object *object, uint64_t count)
{
    object->refs -= count < object->refs ? count : object->refs;
    if (object->refs)
        return;
    handle_remove(object, HANDLE_USER_OBJECT);
    object->next_due = due;
    due = object;
}

void user_objects_settle(void)
{
    pthread_mutex_lock(&lock);
    struct user_object *list = due;
    due = NULL;
    pthread_mutex_unlock(&lock);
    while (list) {
        struct user_object *object = list;
        list = object->next_due;
        bool inside = engine_in_callback();
        engine_callback(true);
        object->destroy(object->pointer);
        engine_callback(inside);
        free(object);
    }
}

/* ---- references of graphs --------------------------------------------------------------------------------------- */

static bool hold(struct user_reference **list, struct user_object *object, uint64_t count, bool take)
{
    struct user_reference *r = *list;
    while (r && r->object != object)
        r = r->next;
    if (!r) {
        r = calloc(1, sizeof *r);
        if (!r)
            return false;
        r->object = object;
        r->next = *list;
        *list = r;
    }
    r->count += count;
    if (take)
        object->refs += count;
    return true;
}

CUresult users_hold(const struct graph *graph, struct user_reference **out)
{
    bool ok = true;
    pthread_mutex_lock(&lock);
    for (const struct user_reference *r = graph->users; r && ok; r = r->next)
        ok = hold(out, r->object, 1, true);
    pthread_mutex_unlock(&lock);
    CUresult result = ok ? CUDA_SUCCESS : CUDA_ERROR_OUT_OF_MEMORY;
    for (const struct node *n = graph->first; n && result == CUDA_SUCCESS; n = n->next)
        for (size_t i = 0; i < n->work.body_count && result == CUDA_SUCCESS; i++)
            result = users_hold(n->work.bodies[i], out);
    return result;
}

void users_release(struct user_reference *held)
{
    pthread_mutex_lock(&lock);
    for (struct user_reference *r = held, *next; r; r = next) {
        next = r->next;
        release(r->object, r->count);
        free(r);
    }
    pthread_mutex_unlock(&lock);
}

CUresult users_copy(struct graph *to, const struct graph *from)
{
    bool ok = true;
    pthread_mutex_lock(&lock);
    for (const struct user_reference *r = from->users; r && ok; r = r->next)
        ok = hold(&to->users, r->object, r->count, true);
    pthread_mutex_unlock(&lock);
    return ok ? CUDA_SUCCESS : CUDA_ERROR_OUT_OF_MEMORY;
}

void users_free(struct graph *graph)
{
    users_release(graph->users);
    graph->users = NULL;
}

/* ---- the API ---------------------------------------------------------------------------------------------------- */

static bool bad_count(unsigned count)
{
    return !count || count > INT_MAX;
}

static struct user_object *object_from(CUuserObject handle)
{
    return handle_of(handle) == HANDLE_USER_OBJECT ? (struct user_object *)handle : NULL;
}

CUresult cuUserObjectCreate(CUuserObject *object_out, void *ptr, CUhostFn destroy, unsigned int initialRefcount,
                            unsigned int flags)
{
    CUresult result = enter();
    if (result != CUDA_SUCCESS)
        return result;
    if (!object_out || !destroy || bad_count(initialRefcount) || flags != CU_USER_OBJECT_NO_DESTRUCTOR_SYNC)
        return CUDA_ERROR_INVALID_VALUE;
    struct user_object *object = calloc(1, sizeof *object);
    if (!object || !handle_add(object, HANDLE_USER_OBJECT)) {
        free(object);
        return CUDA_ERROR_OUT_OF_MEMORY;
    }
    object->pointer = ptr;
    object->destroy = destroy;
    object->refs = initialRefcount;
    *object_out = (CUuserObject)object;
    return CUDA_SUCCESS;
}

CUresult cuUserObjectRetain(CUuserObject object, unsigned int count)
{
    struct user_object *o;
    CUresult result = enter();
    if (result != CUDA_SUCCESS)
        return result;
    if (bad_count(count) || !(o = object_from(object)))
        return CUDA_ERROR_INVALID_VALUE;
    pthread_mutex_lock(&lock);
    o->refs += count;
    pthread_mutex_unlock(&lock);
    return CUDA_SUCCESS;
}

CUresult cuUserObjectRelease(CUuserObject object, unsigned int count)
{
    struct user_object *o;
    CUresult result = enter();
    if (result != CUDA_SUCCESS)
        return result;
    if (bad_count(count) || !(o = object_from(object)))
        return CUDA_ERROR_INVALID_VALUE;
    pthread_mutex_lock(&lock);
    release(o, count);
    pthread_mutex_unlock(&lock);
    user_objects_settle();
    return CUDA_SUCCESS;
}

CUresult cuGraphRetainUserObject(CUgraph graph, CUuserObject object, unsigned int count, unsigned int flags)
{
    struct user_object *o;
    CUresult result = enter();
    if (result != CUDA_SUCCESS)
        return result;
    if (bad_count(count) || !(o = object_from(object)) || (flags & ~(unsigned)CU_GRAPH_USER_OBJECT_MOVE))
        return CUDA_ERROR_INVALID_VALUE;
    graph_lock();
    struct graph *g = graph_from(graph);
    if (!g) {
        result = CUDA_ERROR_INVALID_VALUE;
    } else {
        pthread_mutex_lock(&lock);
        if (!hold(&g->users, o, count, !(flags & CU_GRAPH_USER_OBJECT_MOVE)))
            result = CUDA_ERROR_OUT_OF_MEMORY;
        pthread_mutex_unlock(&lock);
    }
    graph_unlock();
    return result;
}

CUresult cuGraphReleaseUserObject(CUgraph graph, CUuserObject object, unsigned int count)
{
    struct user_object *o;
    CUresult result = enter();
    if (result != CUDA_SUCCESS)
        return result;
    if (bad_count(count) || !(o = object_from(object)))
        return CUDA_ERROR_INVALID_VALUE;
    graph_lock();
    struct graph *g = graph_from(graph);
    pthread_mutex_lock(&lock);
    struct user_reference **r = g ? &g->users : NULL;
    while (r && *r && (*r)->object != o)
        r = &(*r)->next;
    if (!r || !*r || (*r)->count < count) {
        result = CUDA_ERROR_INVALID_VALUE;
    } else {
        release(o, count);
        (*r)->count -= count;
        if (!(*r)->count) {
            struct user_reference *gone = *r;
            *r = gone->next;
            free(gone);
        }
    }
    pthread_mutex_unlock(&lock);
    graph_unlock();
    return result;
}
