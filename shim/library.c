#include "shim/library.h"

#include <dlfcn.h>
#include <pthread.h>
#include <string.h>

#include "shim/call.h"
#include "shim/capture_write.h"
#include "shim/doors.h"
#include "shim/intern.h"
#include "shim/ranges.h"
#include "shim/runtime_doors.h"
#include "shim/shim.h"
#include "shim/stack.h"
#include "shim/track.h"

/* ---- what is generated ---- */

#define WORD_POINTER(x) (uint64_t)(uintptr_t)(x)
#define WORD_NUMBER(x)  (uint64_t)(int64_t)(x)
#define LIST(...)       __VA_ARGS__

#define LIBRARY(symbol, library, count, prototype, arguments, parameters, values)                                      \
    __attribute__((visibility("default"))) int symbol prototype;                                                       \
    int symbol prototype                                                                                               \
    {                                                                                                                  \
        const uint64_t words[] = {LIST values};                                                                        \
        struct library_call call;                                                                                      \
        if (!library_enter(&call, LIBRARY_##symbol, words))                                                            \
            return ((int(*) prototype)library_real(LIBRARY_##symbol))arguments;                                        \
        return library_leave(&call, ((int(*) prototype)call.real)arguments);                                           \
    }
#include "shim/libraries.inc"
#undef LIBRARY

#define P(name, kind, pointee) {name, CAP_PARAMETER_##kind, pointee},
#define LIBRARY(symbol, library, count, prototype, arguments, parameters, values)                                      \
    static const struct library_parameter parameters_of_##symbol[(count) + 1] = {LIST parameters{NULL, 0, 0}};
#include "shim/libraries.inc"
#undef LIBRARY

const struct library_row library_rows[LIBRARY_COUNT] = {
#define LIBRARY(symbol, library, count, prototype, arguments, parameters, values)                                      \
    {#symbol, CAP_LIBRARY_##library, count, parameters_of_##symbol, (void *)&(symbol)},
#include "shim/libraries.inc"
#undef LIBRARY
};

/* ---- the real functions ---- */

struct library_names {
    const char *soname;                  /* what the name of the file begins with */
    const char *neighbour;               /* a function that we do not export */
    const char *files[LIBRARY_VERSIONS]; /* newest first; of the versions 3, 2, 1 */
    int absent;                          /* what its functions return when the library is not there */
};
static const struct library_names libraries[] = {
    [CAP_LIBRARY_CUBLAS] = {"libcublas.so",
                            "cublasGetVersion_v2",
                            {"libcublas.so.13", "libcublas.so.12", "libcublas.so.11"},
                            1},
    [CAP_LIBRARY_CUBLASLT] = {"libcublasLt.so",
                              "cublasLtGetVersion",
                              {"libcublasLt.so.13", "libcublasLt.so.12", "libcublasLt.so.11"},
                              1},
    [CAP_LIBRARY_NCCL] = {"libnccl.so", "ncclGetVersion", {"libnccl.so.2"}, 2},
};

static void *reals[LIBRARY_VERSIONS][LIBRARY_COUNT]; /* atomic */

static int absent_blas(void)
{
    return 1; /* CUBLAS_STATUS_NOT_INITIALIZED */
}

static int absent_nccl(void)
{
    return 2; /* ncclSystemError */
}

/* Of the first version that is loaded. */
static void *loaded_symbol(enum cap_library library, const char *symbol)
{
    const struct library_names *names = &libraries[library];
    void *found = NULL;
    shim_thread.inside++;
    for (size_t i = 0; i < sizeof names->files / sizeof *names->files && names->files[i] && !found; i++) {
        void *handle = dlopen(names->files[i], RTLD_LAZY | RTLD_NOLOAD);
        if (!handle)
            continue;
        found = doors_real_dlsym(handle, symbol);
        dlclose(handle); /* only our reference; whoever loaded it keeps it */
    }
    shim_thread.inside--;
    return found;
}

void *library_beside(const struct library_call *call, const char *symbol, void *cached[LIBRARY_VERSIONS])
{
    void *found = __atomic_load_n(&cached[call->version], __ATOMIC_ACQUIRE), *handle;
    Dl_info info;
    if (found)
        return found;
    shim_thread.inside++;
    if (dladdr(call->real, &info) && info.dli_fname && (handle = dlopen(info.dli_fname, RTLD_LAZY | RTLD_NOLOAD))) {
        found = doors_real_dlsym(handle, symbol);
        dlclose(handle);
    }
    shim_thread.inside--;
    __atomic_store_n(&cached[call->version], found, __ATOMIC_RELEASE);
    return found;
}

/* Which version the caller was linked with. */
static uint32_t take_asked(void)
{
    uint32_t asked = runtime_doors_asked;
    runtime_doors_asked = 0;
    return asked;
}

/* Some libraries of the process may be linked with one version, some with another. */
static void *real_of_version(const struct library_row *row, uint32_t version)
{
    const char *file = version ? libraries[row->library].files[LIBRARY_VERSIONS - 1 - version] : NULL;
    void *real = file ? doors_versioned_symbol(file, row->symbol) : NULL;
    return real != row->wrapper ? real : NULL;
}

static bool find_real(enum library_function function, uint32_t version)
{
    const struct library_row *row = &library_rows[function];
    if (__atomic_load_n(&reals[version][function], __ATOMIC_ACQUIRE))
        return true;
    void *real = real_of_version(row, version);
    if (real) {
        __atomic_store_n(&reals[version][function], real, __ATOMIC_RELEASE);
        return true;
    }
    /* What comes next in the program's own order is what it would have got without us; a library that was opened
     * RTLD_LOCAL is not in that order. */
    real = doors_real_dlsym(RTLD_NEXT, row->symbol);
    if (!real || real == row->wrapper)
        real = loaded_symbol(row->library, row->symbol);
    if (!real || real == row->wrapper)
        return false;
    __atomic_store_n(&reals[version][function], real, __ATOMIC_RELEASE);
    return true;
}

void *library_real(enum library_function function)
{
    uint32_t version = take_asked();
    if (find_real(function, version))
        return __atomic_load_n(&reals[version][function], __ATOMIC_ACQUIRE);
    return library_rows[function].library == CAP_LIBRARY_NCCL ? (void *)absent_nccl : (void *)absent_blas;
}

static int row_of(const char *symbol)
{
    int low = 0, high = LIBRARY_COUNT - 1;
    while (low <= high) {
        int middle = (low + high) / 2, order = strcmp(symbol, library_rows[middle].symbol);
        if (order == 0)
            return middle;
        if (order < 0)
            high = middle - 1;
        else
            low = middle + 1;
    }
    return -1;
}

bool library_knows(const char *symbol)
{
    return (strncmp(symbol, "cublas", 6) == 0 || strncmp(symbol, "nccl", 4) == 0) && row_of(symbol) >= 0;
}

void *library_substitute(void *handle, const char *symbol, void *real)
{
    int row = row_of(symbol);
    void *none = NULL;
    if (row < 0 || !real)
        return real;
    const struct library_names *names = &libraries[library_rows[row].library];
    if (real == library_rows[row].wrapper || shim_owns_address((uintptr_t)real)) { /* that, or its entry of a version */
        /* The scope that was searched begins with us. Is the library in it, too? */
        if (handle == RTLD_DEFAULT)
            return find_real(row, 0) ? real : NULL;
        void *neighbour = doors_real_dlsym(handle, names->neighbour);
        return neighbour && doors_belongs(neighbour, names->soname) && find_real(row, 0) ? real : NULL;
    }
    if (!doors_belongs(real, names->soname))
        return real;
    /* Of two versions that are looked up, the second one's functions are its own. */
    bool first = __atomic_compare_exchange_n(&reals[0][row], &none, real, false, __ATOMIC_ACQ_REL, __ATOMIC_ACQUIRE);
    return first || none == real ? library_rows[row].wrapper : real;
}

/* ---- calls ---- */

bool library_argument(const struct library_call *call, const char *name, uint64_t *value)
{
    const struct library_row *row = &library_rows[call->function];
    for (uint32_t i = 0; i < row->count; i++)
        if (strcmp(row->parameters[i].name, name) == 0) {
            *value = call->values[i];
            return true;
        }
    return false;
}

/* The id of the function's description, which is written by now; 0 when nothing can be written. */
static uint32_t described(enum library_function function)
{
    static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
    static bool written[LIBRARY_COUNT]; /* atomic */
    const struct library_row *row = &library_rows[function];
    uint32_t names[64], name;
    if (__atomic_load_n(&written[function], __ATOMIC_ACQUIRE))
        return (uint32_t)function + 1;
    if (row->count > sizeof names / sizeof *names || !(name = intern_string(row->symbol)))
        return 0;
    for (uint32_t i = 0; i < row->count; i++)
        names[i] = intern_string(row->parameters[i].name);
    pthread_mutex_lock(&lock);
    bool done = written[function];
    struct cap_function *record =
        done ? NULL : capture_define(CAP_FUNCTION, sizeof *record + row->count * sizeof(struct cap_parameter));
    if (record) {
        struct cap_parameter *parameters = (void *)(record + 1);
        record->id = (uint32_t)function + 1;
        record->library = row->library;
        record->name = name;
        record->param_count = row->count;
        record->scope = HOOK_COUNT + (uint32_t)function;
        for (uint32_t i = 0; i < row->count; i++)
            parameters[i] = (struct cap_parameter){names[i], row->parameters[i].kind, row->parameters[i].pointee};
        capture_commit(record);
        __atomic_store_n(&written[function], true, __ATOMIC_RELEASE);
        done = true;
    }
    pthread_mutex_unlock(&lock);
    return done ? (uint32_t)function + 1 : 0;
}

static void write_operator(struct library_call *call, uint32_t function)
{
    const struct library_row *row = &library_rows[call->function];
    void *stream = NULL;
    uint32_t stream_id = library_stream(call, &stream) ? track_stream_known_id((CUstream)stream, false) : 0;
    uint32_t stack = stack_here();
    call->seq = capture_next_seq();
    call->record =
        capture_record(CAP_OPERATOR, sizeof *call->record + row->count * sizeof(uint64_t), call->seq, call->begin_tsc);
    if (!call->record)
        return;
    call->record->function = function;
    call->record->stream = stream_id;
    call->record->stack = stack;
    memcpy(call->record + 1, call->values, row->count * sizeof(uint64_t));
    capture_commit(call->record);
}

/* Before the real call; or behind it, when the capture began inside. */
static void note_call(struct library_call *call)
{
    if (shim_thread.ranges_unwritten)
        ranges_catch_up();
    uint32_t id = described(call->function);
    if (id)
        write_operator(call, id);
}

bool library_enter(struct library_call *call, enum library_function function, const uint64_t *values)
{
    struct shim_thread *thread = &shim_thread;
    bool recording = shim_is_recording();
    if (thread->inside || thread->scope != HOOK_NONE || (!recording && !shim_is_idle()) ||
        !find_real(function, runtime_doors_asked))
        return false;
    *call = (struct library_call){.function = function, .values = values, .begin_tsc = call_tsc()};
    call->version = take_asked();
    call->real = __atomic_load_n(&reals[call->version][function], __ATOMIC_ACQUIRE);
    thread->scope = (uint16_t)(HOOK_COUNT + function);
    thread->inside = 1;
    /* Only a call of the driver starts a capture: before it, the driver may not even be loaded. */
    if (recording)
        note_call(call);
    thread->inside = 0;
    call->real_begin = call_tsc();
    thread->own_tsc += call->real_begin - call->begin_tsc;
    return true;
}

int library_leave(struct library_call *call, int status)
{
    struct shim_thread *thread = &shim_thread;
    uint64_t end = call_tsc();
    thread->inside = 1;
    if (!call->record && shim_is_recording())
        note_call(call);
    /* Much may have been recorded inside: then its segment is gone, and the detail tells of the end. */
    if (call->record && capture_can_patch(call->record)) {
        call->record->status = status;
        __atomic_store_n(&call->record->host_ns, capture_tsc_to_ns(end - call->real_begin), __ATOMIC_RELAXED);
        __atomic_store_n(&call->record->end_seq, capture_next_seq(), __ATOMIC_RELEASE);
    }
    if (call->record && status == 0)
        library_detail(call);
    thread->scope = HOOK_NONE;
    thread->inside = 0;
    thread->own_tsc += call_tsc() - end;
    return status;
}
