#include "shim/libc_symbols.h"

#include <elf.h>
#include <link.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct wanted {
    const char *name;
    void *found;
};

struct dynamic {
    const ElfW(Sym) * symbols;
    const char *strings;
    const uint32_t *gnu_hash;
    size_t soname;
};

/* Not strcmp: a sanitizer's run time looks its own functions up through us before its strcmp can be called. */
static bool same(const char *a, const char *b)
{
    while (*a && *a == *b) {
        a++;
        b++;
    }
    return *a == *b;
}

static uint32_t gnu_hash_of(const char *name)
{
    uint32_t h = 5381;
    for (; *name; name++)
        h = h * 33 + (unsigned char)*name;
    return h;
}

static const ElfW(Sym) * lookup(const struct dynamic *d, const char *name)
{
    const uint32_t *table = d->gnu_hash;
    uint32_t buckets_count = table[0], first = table[1], bloom_words = table[2];
    const uint32_t *buckets = table + 4 + bloom_words * (sizeof(ElfW(Addr)) / 4);
    const uint32_t *chain = buckets + buckets_count;
    if (!buckets_count)
        return NULL;
    uint32_t hash = gnu_hash_of(name), i = buckets[hash % buckets_count];
    if (i < first)
        return NULL;
    for (;; i++) {
        uint32_t h = chain[i - first];
        const ElfW(Sym) *symbol = &d->symbols[i];
        if ((h | 1) == (hash | 1) && symbol->st_shndx != SHN_UNDEF && same(d->strings + symbol->st_name, name))
            return symbol;
        if (h & 1)
            return NULL;
    }
}

static bool read_dynamic(const struct dl_phdr_info *info, struct dynamic *d)
{
    const ElfW(Dyn) *entry = NULL;
    for (int i = 0; i < info->dlpi_phnum; i++)
        if (info->dlpi_phdr[i].p_type == PT_DYNAMIC)
            entry = (const void *)(info->dlpi_addr + info->dlpi_phdr[i].p_vaddr);
    for (; entry && entry->d_tag != DT_NULL; entry++) {
        /* glibc relocates these entries in place on x86-64; musl and some ports do not. */
        ElfW(Addr) at = entry->d_un.d_ptr < info->dlpi_addr ? entry->d_un.d_ptr + info->dlpi_addr : entry->d_un.d_ptr;
        if (entry->d_tag == DT_SYMTAB)
            d->symbols = (const void *)at;
        else if (entry->d_tag == DT_STRTAB)
            d->strings = (const void *)at;
        else if (entry->d_tag == DT_GNU_HASH)
            d->gnu_hash = (const void *)at;
        else if (entry->d_tag == DT_SONAME)
            d->soname = entry->d_un.d_val;
    }
    return d->symbols && d->strings && d->gnu_hash && d->soname;
}

static int visit(struct dl_phdr_info *info, size_t size, void *data)
{
    struct wanted *wanted = data;
    struct dynamic d = {NULL, NULL, NULL, 0};
    /* Only these two: the program may export a dlsym of its own, and so do we. */
    if (!read_dynamic(info, &d))
        return 0;
    const char *soname = d.strings + d.soname;
    if (!same(soname, "libc.so.6") && !same(soname, "libdl.so.2"))
        return 0;
    const ElfW(Sym) *symbol = lookup(&d, wanted->name);
    if (!symbol)
        return 0;
    wanted->found = (void *)(info->dlpi_addr + symbol->st_value);
    return 1;
}

void *libc_symbols_find(const char *name)
{
    struct wanted wanted = {name, NULL};
    dl_iterate_phdr(visit, &wanted);
    return wanted.found;
}
