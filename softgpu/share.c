#include "softgpu/share.h"

#include <fcntl.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/random.h>
#include <sys/stat.h>
#include <unistd.h>

#include "softgpu/pages.h"

#define MAGIC UINT64_C(0x31656c6966677073)

/* A file of this process's device memory; kept while one of its pages is in use. */
struct share {
    int fd;
    uint32_t number;           /* that its pages have */
    struct share_label *label; /* mapped */
    uint64_t count;
    struct share *next;
    void *pages[];
};
static struct share *shares;
static atomic_uint export_count; /* so that frees need not look when nothing was ever exported */

int share_create(enum share_kind kind, unsigned device, uint64_t pages, struct share_label **out)
{
    uint64_t id;
    char name[32];
    if (getrandom(&id, sizeof id, 0) != sizeof id)
        return -1;
    snprintf(name, sizeof name, "softgpu-%016llx", (unsigned long long)id);
    int fd = memfd_create(name, MFD_CLOEXEC);
    off_t at = (off_t)(pages * PAGE_BYTES);
    if (fd < 0)
        return -1;
    struct share_label *label = MAP_FAILED;
    if (ftruncate(fd, at + SHARE_LABEL_BYTES) == 0)
        label = mmap(NULL, SHARE_LABEL_BYTES, PROT_READ | PROT_WRITE, MAP_SHARED, fd, at);
    if (label == MAP_FAILED) {
        close(fd);
        return -1;
    }
    label->id = id;
    label->kind = kind;
    label->device = device;
    label->pages = pages;
    label->magic = MAGIC;
    *out = label;
    return fd;
}

static void drop_share(struct share *s)
{
    munmap(s->label, SHARE_LABEL_BYTES);
    close(s->fd);
    free(s);
}

/* Files none of whose pages is in a file any more: they were given back. */
static void drop_unused(void)
{
    for (struct share **at = &shares; *at;) {
        struct share *s = *at;
        bool used = false;
        for (uint64_t i = 0; i < s->count && !used; i++)
            used = pages_file(s->pages[i]) == s->number;
        if (used) {
            at = &s->next;
        } else {
            *at = s->next;
            drop_share(s);
        }
    }
}

/* The file that a page lies in, and which of its pages that is. */
static struct share *share_of(const void *page, uint64_t *index)
{
    uint32_t number = pages_file(page);
    for (struct share *s = shares; number && s; s = s->next)
        for (uint64_t i = 0; s->number == number && i < s->count; i++)
            if (s->pages[i] == page) {
                *index = i;
                return s;
            }
    return NULL;
}

int share_pages(unsigned device, uint64_t count, void *const *pages, uint64_t *first)
{
    static uint32_t last_number;
    struct share *s = share_of(pages[0], first);
    if (s)
        return s->fd; /* what is exported together went in together */
    drop_unused();
    s = calloc(1, sizeof *s + count * sizeof *s->pages);
    if (!s || (s->fd = share_create(SHARE_MEMORY, device, count, &s->label)) < 0) {
        free(s);
        return -1;
    }
    s->number = ++last_number;
    s->count = count;
    memcpy(s->pages, pages, count * sizeof *s->pages);
    s->next = shares;
    shares = s;
    for (uint64_t i = 0; i < count; i++)
        if (!pages_into_file(pages[i], s->fd, i * PAGE_BYTES, s->number))
            return -1;
    *first = 0;
    return s->fd;
}

bool share_export(void *const *pages, uint64_t export_id, struct share_handle *out)
{
    uint64_t first = 0;
    struct share *s = share_of(pages[0], &first);
    if (!s)
        return false;
    _Atomic uint64_t *slot = NULL;
    for (int i = 0; i < SHARE_EXPORTS; i++) {
        uint64_t there = atomic_load(&s->label->exports[i]);
        if (there == export_id || (!there && !slot))
            slot = &s->label->exports[i];
        if (there == export_id)
            break;
    }
    if (!slot)
        return false;
    atomic_store(slot, export_id);
    atomic_store(&export_count, 1);
    *out = (struct share_handle){.magic = (uint32_t)MAGIC,
                                 .kind = SHARE_MEMORY,
                                 .pid = getpid(),
                                 .fd = s->fd,
                                 .id = s->label->id,
                                 .first = first,
                                 .export_ = export_id};
    return true;
}

void share_retire(uint64_t export_id)
{
    if (!atomic_load(&export_count))
        return;
    for (struct share *s = shares; s; s = s->next)
        for (int i = 0; i < SHARE_EXPORTS; i++)
            if (atomic_load(&s->label->exports[i]) == export_id)
                atomic_store(&s->label->exports[i], 0);
}

/* ---- from outside ----------------------------------------------------------------------------------------------- */

bool share_read_label(int fd, struct share_label *label)
{
    struct stat st;
    if (fstat(fd, &st) != 0 || st.st_size < SHARE_LABEL_BYTES || st.st_size % 4096)
        return false;
    off_t at = st.st_size - SHARE_LABEL_BYTES;
    return pread(fd, label, sizeof *label, at) == (ssize_t)sizeof *label && label->magic == MAGIC &&
           label->pages == (uint64_t)at / PAGE_BYTES;
}

static bool exported(const struct share_label *label, uint64_t export_id)
{
    bool found = !export_id;
    for (int i = 0; i < SHARE_EXPORTS && !found; i++)
        found = atomic_load(&label->exports[i]) == export_id;
    return found;
}

int share_open(const struct share_handle *h, struct share_label *label)
{
    char path[64];
    if (h->magic != (uint32_t)MAGIC || h->pid <= 0 || h->fd < 0)
        return -1;
    snprintf(path, sizeof path, "/proc/%d/fd/%d", h->pid, h->fd);
    int fd = open(path, O_RDWR | O_CLOEXEC);
    if (fd < 0)
        return -1;
    if (share_read_label(fd, label) && label->id == h->id && label->kind == h->kind && h->first <= label->pages &&
        exported(label, h->export_))
        return fd;
    close(fd);
    return -1;
}
