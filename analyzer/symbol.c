#include "analyzer/symbol.h"

#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <dwarf.h>
#include <elfutils/libdw.h>
#include <elfutils/libdwelf.h>
#include <elfutils/libdwfl.h>

#include "analyzer/name.h"
#include "analyzer/regular.h"
#include "analyzer/tail_call.h"

enum {
    FRAME_LIMIT = 256, /* of a stack, inlined ones included */
    TAIL_LIMIT = 8     /* missing ones between two others */
};

/* Each with a Dwfl of its own: objects that came and went may have had the same addresses. */
struct object {
    const struct cap_object *record;
    bool usable;
    Dwfl *dwfl; /* NULL: not needed yet, or not usable */
};

struct symbols {
    const struct capture *capture;
    bool opened;
    struct object *objects; /* owned; in order of seq */
    size_t object_count;
    size_t missing;
    struct map stacks; /* id -> struct symbol_stack, owned */
};

static const struct symbol_stack no_stack;

/* Separate debug files are looked for in the usual places on this machine. */
static const Dwfl_Callbacks callbacks = {
    .find_debuginfo = dwfl_standard_find_debuginfo,
    .section_address = dwfl_offline_section_address,
};

struct symbols *symbols_new(const struct capture *capture)
{
    struct symbols *s = calloc(1, sizeof *s);
    if (s)
        s->capture = capture;
    return s;
}

static void free_frames(struct symbol_stack *stack)
{
    for (size_t i = 0; i < stack->count; i++) {
        free(stack->frames[i].text);
        free(stack->frames[i].function);
        free(stack->frames[i].file);
    }
    free(stack->frames);
}

void symbols_free(struct symbols *s)
{
    if (!s)
        return;
    for (size_t i = 0; i < s->stacks.capacity; i++) {
        if (!s->stacks.slots[i].used)
            continue;
        struct symbol_stack *stack = (void *)(uintptr_t)s->stacks.slots[i].value;
        free_frames(stack);
        free(stack);
    }
    map_free(&s->stacks);
    for (size_t i = 0; i < s->object_count; i++)
        if (s->objects[i].dwfl)
            dwfl_end(s->objects[i].dwfl);
    free(s->objects);
    free(s);
}

/* ---- objects ---- */

static bool same_build(int fd, const struct cap_object *object)
{
    if (object->build_id_bytes == 0)
        return true; /* nothing to compare */
    Elf *elf = elf_begin(fd, ELF_C_READ_MMAP, NULL);
    const void *id = NULL;
    ssize_t bytes = elf ? dwelf_elf_gnu_build_id(elf, &id) : -1;
    /* The record keeps the first 24 bytes of a longer id. */
    bool same = bytes >= (ssize_t)object->build_id_bytes && memcmp(id, object->build_id, object->build_id_bytes) == 0;
    if (elf)
        elf_end(elf);
    return same;
}

/* Whether the file at the recorded path is the one that ran. */
static bool usable(const struct symbols *s, const struct cap_object *record)
{
    const char *path = capture_string(s->capture, record->path);
    struct stat st;
    struct diag problem;
    int fd;
    if (path[0] != '/' || regular_open(AT_FDCWD, path, path, &fd, &st, &problem))
        return false;
    bool same = same_build(fd, record);
    close(fd);
    return same;
}

static void open_objects(struct symbols *s)
{
    s->opened = true;
    unsetenv("DEBUGINFOD_URLS"); /* libdw would ask servers for what is missing */
    elf_version(EV_CURRENT);
    size_t count = 0;
    for (size_t i = 0; i < s->capture->record_count; i++)
        count += s->capture->records[i]->type == CAP_OBJECT;
    s->objects = calloc(count + 1, sizeof *s->objects);
    s->object_count = 0;
    if (!s->objects)
        return;
    for (size_t i = 0; i < s->capture->record_count; i++) {
        if (s->capture->records[i]->type != CAP_OBJECT)
            continue;
        struct object *object = &s->objects[s->object_count++];
        object->record = (const void *)s->capture->records[i];
        object->usable = usable(s, object->record);
        s->missing += !object->usable;
    }
}

static Dwfl_Module *module_at(const struct symbols *s, struct object *object, uint64_t address)
{
    if (object->usable && !object->dwfl) {
        const char *path = capture_string(s->capture, object->record->path);
        object->dwfl = dwfl_begin(&callbacks);
        if (object->dwfl) {
            dwfl_report_begin(object->dwfl);
            object->usable =
                dwfl_report_elf(object->dwfl, name_file(path), path, -1, object->record->bias, true) != NULL;
            dwfl_report_end(object->dwfl, NULL, NULL);
        }
    }
    return object->dwfl ? dwfl_addrmodule(object->dwfl, address) : NULL;
}

size_t symbols_missing(struct symbols *s)
{
    if (!s->opened)
        open_objects(s);
    return s->missing;
}

/* ---- frames ---- */

/* Libraries through which a program calls CUDA: their frames lie between the program's line and the driver. */
static bool foreign_object(const char *name)
{
    static const char *const foreign[] = {"libcuda.so", "libcudart.so", "libcublas", "libopsdebug",
                                          "libnccl",    "libcudnn",     "libc.so",   "ld-linux"};
    for (size_t i = 0; i < sizeof foreign / sizeof *foreign; i++)
        if (strncmp(name, foreign[i], strlen(foreign[i])) == 0)
            return true;
    return false;
}

/* The stubs through which the compiler's code launches a kernel. */
static bool launch_stub(const char *function)
{
    return function && (strstr(function, "__device_stub__") || strstr(function, "__cudaLaunch"));
}

static bool own_source(const char *file, unsigned line, const char *object)
{
    return file && line && !foreign_object(object) && name_own_source(file);
}

static void push(struct symbol_stack *stack, const char *function, const char *file, unsigned line, const char *object,
                 uint64_t offset, bool inlined)
{
    if (stack->count >= FRAME_LIMIT)
        return;
    char text[1024];
    char *plain = function ? name_short(function) : NULL;
    if (file && line)
        snprintf(text, sizeof text, "%s%s%s:%u", plain ? plain : "", plain ? " " : "", name_file(file), line);
    else
        snprintf(text, sizeof text, "%s%s%s+0x%" PRIx64, plain ? plain : "", plain ? " " : "", object, offset);
    struct symbol_frame *f = &stack->frames[stack->count];
    *f = (struct symbol_frame){strdup(text),
                               plain,
                               file ? strdup(file) : NULL,
                               file ? line : 0,
                               inlined,
                               own_source(file, line, object),
                               foreign_object(object) || launch_stub(function)};
    if (f->text)
        stack->count++;
    else {
        free(f->function);
        free(f->file);
    }
}

static const char *call_site_file(Dwarf_Die *die, Dwarf_Die *unit)
{
    Dwarf_Attribute attribute;
    Dwarf_Word index;
    Dwarf_Files *files;
    size_t count;
    if (dwarf_formudata(dwarf_attr(die, DW_AT_call_file, &attribute), &index) != 0 ||
        dwarf_getsrcfiles(unit, &files, &count) != 0 || index >= count)
        return NULL;
    return dwarf_filesrc(files, index, NULL, NULL);
}

static unsigned call_site_line(Dwarf_Die *die)
{
    Dwarf_Attribute attribute;
    Dwarf_Word line;
    return dwarf_formudata(dwarf_attr(die, DW_AT_call_line, &attribute), &line) == 0 ? (unsigned)line : 0;
}

/* Pushes the function at `address` and the ones it was inlined into. False: no debug information about it. */
static bool push_with_lines(struct symbol_stack *stack, Dwfl_Module *module, uint64_t address, const char *object,
                            uint64_t offset)
{
    Dwarf_Addr bias;
    Dwarf_Die *unit = dwfl_module_addrdie(module, address, &bias);
    Dwfl_Line *line = dwfl_module_getsrc(module, address);
    if (!unit || !line)
        return false;
    int number = 0;
    const char *file = dwfl_lineinfo(line, NULL, &number, NULL, NULL, NULL);
    Dwarf_Die *inner = NULL, *scopes = NULL;
    int count = dwarf_getscopes(unit, address - bias, &inner);
    if (count > 0)
        count = dwarf_getscopes_die(&inner[0], &scopes);
    size_t before = stack->count;
    for (int i = 0; i < count; i++) {
        int tag = dwarf_tag(&scopes[i]);
        if (tag != DW_TAG_inlined_subroutine && tag != DW_TAG_subprogram)
            continue;
        push(stack, dwarf_diename(&scopes[i]), file, number > 0 ? (unsigned)number : 0, object, offset,
             tag == DW_TAG_inlined_subroutine);
        if (tag == DW_TAG_subprogram)
            break;
        file = call_site_file(&scopes[i], unit);
        number = (int)call_site_line(&scopes[i]);
    }
    free(inner);
    free(scopes);
    if (stack->count == before)
        push(stack, dwfl_module_addrname(module, address), file, number > 0 ? (unsigned)number : 0, object, offset,
             false);
    return true;
}

/* What lay at `address` when the record with `seq` was written: the object that was recorded last before it. One that
 * is recorded later only is better than none: two threads may write their records out of order. */
static struct object *object_at(struct symbols *s, uint64_t address, uint64_t seq)
{
    struct object *found = NULL;
    for (size_t i = 0; i < s->object_count; i++) {
        struct object *object = &s->objects[i];
        if (found && object->record->head.seq > seq)
            break;
        if (address >= object->record->start && address < object->record->end)
            found = object;
    }
    return found;
}

/* The function of the frame before, as far as debug information tells. */
struct callee {
    Dwfl_Module *module;
    Dwarf_Off identity;
};

static void push_tail_calls(struct symbol_stack *stack, Dwfl_Module *module, uint64_t return_address,
                            const struct object *object, const char *name, struct callee *callee)
{
    Dwarf_Addr bias;
    Dwarf_Die *unit = dwfl_module_addrdie(module, return_address - 1, &bias);
    struct tail_call missing[TAIL_LIMIT];
    if (!unit) {
        *callee = (struct callee){0};
        return;
    }
    size_t count = tail_calls_missing(unit, return_address - bias, callee->module == module ? callee->identity : 0,
                                      missing, TAIL_LIMIT);
    while (count--) {
        const struct tail_call *t = &missing[count];
        push(stack, t->function, t->file, t->line, name, t->start + bias - object->record->bias, false);
    }
    *callee = (struct callee){module, tail_call_identity_at(unit, return_address - 1 - bias)};
}

/* Nothing called it: its frame says that there is no address to return to, as those of `_start` and of a thread's first
 * function do. */
static bool is_outermost(Dwfl_Module *module, uint64_t address)
{
    Dwarf_Addr bias;
    Dwarf_CFI *cfi = dwfl_module_eh_cfi(module, &bias);
    Dwarf_Frame *frame = NULL;
    Dwarf_Op memory[3], *ops = NULL;
    size_t count = 1;
    if (!cfi || dwarf_cfi_addrframe(cfi, address - bias, &frame) != 0)
        return false;
    int ra = dwarf_frame_info(frame, NULL, NULL, NULL);
    bool undefined =
        ra >= 0 && dwarf_frame_register(frame, ra, memory, &ops, &count) == 0 && count == 0 && ops == memory;
    free(frame);
    return undefined;
}

static void push_frame(struct symbols *s, struct symbol_stack *stack, uint64_t return_address, uint64_t seq,
                       struct callee *callee)
{
    /* The call lies before the address it returns to, which may belong to the next line or function. */
    uint64_t address = return_address ? return_address - 1 : 0;
    struct object *object = object_at(s, address, seq);
    const char *name = object ? name_file(capture_string(s->capture, object->record->path)) : "?";
    uint64_t offset = object ? address - object->record->bias : address;
    Dwfl_Module *module = object ? module_at(s, object, address) : NULL;
    if (module)
        push_tail_calls(stack, module, return_address, object, name, callee);
    else
        *callee = (struct callee){0};
    size_t before = stack->count;
    if (!module || !push_with_lines(stack, module, address, name, offset))
        push(stack, module ? dwfl_module_addrname(module, address) : NULL, NULL, 0, name, offset, false);
    if (module && stack->count > before && is_outermost(module, address))
        stack->frames[stack->count - 1].foreign = !stack->frames[stack->count - 1].own;
}

const struct symbol_stack *symbols_stack(struct symbols *s, uint32_t id)
{
    uint64_t value;
    const struct cap_stack *record = capture_definition(s->capture, CAP_STACK, id);
    if (map_get(&s->stacks, id, &value))
        return (const struct symbol_stack *)(uintptr_t)value;
    if (!record)
        return &no_stack;
    if (!s->opened)
        open_objects(s);
    struct symbol_stack *stack = calloc(1, sizeof *stack);
    struct symbol_frame *frames = calloc(FRAME_LIMIT, sizeof *frames);
    if (!stack || !frames || !map_put(&s->stacks, id, (uintptr_t)stack)) {
        free(stack);
        free(frames);
        return &no_stack;
    }
    stack->frames = frames;
    const uint64_t *addresses = (const uint64_t *)(record + 1);
    struct callee callee = {0};
    for (uint32_t i = 0; i < record->count && stack->count < FRAME_LIMIT; i++)
        push_frame(s, stack, addresses[i], record->head.seq, &callee);
    while (stack->own < stack->count && !stack->frames[stack->own].own)
        stack->own++;
    while (stack->near < stack->count && stack->frames[stack->near].foreign)
        stack->near++;
    if (stack->near == stack->count)
        stack->near = 0;
    return stack;
}

const char *symbols_place(struct symbols *s, uint32_t id, char *out, size_t bytes)
{
    const struct symbol_stack *stack = symbols_stack(s, id);
    out[0] = '\0';
    if (stack->own < stack->count)
        snprintf(out, bytes, "%s:%u", name_file(stack->frames[stack->own].file), stack->frames[stack->own].line);
    else if (stack->count)
        snprintf(out, bytes, "%s", stack->frames[stack->near].text);
    return out;
}

const char *symbols_function(struct symbols *s, uint64_t address, uint64_t seq, char *out, size_t bytes)
{
    struct symbol_stack stack = {.frames = calloc(FRAME_LIMIT, sizeof *stack.frames)};
    struct callee none = {0};
    out[0] = '\0';
    if (!s->opened)
        open_objects(s);
    if (!stack.frames)
        return out;
    push_frame(s, &stack, address + 1, seq, &none);
    if (stack.count) /* behind what is inlined at its very start */
        snprintf(out, bytes, "%s", stack.frames[stack.count - 1].text);
    free_frames(&stack);
    return out;
}
