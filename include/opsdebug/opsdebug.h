/* opsdebug.h - what a program may tell ops-debug about itself: names and shapes of buffers, steps, values to look at,
 * the bounds of what its own allocator gives out.
 *
 * Header-only, C and C++; nothing to link (before glibc 2.34: -ldl). Without the tool every call is a load and a
 * branch, so the calls can stay in. With it (ops-debug run, or a plain preload) they become records of the capture.
 *
 * The tool is looked for once per source file, by dlsym("opsdebug_api") in the global scope, where a preloaded library
 * is. A weak reference would need no dlsym, but in an executable that is not position-independent the linker makes it
 * zero for good; a strong one would need a library to link. Static programs cannot be preloaded: define OPSDEBUG_OFF
 * there, or wherever the calls shall leave nothing behind.
 *
 * Addresses are the device's. All functions are thread-safe, may be called at any time, also before the first CUDA call
 * (then marks and names are lost), keep no pointer, and never fail. They make no CUDA call of the program's fail or
 * wait. Documented with what becomes of them in docs/scopes.md.
 */
#ifndef OPSDEBUG_OPSDEBUG_H
#define OPSDEBUG_OPSDEBUG_H

#include <stddef.h>
#include <stdint.h>

#ifndef OPSDEBUG_OFF
#include <dlfcn.h>
#endif

#ifdef __cplusplus
extern "C" {
#endif

enum opsdebug_dtype { /* numbers as in capture.h */
                      OPSDEBUG_UNKNOWN,
                      OPSDEBUG_F64,
                      OPSDEBUG_F32,
                      OPSDEBUG_F16,
                      OPSDEBUG_BF16,
                      OPSDEBUG_F8_E4M3,
                      OPSDEBUG_F8_E5M2,
                      OPSDEBUG_I8,
                      OPSDEBUG_U8,
                      OPSDEBUG_I16,
                      OPSDEBUG_U16,
                      OPSDEBUG_I32,
                      OPSDEBUG_U32,
                      OPSDEBUG_I64,
                      OPSDEBUG_U64
};

/* The border to the tool. Members are only ever added at the end; `bytes` says how many there are. */
enum { OPSDEBUG_API_VERSION = 1 };
struct opsdebug_api {
    uint32_t version, bytes;
    void (*name)(const void *address, const char *name, int dtype, int dims, const uint64_t *shape);
    void (*step)(uint64_t number);
    void (*mark)(const char *text);
    void (*checkpoint)(const char *label, const void *address, uint64_t elements, int dtype, void *stream);
    void (*assert_finite)(const char *label, const void *address, uint64_t elements, int dtype, void *stream);
    void (*region)(const void *address, uint64_t bytes, const char *name);
    void (*region_end)(const void *address);
    void (*push)(const char *name);
    void (*pop)(void);
};
typedef const struct opsdebug_api *opsdebug_entry(uint32_t version);

/* The tool's functions, or NULL without it. */
static inline const struct opsdebug_api *opsdebug_find(void)
{
#ifdef OPSDEBUG_OFF
    return NULL;
#else
    static const struct opsdebug_api *api;
    static int asked;
    if (!__atomic_load_n(&asked, __ATOMIC_ACQUIRE)) {
        /* A null handle is RTLD_DEFAULT, which glibc declares only with _GNU_SOURCE. */
        opsdebug_entry *entry = (opsdebug_entry *)dlsym(NULL, "opsdebug_api");
        __atomic_store_n(&api, entry ? entry(OPSDEBUG_API_VERSION) : NULL, __ATOMIC_RELEASE);
        __atomic_store_n(&asked, 1, __ATOMIC_RELEASE);
    }
    return __atomic_load_n(&api, __ATOMIC_ACQUIRE);
#endif
}

/* From here on the memory at `address` is called `name` and holds elements of `dtype`, shape[0] x ... x shape[dims - 1]
 * of them, the last index changing fastest. At most 8 dimensions. Ends when the memory is freed, or named again. */
static inline void opsdebug_name(const void *address, const char *name, enum opsdebug_dtype dtype, int dims,
                                 const uint64_t *shape)
{
    const struct opsdebug_api *api = opsdebug_find();
    if (api)
        api->name(address, name, (int)dtype, dims, shape);
}

/* Step `number` of the program's loop begins. */
static inline void opsdebug_step(uint64_t number)
{
    const struct opsdebug_api *api = opsdebug_find();
    if (api)
        api->step(number);
}

/* Something worth a line among the launches. */
static inline void opsdebug_mark(const char *text)
{
    const struct opsdebug_api *api = opsdebug_find();
    if (api)
        api->mark(text);
}

/* The values there, when `stream` (a cudaStream_t or CUstream, NULL the default one) gets here, are kept in the
 * capture. */
static inline void opsdebug_checkpoint(const char *label, const void *address, uint64_t elements,
                                       enum opsdebug_dtype dtype, void *stream)
{
    const struct opsdebug_api *api = opsdebug_find();
    if (api)
        api->checkpoint(label, address, elements, (int)dtype, stream);
}

/* The same, and NaN or Inf among them is a finding. The program goes on. */
static inline void opsdebug_assert_finite(const char *label, const void *address, uint64_t elements,
                                          enum opsdebug_dtype dtype, void *stream)
{
    const struct opsdebug_api *api = opsdebug_find();
    if (api)
        api->assert_finite(label, address, elements, (int)dtype, stream);
}

/* For allocators inside one large allocation: [address, address + bytes) is given out as a buffer of its own. An access
 * by a pointer into it that leaves it is out of bounds, also where the allocation goes on. `name` may be NULL. */
static inline void opsdebug_region(const void *address, uint64_t bytes, const char *name)
{
    const struct opsdebug_api *api = opsdebug_find();
    if (api)
        api->region(address, bytes, name);
}

/* It is taken back. */
static inline void opsdebug_region_end(const void *address)
{
    const struct opsdebug_api *api = opsdebug_find();
    if (api)
        api->region_end(address);
}

/* A range of the calling thread, as NVTX's: the module path of what is launched inside. */
static inline void opsdebug_push(const char *name)
{
    const struct opsdebug_api *api = opsdebug_find();
    if (api)
        api->push(name);
}

static inline void opsdebug_pop(void)
{
    const struct opsdebug_api *api = opsdebug_find();
    if (api)
        api->pop();
}

#ifdef __cplusplus
}
#endif

#endif
