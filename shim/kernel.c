/* kernel.c - the part of track.h that knows modules and kernels. */
#include "shim/track.h"

#include <elf.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <opsdebug/capture.h>

#include "common/fatbin.h"
#include "common/map.h"
#include "shim/alloc_table.h"
#include "shim/blob.h"
#include "shim/capture_write.h"
#include "shim/driver.h"
#include "shim/intern.h"
#include "shim/memory.h"
#include "shim/no_cancel.h"
#include "shim/options.h"
#include "shim/shim.h"
#include "shim/thread.h"

enum { IMAGE_BYTES_MAX = 256 << 20, PARAMS_MAX = 4096 };

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static struct map modules, kernels;
static uint64_t generation = 1;

/* A launch loop calls few kernels: a small direct-mapped memory of the thread's own spares it the lock. */
enum { RECENT = 16 };
static __thread struct {
    uint64_t generation, handle;
    struct tracked_kernel *kernel;
} recent[RECENT] __attribute__((tls_model("initial-exec")));

/* An ELF file ends behind the last of its tables and sections. */
static uint64_t elf_size(const Elf64_Ehdr *elf)
{
    if (elf->e_ident[EI_CLASS] != ELFCLASS64 || elf->e_shentsize != sizeof(Elf64_Shdr))
        return 0;
    uint64_t end = elf->e_shoff + (uint64_t)elf->e_shnum * sizeof(Elf64_Shdr);
    uint64_t segments = elf->e_phoff + (uint64_t)elf->e_phnum * elf->e_phentsize;
    end = segments > end ? segments : end;
    const Elf64_Shdr *sections = (const void *)((const char *)elf + elf->e_shoff);
    for (unsigned i = 0; i < elf->e_shnum; i++)
        if (sections[i].sh_type != SHT_NOBITS && sections[i].sh_offset + sections[i].sh_size > end)
            end = sections[i].sh_offset + sections[i].sh_size;
    return end;
}

/* The driver takes a bare pointer; how long the image is says the image itself. The driver has accepted it, so what it
 * says is taken as true. 0: not recognised. */
static uint64_t image_size(const void *image, uint32_t *kind)
{
    const unsigned char *bytes = image;
    uint64_t size;
    *kind = CAP_MODULE_UNKNOWN;
    /* Text first, since it may be shorter than the headers. PTX starts with a comment, white space or a directive. */
    if (*bytes == '/' || *bytes == '.' || *bytes == '\n' || *bytes == ' ' || *bytes == '\t' || *bytes == '\r') {
        *kind = CAP_MODULE_PTX;
        return strlen(image) + 1;
    }
    if (memcmp(bytes, ELFMAG, SELFMAG) == 0) {
        *kind = CAP_MODULE_CUBIN;
        return elf_size(image);
    }
    if ((size = fatbin_data_size(image)))
        *kind = CAP_MODULE_FATBIN;
    return size;
}

/* The containers of a program that was linked as device code, one behind the other; NULL: too much. */
static void *join_containers(const void *const *list, uint64_t *size)
{
    uint64_t all = 0;
    for (size_t i = 0; list[i]; i++)
        all += (fatbin_data_size(list[i]) + 7) / 8 * 8;
    char *joined = all && all <= IMAGE_BYTES_MAX ? calloc(1, all) : NULL;
    *size = all;
    all = 0;
    for (size_t i = 0; joined && list[i]; i++) {
        uint64_t bytes = fatbin_data_size(list[i]);
        memcpy(joined + all, list[i], bytes);
        all += (bytes + 7) / 8 * 8;
    }
    return joined;
}

/* The data behind a fat binary wrapper (the form that nvcc's host code hands over). Version 2 has a list: *joined, to
 * be freed, of *size bytes. */
static const void *unwrap(const void *image, void **joined, uint64_t *size)
{
    struct {
        uint32_t magic, version;
        const void *data;
        const void *const *list;
    } wrapper;
    static const uint32_t magic = FATBIN_MAGIC;
    if (strncmp(image, (const char *)&magic, sizeof magic) != 0) /* stops at the end of a short text */
        return image;
    memcpy(&wrapper, image, sizeof wrapper);
    if (wrapper.version == 2 && wrapper.list && (*joined = join_containers(wrapper.list, size)))
        return *joined;
    return wrapper.data;
}

static void scan_fatbin(const void *image, uint64_t size, struct ptx_scan *scan)
{
    const void *container;
    size_t bytes, offset = 0, part;
    const bool several = fatbin_data_size(image) < size;
    struct diag *diag = malloc(sizeof *diag); /* a third of a small stack's rest */
    while (diag && fatbin_next_container(image, size, &offset, &container, &part)) {
        char *text = NULL;
        struct ptx_scan more = {0};
        bool whole = !(several && fatbin_is_device_runtime(container, part)) &&
                     fatbin_ptx(container, part, 0, &text, &bytes, diag) == STATUS_OK &&
                     ptx_scan_text(text, bytes, &more) && ptx_scan_take(scan, &more);
        if (!whole)
            ptx_scan_free(&more);
        free(text);
    }
    free(diag);
}

static void read_image(struct tracked_module *module, struct cap_module *facts, const void *image)
{
    uint64_t size = 0;
    uint32_t kind = CAP_MODULE_FATBIN;
    void *joined = NULL;
    image = unwrap(image, &joined, &size);
    if (!image || (!joined && !(size = image_size(image, &kind))))
        return;
    module->kind = facts->kind = kind;
    facts->image_bytes = size;
    if (size > IMAGE_BYTES_MAX) {
        shim_note(CAP_NOTE_LOST, "the image of module %u is too large to be kept (%llu bytes)", module->id,
                  (unsigned long long)size);
        free(joined);
        return;
    }
    struct hash128 hash = blob_put_copy(image, size);
    facts->hash_low = hash.low;
    facts->hash_high = hash.high;
    if (kind == CAP_MODULE_PTX)
        ptx_scan_text(image, size, &module->scan);
    else if (kind == CAP_MODULE_FATBIN)
        scan_fatbin(image, size, &module->scan);
    free(joined);
}

struct tracked_module *track_module_loaded(uint64_t handle, bool library, const void *image, const char *file)
{
    bool room = memory_must(sizeof(struct tracked_module));
    struct tracked_module *module = room ? calloc(1, sizeof *module) : NULL;
    if (!module)
        return NULL;
    const struct tracked_context *context = track_current_context();
    module->handle = handle;
    module->library = library;
    module->id = intern_new_id(INTERN_MODULE);
    module->context = context && !library ? context->id : 0;
    struct cap_module facts = {0};
    uint32_t name = intern_string(file);
    if (image)
        read_image(module, &facts, image);
    memory_must(ptx_scan_bytes(&module->scan));
    struct cap_module *record = capture_define(CAP_MODULE, sizeof *record);
    if (record) {
        facts.head = record->head;
        *record = facts;
        record->id = module->id;
        record->context = module->context;
        record->file = name;
        record->handle = handle;
        capture_commit(record);
    }
    pthread_mutex_lock(&lock);
    memory_map_put(&modules, handle, (uint64_t)(uintptr_t)module, true);
    pthread_mutex_unlock(&lock);
    return module;
}

struct tracked_module *track_module_file(uint64_t handle, bool library, const char *file)
{
    NO_CANCEL;
    void *image = NULL;
    int fd = open(file, O_RDONLY | O_CLOEXEC);
    off_t size = fd >= 0 ? lseek(fd, 0, SEEK_END) : -1; /* fstat is a new symbol since glibc 2.33 */
    if (size > 16 && size <= IMAGE_BYTES_MAX && lseek(fd, 0, SEEK_SET) == 0) {
        size_t bytes = (size_t)size, got = 0;
        image = calloc(1, bytes + 1); /* PTX in a file has no NUL at its end */
        for (ssize_t n = 1; image && got < bytes && n > 0; got += n > 0 ? (size_t)n : 0)
            n = read(fd, (char *)image + got, bytes - got);
    }
    if (fd >= 0)
        close(fd);
    struct tracked_module *module = track_module_loaded(handle, library, image, file);
    free(image);
    return module;
}

struct tracked_module *track_module(uint64_t handle)
{
    uint64_t value;
    pthread_mutex_lock(&lock);
    struct tracked_module *module = map_get(&modules, handle, &value) ? (void *)(uintptr_t)value : NULL;
    pthread_mutex_unlock(&lock);
    return module;
}

void track_module_alias(uint64_t handle, struct tracked_module *module)
{
    pthread_mutex_lock(&lock);
    memory_map_put(&modules, handle, (uint64_t)(uintptr_t)module, true);
    pthread_mutex_unlock(&lock);
}

struct module_taken {
    struct tracked_module *module;
    struct map handles[2]; /* of the module and of its kernels, as they stood in the tables */
    struct allocation *variables;
    uint32_t variable_count;
};

/* Behind the lock: removes what belongs to the module. Removal moves slots: look from the start each time. */
static void take_handles(struct map *from, bool of_kernels, const struct tracked_module *module, struct map *taken)
{
    for (bool again = true; again;) {
        again = false;
        for (size_t i = 0; i < from->capacity; i++) {
            const struct map_slot slot = from->slots[i];
            const void *at = (void *)(uintptr_t)slot.value;
            if (!slot.used || (of_kernels ? ((const struct tracked_kernel *)at)->module : at) != module)
                continue;
            map_put(taken, slot.key, slot.value);
            map_remove(from, slot.key);
            again = true;
        }
    }
}

static void put_back(struct map *to, const struct map *taken)
{
    uint64_t other;
    for (size_t i = 0; i < taken->capacity; i++)
        if (taken->slots[i].used && !map_get(to, taken->slots[i].key, &other))
            map_put(to, taken->slots[i].key, taken->slots[i].value);
}

/* Those of its variables that are in the table of allocations. */
static void take_variables(struct module_taken *t)
{
    const struct tracked_module *module = t->module;
    struct allocation now;
    t->variables = malloc(module->variable_count * sizeof *t->variables);
    for (uint32_t i = 0; t->variables && i < module->variable_count; i++)
        if (alloc_table_exact(module->variables[i].address, &now) && now.id == module->variables[i].id)
            t->variables[t->variable_count++] = now;
}

static struct module_taken *take_module(struct tracked_module *module)
{
    struct module_taken *t = module ? calloc(1, sizeof *t) : NULL, none = {.module = module};
    struct module_taken *to = t ? t : &none; /* without memory nothing can be put back */
    if (!module)
        return NULL;
    to->module = module;
    pthread_mutex_lock(&lock);
    take_handles(&modules, false, module, &to->handles[0]);
    take_handles(&kernels, true, module, &to->handles[1]);
    take_variables(to);
    pthread_mutex_unlock(&lock);
    __atomic_fetch_add(&generation, 1, __ATOMIC_ACQ_REL);
    alloc_table_drop(0, module->id);
    if (!t) {
        map_free(&none.handles[0]);
        map_free(&none.handles[1]);
        free(none.variables);
    }
    return t;
}

struct module_taken *track_module_take(uint64_t handle)
{
    return take_module(track_module(handle));
}

void track_module_taken(struct module_taken *taken, bool gone)
{
    if (!taken)
        return;
    if (!gone) {
        pthread_mutex_lock(&lock);
        put_back(&modules, &taken->handles[0]);
        put_back(&kernels, &taken->handles[1]);
        pthread_mutex_unlock(&lock);
        __atomic_fetch_add(&generation, 1, __ATOMIC_ACQ_REL);
        for (uint32_t i = 0; i < taken->variable_count; i++)
            alloc_table_insert(&taken->variables[i]);
    }
    map_free(&taken->handles[0]);
    map_free(&taken->handles[1]);
    free(taken->variables);
    free(taken);
}

static struct tracked_module *first_of(uint32_t context)
{
    struct tracked_module *found = NULL;
    pthread_mutex_lock(&lock);
    for (size_t i = 0; i < modules.capacity && !found; i++) {
        struct tracked_module *module = (void *)(uintptr_t)modules.slots[i].value;
        if (modules.slots[i].used && !module->library && module->context == context)
            found = module;
    }
    pthread_mutex_unlock(&lock);
    return found;
}

void track_modules_gone(uint32_t context)
{
    struct tracked_module *module;
    while (context && (module = first_of(context)))
        track_module_taken(take_module(module), true);
}

void track_module_add_variable(struct tracked_module *module, const struct allocation *a)
{
    pthread_mutex_lock(&lock);
    uint32_t at = 0;
    struct allocation now; /* what ended with its context gives its place away */
    while (at < module->variable_count && module->variables[at].address != a->address &&
           alloc_table_exact(module->variables[at].address, &now) && now.id == module->variables[at].id)
        at++;
    if (at == module->variable_count) {
        struct allocation *more = realloc(module->variables, (at + 1) * sizeof *more);
        if (more) {
            module->variables = more;
            module->variable_count++;
        }
    }
    if (at < module->variable_count)
        module->variables[at] = *a;
    pthread_mutex_unlock(&lock);
}

bool track_module_variable(const struct tracked_module *module, uint32_t i, struct allocation *out)
{
    pthread_mutex_lock(&lock);
    bool there = i < module->variable_count;
    if (there)
        *out = module->variables[i];
    pthread_mutex_unlock(&lock);
    return there;
}

struct tracked_kernel *track_kernel(uint64_t handle)
{
    uint64_t now = __atomic_load_n(&generation, __ATOMIC_ACQUIRE), value;
    unsigned slot = (unsigned)(handle >> 4 ^ handle >> 12) % RECENT;
    if (recent[slot].handle == handle && recent[slot].generation == now)
        return recent[slot].kernel;
    thread_slow();
    pthread_mutex_lock(&lock);
    struct tracked_kernel *kernel = map_get(&kernels, handle, &value) ? (void *)(uintptr_t)value : NULL;
    pthread_mutex_unlock(&lock);
    if (kernel) {
        recent[slot].handle = handle;
        recent[slot].generation = now;
        recent[slot].kernel = kernel;
    }
    return kernel;
}

/* A later CAP_KERNEL with the same id tells more about the same kernel. */
static void write_kernel(const struct tracked_kernel *kernel, const int attributes[4])
{
    uint32_t count = kernel->layout_source == CAP_LAYOUT_UNKNOWN ? 0 : kernel->param_count;
    uint32_t name = intern_string(kernel->name);
    struct cap_kernel *record = capture_define(CAP_KERNEL, sizeof *record + count * sizeof(struct cap_kernel_param));
    if (!record)
        return;
    struct cap_kernel_param *params = (struct cap_kernel_param *)(record + 1);
    record->id = kernel->id;
    record->module = kernel->module ? kernel->module->id : 0;
    record->name = name;
    record->param_count = count;
    record->param_bytes = count ? kernel->param_bytes : 0;
    record->static_shared_bytes = (uint32_t)attributes[0];
    record->local_bytes = (uint32_t)attributes[1];
    record->registers = (uint32_t)attributes[2];
    record->ptx_version = (uint32_t)attributes[3];
    record->layout_source = kernel->layout_source;
    for (uint32_t i = 0; i < count; i++)
        params[i] = (struct cap_kernel_param){kernel->params[i].offset, kernel->params[i].size};
    capture_commit(record);
}

static struct tracked_kernel *add_kernel(uint64_t handle, bool library, struct tracked_module *module, const char *name)
{
    bool room = memory_must(sizeof(struct tracked_kernel) + strlen(name));
    struct tracked_kernel *kernel = room ? calloc(1, sizeof *kernel) : NULL;
    if (!kernel)
        return NULL;
    kernel->handle = handle;
    kernel->library = library;
    kernel->module = module;
    kernel->name = strdup(name);
    kernel->id = intern_new_id(INTERN_KERNEL);
    kernel->matches =
        kernel->name && (!options.kernel_filter || regexec(&options.kernel, kernel->name, 0, NULL, 0) == 0);
    const struct ptx_entry *entry = module ? ptx_scan_entry(&module->scan, name) : NULL;
    if (entry) {
        kernel->params = entry->params; /* the scan lives as long as the process */
        kernel->param_count = entry->param_count;
        kernel->param_bytes = entry->param_bytes;
        kernel->layout_source = CAP_LAYOUT_PTX;
    }
    static const int nothing[4];
    write_kernel(kernel, nothing);
    pthread_mutex_lock(&lock);
    memory_map_put(&kernels, handle, (uint64_t)(uintptr_t)kernel, true);
    pthread_mutex_unlock(&lock);
    return kernel;
}

struct tracked_kernel *track_kernel_found(uint64_t handle, bool library, struct tracked_module *module,
                                          const char *name)
{
    struct tracked_kernel *kernel = track_kernel(handle);
    if (kernel && kernel->module == module && kernel->name && strcmp(kernel->name, name) == 0)
        return kernel;
    if (kernel)
        __atomic_fetch_add(&generation, 1, __ATOMIC_ACQ_REL);
    return add_kernel(handle, library, module, name);
}

void track_kernel_alias(uint64_t handle, struct tracked_kernel *kernel)
{
    uint64_t before = 0;
    pthread_mutex_lock(&lock);
    bool other = map_get(&kernels, handle, &before) && before != (uint64_t)(uintptr_t)kernel;
    memory_map_put(&kernels, handle, (uint64_t)(uintptr_t)kernel, true);
    pthread_mutex_unlock(&lock);
    if (other) /* its context has ended, and this is its handle now */
        __atomic_fetch_add(&generation, 1, __ATOMIC_ACQ_REL);
}

static bool ask_layout(struct tracked_kernel *kernel)
{
    if (kernel->library ? !driver.cuKernelGetParamInfo : !driver.cuFuncGetParamInfo)
        return false;
    struct ptx_param *params = NULL;
    uint32_t count = 0, end = 0;
    for (; count < PARAMS_MAX; count++) {
        size_t offset, size;
        CUresult result = kernel->library
                              ? driver.cuKernelGetParamInfo((CUkernel)(uintptr_t)kernel->handle, count, &offset, &size)
                              : driver.cuFuncGetParamInfo((CUfunction)(uintptr_t)kernel->handle, count, &offset, &size);
        if (result == CUDA_ERROR_INVALID_VALUE)
            break; /* the documented end */
        if (result != CUDA_SUCCESS || offset + size > PTX_PARAM_BYTES_MAX) {
            free(params);
            return false;
        }
        struct ptx_param *more = realloc(params, (count + 1) * sizeof *params);
        if (!more) {
            free(params);
            return false;
        }
        params = more;
        params[count] = (struct ptx_param){(uint32_t)offset, (uint32_t)size};
        end = offset + size > end ? (uint32_t)(offset + size) : end;
    }
    if (kernel->layout_source == CAP_LAYOUT_UNKNOWN) {
        kernel->params = params;
        kernel->param_count = count;
        kernel->param_bytes = end;
        __atomic_store_n(&kernel->layout_source, CAP_LAYOUT_DRIVER, __ATOMIC_RELEASE);
        return true;
    }
    free(params); /* the PTX said the same before; other threads read it */
    return true;
}

static void ask_attributes(const struct tracked_kernel *kernel, int out[4])
{
    static const CUfunction_attribute wanted[4] = {CU_FUNC_ATTRIBUTE_SHARED_SIZE_BYTES,
                                                   CU_FUNC_ATTRIBUTE_LOCAL_SIZE_BYTES, CU_FUNC_ATTRIBUTE_NUM_REGS,
                                                   CU_FUNC_ATTRIBUTE_PTX_VERSION};
    CUfunction function = (CUfunction)(uintptr_t)kernel->handle;
    if (kernel->library && (!driver.cuKernelGetFunction ||
                            driver.cuKernelGetFunction(&function, (CUkernel)(uintptr_t)kernel->handle) != CUDA_SUCCESS))
        return;
    for (int i = 0; i < 4 && driver.cuFuncGetAttribute; i++)
        if (driver.cuFuncGetAttribute(&out[i], wanted[i], function) != CUDA_SUCCESS)
            out[i] = 0;
}

/* A graph may name a kernel of a library by the function that the driver made of it, which the program never saw. */
static struct tracked_kernel *kernel_behind(CUfunction function, const char *name)
{
    enum { CANDIDATES = 16 };
    struct tracked_kernel *candidates[CANDIDATES];
    size_t count = 0;
    pthread_mutex_lock(&lock);
    for (size_t i = 0; i < kernels.capacity && count < CANDIDATES; i++) {
        struct tracked_kernel *kernel = (void *)(uintptr_t)kernels.slots[i].value;
        if (kernels.slots[i].used && kernel->library && kernel->name && strcmp(kernel->name, name) == 0)
            candidates[count++] = kernel;
    }
    pthread_mutex_unlock(&lock);
    for (size_t i = 0; i < count && driver.cuKernelGetFunction; i++) {
        CUfunction its = NULL;
        if (driver.cuKernelGetFunction(&its, (CUkernel)(uintptr_t)candidates[i]->handle) == CUDA_SUCCESS &&
            its == function) {
            track_kernel_alias((uint64_t)(uintptr_t)function, candidates[i]);
            return candidates[i];
        }
    }
    return NULL;
}

struct tracked_kernel *track_kernel_launched(uint64_t handle)
{
    struct tracked_kernel *kernel = track_kernel(handle);
    if (!kernel) { /* got through a function that is not hooked (cuModuleEnumerateFunctions and the like) */
        const char *name = NULL;
        bool library = false;
        CUmodule module = NULL;
        if (driver.cuFuncGetName && driver.cuFuncGetName(&name, (CUfunction)(uintptr_t)handle) == CUDA_SUCCESS &&
            name) {
            kernel = kernel_behind((CUfunction)(uintptr_t)handle, name);
            if (!kernel && driver.cuFuncGetModule)
                driver.cuFuncGetModule(&module, (CUfunction)(uintptr_t)handle);
        } else if (driver.cuKernelGetName &&
                   driver.cuKernelGetName(&name, (CUkernel)(uintptr_t)handle) == CUDA_SUCCESS && name)
            library = true;
        if (!kernel)
            kernel = add_kernel(handle, library, track_module((uint64_t)(uintptr_t)module), name ? name : "?");
        if (!kernel)
            return NULL;
    }
    /* Before the first launch these questions would force a lazily loaded function to be loaded, which may synchronise.
     */
    if (!track_kernel_asked(kernel) && !__atomic_exchange_n(&kernel->asked_driver, 1, __ATOMIC_ACQ_REL)) {
        int attributes[4] = {0};
        ask_layout(kernel);
        ask_attributes(kernel, attributes);
        write_kernel(kernel, attributes);
    }
    return kernel;
}
