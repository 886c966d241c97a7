#include "analyzer/device_code.h"

#include <errno.h>
#include <fcntl.h>
#include <gelf.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "analyzer/regular.h"
#include "common/diag.h"
#include "common/fatbin.h"
#include "ptx/opsptx.h"

enum { MAX_LINKED = 255 }; /* as many as ptx_link() takes */

static enum status map_file(const char *path, struct device_code *c, struct diag *diag)
{
    struct stat st;
    int fd;
    enum status status = regular_open(AT_FDCWD, path, path, &fd, &st, diag);
    if (status)
        return status;
    if (st.st_size == 0)
        status = diag_set(diag, STATUS_BAD_INPUT, path, -1, "the file is empty");
    /* Writable, because libelf may convert in place; the file stays as it is. */
    void *map = status ? MAP_FAILED
                       : mmap(NULL, (size_t)st.st_size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_NORESERVE, fd, 0);
    if (!status && map == MAP_FAILED)
        status = diag_set(diag, STATUS_IO, path, -1, "%s", strerror(errno));
    close(fd);
    if (!status) {
        c->map = map;
        c->map_bytes = (size_t)st.st_size;
    }
    return status;
}

static void add_part(struct device_code *c, const void *data, size_t bytes, bool relocatable)
{
    if (!bytes || c->part_count == DEVICE_CODE_PARTS)
        return;
    /* Relocatable code first: what was linked from it is known by its names. */
    size_t at = relocatable ? 0 : c->part_count;
    memmove(c->parts + at + 1, c->parts + at, (c->part_count - at) * sizeof *c->parts);
    c->parts[at].data = data;
    c->parts[at].bytes = bytes;
    c->parts[at].relocatable = relocatable;
    c->parts[at].joined = NULL;
    c->part_count++;
}

static enum status find_sections(struct device_code *c, struct diag *diag)
{
    size_t names;
    elf_version(EV_CURRENT);
    Elf *elf = c->elf = elf_memory(c->map, c->map_bytes);
    if (!elf || elf_kind(elf) != ELF_K_ELF || elf_getshdrstrndx(elf, &names) != 0)
        return diag_set(diag, STATUS_BAD_INPUT, c->path, -1, "a damaged ELF file");
    for (Elf_Scn *section = NULL; (section = elf_nextscn(elf, section));) {
        GElf_Shdr header;
        const char *name = gelf_getshdr(section, &header) ? elf_strptr(elf, names, header.sh_name) : NULL;
        bool relocatable = name && strcmp(name, "__nv_relfatbin") == 0;
        if (!name || (!relocatable && strcmp(name, ".nv_fatbin") != 0))
            continue;
        const Elf_Data *data = elf_rawdata(section, NULL);
        if (data && data->d_buf)
            add_part(c, data->d_buf, data->d_size, relocatable);
    }
    if (!c->part_count)
        return diag_set(diag, STATUS_BAD_INPUT, c->path, -1, "there is no device code (section .nv_fatbin) inside");
    return STATUS_OK;
}

static bool is_container(const uint8_t *data, size_t bytes)
{
    uint32_t magic;
    if (bytes < 16)
        return false;
    memcpy(&magic, data, sizeof magic);
    return magic == FATBIN_DATA_MAGIC;
}

enum status device_code_open(const char *path, struct device_code *c, struct diag *diag)
{
    *c = (struct device_code){0};
    snprintf(c->path, sizeof c->path, "%s", path);
    enum status status = map_file(path, c, diag);
    if (!status && c->map_bytes >= SELFMAG && memcmp(c->map, ELFMAG, SELFMAG) == 0)
        status = find_sections(c, diag);
    else if (!status)
        add_part(c, c->map, c->map_bytes, false);
    if (status)
        device_code_close(c);
    return status;
}

typedef bool name_test(const char *name, const void *context);
static bool any_name(const char *name, const void *context)
{
    (void)name, (void)context;
    return true;
}

static bool names_entry(const char *name, const void *ptx)
{
    size_t length = strlen(name);
    for (const char *p = ptx; (p = strstr(p, ".entry "));) {
        p += strlen(".entry ");
        if (strncmp(p, name, length) == 0 && strchr("( \t\n", p[length]))
            return true;
    }
    return false;
}

/* Whether machine code defines a function that passes the test; `unknown` when that cannot be found out. */
static bool defines(const struct fatbin_entry *entry, bool unknown, name_test *test, const void *context)
{
    struct diag diag;
    char *plain;
    size_t bytes, names;
    bool found = false;
    if (fatbin_payload(entry, &plain, &bytes, &diag))
        return unknown;
    elf_version(EV_CURRENT);
    Elf *elf = elf_memory(plain, bytes);
    if (!elf || elf_kind(elf) != ELF_K_ELF || elf_getshdrstrndx(elf, &names) != 0)
        found = unknown;
    else
        for (Elf_Scn *section = NULL; !found && (section = elf_nextscn(elf, section));) {
            GElf_Shdr header;
            const char *name = gelf_getshdr(section, &header) ? elf_strptr(elf, names, header.sh_name) : NULL;
            found = name && strncmp(name, ".text.", 6) == 0 && test(name + 6, context);
        }
    if (elf)
        elf_end(elf);
    free(plain);
    return found;
}

static bool machine_code_defines(const uint8_t *data, size_t bytes, bool unknown, name_test *test, const void *context)
{
    struct fatbin_entry entry;
    struct diag diag;
    size_t offset = 0;
    while (fatbin_next(data, bytes, &offset, &entry, &diag))
        if (entry.kind != FATBIN_PTX && defines(&entry, unknown, test, context))
            return true;
    return false;
}

/* Whether a container without PTX is worth a word: not the empty program that nvcc adds to what it links, and not what
 * the device linker made of modules whose PTX is there. */
static bool is_machine_code(const struct device_code *c, const uint8_t *data, size_t bytes)
{
    for (size_t i = 0; i < c->part_count; i++)
        if (c->parts[i].joined && machine_code_defines(data, bytes, false, names_entry, c->parts[i].joined))
            return false;
    return machine_code_defines(data, bytes, true, any_name, NULL);
}

/* Containers lie at multiples of 8. */
static bool next_container(const uint8_t *data, size_t size, size_t *offset, const uint8_t **container, size_t *bytes)
{
    for (; *offset < size; *offset += 8) {
        size_t at = *offset, left = size - at;
        if (!is_container(data + at, left))
            continue;
        uint64_t whole = fatbin_data_size(data + at);
        *bytes = whole > left ? left : whole;
        *offset += *bytes < 16 ? 16 : (*bytes + 7) / 8 * 8;
        *container = data + at;
        return true;
    }
    return false;
}

/* The modules of a linked program as one. NULL where they are not all of it, as in an object file. */
static char *join(const uint8_t *data, size_t size)
{
    struct ptx_link_input inputs[MAX_LINKED];
    struct diag diag;
    const uint8_t *container;
    char *joined = NULL;
    size_t count = 0, bytes, length, offset = 0;
    bool complete = true;
    while (complete && next_container(data, size, &offset, &container, &bytes)) {
        char *text;
        if (fatbin_is_device_runtime(container, bytes))
            continue; /* the executor has its functions */
        complete = count < MAX_LINKED && !fatbin_ptx(container, bytes, 0, &text, &length, &diag);
        if (complete)
            inputs[count++] = (struct ptx_link_input){text, "module"};
    }
    if (complete && count && ptx_link(inputs, count, &joined, &diag))
        joined = NULL;
    for (size_t i = 0; i < count; i++)
        free((void *)(uintptr_t)inputs[i].text);
    return joined;
}

/* true when the part was given as a whole. */
static bool give_joined(struct device_code *c, char **text, size_t *bytes, enum status *status, struct diag *diag)
{
    char *joined = join(c->parts[c->part].data, c->parts[c->part].bytes);
    if (!joined)
        return false;
    c->parts[c->part].joined = joined;
    c->offset = c->parts[c->part].bytes;
    *text = strdup(joined);
    *bytes = strlen(joined);
    *status = *text ? STATUS_OK : diag_set(diag, STATUS_NO_MEMORY, c->path, -1, "no memory for its PTX");
    return true;
}

/* A text ends at its first NUL; what follows it in a file may only be more of them. */
static bool has_more(const uint8_t *data, size_t from, size_t size)
{
    while (from < size && data[from] == 0)
        from++;
    return from < size;
}

bool device_code_next(struct device_code *c, char **text, size_t *bytes, enum status *status, struct diag *diag)
{
    *text = NULL;
    *bytes = 0;
    for (; c->part < c->part_count; c->part++, c->offset = 0) {
        const uint8_t *data = c->parts[c->part].data, *container;
        size_t size = c->parts[c->part].bytes, whole;
        if (!c->elf && c->offset == 0 && !is_container(data, size)) { /* a text, or nothing known */
            c->offset = size;
            *status = fatbin_ptx(data, size, 0, text, bytes, diag);
            if (*status == STATUS_OK && has_more(data, *bytes, size)) {
                free(*text);
                *text = NULL;
                *status = diag_set(diag, STATUS_BAD_INPUT, c->path, (long)*bytes, "PTX text with a NUL byte inside");
            }
            snprintf(diag->where, sizeof diag->where, "%s", c->path);
            return true;
        }
        if (c->parts[c->part].relocatable && c->offset == 0 && give_joined(c, text, bytes, status, diag)) {
            snprintf(diag->where, sizeof diag->where, "%s", c->path);
            return true;
        }
        while (next_container(data, size, &c->offset, &container, &whole)) {
            *status = fatbin_ptx(container, whole, 0, text, bytes, diag);
            if (*status == STATUS_NOT_FOUND && !is_machine_code(c, container, whole))
                continue;
            snprintf(diag->where, sizeof diag->where, "%s", c->path);
            return true;
        }
    }
    return false;
}

void device_code_close(struct device_code *c)
{
    if (c->elf)
        elf_end(c->elf);
    if (c->map)
        munmap(c->map, c->map_bytes);
    for (size_t i = 0; i < c->part_count; i++)
        free(c->parts[i].joined);
    *c = (struct device_code){0};
}
