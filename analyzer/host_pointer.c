#include "analyzer/host_pointer.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

/* With memory that devices reach as the host does (HMM, ATS) it is no mistake; when that is not known, nothing is said.
 */
static bool out_of_reach(const struct model *m)
{
    const struct capture *c = m->capture;
    if (!m->host_map_count || !m->device)
        return false;
    for (size_t i = 0; i < c->record_count; i++) {
        const struct cap_device *d = (const void *)c->records[i];
        if (d->head.type == CAP_DEVICE && d->host_access != CAP_HOST_ACCESS_NO)
            return false;
    }
    return true;
}

static bool known_memory(const struct model *m, uint64_t address)
{
    for (size_t i = 0; i < m->allocation_count; i++) {
        const struct model_allocation *a = &m->allocations[i];
        uint64_t host = a->record->host_address ? a->record->host_address : a->address;
        uint64_t room = a->bytes + a->record->tail_redzone;
        if (address - a->address <= room || address - host <= room)
            return true;
    }
    return false;
}

static const struct cap_host_map *map_of(const struct model *m, uint64_t address)
{
    for (size_t i = 0; i < m->host_map_count; i++)
        if (address >= m->host_maps[i]->start && address < m->host_maps[i]->end)
            return m->host_maps[i];
    return NULL;
}

static void map_text(const struct model *m, const struct cap_host_map *map, char *out, size_t bytes)
{
    const char *path = capture_string(m->capture, map->path), *slash = strrchr(path, '/');
    switch (map->kind) {
    case CAP_HOST_MAP_STACK:
        snprintf(out, bytes, "the host's memory, the stack of a thread");
        break;
    case CAP_HOST_MAP_HEAP:
        snprintf(out, bytes, "the host's memory, the heap (malloc)");
        break;
    case CAP_HOST_MAP_FILE:
        snprintf(out, bytes, "the host's memory, data of %.120s", slash ? slash + 1 : path);
        break;
    default:
        snprintf(out, bytes, "the host's memory");
        break;
    }
}

struct argument {
    uint32_t index; /* from 0, as everywhere in reports */
    uint64_t value;
    const struct cap_host_map *map;
};

/* The next argument from index `from` on of eight bytes that lies in a mapping of the host and in no memory that
 * the driver knows. */
static bool next_argument(const struct model *m, const struct model_launch *l, uint32_t from, struct argument *out)
{
    const uint8_t *values = model_launch_params(l);
    const struct cap_kernel *k = l->kernel->record;
    if (!values || model_launch_graph(l) || !k)
        return false;
    const struct cap_kernel_param *params = (const void *)(k + 1);
    for (uint32_t i = from; i < k->param_count; i++) {
        if (params[i].size != 8 || params[i].offset + 8 > l->record->param_bytes)
            continue;
        memcpy(&out->value, values + params[i].offset, 8);
        out->index = i;
        out->map = map_of(m, out->value);
        if (out->map && !known_memory(m, out->value))
            return true;
    }
    return false;
}

static const char host_pointer_cure[] =
    "copy the data to the device first, or give it managed or page-locked memory (cudaMallocManaged, cudaMallocHost)";

bool host_pointer_explains(const struct model *m, const struct model_launch *l, uint64_t address, struct finding *f)
{
    struct argument a, best = {.index = UINT32_MAX};
    char text[200];
    const struct cap_host_map *map = out_of_reach(m) && !known_memory(m, address) ? map_of(m, address) : NULL;
    for (uint32_t from = 0; map && next_argument(m, l, from, &a); from = a.index + 1)
        if (a.map == map && a.value <= address && (best.index == UINT32_MAX || a.value > best.value))
            best = a;
    if (best.index == UINT32_MAX)
        return false;
    map_text(m, map, text, sizeof text);
    finding_evidence(f, "host-pointer",
                     "argument %u (0x%" PRIx64 ") is an address of %s, which this device cannot reach: the data has to "
                     "be in device, managed or page-locked memory",
                     best.index, best.value, text);
    f->cure = host_pointer_cure;
    return true;
}

size_t host_pointer_arguments(const struct model *m, const struct model_launch *l, struct finding *f)
{
    struct argument a;
    char text[200];
    size_t count = 0;
    if (!out_of_reach(m))
        return 0;
    for (uint32_t from = 0; next_argument(m, l, from, &a); from = a.index + 1, count++) {
        map_text(m, a.map, text, sizeof text);
        finding_evidence(f, "host-pointer",
                         "argument %u of launch %u (0x%" PRIx64 ") is an address of %s, which this device cannot reach",
                         a.index, l->number, a.value, text);
    }
    return count;
}
