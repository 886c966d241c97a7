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

#include "common/diag.h"
#include "common/fatbin.h"

static enum status map_file(const char *path, struct device_code *c, struct diag *diag)
{
    struct stat st;
    int fd = open(path, O_RDONLY | O_CLOEXEC | O_NOCTTY | O_NONBLOCK);
    if (fd < 0)
        return diag_set(diag, STATUS_IO, path, -1, "%s", strerror(errno));
    enum status status = STATUS_OK;
    if (fstat(fd, &st) != 0 || !S_ISREG(st.st_mode))
        status = diag_set(diag, STATUS_IO, path, -1, "no regular file");
    else if (st.st_size == 0)
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

static void add_part(struct device_code *c, const void *data, size_t bytes)
{
    if (bytes && c->part_count < DEVICE_CODE_PARTS) {
        c->parts[c->part_count].data = data;
        c->parts[c->part_count++].bytes = bytes;
    }
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
        if (!name || (strcmp(name, ".nv_fatbin") != 0 && strcmp(name, "__nv_relfatbin") != 0))
            continue;
        const Elf_Data *data = elf_rawdata(section, NULL);
        if (data && data->d_buf)
            add_part(c, data->d_buf, data->d_size);
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
        add_part(c, c->map, c->map_bytes);
    if (status)
        device_code_close(c);
    return status;
}

/* Whether machine code defines a function: nvcc adds a container with an empty program to what it links. */
static bool has_functions(const struct fatbin_entry *entry)
{
    struct diag diag;
    char *plain;
    size_t bytes, names;
    bool found = false;
    if (fatbin_payload(entry, &plain, &bytes, &diag))
        return true; /* unknown */
    elf_version(EV_CURRENT);
    Elf *elf = elf_memory(plain, bytes);
    if (!elf || elf_kind(elf) != ELF_K_ELF || elf_getshdrstrndx(elf, &names) != 0)
        found = true;
    for (Elf_Scn *section = NULL; !found && (section = elf_nextscn(elf, section));) {
        GElf_Shdr header;
        const char *name = gelf_getshdr(section, &header) ? elf_strptr(elf, names, header.sh_name) : NULL;
        found = name && strncmp(name, ".text.", 6) == 0;
    }
    if (elf)
        elf_end(elf);
    free(plain);
    return found;
}

static bool has_machine_code(const uint8_t *data, size_t bytes)
{
    struct fatbin_entry entry;
    struct diag diag;
    size_t offset = 0;
    while (fatbin_next(data, bytes, &offset, &entry, &diag))
        if (entry.kind != FATBIN_PTX && has_functions(&entry))
            return true;
    return false;
}

bool device_code_next(struct device_code *c, char **text, size_t *bytes, enum status *status, struct diag *diag)
{
    *text = NULL;
    *bytes = 0;
    for (; c->part < c->part_count; c->part++, c->offset = 0) {
        const uint8_t *data = c->parts[c->part].data;
        size_t size = c->parts[c->part].bytes;
        if (!c->elf && c->offset == 0 && !is_container(data, size)) { /* a text, or nothing known */
            c->offset = size;
            *status = fatbin_ptx(data, size, 0, text, bytes, diag);
            snprintf(diag->where, sizeof diag->where, "%s", c->path);
            return true;
        }
        while (c->offset < size) { /* containers lie at multiples of 8 */
            size_t at = c->offset, left = size - at;
            if (!is_container(data + at, left)) {
                c->offset += 8;
                continue;
            }
            uint64_t whole = fatbin_data_size(data + at);
            if (whole > left)
                whole = left;
            c->offset += whole < 16 ? 16 : (whole + 7) / 8 * 8;
            *status = fatbin_ptx(data + at, whole, 0, text, bytes, diag);
            if (*status == STATUS_NOT_FOUND && !has_machine_code(data + at, whole))
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
    *c = (struct device_code){0};
}
