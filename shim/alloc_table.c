#include "shim/alloc_table.h"

#include <pthread.h>
#include <stdlib.h>

#include <opsdebug/capture.h>

#include "shim/memory.h"

struct node {
    struct allocation a;
    uint32_t priority;
    struct node *left, *right;
};

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static struct node *root;
static uint32_t entry_count;
static uint64_t entry_bytes, redzone_total;

static uint32_t next_priority(void)
{
    static uint32_t x = 2463534242u; /* xorshift32 (Marsaglia 2003) */
    x ^= x << 13;
    x ^= x >> 17;
    x ^= x << 5;
    return x;
}

/* Everything that starts before `address` goes left, the rest right. */
static void split(struct node *node, uint64_t address, struct node **left, struct node **right)
{
    while (node) {
        if (node->a.address < address) {
            *left = node;
            left = &node->right;
            node = node->right;
        } else {
            *right = node;
            right = &node->left;
            node = node->left;
        }
    }
    *left = *right = NULL;
}

static struct node *merge(struct node *left, struct node *right)
{
    struct node *top, **at = &top;
    while (left && right) {
        if (left->priority >= right->priority) {
            *at = left;
            at = &left->right;
            left = left->right;
        } else {
            *at = right;
            at = &right->left;
            right = right->left;
        }
    }
    *at = left ? left : right;
    return top;
}

static struct node **exact(uint64_t address)
{
    struct node **at = &root;
    while (*at && (*at)->a.address != address)
        at = address < (*at)->a.address ? &(*at)->left : &(*at)->right;
    return at;
}

static struct node *floor_of(uint64_t address)
{
    struct node *best = NULL, *node = root;
    while (node) {
        if (node->a.address <= address) {
            best = node;
            node = node->right;
        } else
            node = node->left;
    }
    return best;
}

static void release(struct node *node)
{
    if (node)
        memory_give(sizeof *node);
    free(node);
}

static void account(const struct allocation *a, int sign)
{
    __atomic_store_n(&entry_count, entry_count + (uint32_t)sign, __ATOMIC_RELAXED);
    entry_bytes += sign > 0 ? a->bytes : -a->bytes;
    bool of_device = a->kind == CAP_ALLOC_DEVICE || a->kind == CAP_ALLOC_PITCHED || a->kind == CAP_ALLOC_ASYNC ||
                     a->kind == CAP_ALLOC_POOL;
    uint64_t redzone = of_device ? (uint64_t)a->head + a->tail : 0;
    redzone_total += sign > 0 ? redzone : -redzone;
}

bool alloc_table_insert(const struct allocation *a)
{
    /* The driver wants another pointer back than the program has: such an entry is needed to the end. */
    bool keep = memory_must(sizeof(struct node)) || a->base != a->address || a->head || a->tail || a->guarded;
    struct node *fresh = keep ? malloc(sizeof *fresh) : NULL;
    if (!fresh) {
        memory_give(sizeof *fresh);
        return false;
    }
    *fresh = (struct node){.a = *a};
    pthread_mutex_lock(&lock);
    struct node **same = exact(a->address), *old = *same;
    if (old) { /* freed behind our back */
        *same = merge(old->left, old->right);
        account(&old->a, -1);
    }
    fresh->priority = next_priority();
    struct node **at = &root;
    while (*at && (*at)->priority >= fresh->priority)
        at = a->address < (*at)->a.address ? &(*at)->left : &(*at)->right;
    split(*at, a->address, &fresh->left, &fresh->right);
    *at = fresh;
    account(a, 1);
    pthread_mutex_unlock(&lock);
    release(old);
    return true;
}

bool alloc_table_remove(uint64_t address, struct allocation *out)
{
    pthread_mutex_lock(&lock);
    struct node **at = exact(address), *old = *at;
    if (old) {
        *at = merge(old->left, old->right);
        account(&old->a, -1);
        *out = old->a;
    }
    pthread_mutex_unlock(&lock);
    release(old);
    return old != NULL;
}

bool alloc_table_exact(uint64_t address, struct allocation *out)
{
    pthread_mutex_lock(&lock);
    struct node *node = *exact(address);
    if (node)
        *out = node->a;
    pthread_mutex_unlock(&lock);
    return node != NULL;
}

bool alloc_table_find(uint64_t address, struct allocation *out)
{
    pthread_mutex_lock(&lock);
    struct node *node = floor_of(address);
    bool found = node && address - node->a.address <= node->a.bytes;
    if (found)
        *out = node->a;
    pthread_mutex_unlock(&lock);
    return found;
}

bool alloc_table_cover(uint64_t address, struct allocation *out)
{
    pthread_mutex_lock(&lock);
    struct node *node = floor_of(address);
    bool found = node && address - node->a.address < node->a.bytes + node->a.tail;
    if (!found) { /* in the head redzone of the next one? */
        for (struct node *n = root; n;) {
            if (n->a.address > address) {
                if (address >= n->a.address - n->a.head) {
                    node = n;
                    found = true;
                    break;
                }
                n = n->left;
            } else
                n = n->right;
        }
    }
    if (found)
        *out = node->a;
    pthread_mutex_unlock(&lock);
    return found;
}

void alloc_table_set_clean(uint64_t address, uint32_t id, uint64_t seq)
{
    pthread_mutex_lock(&lock);
    struct node *node = *exact(address);
    if (node && node->a.id == id && node->a.clean_seq < seq)
        node->a.clean_seq = seq;
    pthread_mutex_unlock(&lock);
}

void alloc_table_reserve(uint64_t address, uint32_t id, uint32_t reserved)
{
    pthread_mutex_lock(&lock);
    struct node *node = *exact(address);
    if (node && node->a.id == id)
        node->a.reserved = reserved;
    pthread_mutex_unlock(&lock);
}

static void walk(const struct node *node, void (*visit)(const struct allocation *a, void *data), void *data)
{
    for (; node; node = node->right) {
        walk(node->left, visit, data);
        visit(&node->a, data);
    }
}

void alloc_table_each(void (*visit)(const struct allocation *a, void *data), void *data)
{
    pthread_mutex_lock(&lock);
    walk(root, visit, data);
    pthread_mutex_unlock(&lock);
}

static bool walk_from(const struct node *node, uint64_t from, bool (*visit)(const struct allocation *a, void *data),
                      void *data)
{
    for (; node; node = node->right)
        if (node->a.address >= from && (!walk_from(node->left, from, visit, data) || !visit(&node->a, data)))
            return false;
    return true;
}

void alloc_table_from(uint64_t from, bool (*visit)(const struct allocation *a, void *data), void *data)
{
    pthread_mutex_lock(&lock);
    walk_from(root, from, visit, data);
    pthread_mutex_unlock(&lock);
}

uint32_t alloc_table_count(void)
{
    return __atomic_load_n(&entry_count, __ATOMIC_RELAXED);
}

static struct node *without(struct node *node, uint32_t context, uint32_t module)
{
    if (!node)
        return NULL;
    node->left = without(node->left, context, module);
    node->right = without(node->right, context, module);
    if (module ? node->a.module != module : node->a.context != context)
        return node;
    struct node *rest = merge(node->left, node->right);
    account(&node->a, -1);
    release(node);
    return rest;
}

void alloc_table_drop(uint32_t context, uint32_t module)
{
    pthread_mutex_lock(&lock);
    root = without(root, context, module);
    pthread_mutex_unlock(&lock);
}

void alloc_table_totals(uint32_t *count, uint64_t *bytes, uint64_t *redzone_bytes)
{
    pthread_mutex_lock(&lock);
    *count = entry_count;
    *bytes = entry_bytes;
    *redzone_bytes = redzone_total;
    pthread_mutex_unlock(&lock);
}
