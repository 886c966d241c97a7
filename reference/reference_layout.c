#include "reference/reference_layout.h"

#include <stdlib.h>
#include <string.h>

#include "common/diag.h"

/* A slot of 2 TiB per region, the region near its middle: an index of 32 bits times an element of 128 bytes stays
 * inside. */
enum { SLOT_SHIFT = 41, FIRST_SLOT = 16, SLOT_LIMIT = 8192 };
#define NEAR     (INT64_C(64) << 10)
#define LOW_BITS ((UINT64_C(1) << 30) - 1)

static uint64_t slot_address(size_t slot, uint64_t address)
{
    return ((uint64_t)(slot + FIRST_SLOT) << SLOT_SHIFT) + (UINT64_C(1) << (SLOT_SHIFT - 1)) + (address & LOW_BITS);
}

static uint64_t region_address(const struct layout *l, size_t region)
{
    uint64_t address = l->launch->regions[region].address;
    return l->launch->layout == REFERENCE_ISOLATED ? slot_address(region, address) : address;
}

static bool reached(const struct reference_launch *launch, size_t region)
{
    for (size_t i = 0; i < launch->pointer_count; i++)
        if (launch->pointers[i].region == region)
            return true;
    for (size_t i = 0; i < launch->variable_count; i++)
        if (launch->variables[i].region == region)
            return true;
    return false;
}

static void add_region(struct layout *l, size_t i)
{
    const struct reference_region *r = &l->launch->regions[i];
    /* What no argument points into keeps its old address, where only a foreign pointer would look for it: leave it out.
     */
    if (l->launch->layout == REFERENCE_ISOLATED && !reached(l->launch, i))
        return;
    l->ranges[l->range_count++] = (struct ptx_range){
        .address = region_address(l, i),
        .bytes = r->bytes,
        .host = r->host,
        .id = (uint32_t)i,
        .flags = (r->flags & REFERENCE_READ_ONLY ? PTX_RANGE_READ_ONLY : 0) |
                 (r->flags & REFERENCE_FREED ? PTX_RANGE_FREED : 0),
        .written = r->written,
        .read = r->read,
        .valid = r->valid,
        .shadow = r->shadow,
        .shadow_used = r->shadow_used,
        .tainted = r->tainted,
    };
}

static const struct reference_variable *find_variable(const struct reference_launch *launch, const char *name)
{
    for (size_t i = 0; i < launch->variable_count; i++)
        if (strcmp(launch->variables[i].name, name) == 0)
            return &launch->variables[i];
    return NULL;
}

/* Memory for a variable that the program never asked about, with the contents it has after loading. */
static enum status add_own_variable(struct layout *l, const struct ptx_variable *v, size_t index)
{
    size_t bytes = v->size ? v->size : 1;
    uint8_t *host = calloc(1, bytes), *read = calloc(1, (bytes + 7) / 8);
    l->own[l->own_count++] = host;
    l->own[l->own_count++] = read;
    if (!host || !read)
        return STATUS_NO_MEMORY;
    l->variables[index] = slot_address(l->launch->region_count + index, 0);
    l->ranges[l->range_count++] = (struct ptx_range){
        .address = l->variables[index],
        .bytes = bytes,
        .host = host,
        .id = UINT32_MAX,
        .flags = v->constant ? PTX_RANGE_READ_ONLY : 0,
        .read = v->constant ? NULL : read,
    };
    return STATUS_OK;
}

static enum status place_variables(struct layout *l, struct diag *diag)
{
    const struct ptx_module *module = reference_module_ptx(l->launch->module);
    size_t count = ptx_module_variable_count(module);
    for (size_t i = 0; i < count; i++) {
        const struct ptx_variable *v = ptx_module_variable(module, i);
        const struct reference_variable *known = find_variable(l->launch, v->name);
        if (known) {
            l->variables[i] = region_address(l, known->region);
            continue;
        }
        if (v->external)
            return diag_set(diag, STATUS_NOT_FOUND, v->name, -1, "external variable %s: its address was not recorded",
                            v->name);
        enum status status = add_own_variable(l, v, i);
        if (status)
            return status;
    }
    /* Only now: an initialiser may hold the address of any variable. */
    for (size_t i = 0; i < l->range_count; i++) {
        if (l->ranges[i].id != UINT32_MAX)
            continue;
        for (size_t k = 0; k < count; k++)
            if (l->variables[k] == l->ranges[i].address && ptx_module_variable(module, k)->size) {
                enum status status = ptx_module_variable_init(module, k, l->variables, l->ranges[i].host);
                if (status)
                    return diag_set(diag, status, ptx_module_variable(module, k)->name, -1,
                                    "its initial contents cannot be made");
            }
    }
    return STATUS_OK;
}

static int by_address(const void *a, const void *b)
{
    uint64_t x = ((const struct ptx_range *)a)->address, y = ((const struct ptx_range *)b)->address;
    return x < y ? -1 : x > y;
}

enum status layout_make(struct layout *l, const struct reference_launch *launch, struct diag *diag)
{
    size_t variables = ptx_module_variable_count(reference_module_ptx(launch->module));
    *l = (struct layout){.launch = launch};
    if (launch->region_count + variables > SLOT_LIMIT && launch->layout == REFERENCE_ISOLATED)
        return diag_set(diag, STATUS_LIMIT, launch->kernel, -1, "%zu regions and variables",
                        launch->region_count + variables);
    l->ranges = calloc(launch->region_count + variables + 1, sizeof *l->ranges);
    l->variables = calloc(variables + 1, sizeof *l->variables);
    l->own = calloc(2 * variables + 1, sizeof *l->own);
    l->params = malloc((size_t)launch->param_bytes + 1);
    if (!l->ranges || !l->variables || !l->own || !l->params)
        return diag_set(diag, STATUS_NO_MEMORY, launch->kernel, -1, "no memory");
    for (size_t i = 0; i < launch->region_count; i++)
        add_region(l, i);
    enum status status = place_variables(l, diag);
    if (status)
        return status;
    qsort(l->ranges, l->range_count, sizeof *l->ranges, by_address);
    if (launch->param_bytes)
        memcpy(l->params, launch->params, launch->param_bytes);
    for (size_t i = 0; i < launch->pointer_count && launch->layout == REFERENCE_ISOLATED; i++) {
        const struct reference_pointer *p = &launch->pointers[i];
        uint64_t word;
        memcpy(&word, l->params + p->offset, sizeof word);
        word = word - launch->regions[p->region].address + region_address(l, p->region);
        memcpy(l->params + p->offset, &word, sizeof word);
    }
    return STATUS_OK;
}

void layout_end(struct layout *l)
{
    for (size_t i = 0; i < l->own_count; i++)
        free(l->own[i]);
    free((void *)l->own);
    free(l->ranges);
    free(l->variables);
    free(l->params);
    *l = (struct layout){0};
}

/* Without the pointer's origin only what lies close to a region is said to have been meant for it. */
static bool near(const struct reference_region *r, int64_t offset)
{
    return offset >= -NEAR && (offset < 0 || (uint64_t)offset < r->bytes + NEAR);
}

bool layout_translate(const struct layout *l, struct ptx_fault *f, size_t *region)
{
    const struct reference_launch *launch = l->launch;
    *region = SIZE_MAX;
    if (f->space != PTX_SPACE_GLOBAL && f->space != PTX_SPACE_CONST)
        return true;
    if (launch->layout == REFERENCE_AS_LAUNCHED) {
        bool known = f->has_range && f->range_id < launch->region_count;
        if (known &&
            (f->provenance || f->kind != PTX_FAULT_OUT_OF_BOUNDS || near(&launch->regions[f->range_id], f->offset)))
            *region = f->range_id;
        return true;
    }
    uint64_t slot = f->address >> SLOT_SHIFT;
    if (f->provenance && f->has_range && f->range_id < launch->region_count) {
        slot = f->range_id + FIRST_SLOT; /* however far it went */
    } else if (slot < FIRST_SLOT || slot - FIRST_SLOT >= launch->region_count ||
               !reached(launch, (size_t)slot - FIRST_SLOT)) {
        /* A variable of our own, or an address from elsewhere. */
        return f->has_range && f->range_id == UINT32_MAX &&
               (f->provenance || slot >= FIRST_SLOT + launch->region_count);
    }
    size_t i = (size_t)slot - FIRST_SLOT;
    *region = i;
    f->offset = (int64_t)(f->address - region_address(l, i));
    f->address = launch->regions[i].address + (uint64_t)f->offset;
    f->has_range = true;
    return true;
}

bool layout_own_read(const struct layout *l)
{
    for (size_t i = 0; i < l->range_count; i++) {
        const struct ptx_range *r = &l->ranges[i];
        for (uint64_t k = 0; r->id == UINT32_MAX && r->read && k < (r->bytes + 7) / 8; k++)
            if (r->read[k])
                return true;
    }
    return false;
}
